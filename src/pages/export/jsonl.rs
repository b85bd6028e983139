//! Exports a session, a branch or a subtree as a session file (session-file.md §1).

use super::output::Output;
use super::request::{Part, Progress};
use treelined_core::author;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::fork::{End, ForkSide};
use treelined_core::id::Source;
use treelined_files::cancel::Cancel;
use treelined_files::clock;
use treelined_files::log::header::{CURRENT_VERSION, Header};
use treelined_files::log::readable::ReadableLines;
use treelined_files::session::SessionState;
use treelined_files::session::fork::ForkContent;
use treelined_files::session::subtree::SubtreeContent;

/// The lines of the exported file.
pub struct SessionFile {
    /// The header line; `None` if the other lines include it.
    header_line: Option<Vec<u8>>,
    lines: FileLines,
    /// The number of bytes of the stored lines.
    size: u64,
}

enum FileLines {
    Tree(ReadableLines),
    Branch(Box<ForkContent>),
    Subtree(SubtreeContent),
}

impl SessionFile {
    pub(super) fn take(state: &SessionState, part: Part, minter: &dyn Source) -> Result<Self> {
        if part != Part::Tree && state.log.version() > CURRENT_VERSION {
            let message = "the session is of a newer version of the format: export the whole tree";
            return Err(Error::new(Kind::VersionUnsupported, message));
        }
        let header_line = (part != Part::Tree).then(|| header(state, minter).to_line());
        let (lines, size) = match part {
            Part::Tree => {
                let lines = ReadableLines::prepare(&state.log, &state.tree)?;
                let size = lines.size();
                (FileLines::Tree(lines), size)
            }
            Part::Branch(tip) => {
                let end = End {
                    position: ForkSide::At,
                    tip,
                };
                let content = ForkContent::prepare(state, end, &[], None, minter)?;
                let size = content.size();
                (FileLines::Branch(Box::new(content)), size)
            }
            Part::Subtree(top) => {
                let content = SubtreeContent::prepare(state, top, minter)?;
                let size = content.size();
                (FileLines::Subtree(content), size)
            }
        };
        Ok(Self {
            header_line,
            lines,
            size,
        })
    }

    pub(super) fn write(
        &self,
        out: &mut Output,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<()> {
        self.each_line(cancel, progress, &mut |line| {
            out.write(line)?;
            out.write(b"\n")
        })
    }

    /// Passes each line to `pass`, without its line break. The names of users and machines are left out (protocol.md
    /// §16).
    pub(super) fn each_line(
        &self,
        cancel: &Cancel,
        progress: Progress<'_>,
        pass: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut read = 0;
        let mut take = |line: &[u8]| {
            pass(&author::without(line))?;
            read += line.len() as u64 + 1;
            progress(read.min(self.size), self.size);
            Ok(())
        };
        if let Some(line) = &self.header_line {
            take(line)?;
        }
        match &self.lines {
            FileLines::Tree(lines) => lines.each(cancel, &mut take),
            FileLines::Branch(content) => content.each_line(&mut take),
            FileLines::Subtree(content) => content.each_line(&mut take),
        }
    }
}

/// The header of the exported part as a new session. It names the source session.
fn header(state: &SessionState, minter: &dyn Source) -> Header {
    let source = state.log.header();
    let path = state
        .log
        .location()
        .map(|at| at.path().display().to_string());
    let id = source.map(|header| header.id.clone());
    let parent = path.filter(|_| state.log.is_written()).or(id);
    let cwd = source.map(|header| header.cwd.as_str()).unwrap_or_default();
    let new_id = clock::new_session_id();
    Header::new(new_id.as_str(), minter.now_ms(), cwd, parent.as_deref())
}
