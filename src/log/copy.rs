//! A new session file and its tree, made together, so that what was just written is not read again.

use super::body::Bodies;
use super::file::{self, Location};
use super::handle::{Access, Handle};
use super::ingest::Ingest;
use super::{FileLog, Log, OpenFile, Opened, lines};
use crate::error::{Error, Result};
use crate::tree::{Copied, Place, Tree};

/// The log and tree of a file that is being written, as opening it would find them. Told of each line
/// in turn, the header first.
pub struct Draft {
    ingest: Ingest,
    tree: Tree,
    header_line: Vec<u8>,
    /// Bytes written so far.
    end: u64,
}

impl Draft {
    pub fn new(header_line: &[u8]) -> Result<Self> {
        let mut draft = Self {
            ingest: Ingest::default(),
            tree: Tree::new(),
            header_line: header_line.to_vec(),
            end: 0,
        };
        draft.line(header_line)?;
        Ok(draft)
    }

    /// A line of any kind, without its line break.
    pub fn line(&mut self, bytes: &[u8]) -> Result<()> {
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

    /// A copy of an entry, `len` bytes long, whose parent is the entry before it.
    pub fn copy(&mut self, len: usize, id: &str, facts: Copied) -> Result<()> {
        let place = Place {
            offset: self.end,
            len: u32::try_from(len).unwrap_or(u32::MAX),
        };
        let before = self.tree.node_count().checked_sub(1);
        let parent = before.and_then(|number| self.tree.node(number));
        self.ingest
            .copied_line(&mut self.tree, id, parent, facts, place)?;
        self.end += len as u64 + 1;
        Ok(())
    }

    /// The log, once the file is there. Should it not be as it was written, it is read.
    pub fn finish(self, at: Location) -> Result<Opened> {
        let file = at.folder.file(&at.name, Access::Read)?;
        let status = file::status_of(&file)
            .map_err(|error| Error::io(&format!("stat {}", at.path().display()), &error))?;
        if status.size != self.end || !self.ingest.diagnostics.is_empty() {
            return Log::open(at);
        }
        let log = FileLog {
            at,
            open: Some(OpenFile::new(
                Handle::new(file, Access::Read),
                status.identity,
            )),
            header_line: self.header_line,
            header_at: 0,
            end: self.end,
            ends_in_break: true,
            torn_at: None,
        };
        Ok(log.opened(self.ingest, self.tree))
    }
}
