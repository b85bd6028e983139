//! `answer_event`: answers to before events, commands and questions to a person (protocol.md §5, §12, §13). It never
//! waits.

use crate::ask::{self, Answerer, Digest};
use crate::daemon::received_answer::{ReceivedAnswer, check_stored};
use crate::rpc::caller::Caller;
use std::time::Duration;
use treelined_core::error::{Error, Result};
use treelined_core::id::EventId;
use treelined_wire::{self as wire, EventReply};

pub(in crate::rpc) fn answer_event(
    caller: &Caller<'_>,
    params: wire::AnswerEventParams,
) -> Result<wire::AnswerEventResult> {
    let (event_id, reply) = params.reply()?;
    let left = match caller.daemon().questions.peers.knows(&event_id) {
        true => answer_peer(caller, &event_id, reply)?,
        false => answer_before_event(caller, &event_id, reply)?,
    };
    Ok(wire::AnswerEventResult {
        accepted: true,
        timeout_ms: left.map(|left| left.as_millis() as u64),
    })
}

/// Answers a question of another connection. Returns the remaining time if the reply extends the time.
fn answer_peer(caller: &Caller<'_>, event_id: &str, reply: EventReply) -> Result<Option<Duration>> {
    let (peers, by) = (&caller.daemon().questions.peers, caller.connection().id);
    match reply {
        EventReply::Extend(more) => {
            let left = peers.extend(event_id, by, Duration::from_millis(more))?;
            Ok(Some(left))
        }
        reply => peers.answer(event_id, by, reply).map(|()| None),
    }
}

/// Like [`answer_peer`], for a before event.
fn answer_before_event(
    caller: &Caller<'_>,
    event_id: &str,
    reply: EventReply,
) -> Result<Option<Duration>> {
    let asks = &caller.daemon().questions.asks;
    let by = Answerer::Client(caller.connection().id);
    match reply {
        EventReply::Answer(answer) => {
            check_stored(&answer, "result.")?;
            let digest = Digest::of(&answer);
            let given = ReceivedAnswer {
                answer: *answer,
                is_failure: false,
            };
            asks.answer(event_id, by, digest, given)?;
            Ok(None)
        }
        EventReply::Failure(_) if asks.knows(event_id) => Err(Error::invalid_params(
            "error",
            "answers command_invoked only",
        )),
        EventReply::Failure(_) => Err(ask::not_pending(&EventId::new(event_id))),
        EventReply::Extend(more) => {
            let left = asks.extend(event_id, by, Duration::from_millis(more))?;
            Ok(Some(left))
        }
    }
}
