//! The record `<file>.replica`: how far a session file and a log are known to be equal. They may be equal further than
//! the record says, but never less far.

use super::backend::{LogIdentity, Position};
use super::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::log::rewrite;
use treelined_files::log::upstream::REPLICA_SUFFIX;
use treelined_files::os::file::Location;
use treelined_files::os::handle::HandleAccess;

/// The most bytes of the record.
const MAX_BYTES: u64 = 64 << 10;

/// The record. The first `offset` bytes of the file are equal to the log up to `sequence`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplicaRecord {
    pub(super) stream: String,
    pub(super) stream_created: String,
    pub(super) subject: String,
    /// The last message that the file has. Foreign messages count too.
    pub(super) sequence: u64,
    /// A number of bytes.
    pub(super) offset: u64,
    /// The SHA-256, in hex, of the lines of the last message that has lines.
    pub(super) hash: String,
    /// The message of the session before the message with these lines; 0 if there is none.
    pub(super) previous: u64,
    /// The number of bytes of these lines.
    pub(super) length: u64,
    /// The end of the last line that this machine has written. Other machines may have written lines after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<u64>,
    /// Whether these lines close the log, since the session is deleted.
    #[serde(rename = "closed", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_closed: bool,
    /// The number of entries after `offset` that are not in the log. Set when the file goes to the trash, since another
    /// machine has deleted the session.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) lost: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(lost: &u64) -> bool {
    *lost == 0
}

impl ReplicaRecord {
    /// The record of a file; `None` if there is none. A damaged record is ignored, since a record only saves time.
    pub(super) fn load(at: &Location) -> Result<Option<Self>> {
        let beside = at.beside(REPLICA_SUFFIX);
        if beside.status().is_err() {
            return Ok(None);
        }
        let file = beside.folder.file(&beside.name, HandleAccess::Read)?;
        let mut text = Vec::new();
        let read = file.take(MAX_BYTES).read_to_end(&mut text);
        read.map_err(|error| Error::io(&format!("read {}", beside.path().display()), &error))?;
        let record: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(record.filter(|record| record.length <= record.offset))
    }

    /// Replaces the record of a file atomically, and syncs it.
    pub(super) fn save(&self, at: &Location) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
        rewrite::replace(at, &at.beside(REPLICA_SUFFIX), |out| {
            out.write_all(&text)?;
            out.write_all(b"\n")
        })
    }

    /// Fails if the record is about another log, or if the log was made anew since the record was written.
    pub(super) fn check(&self, log: &LogIdentity) -> Result<()> {
        self.check_name(log)?;
        if self.stream_created != log.created {
            let why = format!(
                "the stream {:?} was created at {}, the replica is of one created at {}: it was made anew, or these are other servers",
                log.stream, log.created, self.stream_created
            );
            return Err(Error::new(Kind::LogRewound, why));
        }
        Ok(())
    }

    /// Fails if the record is about a log with another name.
    pub(super) fn check_name(&self, log: &LogIdentity) -> Result<()> {
        if self.stream != log.stream || self.subject != log.subject {
            let why = format!(
                "the file is a replica of {} in the stream {:?}, not of {} in {:?}",
                self.subject, self.stream, log.subject, log.stream
            );
            return Err(Error::new(Kind::LogDiverged, why));
        }
        Ok(())
    }

    /// Whether the file has the bytes of the record's message. Otherwise the record says nothing about the file.
    pub(super) fn is_intact(&self, at: &Location) -> Result<bool> {
        let path = at.path().display().to_string();
        let status = at.status();
        let status = status.map_err(|error| Error::io(&format!("stat {path}"), &error))?;
        if self.length == 0 || self.offset > status.size {
            return Ok(false);
        }
        let bytes = files::bytes_of(at, self.offset - self.length, self.length)?;
        Ok(hash(&bytes) == self.hash)
    }

    /// Whether this machine has written the last line.
    pub(super) fn is_own(&self) -> bool {
        self.own == Some(self.offset)
    }

    pub(super) fn previous(&self) -> Position {
        Position(self.previous)
    }
}

/// SHA-256 in hex.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

pub(super) fn hex(hash: Sha256) -> String {
    let digits = hash.finalize().into_iter();
    digits.map(|byte| format!("{byte:02x}")).collect()
}
