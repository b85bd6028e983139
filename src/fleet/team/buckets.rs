//! The two buckets of a stream: the rows of its sessions, and the sessions that daemons have open.

use super::bucket::{Bucket, BucketSettings};
use super::cache::{BucketValue, TeamCache};
use super::presence::MAX_PRESENCE_BYTES;
use super::row::{MAX_ROW_BYTES, StoredRow};
use crate::connection::{ANSWER, Connection};
use crate::nats_log::LogAccess;
use crate::settings::NatsSettings;
use crate::stream::{self};
use std::time::Duration;
use treelined_core::error::Result;
use treelined_core::team::TeamRow;

/// The age at which the servers drop the row of a daemon that does not renew it.
const MAX_AGE: Duration = Duration::from_secs(60);

pub(super) struct TeamBuckets {
    pub(super) rows: Bucket,
    pub(super) presence: Bucket,
    connection: Connection,
    settings: NatsSettings,
    /// When the stream was created.
    created: String,
    /// The name of this machine.
    pub(super) host: String,
    /// The key of this daemon's row of presence. Letters, digits, `-` and `_`.
    pub(super) daemon: String,
}

/// The rows as they were read last, and how far.
pub(super) struct TeamReader {
    cache: TeamCache,
    /// When the bucket of rows was created.
    bucket_created: String,
    /// The last revision of the rows.
    revision: u64,
    /// The last revision of the presences, and their number.
    presences: (u64, u64),
}

impl TeamBuckets {
    pub(super) fn new(access: &LogAccess, host: String, daemon: String) -> Self {
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
        }
    }

    /// Makes the buckets that do not exist. Returns the names of those that were made.
    pub(super) async fn ensure(&self) -> Result<Vec<String>> {
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

    pub(super) fn stored(&self, row: TeamRow) -> StoredRow {
        StoredRow {
            row,
            stream_created: self.created.clone(),
        }
    }

    pub(super) fn reader(&self) -> TeamReader {
        TeamReader {
            cache: TeamCache::new(&self.settings.stream, &self.created),
            bucket_created: String::new(),
            revision: 0,
            presences: (0, 0),
        }
    }

    /// Reads what is new. Returns whether anything was.
    pub(super) async fn refresh(&self, reader: &mut TeamReader) -> Result<bool> {
        let mut is_new = self.refresh_rows(reader).await?;
        is_new |= self.refresh_presences(reader).await?;
        // After the rows, so that the stream has the messages that they describe.
        let info = stream::info(&self.connection, &self.settings, ANSWER).await?;
        reader.cache.take_last(info.state.last_seq);
        let subjects = info.state.num_subjects;
        if reader.cache.lacks_ids(subjects) {
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
                ..self.reader()
            };
        }
        if info.state.last_seq == reader.revision {
            return Ok(false);
        }
        let mut take = |value: BucketValue| reader.cache.take_row(value);
        self.rows.read(reader.revision, &mut take).await?;
        reader.revision = info.state.last_seq;
        Ok(true)
    }

    /// Reads the rows of the other daemons.
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
            self.presence.read(0, &mut take).await?;
        }
        let texts = rows.iter().map(Vec::as_slice);
        reader.cache.take_presences(texts);
        reader.presences = now;
        Ok(true)
    }
}

impl TeamReader {
    pub(super) fn cache(&self) -> &TeamCache {
        &self.cache
    }
}
