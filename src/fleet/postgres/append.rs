//! Appends to a session: one call of a function that compares and sets. It is repeated until its outcome is known or
//! its time is over. Each append has an id, with which a repeated call finds the lines of an earlier call.

use super::log::PgLog;
use super::pool::{ATTEMPT, PAUSE, Params};
use super::refusal::{Failure, away};
use crate::acknowledged::worth;
use crate::backend::{AppendOutcome, Position};
use crate::replica;
use std::time::{Duration, Instant};
use tokio_postgres::types::Type;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::random_token;
use treelined_files::clock::SystemSource;
use treelined_files::lock::lock;

const STATEMENT: &str = "SELECT ending, commits, standbys FROM treelined.append($1, $2, $3::text::uuid, $4::text::uuid, $5)";
/// After an answer that was not `replicated`, no answer counts as `replicated` for this time. Appends of other sessions
/// may still wait for their answers.
const LESS: Duration = Duration::from_secs(60);

/// The most appends with an unknown outcome that are remembered.
const MOST_OPEN: usize = 1024;

/// One append.
struct Attempt<'a> {
    session: &'a str,
    expected: i64,
    /// The id of the append that made the expected end, if it is known.
    before: Option<String>,
    batch: String,
    lines: Vec<&'a [u8]>,
}

impl PgLog {
    /// Appends lines. Fails with `durabilityUnknown` if the lines may be in the database, or may appear there later.
    pub(super) async fn append_lines(
        &self,
        session: &str,
        expected: Position,
        lines: &[u8],
    ) -> Result<AppendOutcome> {
        let room = self.in_flight.room(lines.len(), self.append_time).await?;
        let attempt = Attempt {
            session,
            expected: number(expected)?,
            before: self.append_at(session, expected.0),
            batch: self
                .open_append(session, expected, lines)
                .unwrap_or_else(|| random_token(&SystemSource)),
            lines: lines.split_inclusive(|byte| *byte == b'\n').collect(),
        };
        let appended = self.try_on(&attempt).await;
        room.end();
        if appended
            .as_ref()
            .is_err_and(|error| error.kind == Kind::DurabilityUnknown)
        {
            self.note_open_append(&attempt, expected, lines);
        }
        appended
    }

    async fn try_on(&self, attempt: &Attempt<'_>) -> Result<AppendOutcome> {
        let until = Instant::now() + self.append_time;
        // Whether the database may have run an attempt and its answer was lost.
        let mut is_open = false;
        loop {
            let failure = match self.attempt(attempt, until).await {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => failure,
            };
            let (may_be_done, why) = match failure {
                Failure::Refused(error) if is_open && error.kind != Kind::SessionErased => {
                    return Err(unknown(&error));
                }
                Failure::Refused(error) => return Err(error),
                Failure::Later { may_be_done, why } => (may_be_done, why),
            };
            is_open |= may_be_done;
            if Instant::now() + PAUSE >= until {
                return Err(if is_open { unknown(&why) } else { why });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attempt(
        &self,
        attempt: &Attempt<'_>,
        until: Instant,
    ) -> std::result::Result<AppendOutcome, Failure> {
        let Attempt {
            session,
            expected,
            before,
            batch,
            lines,
        } = attempt;
        let until = until.min(Instant::now() + ATTEMPT);
        let params: Params<'_> = &[
            (session, Type::TEXT),
            (expected, Type::INT8),
            (before, Type::TEXT),
            (batch, Type::TEXT),
            (lines, Type::BYTEA_ARRAY),
        ];
        let answer = self.pool.ask(STATEMENT, params, until).await?;
        let damaged = || Failure::Refused(away("the database gave an answer without rows"));
        let row = answer.rows.first().ok_or_else(damaged)?;
        let wrong = |error: tokio_postgres::Error| {
            Failure::Refused(Error::new(Kind::LogMisconfigured, error.to_string()))
        };
        let ending: Option<i64> = row.try_get(0).map_err(wrong)?;
        let Some(end) = ending.and_then(|end| u64::try_from(end).ok()) else {
            return Ok(AppendOutcome::Conflict);
        };
        let (commits, standbys) = (
            row.try_get(1).map_err(wrong)?,
            row.try_get(2).map_err(wrong)?,
        );
        self.note_answer(commits, standbys, answer.is_cut_short);
        self.note_end(session, end, batch.clone());
        self.notices.say(session, end);
        Ok(AppendOutcome::Appended(Position(end)))
    }

    /// The id of an earlier append of the same lines at the same position, if its outcome is unknown.
    fn open_append(&self, session: &str, expected: Position, lines: &[u8]) -> Option<String> {
        let open = lock(&self.open);
        let (hash, batch) = open.get(&(session.to_owned(), expected.0))?;
        (*hash == replica::hash(lines)).then(|| batch.clone())
    }

    fn note_open_append(&self, attempt: &Attempt<'_>, expected: Position, lines: &[u8]) {
        let mut open = lock(&self.open);
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        let place = (attempt.session.to_owned(), expected.0);
        open.insert(place, (replica::hash(lines), attempt.batch.clone()));
    }

    fn note_answer(&self, commits: &str, standbys: &str, is_cut_short: bool) {
        let worth = worth(commits, standbys);
        let mut acknowledged = lock(&self.acknowledged);
        acknowledged.at = Some(Instant::now());
        acknowledged.is_synced = worth != Durability::Os;
        acknowledged.is_replicated = worth == Durability::Replicated && !is_cut_short;
        if !acknowledged.is_replicated {
            acknowledged.less = acknowledged.at;
        }
    }

    /// The durability of an append that the database has answered.
    pub(super) fn worth(&self) -> Durability {
        let acknowledged = lock(&self.acknowledged);
        let less = acknowledged.less.is_some_and(|at| at.elapsed() < LESS);
        match (acknowledged.is_replicated && !less, acknowledged.is_synced) {
            (true, _) => Durability::Replicated,
            (false, true) => Durability::Always,
            (false, false) => Durability::Os,
        }
    }
}

/// A position as a number of the database.
pub(super) fn number(position: Position) -> Result<i64> {
    i64::try_from(position.0).map_err(|_| {
        let why = format!("no session of a database has {} lines", position.0);
        Error::new(Kind::LogRewound, why)
    })
}

/// The error for lines that may be in the database, or may appear there later. If the append is repeated, the second
/// append finds these lines by their bytes.
fn unknown(why: &Error) -> Error {
    let why = format!("the lines may be in the team's stream: {}", why.message);
    Error::new(Kind::DurabilityUnknown, why)
}
