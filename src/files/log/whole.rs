//! Copies all lines of a session under another header (`fork_session {scope:"tree"}`).
//!
//! Lines of version 3 are copied byte for byte, including damaged lines and leaf records. Lines of versions
//! 1 and 2 are migrated. Bytes after the last line break may be in flight, and are left out.

use super::cold;
use super::header::{CURRENT_VERSION, Header};
use super::rewrite;
use super::state::{FileLog, Log, LogStorage, OpenFile, OpenedLog};
use crate::os::FileAt;
use crate::os::file::{File, Location};
use crate::os::handle::HandleAccess;
use std::io::{self, Write};
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::Tree;

/// The number of bytes that are read at a time.
const CHUNK: usize = 1 << 18;

/// The lines of a session after its header, at one point in time.
pub struct SessionLines {
    /// The entries that were recovered before the header, as version 3.
    before_header: Vec<Vec<u8>>,
    lines: LineSource,
    /// The last lines: the leaf of the session, if the other lines do not give it, and the name of the fork.
    added: Vec<Vec<u8>>,
    /// The session file whose cold file is copied too.
    with_cold: Option<Location>,
}

enum LineSource {
    /// A range of bytes of the file.
    Stored {
        file: Arc<File>,
        at: u64,
        end: u64,
    },
    Made(Vec<Vec<u8>>),
}

impl SessionLines {
    /// Fails with `versionUnsupported` for lines of a newer version, since a header of version 3 would be
    /// wrong for them.
    pub fn prepare(log: &Log, tree: &Tree, added: Vec<Vec<u8>>) -> Result<Self> {
        let mut before_header = Vec::new();
        let lines = match &log.store {
            LogStorage::File(
                file_log @ FileLog {
                    open: Some(open), ..
                },
            ) => {
                before_header = log.before_header(tree)?;
                let after_header = file_log.header_at + file_log.header_line.len() as u64;
                match log.version() {
                    ..CURRENT_VERSION => LineSource::Made(log.migrated(tree, after_header)?),
                    CURRENT_VERSION => stored(file_log, open, after_header)?,
                    _ => return Err(of_newer_version()),
                }
            }
            _ => {
                let bodies = log.bodies();
                let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
                let lines = nodes.map(|node| bodies.read(tree.place(node)));
                LineSource::Made(lines.collect::<Result<_>>()?)
            }
        };
        Ok(Self {
            before_header,
            lines,
            added,
            with_cold: log.location().filter(|_| tree.has_shed()).cloned(),
        })
    }

    /// Whether there are no lines to write.
    pub fn is_empty(&self) -> bool {
        let has_lines = match &self.lines {
            LineSource::Stored { at, end, .. } => at < end,
            LineSource::Made(lines) => !lines.is_empty(),
        };
        self.before_header.is_empty() && !has_lines
    }

    /// Makes an ephemeral session of these lines.
    pub fn into_memory(self, header: Header) -> Result<OpenedLog> {
        let mut lines = self.before_header;
        if let LineSource::Made(made) = self.lines {
            lines.extend(made);
        }
        lines.extend(self.added);
        let mut log = Log::ephemeral(header);
        let mut tree = Tree::new();
        log.fill(&mut tree, lines)?;
        tree.set_leaf(tree.file_leaf());
        Ok(OpenedLog {
            log,
            tree,
            diagnostics: Vec::new(),
        })
    }

    /// Makes the session file, synced together with its folder, and opens it.
    pub fn to_file(&self, at: Location, header_line: &[u8]) -> Result<OpenedLog> {
        if let Some(from) = &self.with_cold {
            cold::copy(from, &at)?;
        }
        rewrite::replace(&at, &at, |out| {
            write_line(out, header_line)?;
            for line in &self.before_header {
                write_line(out, line)?;
            }
            match &self.lines {
                LineSource::Stored { file, at, end } => copy(file, *at, *end, out)?,
                LineSource::Made(lines) => {
                    for line in lines {
                        write_line(out, line)?;
                    }
                }
            }
            self.added.iter().try_for_each(|line| write_line(out, line))
        })?;
        Log::open(at)
    }
}

fn write_line(out: &mut impl Write, line: &[u8]) -> io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")
}

fn stored(log: &FileLog, open: &OpenFile, after_header: u64) -> Result<LineSource> {
    let file = log.file(open, HandleAccess::Read)?;
    let mut at = after_header;
    let mut next = [0];
    while at < log.end && file.read_at(&mut next, at).is_ok() && matches!(next, [b'\r' | b'\n']) {
        at += 1;
        if next == *b"\n" {
            break;
        }
    }
    let end = log.end;
    Ok(LineSource::Stored { file, at, end })
}

/// Copies whole lines. If the last one has no line break, it gets one.
fn copy(file: &File, mut at: u64, end: u64, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut last = b'\n';
    while at < end {
        let want = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
        let chunk = buffer.get_mut(..want).unwrap_or_default();
        let got = file.read_at(chunk, at)?;
        let read = chunk.get(..got).unwrap_or_default();
        let Some(newest) = read.last() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        last = *newest;
        out.write_all(read)?;
        at += got as u64;
    }
    match last {
        b'\n' => Ok(()),
        _ => out.write_all(b"\n"),
    }
}

fn of_newer_version() -> Error {
    Error::new(
        Kind::VersionUnsupported,
        "the session is of a newer version of the format and cannot be copied whole",
    )
}
