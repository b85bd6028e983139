//! `answer_event`: answers to before events (protocol.md §5). Waits for nothing.

use super::question::Given;
use super::reply::Reply;
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
            check_stored(&answer, "result.")?;
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

/// Refuses an answer whose members could not stand in an entry: nested too deeply, or of another shape.
pub(super) fn check_stored(answer: &wire::EventAnswer, path: &str) -> Result<()> {
    let raw = |raw: &Option<wire::Raw>| raw.as_ref().map(|raw| raw.get().as_bytes().to_vec());
    let summary = answer.summary.as_ref();
    let summary = summary.map(|given| ("summary", raw(&given.details), raw(&given.usage)));
    let compaction = answer.compaction.as_ref();
    let compaction = compaction.map(|given| ("compaction", raw(&given.details), raw(&given.usage)));
    for (member, details, usage) in summary.into_iter().chain(compaction) {
        let path = format!("{path}{member}");
        validate::summary(&path, details.as_deref(), usage.as_deref())?;
    }
    Ok(())
}
