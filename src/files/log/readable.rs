//! The lines of a session that can be read, byte for byte as stored.

use super::lines::{Lines, RawLine};
use super::recover::recover;
use super::shed::WholeLines;
use super::state::{FileLog, Log, LogStorage};
use crate::cancel::Cancel;
use crate::os::file::File;
use crate::os::handle::HandleAccess;
use std::io;
use std::sync::Arc;
use treelined_core::entry::scan;
use treelined_core::error::{Error, Result};
use treelined_core::tree::Tree;

/// The readable lines of a session at one point in time, the header first. Lines that contain no whole object are
/// left out.
pub struct ReadableLines {
    lines: LineSource,
    /// The version of the format. It decides which objects on a damaged line count as entries.
    version: u64,
}

enum LineSource {
    /// The file up to the offset `end`, in bytes.
    Stored {
        file: Arc<File>,
        end: u64,
        /// The lines after the header, if some of them are in the cold file.
        whole: Option<Box<WholeLines>>,
    },
    Made(Vec<Vec<u8>>),
}

impl ReadableLines {
    pub fn prepare(log: &Log, tree: &Tree) -> Result<Self> {
        if let LogStorage::File(
            file_log @ FileLog {
                open: Some(open), ..
            },
        ) = &log.store
        {
            let file = file_log.file(open, HandleAccess::Read)?;
            let end = file_log.end;
            let whole = WholeLines::of(log, tree, &file, end)?.map(Box::new);
            return Ok(Self {
                lines: LineSource::Stored { file, end, whole },
                version: log.version(),
            });
        }
        let mut lines = vec![log.header_line()];
        let bodies = log.bodies();
        for node in (0..tree.node_count()).filter_map(|number| tree.node(number)) {
            lines.push(bodies.read(tree.place(node))?);
        }
        Ok(Self {
            lines: LineSource::Made(lines),
            version: log.version(),
        })
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        match &self.lines {
            LineSource::Stored { end, whole, .. } => {
                *end + whole.as_ref().map_or(0, |whole| whole.cold_bytes())
            }
            LineSource::Made(lines) => lines.iter().map(|line| line.len() as u64 + 1).sum(),
        }
    }

    /// Passes each line to `take`, without its line break.
    pub fn each(&self, cancel: &Cancel, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (file, end, whole) = match &self.lines {
            LineSource::Stored { file, end, whole } => (file, *end, whole),
            LineSource::Made(lines) => return lines.iter().try_for_each(|line| take(line)),
        };
        let end = whole.as_ref().map_or(end, |whole| whole.start());
        self.each_stored(file, end, cancel, take)?;
        let Some(whole) = whole else {
            return Ok(());
        };
        whole.each(|line| {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let end = line.offset + line.len;
            readable(line, end, self.version).map_or(Ok(()), &mut *take)
        })
    }

    /// Passes the lines that begin before `end`.
    fn each_stored(
        &self,
        file: &File,
        end: u64,
        cancel: &Cancel,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut lines = Lines::new(file, 0).with_cancel(cancel);
        loop {
            let line = match lines.next() {
                Ok(Some(line)) if line.offset < end => line,
                Ok(_) => return Ok(()),
                Err(_) if cancel.is_cancelled() => return Err(Error::cancelled()),
                Err(error) => return Err(read_failed(&error)),
            };
            if let Some(bytes) = readable(&line, end, self.version) {
                take(bytes)?;
            }
        }
    }
}

/// The bytes of a line, if it contains anything that can be read.
fn readable<'l>(line: &RawLine<'l>, end: u64, version: u64) -> Option<&'l [u8]> {
    let bytes = line.bytes?;
    // The part after `end` may be in flight.
    let len = usize::try_from(end - line.offset).map_or(bytes.len(), |len| len.min(bytes.len()));
    let bytes = bytes.get(..len)?;
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    let has_object = |version| {
        let recovered = recover(bytes, version);
        recovered.pieces.iter().any(|piece| piece.whole)
    };
    // On a damaged line, `recover` accepts a header only if no version is known. So the line is tested with the version
    // and without one.
    let is_whole = scan::scan_line(bytes).is_ok() || has_object(Some(version)) || has_object(None);
    is_whole.then_some(bytes)
}

fn read_failed(error: &io::Error) -> Error {
    Error::io("read the session file", error)
}
