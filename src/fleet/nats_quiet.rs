//! Finds the sessions of a stream without activity (schema/fleet.md "Retention").

use super::backend::Position;
use super::closing;
use super::connection::{ANSWER, unavailable};
use super::messages::received;
use super::nats_log::{CLOSED, NatsLog};
use super::quiet::{Due, QuietSession};
use super::settings::Retention;
use super::subject;
use async_nats::jetstream;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use treelined_core::error::Result;
use treelined_core::timestamp;

/// How long it may take to begin, and then to get each message.
const NEXT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct ServerTime {
    /// The clock of the server.
    ts: String,
}

impl NatsLog {
    /// The last messages of the subjects come in the order of the stream, so the first message that is new enough ends
    /// the search. Only headers are read.
    pub(super) async fn quiet_sessions(
        &self,
        retention: Retention,
        most: usize,
    ) -> Result<Vec<QuietSession>> {
        let late = || {
            unavailable(format!(
                "{} gives no last messages at this time",
                self.name()
            ))
        };
        let now = self.server_time().await?;
        let opening = tokio::time::timeout(NEXT, self.last_messages()).await;
        let Some((mut messages, mut left)) = opening.ok().flatten() else {
            return Err(late());
        };
        let mut found = Vec::new();
        while left > 0 && found.len() < most {
            let next = tokio::time::timeout(NEXT, messages.next()).await;
            let message = next
                .ok()
                .flatten()
                .and_then(std::result::Result::ok)
                .ok_or_else(late)?;
            let info = message
                .info()
                .map_err(|error| unavailable(error.to_string()))?;
            left = info.pending;
            let quiet = now
                .duration_since(info.published.into())
                .unwrap_or_default();
            if quiet < retention.keep {
                break;
            }
            let Some(session) = subject::session(&message.subject) else {
                continue;
            };
            let message = received(message)?;
            if message.headers.get(CLOSED).is_some() {
                continue;
            }
            // The records of earlier versions have no header.
            let query = json!({ "seq": message.sequence });
            let whole = self.message(&query, ANSWER).await?;
            if whole.is_some_and(|whole| closing::is_closed(&session, &whole.payload)) {
                continue;
            }
            let end = Position(message.sequence);
            found.push(QuietSession {
                session,
                end,
                quiet,
                due: Due::Close,
            });
        }
        Ok(found)
    }

    async fn server_time(&self) -> Result<SystemTime> {
        let name = format!("STREAM.INFO.{}", self.settings.stream);
        let called = self
            .connection
            .call::<ServerTime>(&name, &Value::Null, ANSWER)
            .await?;
        let ServerTime { ts } = called.map_err(|error| self.refused(&error))?;
        let millis = timestamp::parse(&ts).and_then(|millis| u64::try_from(millis).ok());
        let millis =
            millis.ok_or_else(|| unavailable(format!("{} has no time: {ts:?}", self.name())))?;
        Ok(SystemTime::UNIX_EPOCH + Duration::from_millis(millis))
    }

    /// The headers of the last message of each session, and their number.
    async fn last_messages(&self) -> Option<(Ordered, u64)> {
        let context = jetstream::new(self.connection.client.clone());
        let stream = context
            .get_stream_no_info(&self.settings.stream)
            .await
            .ok()?;
        let config = OrderedConfig {
            filter_subject: subject::ALL.to_owned(),
            headers_only: true,
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.ok()?;
        let count = consumer.cached_info().num_pending;
        Some((consumer.messages().await.ok()?, count))
    }
}
