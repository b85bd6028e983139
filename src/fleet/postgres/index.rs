//! The team's list in tables: a row for each session, and a row for each daemon that has open sessions. A list is a
//! page of rows, which the database sorts and filters (`pages`), together with the sessions that have a file here.

use super::pages;
use super::pool::{ANSWER, Params, Pool, ask};
use super::refusal::{Failure, unreadable};
use super::texts;
use crate::engine::TeamIndex;
use crate::subject;
use crate::team::parts::ListParts;
use crate::team::presence;
use crate::team::row::StoredRow;
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use treelined_core::error::Result;
use treelined_core::team::{TeamFound, TeamList, TeamPage, TeamQuery, TeamQuestion, TeamRow};

/// The most erased sessions that a list knows.
const MOST_ERASED: usize = 32_000;
/// The most sessions with a file here that a list describes.
const MOST_HERE: usize = 10_000;
const DESCRIBE: &str = "SELECT treelined.describe($1, $2, $3)";
const SAY_OPEN: &str = "SELECT treelined.say_open($1, $2)";
const SAY_CLOSED: &str = "SELECT treelined.say_closed($1)";
/// The last changes, and the time of the server's clock, in microseconds.
const CHANGES: &str = "\
SELECT concat_ws(' ', (SELECT max(changed) FROM treelined.rows), (SELECT max(made) FROM treelined.sessions),
    (SELECT max(at) FROM treelined.erased)), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const HERE: &str = "\
SELECT session, body FROM treelined.rows WHERE session = ANY($1)";
const ERASED: &str = "\
SELECT session FROM treelined.erased
WHERE at > to_timestamp($1::float8 / 1000000) - interval '1 minute' ORDER BY at DESC LIMIT $2";
const OPEN: &str = "\
SELECT body FROM treelined.presence
WHERE daemon <> $1 AND at > clock_timestamp() - interval '1 minute' ORDER BY daemon LIMIT 10000";

/// The team's list.
pub(super) struct PgIndex {
    pool: Pool,
    database: String,
    created: String,
    host: String,
    /// The key of this daemon. Empty for a command.
    daemon: String,
    erased: tokio::sync::Mutex<ErasedSessions>,
}

/// The sessions that were erased, as they were last read.
#[derive(Default)]
struct ErasedSessions {
    ids: HashSet<String>,
    /// The server's clock at the last read, in microseconds; 0 before the first read.
    at: i64,
}

impl PgIndex {
    pub(super) fn new(
        pool: Pool,
        (database, created): (String, String),
        host: &str,
        daemon: &str,
    ) -> Self {
        Self {
            pool,
            database,
            created,
            host: host.to_owned(),
            daemon: daemon.to_owned(),
            erased: tokio::sync::Mutex::default(),
        }
    }

    /// Runs a statement that writes, with one attempt.
    async fn write(&self, statement: &str, params: Params<'_>) -> Result<()> {
        let written = self.pool.ask(statement, params, Instant::now() + ANSWER);
        written.await.map(drop).map_err(Failure::error)
    }

    async fn read(&self, query: &TeamQuery) -> Result<TeamList> {
        let here = query.here.get(..MOST_HERE).unwrap_or(&query.here);
        let ids: Params<'_> = &[(&here, Type::TEXT_ARRAY)];
        let others: Params<'_> = &[(&self.daemon, Type::TEXT)];
        // The statements run at the same time, each on its own connection.
        let (changes, known, page, open) = tokio::try_join!(
            ask(&self.pool, CHANGES, &[]),
            ask(&self.pool, HERE, ids),
            pages::read(&self.pool, query, here),
            ask(&self.pool, OPEN, others),
        )?;
        let mut parts = ListParts::default();
        for row in page.rows.iter().chain(&known.rows) {
            self.add(row, &mut parts)?;
        }
        let open: std::result::Result<Vec<String>, _> =
            open.rows.iter().map(|row| row.try_get(0)).collect();
        let open = open.map_err(unreadable)?;
        parts.add_presences(open.iter().map(String::as_bytes));
        let changes = changes.rows.first();
        let changed: Option<(String, i64)> = changes
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .transpose()
            .map_err(unreadable)?;
        let (changed, now) = changed.unwrap_or_default();
        let mut mark = DefaultHasher::new();
        (changed, open).hash(&mut mark);
        let mut list = parts.list(&self.database);
        list.erased = self.erased(now).await?;
        list.page = Some(TeamPage {
            count: page.count,
            is_at_least: page.is_at_least,
            next: page.next,
            mark: mark.finish(),
        });
        Ok(list)
    }

