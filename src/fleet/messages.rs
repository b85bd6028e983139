//! Reads the messages of a session from a stream, in order, and checks them.

use super::backend::{LogPart, Position};
use super::connection::{ANSWER, unavailable};
use super::nats_log::{EXPECTED, EXPECTED_SUBJECT, HASH, LINES, NatsLog, OBJECT, PAUSE};
use super::subject;
use super::transfer::count_lines;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::{HeaderMap, jetstream};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};

/// How long a read may wait for its next message.
const NEXT: Duration = Duration::from_secs(15);
/// The number of messages that are read one by one before a consumer is made for the rest. Each single message costs a
/// round trip, and a consumer needs an agreement of the servers.
const SINGLE: usize = 32;
/// How long it may take to make a consumer, and then to get each of its messages.
const QUIET: Duration = Duration::from_secs(3);

/// A message of a stream.
#[derive(Clone)]
pub(super) struct StreamMessage {
    pub(super) sequence: u64,
    pub(super) headers: HeaderMap,
    pub(super) payload: Vec<u8>,
}

/// A message in the answer of a server.
#[derive(Deserialize)]
pub(super) struct MessageAnswer {
    message: MessageText,
}

#[derive(Deserialize)]
struct MessageText {
    seq: u64,
    /// The headers, in base64.
    #[serde(default)]
    hdrs: String,
    /// The payload, in base64.
    #[serde(default)]
    data: String,
}

impl MessageAnswer {
    /// The message; `None` if it is not encoded like a message.
    pub(super) fn decode(self) -> Option<StreamMessage> {
        let text = String::from_utf8(STANDARD.decode(&self.message.hdrs).ok()?).ok()?;
        let mut headers = HeaderMap::new();
        for line in text.lines() {
            if let Some((name, value)) = line.split_once(':')
                && let (Ok(name), Ok(value)) = (
                    name.parse::<async_nats::HeaderName>(),
                    value.trim().parse::<async_nats::HeaderValue>(),
                )
            {
                headers.append(name, value);
            }
        }
        Some(StreamMessage {
            sequence: self.message.seq,
            headers,
            payload: STANDARD.decode(&self.message.data).ok()?,
        })
    }
}

impl StreamMessage {
    fn number(&self, header: &str) -> Option<u64> {
        self.headers.get(header)?.as_str().parse().ok()
    }

    /// The number of the previous message of the session, from the header that made the append conditional; `None`
    /// without this header.
    pub(super) fn before(&self) -> Option<u64> {
        // With this header the servers compare with the last message of another subject, so the number says nothing
        // about this session.
        let is_of_subject = self.headers.get(EXPECTED_SUBJECT).is_none();
        is_of_subject.then(|| self.number(EXPECTED)).flatten()
    }

    /// The reason why the headers show that another program has written the message; `None` for a message of this
    /// program.
    pub(super) fn foreign_headers(&self) -> Option<&'static str> {
        if self.number(LINES).is_none() {
            return Some("it has no number of lines");
        }
        if self.before().is_none() {
            return Some("it names no message before it");
        }
        let has = |name: &str| self.headers.get(name).is_some();
        (has(OBJECT) != has(HASH)).then_some("its reference to an object is not whole")
    }

    /// The error `logForeign` for this message.
    pub(super) fn foreign(&self, session: &str, why: &str) -> Error {
        let sequence = self.sequence;
        let why =
            format!("message {sequence} of session {session:?} is not of this program: {why}");
        Error::new(Kind::LogForeign, why)
    }
}

/// The messages of a session after a position, up to the message `last`.
pub(super) struct SessionMessages<'a> {
    log: &'a NatsLog,
    session: String,
    at: Position,
    last: StreamMessage,
    /// The number of messages that may still be read one by one.
    singles: usize,
    consumer: Option<Ordered>,
    has_failed: bool,
}

impl<'a> SessionMessages<'a> {
    pub(super) fn new(
        log: &'a NatsLog,
        session: &str,
        from: Position,
        last: StreamMessage,
    ) -> Self {
        Self {
            log,
            session: session.to_owned(),
            at: from,
            singles: SINGLE,
            last,
            consumer: None,
            has_failed: false,
        }
    }

    /// The position before the next message.
    pub(super) fn position(&self) -> Position {
        self.at
    }

    /// Whether there are more messages.
    pub(super) fn goes_on(&self) -> bool {
        self.at.0 < self.last.sequence
    }

    pub(super) async fn part(&mut self) -> Result<LogPart> {
        let message = match self.last.before() == Some(self.at.0) {
            true => self.last.clone(),
            false => match self.single().await {
                Some(message) => message,
                None => self.consumed().await?,
            },
        };
        let part = self.checked(message).await?;
        self.at = part.end;
        Ok(part)
    }

    /// Reads the next message without a consumer. `None` if a consumer has to read it.
    async fn single(&mut self) -> Option<StreamMessage> {
        self.singles = self.singles.checked_sub(1)?;
        let query = json!({
            "seq": self.at.0 + 1, "next_by_subj": subject::subject(&self.session),
        });
        let asked = self.log.message(&query, ANSWER).await;
        asked.ok().flatten()
    }

