//! Follows a session in the stream: the appends of others are read soon after they are published.
//!
//! The servers pass a publish to the subscribers of its subject, but not to the connection that sent it. Such a message
//! is only a **hint**: it is not stored yet, and may be refused. So the stream is read after a hint. Hints are lost
//! when a server dies, so the stream is also read after a pause without hints. A consumer for each session would cost
//! the servers more, and would send each append of this connection back to it.

use super::backend::{LogPart, Position};
use super::connection::{ANSWER, unavailable};
use super::messages::{SessionMessages, StreamMessage};
use super::nats_log::NatsLog;
use super::subject;
use async_nats::Subscriber;
use futures_util::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use treelined_core::error::Result;

/// The pauses without a hint after which the stream is read. The first pause is shorter, since another server may have
/// got the subscription late.
const FIRST_POLL: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_secs(10);
/// If a hint names a message that is not there yet, the stream is read again after pauses that double, for [`HOPE`] at
/// most.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);
const HOPE: Duration = Duration::from_secs(2);

/// The messages of a session, as they arrive in the stream.
pub(super) struct FollowedMessages<'a> {
    log: &'a NatsLog,
    session: String,
    hints: Hints,
    /// The messages that are being read.
    reading: Option<SessionMessages<'a>>,
    /// The time at which the stream is read without a hint.
    poll: Instant,
    poll_pause: Duration,
    hope: Option<Hope>,
}

/// A message that a hint names and that is not in the stream yet.
struct Hope {
    since: Instant,
    pause: Duration,
}

/// The hints of one session. A separate task receives them, and keeps only one number.
struct Hints {
    newest: Arc<NewestHint>,
    receiving: JoinHandle<()>,
}

#[derive(Default)]
struct NewestHint {
    /// The newest hint: the sequence of the message before the hinted message, plus one. 0 if there is no new hint.
    before: AtomicU64,
    arrived: Notify,
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

impl Hints {
    fn new(subscriber: Subscriber) -> Self {
        let newest = Arc::<NewestHint>::default();
        Self {
            receiving: tokio::spawn(receive(subscriber, Arc::clone(&newest))),
            newest,
        }
    }
}

async fn receive(mut subscriber: Subscriber, newest: Arc<NewestHint>) {
    while let Some(message) = subscriber.next().await {
        let hint = StreamMessage {
            sequence: 0,
            headers: message.headers.unwrap_or_default(),
            payload: Vec::new(),
        };
        // A message without the header that `before` reads is not stored, or comes from another program. If it is
        // stored, the next poll finds it.
        if let Some(before) = hint.before() {
            newest
                .before
                .fetch_max(before.saturating_add(1), Ordering::Relaxed);
            newest.arrived.notify_one();
        }
    }
}

impl<'a> FollowedMessages<'a> {
    /// Subscribes. Later publishes give hints.
    pub(super) async fn open(log: &'a NatsLog, session: &str) -> Result<Self> {
        let client = &log.connection.client;
        let subscribing = async {
            let subscriber = client.subscribe(subject::subject(session)).await;
            let subscriber = subscriber.map_err(|error| error.to_string())?;
            let flushed = client.flush().await;
            flushed.map_err(|error| error.to_string())?;
            Ok::<Subscriber, String>(subscriber)
        };
        let subscribed = tokio::time::timeout(ANSWER, subscribing).await;
        let subscribed = subscribed.unwrap_or_else(|_| Err("no answer".to_owned()));
        let subscriber = subscribed
            .map_err(|why| unavailable(format!("{} cannot be followed: {why}", log.name())))?;
        Ok(Self {
            log,
            session: session.to_owned(),
            hints: Hints::new(subscriber),
            reading: None,
            poll: Instant::now() + FIRST_POLL,
            poll_pause: FIRST_POLL,
            hope: None,
        })
    }

    /// The next message after `at`; `None` at the end of the stream. `at` must never decrease.
    pub(super) async fn stored(&mut self, at: Position) -> Result<Option<LogPart>> {
        if self.reading.as_ref().is_some_and(|it| it.position() != at) {
            self.reading = None;
        }
        if self.reading.is_none() {
            let last = self.log.last_message(&self.session, at).await?;
            let last = last.filter(|last| last.sequence > at.0);
            let session = &self.session;
            self.reading = last.map(|last| SessionMessages::new(self.log, session, at, last));
        }
        let Some(reading) = &mut self.reading else {
            self.poll = Instant::now() + self.poll_pause;
            self.poll_pause = (self.poll_pause * 2).min(POLL);
            return Ok(None);
        };
        let part = reading.part().await?;
        // If the caller cannot use the message yet, it gets the message again at the next poll.
        self.poll = Instant::now() + self.poll_pause;
        if !reading.goes_on() {
            self.reading = None;
        }
        self.hope = None;
        Ok(Some(part))
    }

    /// Waits until the stream may have a message after `at`. The future can be dropped and the function called again.
    pub(super) async fn news(&mut self, at: &(dyn Fn() -> Position + Sync)) {
        if let Some(hope) = &mut self.hope
            && hope.since.elapsed() < HOPE
        {
            tokio::time::sleep(hope.pause).await;
            hope.pause = (hope.pause * 2).min(LAST_PAUSE);
            return;
        }
        self.hope = None;
        loop {
            let newest = &self.hints.newest;
            if newest.before.swap(0, Ordering::Relaxed) > at().0 {
                self.hope = Some(Hope {
                    since: Instant::now(),
                    pause: FIRST_PAUSE,
                });
                return;
            }
            let left = self.poll.saturating_duration_since(Instant::now());
            let arrived = tokio::time::timeout(left, newest.arrived.notified());
            if arrived.await.is_err() {
                return;
            }
        }
    }
}
