//! The entries of a summary, read from the session file. The branch is never in memory as a whole.

use std::ops::ControlFlow;
use std::sync::Arc;
use treelined_core::context::Edits;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::Result;
use treelined_core::summary::entries::{EntrySource, SummaryEntries};
use treelined_core::tree::Node;
use treelined_files::log::body::{Bodies, Fetch};
use treelined_files::session::SessionState;

/// The positions of entries in a session file. The file stays readable if another file replaces it at its path.
struct StoredEntries {
    bodies: Bodies,
    fetches: Vec<Fetch>,
}

impl EntrySource for StoredEntries {
    fn count(&self) -> usize {
        self.fetches.len()
    }

    fn pass(
        &self,
        numbers: &mut dyn Iterator<Item = usize>,
        see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut reader = self.bodies.reader();
        for fetch in numbers.map_while(|number| self.fetches.get(number)) {
            if reader.see_object(fetch, &mut *see)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The entries of these nodes, with `edits` applied. A compaction kept the first `kept` nodes.
pub(super) fn stored(
    state: &SessionState,
    nodes: impl IntoIterator<Item = Node>,
    edits: Edits,
    kept: Option<usize>,
) -> Result<SummaryEntries> {
    let source = StoredEntries {
        bodies: state.bodies(),
        fetches: state.fetch(nodes)?,
    };
    Ok(SummaryEntries::new(Arc::new(source), edits, kept))
}

/// The context edits among these nodes. Of several edits of an entry, the last one counts.
pub(super) fn edits(state: &SessionState, nodes: impl IntoIterator<Item = Node>) -> Result<Edits> {
    let mut edits = Edits::default();
    let kinds = |node: &Node| state.tree.kind(*node) == EntryKind::ContextEdit;
    for node in nodes.into_iter().filter(kinds) {
        edits.note(&state.entry(node)?);
    }
    Ok(edits)
}
