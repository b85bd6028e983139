//! `fork_session` and `get_fork_messages` (protocol.md §3.10). [`crate::daemon::fork`] has the steps.

use crate::daemon::fork::{ForkOptions, ForkPlace};
use crate::rpc::session_read::{Read, ReadAnswer};
use std::collections::HashSet;
use treelined_core::entry::draft::draft;
use treelined_core::entry::{Kind as EntryKind, Role};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::fork::ForkSide;
use treelined_core::name;
use treelined_core::tree::Node;
use treelined_files::store::choose_id;
use treelined_wire as wire;

pub(in crate::rpc) fn get_fork_messages(
    read: &Read<'_>,
    params: &wire::GetForkMessagesParams,
) -> Result<ReadAnswer<wire::GetForkMessagesResult>> {
    let limit = read.frame_bytes();
    let active: HashSet<Node> = read.tree.ancestors(read.leaf()).collect();
    let (archived, shows) = (read.tree.archived(), params.archived.unwrap_or_default());
    let is_user = |node: &Node| {
        let is_shown = shows || !archived.hides(*node);
        is_shown
            && read.tree.kind(*node) == EntryKind::Message
            && read.tree.role(*node) == Role::User
    };
    let nodes: Vec<Node> = read.tree.entries().filter(is_user).collect();
    let size = read.stored_bytes(nodes.iter().copied());
    let id = |node: &Node| (read.tree.id(*node).to_owned(), active.contains(node));
    let ids: Vec<(String, bool)> = nodes.iter().map(id).collect();
    let (bodies, fetches) = (read.bodies(), read.fetch(nodes)?);
    Ok(ReadAnswer::later(size, move || {
        let mut reader = bodies.reader();
        let mut messages = Vec::new();
        // Collects at most as many messages as fit into a response.
        let mut left = limit;
        for (fetch, (entry_id, on_active_path)) in fetches.iter().zip(ids) {
            let text = draft(&reader.entry(fetch)?).text;
            if !text.is_empty() {
                left = left
                    .checked_sub(text.len() + entry_id.len())
                    .ok_or_else(|| too_large(limit))?;
                messages.push(wire::ForkMessage {
                    entry_id,
                    text,
                    on_active_path,
                });
            }
        }
        Ok(wire::GetForkMessagesResult { messages })
    }))
}

fn too_large(limit: usize) -> Error {
    Error::new(
        Kind::ResponseTooLarge,
        format!(
            "the user messages have more than the {limit} bytes the client takes: \
             read them in pages with get_tree and its filter user-only"
        ),
    )
}

pub(in crate::rpc) async fn fork_session(
    place: ForkPlace,
    params: wire::ForkSessionParams,
) -> Result<wire::ForkSessionResult> {
    let scope = params.scope.unwrap_or_default();
    check_scope(&params, scope)?;
    // A fork of the whole tree keeps the leaf of the source and its calls without results.
    let is_whole = scope == wire::ForkScope::Tree;
    let options = ForkOptions {
        is_whole,
        entry_id: params.entry_id,
        position: match params.position {
            _ if is_whole => Some(ForkSide::At),
            Some(wire::ForkPosition::At) => Some(ForkSide::At),
            Some(wire::ForkPosition::Before) => Some(ForkSide::Before),
            None => None,
        },
        closes_calls: is_whole || params.close_tool_calls.unwrap_or_default(),
        cwd: params.cwd,
        id: choose_id(params.new_session_id.as_deref())?,
        is_id_chosen: params.new_session_id.is_some(),
        name: params.name.as_deref().and_then(name::given),
    };
    options.run(place).await
}

/// Fails with −32602 if a param applies only to a fork of one branch.
fn check_scope(params: &wire::ForkSessionParams, scope: wire::ForkScope) -> Result<()> {
    if scope == wire::ForkScope::Branch {
        return Ok(());
    }
    let given = [
        ("entryId", params.entry_id.is_some()),
        ("position", params.position.is_some()),
        ("closeToolCalls", params.close_tool_calls.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(Error::invalid_params(
            *field,
            "goes with scope \"branch\" only; leave it out to copy the whole tree",
        )),
        None => Ok(()),
    }
}
