//! `answer_event`: answers to before events (protocol.md §5). Never waits.

use crate::ask::{Answerer, Digest};
use crate::daemon::call::Call;
use crate::daemon::question::{self, ReceivedAnswer};
use crate::error::Result;
use crate::wire::{self, EventReply};
use std::sync::Arc;
use std::time::Duration;

pub(in crate::rpc) fn answer_event(
    call: &Arc<Call>,
    params: wire::AnswerEventParams,
) -> Result<wire::AnswerEventResult> {
    let asks = &call.daemon.asks;
    let by = Answerer::Client(call.connection.id);
    let digest = Digest::of(&params.result);
    let (event_id, reply) = params.reply()?;
    let timeout_ms = match reply {
        EventReply::Answer(answer) => {
            question::check_stored(&answer, "result.")?;
            let given = ReceivedAnswer {
                answer: *answer,
                is_failure: false,
            };
            asks.answer(&event_id, by, digest, given)?;
            None
        }
        EventReply::Extend(time) => {
            let left = asks.extend(&event_id, by, Duration::from_millis(time))?;
            Some(left.as_millis() as u64)
        }
    };
    Ok(wire::AnswerEventResult {
        accepted: true,
        timeout_ms,
    })
}
