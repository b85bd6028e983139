//! A stream of NATS JetStream as a backend: each session has a subject, and each append is a message. A position is the
//! sequence of a message.
//!
//! Each message has a header that names the previous message of the session, so that the servers compare and set. From
//! this header, a reader also sees that no message is missing, and that this program has written each message.

use super::backend::{
    AppendOutcome, Appending, LogBackend, LogIdentity, LogPart, LogParts, Position, last_lines,
};
use super::connection::{ANSWER, ApiError, Connection};
use super::engine::{self, EndlessParts};
use super::guard::guard_buckets;
use super::hints::FollowedMessages;
use super::in_flight::InFlight;
use super::limits::{self, StreamInfo};
use super::messages::{MessageAnswer, SessionMessages, StreamMessage};
pub use super::nats_log::NatsLog;
pub(super) use super::nats_log::{LogAccess, PAUSE, refused};
use super::nats_log::{NO_MESSAGE, STALE, connect};
use super::objects::{self, MOST_BYTES};
use super::subject;
use crate::settings::NatsSettings;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;

pub use async_nats::ServerInfo;

/// The most bytes of a message apart from its lines.
const HEADER_BYTES: usize = 2048;
/// How long an append is tried by default. If a cluster loses its leader, it has a new one after about five seconds.
const APPEND: Duration = Duration::from_secs(25);
/// How long one attempt of a request waits. If a leader dies, requests to it get no answer, and the next leader does
/// not know them.
pub(super) const ATTEMPT: Duration = Duration::from_millis(1500);

impl NatsLog {
    /// Connects, and checks the stream. Fails unless the stream exists and keeps acknowledged messages.
    pub fn open(settings: NatsSettings) -> Result<Self> {
        let (runtime, connection) = connect(&settings)?;
        let server = connection.client.server_info();
        limits::check_version(&server.version)?;
        limits::check_payload(server.max_payload)?;
        let info = runtime.block_on(info(&connection, &settings, ANSWER))?;
        info.config.check()?;
        Ok(Self {
            runtime,
            connection,
            settings,
            info,
            append_time: APPEND,
            acknowledged: Mutex::default(),
            in_flight: InFlight::default(),
        })
    }

    /// The same log with another time for which an append is tried, instead of 25 s. An append takes at most four
    /// seconds more.
    pub fn with_append_time(self, append_time: Duration) -> Self {
        Self {
            append_time,
            ..self
        }
    }

    /// Makes the stream and its bucket if they do not exist. Changes the settings of the buckets, so that no member can
    /// empty them. Returns whether the stream was made.
    pub fn create(settings: NatsSettings) -> Result<bool> {
        let (runtime, connection) = connect(&settings)?;
        runtime.block_on(async {
            let is_missing = match info(&connection, &settings, ANSWER).await {
                Ok(_) => false,
                Err(error) if error.kind == Kind::LogMisconfigured => true,
                Err(error) => return Err(error),
            };
            if is_missing {
                let config = limits::new_stream(&settings.stream, settings.replicas);
                let name = format!("STREAM.CREATE.{}", settings.stream);
                let made = connection.call::<StreamInfo>(&name, &config, ANSWER);
                made.await?.map_err(|error| refused(&settings, &error))?;
            }
            objects::create_bucket(&connection, &settings).await?;
            guard_buckets(&connection, &settings).await?;
            Ok(is_missing)
        })
    }

    /// Describes the stream without checking it. Also returns the name of the bucket for lines that are larger than a
    /// message, if there is one, and the servers.
    pub fn describe(settings: &NatsSettings) -> Result<(StreamInfo, Option<String>, ServerInfo)> {
        let (runtime, connection) = connect(settings)?;
        let info = runtime.block_on(info(&connection, settings, ANSWER))?;
        let bucket = runtime.block_on(objects::has_bucket(&connection, settings))?;
        let bucket = bucket.then(|| objects::bucket_name(settings));
        Ok((info, bucket, connection.client.server_info()))
    }

    pub(super) fn access(&self) -> LogAccess {
        LogAccess {
            connection: self.connection.clone(),
            settings: self.settings.clone(),
            created: self.info.created.clone(),
        }
    }

