//! The content of a subtree as a new session. It is prepared while the guard of the source is held, and copied
//! without the guard (protocol.md §16).

use super::state::SessionState;
use crate::log::body::{Bodies, Fetch};
use treelined_core::error::Result;
use treelined_core::flow::subtree::{self, relinked};
use treelined_core::flow::{IdAllocator, leaf};
use treelined_core::id::Source;
use treelined_core::json;
use treelined_core::tree::{Cause, Node};

/// The lines of a subtree.
pub struct SubtreeContent {
    bodies: Bodies,
    lines: Vec<SubtreeLine>,
    /// A leaf record as the last line. It is needed if the other lines do not give the leaf, or if the leaf is not at
    /// the newest step (session-file.md §4.2).
    leaf_record: Option<Vec<u8>>,
}

/// A line of the source, with its new links.
struct SubtreeLine {
    fetch: Fetch,
    parent: Option<String>,
    boundary: Option<String>,
}

impl SubtreeContent {
    /// Prepares the subtree of `top`. Reads only the bodies of compactions, and bodies with a reference that must
    /// be resolved.
    pub fn prepare(state: &SessionState, top: Node, minter: &dyn Source) -> Result<Self> {
        let (tree, bodies) = (&state.tree, state.bodies());
        let plan = subtree::plan(tree, top, |node| {
            let entry = state.entry(node)?;
            let boundary = json::get(&entry, "firstKeptEntryId").and_then(json::id);
            Ok(boundary.and_then(|id| tree.find(&id)))
        })?;
        let id = |node: Node| tree.id(node).to_owned();
        let mut lines = Vec::with_capacity(plan.kept.len() + plan.labels.len());
        for entry in &plan.kept {
            lines.push(SubtreeLine {
                fetch: bodies.fetch(tree, entry.node)?,
                parent: entry.parent.map(id),
                boundary: entry.boundary.map(id),
            });
        }
        let mut last = plan.leaf;
        for label in &plan.labels {
            lines.push(SubtreeLine {
                fetch: bodies.fetch(tree, *label)?,
                parent: last.map(id),
                boundary: None,
            });
            last = Some(*label);
        }
        let end = plan.kept.last().map(|entry| entry.node);
        let mut steps = plan.kept.iter().rev().map(|entry| entry.node);
        let newest = steps.find(|node| !tree.kind(*node).is_bookkeeping());
        let is_beside = newest.is_some() && newest != tree.skip_bookkeeping(plan.leaf);
        let is_elsewhere = plan.labels.is_empty() && plan.leaf != end;
        let leaf_record = (is_beside || is_elsewhere).then(|| {
            let mut allocator = IdAllocator::new(tree, minter);
            let from = if plan.leaf == end { newest } else { end };
            leaf::record_from(&mut allocator, tree, from, last, Cause::SetLeaf.name())
        });
        Ok(Self {
            bodies,
            lines,
            leaf_record,
        })
    }

    /// Passes each line to `take`, without its line break. The header is not included.
    pub fn each_line(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut reader = self.bodies.reader();
        for line in &self.lines {
            let entry = reader.entry(&line.fetch)?;
            let (parent, boundary) = (line.parent.as_deref(), line.boundary.as_deref());
            take(&relinked(entry, parent, boundary))?;
        }
        self.leaf_record.iter().try_for_each(|record| take(record))
    }

    /// The number of bytes of the stored lines.
    pub fn size(&self) -> u64 {
        let sizes = self.lines.iter().map(|line| line.fetch.place.len);
        sizes.map(u64::from).sum()
    }
}
