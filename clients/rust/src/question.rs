//! Questions of the daemon, and the functions that answer them.

use crate::connection::{Answering, Connection, RawNotification, lock};
use crate::error::Error;
use crate::generated::{
    AnswerEventParams, AnswerEventResult, ErrorKind, EventAnswer, GivenCompaction, GivenSummary,
    OnFailure,
};
use crate::json::Json;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The deadline of an `answer_event` request.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

type AnswerFuture = Pin<Box<dyn Future<Output = EventAnswer> + Send>>;

/// A function that answers an event. It fails if the event lacks an expected member.
type Answerer =
    Arc<dyn Fn(&Json, Question) -> Result<AnswerFuture, serde_json::Error> + Send + Sync>;

/// An open question.
#[derive(Clone)]
pub struct Question {
    connection: Arc<Connection>,
    event_id: String,
    over: CancellationToken,
}

impl Question {
    /// Returns the id that `answer_event` and `event_resolved` use.
    pub fn event_id(&self) -> &str {
        &self.event_id
    }

    /// Resolves when the question is over: another client has decided, the time is up, or the operation has
    /// ended. A dialog that asks the user can be closed then.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Returns whether the question is over.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Asks the daemon to keep the question open for `time` from now on. Returns the time that the daemon
    /// grants.
    pub async fn extend(&self, time: Duration) -> Result<Duration, Error> {
        let extend_ms = time.as_millis().try_into().unwrap_or(u64::MAX);
        let granted = self.reply(None, Some(extend_ms)).await?;
        Ok(Duration::from_millis(granted.timeout_ms.unwrap_or(0)))
    }

    async fn reply(
        &self,
        result: Option<EventAnswer>,
        extend_ms: Option<u64>,
    ) -> Result<AnswerEventResult, Error> {
        let params = AnswerEventParams {
            event_id: self.event_id.clone(),
            result,
            error: None,
            extend_ms,
        };
        let params = Json::new(&params);
        self.connection
            .call("answer_event", params, ANSWER_DEADLINE, None)
            .await
    }
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question")
            .field("event_id", &self.event_id)
            .field("is_over", &self.is_over())
            .finish()
    }
}

impl Default for OnFailure {
    /// Cancels, since a guard that fails does not consent.
    fn default() -> Self {
        Self::Cancel
    }
}

/// The answerers, by event, and the open questions.
#[derive(Default)]
struct Questions {
    answerers: BTreeMap<&'static str, Answerer>,
    on_failure: OnFailure,
    /// The open questions, by event id. The token is cancelled when the question is over.
    open: Mutex<HashMap<String, CancellationToken>>,
}

/// The answerers of a builder, by event.
#[derive(Clone, Default)]
pub(crate) struct Answerers {
    by_event: BTreeMap<&'static str, Answerer>,
    pub(crate) on_failure: OnFailure,
}

impl Answerers {
    pub(crate) fn set<E, F, A>(&mut self, event: &'static str, answerer: F)
    where
        E: serde::de::DeserializeOwned,
        F: Fn(E, Question) -> A + Send + Sync + 'static,
        A: Future<Output = EventAnswer> + Send + 'static,
    {
        let answerer: Answerer = Arc::new(move |event, question| {
            let answering = answerer(event.parse()?, question);
            Ok(Box::pin(answering))
        });
        self.by_event.insert(event, answerer);
    }

    /// Returns the events that have an answerer.
    pub(crate) fn events(&self) -> impl Iterator<Item = &'static str> {
        self.by_event.keys().copied()
    }

    pub(crate) fn questions(&self) -> Box<dyn Answering> {
        Box::new(Questions {
            answerers: self.by_event.clone(),
            on_failure: self.on_failure.clone(),
            open: Mutex::default(),
        })
    }
}

impl Answering for Questions {
    fn dispatch(&self, connection: &Arc<Connection>, notification: &Arc<RawNotification>) {
        if notification.method == "event_resolved" {
            if let Ok(QuestionParams { event_id, .. }) = notification.params.parse()
                && let Some(over) = lock(&self.open).remove(&event_id)
            {
                over.cancel();
            }
        } else if let Some(answerer) = self.answerers.get(notification.method.as_str())
            && let Ok(QuestionParams { event_id, timeout_ms }) = notification.params.parse()
            // The daemon does not wait for the answer to a question without a timeout.
            && timeout_ms > 0
        {
            let question = Question {
                connection: Arc::clone(connection),
                event_id,
                over: CancellationToken::new(),
            };
            lock(&self.open).insert(question.event_id.clone(), question.over.clone());
            // If the connection ended before the insertion, its end has not cancelled this question.
            if connection.is_over() {
                question.over.cancel();
            }
            tokio::spawn(answer(
                Arc::clone(answerer),
                question,
                Arc::clone(notification),
                self.on_failure.clone(),
            ));
        }
    }

