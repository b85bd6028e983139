//! The client's agent turns, and messages from plugins: `begin_turn`, `end_turn`, `send_message`
//! (semantics.md §5).

use super::reply::Reply;
use crate::daemon::agent_turn::{end, flush, request_turn};
use crate::daemon::call::Call;
use crate::daemon::commit::Change;
use crate::error::{Error, Kind, Result};
use crate::flow::append::NewEntry;
use crate::session::Activity;
use crate::wire::{self, Disposition, Mutation};
use std::sync::Arc;

pub(super) async fn begin_turn(call: Arc<Call>, params: wire::BeginTurnParams) -> Result<Reply> {
    let (open, _turn) = call.fresh(&params).await?;
    let busy = open.session.begin(Activity::AgentTurn)?;
    open.client_turn().running = Some(busy);
    Reply::of(&wire::BeginTurnResult {})
}

pub(super) async fn end_turn(call: Arc<Call>, params: wire::EndTurnParams) -> Result<Reply> {
    let id = params.session_id.as_deref();
    let (open, turn) = call.turn(id).await?;
    end(Change::new(&call, open, turn)).await?;
    Reply::of(&wire::EndTurnResult {})
}

pub(super) async fn send_message(
    call: Arc<Call>,
    params: wire::SendMessageParams,
) -> Result<Reply> {
    let details = params.details.as_ref().map(|raw| raw.get().as_bytes());
    let entry = NewEntry::custom_message(
        &params.custom_type,
        params.content.get().as_bytes(),
        params.display,
        details,
    )?
    .with_id(params.entry_id.as_deref(), "entryId")?;
    let (open, turn) = call.mutable(&params).await?;
    let known = params.entry_id.as_deref();
    let is_retry = known.is_some_and(|id| turn.tree.find_any(id).is_some());
    if open.is_in_turn() && !is_retry {
        turn.check_expected_leaf(params.expected_leaf())?;
        open.client_turn().enqueue(entry)?;
        return Reply::of(&wire::SendMessageResult {
            disposition: Disposition::Queued,
            entry_id: params.entry_id,
            durability: wire::Durability::None,
        });
    }
    let triggers_turn = params.trigger_turn.unwrap_or_default();
    let requests_turn = triggers_turn && !open.is_in_turn() && !is_retry;
    let before = match open.is_in_turn() {
        true => Vec::new(),
        false => open.client_turn().take(&turn),
    };
    let expected = params.expected_leaf().clone();
    let change = Change::new(&call, Arc::clone(&open), turn);
    let appended = flush(change, before, Some(entry), expected).await?;
    let entry_id = appended.entry_ids.last().cloned();
    let entry_id =
        entry_id.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))?;
    if requests_turn {
        request_turn(&call.daemon, &open, &entry_id);
    }
    Reply::of(&wire::SendMessageResult {
        disposition: match requests_turn {
            true => Disposition::TurnRequested,
            false => Disposition::Appended,
        },
        entry_id: Some(entry_id),
        durability: appended.durability,
    })
}
