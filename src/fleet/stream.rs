//! A stream of NATS JetStream as a log: a subject per session, a message per append. A position is the sequence of a
//! message.
//!
//! Each message says, in the header by which it was compared and set, the message of the session before it. A reader
//! sees from it that no message is missing, and that each was written by this program.

use super::backend::{AppendOutcome, LogBackend, LogIdentity, LogPart, LogParts, Position};
use super::connection::{ApiError, Connection, NoAnswer, answer_of, unavailable};
use super::limits::{self, StreamInfo};
use super::replica::hash;
use super::subject;
use super::transfer::count_lines;
use crate::config::NatsSettings;
use crate::error::{Error, Kind, Result};
use async_nats::HeaderMap;
use async_nats::jetstream;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The sequence of the subject's last message that a message was published behind.
const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
const MESSAGE_ID: &str = "Nats-Msg-Id";
/// The number of lines of a message.
const LINES: &str = "Treelined-Lines";
/// Bytes of a message that are not its lines, at most.
const HEADER_BYTES: usize = 2048;
/// How long an append is tried. A cluster that lost its leader has another one after about five seconds.
const APPEND: Duration = Duration::from_secs(25);
/// How long one attempt waits.
const ATTEMPT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);
/// How long the next message of a read may take.
const NEXT: Duration = Duration::from_secs(15);

/// Codes of JetStream's errors.
const NO_MESSAGE: u64 = 10037;
const NO_STREAM: u64 = 10059;
const WRONG_SEQUENCE: u64 = 10071;
const OTHER_STREAM: u64 = 10060;
const TOO_LARGE: u64 = 10054;
const STORE_FAILED: u64 = 10077;
const SEALED: u64 = 10109;

/// A stream that keeps sessions.
pub struct NatsLog {
    runtime: Runtime,
    connection: Connection,
    settings: NatsSettings,
    info: StreamInfo,
}

/// The acknowledgement of a publish.
#[derive(Deserialize)]
struct PublishAck {
    seq: u64,
    #[serde(default)]
    duplicate: bool,
}

#[derive(Deserialize)]
struct StoredMessage {
    message: MessageText,
}

/// A message as the leader of its stream has it.
#[derive(Deserialize)]
struct MessageText {
    subject: String,
    seq: u64,
    /// Base64.
    #[serde(default)]
    data: String,
}

impl MessageText {
    fn is(&self, subject: &str, lines: &[u8]) -> bool {
        self.subject == subject && STANDARD.decode(&self.data).is_ok_and(|data| data == lines)
    }
}

impl NatsLog {
    /// Connects, and checks the stream: fails unless it exists and keeps what it acknowledges.
    pub fn open(settings: NatsSettings) -> Result<Self> {
        let (runtime, connection) = connect(&settings)?;
        let info = runtime.block_on(info(&connection, &settings))?;
        info.config.check()?;
        Ok(Self {
            runtime,
            connection,
            settings,
            info,
        })
    }

    /// Makes the stream if it does not exist, and connects. Returns whether it was made.
    pub fn create(settings: NatsSettings) -> Result<bool> {
        let (runtime, connection) = connect(&settings)?;
        runtime.block_on(async {
            match info(&connection, &settings).await {
                Ok(_) => return Ok(false),
                Err(error) if error.kind == Kind::LogMisconfigured => {}
                Err(error) => return Err(error),
            }
            let config = limits::new_stream(&settings.stream, settings.replicas);
            let name = format!("STREAM.CREATE.{}", settings.stream);
            let made: Result<StreamInfo, ApiError> = connection.call(&name, &config).await?;
            made.map(|_| true)
                .map_err(|error| refused(&settings, &error))
        })
    }

    /// The stream, described without judging it, and the servers.
    pub(crate) fn describe(
        settings: &NatsSettings,
    ) -> Result<(StreamInfo, async_nats::ServerInfo)> {
        let (runtime, connection) = connect(settings)?;
        let info = runtime.block_on(info(&connection, settings))?;
        Ok((info, connection.client.server_info()))
    }

