//! `continue_session` and `continuation_started` (protocol.md §3.18).

use crate::daemon::commit::ChangePlace;
use crate::daemon::continuation;
use crate::daemon::release::Release;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Result};
use treelined_core::flow::PlannedLines;
use treelined_core::flow::leaf;
use treelined_core::json;
use treelined_files::session::SessionState;
use treelined_wire as wire;

/// The longest id of an agent's session, in bytes.
const MAX_NATIVE_ID: usize = 256;

pub(in crate::rpc) async fn continue_session(
    release: Release,
    params: wire::ContinueSessionParams,
) -> Result<wire::ContinueSessionResult> {
    continuation::run(release, params).await
}

pub(in crate::rpc) async fn continuation_started(
    place: ChangePlace,
    params: wire::ContinuationStartedParams,
) -> Result<wire::ContinuationStartedResult> {
    let is_short = (1..=MAX_NATIVE_ID).contains(&params.native_id.len());
    if !is_short || params.native_id.contains(char::is_control) {
        return Err(Error::invalid_params(
            "nativeId",
            "is not the id of a session",
        ));
    }
    let change = place.writable().await?;
    let source = Arc::clone(&change.daemon.source);
    let plan = move |state: &SessionState| {
        let Some(known) = continuation(state, &params.continuation_id)? else {
            let reason = "names no continuation of the session";
            return Err(Error::invalid_params("continuationId", reason));
        };
        let native = json::get(&known, "nativeId").and_then(json::string);
        if native.as_deref() == Some(&params.native_id) {
            return Ok(PlannedLines::default());
        }
        let named = json::with_member(&known, "nativeId", &json::quoted(&params.native_id));
        Ok(leaf::plan_continuation(&state.tree, &*source, &named))
    };
    let changed = change.commit(plan, |_, written| written).await?;
    Ok(wire::ContinuationStartedResult {
        durability: changed.seen.unwrap_or(Durability::None),
    })
}

/// The latest record of this continuation, as raw JSON of an object.
fn continuation(state: &SessionState, id: &str) -> Result<Option<Vec<u8>>> {
    let nodes = (0..state.tree.node_count()).rev();
    let nodes = nodes.filter_map(|number| state.tree.node(number));
    for node in nodes.filter(|node| state.tree.kind(*node) == EntryKind::LeafRecord) {
        let record = state.bodies().read(state.tree.place(node))?;
        let Some(found) = json::get_path(&record, &["data", "continuation"]) else {
            continue;
        };
        let text = |name: &str| json::get(found, name).and_then(json::string);
        if text("id").as_deref() == Some(id)
            && text("sessionId").as_deref() == state.log.header().map(|header| &*header.id)
        {
            return Ok(Some(found.to_vec()));
        }
    }
    Ok(None)
}
