//! Before events: asks clients and hooks whether an operation may happen, and combines their answers
//! (protocol.md §5).
//!
//! A cancel in any answer wins. Otherwise the first summary counts, and the first override of each option. If a hook
//! fails or times out, its `on_failure` is its answer. [`super::extension`] has the same rule for extensions.

use super::convert::message::message;
use super::hook_answer::{Failure, failed, read_answer};
use super::open_session::OpenSession;
use super::questions::Questions;
use super::received_answer::ReceivedAnswer;
use crate::ask::{Answerer, Asking, Digest, MAX_ANSWER, Question, QuestionOutcome};
use crate::hooks::{Hook, OnFailure};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use treelined_core::error::{Error, Result};
use treelined_core::id::{self, ConnectionId, EventId};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::os::program;
use treelined_wire::methods::Notification;
use treelined_wire::{
    self as wire, BeforeEvent, CancelReason, EventOutcome, OnNoAnswer, notification,
};

/// The failure of a client whose connection ends while it is asked.
const CONNECTION_ENDED: &str = "its connection ended while it was asked";

/// How long a question waits for answers if the caller chooses no time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A question to clients and hooks.
pub(crate) struct EventQuestion<'a> {
    pub questions: &'a Arc<Questions>,
    pub open: &'a OpenSession,
    /// The connection whose request asks.
    pub asker: ConnectionId,
    pub event: BeforeEvent,
    pub navigation_id: Option<&'a str>,
    /// The time that the caller gives; `None` for [`ANSWER_TIMEOUT`], which answerers may extend.
    pub timeout: Option<Duration>,
    pub abort: &'a Cancel,
    /// Whether a summary in an answer counts.
    pub takes_summary: bool,
}

/// The members that all before events have.
#[derive(Clone)]
pub(crate) struct Put {
    pub session_id: String,
    pub seq: u64,
    pub event_id: String,
    /// 0 for receivers whose answer is not awaited.
    pub timeout_ms: u64,
}

/// The decision that all answers together make.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// The refusal, if an answer or a failed hook refuses the operation.
    refusal: Option<Refusal>,
    /// Whether an answer is missing and no other answer decides.
    is_silent: bool,
    pub summary: Option<wire::GivenSummary>,
    pub compaction: Option<wire::GivenCompaction>,
    pub custom_instructions: Option<String>,
    pub replace_instructions: Option<bool>,
    pub label: Option<String>,
    /// The context of each answer, in the order of the answers.
    pub context: Vec<String>,
}

/// The reason why the operation does not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub reason: CancelReason,
    /// The name of the client, hook or extension that cancelled or failed.
    pub by: Option<String>,
    /// The text for people that `by` gives.
    pub message: Option<String>,
}

impl Decision {
    /// The refusal of the operation, if there is one. `on_no_answer` decides if an answer is missing.
    pub(crate) fn refusal(&mut self, on_no_answer: OnNoAnswer) -> Option<Refusal> {
        let is_silent = self.is_silent && on_no_answer == OnNoAnswer::Cancel;
        let silence = is_silent.then_some(Refusal {
            reason: CancelReason::NoAnswer,
            by: None,
            message: None,
        });
        self.refusal.take().or(silence)
    }
}

impl Questions {
    /// The clients, hooks and extensions that answer this event of a session. `asker` is the connection whose request
    /// causes the event. An extension is not asked about its own moves.
    pub(crate) fn answerers(
        &self,
        open: &OpenSession,
        event: BeforeEvent,
        asker: ConnectionId,
    ) -> Vec<Answerer> {
        let is_own_move = |client: ConnectionId| {
            event == BeforeEvent::SessionBeforeTree && client == asker && self.is_extension(client)
        };
        let clients = open.connections().into_iter();
        // A client that reads nothing cannot answer.
        let clients = clients.filter(|client| client.answers(event) && !client.outbox.is_stuffed());
        let clients = clients.map(|client| client.id);
        let clients = clients.filter(|client| !is_own_move(*client));
        let mut answerers: Vec<Answerer> = clients.map(Answerer::Client).collect();
        let mut unable = self.unable_extensions(&open.id, event, &answerers);
        unable.retain(|number| {
            let connection = self.extensions.connection(*number);
            !connection.is_some_and(is_own_move)
        });
        answerers.extend(unable.into_iter().map(Answerer::Extension));
        let hooks = self.hooks.listening(event.name()).into_iter();
        answerers.extend(hooks.map(Answerer::Hook));
        answerers
    }

