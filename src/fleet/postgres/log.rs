//! A connected database that keeps sessions.

use super::facts::{self, Facts};
use super::notices::Notices;
use super::pool::{Answer, Params, Pool, ask, connect};
use super::refusal::away;
use super::schema;
use crate::engine;
use crate::in_flight::InFlight;
use crate::own_runtime::OwnRuntime;
use crate::settings::PostgresSettings;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;

/// How long an append is tried by default. A standby takes some seconds to replace its primary.
const APPEND: Duration = Duration::from_secs(25);
/// The most sessions whose last append is remembered.
const MOST_KNOWN: usize = 4096;

/// A database that keeps sessions.
pub struct PgLog {
    pub(super) pool: Pool,
    pub(super) notices: Notices,
    pub(super) database: String,
    /// The time at which the tables were made.
    pub(super) created: String,
    pub(super) append_time: Duration,
    pub(super) in_flight: InFlight,
    pub(super) acknowledged: Mutex<Acknowledged>,
    /// For each session, its end and the id of the append that made the end.
    known: Mutex<HashMap<String, (u64, String)>>,
    /// The hash and the id of each append with an unknown outcome, by session and position.
    pub(super) open: Mutex<HashMap<(String, u64), (String, String)>>,
    /// This is the last member, so that it is dropped after the others.
    pub(super) runtime: OwnRuntime,
}

/// The durability of the last answers.
#[derive(Default)]
pub(super) struct Acknowledged {
    pub(super) at: Option<Instant>,
    pub(super) is_synced: bool,
    pub(super) is_replicated: bool,
    /// The last time at which an answer was not `replicated`.
    pub(super) less: Option<Instant>,
}

impl PgLog {
    /// Connects, and checks the database. Fails unless the database has the tables and keeps acknowledged lines.
    pub fn open(settings: &PostgresSettings, append_time: Option<Duration>) -> Result<Self> {
        let (runtime, pool) = connect(settings)?;
        let facts = runtime.block_on(facts::read(&pool))?;
        if let Some(error) = facts.faults().into_iter().next() {
            return Err(Error::new(Kind::LogMisconfigured, error));
        }
        if facts.is_standby {
            return Err(away("the database is a standby: name its primary too"));
        }
        let team = runtime.block_on(schema::team(&pool))?;
        team.check_usable()?;
        let notices = Notices::listen(pool.clone(), runtime.handle());
        let acknowledged = Acknowledged::of(&facts);
        Ok(Self {
            notices,
            pool,
            database: facts.database,
            created: team.created,
            append_time: append_time.unwrap_or(APPEND),
            in_flight: InFlight::default(),
            acknowledged: Mutex::new(acknowledged),
            known: Mutex::default(),
            open: Mutex::default(),
            runtime,
        })
    }

    /// Waits for work, but not longer than the caller of this thread has set.
    pub(super) fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        engine::wait(self.runtime.handle(), work)
    }

    /// Sends a query that changes nothing. Repeats it until it is answered or its time is over.
    pub(super) async fn ask(&self, statement: &str, params: Params<'_>) -> Result<Answer> {
        ask(&self.pool, statement, params).await
    }

    /// Notes the end of a session, and the append that made it.
    pub(super) fn note_end(&self, session: &str, end: u64, batch: String) {
        let mut known = lock(&self.known);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(session.to_owned(), (end, batch));
    }

    /// The id of the append that made the end of a session, if it is known.
    pub(super) fn append_at(&self, session: &str, end: u64) -> Option<String> {
        let known = lock(&self.known);
        let (at, batch) = known.get(session)?;
        (*at == end).then(|| batch.clone())
    }
}

impl Acknowledged {
    fn of(facts: &Facts) -> Self {
        Self {
            at: None,
            is_synced: facts.is_synced(),
            is_replicated: facts.is_replicated(),
            less: None,
        }
    }
}
