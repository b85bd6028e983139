//! Moves of the leaf that send no before event (`set_leaf`, `branch`, undo and redo), and the list of all moves
//! (protocol.md §3, session-file.md §4).

use crate::daemon::commit::ChangePlace;
use crate::daemon::convert::stored::raw;
use crate::daemon::notify::SessionTree;
use crate::daemon::summaries;
use crate::rpc::session_read::Read;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::entry::Kind;
use treelined_core::error::{self, Error, Result};
use treelined_core::flow::IdAllocator;
use treelined_core::flow::PlannedLines;
use treelined_core::flow::branch;
use treelined_core::flow::leaf::{self, BranchSummary};
use treelined_core::flow::validate;
use treelined_core::id::ExpectedLeaf;
use treelined_core::timestamp;
pub(crate) use treelined_core::tree::{Cause, Move, Node, Position};
use treelined_files::session::SessionState;
use treelined_wire as wire;

pub(in crate::rpc) async fn set_leaf(
    place: ChangePlace,
    params: wire::SetLeafParams,
) -> Result<wire::SetLeafResult> {
    let to = params.leaf_id;
    let find = move |state: &SessionState| state.find_position(to.as_deref());
    let moved = go(place, params.expected_leaf_id, Cause::SetLeaf, None, find).await?;
    Ok(wire::SetLeafResult {
        old_leaf_id: moved.old_leaf_id,
        new_leaf_id: moved.new_leaf_id,
        durability: moved.durability,
    })
}

pub(in crate::rpc) async fn branch(
    place: ChangePlace,
    params: wire::BranchParams,
) -> Result<wire::BranchResult> {
    if let Some(given) = &params.summary {
        let raw = |raw: &wire::Raw| raw.get().as_bytes().to_vec();
        let (details, usage) = (
            given.details.as_ref().map(raw),
            given.usage.as_ref().map(raw),
        );
        validate::summary("summary", details.as_deref(), usage.as_deref())?;
    }
    let summary = params.summary.as_ref().map(summaries::given);
    let summary = summary.filter(|summary| !summary.is_empty());
    if params.entry_id.is_none() && summary.is_none() {
        let reason = "may be null only with a summary; set_leaf moves before the first entry";
        return Err(Error::invalid_params("entryId", reason));
    }
    let to = params.entry_id;
    let find = move |state: &SessionState| state.find_position(to.as_deref());
    let moved = go(place, params.expected_leaf_id, Cause::Branch, summary, find).await?;
    Ok(wire::BranchResult {
        old_leaf_id: moved.old_leaf_id,
        new_leaf_id: moved.new_leaf_id,
        from_hook: moved.summary_entry.is_some().then_some(true),
        summary_entry: moved.summary_entry.as_deref().map(raw),
        durability: moved.durability,
    })
}

pub(in crate::rpc) async fn undo_navigation(
    place: ChangePlace,
    params: wire::UndoNavigationParams,
) -> Result<wire::UndoNavigationResult> {
    let find = |state: &SessionState| leaf::history_target(&state.tree, Cause::Undo);
    let moved = go(place, params.expected_leaf_id, Cause::Undo, None, find).await?;
    Ok(wire::UndoNavigationResult {
        old_leaf_id: moved.old_leaf_id,
        new_leaf_id: moved.new_leaf_id,
        durability: moved.durability,
    })
}

pub(in crate::rpc) async fn redo_navigation(
    place: ChangePlace,
    params: wire::RedoNavigationParams,
) -> Result<wire::RedoNavigationResult> {
    let find = |state: &SessionState| leaf::history_target(&state.tree, Cause::Redo);
    let moved = go(place, params.expected_leaf_id, Cause::Redo, None, find).await?;
    Ok(wire::RedoNavigationResult {
        old_leaf_id: moved.old_leaf_id,
        new_leaf_id: moved.new_leaf_id,
        durability: moved.durability,
    })
}