    /// The next message of the consumer.
    ///
    /// If a consumer is lost before its first message, the client makes it again for all messages of the session. In
    /// this case, and if a message is missing, this function makes a consumer that begins at the right message.
    async fn consumed(&mut self) -> Result<StreamMessage> {
        let began = Instant::now();
        let mut is_new = false;
        loop {
            if self.consumer.is_none() {
                is_new = true;
                match self.log.consumer(&self.session, self.at).await {
                    Ok(made) => self.consumer = Some(made),
                    Err(error) => return self.single_again().await.ok_or(error),
                }
            }
            let Some(consumer) = &mut self.consumer else {
                continue;
            };
            let failed = match tokio::time::timeout(QUIET, consumer.next()).await {
                Ok(Some(Ok(message))) => {
                    let message = received(message)?;
                    let is_next = message.sequence > self.at.0
                        && (is_new || message.before().is_none_or(|before| before == self.at.0));
                    if is_next {
                        return Ok(message);
                    }
                    "it begins again".to_owned()
                }
                Ok(Some(Err(error))) => error.to_string(),
                Ok(None) => "it has ended".to_owned(),
                Err(_) => format!("no message in {} s", QUIET.as_secs()),
            };
            self.consumer = None;
            if let Some(message) = self.single_again().await {
                return Ok(message);
            }
            if began.elapsed() > NEXT {
                let name = self.log.name();
                return Err(unavailable(format!("{name} cannot be read on: {failed}")));
            }
            tracing::info!(failed, "a consumer is made again");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads the next message without a consumer after a consumer has failed. A consumer is on one server, which may
    /// die. To make a new consumer, the servers must agree. To read a single message, they need not.
    async fn single_again(&mut self) -> Option<StreamMessage> {
        self.singles = SINGLE;
        self.single().await
    }

    /// Checks a message: it must be whole, and must come after the message before it. A message of another program
    /// becomes a part without lines.
    async fn checked(&mut self, message: StreamMessage) -> Result<LogPart> {
        let end = Position(message.sequence);
        if let Some(why) = message.foreign_headers() {
            return Ok(self.without_lines(end, why));
        }
        let (lines, before) = (message.number(LINES), message.before());
        if let Some(before) = before.filter(|before| *before != self.at.0) {
            let why = format!(
                "message {} of session {:?} follows message {before}, which the stream does not have",
                message.sequence, self.session
            );
            return Err(Error::new(Kind::LogRewound, why));
        }
        let text = self.log.lines(&self.session, message).await?;
        if !text.ends_with(b"\n") || Some(count_lines(&text)) != lines {
            return Ok(self.without_lines(end, "its lines are not whole"));
        }
        Ok(LogPart { lines: text, end })
    }

    /// The part for a foreign message. All readers always skip such a message, so that no member can use it to make a
    /// session unreadable.
    fn without_lines(&self, end: Position, why: &str) -> LogPart {
        let (session, sequence) = (&self.session, end.0);
        // Each read finds the message again, so a warning would fill the log file.
        tracing::debug!(
            session,
            sequence,
            why,
            "a message of another program is skipped"
        );
        let lines = Vec::new();
        LogPart { lines, end }
    }
}

impl Iterator for SessionMessages<'_> {
    type Item = Result<LogPart>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.goes_on() || self.has_failed {
            return None;
        }
        let part = self.log.wait(self.part());
        self.has_failed = part.is_err();
        Some(part)
    }
}

impl NatsLog {
    /// A consumer of the messages of a session after `from`.
    async fn consumer(&self, session: &str, from: Position) -> Result<Ordered> {
        let config = OrderedConfig {
            filter_subject: subject::subject(session),
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: from.0 + 1,
            },
            ..OrderedConfig::default()
        };
        let context = jetstream::new(self.connection.client.clone());
        let opening = async {
            let stream = context.get_stream_no_info(&self.settings.stream).await;
            let consumer = stream.map_err(|error| error.to_string())?;
            let consumer = consumer.create_consumer(config).await;
            let messages = consumer.map_err(|error| error.to_string())?.messages();
            messages.await.map_err(|error| error.to_string())
        };
        let opened = tokio::time::timeout(QUIET, opening).await;
        let opened = opened.unwrap_or_else(|_| Err(format!("no answer in {} s", QUIET.as_secs())));
        opened.map_err(|why| {
            unavailable(format!(
                "{} cannot be read at this time: {why}",
                self.name()
            ))
        })
    }
}

pub(super) fn received(message: jetstream::Message) -> Result<StreamMessage> {
    let info = message.info();
    let sequence = info
        .map_err(|error| unavailable(error.to_string()))?
        .stream_sequence;
    let message = message.message;
    Ok(StreamMessage {
        sequence,
        headers: message.headers.unwrap_or_default(),
        payload: message.payload.into(),
    })
}
