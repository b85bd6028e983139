//! The two tasks of a daemon that maintain the team's list: one writes the rows of changed sessions, the other reports
//! which sessions are open.

use crate::engine::TeamIndex;
use futures_util::{StreamExt, stream};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::TeamRow;
use treelined_files::lock::lock;

/// The pause between two writes of waiting rows.
const ROUND: Duration = Duration::from_secs(1);
/// The time between two writes of the daemon's row while nothing changes. This time is a third of the age at which the
/// servers forget the row.
const RENEWAL: Duration = Duration::from_secs(20);
/// The pause after a failed write.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The number of rows that are written at the same time.
const AT_ONCE: usize = 16;
/// The most rows that wait. If there are more, a row is written with the next change of its session.
const MOST_PENDING: usize = 10_000;

/// The rows that wait to be written.
#[derive(Default)]
pub(super) struct PendingRows {
    rows: Mutex<HashMap<String, TeamRow>>,
    noted: Notify,
}

/// The sessions that the daemon has open.
#[derive(Default)]
pub(super) struct OpenHere {
    /// The times at which the sessions were opened, in Unix milliseconds, by id.
    sessions: Mutex<HashMap<String, i64>>,
    changed: Notify,
    /// Whether the servers may have a row of the daemon.
    is_listed: AtomicBool,
}

impl PendingRows {
    pub(super) fn note(&self, row: TeamRow) {
        let mut rows = lock(&self.rows);
        if rows.len() >= MOST_PENDING && !rows.contains_key(&row.session_id) {
            return;
        }
        keep_newest(&mut rows, row);
        drop(rows);
        self.noted.notify_one();
    }

    /// Writes rows forever.
    pub(super) async fn write_on(&self, index: &dyn TeamIndex) {
        loop {
            self.noted.notified().await;
            let begun = Instant::now();
            let pause = match self.write_all(index).await {
                Ok(()) => ROUND,
                Err(error) => {
                    tracing::info!(%error, "rows of the team's list are written later");
                    make_missing(index, &error).await;
                    self.noted.notify_one();
                    AFTER_FAILURE
                }
            };
            sleep_until(begun + pause).await;
        }
    }

    /// Writes all waiting rows. If a write fails, its row waits again.
    pub(super) async fn write_all(&self, index: &dyn TeamIndex) -> Result<()> {
        let rows = std::mem::take(&mut *lock(&self.rows));
        let written = stream::iter(rows.into_values()).map(|row| async move {
            let written = index.write_row(row.clone()).await;
            written.map_err(|error| (row, error))
        });
        let mut written = written.buffer_unordered(AT_ONCE);
        let mut failure = None;
        while let Some(written) = written.next().await {
            if let Err((row, error)) = written {
                keep_newest(&mut lock(&self.rows), row);
                failure = Some(error);
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

fn keep_newest(rows: &mut HashMap<String, TeamRow>, row: TeamRow) {
    let waiting = rows.get(&row.session_id);
    if waiting.is_none_or(|waiting| waiting.sequence <= row.sequence) {
        rows.insert(row.session_id.clone(), row);
    }
}

impl OpenHere {
    pub(super) fn opened(&self, session: &str, since: i64) {
        lock(&self.sessions).insert(session.to_owned(), since);
        self.changed.notify_one();
    }

    pub(super) fn closed(&self, session: &str) {
        if lock(&self.sessions).remove(session).is_some() {
            self.changed.notify_one();
        }
    }

    /// Renews the daemon's row forever while a session is open. Removes the row when no session is open.
    pub(super) async fn renew_on(&self, index: &dyn TeamIndex) {
        loop {
            let begun = Instant::now();
            let pause = match self.renew(index).await {
                Ok(()) => RENEWAL,
                Err(error) => {
                    tracing::info!(%error, "the team's list does not have this daemon's sessions");
                    make_missing(index, &error).await;
                    AFTER_FAILURE
                }
            };
            // This limits the number of writes if a client opens and closes sessions all the time.
            sleep_until(begun + ROUND).await;
            let rest = (begun + pause).saturating_duration_since(Instant::now());
            let _changed = timeout(rest, self.changed.notified()).await;
        }
    }

    async fn renew(&self, index: &dyn TeamIndex) -> Result<()> {
        let sessions = lock(&self.sessions).clone();
        if sessions.is_empty() {
            return self.remove(index).await;
        }
        // The flag is set before the write, since the write may arrive without an answer.
        self.is_listed.store(true, Ordering::Relaxed);
        index.say_open(sessions.into_iter().collect()).await
    }

    /// Removes the daemon's row if the servers may have it.
    pub(super) async fn remove(&self, index: &dyn TeamIndex) -> Result<()> {
        if self.is_listed.load(Ordering::Relaxed) {
            index.say_closed().await?;
            self.is_listed.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Makes the list if the write failed because the list is missing.
async fn make_missing(index: &dyn TeamIndex, error: &Error) {
    if error.kind == Kind::LogMisconfigured
        && let Err(error) = index.ensure().await
    {
        tracing::info!(%error, "the team's list is not made");
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn of_the_rows_of_a_session_that_wait_the_newest_is_written() {
        let mut rows = HashMap::new();
        for sequence in [3, 7, 5] {
            keep_newest(&mut rows, row("a", sequence));
        }
        assert_eq!(rows.remove("a").unwrap().sequence, 7);
    }
}
