//! Keys and values, in a stream. The stream has a subject for each key, and keeps the last message of each subject. The
//! order of the stream is the order of the last writes.

use super::super::connection::{ANSWER, ApiError, Connection, NoAnswer, answer_of, unavailable};
use super::super::limits::StreamInfo;
use super::super::publish::WRONG_SEQUENCE;
use crate::nats_log::{EXPECTED, NO_MESSAGE, NO_STREAM};
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::consumer::{Consumer, DeliverPolicy};
use async_nats::{HeaderMap, StatusCode, jetstream};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Value as Json, json};
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

/// The value of a key at one revision. Empty if the value was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) key: String,
    pub(super) value: Vec<u8>,
    /// The sequence of its message.
    pub(super) revision: u64,
}

/// The values of a stream.
#[derive(Clone)]
pub(super) struct Values {
    connection: Connection,
    stream: String,
    /// The subject of each value begins with this, and ends with its key.
    prefix: String,
    /// The subjects of the stream.
    all: String,
}

/// The settings of new values.
pub(super) struct Settings {
    pub(super) replicas: u64,
    /// The age at which the servers drop a value; `None` for never.
    pub(super) max_age: Option<Duration>,
    /// The most bytes of a value.
    pub(super) max_bytes: usize,
    /// Whether values survive the end of all servers.
    pub(super) is_kept: bool,
}

/// The values after a revision, which are not read yet.
pub(super) struct Opened {
    consumer: Consumer<OrderedConfig>,
    name: String,
    /// The number of these values.
    pub(super) count: u64,
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

impl Values {
    /// The values of a bucket of NATS.
    pub(super) fn of_bucket(connection: &Connection, bucket: &str) -> Self {
        Self {
            connection: connection.clone(),
            stream: format!("KV_{bucket}"),
            prefix: format!("$KV.{bucket}."),
            all: format!("$KV.{bucket}.>"),
        }
    }

    pub(super) fn of_stream(connection: &Connection, stream: String, prefix: &str) -> Self {
        Self {
            connection: connection.clone(),
            stream,
            prefix: prefix.to_owned(),
            all: format!("{prefix}*"),
        }
    }