    /// The names of answerers. They are read before the question, since a client may disconnect later.
    fn answerer_names(&self, answerers: &[Answerer]) -> Vec<(Answerer, String)> {
        let name = |answerer: &Answerer| match answerer {
            Answerer::Client(id) => Some(self.connections.find(*id)?.display_name()),
            Answerer::Hook(number) => Some(self.hooks.hook(*number)?.program.name().to_owned()),
            Answerer::Extension(number) => Some(self.extensions.get(*number)?.name.clone()),
        };
        let named = answerers.iter().filter_map(|by| Some((*by, name(by)?)));
        named.collect()
    }
}

/// Sends the question, waits for the answers, and announces the outcome. Fails with `cancelled` if the operation is
/// aborted meanwhile.
pub(crate) async fn put<P: Notification>(
    asking: EventQuestion<'_>,
    params: impl Fn(Put) -> P,
) -> Result<Decision> {
    let questions = asking.questions;
    let event_id = EventId::new(id::random_token(&*questions.source));
    let answerers = questions.answerers(asking.open, asking.event, asking.asker);
    let timeout = asking.timeout.unwrap_or(ANSWER_TIMEOUT);
    let timeout = timeout.min(MAX_ANSWER);
    let names = questions.answerer_names(&answerers);
    let asked = answerers.clone();
    let hooks: Vec<usize> = answerers.iter().filter_map(Answerer::hook).collect();
    // The question is recorded before it is sent, since an answer may arrive at once.
    let question =
        (!answerers.is_empty()).then(|| asking.record(event_id.clone(), answerers, timeout));
    let said = |seq: u64, timeout: Duration| Put {
        session_id: asking.open.id.to_string(),
        seq,
        event_id: event_id.as_str().to_owned(),
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
    };
    let notifier = &questions.notifier;
    notifier.notify_unlike(
        asking.open,
        |client| asked.contains(&Answerer::Client(client.id)),
        |seq, is_asked| {
            let waits = if is_asked { timeout } else { Duration::ZERO };
            params(said(seq, waits))
        },
    );
    let Some(question) = question else {
        return Ok(Decision::default());
    };
    asking.leave_for_ended();
    asking.answer_for_extensions(&event_id, &asked);
    let seq = asking.wake_connections();
    // Dropping this set after the outcome ends the hooks that still run.
    let mut running = JoinSet::new();
    let mut written = Vec::new();
    for number in hooks {
        let Some(hook) = questions.hooks.hook(number).cloned() else {
            continue;
        };
        let params = params(said(seq, hook.program.timeout.min(timeout)));
        let message = message(&params).unwrap_or_default();
        let output = Arc::default();
        written.push((Answerer::Hook(number), Arc::clone(&output)));
        running.spawn(asking.run_hook(event_id.clone(), number, hook, message, output));
    }
    let outcome = questions.asks.outcome(question).await;
    let (outcome, by, decision) = asking.combine(outcome, timeout, &names, &written);
    let refusal = decision
        .as_ref()
        .ok()
        .and_then(|decision| decision.refusal.as_ref());
    let message = refusal.and_then(|refusal| refusal.message.clone());
    asking.announce(&event_id, outcome, by, message);
    decision
}