pub(in crate::rpc) fn get_navigation_log(
    read: &Read<'_>,
    params: &wire::GetNavigationLogParams,
) -> Result<wire::GetNavigationLogResult> {
    let limit = params.limit.map_or(usize::MAX, |limit| limit as usize);
    let id = |position: Position| {
        let known = position.known().flatten();
        known.map(|node| read.tree.id(node).to_owned())
    };
    let moves = read.tree.moves().log().iter().rev().take(limit);
    // A leaf record names a position. That position counts even if its entry comes later in the file.
    let to = |made: &Move| match read.tree.kind(made.at) {
        Kind::LeafRecord => read.tree.parent(made.at).into(),
        _ => made.to,
    };
    let moves = moves.map(|made| wire::Move {
        at: timestamp::format(read.tree.timestamp(made.at).unwrap_or_default()),
        from: id(made.from),
        to: id(to(made)),
        cause: wire_cause(made.cause),
    });
    Ok(wire::GetNavigationLogResult {
        moves: moves.collect(),
    })
}

/// The result of a move. If the leaf stays, the old leaf and the new leaf are equal.
struct MoveOutcome {
    old_leaf_id: Option<String>,
    new_leaf_id: Option<String>,
    summary_entry: Option<Vec<u8>>,
    durability: Durability,
}

/// Moves the leaf to the result of `find`, with a record or a summary. Announces the move if the leaf has moved.
async fn go(
    place: ChangePlace,
    expected: ExpectedLeaf,
    cause: Cause,
    summary: Option<BranchSummary>,
    find: impl Fn(&SessionState) -> Result<Option<Node>> + Send + 'static,
) -> Result<MoveOutcome> {
    let change = place.writable().await?;
    let (daemon, open) = (Arc::clone(&change.daemon), Arc::clone(&change.open));
    open.session.check_not_in_turn()?;
    let (source, turns) = (Arc::clone(&daemon.source), Arc::clone(&open));
    let old_leaf_id = change.guard.leaf_id().map(str::to_owned);
    let has_summary = summary.is_some();
    let plan = move |state: &SessionState| -> Result<PlannedLines> {
        state.check_expected_leaf(&expected)?;
        let to = find(state)?;
        Ok(match &summary {
            Some(summary) => {
                let mut minter = IdAllocator::new(&state.tree, &*source);
                leaf::plan_summary(&state.tree, &mut minter, to, None, summary)
            }
            None if cause == Cause::Redo => {
                let may_archive =
                    |head| turns.client_turn().check_branch(&state.tree, head).is_ok();
                branch::plan_redo(&state.tree, &*source, to, may_archive)
            }
            None => leaf::plan(&state.tree, &*source, to, cause),
        })
    };
    let then = |state: &SessionState, written: Option<Durability>| -> Result<MoveOutcome> {
        let summary_entry = match state.leaf().filter(|_| has_summary) {
            Some(node) => Some(state.entry(node)?),
            None => None,
        };
        let moved = MoveOutcome {
            old_leaf_id,
            new_leaf_id: state.leaf_id().map(str::to_owned),
            summary_entry,
            durability: written.unwrap_or(Durability::None),
        };
        if written.is_some() {
            daemon.notifier.session_tree(
                &open,
                SessionTree {
                    old_leaf_id: moved.old_leaf_id.as_deref(),
                    new_leaf_id: moved.new_leaf_id.as_deref(),
                    cause: wire_cause(cause),
                    navigation_id: None,
                    summary_entry: moved.summary_entry.as_deref(),
                    label_entry: None,
                    from_hook: has_summary.then_some(true),
                },
            );
        }
        Ok(moved)
    };
    let moved = change.commit(plan, then).await?.seen;
    moved.map_err(|error| Error::new(error::Kind::StorageIo, error.message))
}

fn wire_cause(cause: Cause) -> wire::MoveCause {
    match cause {
        Cause::SetLeaf => wire::MoveCause::SetLeaf,
        Cause::Branch => wire::MoveCause::Branch,
        Cause::NavigateTree => wire::MoveCause::NavigateTree,
        Cause::Undo => wire::MoveCause::Undo,
        Cause::Redo => wire::MoveCause::Redo,
    }
}
