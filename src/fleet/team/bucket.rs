//! A bucket of keys and values. It is a stream with the subjects `$KV.<bucket>.<key>`, and keeps the last message of
//! each.

use super::super::connection::{ANSWER, ApiError, Connection, NoAnswer, answer_of, unavailable};
use super::super::limits::StreamInfo;
use super::super::publish::WRONG_SEQUENCE;
use super::cache::BucketValue;
use crate::nats_log::{EXPECTED, NO_MESSAGE, NO_STREAM};
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::{HeaderMap, jetstream};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};

/// How long one write waits for its answer.
const WRITE: Duration = Duration::from_secs(3);
/// How long it may take to begin a read, and then to get each message.
const NEXT: Duration = Duration::from_secs(5);
/// The time within which the servers recognize a repeated message. It cannot be longer than the maximal age of the
/// values.
const WINDOW: Duration = Duration::from_secs(60);
const OPERATION: &str = "KV-Operation";

/// A bucket that belongs to a log.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) connection: Connection,
    /// The name of the bucket, as the tools of NATS show it.
    pub(super) name: String,
}

/// The settings of a new bucket.
pub(super) struct BucketSettings {
    pub(super) replicas: u64,
    /// The age at which the servers drop a value; `None` for never.
    pub(super) max_age: Option<Duration>,
    /// The most bytes of a value.
    pub(super) max_bytes: usize,
    /// Whether values survive the end of all servers.
    pub(super) is_kept: bool,
}

#[derive(Deserialize)]
struct WriteAnswer {
    seq: u64,
}

#[derive(Deserialize)]
struct StoredMessage {
    message: MessageText,
}

#[derive(Deserialize)]
struct MessageText {
    seq: u64,
    /// The value, in base64.
    #[serde(default)]
    data: String,
}

impl Bucket {
    fn stream(&self) -> String {
        format!("KV_{}", self.name)
    }

