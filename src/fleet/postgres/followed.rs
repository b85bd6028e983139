//! Follows a session in the database: reads it after a notification, and after a pause without notifications.

use super::log::PgLog;
use super::notices::NewestLine;
use super::read::SessionParts;
use crate::backend::{LogPart, Position};
use crate::engine::FollowedParts;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use treelined_core::error::Result;

/// The first and the longest pause after which the database is read without a notification.
const FIRST_POLL: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_secs(10);

/// A session that is followed.
pub(super) struct FollowedLines<'a> {
    log: &'a PgLog,
    session: String,
    newest: Arc<NewestLine>,
    /// The parts that are being read, and the position before the next part.
    reading: Option<(Position, SessionParts<'a>)>,
    poll: Instant,
    poll_pause: Duration,
}

impl<'a> FollowedLines<'a> {
    pub(super) fn new(log: &'a PgLog, session: &str) -> Self {
        Self {
            log,
            session: session.to_owned(),
            newest: log.notices.of(session),
            reading: None,
            poll: Instant::now() + FIRST_POLL,
            poll_pause: FIRST_POLL,
        }
    }

    async fn next_after(&mut self, at: Position) -> Result<Option<LogPart>> {
        let (_, mut reading) = match self.reading.take() {
            Some((before, reading)) if before == at => (before, reading),
            _ => (at, SessionParts::new(self.log, &self.session, at)),
        };
        let part = reading.part().await?;
        match &part {
            Some(part) => {
                self.reading = Some((part.end, reading));
                // If the caller cannot use the part now, it asks for the part again after a pause.
                self.poll = Instant::now() + self.poll_pause;
            }
            None => {
                self.poll = Instant::now() + self.poll_pause;
                self.poll_pause = (self.poll_pause * 2).min(POLL);
            }
        }
        Ok(part)
    }

    async fn await_news(&self, at: &(dyn Fn() -> Position + Sync)) {
        while self.newest.end.swap(0, Ordering::Relaxed) <= at().0 {
            let left = self.poll.saturating_duration_since(Instant::now());
            let arrived = tokio::time::timeout(left, self.newest.arrived.notified());
            if arrived.await.is_err() {
                return;
            }
        }
    }
}

impl FollowedParts for FollowedLines<'_> {
    fn stored(&mut self, at: Position) -> BoxFuture<'_, Result<Option<LogPart>>> {
        Box::pin(self.next_after(at))
    }

    fn news<'b>(&'b mut self, at: &'b (dyn Fn() -> Position + Sync)) -> BoxFuture<'b, ()> {
        Box::pin(self.await_news(at))
    }
}
