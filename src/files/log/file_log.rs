//! The file of an open session: reads its new lines, and checks whether it is still the same file.

use super::body::Bodies;
use super::diagnostic::Damage;
use super::header::Header;
use super::ingest::Ingest;
use super::lines::{self, Lines};
pub(super) use super::state::{FileLog, OpenFile};
use super::state::{Log, LogStorage, OpenedLog, Standing};
use super::{append, parallel_scan};
use crate::cancel::Cancel;
use crate::os::FileAt;
use crate::os::file::{self, File, Identity, Location, Status};
use crate::os::handle::{Handle, HandleAccess};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use treelined_core::entry::foreign::{self, Writer};
use treelined_core::error::{Error, Result};
use treelined_core::json;
use treelined_core::tree::Tree;

/// How much of the beginning of a file is searched for lines of another tool: in bytes, and in lines.
const FOREIGN_HEAD: usize = 64 << 10;
const FOREIGN_LINES: usize = 50;

impl OpenFile {
    pub(super) fn new(handle: Handle, identity: Identity) -> Box<Self> {
        Box::new(Self {
            seen: Cell::new(None),
            handle,
            identity,
            stale: Arc::default(),
            previews: Arc::default(),
            checked: None,
        })
    }
}

/// The treatment of a last line without a line break.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// The line is read as an entry, if it is complete.
    Take,
    /// The line is not read, since it may be in flight.
    Leave,
}

impl FileLog {
    /// The log of a file that is not read yet. `open` is `None` if the file does not exist yet.
    pub(super) fn new(at: Location, open: Option<Box<OpenFile>>) -> Self {
        Self {
            at,
            open,
            claim: None,
            header_line: Vec::new(),
            header_at: 0,
            end: 0,
            ends_in_break: true,
            torn_at: None,
            tail_kept_to: 0,
            tail_to: 0,
        }
    }

    /// The log and its tree, after the whole file has been read.
    pub(super) fn opened(mut self, mut ingest: Ingest, mut tree: Tree) -> OpenedLog {
        let torn = ingest
            .diagnostics
            .iter()
            .any(|diagnostic| diagnostic.damage == Damage::TornTail);
        self.torn_at = torn.then_some(self.end);
        tree.set_leaf(tree.file_leaf());
        ingest.report_links(&tree);
        let diagnostics = std::mem::take(&mut ingest.diagnostics);
        OpenedLog {
            log: Log {
                store: LogStorage::File(self),
                ingest,
            },
            tree,
            diagnostics,
        }
    }

    pub(super) fn bodies(&self, ingest: &Ingest) -> Bodies {
        match &self.open {
            Some(open) => Bodies::file(
                self.file(open, HandleAccess::Read),
                Arc::clone(&open.stale),
                Arc::clone(&open.previews),
                open.checked.clone(),
                ingest.version(),
                Arc::clone(ingest.boundaries()),
            ),
            None => Bodies::nothing(),
        }
    }

    /// The opened file, which is reopened if it was closed. Fails with `sessionDeleted` or `sessionReplaced` if the
    /// path no longer leads to this file.
    pub(super) fn file(&self, open: &OpenFile, access: HandleAccess) -> Result<Arc<File>> {
        open.handle.get(access, || {
            let file = match self.at.folder.file(&self.at.name, access) {
                Ok(file) => file,
                Err(error) => {
                    return match self.at.status() {
                        Err(gone) if is_gone(&gone) => Err(append::deleted()),
                        _ => Err(error),
                    };
                }
            };
            let status = file::status_of(&file).map_err(|error| self.failed("stat", &error))?;
            if status.identity == open.identity {
                Ok(file)
            } else {
                Err(append::replaced())
            }
        })
    }

    /// Adds the lines after `end` to the tree.
    pub(super) fn read_on(
        &mut self,
        tree: &mut Tree,
        ingest: &mut Ingest,
        tail: Tail,
        cancel: &Cancel,
    ) -> Result<()> {
        let bodies = self.bodies(ingest);
        let Some(open) = &self.open else {
            return Ok(());
        };
        let at = self.at.clone();
        let failed = |error: io::Error| match cancel.is_cancelled() {
            true => Error::cancelled(),
            false => Error::io(&format!("read {}", at.path().display()), &error),
        };
        let file = self.file(open, HandleAccess::Read)?;
        self.pass_break(&file);
        let size = file::status_of(&file).map_err(failed)?.size;
        if tail == Tail::Leave && self.is_tail_still(&file, size).map_err(failed)? {
            return Ok(());
        }
        loop {
            let size = file::status_of(&file).map_err(failed)?.size;
            let division = parallel_scan::Division::for_bytes(size.saturating_sub(self.end));
            let division = division.filter(|_| self.ends_in_break);
            if let Some(division) = division {
                self.scan(&file, size, division, (tree, ingest, &bodies), cancel)?;
            }
            // Reads the rest of the file, or the one line that the scan cannot handle.
            let left = usize::try_from(size.saturating_sub(self.end)).unwrap_or(usize::MAX);
            let mut lines =
                Lines::in_chunks(&file, self.end, left.saturating_add(1).min(lines::CHUNK))
                    .with_cancel(cancel);
            loop {
                let Some(line) = lines.next().map_err(failed)? else {
                    return Ok(());
                };
                if !line.terminated && tail == Tail::Leave {
                    self.tail_to = line.offset + line.len;
                    return Ok(());
                }
                let end = line.offset + line.len + u64::from(line.terminated);
                if !ingest.line(tree, &bodies, &line)? {
                    return Ok(());
                }
                self.end = end;
                self.ends_in_break = line.terminated;
                if division.is_some() && size.saturating_sub(end) >= parallel_scan::WORTHWHILE {
                    break;
                }
            }
        }
    }

