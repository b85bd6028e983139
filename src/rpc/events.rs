//! `answer_event`: answers to before events (protocol.md §5). Waits for nothing.

use super::method::Reply;
use super::question::Given;
use super::server::Call;
use crate::ask::{Answerer, Digest};
use crate::error::Result;
use crate::flow::validate;
use crate::wire::{self, EventReply};
use std::sync::Arc;
use std::time::Duration;

pub async fn answer_event(call: Arc<Call>, params: wire::AnswerEventParams) -> Result<Reply> {
    let asks = &call.server.asks;
    let digest = Digest::of(&params.result);
    let (event_id, reply) = params.reply()?;
    let timeout_ms = match reply {
        EventReply::Answer(answer) => {
            check_nesting(&answer, "result.")?;
            let given = Given {
                answer: *answer,
                is_failure: false,
            };
            asks.answer(&event_id, Answerer::Client, digest, given)?;
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

/// Refuses an answer that brings what could not be read back from an entry.
pub(super) fn check_nesting(answer: &wire::EventAnswer, path: &str) -> Result<()> {
    let summary = answer.summary.as_ref();
    let compaction = answer.compaction.as_ref();
    let details = [
        ("summary", summary.and_then(|given| given.details.as_ref())),
        (
            "compaction",
            compaction.and_then(|given| given.details.as_ref()),
        ),
    ];
    for (member, details) in details {
        if let Some(details) = details {
            let field = format!("{path}{member}.details");
            validate::nesting(0, &field, details.get().as_bytes())?;
        }
    }
    Ok(())
}
