//! Makes a new session file together with its tree, so that its lines need not be read again.
//!
//! Until the file is complete, it has a temporary name (session-file.md §5). The caller decides on its content, and on
//! whether it is synced.

use super::body::Bodies;
use super::ingest::Ingest;
use super::lines;
use super::state::{FileLog, Log, OpenFile, OpenedLog};
use crate::invariant::{always, never};
use crate::os::file::{self, File, Location};
use crate::os::handle::{Handle, HandleAccess};
use crate::os::temporary::Temporary;
use crate::parallel::Background;
use std::io::{self, Write};
use std::sync::Arc;
use treelined_core::bytes::{index, part};
use treelined_core::defect::breaks;
use treelined_core::error::{Error, Result};
pub(crate) use treelined_core::tree::{FilePlace, PlainFacts, Tree};

/// The number of bytes that are written at a time: few enough to stay in the cache of the processor between reading and
/// writing.
pub(crate) const CHUNK: usize = 1 << 20;
/// The number of chunks that may wait for the writer thread.
const WAITING: usize = 2;

/// The log and the tree of a file that is being made. They equal the log and the tree that opening the finished file
/// would give. Each line is added in turn, the header first. If the writer is dropped before it is finished, no file
/// remains.
pub(crate) struct LogWriter {
    at: Location,
    temporary: Temporary,
    output: Output,
    ingest: Ingest,
    tree: Tree,
    header_line: Vec<u8>,
    /// The number of bytes written so far.
    end: u64,
}

/// A line to copy byte for byte: an entry whose parent is the entry before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopiedLine<'a> {
    /// The position of the line in the source.
    pub place: FilePlace,
    pub id: &'a str,
    pub facts: PlainFacts,
}

/// A finished file.
pub struct FinishedLog {
    pub opened: OpenedLog,
    pub file: Arc<File>,
}

impl LogWriter {
    /// Begins the file of a session with this header. `tree` is empty, with room for the entries.
    pub(crate) fn begin(at: Location, header_line: Vec<u8>, tree: Tree) -> Result<Self> {
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

    /// Adds a line of any kind, given without its line break.
    pub(crate) fn line(&mut self, bytes: &[u8]) -> Result<()> {
        let room = self.output.room(bytes.len() + 1);
        let room = room.map_err(|error| write_failed(&self.at, &error))?;
        if let Some((end, text)) = room.split_last_mut() {
            text.copy_from_slice(bytes);
            *end = b'\n';
        }
        let line = lines::RawLine {
            offset: self.end,
            bytes: Some(bytes),
            len: bytes.len() as u64,
            terminated: true,
        };
        never!(
            "No line of a new session file has a line break inside",
            memchr::memchr(b'\n', bytes).is_some()
        )?;
        self.ingest
            .line(&mut self.tree, &Bodies::nothing(), &line)?;
        self.end += line.len + 1;
        Ok(())
    }

    /// Copies adjacent lines of the source, which have single line breaks between them. Fails with `sessionReplaced` if
    /// one of them has changed.
    pub(crate) fn copy(&mut self, source: &Bodies, run: &[CopiedLine<'_>]) -> Result<()> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let start = first.place.offset;
        let len = index(last.place.offset - start + u64::from(last.place.len));
        let room = self.output.room(len + 1);
        let room = room.map_err(|error| write_failed(&self.at, &error))?;
        let Some((end, text)) = room.split_last_mut() else {
            return Ok(());
        };
        source.read_into(text, start)?;
        *end = b'\n';
        for line in run {
            let at = index(line.place.offset - start);
            let stored = text.get(at..).unwrap_or_default();
            source.check_line(stored, line.place.len as usize, line.id)?;
            let place = FilePlace {
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

    /// Completes the file and gives it its name. Before the file gets its name, its first chunk is on disk, or the
    /// whole file if `synced`. If `synced`, the folder is synced too. If another program has already changed the file,
    /// it is read again.
    pub(crate) fn finish(self, synced: bool) -> Result<FinishedLog> {
        let at = self.at;
        let failed = |error: io::Error| write_failed(&at, &error);
        let file = self.output.finish().map_err(failed)?;
        always!(
            "A new session file has as many bytes as its lines",
            file::status_of(&file).map_err(failed)?.size == self.end
        )?;
        if synced {
            file.sync_all().map_err(failed)?;
        }
        self.temporary.name(&at).map_err(failed)?;
        if synced && let Err(error) = at.folder.sync() {
            // No client knows of the file yet, so it is removed.
            let _removed = at.folder.remove(&at.name);
            return Err(failed(error));
        }
        let status = file::status_of(&file).map_err(failed)?;
        if status.size != self.end || !self.ingest.diagnostics.is_empty() {
            let opened = Log::open(at)?;
            return Ok(FinishedLog { opened, file });
        }
        let handle = Handle::of(Arc::clone(&file), HandleAccess::Append);
        let mut log = FileLog::new(at, Some(OpenFile::new(handle, status.identity)));
        log.header_line = self.header_line;
        log.end = self.end;
        let opened = log.opened(self.ingest, self.tree);
        Ok(FinishedLog { opened, file })
    }
}

fn write_failed(at: &Location, error: &io::Error) -> Error {
    Error::io(&format!("write {}", at.path().display()), error)
}

/// Writes a file in chunks. If there is more than one chunk, a thread writes the full ones, since copying into the page
/// cache is the slowest step. The first chunk is synced before the file gets its name: after that, another process may
/// append and sync, and its success would not prove that the header is on disk.
struct Output {
    file: Arc<File>,
    chunk: WriteChunk,
    writer: Option<Background<WriteChunk>>,
}

/// A chunk of the file. The first `filled` bytes of `bytes` are written.
#[derive(Default)]
struct WriteChunk {
    bytes: Vec<u8>,
    filled: usize,
    /// Whether it is the first chunk, which has the header.
    is_first: bool,
}

impl WriteChunk {
    fn write_to(&self, mut file: &File) -> io::Result<()> {
        let missing = breaks("A new session file has as many bytes as its lines");
        let filled = self.filled.saturating_sub(usize::from(missing));
        file.write_all(part(&self.bytes, ..filled))?;
        match self.is_first {
            true => file.sync_data(),
            false => Ok(()),
        }
    }
}

impl Output {
    fn new(file: Arc<File>) -> Self {
        Self {
            file,
            chunk: WriteChunk {
                is_first: true,
                ..WriteChunk::default()
            },
            writer: None,
        }
    }

    /// Memory for the next `len` bytes of the file, which the caller fills. It may contain old bytes.
    fn room(&mut self, len: usize) -> io::Result<&mut [u8]> {
        if self.chunk.filled > 0 && self.chunk.filled + len > CHUNK {
            self.hand_over()?;
        }
        let WriteChunk { bytes, filled, .. } = &mut self.chunk;
        let start = *filled;
        *filled += len;
        if bytes.len() < *filled {
            // The buffer grows so that small files need one allocation, and large files few.
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
                let write = move |chunk: &WriteChunk| chunk.write_to(&file);
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
