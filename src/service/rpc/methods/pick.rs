//! `cherry_pick` (semantics.md §5). [`treelined_core::flow::pick`] decides which entries may be copied, and how.

use crate::daemon::commit::ChangePlace;
use crate::daemon::other_session::OtherSession;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::pick::{self, PickedMessage};
use treelined_files::session::SessionState;
use treelined_wire as wire;

pub(in crate::rpc) async fn cherry_pick(
    place: ChangePlace,
    params: wire::CherryPickParams,
) -> Result<wire::CherryPickResult> {
    let call = place.call();
    let other = match &params.from_session_id {
        Some(id) => Some(OtherSession::read(&call.daemon, id, &call.cancel).await?),
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
        // A repetition has already moved the leaf.
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