    fn subject(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Makes the stream if it does not exist. Returns its name if it was made.
    pub(super) async fn ensure(&self, settings: &Settings) -> Result<Option<String>> {
        match self.info().await {
            Ok(_) => return Ok(None),
            Err(error) if error.kind == Kind::LogMisconfigured => {}
            Err(error) => return Err(error),
        }
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let age = settings.max_age;
        let config = json!({
            "name": self.stream,
            "subjects": [self.all],
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
        made.map(|_| Some(self.stream.clone()))
            .map_err(|error| self.refused(&error))
    }

    /// The stream. Fails with `logMisconfigured` if there is none.
    pub(super) async fn info(&self) -> Result<StreamInfo> {
        let info = self.api::<StreamInfo>("INFO", &Json::Null).await?;
        info.map_err(|error| self.refused(&error))
    }

    /// The keys of all values.
    pub(super) async fn keys(&self) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        loop {
            let page = json!({ "subjects_filter": self.all, "offset": keys.len() });
            let info = self.api::<StreamInfo>("INFO", &page).await?;
            let info = info.map_err(|error| self.refused(&error))?;
            let subjects = info.state.subjects.unwrap_or_default();
            let is_end = subjects.is_empty() || keys.len() + subjects.len() >= info.total;
            keys.extend(
                subjects
                    .into_keys()
                    .map(|mut subject| subject.split_off(self.prefix.len().min(subject.len()))),
            );
            if is_end {
                return Ok(keys);
            }
        }
    }

    /// The value of a key. `None` if the key was never set, or was removed long ago.
    pub(super) async fn get(&self, key: &str) -> Result<Option<Value>> {
        let query = json!({ "last_by_subj": self.subject(key) });
        match self.api::<StoredMessage>("MSG.GET", &query).await? {
            Ok(StoredMessage { message }) => Ok(Some(Value {
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

    /// Like [`Self::get`], but any server that has a copy can answer. The copy may be older than the last value.
    pub(super) async fn look_up(&self, key: &str) -> Result<Option<Value>> {
        let subject = format!("$JS.API.DIRECT.GET.{}.{}", self.stream, self.subject(key));
        let asked = self
            .connection
            .request(subject, HeaderMap::new(), Vec::new(), WRITE);
        let answer = match asked.await {
            Ok(answer) => answer,
            Err(NoAnswer::Failed(error)) => return Err(error),
            Err(_) => return self.get(key).await,
        };
        if answer.status == Some(StatusCode::NOT_FOUND) {
            return Ok(None);
        }
        let headers = answer.headers.unwrap_or_default();
        let revision = headers.get("Nats-Sequence");
        match revision.and_then(|revision| revision.as_str().parse().ok()) {
            Some(revision) => Ok(Some(Value {
                key: key.to_owned(),
                value: answer.payload.to_vec(),
                revision,
            })),
            None => self.get(key).await,
        }
    }

    /// Sets a value if the key is at the revision `expected`; 0 means that the key was never set. Returns the new
    /// revision, or `None` if the key is at another revision.
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
                // If the stream does not exist, no server answers for its subjects.
                self.info().await?;
                "its servers are not ready"
            }
        };
        Err(unavailable(format!("the stream {:?}: {why}", self.stream)))
    }

    /// The values that were set after a revision.
    pub(super) async fn open(&self, from: u64) -> Result<Opened> {
        let opening = tokio::time::timeout(NEXT, self.consumer(from)).await;
        let consumer = opening.ok().flatten().ok_or_else(|| self.late())?;
        let info = consumer.cached_info();
        let (name, count) = (info.name.clone(), info.num_pending);
        Ok(Opened {
            consumer,
            name,
            count,
        })
    }

    /// Reads values up to the revision `until`: each key with its last revision, in the order of revisions. Values that
    /// the servers drop during the read may be missing.
    pub(super) async fn read(
        &self,
        opened: Opened,
        until: u64,
        each: &mut (impl FnMut(Value) + Send),
    ) -> Result<()> {
        let mut left = opened.count;
        let read = match left {
            0 => Some(()),
            _ => match opened.consumer.messages().await {
                Ok(mut messages) => self.take_all(&mut messages, (&mut left, until), each).await,
                Err(_) => None,
            },
        };
        self.end(opened.name).await;
        read.ok_or_else(|| self.late())
    }

    /// Ends a read before its values are read.
    pub(super) async fn close(&self, opened: Opened) {
        self.end(opened.name).await;
    }

    /// Removes a consumer. Otherwise the servers keep it for half a minute.
    async fn end(&self, consumer: String) {
        let delete = format!("$JS.API.CONSUMER.DELETE.{}.{consumer}", self.stream);
        let publish = self.connection.client.publish(delete, Vec::new().into());
        let _kept = publish.await;
    }

    fn late(&self) -> Error {
        let why = format!("the stream {:?} cannot be read at this time", self.stream);
        unavailable(why)
    }

    /// Takes messages until no message is left, or until a message is after the revision `until`. `None` if a message
    /// is late or damaged.
    async fn take_all(
        &self,
        messages: &mut Ordered,
        (left, until): (&mut u64, u64),
        each: &mut (impl FnMut(Value) + Send),
    ) -> Option<()> {
        while *left > 0 {
            let next = tokio::time::timeout(NEXT, messages.next()).await;
            let message = next.ok()??.ok()?;
            let info = message.info().ok()?;
            if info.stream_sequence > until {
                break;
            }
            *left = info.pending;
            if let Some(key) = message.subject.strip_prefix(&self.prefix) {
                each(Value {
                    key: key.to_owned(),
                    value: message.payload.to_vec(),
                    revision: info.stream_sequence,
                });
            }
        }
        Some(())
    }

    async fn consumer(&self, from: u64) -> Option<Consumer<OrderedConfig>> {
        let context = jetstream::new(self.connection.client.clone());
        let stream = context.get_stream_no_info(&self.stream).await.ok()?;
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: from + 1,
            },
            ..OrderedConfig::default()
        };
        stream.create_consumer(config).await.ok()
    }

    async fn api<T: serde::de::DeserializeOwned>(
        &self,
        call: &str,
        body: &Json,
    ) -> Result<std::result::Result<T, ApiError>> {
        let name = format!("STREAM.{call}.{}", self.stream);
        self.connection.call(&name, body, ANSWER).await
    }

    fn refused(&self, error: &ApiError) -> Error {
        let (stream, why) = (&self.stream, &error.description);
        match error.err_code {
            NO_STREAM => {
                let why = format!(
                    "there is no stream {stream:?}: `treelined doctor --cluster --create` makes it"
                );
                Error::new(Kind::LogMisconfigured, why)
            }
            code => unavailable(format!("the stream {stream:?}: {why} ({code})")),
        }
    }
}
