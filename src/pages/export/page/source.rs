//! The session that a page shows.

use crate::export::request::Part;
use treelined_core::tree::Node;
use treelined_files::session::SessionState;

use crate::export::content::ContentSource;
use crate::export::head::SessionHead;
use crate::session_render::RenderPlan;
use std::collections::HashMap;
use std::ops::Range;
use treelined_core::view::{Outline, Snapshot, Visible};
use treelined_files::log::body::Fetch;

/// The number of rows of a chunk.
pub(super) const CHUNK_ROWS: usize = 4096;

/// The parts of a session that a page needs, at one point in time.
pub struct PageSource {
    pub(super) head: SessionHead,
    pub(super) content: ContentSource,
    pub(super) part: PagePart,
    /// For each of the [`FILTERS`], the entries in scope.
    pub(super) outlines: Vec<Outline>,
    /// For a branch or a subtree: for each item, whether the page has it.
    pub(super) matched: Option<Vec<bool>>,
    /// Every row of the file.
    pub(super) all: Visible,
    pub(super) snapshot: Snapshot,
    /// For each row, how its entry is read.
    pub(super) fetches: Vec<Fetch>,
    /// How summaries are rendered, by row. A rendered summary names the entries that it replaced.
    pub(super) plans: HashMap<usize, RenderPlan>,
    /// The rows of each chunk of bodies.
    pub(super) parts: Vec<Range<usize>>,
    pub(super) is_redacted: bool,
}

/// The exported part, by the ids of its entries.
pub(super) struct PagePart {
    pub(super) scope: &'static str,
    pub(super) entry_id: Option<String>,
    pub(super) leaf_id: Option<String>,
    /// The row that is shown first, if there is one.
    pub(super) selected: Option<usize>,
}

impl PagePart {
    pub(super) fn new(state: &SessionState, part: Part, all: &Visible, nodes: &[Node]) -> Self {
        let id = |node: Node| state.tree.id(node).to_owned();
        let row_of = |node: Option<Node>| nodes.iter().position(|at| Some(*at) == node);
        let (scope, entry) = match part {
            Part::Tree => ("tree", None),
            Part::Branch(tip) => ("branch", tip),
            Part::Subtree(top) => ("subtree", Some(top)),
        };
        let leaf_row = match part {
            // The leaf may be a label, which a subtree leaves out. In this case, the row above the label is the row of
            // the leaf.
            Part::Subtree(_) => all.rows().iter().position(|row| row.is_leaf),
            Part::Tree | Part::Branch(_) => row_of(state.leaf()),
        };
        let leaf = leaf_row.and_then(|row| nodes.get(row).copied());
        Self {
            scope,
            entry_id: entry.map(id),
            leaf_id: leaf.map(id),
            selected: leaf_row
                .or_else(|| row_of(entry))
                .or(nodes.len().checked_sub(1)),
        }
    }
}
