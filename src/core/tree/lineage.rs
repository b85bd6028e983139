//! Finds the root above a node, to check for a cycle when a parent is read after its child.
//!
//! A file may hold a long chain and then a million entries whose parents come late, and each of them needs the root of
//! that chain. Shortcuts from earlier walks keep the total near linear.

use super::node::NONE;
use super::steps;
use hashbrown::HashMap;

/// Steps from one shortcut to the next.
const STRIDE: u32 = 64;

/// Shortcuts: from a node to one of its ancestors. Links are only added at roots, so that a shortcut
/// stays valid.
#[derive(Default)]
pub(super) struct Lineage(HashMap<u32, u32>);

impl Lineage {
    /// The root above `node`, by `parent`, which answers [`NONE`] at a root.
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
