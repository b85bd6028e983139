//! Appends below shed entries: the branch is moved back first, if the append would not be refused then
//! (session-file.md §4.10).

use crate::daemon::Daemon;
use crate::daemon::commit_tail::moved_cold;
use crate::daemon::guard::SessionGuard;
use crate::daemon::open_session::OpenSession;
use serde_json::json;
use std::sync::{Arc, OnceLock};
use treelined_core::error::{Error, Result};
use treelined_core::flow::PlannedLines;
use treelined_core::flow::append::{NewEntry, NewParent, Planner};
use treelined_core::id::ExpectedLeaf;
use treelined_files::session::SessionState;
use treelined_files::session::commit::CommitOutcome;
use treelined_files::session::shed::{ColdMove, MovedBranches};

/// Plans an append after the operations that `planner` has planned; `None` if these operations must be written first.
pub(super) fn planned(
    state: &SessionState,
    planner: &mut Planner<'_>,
    entries: &[NewEntry],
    expected: &ExpectedLeaf,
) -> Result<Option<PlannedLines>> {
    let stored = |node| state.entry(node);
    let planned = planner.plan(entries, &stored);
    let first = entries.first();
    match &planned {
        Ok(None) => return Ok(None),
        // The first attempt of a repeated append has moved the leaf, so the expected leaf is not checked.
        Ok(Some(planned)) if planned.lines.is_empty() => {}
        _ if first.is_some_and(|entry| entry.background) => match expected {
            ExpectedLeaf::Any => {}
            _ if planner.has_planned() => return Ok(None),
            expected => state.check_expected_tip(expected, first.and_then(parent))?,
        },
        _ => match (expected, planner.last()) {
            (ExpectedLeaf::Any, _) => {}
            (ExpectedLeaf::At(expected), Some(last)) if expected == last => {}
            (_, Some(_)) => return Ok(None),
            (expected, None) => state.check_expected_leaf(expected)?,
        },
    }
    planned
}

/// The parent that an entry names.
fn parent(entry: &NewEntry) -> Option<&str> {
    match &entry.parent {
        NewParent::Named(parent) => parent.as_deref(),
        NewParent::Previous => None,
    }
}

/// The first entry of the shed branch below which an append is, if `error` says that its parent is shed.
pub(super) fn branch_above(entries: &[NewEntry], error: &Error) -> Option<String> {
    let details = error.details.as_ref()?;
    let branch = details.get("shedBranchId")?.as_str()?;
    let shed = details.get("entryId")?.as_str()?;
    let is_above = |entry: &NewEntry| parent(entry) == Some(shed);
    entries.iter().any(is_above).then(|| branch.to_owned())
}

/// Brings back the shed branches that an append needs, beginning with `branch`, unless the append would be refused
/// then. `None` if the session cannot be used any more.
pub(super) async fn bring_back(
    daemon: &Arc<Daemon>,
    open: &Arc<OpenSession>,
    mut guard: SessionGuard,
    append: (Arc<Vec<NewEntry>>, ExpectedLeaf),
    branch: String,
) -> Option<(SessionGuard, Result<()>)> {
    let (entries, expected) = append;
    let mut branches = vec![branch.clone()];
    loop {
        let refused: Arc<OnceLock<Error>> = Arc::default();
        let check = {
            let (entries, expected) = (Arc::clone(&entries), expected.clone());
            let (source, refused) = (Arc::clone(&daemon.source), Arc::clone(&refused));
            move |state: &SessionState| {
                let mut planner = Planner::new(&state.tree, &*source);
                let planned = planned(state, &mut planner, &entries, &expected);
                planned.map(drop).map_err(|error| {
                    let error = state.explained(error);
                    refused.get_or_init(|| error).clone()
                })
            }
        };
        let back = ColdMove::Unshed(Some(Box::new(check)));
        let moved = moved_cold(daemon, open, guard, back, branches.clone()).await;
        let (ours, tail, moved) = moved.ok()?;
        guard = ours;
        let (synced, _publication) = match tail {
            Some(tail) => tail.finish().await,
            None => (Ok(()), None),
        };
        let Some(error) = refused.get() else {
            return Some((guard, is_back(moved, synced, &branch)));
        };
        match branch_above(&entries, error) {
            Some(next) if !branches.contains(&next) => branches.push(next),
            _ => return Some((guard, Err(error.clone()))),
        }
    }
}

/// Whether the branch is back and durable. An error also names the branch that stays shed.
fn is_back(
    moved: Result<(MovedBranches, CommitOutcome)>,
    synced: Result<()>,
    branch: &str,
) -> Result<()> {
    let back = moved.and_then(|(branches, _)| match branches.moved.is_empty() {
        true => Err(Error::entry_not_found(branch)),
        false => synced,
    });
    back.map_err(|error| {
        let mut details = error.details.clone().unwrap_or_else(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.insert("shedBranchId".to_owned(), json!(branch));
        }
        error.with_details(details)
    })
}
