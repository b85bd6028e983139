//! How far a file and its log are known to be equal.

use super::super::replica::ReplicaRecord;
use std::fs::File;
use std::time::Instant;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::{self, Identity};

/// How far file and log are equal, as far as this process knows.
#[derive(Default)]
pub(super) struct Equality {
    /// `None` before the first comparison.
    pub(super) record: Option<ReplicaRecord>,
    /// The file that was compared.
    pub(super) file: Option<Identity>,
    /// The record that becomes true when the lines that were published last are in the file.
    pub(super) published: Option<ReplicaRecord>,
    /// Whether an append of this process is on its way to the log, or from the log to the file.
    pub(super) is_appending: bool,
    /// Whether the log is known to have more lines than the file.
    pub(super) is_behind: bool,
    /// The last time at which an append stopped waiting for a server. The follower publishes the lines that the append
    /// left in the file.
    pub(super) left_behind: Option<Instant>,
    /// Whether the log was found to have lost lines that are still in the file.
    pub(super) has_lost: bool,
    /// Messages since the record beside the file was saved.
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
        self.record = Some(record);
        self.unsaved += 1;
    }

    /// Begins again with a file that was compared.
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
