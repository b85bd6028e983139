//! Before events: putting a question to everyone, and what the answers come to (protocol.md §5).
//!
//! Any cancel wins, then the first summary; of the overrides the first of each counts.

use super::server::{OpenSession, Server};
use super::{events, notify};
use crate::ask::{Answerer, Digest, Outcome};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::hooks::Hook;
use crate::id::{self, EventId};
use crate::program;
use crate::wire::{self, BeforeEvent, EventOutcome, notification};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long an answer is waited for unless the caller says otherwise.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A question about to be put.
pub(super) struct Asking<'a> {
    pub server: &'a Arc<Server>,
    pub open: &'a OpenSession,
    pub event: BeforeEvent,
    pub navigation_id: Option<&'a str>,
    pub timeout: Duration,
    pub abort: &'a Cancel,
    /// A summary in an answer counts.
    pub takes_summary: bool,
}

/// What every before event says of itself.
#[derive(Clone)]
pub(super) struct Put {
    pub session_id: String,
    pub seq: u64,
    pub event_id: String,
    /// 0 for those who are not waited for.
    pub timeout_ms: u64,
}

/// What the answers come to.
#[derive(Debug, Default)]
pub(super) struct Decision {
    pub cancelled: bool,
    /// Somebody did not answer in time, and nobody's answer decided.
    pub is_silent: bool,
    pub summary: Option<wire::GivenSummary>,
    pub compaction: Option<wire::GivenCompaction>,
    pub custom_instructions: Option<String>,
    pub replace_instructions: Option<bool>,
    pub label: Option<String>,
}

impl Server {
    /// Who is waited for when this is about to happen.
    pub fn answerers(&self, event: BeforeEvent) -> Vec<Answerer> {
        let client = self.client().is_some_and(|client| match event {
            BeforeEvent::SessionBeforeTree => client.answers.session_before_tree,
            BeforeEvent::SessionBeforeFork => client.answers.session_before_fork,
            BeforeEvent::SessionBeforeCompact => client.answers.session_before_compact,
        });
        let hooks = self.hooks.listening(event.name()).into_iter();
        let client = client.then_some(Answerer::Client).into_iter();
        client.chain(hooks.map(Answerer::Hook)).collect()
    }

    fn answerer_name(&self, answerer: Answerer) -> Option<String> {
        match answerer {
            Answerer::Client => self.client().and_then(|client| client.name.clone()),
            Answerer::Hook(number) => {
                let hook = self.hooks.hook(number)?;
                Some(hook.program.name().to_owned())
            }
        }
    }
}

