//! PostgreSQL as the servers of a team.

use super::facts;
use super::followed::FollowedLines;
use super::index::PgIndex;
use super::log::PgLog;
use super::pool::Params;
use super::read::SessionParts;
use super::refusal::{unreadable, unsigned};
use crate::backend::{
    AppendOutcome, Appending, LogBackend, LogIdentity, LogPart, LogParts, Position, StoredLine,
};
use crate::engine::{EndlessParts, Engine, FollowedLog, TeamIndex};
use crate::quiet::QuietSession;
use crate::settings::Retention;
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_postgres::types::Type;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;

/// The most bytes of an append whose lines can be split into several appends.
const MOST_APPEND: usize = 4 << 20;
/// The most bytes of an append that has only one line.
const MOST_LINE: usize = 64 << 20;
const IDS: &str = "SELECT id FROM treelined.sessions WHERE id > $1 ORDER BY id LIMIT 10000";
const LAST: &str = "\
SELECT session.last, entry.line FROM treelined.sessions AS session JOIN treelined.entries AS entry
ON entry.session = session.id AND entry.seq = session.last WHERE session.id = $1";
/// A line, and the user whose connection added the line.
const LINE: &str = "SELECT line, author FROM treelined.entries WHERE session = $1 AND seq = $2";

impl LogBackend for PgLog {
    fn append(&self, session: &str, expected: Position, lines: &[u8]) -> Result<AppendOutcome> {
        self.wait(self.append_lines(session, expected, lines))
    }

    fn begin_append(
        self: Arc<Self>,
        session: &str,
        expected: Position,
        lines: &Arc<Vec<u8>>,
    ) -> Option<Appending> {
        let (session, lines) = (session.to_owned(), Arc::clone(lines));
        Some(Box::pin(async move {
            self.append_lines(&session, expected, &lines).await
        }))
    }

    fn read<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        let mut parts = SessionParts::new(self, session, from);
        self.wait(parts.fill())?;
        Ok(Box::new(parts))
    }

    fn follow<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        let followed = Box::new(FollowedLines::new(self, session));
        let runtime = self.runtime.handle();
        Ok(Box::new(EndlessParts::new(followed, runtime, from)))
    }

    fn last(&self, session: &str) -> Result<Option<LogPart>> {
        let answer = self.wait(self.ask(LAST, &[(&session, Type::TEXT)]))?;
        if answer.rows.is_empty() {
            self.wait(self.check_not_erased(session))?;
        }
        let part = answer.rows.first().map(|row| {
            Ok(LogPart {
                end: Position(unsigned(row.try_get(0).map_err(unreadable)?)),
                lines: row.try_get(1).map_err(unreadable)?,
            })
        });
        part.transpose()
    }

    fn line(&self, session: &str, number: u64) -> Result<Option<StoredLine>> {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let params: Params<'_> = &[(&session, Type::TEXT), (&number, Type::INT8)];
        let answer = self.wait(self.ask(LINE, params))?;
        if answer.rows.is_empty() {
            self.wait(self.check_not_erased(session))?;
        }
        let line = answer.rows.first().map(|row| {
            Ok(StoredLine {
                bytes: row.try_get(0).map_err(unreadable)?,
                account: Some(row.try_get(1).map_err(unreadable)?),
            })
        });
        line.transpose()
    }

    fn list_after(&self, after: Option<&str>) -> Result<Vec<String>> {
        let after = after.unwrap_or_default();
        let answer = self.wait(self.ask(IDS, &[(&after, Type::TEXT)]))?;
        let id = |row: &tokio_postgres::Row| row.try_get(0).map_err(unreadable);
        answer.rows.iter().map(id).collect()
    }

    fn identity(&self, session: &str) -> Result<LogIdentity> {
        Ok(LogIdentity {
            session: session.to_owned(),
            stream: self.database.clone(),
            created: self.created.clone(),
            subject: format!("treelined.sessions.{session}"),
        })
    }

    fn durability(&self) -> Durability {
        self.worth()
    }

    fn max_append(&self) -> usize {
        MOST_APPEND
    }

    fn max_line(&self) -> usize {
        MOST_LINE
    }
}

impl Engine for PgLog {
    fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    fn is_connected(&self) -> bool {
        !self.notices.is_lost()
    }

    fn acknowledged_in(&self, time: Duration) -> bool {
        let acknowledged = lock(&self.acknowledged);
        acknowledged.at.is_some_and(|at| at.elapsed() < time)
    }

    fn fault(&self) -> BoxFuture<'_, Result<Option<Error>>> {
        Box::pin(async {
            let facts = facts::read(&self.pool).await?;
            let fault = facts.faults().into_iter().next();
            Ok(fault.map(|why| Error::new(Kind::LogMisconfigured, why)))
        })
    }

    fn followed<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<FollowedLog<'a>>> {
        Box::pin(async move { Ok(Box::new(FollowedLines::new(self, session)) as FollowedLog<'a>) })
    }

    fn erase<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.erase_session(session))
    }

    fn quiet(&self, retention: Retention, most: usize) -> BoxFuture<'_, Result<Vec<QuietSession>>> {
        Box::pin(self.quiet_sessions(retention, most))
    }

    fn open_sessions(&self) -> BoxFuture<'_, Result<HashSet<String>>> {
        Box::pin(self.all_open_sessions())
    }

    fn index(&self, host: &str, daemon: &str) -> Box<dyn TeamIndex> {
        let place = (self.database.clone(), self.created.clone());
        Box::new(PgIndex::new(self.pool.clone(), place, host, daemon))
    }
}
