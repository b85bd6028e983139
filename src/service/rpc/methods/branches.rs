//! `name_branch`, `archive_branch` and `unarchive_branch` (protocol.md §3.20).

use crate::daemon::commit::ChangePlace;
use crate::daemon::navigation::{NavigationKind, Navigator};
use crate::daemon::release::Release;
use crate::rpc::methods::navigate::{name_navigation, navigator, or_aborted};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::branch;
use treelined_core::flow::navigate::Judgement;
use treelined_core::id::EntryId;
use treelined_core::name::{self, MOST_BRANCH_NAME};
use treelined_core::tree::Node;
use treelined_files::lock::lock;
use treelined_files::session::SessionState;
use treelined_wire as wire;

pub(in crate::rpc) async fn name_branch(
    place: ChangePlace,
    params: wire::NameBranchParams,
) -> Result<wire::NameBranchResult> {
    let change = place.writable().await?;
    let source = Arc::clone(&change.daemon.source);
    let name = params.name.as_deref().and_then(name::given);
    if name
        .as_ref()
        .is_some_and(|name| name.len() > MOST_BRANCH_NAME)
    {
        let reason = "has more than 1,024 bytes: give a shorter name";
        return Err(Error::invalid_params("name", reason));
    }
    let stored = name.clone();
    // The id of the first entry of the branch, and the former name.
    let found: Arc<Mutex<(String, Option<String>)>> = Arc::default();
    let seen = Arc::clone(&found);
    let plan = move |state: &SessionState| {
        state.check_expected_leaf(&params.expected_leaf_id)?;
        let head = head(state, &params.entry_id)?;
        // A fork below the named entry does not change which entry has the name.
        let head = state.tree.named_by(head).unwrap_or(head);
        let former = state.tree.branch_name(head).map(str::to_owned);
        *lock(&seen) = (state.tree.id(head).to_owned(), former);
        Ok(branch::plan_name(
            &state.tree,
            &*source,
            head,
            name.as_deref(),
        ))
    };
    let written = change.commit(plan, |_, written| written).await?.seen;
    let (entry_id, former) = std::mem::take(&mut *lock(&found));
    Ok(wire::NameBranchResult {
        inverse: written.map(|_| inverse(wire::BranchVerb::NameBranch, &entry_id, former)),
        entry_id,
        name: stored,
        durability: written.unwrap_or(Durability::None),
    })
}

pub(in crate::rpc) async fn archive_branch(
    release: Release,
    params: wire::ArchiveBranchParams,
) -> Result<wire::ArchiveBranchResult> {
    let call = Arc::clone(&release.call);
    let default = navigator(&*call.daemon.source, &params, NavigationKind::Archive);
    let navigator = Navigator {
        navigation_id: params
            .navigation_id
            .clone()
            .unwrap_or(default.navigation_id),
        within: params.within.clone().unwrap_or_default(),
        answer_timeout: params.answer_timeout_ms.map(Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        ..default
    };
    name_navigation(&release, &params, &navigator);
    let mut entry_id = params.entry_id.clone();
    // A session in memory always has the durability `none`, so its durability does not say whether something has
    // changed.
    let mut is_new_in_memory = false;
    let find = |state: &SessionState| {
        let head = head(state, &params.entry_id)?;
        entry_id = state.tree.id(head).to_owned();
        is_new_in_memory = state.log.location().is_none() && !state.tree.archived().hides(head);
        Ok(head)
    };
    let archived = navigator.run(release, find).await;
    let archived = or_aborted(&call.daemon.registry, call.connection.id, &params, archived).await?;
    let is_written =
        archived.durability != Durability::None || (is_new_in_memory && !archived.cancelled);
    let back = || inverse(wire::BranchVerb::UnarchiveBranch, &entry_id, None);
    Ok(wire::ArchiveBranchResult {
        cancelled: archived.cancelled,
        reason: archived.reason,
        by: archived.by,
        message: archived.message,
        inverse: is_written.then(back),
        old_leaf_id: archived.old_leaf_id,
        new_leaf_id: archived.new_leaf_id,
        durability: archived.durability,
        entry_id,
    })
}

pub(in crate::rpc) async fn unarchive_branch(
    place: ChangePlace,
    params: wire::UnarchiveBranchParams,
) -> Result<wire::UnarchiveBranchResult> {
    let change = place.writable().await?;
    let source = Arc::clone(&change.daemon.source);
    let found: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&found);
    let plan = move |state: &SessionState| {
        state.check_expected_leaf(&params.expected_leaf_id)?;
        let node = state.find(&params.entry_id)?;
        let archived = state.tree.archived();
        let heads = state.tree.ancestors(Some(node));
        let heads: Vec<Node> = heads.filter(|node| archived.begins_with(*node)).collect();
        *lock(&seen) = heads
            .iter()
            .map(|head| state.tree.id(*head).to_owned())
            .collect();
        Ok(branch::plan_unarchive(&state.tree, &*source, &heads))
    };
    let written = change.commit(plan, |_, written| written).await?.seen;
    let entry_ids = std::mem::take(&mut *lock(&found));
    let back = |(outermost, within): (&String, &[String])| {
        let mut inverse = inverse(wire::BranchVerb::ArchiveBranch, outermost, None);
        inverse.params.within = within.to_vec();
        inverse
    };
    Ok(wire::UnarchiveBranchResult {
        inverse: entry_ids.split_last().map(back),
        entry_ids,
        durability: written.unwrap_or(Durability::None),
    })
}

