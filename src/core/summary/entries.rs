//! The entries of a summary. They are read again for each pass, so that a long branch is never in memory as a whole.

use crate::context::{Edits, kind_and_role};
use crate::entry::Kind;
use crate::error::Result;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// A list of entries as delivered, in file order, that can be read repeatedly.
pub trait EntrySource: Send + Sync {
    /// The number of entries.
    fn count(&self) -> usize;

    /// Passes the entries with these numbers to `see`, in the order of the numbers, until it breaks.
    fn pass(
        &self,
        numbers: &mut dyn Iterator<Item = usize>,
        see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()>;
}

impl EntrySource for Vec<Vec<u8>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn pass(
        &self,
        numbers: &mut dyn Iterator<Item = usize>,
        see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        for entry in numbers.map_while(|number| self.get(number)) {
            if see(entry).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The entries of a summary with context edits applied. The edits themselves, and the entries that they leave out, are
/// not passed. A copy has the same source.
#[derive(Clone)]
pub struct SummaryEntries {
    source: Arc<dyn EntrySource>,
    edits: Arc<Edits>,
    kept: Option<usize>,
}

impl Default for SummaryEntries {
    fn default() -> Self {
        Self::new(Arc::new(Vec::new()), Edits::default(), None)
    }
}

impl fmt::Debug for SummaryEntries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} entries", self.source.count())
    }
}

impl SummaryEntries {
    /// `kept` is the number of entries that a compaction kept; the entries after them are after this compaction. `None`
    /// without a compaction.
    pub fn new(source: Arc<dyn EntrySource>, edits: Edits, kept: Option<usize>) -> Self {
        Self {
            source,
            edits: Arc::new(edits),
            kept,
        }
    }

    /// The numbers of the entries that a compaction kept, and of the entries after it; `None` without a compaction.
    pub fn apart(&self) -> Option<(Range<usize>, Range<usize>)> {
        let kept = self.kept?;
        Some((0..kept, kept..self.source.count()))
    }

    /// The numbers of all entries.
    pub fn all(&self) -> Range<usize> {
        0..self.source.count()
    }

    /// Passes the entries with these numbers to `see`, until it breaks. Fails with the errors of the source.
    pub fn pass(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        mut see: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut numbers = numbers.into_iter();
        self.source.pass(&mut numbers, &mut |entry| {
            let Some((kind, role)) = kind_and_role(entry) else {
                return ControlFlow::Continue(());
            };
            if kind == Kind::ContextEdit {
                return ControlFlow::Continue(());
            }
            if !self.edits.concerns(entry) {
                return see(entry);
            }
            match self.edits.apply(kind, role, entry.to_vec()) {
                Some(edited) => see(&edited),
                None => ControlFlow::Continue(()),
            }
        })
    }

    /// Passes all entries to `see`.
    pub fn each(&self, mut see: impl FnMut(&[u8])) -> Result<()> {
        self.pass(self.all(), |entry| {
            see(entry);
            ControlFlow::Continue(())
        })
    }
}

#[cfg(test)]
impl From<Vec<Vec<u8>>> for SummaryEntries {
    /// Entries in memory, with the edits among them.
    fn from(entries: Vec<Vec<u8>>) -> Self {
        let mut edits = Edits::default();
        for entry in &entries {
            if let Some((Kind::ContextEdit, _)) = kind_and_role(entry) {
                edits.note(entry);
            }
        }
        Self::new(Arc::new(entries), edits, None)
    }
}
