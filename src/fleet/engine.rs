//! The servers of a team: everything that a daemon and the commands need from the servers, except the lines of
//! sessions. The code that engines share does not know which engine keeps the lines.

use super::backend::{LogBackend, LogPart, Position};
use super::patience;
use super::quiet::QuietSession;
use super::settings::Retention;
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::time::Duration;
use tokio::runtime::Handle;
use treelined_core::error::{Error, Result};
use treelined_core::team::{TeamFound, TeamList, TeamQuery, TeamQuestion, TeamRow};

/// The connected servers of a team. A lost connection is made again in the background.
pub trait Engine: LogBackend {
    /// The threads of the connection. Other work can run on them too.
    fn runtime(&self) -> &Handle;

    /// Whether a request would be sent at once, and not wait for a connection.
    fn is_connected(&self) -> bool;

    /// Whether a server has acknowledged an append within the last `time`.
    fn acknowledged_in(&self, time: Duration) -> bool;

    /// The reason why the log may lose acknowledged lines, if there is one. Its settings can change at any time. Fails
    /// if the servers do not answer.
    fn fault(&self) -> BoxFuture<'_, Result<Option<Error>>>;

    /// Follows a session. Later appends are noticed soon.
    fn followed<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<FollowedLog<'a>>>;

    /// Removes all lines of a session permanently, if the engine can. The id of the session cannot be used again: reads
    /// and appends fail with `sessionErased`.
    fn erase<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>>;

    /// At most `most` sessions without activity that must be closed or erased.
    fn quiet(&self, retention: Retention, most: usize) -> BoxFuture<'_, Result<Vec<QuietSession>>>;

    /// The ids of the sessions that any daemon has open, including this daemon. Fails if the open sessions of a daemon
    /// are not known.
    fn open_sessions(&self) -> BoxFuture<'_, Result<HashSet<String>>>;

    /// The team's list, for the daemon with this key on this machine. For a command, both are empty.
    fn index(&self, host: &str, daemon: &str) -> Box<dyn TeamIndex>;
}

/// The parts of a session that is followed.
pub(super) type FollowedLog<'a> = Box<dyn FollowedParts + 'a>;

/// The parts of a session, as they arrive.
pub trait FollowedParts: Send {
    /// The next part after `at`; `None` at the end of the log. `at` must never decrease.
    fn stored(&mut self, at: Position) -> BoxFuture<'_, Result<Option<LogPart>>>;

    /// Waits until the log may have a part after `at`. The future can be dropped and the function called again.
    fn news<'a>(&'a mut self, at: &'a (dyn Fn() -> Position + Sync)) -> BoxFuture<'a, ()>;
}

/// The team's list. It has a row for each session, and the sessions that each daemon has open. No append waits for it.
pub trait TeamIndex: Send + Sync {
    /// Makes the missing parts of the list, if the servers permit it. Returns the names of the parts that were made.
    fn ensure(&self) -> BoxFuture<'_, Result<Vec<String>>>;

    /// Writes a row, unless the list has a row of the session that is as new or newer.
    fn write_row(&self, row: TeamRow) -> BoxFuture<'_, Result<()>>;

    /// Reports which sessions this daemon has open, with the times at which they were opened, in Unix milliseconds. The
    /// servers forget the report after a minute.
    fn say_open(&self, sessions: Vec<(String, i64)>) -> BoxFuture<'_, Result<()>>;

    /// Reports that this daemon has no session open.
    fn say_closed(&self) -> BoxFuture<'_, Result<()>>;

    /// A page of the list.
    fn list<'a>(&'a self, query: &'a TeamQuery) -> BoxFuture<'a, Result<TeamList>>;

    /// Makes lines of one session known to [`Self::find`]. Returns false if there is nothing to do.
    fn add_texts(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async { Ok(false) })
    }

    /// The lines that may answer a question. Fails with `invalidParams` if the servers cannot search.
    fn find<'a>(&'a self, question: &'a TeamQuestion) -> BoxFuture<'a, Result<TeamFound>>;
}

/// Waits for work, but not longer than the caller of this thread has set.
pub(super) fn wait<T>(runtime: &Handle, work: impl Future<Output = Result<T>>) -> Result<T> {
    let Some(until) = patience::until() else {
        return runtime.block_on(work);
    };
    if patience::is_over(Some(until)) {
        return Err(patience::over());
    }
    runtime.block_on(async {
        let done = tokio::time::timeout_at(until.into(), work).await;
        done.unwrap_or_else(|_| Err(patience::over()))
    })
}

/// All parts of a session after a position. The parts do not end.
pub(super) struct EndlessParts<'a> {
    followed: FollowedLog<'a>,
    runtime: Handle,
    at: Position,
    has_failed: bool,
}

impl<'a> EndlessParts<'a> {
    pub(super) fn new(followed: FollowedLog<'a>, runtime: &Handle, from: Position) -> Self {
        Self {
            followed,
            runtime: runtime.clone(),
            at: from,
            has_failed: false,
        }
    }

    async fn part(&mut self) -> Result<LogPart> {
        let at = self.at;
        loop {
            if let Some(part) = self.followed.stored(at).await? {
                self.at = part.end;
                return Ok(part);
            }
            self.followed.news(&|| at).await;
        }
    }
}

impl Iterator for EndlessParts<'_> {
    type Item = Result<LogPart>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let runtime = self.runtime.clone();
        let part = wait(&runtime, self.part());
        self.has_failed = part.is_err();
        Some(part)
    }
}
