//! The children of each node. They are derived from the parents at the first use, and kept up to date from
//! then on.
//!
//! Opening a session does not need the children, so it does not make these lists.

use super::node::{NONE, NodeRow};
use crate::entry::Kind;
use std::sync::OnceLock;

/// The children of all nodes as linked lists: the first child of each node, the next sibling of each child.
#[derive(Default)]
pub(super) struct Children(OnceLock<Vec<ChildLinks>>);

/// The links of one node to the next nodes of its lists; [`NONE`] if there is none.
#[derive(Clone, Copy)]
struct ChildLinks {
    first_child: u32,
    last_child: u32,
    next_sibling: u32,
}

impl ChildLinks {
    const NONE: Self = Self {
        first_child: NONE,
        last_child: NONE,
        next_sibling: NONE,
    };
}

impl Children {
    fn links(&self, rows: &[NodeRow]) -> &[ChildLinks] {
        self.0.get_or_init(|| {
            let mut links = Vec::with_capacity(rows.len() + rows.len() / 8);
            links.resize(rows.len(), ChildLinks::NONE);
            for (row, number) in rows.iter().zip(0..) {
                // A leaf record is not a node's child.
                if row.parent != NONE && row.kind != Kind::LeafRecord {
                    link(&mut links, number, row.parent);
                }
            }
            links
        })
    }

    /// The children of a node, in no particular order.
    pub(super) fn of(&self, rows: &[NodeRow], node: u32) -> impl Iterator<Item = u32> {
        let links = self.links(rows);
        let some = |at: u32| (at != NONE).then_some(at);
        let first = links.get(node as usize).and_then(|of| some(of.first_child));
        std::iter::successors(first, move |child| {
            some(links.get(*child as usize)?.next_sibling)
        })
    }

    /// The child of a node that has exactly one child.
    pub(super) fn only(&self, rows: &[NodeRow], node: u32) -> Option<u32> {
        let of = self.links(rows).get(node as usize)?;
        (of.first_child != NONE && of.first_child == of.last_child).then_some(of.first_child)
    }

    /// Whether the node has a child.
    pub(super) fn any(&self, rows: &[NodeRow], node: u32) -> bool {
        self.of(rows, node).next().is_some()
    }

    /// Adds a node without children.
    pub(super) fn add(&mut self) {
        if let Some(links) = self.0.get_mut() {
            links.push(ChildLinks::NONE);
        }
    }

    /// Makes `node`, which had no parent, a child of `parent`. The caller has set the parent in its row.
    pub(super) fn link(&mut self, node: u32, parent: u32) {
        if let Some(links) = self.0.get_mut() {
            link(links, node, parent);
        }
    }
}

fn link(links: &mut [ChildLinks], node: u32, parent: u32) {
    let Some(above) = links.get_mut(parent as usize) else {
        return;
    };
    match std::mem::replace(&mut above.last_child, node) {
        NONE => above.first_child = node,
        before => {
            if let Some(before) = links.get_mut(before as usize) {
                before.next_sibling = node;
            }
        }
    }
}