    async fn publish(
        &self,
        session: &str,
        expected: Position,
        lines: &[u8],
    ) -> Result<AppendOutcome> {
        let subject = subject::subject(session);
        let began = Instant::now();
        loop {
            let headers = self.headers(session, expected, lines);
            let sent = self
                .connection
                .request(subject.clone(), headers, lines.to_vec(), ATTEMPT)
                .await;
            match sent {
                Ok(answer) => match answer_of::<PublishAck>(&answer.payload)? {
                    Ok(ack) if !ack.duplicate => {
                        return Ok(AppendOutcome::Appended(Position(ack.seq)));
                    }
                    // The answer to an earlier attempt was lost.
                    Ok(_) => return self.settled(&subject, expected, lines).await,
                    Err(error) if error.err_code == WRONG_SEQUENCE => {
                        return self.settled(&subject, expected, lines).await;
                    }
                    Err(error) if is_final(&error) => return Err(refused(&self.settings, &error)),
                    Err(error) => tracing::info!(?error, "an append is tried again"),
                },
                Err(NoAnswer::Failed(error)) => return Err(error),
                Err(NoAnswer::TimedOut | NoAnswer::NoResponders) => {}
            }
            if began.elapsed() > APPEND {
                // A removed stream leaves its subjects without an answer.
                info(&self.connection, &self.settings).await?;
                let why = format!(
                    "the stream {:?} acknowledged nothing in {} s",
                    self.settings.stream,
                    APPEND.as_secs()
                );
                return Err(unavailable(why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The outcome of an append after an answer that leaves it open: the message behind the expected one has these
    /// lines, or there is a conflict.
    async fn settled(
        &self,
        subject: &str,
        expected: Position,
        lines: &[u8],
    ) -> Result<AppendOutcome> {
        let query = json!({ "seq": expected.0 + 1, "next_by_subj": subject });
        let stored = self.message(&query).await?;
        let ours = stored.filter(|stored| stored.is(subject, lines));
        Ok(match ours {
            Some(stored) => AppendOutcome::Appended(Position(stored.seq)),
            None => AppendOutcome::Conflict,
        })
    }

    /// A message of the stream, from its leader; `None` if there is none.
    async fn message(&self, query: &serde_json::Value) -> Result<Option<MessageText>> {
        let name = format!("STREAM.MSG.GET.{}", self.settings.stream);
        match self.connection.call::<StoredMessage>(&name, query).await? {
            Ok(stored) => Ok(Some(stored.message)),
            Err(error) if error.err_code == NO_MESSAGE => Ok(None),
            Err(error) => Err(refused(&self.settings, &error)),
        }
    }

    fn headers(&self, session: &str, expected: Position, lines: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED, expected.0.to_string());
        headers.insert(EXPECTED_STREAM, &*self.settings.stream);
        headers.insert(LINES, count_lines(lines).to_string());
        // With the position, so that equal lines at two places of a session are two messages.
        let place = [expected.0.to_string().as_bytes(), b"\0", lines].concat();
        let digest = hash(&place);
        let id = digest.get(..32).unwrap_or(&digest);
        headers.insert(MESSAGE_ID, format!("{session}/{id}"));
        headers
    }

    /// The messages of a session after `from`; without an end, `until` is `None`.
    fn parts<'a>(
        &'a self,
        session: &str,
        from: Position,
        until: Option<u64>,
    ) -> Result<LogParts<'a>> {
        let subject = subject::subject(session);
        let policy = DeliverPolicy::ByStartSequence {
            start_sequence: from.0 + 1,
        };
        let config = OrderedConfig {
            filter_subject: subject.clone(),
            deliver_policy: policy,
            ..OrderedConfig::default()
        };
        let messages = self.runtime.block_on(async {
            let context = jetstream::new(self.connection.client.clone());
            let opening = async {
                let stream = context
                    .get_stream_no_info(&self.settings.stream)
                    .await
                    .ok()?;
                stream
                    .create_consumer(config)
                    .await
                    .ok()?
                    .messages()
                    .await
                    .ok()
            };
            tokio::time::timeout(NEXT, opening).await.ok().flatten()
        });
        let Some(messages) = messages else {
            let why = format!(
                "the stream {:?} cannot be read at this time",
                self.settings.stream
            );
            return Err(unavailable(why));
        };
        Ok(Box::new(StreamParts {
            log: self,
            messages,
            session: session.to_owned(),
            at: from,
            until,
        }))
    }
}

impl LogBackend for NatsLog {
    fn append(&self, session: &str, expected: Position, lines: &[u8]) -> Result<AppendOutcome> {
        self.runtime
            .block_on(self.publish(session, expected, lines))
    }

    fn read<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        let query = json!({ "last_by_subj": subject::subject(session) });
        match self.runtime.block_on(self.message(&query))? {
            Some(last) if last.seq > from.0 => self.parts(session, from, Some(last.seq)),
            _ => Ok(Box::new(std::iter::empty())),
        }
    }

    fn follow<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        self.parts(session, from, None)
    }

    fn list(&self) -> Result<Vec<String>> {
        let name = format!("STREAM.INFO.{}", self.settings.stream);
        let mut sessions = Vec::new();
        let mut read = 0;
        loop {
            let page = json!({ "subjects_filter": subject::ALL, "offset": read });
            let called = self
                .runtime
                .block_on(self.connection.call::<StreamInfo>(&name, &page))?;
            let info = called.map_err(|error| refused(&self.settings, &error))?;
            let subjects = info.state.subjects.unwrap_or_default();
            read += subjects.len();
            sessions.extend(subjects.keys().filter_map(|of| subject::session(of)));
            if subjects.is_empty() || read >= info.total {
                sessions.sort_unstable();
                return Ok(sessions);
            }
        }
    }

