//! The team's list in tables: a row for each session, and a row for each daemon that has sessions open. A list reads
//! the changes since the last list by the clock of the server. It goes back a minute further, since a commit may come
//! late.

use super::pool::{ANSWER, Params, Pool, ask};
use super::refusal::{Failure, unreadable, unsigned};
use crate::engine::TeamIndex;
use crate::subject;
use crate::team::cache::{BucketValue, TeamCache};
use crate::team::presence;
use crate::team::row::StoredRow;
use futures_util::future::BoxFuture;
use std::collections::{BTreeSet, HashSet};
use std::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use treelined_core::budget::TEAM_BYTES;
use treelined_core::error::Result;
use treelined_core::team::{TeamList, TeamRow};

/// The most rows that one read returns; it returns the newest rows. Fewer rows can fill the budget of the list.
const MOST_ROWS: i64 = 32_000;
/// The most erased sessions that a list knows.
const MOST_ERASED: usize = 32_000;
const DESCRIBE: &str = "SELECT treelined.describe($1, $2, $3)";
const SAY_OPEN: &str = "SELECT treelined.say_open($1, $2)";
const SAY_CLOSED: &str = "SELECT treelined.say_closed($1)";
/// The time of the server's clock, in microseconds.
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const ROWS: &str = "\
SELECT session, body, (extract(epoch FROM changed) * 1000000)::bigint FROM (
    SELECT session, body, changed,
        sum(octet_length(body)) OVER (ORDER BY changed DESC ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before
    FROM treelined.rows WHERE changed > to_timestamp($1::float8 / 1000000) - interval '1 minute'
    ORDER BY changed DESC LIMIT $2
) AS newest WHERE before < $3 ORDER BY changed DESC";
const SESSIONS: &str = "\
SELECT id FROM treelined.sessions
WHERE made > to_timestamp($1::float8 / 1000000) - interval '1 minute' ORDER BY made DESC LIMIT $2";
const ERASED: &str = "\
SELECT session FROM treelined.erased
WHERE at > to_timestamp($1::float8 / 1000000) - interval '1 minute' ORDER BY at DESC LIMIT $2";
const OPEN: &str = "\
SELECT body FROM treelined.presence
WHERE daemon <> $1 AND at > clock_timestamp() - interval '1 minute' ORDER BY daemon LIMIT 10000";

/// The team's list.
pub(super) struct PgIndex {
    pool: Pool,
    created: String,
    host: String,
    /// The key of this daemon. Empty for a command.
    daemon: String,
    reader: tokio::sync::Mutex<ListReader>,
}

/// The list as it was last read.
struct ListReader {
    cache: TeamCache,
    ids: BTreeSet<String>,
    id_bytes: usize,
    /// The server's clock at the last read, in microseconds; 0 before the first read.
    at: i64,
    /// The rows of the last read, with their times.
    rows: Vec<(String, i64)>,
    open: Vec<String>,
    erased: HashSet<String>,
}

impl PgIndex {
    pub(super) fn new(
        pool: Pool,
        (database, created): (String, String),
        host: &str,
        daemon: &str,
    ) -> Self {
        let mut cache = TeamCache::new(&database, &created);
        // The tables never have a row that describes more lines than the session has, so no row is refused for its
        // sequence.
        cache.take_last(u64::MAX);
        Self {
            pool,
            created,
            host: host.to_owned(),
            daemon: daemon.to_owned(),
            reader: tokio::sync::Mutex::new(ListReader {
                cache,
                ids: BTreeSet::new(),
                id_bytes: 0,
                at: 0,
                rows: Vec::new(),
                open: Vec::new(),
                erased: HashSet::new(),
            }),
        }
    }

    /// Writes, with one attempt.
    async fn write(&self, statement: &str, params: Params<'_>) -> Result<()> {
        let written = self.pool.ask(statement, params, Instant::now() + ANSWER);
        written.await.map(drop).map_err(Failure::error)
    }

