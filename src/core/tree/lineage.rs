//! Finds the root above a node, to check for a cycle when a parent is read after its child.
//!
//! A file may hold a long chain of entries, and after it a million entries whose parents come later. Each of these
//! entries needs the root of the chain. Shortcuts from earlier walks keep the total time near linear.

use super::node::NONE;
use super::steps;
use hashbrown::HashMap;

/// The number of steps from one shortcut to the next.
const STRIDE: u32 = 64;

/// Shortcuts from a node to one of its ancestors. Only roots get new parents, so a shortcut stays valid.
#[derive(Default)]
pub(super) struct Lineage(HashMap<u32, u32>);

impl Lineage {
    /// The root above `node`. `parent` returns the parent of a node, or [`NONE`] for a root.
    pub(super) fn root(&mut self, node: u32, parent: impl Fn(u32) -> u32) -> u32 {
        let mut passed = vec![node];
        let mut at = node;
        let mut steps = 0;
        loop {
            let above = match self.0.get(&at) {
                Some(&shortcut) => {
                    passed.push(at);
                    shortcut
                }
                None => parent(at),
            };
            if above == NONE {
                break;
            }
            at = above;
            steps::count(1);
            steps += 1;
            if steps % STRIDE == 0 {
                passed.push(at);
            }
        }
        if steps > STRIDE {
            for from in passed {
                if from != at {
                    self.0.insert(from, at);
                }
            }
        }
        at
    }
}
