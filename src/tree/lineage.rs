//! Finds the root above a node when a late parent has to be checked for a cycle.
//!
//! A file may hold a long chain and then a million entries whose parents come late, each of which
//! asks for the root of that chain. Shortcuts left along the way keep that near linear.

use super::{NONE, steps};
use hashbrown::HashMap;

/// A shortcut is left once in this many steps.
const STRIDE: u32 = 64;

/// Ancestors already walked past: node → some ancestor of it. Links are only ever added at roots,
/// so a shortcut stays true.
#[derive(Default)]
pub struct Lineage(HashMap<u32, u32>);

impl Lineage {
    /// The root above `node`, by `parent`, which answers [`NONE`] at a root.
    pub fn root(&mut self, node: u32, parent: impl Fn(u32) -> u32) -> u32 {
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
