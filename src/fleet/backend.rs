//! A place that keeps the lines of sessions: a session directory, or a stream.

use std::pin::Pin;
use std::sync::Arc;
use treelined_core::error::Result;

/// A place in the log of a session, at the end of a line. Only the backend that returned it knows its meaning: bytes of
/// a file, or the sequence of a message. Later places are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// Before the header; the end of a session that does not exist.
    pub const START: Self = Self(0);
}

/// Whole lines of a session, each with its line break, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    pub lines: Vec<u8>,
    /// The position after them.
    pub end: Position,
}

/// Adjacent parts in order. Each may be an error, which ends them.
pub(crate) type LogParts<'a> = Box<dyn Iterator<Item = Result<LogPart>> + 'a>;

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The lines are kept and end here.
    Appended(Position),
    /// The log does not end at the expected position; nothing was written.
    Conflict,
}

/// An append that waits for its outcome.
pub(crate) type Appending = Pin<Box<dyn Future<Output = Result<AppendOutcome>> + Send>>;

/// The log of a session, distinguished from every other log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogIdentity {
    /// The session's id.
    pub session: String,
    pub stream: String,
    /// When the stream was created. A stream that was made anew has the same name.
    pub created: String,
    pub subject: String,
}

/// A place that keeps the lines of sessions. Calls wait, but never longer than their deadlines.
pub trait LogBackend: Send + Sync {
    /// Appends whole lines, all or none, if the log of the session ends at `expected`. The first lines of a session
    /// begin with its header, at [`Position::START`]. An outcome that was lost on its way is found again: the lines are
    /// there once.
    fn append(&self, session: &str, expected: Position, lines: &[u8]) -> Result<AppendOutcome>;

    /// Like [`Self::append`], without a thread that waits; `None` if the backend has no such way.
    fn begin_append(
        self: Arc<Self>,
        session: &str,
        expected: Position,
        lines: &Arc<Vec<u8>>,
    ) -> Option<Appending> {
        let _ = (session, expected, lines);
        None
    }

    /// The lines after `from` up to the present end. A session that does not exist has none.
    fn read<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>>;

    /// Like [`Self::read`], but then also returns each later part when it arrives. It ends only with an error.
    fn follow<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>>;

    /// The last part of a session's lines; `None` for a session that does not exist.
    fn last(&self, session: &str) -> Result<Option<LogPart>> {
        self.read(session, Position::START)?.last().transpose()
    }

    /// The ids of all sessions, sorted.
    fn list(&self) -> Result<Vec<String>>;

    fn identity(&self, session: &str) -> Result<LogIdentity>;

    /// The most bytes of an append, where several lines can be split.
    fn max_append(&self) -> usize;

    /// The most bytes of an append, which one line may have.
    fn max_line(&self) -> usize {
        self.max_append()
    }
}
