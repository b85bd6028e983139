//! `answer_event`: answers to before events (protocol.md §5). Waits for nothing.

use super::method::Reply;
use super::question::Given;
use super::server::Call;
use crate::ask::Answerer;
use crate::error::Result;
use crate::wire::{self, EventReply};
use std::sync::Arc;
use std::time::Duration;

pub async fn answer_event(call: Arc<Call>, params: wire::AnswerEventParams) -> Result<Reply> {
    let asks = &call.server.asks;
    // What makes two answers the same.
    let spelled = format!("{:?}", params.result);
    let (event_id, reply) = params.reply()?;
    let timeout_ms = match reply {
        EventReply::Answer(answer) => {
            let given = Given {
                answer: *answer,
                is_failure: false,
            };
            asks.answer(&event_id, Answerer::Client, &spelled, given)?;
            None
        }
        EventReply::Extend(by) => {
            let left = asks.extend(&event_id, Duration::from_millis(by))?;
            Some(left.as_millis() as u64)
        }
    };
    Reply::of(&wire::AnswerEventResult {
        accepted: true,
        timeout_ms,
    })
}
