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

/// Rows of a chunk.
pub(super) const CHUNK_ROWS: usize = 4096;

/// The session at one point in time, as a page needs it.
pub struct PageSource {
    pub(super) head: SessionHead,
    pub(super) content: ContentSource,
    pub(super) part: PagePart,
    /// For each of the [`FILTERS`] the entries in scope.
    pub(super) outlines: Vec<Outline>,
    /// For a branch or a subtree, the items that it has.
    pub(super) matched: Option<Vec<bool>>,
    /// Every row of the file.
    pub(super) all: Visible,
    pub(super) snapshot: Snapshot,
    /// For each row how to read its entry.
    pub(super) fetches: Vec<Fetch>,
    /// How to render summaries, which name the entries that they replaced, by row.
    pub(super) plans: HashMap<usize, RenderPlan>,
    /// The rows of each chunk of bodies.
    pub(super) parts: Vec<Range<usize>>,
    pub(super) is_redacted: bool,
}

/// The exported part, by ids.
pub(super) struct PagePart {
    pub(super) scope: &'static str,
    pub(super) entry_id: Option<String>,
    pub(super) leaf_id: Option<String>,
    /// The row that is shown first.
    pub(super) selected: Option<usize>,
}

impl PagePart {
    pub(super) fn new(core: &SessionState, part: Part, all: &Visible, nodes: &[Node]) -> Self {
        let id = |node: Node| core.tree.id(node).to_owned();
        let row_of = |node: Option<Node>| nodes.iter().position(|at| Some(*at) == node);
        let (scope, entry) = match part {
            Part::Tree => ("tree", None),
            Part::Branch(tip) => ("branch", tip),
            Part::Subtree(top) => ("subtree", Some(top)),
        };
        let leaf_row = match part {
            // The leaf may be a label that is left out: the row above it counts.
            Part::Subtree(_) => all.rows().iter().position(|row| row.is_leaf),
            Part::Tree | Part::Branch(_) => row_of(core.leaf()),
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