impl EventQuestion<'_> {
    fn record(
        &self,
        event_id: EventId,
        answerers: Vec<Answerer>,
        timeout: Duration,
    ) -> Question<ReceivedAnswer> {
        let event = self.event;
        let accepts = Box::new(move |given: &ReceivedAnswer| given.answer.check(event));
        let asking = Asking {
            id: event_id,
            asker: self.asker,
            session: Arc::clone(&self.open.id),
            cancel: self.abort.clone(),
            bound: self.bound(&answerers),
            instead: self.instead(&answerers),
            if_gone: self.if_gone(&answerers),
        };
        let asks = &self.questions.asks;
        asks.ask(asking, answerers, timeout, accepts)
    }

    /// For each client, the answer that counts if its connection ends while it is asked.
    fn if_gone(&self, answerers: &[Answerer]) -> Vec<(Answerer, ReceivedAnswer)> {
        let if_gone = |by: &Answerer| {
            let Answerer::Client(id) = by else {
                return None;
            };
            let declared = self
                .questions
                .connections
                .find(*id)?
                .declared_answer(self.event)?;
            let on_failure = match declared.on_failure.unwrap_or_default() {
                wire::OnFailure::Cancel => OnFailure::Cancel,
                wire::OnFailure::Proceed => OnFailure::Proceed,
            };
            Some((
                *by,
                ReceivedAnswer::of_failure(on_failure, CONNECTION_ENDED),
            ))
        };
        answerers.iter().filter_map(if_gone).collect()
    }

    /// Removes the clients whose input has ended from the question, since they cannot answer. Their connections end
    /// after their own requests are answered.
    fn leave_for_ended(&self) {
        for connection in self.open.connections() {
            if connection.has_ended() {
                self.questions.leave(connection.id, None);
            }
        }
    }

    /// Lets paused readers continue, since the answers arrive through them. Returns the sequence number for the message
    /// to hooks.
    fn wake_connections(&self) -> u64 {
        let connections = self.open.connections();
        for connection in &connections {
            connection.outbox.wake();
        }
        let first = connections.first();
        first.map_or(0, |first| self.open.seq(first))
    }

    /// Runs a hook and answers the question with its output. If the hook fails, another answer replaces its answer.
    /// `written` gets the output of the hook as it arrives.
    fn run_hook(
        &self,
        event_id: EventId,
        number: usize,
        hook: Hook,
        message: Vec<u8>,
        written: Arc<Mutex<Vec<u8>>>,
    ) -> impl Future<Output = ()> + use<> {
        let (questions, event) = (Arc::clone(self.questions), self.event);
        async move {
            let hear = |new: &[u8]| lock(&written).extend_from_slice(new);
            let given = match questions.hooks.run(&hook, &message, &hear).await {
                Ok(output) => read_answer(&hook, &output, event),
                Err(failure) => failed(&hook, &Failure::Program(failure), &lock(&written)),
            };
            let digest = Digest::of(&given.answer);
            let by = Answerer::Hook(number);
            // A late answer does not count: the call fails if the question is over.
            let _late = questions.asks.answer(event_id.as_str(), by, digest, given);
        }
    }

    /// Combines the answers. Returns the outcome, the name of the answerer that decided, and the decision.
    fn combine(
        &self,
        outcome: QuestionOutcome<ReceivedAnswer>,
        timeout: Duration,
        names: &[(Answerer, String)],
        written: &[(Answerer, Arc<Mutex<Vec<u8>>>)],
    ) -> (EventOutcome, Option<String>, Result<Decision>) {
        let questions = self.questions;
        let (mut answers, missing) = match outcome {
            QuestionOutcome::Settled { answers, missing } => (answers, missing),
            QuestionOutcome::Aborted => {
                return (EventOutcome::Aborted, None, Err(Error::cancelled()));
            }
        };
        let mut in_time = true;
        for by in missing {
            match by.hook().and_then(|number| questions.hooks.hook(number)) {
                Some(hook) => {
                    let late = Failure::Program(program::Failure::TimedOut(timeout));
                    let output = written.iter().find(|(hook, _)| *hook == by);
                    let output = output.map_or(Vec::new(), |(_, output)| lock(output).clone());
                    answers.push((by, failed(hook, &late, &output)));
                }
                None => in_time = false,
            }
        }
        self.log_failed_extensions(&answers, names);
        let (outcome, by, mut decision) = decide(answers, in_time, self.takes());
        let by = by.and_then(|by| names.iter().find(|(answerer, _)| *answerer == by));
        let by = by.map(|(_, name)| name.clone());
        if let Some(refusal) = &mut decision.refusal {
            refusal.by.clone_from(&by);
        }
        (outcome, by, Ok(decision))
    }

    fn announce(
        &self,
        event_id: &EventId,
        outcome: EventOutcome,
        by: Option<String>,
        message: Option<String>,
    ) {
        let resolved = |seq| notification::EventResolved {
            session_id: Some(self.open.id.to_string()),
            seq: Some(seq),
            event_id: event_id.as_str().to_owned(),
            event: self.event.into(),
            navigation_id: self.navigation_id.map(str::to_owned),
            outcome,
            by: by.clone(),
            message: message.clone(),
        };
        self.questions.notifier.notify(self.open, resolved);
    }
}