    /// Waits for work, but not longer than the caller of this thread has set.
    pub(super) fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        engine::wait(self.runtime.handle(), work)
    }

    pub(super) fn note_acknowledgement(&self) {
        *lock(&self.acknowledged) = Some(Instant::now());
    }

    /// Whether a server has acknowledged an append within the last `time`.
    pub(super) fn acknowledged_in(&self, time: Duration) -> bool {
        lock(&self.acknowledged).is_some_and(|at| at.elapsed() < time)
    }

    /// The name of the stream in texts for people.
    pub(super) fn name(&self) -> String {
        format!("the stream {:?}", self.settings.stream)
    }

    pub(super) fn refused(&self, error: &ApiError) -> Error {
        refused(&self.settings, error)
    }

    pub(super) async fn info(&self, time: Duration) -> Result<StreamInfo> {
        info(&self.connection, &self.settings, time).await
    }

    /// A message of the stream, read from the stream's leader; `None` if there is no such message.
    pub(super) async fn message(
        &self,
        query: &serde_json::Value,
        time: Duration,
    ) -> Result<Option<StreamMessage>> {
        let name = format!("STREAM.MSG.GET.{}", self.settings.stream);
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let attempt = ATTEMPT.min(left).max(PAUSE);
            let called = self.connection.call::<MessageAnswer>(&name, query, attempt);
            let failed = match called.await {
                Ok(Ok(stored)) => {
                    let unreadable = || {
                        let why = format!("a message of {} cannot be read", self.name());
                        Error::new(Kind::LogForeign, why)
                    };
                    return stored.decode().map(Some).ok_or_else(unreadable);
                }
                Ok(Err(error)) if error.err_code == NO_MESSAGE => return Ok(None),
                Ok(Err(error)) => self.refused(&error),
                Err(error) => error,
            };
            if failed.kind != Kind::LogUnavailable || left <= attempt {
                return Err(failed);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The last message of a session. A server that was stopped answers with its old state for a moment after it is
    /// resumed. So if the answer is a message before `from`, this function asks again.
    pub(super) async fn last_message(
        &self,
        session: &str,
        from: Position,
    ) -> Result<Option<StreamMessage>> {
        let query = json!({ "last_by_subj": subject::subject(session) });
        let began = Instant::now();
        loop {
            let last = self.message(&query, ANSWER).await?;
            let sequence = last.as_ref().map_or(0, |last| last.sequence);
            if sequence >= from.0 {
                return Ok(last);
            }
            if began.elapsed() > STALE {
                let why = format!(
                    "{} has no message {} of session {session:?} any more; the last one is {sequence}",
                    self.name(),
                    from.0
                );
                return Err(Error::new(Kind::LogRewound, why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl LogBackend for NatsLog {
    fn append(&self, session: &str, expected: Position, lines: &[u8]) -> Result<AppendOutcome> {
        self.wait(self.publish(session, expected, lines))
    }

    fn begin_append(
        self: Arc<Self>,
        session: &str,
        expected: Position,
        lines: &Arc<Vec<u8>>,
    ) -> Option<Appending> {
        let (session, lines) = (session.to_owned(), Arc::clone(lines));
        Some(Box::pin(async move {
            self.publish(&session, expected, &lines).await
        }))
    }

    fn read<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        match self.wait(self.last_message(session, from))? {
            Some(last) if last.sequence > from.0 => {
                Ok(Box::new(SessionMessages::new(self, session, from, last)))
            }
            _ => Ok(Box::new(std::iter::empty())),
        }
    }

    fn follow<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        let followed = self.wait(FollowedMessages::open(self, session))?;
        let runtime = self.runtime.handle();
        Ok(Box::new(EndlessParts::new(
            Box::new(followed),
            runtime,
            from,
        )))
    }

    fn last(&self, session: &str) -> Result<Option<LogPart>> {
        let Some(last) = self.wait(self.last_message(session, Position::START))? else {
            return Ok(None);
        };
        if let Some(before) = last.before() {
            let mut messages = SessionMessages::new(self, session, Position(before), last);
            let part = messages.next().transpose()?;
            if let Some(part) = part.filter(|part| !part.lines.is_empty()) {
                return Ok(Some(part));
            }
        }
        // The servers cannot say which message of the session comes before a foreign message, so all messages are read.
        last_lines(self.read(session, Position::START)?)
    }

    /// The servers have no order of subjects, so the first page has all sessions.
    fn list_after(&self, after: Option<&str>) -> Result<Vec<String>> {
        match after {
            None => self.wait(sessions(&self.connection, &self.settings)),
            Some(_) => Ok(Vec::new()),
        }
    }

    fn identity(&self, session: &str) -> Result<LogIdentity> {
        Ok(LogIdentity {
            session: session.to_owned(),
            stream: self.settings.stream.clone(),
            created: self.info.created.clone(),
            subject: subject::subject(session),
        })
    }

    fn max_append(&self) -> usize {
        self.max_message()
    }

    fn max_line(&self) -> usize {
        MOST_BYTES
    }
}

impl NatsLog {
    /// The most bytes of the lines in a message.
    pub(super) fn max_message(&self) -> usize {
        let server = self.connection.client.server_info().max_payload;
        let stream = usize::try_from(self.info.config.max_msg_size)
            .ok()
            .filter(|most| *most > 0);
        server
            .min(stream.unwrap_or(usize::MAX))
            .saturating_sub(HEADER_BYTES)
    }
}

/// The ids of all sessions, sorted.
pub(super) async fn sessions(
    connection: &Connection,
    settings: &NatsSettings,
) -> Result<Vec<String>> {
    let name = format!("STREAM.INFO.{}", settings.stream);
    let mut sessions = Vec::new();
    let mut read = 0;
    loop {
        let page = json!({ "subjects_filter": subject::ALL, "offset": read });
        let called = connection.call::<StreamInfo>(&name, &page, ANSWER).await?;
        let info = called.map_err(|error| refused(settings, &error))?;
        let subjects = info.state.subjects.unwrap_or_default();
        read += subjects.len();
        sessions.extend(subjects.keys().filter_map(|of| subject::session(of)));
        if subjects.is_empty() || read >= info.total {
            sessions.sort_unstable();
            return Ok(sessions);
        }
    }
}

pub(super) async fn info(
    connection: &Connection,
    settings: &NatsSettings,
    time: Duration,
) -> Result<StreamInfo> {
    let name = format!("STREAM.INFO.{}", settings.stream);
    let until = Instant::now() + time;
    loop {
        // If a leader dies, requests to it get no answer.
        let left = until.saturating_duration_since(Instant::now());
        let attempt = ATTEMPT.min(left).max(PAUSE);
        let called = connection.call::<StreamInfo>(&name, &serde_json::Value::Null, attempt);
        match called.await {
            Err(error) if error.kind == Kind::LogUnavailable && left > attempt => {
                tokio::time::sleep(PAUSE).await;
            }
            called => return called?.map_err(|error| refused(settings, &error)),
        }
    }
}
