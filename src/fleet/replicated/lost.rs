//! The entries of a file that were not in the log when another machine deleted the session.

use super::ReplicatedFile;
use super::known::{FileLine, KnownLines, counted_id};
use crate::comparison::{self, Tail};
use crate::replica::ReplicaRecord;
use std::fs::File;
use treelined_core::error::Result;
use treelined_files::os::file;

/// The entries that only a file has.
pub(crate) struct LostEntries {
    /// The ids of the entries, in the order of the file.
    pub(crate) ids: Vec<String>,
    /// The size of the file when it was read, in bytes.
    size: u64,
}

impl ReplicatedFile {
    /// Finds the entries that the file has and the log does not have. Writes their number into the record, which goes
    /// to the trash together with the file.
    pub(crate) fn lost(&self) -> Result<LostEntries> {
        let failed = |error| self.failed("stat", &error);
        let size = self.at.status().map_err(failed)?.size;
        let log = self.source.log()?;
        let identity = log.identity(&self.session)?;
        let record = ReplicaRecord::load(&self.at)?;
        let place = (&self.at, Tail::Ignored);
        let compared =
            comparison::compare(&*log, &self.session, place, &identity, record.as_ref())?;
        let agreed = compared.at;
        let mut known = KnownLines::default();
        for part in log.read(&self.session, agreed.position)? {
            known.add(&part?.lines);
        }
        let mut ids = Vec::new();
        self.each_line_after(agreed.offset, Tail::Ignored, &mut |line| {
            if known.classify(line) == FileLine::Own {
                ids.extend(counted_id(line));
            }
        })?;
        if let Some(record) = agreed.record(&identity) {
            let lost = ids.len() as u64;
            ReplicaRecord { lost, ..record }.save(&self.at)?;
        }
        Ok(LostEntries { ids, size })
    }

    /// Locks the file if it has not changed since [`Self::lost`] read it. No program appends to the file while the lock
    /// is held.
    pub(crate) fn locked_as(&self, lost: &LostEntries) -> Result<Option<File>> {
        let Some(locked) = self.locked()? else {
            return Ok(None);
        };
        let failed = |error| self.failed("stat", &error);
        let size = file::status_of(&locked).map_err(failed)?.size;
        Ok((size == lost.size).then_some(locked))
    }
}
