//! The two buckets of a stream: one has the rows of sessions, the other has the sessions that daemons have open.

use super::bucket::{Bucket, BucketSettings};
use super::cache::{BucketValue, TeamCache};
use super::presence::{self, MAX_PRESENCE_BYTES};
use super::row::{MAX_ROW_BYTES, StoredRow};
use crate::connection::{ANSWER, Connection};
use crate::engine::TeamIndex;
use crate::nats_log::LogAccess;
use crate::settings::NatsSettings;
use crate::stream::{self};
use crate::subject;
use futures_util::future::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::{TeamFound, TeamList, TeamQuery, TeamQuestion, TeamRow};
use treelined_files::lock::lock;

/// The age at which the servers drop the row of a daemon, if the daemon does not renew it.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The most sessions whose last revision is remembered. A remembered revision saves a request when the row is written.
const MOST_REVISIONS: usize = 4096;
/// The most sessions of a stream whose ids are read. The list of a greater stream has only rows.
const MOST_IDS: u64 = 50_000;
/// The revisions of the first part of the rows, which are read from the last row back.
const READ_BACK: u64 = 32_000;
/// How many times the write of a row compares and sets before it fails.
const TRIES: usize = 16;

pub(crate) struct TeamBuckets {
    rows: Bucket,
    presence: Bucket,
    connection: Connection,
    settings: NatsSettings,
    /// The time at which the stream was created.
    created: String,
    /// The name of this machine.
    host: String,
    /// The key of this daemon's row of presence. It has letters, digits, `-` and `_`.
    daemon: String,
    /// The revision of this daemon's last write of each row, by the key of the row.
    revisions: Mutex<HashMap<String, u64>>,
    reader: tokio::sync::Mutex<TeamReader>,
}

/// The rows as they were last read, and the revisions up to which they were read.
struct TeamReader {
    cache: TeamCache,
    /// The time at which the bucket of rows was created.
    bucket_created: String,
    /// The last revision of the rows that was read.
    revision: u64,
    /// The last revision of the presences that was read, and their number.
    presences: (u64, u64),
}

impl TeamBuckets {
    pub(crate) fn new(access: &LogAccess, host: String, daemon: String) -> Self {
        let bucket = |ending: &str| Bucket {
            connection: access.connection.clone(),
            name: format!("{}-{ending}", access.settings.stream),
        };
        Self {
            rows: bucket("sessions"),
            presence: bucket("presence"),
            connection: access.connection.clone(),
            settings: access.settings.clone(),
            created: access.created.clone(),
            host,
            daemon,
            revisions: Mutex::default(),
            reader: tokio::sync::Mutex::new(TeamReader::new(&access.settings, &access.created)),
        }
    }

    async fn make(&self) -> Result<Vec<String>> {
        let replicas = self.settings.replicas;
        let rows = BucketSettings {
            replicas,
            max_age: None,
            max_bytes: MAX_ROW_BYTES,
            is_kept: true,
        };
        let presence = BucketSettings {
            replicas,
            max_age: Some(MAX_AGE),
            max_bytes: MAX_PRESENCE_BYTES,
            is_kept: false,
        };
        let mut made = Vec::new();
        for (bucket, settings) in [(&self.rows, rows), (&self.presence, presence)] {
            if bucket.ensure(&settings).await? {
                made.push(bucket.name.clone());
            }
        }
        Ok(made)
    }

    /// The ids of the sessions that any daemon has open.
    pub(crate) async fn open_sessions(&self) -> Result<HashSet<String>> {
        let mut open = HashSet::new();
        let mut is_damaged = false;
        let mut take = |value: BucketValue| match presence::decode(&value.value) {
            _ if value.value.is_empty() => {}
            Some(sessions) => open.extend(sessions.into_iter().map(|(session, _)| session)),
            None => is_damaged = true,
        };
        if self.presence.info().await?.state.messages > 0 {
            self.presence.read((0, u64::MAX), &mut take).await?;
        }
        match is_damaged {
            false => Ok(open),
            true => Err(presence::damaged()),
        }
    }

    async fn write(&self, row: TeamRow) -> Result<()> {
        let row = StoredRow {
            row,
            stream_created: self.created.clone(),
        };
        let key = subject::key(&row.row.session_id);
        let known = lock(&self.revisions).remove(&key);
        let revision = write_row(&self.rows, &key, &row, known).await?;
        let mut revisions = lock(&self.revisions);
        if revisions.len() >= MOST_REVISIONS {
            revisions.clear();
        }
        revisions.extend(revision.map(|revision| (key, revision)));
        Ok(())
    }