    fn identity(&self, session: &str) -> Result<LogIdentity> {
        Ok(LogIdentity {
            stream: self.settings.stream.clone(),
            created: self.info.created.clone(),
            subject: subject::subject(session),
        })
    }

    fn max_append(&self) -> usize {
        let server = self.connection.client.server_info().max_payload;
        let stream = usize::try_from(self.info.config.max_msg_size)
            .ok()
            .filter(|most| *most > 0);
        server
            .min(stream.unwrap_or(usize::MAX))
            .saturating_sub(HEADER_BYTES)
    }
}

/// The messages of a session, checked.
struct StreamParts<'a> {
    log: &'a NatsLog,
    messages: Ordered,
    session: String,
    at: Position,
    /// The last message to read.
    until: Option<u64>,
}

impl Iterator for StreamParts<'_> {
    type Item = Result<LogPart>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.until.is_some_and(|until| self.at.0 >= until) {
            return None;
        }
        let next = async {
            match self.until {
                Some(_) => tokio::time::timeout(NEXT, self.messages.next())
                    .await
                    .ok()
                    .flatten(),
                None => self.messages.next().await,
            }
        };
        let found = match self.log.runtime.block_on(next) {
            Some(Ok(message)) => self.part(&message),
            Some(Err(error)) => Err(unavailable(format!(
                "the stream cannot be read on: {error}"
            ))),
            None => Err(unavailable("the stream sends no more messages".to_owned())),
        };
        Some(found.inspect(|part| self.at = part.end))
    }
}

impl StreamParts<'_> {
    /// Checks a message: written by this program, whole, and behind the one before it.
    fn part(&self, message: &jetstream::Message) -> Result<LogPart> {
        let info = message.info();
        let sequence = info
            .map_err(|error| unavailable(error.to_string()))?
            .stream_sequence;
        let foreign = |why: &str| {
            let why = format!(
                "message {sequence} of session {:?} is not of this program: {why}",
                self.session
            );
            Error::new(Kind::LogForeign, why)
        };
        let headers = message
            .headers
            .as_ref()
            .ok_or_else(|| foreign("it has no headers"))?;
        let number = |name: &str| headers.get(name)?.as_str().parse::<u64>().ok();
        let lines = number(LINES).ok_or_else(|| foreign("it has no number of lines"))?;
        let before = number(EXPECTED).ok_or_else(|| foreign("it names no message before it"))?;
        if !message.payload.ends_with(b"\n") || count_lines(&message.payload) != lines {
            return Err(foreign("its lines are not whole"));
        }
        if before != self.at.0 {
            let why = format!(
                "message {sequence} of session {:?} follows message {before}, which the stream does not have",
                self.session
            );
            return Err(Error::new(Kind::LogRewound, why));
        }
        Ok(LogPart {
            lines: message.payload.to_vec(),
            end: Position(sequence),
        })
    }
}

fn connect(settings: &NatsSettings) -> Result<(Runtime, Connection)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("nats")
        .enable_all()
        .build()
        .map_err(|error| Error::io("start the runtime", &error))?;
    let connection = runtime.block_on(Connection::open(settings))?;
    Ok((runtime, connection))
}

async fn info(connection: &Connection, settings: &NatsSettings) -> Result<StreamInfo> {
    let name = format!("STREAM.INFO.{}", settings.stream);
    let called = connection
        .call::<StreamInfo>(&name, &serde_json::Value::Null)
        .await?;
    called.map_err(|error| refused(settings, &error))
}

/// Whether a later attempt has the same result.
fn is_final(error: &ApiError) -> bool {
    matches!(
        error.err_code,
        OTHER_STREAM | TOO_LARGE | STORE_FAILED | SEALED
    )
}

/// The kind of an error of JetStream.
fn refused(settings: &NatsSettings, error: &ApiError) -> Error {
    let stream = &settings.stream;
    let ApiError {
        err_code,
        description,
    } = error;
    match *err_code {
        NO_STREAM => {
            let why = format!(
                "there is no stream {stream:?}: `treelined doctor --cluster --create` makes it"
            );
            Error::new(Kind::LogMisconfigured, why)
        }
        OTHER_STREAM => {
            let why = format!("another stream than {stream:?} has the subjects of sessions");
            Error::new(Kind::LogMisconfigured, why)
        }
        TOO_LARGE => Error::new(
            Kind::PayloadTooLarge,
            format!("the stream {stream:?}: {description}"),
        ),
        STORE_FAILED | SEALED => {
            let why = format!("the stream {stream:?} takes no more messages: {description}");
            Error::new(Kind::LogMisconfigured, why)
        }
        code => unavailable(format!("the stream {stream:?}: {description} ({code})")),
    }
}
