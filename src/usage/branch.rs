//! Divides the entries of a session among its branches (usage.md §1).

use std::collections::HashMap;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::search::Excerpt;
use treelined_core::tree::{Node, Tree, branches};
use treelined_core::view::{RowFacts, Subject};
use treelined_files::log::body::BodyReader;

/// The branches of a session. Each entry is in one of them.
pub(crate) struct Division<'t> {
    tree: &'t Tree,
    branches: Vec<Part>,
    /// The index of the branch of each entry.
    of: Vec<Option<usize>>,
}

/// One branch, with the data from which its title is read.
struct Part {
    tip: Node,
    is_active: bool,
    /// The name or the label.
    name: Option<String>,
    /// The user messages after the fork.
    prompts: Vec<Node>,
}

/// A branch as a row shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub tip: String,
    pub title: String,
    pub is_active: bool,
    pub reason: Option<String>,
}

impl<'t> Division<'t> {
    /// Takes linear time: each walk ends at an entry that has a branch.
    pub(crate) fn of(tree: &'t Tree) -> Self {
        let label = |node: Node| tree.label(node).map(|label| label.text.to_string());
        let active = tree.skip_bookkeeping(tree.leaf());
        let mut branches: Vec<Part> = branches::list(tree)
            .into_iter()
            .map(|branch| Part {
                tip: branch.tip,
                is_active: branch.is_active,
                name: branch
                    .named_by
                    .and_then(|named| tree.branch_name(named).map(str::to_owned))
                    .or_else(|| label(branch.tip)),
                prompts: branch.prompts,
            })
            .collect();
        // The path to the leaf is a branch too if steps are below the leaf.
        if let Some(leaf) = active.filter(|_| !branches.iter().any(|part| part.is_active)) {
            branches.push(Part {
                tip: leaf,
                is_active: true,
                name: label(leaf),
                prompts: Vec::new(),
            });
        }
        // Entries that several branches share belong to the active branch, if it is one of them. Otherwise they belong
        // to the branch that was written last.
        branches.sort_by_key(|part| std::cmp::Reverse((part.is_active, part.tip)));
        let mut division = Self {
            tree,
            branches,
            of: vec![None; tree.node_count()],
        };
        for index in 0..division.branches.len() {
            division.claim(index);
        }
        division.claim_bookkeeping();
        division
    }

    pub(crate) fn branch(&self, node: Node) -> Option<usize> {
        self.of.get(node.number()).copied().flatten()
    }

    /// Gives the path to the tip of a branch to this branch, up to the first entry that another branch has, or at which
    /// the branch was begun in the background.
    fn claim(&mut self, index: usize) {
        let Some(part) = self.branches.get(index) else {
            return;
        };
        let (tree, is_active) = (self.tree, part.is_active);
        let mut step_below = None;
        for node in tree.ancestors(Some(part.tip)) {
            if !tree.kind(node).is_bookkeeping() {
                let begins = |below| tree.begins_background(below, node);
                if !is_active && step_below.is_some_and(begins) {
                    break;
                }
                step_below = Some(node);
            }
            match self.of.get_mut(node.number()) {
                Some(slot @ None) => *slot = Some(index),
                _ => break,
            }
        }
    }

    /// Gives each entry without a branch to the branch of the nearest entry above that has a branch, else to the first
    /// branch.
    fn claim_bookkeeping(&mut self) {
        if self.branches.is_empty() {
            return;
        }
        for node in self.tree.entries() {
            let (mut passed, mut found) = (Vec::new(), None);
            for node in self.tree.ancestors(Some(node)) {
                found = self.branch(node);
                if found.is_some() {
                    break;
                }
                passed.push(node);
            }
            for node in passed {
                if let Some(slot) = self.of.get_mut(node.number()) {
                    *slot = found.or(Some(0));
                }
            }
        }
    }

    /// Reads the titles of these branches, and the reasons why they were left.
    pub(crate) fn named(
        &self,
        wanted: impl Iterator<Item = usize>,
        reader: &mut BodyReader<'_>,
    ) -> Result<HashMap<usize, Named>> {
        let mut named = HashMap::new();
        for index in wanted {
            let Some(part) = self.branches.get(index) else {
                continue;
            };
            let branch = Named {
                tip: self.tree.id(part.tip).to_owned(),
                title: self.title(part, reader)?,
                is_active: part.is_active,
                reason: None,
            };
            named.insert(index, branch);
        }
        let notes = self.tree.entries();
        for note in notes.filter(|node| self.tree.kind(*node) == Kind::Note) {
            let line = reader.stored(self.tree.place(note), usize::MAX)?;
            let member = |name| json::get_path(line, &["data", name]).and_then(json::string);
            let about = member("targetId").and_then(|id| self.tree.find(&id));
            let branch = about.and_then(|about| named.get_mut(&self.branch(about)?));
            if let (Some(branch), Some(reason)) = (branch, member("reason"))
                && !branch.is_active
            {
                branch.reason = Some(Excerpt::beginning(&reason).text);
            }
        }
        Ok(named)
    }

    fn title(&self, part: &Part, reader: &mut BodyReader<'_>) -> Result<String> {
        if let Some(name) = &part.name {
            return Ok(name.clone());
        }
        for prompt in &part.prompts {
            let facts = self.facts(*prompt, reader)?;
            if let Some(prompt) = facts.prompt() {
                return Ok(prompt.to_owned());
            }
        }
        Ok(self.facts(part.tip, reader)?.preview.into_owned())
    }

    fn facts(&self, node: Node, reader: &mut BodyReader<'_>) -> Result<RowFacts<'static>> {
        let subject = Subject {
            kind: self.tree.kind(node),
            role: self.tree.role(node),
            flags: self.tree.flags(node),
            calls: false,
        };
        let line = reader.stored(self.tree.place(node), usize::MAX)?;
        Ok(RowFacts::of_line(line, subject).into_owned())
    }
}
