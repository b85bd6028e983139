//! Questions that the daemon asks before something happens, and who answers them.

use crate::call;
use crate::connection::{Connection, Said, lock};
use crate::error::Error;
use crate::generated::{
    AnswerEventParams, AnswerEventResult, ErrorKind, EventAnswer, GivenCompaction, GivenSummary,
};
use crate::json::Json;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long an `answer_event` may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

type Answering = Pin<Box<dyn Future<Output = EventAnswer> + Send>>;

/// Fails if the event has not the members expected of it.
type Answerer = Arc<dyn Fn(&Json, Question) -> Result<Answering, serde_json::Error> + Send + Sync>;

/// A question that is open, beside the event that it is about.
#[derive(Clone)]
pub struct Question {
    connection: Arc<Connection>,
    event_id: String,
    over: CancellationToken,
}

impl Question {
    /// Names the question in `answer_event` and `event_resolved`.
    pub fn event_id(&self) -> &str {
        &self.event_id
    }

    /// Resolves when no answer is wanted any more: somebody else has decided, time is up, or what was
    /// asked about has ended. A prompt for it can be dismissed.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Whether no answer is wanted any more.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Asks for that much time from now. Gives what was granted.
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
            extend_ms,
        };
        let params = Json::new(&params);
        call::request(
            &self.connection,
            "answer_event",
            params,
            ANSWER_DEADLINE,
            None,
        )
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

/// The answerers by event, and the questions that are being answered.
#[derive(Default)]
pub(crate) struct Questions {
    answerers: BTreeMap<&'static str, Answerer>,
    /// By event id.
    open: Mutex<HashMap<String, CancellationToken>>,
}

/// The answerers that the builder keeps.
#[derive(Clone, Default)]
pub(crate) struct Answerers(BTreeMap<&'static str, Answerer>);

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
        self.0.insert(event, answerer);
    }

    /// The events that are answered.
    pub(crate) fn events(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    pub(crate) fn questions(&self) -> Questions {
        Questions {
            answerers: self.0.clone(),
            open: Mutex::default(),
        }
    }
}

impl Questions {
    pub(crate) fn heard(&self, connection: &Arc<Connection>, said: &Arc<Said>) {
        if said.method == "event_resolved" {
            if let Ok(About { event_id, .. }) = said.params.parse()
                && let Some(over) = lock(&self.open).remove(&event_id)
            {
                over.cancel();
            }
        } else if let Some(answerer) = self.answerers.get(said.method.as_str())
            && let Ok(About { event_id, timeout_ms }) = said.params.parse()
            // Nobody waits otherwise: it is told, not asked.
            && timeout_ms > 0
        {
            let question = Question {
                connection: Arc::clone(connection),
                event_id,
                over: CancellationToken::new(),
            };
            lock(&self.open).insert(question.event_id.clone(), question.over.clone());
            // The end may have come between, and have missed it.
            if connection.is_over() {
                question.over.cancel();
            }
            tokio::spawn(answer(Arc::clone(answerer), question, Arc::clone(said)));
        }
    }

    pub(crate) fn all_over(&self) {
        for (_, over) in lock(&self.open).drain() {
            over.cancel();
        }
    }
}

/// The params of questions and of `event_resolved`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    event_id: String,
    #[serde(default)]
    timeout_ms: u64,
}

async fn answer(answerer: Answerer, question: Question, said: Arc<Said>) {
    // In a task of its own: the daemon must not wait for an answerer that has panicked.
    let asked = question.clone();
    let answered = tokio::spawn(async move {
        match answerer(&said.params, asked) {
            Ok(answering) => answering.await,
            Err(error) => {
                tracing::warn!("{}: cannot be answered: {error}", said.method);
                EventAnswer::default()
            }
        }
    });
    let answer = answered.await.unwrap_or_default();
    if question.is_over() {
        return;
    }
    match question.reply(Some(answer), None).await {
        Ok(_) | Err(Error::Disconnected(_)) => (),
        // Somebody else or the deadline was faster.
        Err(error) if error.is(ErrorKind::EventNotPending) => (),
        Err(error) => tracing::warn!("the answer was not taken: {error}"),
    }
}

impl EventAnswer {
    /// No opinion.
    pub fn none() -> EventAnswer {
        EventAnswer::default()
    }

    /// It shall not happen.
    pub fn cancel() -> EventAnswer {
        EventAnswer {
            cancel: Some(true),
            ..EventAnswer::default()
        }
    }

    /// To `session_before_tree`, if a summary is wanted: this one.
    pub fn summary(summary: impl Into<GivenSummary>) -> EventAnswer {
        EventAnswer {
            summary: Some(summary.into()),
            ..EventAnswer::default()
        }
    }

    /// To `session_before_compact`: this compaction.
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