    /// Adds the lines of the first `size` bytes of the file, on several threads. Stops at a line that the threads
    /// cannot handle.
    fn scan(
        &mut self,
        file: &File,
        size: u64,
        division: parallel_scan::Division,
        (tree, ingest, bodies): (&mut Tree, &mut Ingest, &Bodies),
        cancel: &Cancel,
    ) -> Result<()> {
        let hasher = tree.id_hasher().clone();
        parallel_scan::scan_ranges(file, self.end, size, division, &hasher, |range| {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            tree.reserve(range.expected);
            tree.prefetch(range.hashes());
            for line in range.lines() {
                ingest.scanned_line(tree, bodies, &line)?;
                self.end = line.end();
            }
            Ok(())
        })
    }

    /// Whether there is still no line break after `end`. Reads only bytes that were not searched before.
    fn is_tail_still(&mut self, file: &File, size: u64) -> io::Result<bool> {
        if self.tail_to <= self.end || size < self.tail_to {
            return Ok(false);
        }
        let left = usize::try_from(size - self.tail_to).unwrap_or(usize::MAX);
        let mut buffer = vec![0; lines::CHUNK.min(left)];
        while self.tail_to < size {
            let read = file.read_at(&mut buffer, self.tail_to)?;
            let fresh = buffer.get(..read).unwrap_or_default();
            if read == 0 || memchr::memchr(b'\n', fresh).is_some() {
                return Ok(false);
            }
            self.tail_to += read as u64;
        }
        Ok(true)
    }

    /// Skips the line break that another process may have written after the last line that was read.
    pub(super) fn pass_break(&mut self, file: &File) {
        let mut next = [0];
        if !self.ends_in_break && file.read_at(&mut next, self.end).is_ok() && next == *b"\n" {
            self.end += 1;
            self.ends_in_break = true;
        }
    }

    /// Records the status that the file had before its lines were checked. `settled` is `None` if a later edit might
    /// leave the status unchanged.
    pub(super) fn note_checked(&mut self, settled: Option<Status>) {
        let (end, is_local) = (self.end, self.at.folder.is_multi_writer());
        if let Some(open) = &mut self.open {
            let whole = settled.filter(|status| is_local && status.size == end);
            open.checked = whole.map(Arc::new);
        }
    }

    /// The other tool that wrote the lines of the file. A header may precede these lines. `None` if one of the first
    /// lines is an entry of a session.
    pub(super) fn foreign_writer(&self) -> Result<Option<Writer>> {
        let Some(open) = &self.open else {
            return Ok(None);
        };
        let file = self.file(open, HandleAccess::Read)?;
        let mut head = vec![0; FOREIGN_HEAD];
        let read = file
            .read_at(&mut head, 0)
            .map_err(|error| Error::io(&format!("read {}", self.at.path().display()), &error))?;
        let lines = head.get(..read).unwrap_or_default();
        let mut found = None;
        for line in lines.split(|byte| *byte == b'\n').take(FOREIGN_LINES) {
            let [id, parent] = json::get_each(line, ["id", "parentId"]);
            if id.is_some() && parent.is_some() {
                return Ok(None);
            }
            found = found.or_else(|| foreign::writer(line));
        }
        Ok(found)
    }

    pub(super) fn read_header(&self, header: &Header) -> Result<Vec<u8>> {
        self.bodies(&Ingest::default()).read(header.place)
    }

    pub(super) fn standing_of(&self, open: &OpenFile, status: Status) -> Result<Standing> {
        if status.identity != open.identity
            || status.size < self.end
            || open.stale.load(Ordering::Acquire)
        {
            return Ok(Standing::Replaced);
        }
        if open.seen.get() != Some(status) {
            if !self.is_as_it_was(&*self.file(open, HandleAccess::Read)?) {
                return Ok(Standing::Replaced);
            }
            open.seen.set(Some(status));
        }
        Ok(match status.size - self.end {
            0 => Standing::Unchanged,
            // After `end` there is only a fragment, which was already searched.
            _ if status.size == self.tail_to => Standing::Unchanged,
            grown => Standing::Grown(grown),
        })
    }

    /// Whether the first line, and the end of the last line that was read, are unchanged. A program that migrates the
    /// file in place keeps the inode but changes the first line. A program that edits in place rarely leaves a line
    /// break at the same offset.
    fn is_as_it_was(&self, file: &File) -> bool {
        const LOOK: usize = 512;
        let mut buffer = [0; LOOK];
        let expected = self.header_line.get(..LOOK).unwrap_or(&self.header_line);
        let Some(buffer) = buffer.get_mut(..expected.len()) else {
            return false;
        };
        let read = file.read_exact_at(buffer, self.header_at);
        if read.is_err() || *buffer != *expected {
            return false;
        }
        let mut last = [0];
        !self.ends_in_break
            || self.end == 0
            || (file.read_exact_at(&mut last, self.end - 1).is_ok() && last == *b"\n")
    }

    pub(super) fn failed(&self, action: &str, error: &io::Error) -> Error {
        Error::io(&format!("{action} {}", self.at.path().display()), error)
    }
}

pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
