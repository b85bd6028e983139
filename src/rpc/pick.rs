//! `cherry_pick` (semantics.md §5). What may be copied, and how, is [`crate::flow::pick`]'s.

use super::reply::Reply;
use crate::daemon::call::Call;
use crate::daemon::commit::Change;
use crate::daemon::convert;
use crate::error::{Error, Kind, Result};
use crate::flow::pick::{self, Picked};
use crate::session::SessionState;
use crate::wire;
use std::sync::Arc;

pub(super) async fn cherry_pick(call: Arc<Call>, params: wire::CherryPickParams) -> Result<Reply> {
    let (open, turn) = call.mutable(&params).await?;
    let (source, expected) = (
        Arc::clone(&call.daemon.source),
        params.expected_leaf_id.clone(),
    );
    let plan = move |core: &SessionState| {
        core.check_expected_leaf(&expected)?;
        let read = |id: String| {
            let entry = core.entry(core.find(&id)?)?;
            Ok(Picked { id, entry })
        };
        let picked = params.entry_ids.into_iter().map(read);
        pick::plan(&core.tree, &*source, &picked.collect::<Result<Vec<_>>>()?)
    };
    let change = Change::new(&call, Arc::clone(&open), turn);
    let entry_ids = change.commit(plan, |_, _| {}).await?.entry_ids;
    let last = entry_ids.last().cloned();
    Reply::of(&wire::CherryPickResult {
        leaf_id: last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))?,
        entry_ids,
        durability: convert::durability(open.session.syncer.durability()),
    })
}