/// The content that an answer can have in addition to its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Summary,
    Compaction,
    Nothing,
}

impl EventQuestion<'_> {
    fn takes(&self) -> Takes {
        match self.event {
            BeforeEvent::SessionBeforeTree if self.takes_summary => Takes::Summary,
            BeforeEvent::SessionBeforeCompact if self.takes_summary => Takes::Compaction,
            _ => Takes::Nothing,
        }
    }
}

/// The outcome, the answerer that decided, and the decision.
fn decide(
    answers: Vec<(Answerer, ReceivedAnswer)>,
    in_time: bool,
    takes: Takes,
) -> (EventOutcome, Option<Answerer>, Decision) {
    let mut decision = Decision::default();
    let (mut canceller, mut author) = (None, None);
    let last = answers.last().map(|(by, _)| *by);
    for (by, ReceivedAnswer { answer, is_failure }) in answers {
        if answer.cancel == Some(true) && canceller.is_none() {
            let reason = match is_failure {
                true => CancelReason::HookFailed,
                false => CancelReason::CancelledByClient,
            };
            canceller = Some(by);
            decision.refusal = Some(Refusal {
                reason,
                by: None,
                message: answer.reason,
            });
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
        decision.context.extend(answer.context.unwrap_or_default());
    }
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

    const CLIENT: Answerer = Answerer::Client(ConnectionId(1));
    const HOOK: Answerer = Answerer::Hook(0);

    fn answer(json: &str) -> ReceivedAnswer {
        ReceivedAnswer {
            answer: serde_json::from_str(json).unwrap(),
            is_failure: json.contains("\"cancel\":true }"),
        }
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
        let refusal = decision.refusal.unwrap();
        assert_eq!(refusal.reason, CancelReason::CancelledByClient);
    }

    #[test]
    fn the_first_cancel_gives_the_reason_and_silence_counts_only_without_one() {
        let failed = (HOOK, r#"{"cancel":true }"#);
        let mut decision = check(&[failed], false, (EventOutcome::Cancelled, Some(HOOK)));
        let refusal = decision.refusal(OnNoAnswer::Cancel).unwrap();
        assert_eq!(refusal.reason, CancelReason::HookFailed);
        let mut decision = check(&[(HOOK, "{}")], false, (EventOutcome::Timeout, None));
        assert_eq!(decision.refusal(OnNoAnswer::Proceed), None);
        let refusal = decision.refusal(OnNoAnswer::Cancel).unwrap();
        assert_eq!(refusal.reason, CancelReason::NoAnswer);
    }

    #[test]
    fn the_context_of_all_answers_is_joined_in_their_order() {
        let answers = [
            (HOOK, r#"{"context":["a","b"]}"#),
            (CLIENT, r#"{"context":["c"]}"#),
        ];
        let decision = check(&answers, true, (EventOutcome::Proceed, Some(CLIENT)));
        assert_eq!(decision.context, ["a", "b", "c"]);
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
    fn members_of_another_event_do_not_count() {
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