    async fn read(&self, reader: &mut ListReader) -> Result<bool> {
        let now = ask(&self.pool, NOW, &[]).await?;
        let now: i64 = now
            .rows
            .first()
            .map_or(Ok(0), |row| row.try_get(0))
            .map_err(unreadable)?;
        let since = precise(reader.at);
        let most_bytes = i64::try_from(TEAM_BYTES).unwrap_or(i64::MAX);
        let changed: Params<'_> = &[
            (&since, Type::FLOAT8),
            (&MOST_ROWS, Type::INT8),
            (&most_bytes, Type::INT8),
        ];
        let rows = ask(&self.pool, ROWS, changed).await?.rows;
        let mut is_new = reader.take_rows(&rows)?;
        let made: Params<'_> = &[(&since, Type::FLOAT8), (&MOST_ROWS, Type::INT8)];
        let ids = ask(&self.pool, SESSIONS, made).await?.rows;
        is_new |= reader.take_ids(&ids)?;
        // This is read after the rows, since an erasure removes its row.
        let erased = ask(&self.pool, ERASED, made).await?.rows;
        is_new |= reader.take_erased(&erased)?;
        let others: Params<'_> = &[(&self.daemon, Type::TEXT)];
        let open = ask(&self.pool, OPEN, others).await?.rows;
        is_new |= reader.take_open(&open)?;
        reader.at = now;
        Ok(is_new)
    }
}

/// Whether the database has more rows than one read returns.
fn is_cut(rows: &[Row]) -> bool {
    i64::try_from(rows.len()).is_ok_and(|rows| rows >= MOST_ROWS)
}

/// Converts a time for the database, which has no function for whole microseconds.
#[allow(
    clippy::cast_precision_loss,
    reason = "a minute of overlap is less precise"
)]
fn precise(micros: i64) -> f64 {
    micros as f64
}

impl ListReader {
    /// Takes rows, which come with the newest first. Returns whether one of them is new.
    fn take_rows(&mut self, rows: &[Row]) -> Result<bool> {
        let mut seen = Vec::with_capacity(rows.len());
        let mut bytes = 0;
        for row in rows.iter().rev() {
            let session: String = row.try_get(0).map_err(unreadable)?;
            let body: String = row.try_get(1).map_err(unreadable)?;
            let changed: i64 = row.try_get(2).map_err(unreadable)?;
            bytes += body.len();
            self.cache.take_row(BucketValue {
                key: subject::key(&session),
                value: body.into_bytes(),
                revision: unsigned(changed),
            });
            seen.push((session, changed));
        }
        if is_cut(rows) || bytes >= TEAM_BYTES {
            self.cache.note_cut();
        }
        let is_new = seen != self.rows;
        self.rows = seen;
        Ok(is_new)
    }

    fn take_ids(&mut self, rows: &[Row]) -> Result<bool> {
        let before = self.ids.len();
        let mut is_cut = is_cut(rows);
        for row in rows {
            let id: String = row.try_get(0).map_err(unreadable)?;
            let bytes = id.len() + size_of::<String>();
            if self.id_bytes + bytes > TEAM_BYTES {
                is_cut = true;
            } else if self.ids.insert(id) {
                self.id_bytes += bytes;
            }
        }
        if is_cut {
            self.cache.note_cut();
        }
        let is_new = self.ids.len() != before;
        if is_new {
            let ids = self.ids.iter().cloned().collect();
            self.cache.take_ids(ids, self.ids.len() as u64);
        }
        Ok(is_new)
    }

    /// Takes the ids of sessions that were erased, and forgets these sessions.
    fn take_erased(&mut self, rows: &[Row]) -> Result<bool> {
        let mut is_new = false;
        for row in rows {
            let id: String = row.try_get(0).map_err(unreadable)?;
            if self.erased.len() >= MOST_ERASED || self.erased.contains(&id) {
                continue;
            }
            if self.ids.remove(&id) {
                self.id_bytes -= id.len() + size_of::<String>();
            }
            self.cache.take_row(BucketValue {
                key: subject::key(&id),
                value: Vec::new(),
                revision: 0,
            });
            self.erased.insert(id);
            is_new = true;
        }
        if is_new {
            let ids = self.ids.iter().cloned().collect();
            self.cache.take_ids(ids, self.ids.len() as u64);
        }
        Ok(is_new)
    }

    fn take_open(&mut self, rows: &[Row]) -> Result<bool> {
        let open: std::result::Result<Vec<String>, _> =
            rows.iter().map(|row| row.try_get(0)).collect();
        let open = open.map_err(unreadable)?;
        let is_new = open != self.open;
        if is_new {
            self.cache.take_presences(open.iter().map(String::as_bytes));
            self.open = open;
        }
        Ok(is_new)
    }
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

    fn list(&self, always: bool) -> BoxFuture<'_, Result<Option<TeamList>>> {
        Box::pin(async move {
            let mut reader = self.reader.lock().await;
            let is_new = self.read(&mut reader).await?;
            Ok((is_new || always).then(|| {
                let mut list = reader.cache.list();
                list.erased.clone_from(&reader.erased);
                list
            }))
        })
    }
}