    fn end_all(&self) {
        for (_, over) in lock(&self.open).drain() {
            over.cancel();
        }
    }
}

/// The params of a question and of `event_resolved`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuestionParams {
    event_id: String,
    #[serde(default)]
    timeout_ms: u64,
}

async fn answer(
    answerer: Answerer,
    question: Question,
    notification: Arc<RawNotification>,
    on_failure: OnFailure,
) {
    let name = notification.method.clone();
    // The answerer runs in its own task, so that an answer is sent even if the answerer panics.
    let asked = question.clone();
    let answered = tokio::spawn(async move {
        match answerer(&notification.params, asked) {
            Ok(answering) => Ok(answering.await),
            Err(error) => Err(format!(
                "{}: cannot be answered: {error}",
                notification.method
            )),
        }
    });
    let answered = match answered.await {
        Ok(answered) => answered,
        Err(panicked) => Err(panic_text(panicked)),
    };
    let failed = |why: &str| {
        tracing::warn!("the answerer of {name} failed: {why}");
        EventAnswer::of_failure(&name, &on_failure, why)
    };
    let answer = answered.unwrap_or_else(|why| failed(&why));
    if question.is_over() {
        return;
    }
    let is_veto = answer.cancel == Some(true);
    let refused = match question.reply(Some(answer), None).await {
        Ok(_) | Err(Error::Disconnected(_)) => return,
        // Another client or the deadline was faster, so nothing is left to do.
        Err(error) if error.is(ErrorKind::EventNotPending) => return,
        Err(error) => failed(&format!("its answer was refused: {error}")),
    };
    // The daemon must not wait in vain. If the refused answer was a cancel, the operation is still cancelled.
    let instead = if is_veto {
        EventAnswer::cancel()
    } else {
        refused
    };
    if let Err(error) = question.reply(Some(instead), None).await {
        tracing::warn!("the answer was not taken: {error}");
    }
}

/// The message of a panic.
fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "it was cancelled".to_owned();
    };
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked".to_owned())
}

/// The most characters of the reason of a cancel (protocol.md §5.2).
const MOST_REASON_CHARACTERS: usize = 500;

impl EventAnswer {
    /// The client has no opinion on the operation.
    pub fn none() -> EventAnswer {
        EventAnswer::default()
    }

    /// Cancels the operation.
    pub fn cancel() -> EventAnswer {
        EventAnswer {
            cancel: Some(true),
            ..EventAnswer::default()
        }
    }

    /// Cancels the operation, with a reason for people. A reason of more than 500 characters is cut.
    pub fn cancel_because(reason: &str) -> EventAnswer {
        EventAnswer {
            reason: Some(reason.chars().take(MOST_REASON_CHARACTERS).collect()),
            ..EventAnswer::cancel()
        }
    }

    /// The answer in place of an answerer that failed. A guard that fails does not consent.
    fn of_failure(event: &str, on_failure: &OnFailure, why: &str) -> EventAnswer {
        if !event.contains("_before_") || *on_failure == OnFailure::Proceed {
            return EventAnswer::none();
        }
        EventAnswer::cancel_because(why.trim().lines().next().unwrap_or_default())
    }

    /// Answers `session_before_tree` with a summary. The summary is used if one is requested.
    pub fn summary(summary: impl Into<GivenSummary>) -> EventAnswer {
        EventAnswer {
            summary: Some(summary.into()),
            ..EventAnswer::default()
        }
    }

    /// Answers `command_invoked`: the command has ended, and `output` is the text to show.
    pub fn output(output: impl Into<String>) -> EventAnswer {
        EventAnswer {
            output: Some(output.into()),
            ..EventAnswer::default()
        }
    }

    /// Answers `user_asked` with the value from the person: true or false for a `confirm`, else a text.
    pub fn value(value: impl Into<Value>) -> EventAnswer {
        EventAnswer {
            // Serializing a bool or a text cannot fail.
            value: Json::new(&value.into()).ok(),
            ..EventAnswer::default()
        }
    }

    /// Answers `user_asked`: the person does not answer.
    pub fn dismissed() -> EventAnswer {
        EventAnswer {
            dismissed: Some(true),
            ..EventAnswer::default()
        }
    }

    /// Answers `session_before_compact` with a compaction.
    pub fn compaction(compaction: GivenCompaction) -> EventAnswer {
        EventAnswer {
            compaction: Some(compaction),
            ..EventAnswer::default()
        }
    }
}

impl From<&str> for GivenSummary {
    fn from(summary: &str) -> GivenSummary {
        summary.to_owned().into()
    }
}

impl From<String> for GivenSummary {
    fn from(summary: String) -> GivenSummary {
        GivenSummary {
            summary,
            details: None,
            usage: None,
        }
    }
}
