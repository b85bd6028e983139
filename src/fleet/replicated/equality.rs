//! How far a file and its log are known to be equal.

use super::super::backend::{LogIdentity, Position};
use super::super::replica::{self, ReplicaRecord};
use std::fs::File;
use std::time::Instant;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::{self, Identity};

/// The record is saved again after this many messages.
pub(super) const SAVED_EVERY: u64 = 256;

/// How far file and log are equal, as far as this process knows.
#[derive(Default)]
pub(super) struct Equality {
    /// `None` before the first comparison.
    pub(super) record: Option<ReplicaRecord>,
    /// The file that was compared.
    pub(super) file: Option<Identity>,
    /// The record that becomes true when the lines that were published last are in the file.
    pub(super) published: Option<ReplicaRecord>,
    /// Whether an append of this process is not finished: its lines are not yet in both the log and the file.
    pub(super) is_appending: bool,
    /// Whether the log is known to have more lines than the file.
    pub(super) is_behind: bool,
    /// The last time at which an append stopped waiting for a server. The follower publishes the lines that the append
    /// left in the file.
    pub(super) left_behind: Option<Instant>,
    /// Whether the log was found to have lost lines that are still in the file.
    pub(super) has_lost: bool,
    /// The number of messages since the record beside the file was saved.
    pub(super) unsaved: u64,
}

impl Equality {
    pub(super) fn is_of(&self, file: &File) -> bool {
        file::status_of(file).is_ok_and(|status| Some(status.identity) == self.file)
    }

    /// Whether the log is known to be closed.
    pub(super) fn is_closed(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.is_closed)
    }

    /// Whether the file has exactly the bytes of the record.
    pub(super) fn is_equal(&self, file: &File) -> bool {
        let (Some(record), Ok(status)) = (&self.record, file::status_of(file)) else {
            return false;
        };
        Some(status.identity) == self.file && status.size == record.offset
    }

    pub(super) fn advance(&mut self, record: ReplicaRecord) {
        let before = self.record.replace(record);
        let now = self.record.as_ref().is_some_and(ReplicaRecord::is_own);
        // If the writer has changed from this machine to another machine, or back, the record must be saved soon: the
        // next opening depends on the record.
        let is_turn = before.is_some_and(|before| before.own.is_some() && before.is_own() != now);
        self.unsaved += if is_turn { SAVED_EVERY } else { 1 };
    }

    /// The record of a file to which a part of the log was added.
    pub(super) fn record_behind(
        &self,
        identity: &LogIdentity,
        lines: &[u8],
        end: Position,
    ) -> ReplicaRecord {
        let before = self.record.as_ref();
        if let Some(before) = before.filter(|_| lines.is_empty()) {
            return ReplicaRecord {
                sequence: end.0,
                ..before.clone()
            };
        }
        let length = lines.len() as u64;
        ReplicaRecord {
            stream: identity.stream.clone(),
            stream_created: identity.created.clone(),
            subject: identity.subject.clone(),
            sequence: end.0,
            offset: before.map_or(0, |before| before.offset) + length,
            hash: replica::hash(lines),
            previous: before.map_or(0, |before| before.sequence),
            length,
            own: before.and_then(|before| before.own),
            is_closed: identity.is_closed_by(lines),
            lost: 0,
        }
    }

    /// Sets the state after a comparison of this file.
    pub(super) fn begin(&mut self, file: &File, record: Option<ReplicaRecord>) -> Result<()> {
        let status = file::status_of(file);
        let status = status.map_err(|error| Error::io("stat the session file", &error))?;
        if self.file != Some(status.identity) || self.record != record {
            self.unsaved += 1;
        }
        *self = Self {
            record,
            file: Some(status.identity),
            published: None,
            is_appending: false,
            is_behind: false,
            left_behind: None,
            has_lost: false,
            unsaved: self.unsaved,
        };
        Ok(())
    }
}