    /// Reads what has changed. Returns whether anything has changed.
    async fn refresh(&self, reader: &mut TeamReader) -> Result<bool> {
        let mut is_new = self.refresh_rows(reader).await?;
        is_new |= self.refresh_presences(reader).await?;
        // This is read after the rows, so that the stream has the messages that the rows describe.
        let info = stream::info(&self.connection, &self.settings, ANSWER).await?;
        reader.cache.take_last(info.state.last_seq);
        let subjects = info.state.num_subjects;
        if subjects > MOST_IDS {
            reader.cache.leave_out_ids(subjects);
        } else if reader.cache.lacks_ids(subjects) {
            let ids = stream::sessions(&self.connection, &self.settings).await?;
            reader.cache.take_ids(ids, subjects);
            is_new = true;
        }
        Ok(is_new)
    }

    async fn refresh_rows(&self, reader: &mut TeamReader) -> Result<bool> {
        let info = self.rows.info().await?;
        if info.created != reader.bucket_created {
            *reader = TeamReader {
                bucket_created: info.created,
                ..TeamReader::new(&self.settings, &self.created)
            };
        }
        let last = info.state.last_seq;
        if last == reader.revision {
            return Ok(false);
        }
        let known = std::mem::replace(&mut reader.revision, last);
        let read = self.read_back(&mut reader.cache, known, last).await;
        if read.is_err() {
            reader.revision = known;
        }
        read.map(|()| true)
    }

    /// Reads the rows that were set after the revision `known`, the newest first: a part of them after another, until
    /// all are read or the cache is full.
    async fn read_back(&self, cache: &mut TeamCache, known: u64, last: u64) -> Result<()> {
        let (mut until, mut many) = (last, READ_BACK);
        while until > known {
            let from = until.saturating_sub(many).max(known);
            let mut take = |value: BucketValue| cache.take_row(value);
            self.rows.read((from, until), &mut take).await?;
            if from > known && cache.is_cut() {
                break;
            }
            // A session that changes often leaves gaps.
            (until, many) = (from, many * 2);
        }
        Ok(())
    }

    /// Reads the rows of presence of the other daemons.
    async fn refresh_presences(&self, reader: &mut TeamReader) -> Result<bool> {
        let state = self.presence.info().await?.state;
        let now = (state.last_seq, state.messages);
        if now == reader.presences {
            return Ok(false);
        }
        let mut rows: Vec<Vec<u8>> = Vec::new();
        if state.messages > 0 {
            let mut take = |value: BucketValue| {
                if value.key != self.daemon && !value.value.is_empty() {
                    rows.push(value.value);
                }
            };
            self.presence.read((0, u64::MAX), &mut take).await?;
        }
        let texts = rows.iter().map(Vec::as_slice);
        reader.cache.take_presences(texts);
        reader.presences = now;
        Ok(true)
    }
}

impl TeamReader {
    fn new(settings: &NatsSettings, created: &str) -> Self {
        Self {
            cache: TeamCache::new(&settings.stream, created),
            bucket_created: String::new(),
            revision: 0,
            presences: (0, 0),
        }
    }
}

impl TeamIndex for TeamBuckets {
    fn ensure(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(self.make())
    }

    fn write_row(&self, row: TeamRow) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.write(row))
    }

    fn say_open(&self, sessions: Vec<(String, i64)>) -> BoxFuture<'_, Result<()>> {
        let text = presence::encode(&self.host, &self.daemon, sessions);
        Box::pin(async move {
            let written = self.presence.put(&self.daemon, text, None);
            written.await.map(drop)
        })
    }

    fn say_closed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.presence.remove(&self.daemon))
    }

    fn list<'a>(
        &'a self,
        _query: &'a TeamQuery,
        always: bool,
    ) -> BoxFuture<'a, Result<Option<TeamList>>> {
        Box::pin(async move {
            let mut reader = self.reader.lock().await;
            let is_new = self.refresh(&mut reader).await?;
            Ok((is_new || always).then(|| reader.cache.list()))
        })
    }

    fn find<'a>(&'a self, _question: &'a TeamQuestion) -> BoxFuture<'a, Result<TeamFound>> {
        Box::pin(async {
            let why = "needs a team on PostgreSQL, since NATS cannot search: `treelined pull --all`, and search here";
            Err(Error::invalid_params("team", why))
        })
    }
}

/// Writes a row, unless the bucket has a row that is as new. `known` is the revision of an older row of the same
/// writer. Returns the revision of the row; `None` if it was not written.
async fn write_row(
    bucket: &Bucket,
    key: &str,
    row: &StoredRow,
    known: Option<u64>,
) -> Result<Option<u64>> {
    let text = row.encode();
    let mut expected = known;
    for _ in 0..TRIES {
        let revision = match expected.take() {
            Some(revision) => revision,
            None => match bucket.get(key).await? {
                None => 0,
                Some(stored) => {
                    let before = StoredRow::decode(key, &stored.value);
                    if !row.replaces(before.as_ref()) {
                        return Ok(None);
                    }
                    stored.revision
                }
            },
        };
        let written = bucket.put(key, text.clone(), Some(revision)).await?;
        if written.is_some() {
            return Ok(written);
        }
    }
    let why = format!("others wrote the row {key:?} in each of {TRIES} rounds");
    Err(Error::new(Kind::LogConflict, why))
}
