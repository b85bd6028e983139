//! One source: streams its records, and reads single places of it again for the bodies of entries.
//!
//! The memory that is needed grows with the longest line of a source, but not with the length of the source. Files of
//! the tool are never written.

pub(super) mod facts;
mod kept;
pub(super) mod layout;
pub(super) mod places;
pub(super) mod regular;
pub(super) mod stream;
#[cfg(test)]
mod tests;

use facts::{Medium, Scan, ScanFailure, SideFile, Source, SourceFailure, SourceStatus};
pub(crate) use places::Places;

use super::limits::{Limits, TOO_LARGE, too_large};
use super::origin::OriginWriter;
use crate::member::Place;
use crate::reader::Reader;
use crate::records::{Layout, Piece, Splitter};
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::ops::ControlFlow;
use treelined_core::error::Error;

impl Source {
    /// The name of the source in reports and in the ledger: its path. For a part, `#` and the id of the part follow.
    pub(crate) fn name(&self) -> String {
        let path = self.path.to_string_lossy();
        match &self.part {
            Some(part) => format!("{path}#{part}"),
            None => path.into_owned(),
        }
    }

    /// The size and the time of the last change, from the file or the database. For a folder, only the second of the
    /// session's last activity is known.
    pub(crate) fn last_change(&self, scan: &Scan) -> SourceStatus {
        if let Some(status) = scan.status {
            return SourceStatus::of_file(status);
        }
        match SourceStatus::of_database(&self.path) {
            Ok(status) if self.path.is_file() => status,
            _ => SourceStatus {
                modified: (self.status.modified.0.saturating_add(1), 0),
                ..self.status
            },
        }
    }

    /// Passes every record to `reader`, and all bytes to `origin`; without an origin, no bytes are kept. If the last
    /// line has no line break, it counts only if the source is complete (`is_final`). `progress` gets the number of
    /// bytes that were read or extracted since its last call; if it returns a break, the import is cancelled.
    pub(crate) fn scan(
        &self,
        reader: &mut dyn Reader,
        origin: Option<&mut OriginWriter>,
        is_final: bool,
        limits: Limits,
        progress: &dyn Fn(u64) -> ControlFlow<()>,
    ) -> Result<Scan, ScanFailure> {
        let layout = match self.medium {
            Medium::Plain(layout) => layout,
            Medium::Compressed | Medium::Extracted(_) => Layout::Lines,
        };
        let (mut made, size) = (0, self.size_on_disk());
        let is_final = is_final || self.part.is_some();
        let mut cutting = Cutting {
            splitter: Splitter::new(layout),
            reader,
            unparsable: Vec::new(),
            sink: match origin {
                Some(origin) => ByteSink::Origin(origin),
                None => ByteSink::Hash(Sha256::new()),
            },
            failure: None,
        };
        let end = self.stream(&limits, &mut |bytes| {
            made += size.map_or(0, |_| bytes.len() as u64);
            cutting.push(bytes)?;
            let pieces = cutting.pieces();
            if let Some(limit) = limits.exceeded_by_scan(made, size.unwrap_or(0), pieces) {
                return Err(self.too_large(&limit));
            }
            match progress(bytes.len() as u64) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(ScanFailure::Import(Error::cancelled())),
            }
        })?;
        let len = cutting.finish(is_final)?;
        let Cutting {
            splitter,
            unparsable,
            sink,
            ..
        } = cutting;
        let prefix_hash = match sink {
            ByteSink::Hash(hash) => hash.finalize().into(),
            ByteSink::Origin(origin) => self.settle(origin, len, &limits)?,
        };
        Ok(Scan {
            len,
            records: splitter.records(),
            unparsable,
            prefix_hash,
            damage: end.damage,
            status: end.status,
            limits,
            made,
        })
    }

    /// Ends the bytes of the origin. If they do not continue the kept bytes, the source is streamed into a new
    /// origin.
    fn settle(
        &self,
        origin: &mut OriginWriter,
        len: u64,
        limits: &Limits,
    ) -> Result<[u8; 32], ScanFailure> {
        if origin.settle()? {
            return Ok(origin.hash());
        }
        origin.begin_anew()?;
        let mut left = len;
        self.stream(limits, &mut |bytes| {
            let part = bytes.len().min(treelined_core::bytes::index(left));
            left -= part as u64;
            Ok(origin.push(treelined_core::bytes::part(bytes, ..part))?)
        })?;
        origin.settle()?;
        Ok(origin.hash())
    }

    /// The number of bytes on the disk of a source that is decompressed or extracted; `None` for a plain file.
    pub(crate) fn size_on_disk(&self) -> Option<u64> {
        match self.medium {
            Medium::Compressed => Some(self.status.size),
            Medium::Extracted(_) => {
                let status = SourceStatus::of_database(&self.path);
                Some(status.map_or(0, |status| status.size))
            }
            Medium::Plain(_) => None,
        }
    }

    /// The failure of a source that exceeds a limit.
    pub(crate) fn too_large(&self, limit: &str) -> ScanFailure {
        ScanFailure::Source(self.failure(TOO_LARGE, too_large(limit)))
    }

    pub(super) fn failure(&self, kind: &'static str, message: impl Into<String>) -> SourceFailure {
        SourceFailure {
            tool: Some(self.tool),
            path: self.path.clone(),
            kind,
            message: message.into(),
        }
    }

    /// The failure of a system call on the source.
    fn unreadable(&self, error: &io::Error) -> ScanFailure {
        ScanFailure::Source(SourceFailure::io(Some(self.tool), &self.path, error))
    }
}

