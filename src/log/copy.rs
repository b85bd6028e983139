//! A new session file and its tree, made together, so that what was just written is not read again.
//!
//! Owns the file until it is whole: it is written under a temporary name, and nobody sees half of it
//! under its own (storage.md §5). What is in it is the caller's to say; making it durable, too.

use super::body::Bodies;
use super::ingest::Ingest;
use super::{FileLog, Log, OpenFile, OpenedLog, lines};
use crate::error::{Error, Result};
use crate::os::file::{self, Location};
use crate::os::handle::{Access, Handle};
use crate::os::temporary::Temporary;
use crate::parallel::Background;
use crate::tree::{Copied, PagePosition, Tree};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes handed to the file at a time: what is read stays in the processor's cache until it is written.
pub const CHUNK: usize = 1 << 20;
/// Chunks that wait to be written while the next one is filled.
const WAITING: usize = 2;

/// The log and tree of a file that is being written, as opening it would find them. Told of each line
/// in turn, the header first. Dropped before it is finished, it leaves nothing.
pub struct Draft {
    at: Location,
    temporary: Temporary,
    output: Output,
    ingest: Ingest,
    tree: Tree,
    header_line: Vec<u8>,
    /// Bytes given to the file so far.
    end: u64,
}

/// A line that is copied as it stands: an entry whose parent is the one before it.
#[derive(Debug, Clone, Copy)]
pub struct Verbatim<'a> {
    /// In the source.
    pub place: PagePosition,
    pub id: &'a str,
    pub facts: Copied,
}

/// What a finished draft has become.
pub struct Made {
    pub opened: OpenedLog,
    pub file: Arc<File>,
}

impl Draft {
    /// Begins the file of a session with this header; `tree` is empty, and has room for its entries.
    pub fn begin(at: Location, header_line: Vec<u8>, tree: Tree) -> Result<Self> {
        let temporary = Temporary::for_name(&at.folder, &at.name);
        let temporary = temporary.map_err(|error| write_failed(&at, &error))?;
        let file = Arc::clone(temporary.file());
        let mut draft = Self {
            at,
            temporary,
            output: Output::new(file),
            ingest: Ingest::default(),
            tree,
            header_line: Vec::new(),
            end: 0,
        };
        draft.line(&header_line)?;
        draft.header_line = header_line;
        Ok(draft)
    }

    /// A line of any kind, without its line break.
    pub fn line(&mut self, bytes: &[u8]) -> Result<()> {
        let room = self.output.room(bytes.len() + 1);
        let room = room.map_err(|error| write_failed(&self.at, &error))?;
        if let Some((end, text)) = room.split_last_mut() {
            text.copy_from_slice(bytes);
            *end = b'\n';
        }
        let line = lines::Line {
            offset: self.end,
            bytes: Some(bytes),
            len: bytes.len() as u64,
            terminated: true,
        };
        self.ingest
            .line(&mut self.tree, &Bodies::nothing(), &line)?;
        self.end += line.len + 1;
        Ok(())
    }

    /// Copies lines that follow each other in the source, each with a line break between. `sessionReplaced`
    /// if one of them is no longer the entry it was.
    pub fn copy(&mut self, source: &Bodies, run: &[Verbatim<'_>]) -> Result<()> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let start = first.place.offset;
        let len = (last.place.offset - start) as usize + last.place.len as usize;
        let room = self.output.room(len + 1);
        let room = room.map_err(|error| write_failed(&self.at, &error))?;
        let Some((end, text)) = room.split_last_mut() else {
            return Ok(());
        };
        source.read_into(text, start)?;
        *end = b'\n';
        for line in run {
            let at = (line.place.offset - start) as usize;
            let stored = text.get(at..).unwrap_or_default();
            source.check_line(stored, line.place.len as usize, line.id)?;
            let place = PagePosition {
                offset: self.end + at as u64,
                len: line.place.len,
            };
            let before = self.tree.node_count().checked_sub(1);
            let parent = before.and_then(|number| self.tree.node(number));
            self.ingest
                .copied_line(&mut self.tree, line.id, parent, line.facts, place)?;
        }
        self.end += len as u64 + 1;
        Ok(())
    }

    /// Gives the file its name, once all of it is written and, if `synced`, on disk with its folder.
    /// Should it not be as it was written, it is read.
    pub fn finish(self, synced: bool) -> Result<Made> {
        let at = self.at;
        let failed = |error: io::Error| write_failed(&at, &error);
        let file = self.output.finish().map_err(failed)?;
        if synced {
            file.sync_all().map_err(failed)?;
        }
        self.temporary.name(&at).map_err(failed)?;
        if synced && let Err(error) = at.folder.sync() {
            // Nobody has been told of it.
            let _removed = at.folder.remove(&at.name);
            return Err(failed(error));
        }
        let status = file::status_of(&file).map_err(failed)?;
        if status.size != self.end || !self.ingest.diagnostics.is_empty() {
            let opened = Log::open(at)?;
            return Ok(Made { opened, file });
        }
        let handle = Handle::of(Arc::clone(&file), Access::Append);
        let log = FileLog {
            at,
            open: Some(OpenFile::new(handle, status.identity)),
            claim: None,
            header_line: self.header_line,
            header_at: 0,
            end: self.end,
            ends_in_break: true,
            torn_at: None,
            tail_to: 0,
        };
        let opened = log.opened(self.ingest, self.tree);
        Ok(Made { opened, file })
    }
}

fn write_failed(at: &Location, error: &io::Error) -> Error {
    Error::io(&format!("write {}", at.path().display()), error)
}

/// Writes a file in chunks, from the second on by a thread of its own: the kernel's copying into the
/// page cache takes longer than everything else.
struct Output {
    file: Arc<File>,
    chunk: Chunk,
    writer: Option<Background<Chunk>>,
}

/// Bytes on their way into the file: the first `filled` of `bytes`.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    filled: usize,
}

impl Chunk {
    fn write_to(&self, mut file: &File) -> io::Result<()> {
        file.write_all(self.bytes.get(..self.filled).unwrap_or_default())
    }
}

impl Output {
    fn new(file: Arc<File>) -> Self {
        Self {
            file,
            chunk: Chunk::default(),
            writer: None,
        }
    }

    /// The next `len` bytes of the file, to be filled by the caller. They may hold anything before.
    fn room(&mut self, len: usize) -> io::Result<&mut [u8]> {
        if self.chunk.filled > 0 && self.chunk.filled + len > CHUNK {
            self.hand_over()?;
        }
        let Chunk { bytes, filled } = &mut self.chunk;
        let start = *filled;
        *filled += len;
        if bytes.len() < *filled {
            // Once for most files that are small, and once for those that are not.
            let grown = (2 * bytes.len()).min(CHUNK).max(*filled);
            bytes.resize(grown, 0);
        }
        let room = bytes.get_mut(start..*filled);
        room.ok_or_else(|| io::Error::other("no room"))
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let file = Arc::clone(&self.file);
                let write = move |chunk: &Chunk| chunk.write_to(&file);
                self.writer
                    .insert(Background::start("copy", WAITING, write)?)
            }
        };
        let used = writer.push(std::mem::take(&mut self.chunk))?;
        self.chunk.bytes = used.map_or_else(|| vec![0; CHUNK], |used| used.bytes);
        Ok(())
    }

    fn finish(mut self) -> io::Result<Arc<File>> {
        if let Some(mut writer) = self.writer.take() {
            writer.finish()?;
        }
        self.chunk.write_to(&self.file)?;
        Ok(self.file)
    }
}
