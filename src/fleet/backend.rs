//! The interface of a backend, which keeps the lines of sessions: a session directory, a stream or a database.

use memchr::memchr_iter;
use std::pin::Pin;
use std::sync::Arc;
use treelined_core::bytes::index;
use treelined_core::durability::Durability;
use treelined_core::error::Result;

/// A position in the log of a session, at the end of a line. Only the backend that returned it knows its meaning, for
/// example bytes of a file or the sequence of a message. Later positions are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// The position before the header. A session that does not exist ends here.
    pub const START: Self = Self(0);
}

/// Whole lines of a session, byte for byte. Each has its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Empty for a foreign message, which has a position but no lines (schema/fleet.md "The mapping").
    pub lines: Vec<u8>,
    /// The position after the lines.
    pub end: Position,
}

/// A line of a session, as the servers have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// The line with its line break.
    pub bytes: Vec<u8>,
    /// The account that added the line, as the servers report it. `None` if the servers keep no accounts with lines.
    pub account: Option<String>,
}

/// Adjacent parts, in order. An error ends the parts.
pub(crate) type LogParts<'a> = Box<dyn Iterator<Item = Result<LogPart>> + 'a>;

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The backend has the lines. They end at this position.
    Appended(Position),
    /// The log does not end at the expected position. Nothing was written.
    Conflict,
}

/// An append that waits for its outcome.
pub(crate) type Appending = Pin<Box<dyn Future<Output = Result<AppendOutcome>> + Send>>;

/// Identifies the log of a session among all logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogIdentity {
    /// The session's id.
    pub session: String,
    pub stream: String,
    /// The time at which the stream was created. A stream that is deleted and made again has the same name.
    pub created: String,
    pub subject: String,
}

/// A backend. Its calls wait, but never longer than their deadlines.
pub trait LogBackend: Send + Sync {
    /// Appends all of these lines or none, if the log of the session ends at `expected`. The first lines of a session
    /// begin with its header, at [`Position::START`]. If the answer of an append is lost and the append is repeated,
    /// the lines are still in the log only once.
    fn append(&self, session: &str, expected: Position, lines: &[u8]) -> Result<AppendOutcome>;

    /// Like [`Self::append`], but no thread waits. `None` if the backend cannot do this.
    fn begin_append(
        self: Arc<Self>,
        session: &str,
        expected: Position,
        lines: &Arc<Vec<u8>>,
    ) -> Option<Appending> {
        let _ = (session, expected, lines);
        None
    }

    /// The lines after `from`, up to the end that the log has now. A session that does not exist has no lines.
    fn read<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>>;

    /// Like [`Self::read`], but later parts follow when they arrive. Ends only with an error.
    fn follow<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>>;

    /// The last lines of a session, with the end of its log. `None` if the session does not exist. If a foreign message
    /// follows the lines, the end is after that message.
    fn last(&self, session: &str) -> Result<Option<LogPart>> {
        last_lines(self.read(session, Position::START)?)
    }

    /// A line of a session by its number, from 1. `None` if the log of the session has fewer lines. This implementation
    /// is for servers that keep no accounts with lines. It reads the session up to the line.
    fn line(&self, session: &str, number: u64) -> Result<Option<StoredLine>> {
        let mut before = 0;
        for part in self.read(session, Position::START)? {
            let lines = part?.lines;
            let many = memchr_iter(b'\n', &lines).count() as u64;
            if before + many >= number {
                let mut lines = lines.split_inclusive(|byte| *byte == b'\n');
                let line = lines.nth(index(number - before - 1));
                return Ok(line.map(|line| StoredLine {
                    bytes: line.to_vec(),
                    account: None,
                }));
            }
            before += many;
        }
        Ok(None)
    }

    /// The first session ids after the id `after`, sorted; empty at the end. With `None`, the list begins with the
    /// first session.
    fn list_after(&self, after: Option<&str>) -> Result<Vec<String>>;

    fn identity(&self, session: &str) -> Result<LogIdentity>;

    /// The durability of an acknowledged append: the lowest durability among the last answers.
    fn durability(&self) -> Durability {
        Durability::Replicated
    }

    /// The most bytes of an append whose lines can be split into several appends.
    fn max_append(&self) -> usize;

    /// The most bytes of an append that has only one line.
    fn max_line(&self) -> usize {
        self.max_append()
    }
}

/// The last lines of these parts, with the end of the last part. `None` if no part has lines.
pub(crate) fn last_lines(parts: LogParts<'_>) -> Result<Option<LogPart>> {
    let mut last: Option<LogPart> = None;
    for part in parts {
        let part = part?;
        last = match (last, part.lines.is_empty()) {
            (Some(before), true) => Some(LogPart {
                end: part.end,
                ..before
            }),
            (None, true) => None,
            (_, false) => Some(part),
        };
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_have_the_end_of_the_log() {
        let last = |parts: &[(&str, u64)]| {
            let parts: Vec<Result<LogPart>> = parts
                .iter()
                .map(|(lines, end)| {
                    Ok(LogPart {
                        lines: lines.as_bytes().to_vec(),
                        end: Position(*end),
                    })
                })
                .collect();
            let last = last_lines(Box::new(parts.into_iter())).unwrap();
            last.map(|last| (String::from_utf8(last.lines).unwrap(), last.end.0))
        };
        let some = |lines: &str, end| Some((lines.to_owned(), end));
        assert_eq!(last(&[]), None);
        assert_eq!(last(&[("", 1), ("", 2)]), None);
        assert_eq!(last(&[("", 1), ("a", 2)]), some("a", 2));
        assert_eq!(last(&[("a", 1), ("b", 2), ("", 5), ("", 6)]), some("b", 6));
    }
}