    /// Adds a row with the id of a session and its description, which may be empty.
    fn add(&self, row: &Row, parts: &mut ListParts) -> Result<()> {
        let session: String = row.try_get(0).map_err(unreadable)?;
        let body: String = row.try_get(1).map_err(unreadable)?;
        let stored = StoredRow::decode(&subject::key(&session), body.as_bytes());
        parts.add_damaged(usize::from(stored.is_none() && !body.is_empty()));
        // A row that describes a session of earlier tables says nothing about the sessions of these tables.
        let stored = stored.filter(|stored| stored.stream_created == self.created);
        parts.add(session, None, stored.map(|stored| stored.row));
        Ok(())
    }

    /// The sessions that were erased until `now`. Reads only the sessions that were erased since a minute before the
    /// last read, by the clock of the server. The minute is for late commits.
    async fn erased(&self, now: i64) -> Result<HashSet<String>> {
        let mut erased = self.erased.lock().await;
        let most = i64::try_from(MOST_ERASED).unwrap_or(i64::MAX);
        let since: Params<'_> = &[(&precise(erased.at), Type::FLOAT8), (&most, Type::INT8)];
        for row in ask(&self.pool, ERASED, since).await?.rows {
            if erased.ids.len() < MOST_ERASED {
                erased.ids.insert(row.try_get(0).map_err(unreadable)?);
            }
        }
        erased.at = now;
        Ok(erased.ids.clone())
    }
}

/// Converts a time for the database, which has no function for whole microseconds.
#[allow(
    clippy::cast_precision_loss,
    reason = "a minute of overlap is less precise"
)]
fn precise(micros: i64) -> f64 {
    micros as f64
}

impl TeamIndex for PgIndex {
    /// The tables of the list are made together with the other tables.
    fn ensure(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn write_row(&self, row: TeamRow) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let session = row.session_id.clone();
            let sequence = i64::try_from(row.sequence).unwrap_or(i64::MAX);
            let stored = StoredRow {
                row,
                stream_created: self.created.clone(),
            };
            let body = String::from_utf8(stored.encode()).unwrap_or_default();
            self.write(
                DESCRIBE,
                &[
                    (&session, Type::TEXT),
                    (&sequence, Type::INT8),
                    (&body, Type::TEXT),
                ],
            )
            .await
        })
    }

    fn say_open(&self, sessions: Vec<(String, i64)>) -> BoxFuture<'_, Result<()>> {
        let body = presence::encode(&self.host, &self.daemon, sessions);
        let body = String::from_utf8(body).unwrap_or_default();
        Box::pin(async move {
            let params: Params<'_> = &[(&self.daemon, Type::TEXT), (&body, Type::TEXT)];
            self.write(SAY_OPEN, params).await
        })
    }

    fn say_closed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.write(SAY_CLOSED, &[(&self.daemon, Type::TEXT)]).await })
    }

    fn list<'a>(&'a self, query: &'a TeamQuery) -> BoxFuture<'a, Result<TeamList>> {
        Box::pin(self.read(query))
    }

    fn add_texts(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(texts::add(&self.pool))
    }

    fn find<'a>(&'a self, question: &'a TeamQuestion) -> BoxFuture<'a, Result<TeamFound>> {
        Box::pin(texts::find(&self.pool, question))
    }
}
