//! The branches that were left in the turn of an entry on the path to the leaf.

use super::left::{LeftBranches, LeftReason, SaidText};
use std::collections::HashMap;
use std::sync::Arc;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::timestamp::Millis;
use treelined_core::tree::{Node, Tree, branches};
use treelined_files::log::body::BodyReader;

/// The most branches of a turn that are described.
const MOST: usize = 3;

/// The branches that were left in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftInTurn {
    pub count: u64,
    /// The newest ones first.
    pub newest: Vec<LeftAttempt>,
}

/// A branch that was left in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAttempt {
    pub tip_id: String,
    /// The time of the tip.
    pub at: Option<Millis>,
    pub reason: Option<LeftReason>,
    /// The last text of the user or the assistant on the branch.
    pub end: Option<SaidText>,
}

/// The turns of the path to the leaf. A turn begins after the last message before its prompt, so it includes other
/// prompts that were tried at the position of this prompt.
pub(crate) struct Turns<'t> {
    tree: &'t Tree,
    /// For each entry on the path to the leaf, its index in the path.
    places: Vec<Option<usize>>,
    /// For each prompt on the path: the index of the last message before the prompt, and the index of the prompt.
    prompts: Vec<(Option<usize>, usize)>,
    /// The branches that were left, each with the index in the path where it was left, ascending.
    left: Vec<(Option<usize>, Node)>,
    known: HashMap<usize, Option<Arc<LeftInTurn>>>,
}

impl<'t> Turns<'t> {
    /// Takes linear time. Archived branches are left out, unless `archived` is true.
    pub(crate) fn of(tree: &'t Tree, archived: bool) -> Self {
        let mut places = vec![None; tree.node_count()];
        let (mut prompts, mut message) = (Vec::new(), None);
        for (index, node) in tree.path(tree.leaf()).into_iter().enumerate() {
            if let Some(place) = places.get_mut(node.number()) {
                *place = Some(index);
            }
            if tree.kind(node) == Kind::Message {
                if tree.role(node) == Role::User {
                    prompts.push((message, index));
                }
                message = Some(index);
            }
        }
        let mut turns = Self {
            tree,
            places,
            prompts,
            left: Vec::new(),
            known: HashMap::new(),
        };
        turns.left = turns.left_branches(archived);
        turns
    }

    fn left_branches(&self, archived: bool) -> Vec<(Option<usize>, Node)> {
        let tree = self.tree;
        let hidden = (!archived).then(|| tree.archived());
        let tips = branches::list(tree).into_iter().map(|branch| branch.tip);
        let tips = tips.filter(|tip| self.place(*tip).is_none());
        let tips = tips.filter(|tip| hidden.as_ref().is_none_or(|it| !it.hides(*tip)));
        let mut known: Vec<Option<Option<usize>>> = vec![None; tree.node_count()];
        let mut left = Vec::new();
        for tip in tips {
            // The walk stops at the first entry whose place is known.
            let (mut passed, mut at) = (Vec::new(), None);
            for node in tree.ancestors(Some(tip)) {
                if let Some(place) = self.place(node) {
                    at = Some(place);
                    break;
                }
                if let Some(Some(place)) = known.get(node.number()) {
                    at = *place;
                    break;
                }
                passed.push(node);
            }
            for node in passed {
                if let Some(known) = known.get_mut(node.number()) {
                    *known = Some(at);
                }
            }
            left.push((at, tip));
        }
        left.sort_unstable();
        left
    }

    fn place(&self, node: Node) -> Option<usize> {
        self.places.get(node.number()).copied().flatten()
    }

    /// Whether a branch was left in the turn of an entry.
    pub(crate) fn has_left(&self, node: Node) -> bool {
        !self.left_near(self.turn(node)).is_empty()
    }

    /// The number of the turn of an entry; 0 is before the first prompt. `None` for an entry that is not on the path.
    fn turn(&self, node: Node) -> Option<usize> {
        let place = self.place(node)?;
        Some(self.prompts.partition_point(|(_, prompt)| *prompt <= place))
    }

    fn left_near(&self, turn: Option<usize>) -> &[(Option<usize>, Node)] {
        let Some(turn) = turn else {
            return &[];
        };
        let own = turn.checked_sub(1).and_then(|turn| self.prompts.get(turn));
        let first = own.and_then(|(message, _)| *message);
        let start = self.left.partition_point(|(at, _)| *at < first);
        let end = match self.prompts.get(turn) {
            Some((_, next)) => self.left.partition_point(|(at, _)| *at < Some(*next)),
            None => self.left.len(),
        };
        self.left.get(start..end).unwrap_or_default()
    }

    /// The branches that were left in the turn of an entry; `None` if there are none.
    pub(crate) fn left(
        &mut self,
        node: Node,
        explained: &LeftBranches<'_>,
        reader: &mut BodyReader<'_>,
    ) -> Result<Option<Arc<LeftInTurn>>> {
        let Some(turn) = self.turn(node) else {
            return Ok(None);
        };
        if let Some(known) = self.known.get(&turn) {
            return Ok(known.clone());
        }
        let mut tips: Vec<Node> = self
            .left_near(Some(turn))
            .iter()
            .map(|left| left.1)
            .collect();
        tips.sort_unstable();
        let count = tips.len() as u64;
        let mut newest = Vec::new();
        for tip in tips.into_iter().rev().take(MOST) {
            let own = self.tree.ancestors(Some(tip));
            let own: Vec<Node> = own.take_while(|node| self.place(*node).is_none()).collect();
            newest.push(LeftAttempt {
                tip_id: self.tree.id(tip).to_owned(),
                at: self.tree.timestamp(tip),
                reason: explained.reason(&own),
                end: explained.end(&own, reader)?,
            });
        }
        let left = (count > 0).then(|| Arc::new(LeftInTurn { count, newest }));
        self.known.insert(turn, left.clone());
        Ok(left)
    }
}
