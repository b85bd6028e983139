//! Tests whether an entry is an ancestor of another. Both may be in the tree, or in a batch that is being
//! appended.
//!
//! A batch can consist mostly of compactions, and each compaction needs such a test. Within the batch a test takes
//! logarithmic time: each entry knows its parent and one ancestor further up, and the links to these further ancestors
//! reach any depth in few steps. In the tree a path is walked once for all tests from the same node.

use crate::tree::{Node, Tree};
use hashbrown::{HashMap, HashSet};

/// The entries of a batch so far, linked to each other and to the tree.
pub(super) struct Paths<'a> {
    tree: &'a Tree,
    entries: Vec<BatchEntry>,
    by_id: HashMap<String, usize>,
    climb: Climb,
}

/// An entry of the batch.
#[derive(Clone, Copy)]
struct BatchEntry {
    /// The node of the tree above the first of its ancestors in the batch, or above the entry itself.
    base: Option<Node>,
    /// The number of its ancestors in the batch.
    depth: usize,
    /// The index of its parent in the batch; its own index if the parent is not in the batch.
    parent: usize,
    /// The index of an ancestor further up.
    jump: usize,
}

#[derive(Clone, Copy)]
enum PathPlace {
    Batch(usize),
    Tree(Node),
}

impl<'a> Paths<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self {
            tree,
            entries: Vec::new(),
            by_id: HashMap::new(),
            climb: Climb::default(),
        }
    }

    /// Adds the next entry of the batch.
    pub(super) fn add(&mut self, id: &str, parent_id: Option<&str>) {
        let at = self.entries.len();
        let root = |base| BatchEntry {
            base,
            depth: 0,
            parent: at,
            jump: at,
        };
        let entry = match parent_id.and_then(|id| self.place(id)) {
            None => root(None),
            Some(PathPlace::Tree(node)) => root(Some(node)),
            Some(PathPlace::Batch(parent)) => self.below(parent).unwrap_or(root(None)),
        };
        self.entries.push(entry);
        self.by_id.insert(id.to_owned(), at);
    }

    /// Whether `id` is on the path that ends at `end_id`.
    pub(super) fn is_on_path(&mut self, id: &str, end_id: Option<&str>) -> bool {
        let (place, end) = (self.place(id), end_id.and_then(|id| self.place(id)));
        match (place, end) {
            (Some(PathPlace::Batch(at)), Some(PathPlace::Batch(end))) => self.is_above(at, end),
            (Some(PathPlace::Tree(node)), Some(end)) => {
                let from = match end {
                    PathPlace::Tree(end) => Some(end),
                    PathPlace::Batch(end) => self.entries.get(end).and_then(|entry| entry.base),
                };
                from.is_some_and(|from| self.climb.passes(self.tree, from, node))
            }
            _ => false,
        }
    }

    fn place(&self, id: &str) -> Option<PathPlace> {
        match self.by_id.get(id) {
            Some(at) => Some(PathPlace::Batch(*at)),
            None => self.tree.find(id).map(PathPlace::Tree),
        }
    }

    /// A child of the entry `parent`. If the jump of the parent and the next jump above it have the same length, the
    /// child jumps over both. Otherwise it jumps to the parent.
    fn below(&self, parent: usize) -> Option<BatchEntry> {
        let above = self.entries.get(parent)?;
        let first = self.entries.get(above.jump)?;
        let second = self.entries.get(first.jump)?;
        let is_even = above.depth - first.depth == first.depth - second.depth;
        Some(BatchEntry {
            base: above.base,
            depth: above.depth + 1,
            parent,
            jump: if is_even { first.jump } else { parent },
        })
    }

    fn is_above(&self, wanted: usize, end: usize) -> bool {
        let depth = |at: usize| self.entries.get(at).map_or(0, |entry| entry.depth);
        let mut at = end;
        while let Some(entry) = self.entries.get(at).filter(|e| e.depth > depth(wanted)) {
            at = match depth(entry.jump) >= depth(wanted) {
                true => entry.jump,
                false => entry.parent,
            };
        }
        at == wanted
    }
}

/// The path above a node of the tree, up to the highest entry that a test has needed so far.
#[derive(Default)]
struct Climb {
    from: Option<Node>,
    passed: HashSet<Node>,
    next: Option<Node>,
}

impl Climb {
    fn passes(&mut self, tree: &Tree, from: Node, wanted: Node) -> bool {
        if self.from != Some(from) {
            self.passed.clear();
            (self.from, self.next) = (Some(from), Some(from));
        }
        while !self.passed.contains(&wanted) {
            let Some(at) = self.next else {
                return false;
            };
            self.passed.insert(at);
            self.next = tree.parent(at);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In random forests, the result equals a walk from parent to parent.
        #[test]
        fn an_entry_is_on_the_path_of_those_below_it(
            parents in prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), 1..60),
        ) {
            let tree = Tree::new();
            let mut paths = Paths::new(&tree);
            let mut above: Vec<Option<usize>> = Vec::new();
            for (at, parent) in parents.iter().enumerate() {
                let parent = parent.filter(|_| at > 0).map(|index| index.index(at));
                let parent_id = parent.map(|at| at.to_string());
                paths.add(&at.to_string(), parent_id.as_deref());
                above.push(parent);
            }
            for end in 0..above.len() {
                let path: Vec<usize> = std::iter::successors(Some(end), |at| above[*at]).collect();
                for at in 0..above.len() {
                    let found = paths.is_on_path(&at.to_string(), Some(&end.to_string()));
                    prop_assert_eq!(found, path.contains(&at), "{} above {}", at, end);
                }
            }
        }
    }

    /// In a chain of 100,000 every test takes a few dozen steps.
    #[test]
    fn a_long_chain_is_not_climbed_entry_by_entry() {
        let tree = Tree::new();
        let mut paths = Paths::new(&tree);
        paths.add("0", None);
        for at in 1..100_000 {
            paths.add(&at.to_string(), Some(&(at - 1).to_string()));
        }
        let mut steps = 0;
        let mut at = paths.entries.len() - 1;
        while at > 1 {
            let entry = paths.entries[at];
            at = if entry.jump >= 1 {
                entry.jump
            } else {
                entry.parent
            };
            steps += 1;
        }
        assert!(steps < 60, "{steps}");
        assert!(paths.is_on_path("1", Some("99999")));
        assert!(!paths.is_on_path("99999", Some("1")));
    }
}
