//! `cherry_pick` (semantics.md §5) and `keep_branch` (protocol.md §3.23). [`treelined_core::flow::pick`] decides which
//! entries can be copied, and how.

use crate::daemon::commit::ChangePlace;
use crate::daemon::other_session::OtherSession;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use treelined_core::durability::Durability;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::PlannedLines;
use treelined_core::flow::pick::{self, PickedMessage};
use treelined_core::json;
use treelined_core::tree::Node;
use treelined_files::lock::lock;
use treelined_files::session::SessionState;
use treelined_wire as wire;

pub(in crate::rpc) async fn cherry_pick(
    place: ChangePlace,
    params: wire::CherryPickParams,
) -> Result<wire::CherryPickResult> {
    let call = place.call();
    let other = match &params.from_session_id {
        Some(id) => Some(
            OtherSession::read(&call.daemon, call.connection.rights(), id, &call.cancel).await?,
        ),
        None => None,
    };
    let change = place.writable().await?;
    let other = other.filter(|other| *other.id != *change.open.id);
    let (source, expected) = (Arc::clone(&change.daemon.source), params.expected_leaf_id);
    let plan = move |state: &SessionState| {
        let from: &SessionState = match &other {
            Some(other) => &other.guard,
            None => state,
        };
        let read = |id: &String| {
            let node = match &other {
                Some(other) => other.find(Some(id))?,
                None => state.find(id)?,
            };
            let entry = from.entry(node)?;
            let id = id.clone();
            Ok(PickedMessage { id, entry })
        };
        let picked = params.entry_ids.iter().map(read);
        let picked = picked.collect::<Result<Vec<_>>>()?;
        let from_session = other.as_ref().map(|other| other.id.as_str());
        let planned = pick::plan(&state.tree, &*source, &picked, from_session)?;
        // The first attempt of a repeated request has moved the leaf, so the expected leaf is not checked.
        if !planned.lines.is_empty() {
            state.check_expected_leaf(&expected)?;
        }
        Ok(planned)
    };
    let changed = change.commit(plan, |_, written| written).await?;
    let last = changed.entry_ids.last().cloned();
    Ok(wire::CherryPickResult {
        leaf_id: last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))?,
        entry_ids: changed.entry_ids,
        durability: changed.seen.unwrap_or(Durability::None),
    })
}

/// The copies of a branch's messages that the path to the leaf has already.
#[derive(Default)]
struct KeptBefore {
    /// For each message of the branch, in order, its copy on the path to the leaf, if there is one.
    copies: Vec<Option<String>>,
    leaf: Option<String>,
}

pub(in crate::rpc) async fn keep_branch(
    place: ChangePlace,
    params: wire::KeepBranchParams,
) -> Result<wire::KeepBranchResult> {
    let change = place.writable().await?;
    let source = Arc::clone(&change.daemon.source);
    let found: Arc<Mutex<KeptBefore>> = Arc::default();
    let seen = Arc::clone(&found);
    let plan = move |state: &SessionState| {
        let node = state.find(&params.entry_id)?;
        let messages = state.tree.background_messages(node);
        if messages.is_empty() {
            let reason =
                "is in no branch that grew in the background, with messages: name an entry of one";
            return Err(Error::invalid_params("entryId", reason));
        }
        let kept = kept(state, &messages)?;
        let missing = messages
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| kept.is_none());
        let read = |(node, _): (&Node, _)| {
            Ok(PickedMessage {
                id: state.tree.id(*node).to_owned(),
                entry: state.entry(*node)?,
            })
        };
        let picked = missing.map(read).collect::<Result<Vec<_>>>()?;
        *lock(&seen) = KeptBefore {
            copies: kept,
            leaf: state.leaf_id().map(str::to_owned),
        };
        if picked.is_empty() {
            return Ok(PlannedLines::default());
        }
        state.check_expected_leaf(&params.expected_leaf_id)?;
        pick::plan(&state.tree, &*source, &picked, None)
    };
    let changed = change.commit(plan, |_, written| written).await?;
    let before = std::mem::take(&mut *lock(&found));
    let last = changed.entry_ids.last().cloned().or(before.leaf);
    let mut copies = changed.entry_ids.into_iter();
    let kept = before.copies.into_iter();
    let entry_ids = kept.filter_map(|kept| kept.or_else(|| copies.next()));
    Ok(wire::KeepBranchResult {
        entry_ids: entry_ids.collect(),
        leaf_id: last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was kept"))?,
        durability: changed.seen.unwrap_or(Durability::None),
    })
}

/// For each message of a branch, its copy on the path to the leaf, or the message itself if the path has the message.
/// Reads the messages of the path below the fork.
fn kept(state: &SessionState, messages: &[Node]) -> Result<Vec<Option<String>>> {
    let tree = &state.tree;
    let fork = tree.common_ancestor(messages.first().copied(), tree.leaf());
    let mut on_path: HashMap<String, String> = HashMap::new();
    let own: HashSet<Node> = messages.iter().copied().collect();
    for node in tree.ancestors(tree.leaf()) {
        let id = tree.id(node).to_owned();
        if own.contains(&node) {
            on_path.insert(id.clone(), id);
        } else if Some(node) != fork && is_said(tree.kind(node)) {
            let entry = state.entry(node)?;
            let from = json::get(&entry, "copiedFrom").and_then(json::string);
            if let Some(from) = from {
                on_path.entry(from.into_owned()).or_insert(id);
            }
        }
        if Some(node) == fork {
            break;
        }
    }
    let copy = |message: &Node| on_path.get(tree.id(*message)).cloned();
    Ok(messages.iter().map(copy).collect())
}

fn is_said(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Message | EntryKind::CustomMessage)
}
