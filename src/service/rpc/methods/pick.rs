//! `cherry_pick` (semantics.md §5). [`treelined_core::flow::pick`] decides which entries may be copied, and how.

use crate::daemon::commit::ChangePlace;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::pick::{self, PickedMessage};
use treelined_files::session::SessionState;
use treelined_wire as wire;

pub(in crate::rpc) async fn cherry_pick(
    place: ChangePlace,
    params: wire::CherryPickParams,
) -> Result<wire::CherryPickResult> {
    let change = place.writable().await?;
    let (source, expected) = (Arc::clone(&change.daemon.source), params.expected_leaf_id);
    let plan = move |state: &SessionState| {
        state.check_expected_leaf(&expected)?;
        let read = |id: &String| {
            let entry = state.entry(state.find(id)?)?;
            let id = id.clone();
            Ok(PickedMessage { id, entry })
        };
        let picked = params.entry_ids.iter().map(read);
        pick::plan(&state.tree, &*source, &picked.collect::<Result<Vec<_>>>()?)
    };
    let changed = change.commit(plan, |_, _| {}).await?;
    let last = changed.entry_ids.last().cloned();
    Ok(wire::CherryPickResult {
        leaf_id: last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))?,
        entry_ids: changed.entry_ids,
        durability: changed.durability,
    })
}