    fn subject(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.name)
    }

    /// Makes the bucket if it does not exist. Returns whether the bucket was made.
    pub(super) async fn ensure(&self, settings: &BucketSettings) -> Result<bool> {
        match self.info().await {
            Ok(_) => return Ok(false),
            Err(error) if error.kind == Kind::LogMisconfigured => {}
            Err(error) => return Err(error),
        }
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let age = settings.max_age;
        let config = json!({
            "name": self.stream(),
            "subjects": [self.subject(">")],
            "retention": "limits",
            "storage": if settings.is_kept { "file" } else { "memory" },
            "discard": "new",
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": age.map_or(0, nanos),
            "max_msgs_per_subject": 1,
            // The headers count too.
            "max_msg_size": settings.max_bytes + 1024,
            "num_replicas": settings.replicas,
            "duplicate_window": nanos(age.map_or(WINDOW, |age| age.min(WINDOW))),
            "deny_delete": true,
            "deny_purge": true,
            "allow_rollup_hdrs": false,
            "allow_direct": true,
        });
        let made: std::result::Result<StreamInfo, ApiError> = self.api("CREATE", &config).await?;
        made.map(|_| true).map_err(|error| self.refused(&error))
    }

    /// The stream of the bucket. Fails with `logMisconfigured` if there is none.
    pub(super) async fn info(&self) -> Result<StreamInfo> {
        let info = self.api::<StreamInfo>("INFO", &Value::Null).await?;
        info.map_err(|error| self.refused(&error))
    }

    /// The value of a key. `None` if the key was never set, or was removed long ago.
    pub(super) async fn get(&self, key: &str) -> Result<Option<BucketValue>> {
        let query = json!({ "last_by_subj": self.subject(key) });
        match self.api::<StoredMessage>("MSG.GET", &query).await? {
            Ok(StoredMessage { message }) => Ok(Some(BucketValue {
                key: key.to_owned(),
                // Text that is not base64 becomes a value that is damaged.
                value: STANDARD
                    .decode(&message.data)
                    .unwrap_or_else(|_| b"?".to_vec()),
                revision: message.seq,
            })),
            Err(error) if error.err_code == NO_MESSAGE => Ok(None),
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// Sets a value if the key is at the revision `expected`; 0 means that it was never set. Returns the new revision,
    /// or `None` if the key is at another revision.
    pub(super) async fn put(
        &self,
        key: &str,
        value: Vec<u8>,
        expected: Option<u64>,
    ) -> Result<Option<u64>> {
        let mut headers = HeaderMap::new();
        if let Some(expected) = expected {
            headers.insert(EXPECTED, expected.to_string());
        }
        self.publish(key, headers, value).await
    }

    /// Removes a value.
    pub(super) async fn remove(&self, key: &str) -> Result<()> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, "DEL");
        self.publish(key, headers, Vec::new()).await.map(drop)
    }

    async fn publish(&self, key: &str, headers: HeaderMap, value: Vec<u8>) -> Result<Option<u64>> {
        let subject = self.subject(key);
        let sent = self.connection.request(subject, headers, value, WRITE);
        let why = match sent.await {
            Ok(answer) => {
                return match answer_of::<WriteAnswer>(&answer.payload)? {
                    Ok(ack) => Ok(Some(ack.seq)),
                    Err(error) if error.err_code == WRONG_SEQUENCE => Ok(None),
                    Err(error) => Err(self.refused(&error)),
                };
            }
            Err(NoAnswer::Failed(error)) => return Err(error),
            Err(NoAnswer::TimedOut | NoAnswer::Lost(_)) => "the servers acknowledge nothing",
            Err(NoAnswer::NoResponders) => {
                // If the bucket does not exist, no server answers for its subjects.
                self.info().await?;
                "its servers are not ready"
            }
        };
        Err(unavailable(format!("the bucket {:?}: {why}", self.name)))
    }

    /// The values that were set after the revision `from`, up to `until`: each key with its last revision, in the order
    /// of revisions. Values that the servers drop during the read may be missing.
    pub(super) async fn read(
        &self,
        (from, until): (u64, u64),
        each: &mut impl FnMut(BucketValue),
    ) -> Result<()> {
        let late = || {
            let why = format!("the bucket {:?} cannot be read at this time", self.name);
            unavailable(why)
        };
        let opening = tokio::time::timeout(NEXT, self.messages(from)).await;
        let Some((name, mut messages, mut left)) = opening.ok().flatten() else {
            return Err(late());
        };
        let ended = self.take_all(&mut messages, (&mut left, until), each).await;
        // Without this message the servers keep the consumer for half a minute.
        let delete = format!("$JS.API.CONSUMER.DELETE.{}.{name}", self.stream());
        let _kept = self
            .connection
            .client
            .publish(delete, Vec::new().into())
            .await;
        ended.ok_or_else(late)
    }

    /// Takes messages until none is left, or one comes after the revision `until`. `None` if a message is late or
    /// damaged.
    async fn take_all(
        &self,
        messages: &mut Ordered,
        (left, until): (&mut u64, u64),
        each: &mut impl FnMut(BucketValue),
    ) -> Option<()> {
        let prefix = self.subject("");
        while *left > 0 {
            let next = tokio::time::timeout(NEXT, messages.next()).await;
            let message = next.ok()??.ok()?;
            let info = message.info().ok()?;
            if info.stream_sequence > until {
                break;
            }
            *left = info.pending;
            if let Some(key) = message.subject.strip_prefix(&prefix) {
                each(BucketValue {
                    key: key.to_owned(),
                    value: message.payload.to_vec(),
                    revision: info.stream_sequence,
                });
            }
        }
        Some(())
    }

    /// The messages after a revision: the name of their consumer, the consumer, and their number.
    async fn messages(&self, from: u64) -> Option<(String, Ordered, u64)> {
        let context = jetstream::new(self.connection.client.clone());
        let stream = context.get_stream_no_info(self.stream()).await.ok()?;
        let config = OrderedConfig {
            filter_subject: self.subject(">"),
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: from + 1,
            },
            ..OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.ok()?;
        let info = consumer.cached_info();
        let (name, count) = (info.name.clone(), info.num_pending);
        Some((name, consumer.messages().await.ok()?, count))
    }

    async fn api<T: serde::de::DeserializeOwned>(
        &self,
        call: &str,
        body: &Value,
    ) -> Result<std::result::Result<T, ApiError>> {
        let name = format!("STREAM.{call}.{}", self.stream());
        self.connection.call(&name, body, ANSWER).await
    }

    fn refused(&self, error: &ApiError) -> Error {
        let (bucket, why) = (&self.name, &error.description);
        match error.err_code {
            NO_STREAM => {
                let why = format!(
                    "there is no bucket {bucket:?}: `treelined doctor --cluster --create` makes it"
                );
                Error::new(Kind::LogMisconfigured, why)
            }
            code => unavailable(format!("the bucket {bucket:?}: {why} ({code})")),
        }
    }
}
