//! The turns of a client's agent, and messages from plugins: `begin_turn`, `end_turn`, `send_message` (semantics.md
//! §5).

use crate::daemon::agent_turn::{end, end_branch, flush};
use crate::daemon::client_turn::check_expected;
use crate::daemon::commit::ChangePlace;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::NewEntry;
use treelined_core::id::{self, EntryId, ExpectedLeaf};
pub(crate) use treelined_files::session::Activity;
use treelined_wire::{self as wire, Disposition, Mutation};

pub(in crate::rpc) async fn begin_turn(
    place: ChangePlace,
    params: wire::BeginTurnParams,
) -> Result<wire::BeginTurnResult> {
    let by = place.connection();
    let change = place.reached().await?.caught_up().await?;
    let turn_id = id::random_token(&*change.daemon.source);
    match params.entry_id {
        Some(entry_id) => {
            let entry = change.guard.find(&entry_id)?;
            let entry_id = EntryId::new(change.guard.tree.id(entry));
            let mut turns = change.open.client_turn();
            turns.begin_branch(by, turn_id.clone(), entry_id)?;
        }
        None => {
            let busy = change.open.session.begin(Activity::AgentTurn)?;
            let mut turns = change.open.client_turn();
            turns.begin(by, turn_id.clone(), busy);
        }
    }
    Ok(wire::BeginTurnResult { turn_id })
}

pub(in crate::rpc) async fn end_turn(
    place: ChangePlace,
    params: wire::EndTurnParams,
) -> Result<wire::EndTurnResult> {
    let by = place.connection();
    let change = place.reached().await?;
    if let Some(turn_id) = params.turn_id
        && !change.open.client_turn().is_sessions(&turn_id)
    {
        change.open.client_turn().check_own_branch(&turn_id, by)?;
        end_branch(change, &turn_id).await?;
        return Ok(wire::EndTurnResult {});
    }
    if change.open.is_in_turn() && !change.open.client_turn().is_sessions_of(by) {
        // This fails, since the running turn belongs to another client.
        change.open.session.check_not_in_turn()?;
    }
    end(change).await?;
    Ok(wire::EndTurnResult {})
}

pub(in crate::rpc) async fn send_message(
    place: ChangePlace,
    params: wire::SendMessageParams,
) -> Result<wire::SendMessageResult> {
    let details = params.details.as_ref().map(|raw| raw.get().as_bytes());
    let entry = NewEntry::custom_message(
        &params.custom_type,
        params.content.get().as_bytes(),
        params.display,
        details,
    )?
    .with_id(params.entry_id.as_deref(), "entryId")?;
    let change = place.writable().await?;
    let (daemon, open) = (Arc::clone(&change.daemon), Arc::clone(&change.open));
    let known = params.entry_id.as_deref();
    let known = known.and_then(|id| change.guard.tree.find_any(id));
    let is_retry = known.is_some();
    if params.turn_id.is_some() && known.is_some_and(|node| change.guard.tree.is_background(node)) {
        // The turn of a branch has already written the message. The turn itself may have ended.
        let entry = entry.in_background(0, None)?;
        let repeated = flush(change, Vec::new(), Some(entry), ExpectedLeaf::Any).await?;
        return Ok(wire::SendMessageResult {
            disposition: Disposition::Appended,
            entry_id: params.entry_id,
            durability: repeated.durability,
        });
    }
    let turn_id = params.turn_id.as_deref();
    let turn_id = turn_id.filter(|id| !open.client_turn().is_sessions(id));
    if (open.is_in_turn() || turn_id.is_some()) && !is_retry {
        let mut turns = open.client_turn();
        check_expected(&turns, turn_id, &change.guard, params.expected_leaf())?;
        turns.enqueue(turn_id, entry)?;
        drop(turns);
        return Ok(wire::SendMessageResult {
            disposition: Disposition::Queued,
            entry_id: params.entry_id,
            durability: Durability::None,
        });
    }
    let triggers_turn = params.trigger_turn.unwrap_or_default();
    let requests_turn = triggers_turn && !open.is_in_turn() && !is_retry;
    let before = match open.is_in_turn() {
        true => Vec::new(),
        false => open.client_turn().take(&change.guard),
    };
    let expected = params.expected_leaf().clone();
    let appended = flush(change, before, Some(entry), expected).await?;
    let entry_id = appended.entry_ids.last().cloned();
    let entry_id =
        entry_id.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))?;
    if requests_turn {
        daemon.notifier.request_turn(&open, &entry_id);
    }
    Ok(wire::SendMessageResult {
        disposition: match requests_turn {
            true => Disposition::TurnRequested,
            false => Disposition::Appended,
        },
        entry_id: Some(entry_id),
        durability: appended.durability,
    })
}