/// Tells everyone, waits for those who answer, and tells how it ended. Fails with `cancelled` if what
/// was asked about is aborted meanwhile.
pub(super) async fn put<P: Serialize>(
    asking: Asking<'_>,
    params: impl Fn(Put) -> P,
) -> Result<Decision> {
    let server = asking.server;
    let event_id = EventId::new(id::random_token(&*server.source));
    let answerers = server.answerers(asking.event);
    let timeout = asking.timeout.min(super::server::MAX_ANSWER);
    let is_asked = answerers.contains(&Answerer::Client);
    let hooks: Vec<usize> = answerers.iter().filter_map(Answerer::hook).collect();
    // Recorded before it is sent: the answer may be there at once.
    let question = (!answerers.is_empty()).then(|| {
        let asks = &server.asks;
        asks.ask(event_id.clone(), answerers, timeout, asking.abort)
    });
    let said = |seq: u64, timeout_ms: u64| Put {
        session_id: asking.open.id.to_string(),
        seq,
        event_id: event_id.as_str().to_owned(),
        timeout_ms,
    };
    let waited_ms = timeout.as_millis() as u64;
    server.notify(asking.open, asking.event.name(), |seq| {
        params(said(seq, if is_asked { waited_ms } else { 0 }))
    });
    let Some(question) = question else {
        return Ok(Decision::default());
    };
    // A reader that waits for the client to read goes on: the answer has to get in.
    server.outbox.wake();
    let mut running = JoinSet::new();
    for number in hooks {
        let Some(hook) = server.hooks.hook(number).cloned() else {
            continue;
        };
        let waited = hook.program.timeout.min(timeout);
        let params = params(said(asking.open.seq(), waited.as_millis() as u64));
        let message = notify::message(asking.event.name(), &params).unwrap_or_default();
        let (server, event_id) = (Arc::clone(server), event_id.clone());
        running.spawn(async move {
            let (asks, by) = (&server.asks, Answerer::Hook(number));
            match answer_of(&hook, &message).await {
                // Too late is late: the question is over.
                Some(answer) => {
                    let digest = Digest::of(&answer);
                    let _late = asks.answer(event_id.as_str(), by, digest, answer);
                }
                None => asks.keeps_silent(event_id.as_str(), by),
            }
        });
    }
    let (outcome, by, decided) = match server.asks.outcome(question).await {
        Outcome::Aborted => (EventOutcome::Aborted, None, Err(Error::cancelled())),
        Outcome::Settled { answers, in_time } => {
            let (outcome, by, decision) = decide(answers, in_time, asking.takes());
            (outcome, by, Ok(decision))
        }
    };
    let by = by.and_then(|by| server.answerer_name(by));
    server.notify(asking.open, "event_resolved", |seq| {
        notification::EventResolved {
            session_id: asking.open.id.to_string(),
            seq,
            event_id: event_id.as_str().to_owned(),
            event: asking.event,
            navigation_id: asking.navigation_id.map(str::to_owned),
            outcome,
            by,
        }
    });
    decided
}

/// What a hook says: an object as in `answer_event`, or nothing; `None` if its time passed. One that
/// fails otherwise has no opinion, as a client that has gone.
async fn answer_of(hook: &Hook, message: &[u8]) -> Option<wire::EventAnswer> {
    let hook_name = hook.program.name();
    let output = match hook.run(message).await {
        Ok(output) => output,
        Err(failure) => {
            tracing::warn!(hook = hook_name, "a hook failed: {failure}");
            let is_silent = matches!(failure, program::Failure::TimedOut(_));
            return (!is_silent).then(wire::EventAnswer::default);
        }
    };
    if let b"" | b"null" | b"[]" = output.trim_ascii() {
        return Some(wire::EventAnswer::default());
    }
    let answer: serde_json::Result<wire::EventAnswer> = serde_json::from_slice(&output);
    let answer = answer.unwrap_or_else(|error| {
        let at = (error.line(), error.column());
        tracing::warn!(hook = hook_name, ?at, "a hook's answer is not one");
        wire::EventAnswer::default()
    });
    if let Err(error) = events::check_nesting(&answer, "") {
        tracing::warn!(hook = hook_name, %error, "a hook's answer is refused");
        return Some(wire::EventAnswer::default());
    }
    Some(answer)
}

/// What an answer can bring besides an opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Summary,
    Compaction,
    Nothing,
}

impl Asking<'_> {
    fn takes(&self) -> Takes {
        match self.event {
            BeforeEvent::SessionBeforeTree if self.takes_summary => Takes::Summary,
            BeforeEvent::SessionBeforeCompact if self.takes_summary => Takes::Compaction,
            _ => Takes::Nothing,
        }
    }
}

