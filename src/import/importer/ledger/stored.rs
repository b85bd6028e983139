//! Lines of the ledger that are read only when their rows are needed.

use super::line::Line;
use super::rows::{DatabaseRow, SessionRow, SourceRow};
use std::ops::Range;
use std::sync::OnceLock;

/// A line of the ledger. Its row is kept after it was needed for the first time.
#[derive(Debug)]
pub(super) struct Stored<R> {
    /// The range of the line in the text of the ledger, in bytes.
    place: Range<usize>,
    row: OnceLock<Option<Box<R>>>,
}

/// A row of a ledger.
pub(super) trait Row: Sized {
    fn of(line: Line) -> Option<Self>;
}

impl<R: Row> Stored<R> {
    pub(super) fn at(place: Range<usize>) -> Self {
        let row = OnceLock::new();
        Self { place, row }
    }

    /// The line. `text` is the text of the ledger.
    pub(super) fn line<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.place.clone()).unwrap_or_default()
    }

    /// The row of the line; `None` if the line is damaged. `text` is the text of the ledger.
    pub(super) fn row(&self, text: &[u8]) -> Option<&R> {
        let read = || Line::parse(self.line(text)).and_then(R::of).map(Box::new);
        self.row.get_or_init(read).as_deref()
    }
}

#[cfg(test)]
impl<R> Stored<R> {
    pub(super) fn is_read(&self) -> bool {
        self.row.get().is_some()
    }
}

impl Row for SourceRow {
    fn of(line: Line) -> Option<Self> {
        match line {
            Line::Source(row) => Some(row),
            _ => None,
        }
    }
}

impl Row for DatabaseRow {
    fn of(line: Line) -> Option<Self> {
        match line {
            Line::Database(row) => Some(row),
            _ => None,
        }
    }
}

impl Row for SessionRow {
    fn of(line: Line) -> Option<Self> {
        match line {
            Line::Session(row) => Some(row),
            _ => None,
        }
    }
}
