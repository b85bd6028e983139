//! Who stands below whom: found from the parents when somebody first asks, and kept from then on.
//!
//! Opening a session asks nobody's children, and a million entries are quicker answered for without.

use super::{NONE, Row};
use crate::entry::Kind;
use std::sync::OnceLock;

/// The children of all nodes, as lists: the first child, and from each the next.
#[derive(Default)]
pub struct Children(OnceLock<Vec<Connection>>);

/// [`NONE`] where there is none.
#[derive(Clone, Copy)]
struct Connection {
    first_child: u32,
    last_child: u32,
    next_sibling: u32,
}

impl Connection {
    const NONE: Self = Self {
        first_child: NONE,
        last_child: NONE,
        next_sibling: NONE,
    };
}

impl Children {
    fn links(&self, rows: &[Row]) -> &[Connection] {
        self.0.get_or_init(|| {
            let mut links = Vec::with_capacity(rows.len() + rows.len() / 8);
            links.resize(rows.len(), Connection::NONE);
            for (row, number) in rows.iter().zip(0..) {
                // A record stands for a position and is nobody's child.
                if row.parent != NONE && row.kind != Kind::LeafRecord {
                    link(&mut links, number, row.parent);
                }
            }
            links
        })
    }

    /// Of a node, in no order that means anything.
    pub fn of(&self, rows: &[Row], node: u32) -> impl Iterator<Item = u32> {
        let links = self.links(rows);
        let some = |at: u32| (at != NONE).then_some(at);
        let first = links.get(node as usize).and_then(|of| some(of.first_child));
        std::iter::successors(first, move |child| {
            some(links.get(*child as usize)?.next_sibling)
        })
    }

    /// The child of a node that has exactly one.
    pub fn only(&self, rows: &[Row], node: u32) -> Option<u32> {
        let of = self.links(rows).get(node as usize)?;
        (of.first_child != NONE && of.first_child == of.last_child).then_some(of.first_child)
    }

    /// Whether the node has a child.
    pub fn any(&self, rows: &[Row], node: u32) -> bool {
        self.of(rows, node).next().is_some()
    }

    /// A node has come, with nobody below it.
    pub fn add(&mut self) {
        if let Some(links) = self.0.get_mut() {
            links.push(Connection::NONE);
        }
    }

    /// A node that stood below nobody has come below `parent`, and its row says so.
    pub fn link(&mut self, node: u32, parent: u32) {
        if let Some(links) = self.0.get_mut() {
            link(links, node, parent);
        }
    }
}

fn link(links: &mut [Connection], node: u32, parent: u32) {
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