/// The outcome, whose answer it came to, and the decision.
fn decide(
    answers: Vec<(Answerer, wire::EventAnswer)>,
    in_time: bool,
    takes: Takes,
) -> (EventOutcome, Option<Answerer>, Decision) {
    let mut decision = Decision::default();
    let (mut canceller, mut author) = (None, None);
    let last = answers.last().map(|(by, _)| *by);
    for (by, answer) in answers {
        if answer.cancel == Some(true) {
            canceller = canceller.or(Some(by));
        }
        let gives = match takes {
            Takes::Summary => answer.summary.is_some(),
            Takes::Compaction => answer.compaction.is_some(),
            Takes::Nothing => false,
        };
        if author.is_none() && gives {
            author = Some(by);
            decision.summary = answer.summary;
            decision.compaction = answer.compaction;
        }
        let instructions = &mut decision.custom_instructions;
        *instructions = instructions.take().or(answer.custom_instructions);
        let replace = &mut decision.replace_instructions;
        *replace = replace.or(answer.replace_instructions);
        decision.label = decision.label.take().or(answer.label);
    }
    decision.cancelled = canceller.is_some();
    decision.is_silent = !in_time && canceller.is_none() && author.is_none();
    let (outcome, by) = match (canceller, author) {
        (Some(by), _) => (EventOutcome::Cancelled, Some(by)),
        (None, Some(by)) => (EventOutcome::Summary, Some(by)),
        (None, None) if !in_time => (EventOutcome::Timeout, None),
        (None, None) => (EventOutcome::Proceed, last),
    };
    (outcome, by, decision)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Answerer = Answerer::Client;
    const HOOK: Answerer = Answerer::Hook(0);

    fn answer(json: &str) -> wire::EventAnswer {
        serde_json::from_str(json).unwrap()
    }

    #[track_caller]
    fn check(
        answers: &[(Answerer, &str)],
        in_time: bool,
        expect: (EventOutcome, Option<Answerer>),
    ) -> Decision {
        let answers = answers.iter().map(|(by, json)| (*by, answer(json)));
        let (outcome, by, decision) = decide(answers.collect(), in_time, Takes::Summary);
        assert_eq!((outcome, by), expect);
        decision
    }

    #[test]
    fn any_cancel_wins_over_a_summary_that_came_before() {
        let answers = [
            (CLIENT, r#"{"summary":{"summary":"S"}}"#),
            (HOOK, r#"{"cancel":true}"#),
        ];
        let decision = check(&answers, true, (EventOutcome::Cancelled, Some(HOOK)));
        assert!(decision.cancelled);
    }

    #[test]
    fn the_first_summary_counts_and_overrides_apply_field_by_field() {
        let answers = [
            (HOOK, r#"{"label":"l1","cancel":false}"#),
            (
                CLIENT,
                r#"{"summary":{"summary":"S1"},"label":"l2","customInstructions":"i"}"#,
            ),
            (
                Answerer::Hook(1),
                r#"{"summary":{"summary":"S2"},"replaceInstructions":true}"#,
            ),
        ];
        let decision = check(&answers, true, (EventOutcome::Summary, Some(CLIENT)));
        assert_eq!(decision.summary.unwrap().summary, "S1");
        assert_eq!(decision.label.as_deref(), Some("l1"));
        assert_eq!(decision.custom_instructions.as_deref(), Some("i"));
        assert_eq!(decision.replace_instructions, Some(true));
    }

    #[test]
    fn what_belongs_to_another_event_does_not_count() {
        let answers = [(CLIENT, r#"{"compaction":{"summary":"S"}}"#)];
        let decision = check(&answers, true, (EventOutcome::Proceed, Some(CLIENT)));
        assert!(decision.compaction.is_none());
    }

    #[test]
    fn at_the_deadline_a_summary_counts_and_silence_is_silence() {
        let given = [(HOOK, r#"{"summary":{"summary":"S"}}"#)];
        assert!(!check(&given, false, (EventOutcome::Summary, Some(HOOK))).is_silent);
        let override_only = [(HOOK, r#"{"label":"l"}"#)];
        let decision = check(&override_only, false, (EventOutcome::Timeout, None));
        assert!(decision.is_silent);
        assert_eq!(decision.label.as_deref(), Some("l"));
        assert!(!check(&[(HOOK, "{}")], true, (EventOutcome::Proceed, Some(HOOK))).is_silent);
    }
}
