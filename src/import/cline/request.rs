//! The requests to the model that the messages on the screen report.

use crate::member::Place;
use crate::value::{Usage, Value, count, number};
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// A message on the screen that began a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) place: Place,
    pub(super) time: Option<Millis>,
    /// The index of the last message of the conversation before the request. The next message is the question of the
    /// request, and the message after it is the answer.
    pub(super) index: Option<i64>,
    /// Whether the tokens are known.
    pub(super) is_done: bool,
}

impl Request {
    pub(super) fn of(
        place: Place,
        time: Option<Millis>,
        index: Option<&[u8]>,
        said: Option<&[u8]>,
    ) -> Self {
        let index = index.and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
        let is_done = said.is_some_and(|said| memchr::memmem::find(said, b"tokensIn").is_some());
        Self {
            place,
            time,
            index,
            is_done,
        }
    }
}

/// The request of each answer. `answers` has the index and the time of each answer, in order.
pub(super) fn of_answers(
    requests: &[Request],
    answers: &[(usize, Option<Millis>)],
) -> Vec<Option<Request>> {
    if answers.iter().any(|(_, time)| time.is_some()) {
        return by_time(requests, answers);
    }
    if !requests.is_empty() && requests.iter().all(|request| request.index.is_some()) {
        return by_index(requests, answers);
    }
    match requests.len() == answers.len() {
        true => requests.iter().copied().map(Some).collect(),
        false => vec![None; answers.len()],
    }
}

/// For each answer, the last request between the previous answer and this answer.
fn by_time(requests: &[Request], answers: &[(usize, Option<Millis>)]) -> Vec<Option<Request>> {
    let mut rest = requests.iter().peekable();
    let found = answers.iter().map(|(_, time)| {
        let mut last = None;
        while let Some(next) = rest.next_if(|next| next.time.is_some() && next.time <= *time) {
            last = Some(*next);
        }
        last
    });
    found.collect()
}

/// For each answer, the last request whose answer has this index. A repeated request has the same index.
fn by_index(requests: &[Request], answers: &[(usize, Option<Millis>)]) -> Vec<Option<Request>> {
    let mut sorted: Vec<&Request> = requests.iter().collect();
    sorted.sort_by_key(|request| request.index);
    let found = answers.iter().map(|(answer, _)| {
        let wanted = i64::try_from(*answer).ok()? - 2;
        let end = sorted.partition_point(|request| request.index <= Some(wanted));
        let last = sorted.get(end.checked_sub(1)?)?;
        (last.index == Some(wanted)).then_some(**last)
    });
    found.collect()
}

/// The tokens and the cost of an answer. They are in the answer itself or in its request.
pub(super) fn usage(message: &[u8], ui: Option<&[u8]>) -> Usage {
    let metrics = json::get(message, "metrics");
    if let Some(tokens) = metrics.and_then(|metrics| json::get(metrics, "tokens")) {
        let [prompt, output, cached] = json::get_each(tokens, ["prompt", "completion", "cached"])
            .map(|raw| count(raw).unwrap_or(0));
        return Usage {
            input: prompt.saturating_sub(cached),
            output,
            cache_read: cached,
            cost: number(metrics.and_then(|metrics| json::get(metrics, "cost"))),
            ..Usage::default()
        };
    }
    if let Some(metrics) = metrics {
        let names = [
            "inputTokens",
            "outputTokens",
            "cacheReadTokens",
            "cacheWriteTokens",
        ];
        let [input, output, cache_read, cache_write] =
            json::get_each(metrics, names).map(|raw| count(raw).unwrap_or(0));
        return Usage {
            input: input.saturating_sub(cache_read).saturating_sub(cache_write),
            output,
            cache_read,
            cache_write,
            cost: number(json::get(metrics, "cost")),
            ..Usage::default()
        };
    }
    let said = ui.and_then(|ui| json::get_path(ui, &["ui", "text"]));
    let Some(request) = said.and_then(|said| Value::of_literal(said, &[])) else {
        return Usage::default();
    };
    let [input, output, read, write, cost] =
        request.each(["tokensIn", "tokensOut", "cacheReads", "cacheWrites", "cost"]);
    let [input, output, cache_read, cache_write] =
        [input, output, read, write].map(|raw| count(raw).unwrap_or(0));
    Usage {
        input,
        output,
        cache_read,
        cache_write,
        cost: number(cost),
        ..Usage::default()
    }
}