/// The state of a scan. Bytes come from the stream and go to two receivers: records to the reader, all bytes to the
/// origin.
struct Cutting<'s> {
    splitter: Splitter,
    reader: &'s mut dyn Reader,
    unparsable: Vec<Place>,
    sink: ByteSink<'s>,
    /// The first error of the origin.
    failure: Option<Error>,
}

/// The receiver of all bytes.
enum ByteSink<'s> {
    Origin(&'s mut OriginWriter),
    Hash(Sha256),
}

impl Cutting<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), ScanFailure> {
        self.cut(|splitter, take| splitter.push(bytes, take));
        self.check()
    }

    /// The number of records, and of places that are not records.
    fn pieces(&self) -> u64 {
        self.splitter.records() + self.unparsable.len() as u64
    }

    fn finish(&mut self, is_final: bool) -> Result<u64, ScanFailure> {
        let len = self.cut(|splitter, take| splitter.finish(is_final, take));
        self.check()?;
        Ok(len)
    }

    fn cut<T>(&mut self, cut: impl FnOnce(&mut Splitter, &mut dyn FnMut(Piece<'_>)) -> T) -> T {
        let Self {
            splitter,
            reader,
            unparsable,
            sink,
            failure,
        } = self;
        cut(splitter, &mut |piece| match piece {
            Piece::Text(bytes) => match sink {
                ByteSink::Hash(hash) => hash.update(bytes),
                ByteSink::Origin(origin) if failure.is_none() => {
                    *failure = origin.push(bytes).err()
                }
                ByteSink::Origin(_) => {}
            },
            Piece::Record(record) => reader.record(record),
            Piece::Unparsable(place, _) => unparsable.push(place),
        })
    }

    fn check(&mut self) -> Result<(), ScanFailure> {
        match self.failure.take() {
            Some(error) => Err(ScanFailure::Import(error)),
            None => Ok(()),
        }
    }
}

/// Reads a side file; `None` if it has more than `most` bytes.
pub(crate) fn read_side_file(file: &SideFile, most: u64) -> Result<Option<Vec<u8>>, SourceFailure> {
    let failed = |error: &io::Error| SourceFailure::io(None, &file.path, error);
    let (opened, status) = regular::open(&file.path).map_err(|error| failed(&error))?;
    if status.size > most {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = opened.take(most).read_to_end(&mut bytes);
    read.map_err(|error| failed(&error))?;
    Ok(Some(bytes))
}