pub(in crate::rpc) async fn choose(
    release: Release,
    params: wire::ChooseParams,
) -> Result<wire::ChooseResult> {
    let call = Arc::clone(&release.call);
    let reason = params.reason.as_deref().and_then(name::given);
    let default = navigator(&*call.daemon.source, &params, NavigationKind::Choice);
    let navigator = Navigator {
        navigation_id: params
            .navigation_id
            .clone()
            .unwrap_or(default.navigation_id),
        answer_timeout: params.answer_timeout_ms.map(Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        ..default
    };
    name_navigation(&release, &params, &navigator);
    let by = call.connection.display_name();
    let mut chosen = Candidates::default();
    let find = |navigator: &mut Navigator, state: &SessionState| {
        let (tip, candidates) = candidates(state, &params.tip_id)?;
        navigator.judgements = candidates.judgements(reason.as_deref(), &by);
        chosen = candidates;
        Ok(tip)
    };
    let ended = navigator.run_with(release, find).await;
    let ended = or_aborted(&call.daemon.registry, call.connection.id, &params, ended).await?;
    Ok(wire::ChooseResult {
        navigation: ended,
        group: chosen.group,
        tip_id: chosen.tip_id,
        others: chosen.others,
    })
}

/// The candidates of a question.
#[derive(Default)]
struct Candidates {
    group: String,
    tip_id: String,
    /// The ends of the other candidates.
    others: Vec<String>,
}

impl Candidates {
    fn judgements(&self, reason: Option<&str>, by: &str) -> Vec<Judgement> {
        let others = self.others.iter().map(|tip_id| Judgement {
            tip_id: EntryId::new(tip_id.clone()),
            reason: reason.map(str::to_owned),
            by: by.to_owned(),
        });
        others.collect()
    }
}

/// The end of the candidate that has this entry, and the other candidates.
fn candidates(state: &SessionState, entry_id: &str) -> Result<(Node, Candidates)> {
    let tree = &state.tree;
    let node = state.find(entry_id)?;
    let (head, group) = tree.group(node).ok_or_else(|| {
        let reason = "is not on a branch of a group: navigate_tree goes to any entry";
        Error::invalid_params("tipId", reason)
    })?;
    let fork = tree.skip_bookkeeping(tree.parent(head));
    let archived = tree.archived();
    let tip = tree.newest_step_below(node, &archived);
    let id = |node: Node| tree.id(node).to_owned();
    let others = tree.candidates(fork, group).into_iter();
    let others = others.filter(|other| *other != head);
    Ok((
        tip,
        Candidates {
            group: group.to_owned(),
            tip_id: id(tip),
            others: others
                .map(|other| id(tree.newest_step_below(other, &archived)))
                .collect(),
        },
    ))
}

/// The first entry of the branch that has this entry.
fn head(state: &SessionState, entry_id: &str) -> Result<Node> {
    let node = state.find(entry_id)?;
    state.tree.branch_head(Some(node)).ok_or_else(|| {
        let message =
            "the entry is on no branch, since no step of the conversation is at or above it";
        Error::new(Kind::EntryNotFound, message)
            .with_details(serde_json::json!({ "entryId": entry_id }))
    })
}

fn inverse(method: wire::BranchVerb, entry_id: &str, name: Option<String>) -> wire::BranchInverse {
    wire::BranchInverse {
        method,
        params: wire::InverseArguments {
            entry_id: entry_id.to_owned(),
            name,
            within: Vec::new(),
        },
    }
}
