//! The steps of the exported part at one point in time, so that the export needs no tree while it is written.

use super::super::request::Part;
use std::collections::HashMap;
use treelined_core::context::PathStep;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::tree::{Archived, Flags, Node, Tree};
use treelined_files::log::body::{Bodies, Fetch};

/// These bytes are counted for each step in addition to its stored bytes, so that many small steps also reach the
/// limit.
const STEP_BYTES: u64 = 64;

/// The steps of the exported part, by their nodes.
pub(super) struct Steps {
    /// The step of each node, by the number of the node; `None` if the node is not a step of the part.
    rows: Vec<Option<Step>>,
    /// All steps. Each step is after its parent, and after all steps below its older siblings.
    order: Vec<Node>,
    by_id: HashMap<String, Node>,
}

/// One step.
pub(super) struct Step {
    pub node: Node,
    pub kind: Kind,
    pub role: Role,
    pub fetch: Fetch,
    pub above: Option<Node>,
    /// The number of bytes of the path from the root to this step.
    pub path_bytes: u64,
    /// Whether the step is an answer that broke off, or a failed tool result or command.
    pub is_error: bool,
    pub is_active: bool,
    /// Whether it is in an archived branch.
    pub is_archived: bool,
    /// Whether an archived branch begins with this step.
    pub begins_archived: bool,
    pub is_background: bool,
    /// Whether a branch begins with this step: the step has siblings, or has no parent.
    pub begins: bool,
    /// The first step of its stretch. A stretch has the steps from the beginning of a branch down to the next fork.
    pub head: Node,
    /// The nearest step, at or above this step, that names a group of candidates.
    pub group: Option<Node>,
    /// The nearest step above this step that a model sees.
    pub prompt: Option<Node>,
    /// Whether this step or a step above it is a message.
    pub has_message: bool,
    /// Its number in [`Steps::in_order`]. `end` is the number after the last step below it.
    pub at: usize,
    pub end: usize,
}

impl Step {
    /// Whether the step changes what a model sees.
    fn is_seen(&self) -> bool {
        !is_setting(self.kind)
    }

    /// Whether it is an assistant's message that did not break off.
    pub(super) fn is_answer(&self) -> bool {
        self.kind == Kind::Message && self.role == Role::Assistant && !self.is_error
    }
}

/// Whether the context has the same messages with and without an entry of this kind.
pub(super) fn is_setting(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ThinkingLevelChange | Kind::ModelChange | Kind::ModeChange | Kind::Unknown
    )
}

impl Steps {
    pub(super) fn take(tree: &Tree, bodies: &Bodies, part: Part) -> Result<Self> {
        let links = links(tree, part);
        let mut counts = vec![0u32; tree.node_count()];
        for (_, above) in &links {
            if let Some(count) = above.and_then(|above| counts.get_mut(above.number())) {
                *count += 1;
            }
        }
        let archived = tree.archived();
        let mut steps = Self {
            rows: std::iter::repeat_with(|| None)
                .take(tree.node_count())
                .collect(),
            order: Vec::with_capacity(links.len()),
            by_id: HashMap::with_capacity(links.len()),
        };
        for (node, above) in links {
            let count = above.and_then(|above| counts.get(above.number()));
            let has_others = count.is_none_or(|count| *count > 1);
            steps.push(tree, bodies, &archived, node, above, has_others)?;
        }
        for node in steps.order.clone().into_iter().rev() {
            let step = steps.get(node).map(|step| (step.above, step.end));
            if let Some((Some(above), end)) = step
                && let Some(Some(above)) = steps.rows.get_mut(above.number())
            {
                above.end = above.end.max(end);
            }
        }
        for node in tree.ancestors(tree.leaf()) {
            if let Some(Some(row)) = steps.rows.get_mut(node.number()) {
                row.is_active = true;
            }
        }
        Ok(steps)
    }

    fn push(
        &mut self,
        tree: &Tree,
        bodies: &Bodies,
        archived: &Archived,
        node: Node,
        above: Option<Node>,
        has_others: bool,
    ) -> Result<()> {
        let fetch = bodies.fetch(tree, node)?;
        let begins = has_others || above.is_some_and(|above| tree.begins_background(node, above));
        let upper = above.and_then(|above| self.get(above));
        let bytes = STEP_BYTES + u64::from(fetch.place.len);
        let prompt = upper.and_then(|upper| match upper.is_seen() {
            true => Some(upper.node),
            false => upper.prompt,
        });
        let head = upper.filter(|_| !begins).map_or(node, |upper| upper.head);
        let group = match tree.names_group(node) {
            true => Some(node),
            false => upper.and_then(|upper| upper.group),
        };
        let step = Step {
            node,
            kind: tree.kind(node),
            role: tree.role(node),
            fetch,
            above,
            path_bytes: upper.map_or(0, |upper| upper.path_bytes) + bytes,
            is_error: tree.flags(node).has(Flags::ERROR),
            is_active: false,
            is_archived: archived.hides(node),
            begins_archived: archived.begins_with(node),
            is_background: tree.is_background(node),
            begins,
            head,
            group,
            prompt,
            has_message: tree.kind(node) == Kind::Message
                || upper.is_some_and(|upper| upper.has_message),
            at: self.order.len(),
            end: self.order.len() + 1,
        };
        self.order.push(node);
        self.by_id.insert(tree.id(node).to_owned(), node);
        if let Some(row) = self.rows.get_mut(node.number()) {
            *row = Some(step);
        }
        Ok(())
    }

    pub(super) fn get(&self, node: Node) -> Option<&Step> {
        self.rows.get(node.number())?.as_ref()
    }

    pub(super) fn find(&self, id: &str) -> Option<&Step> {
        self.get(*self.by_id.get(id)?)
    }

    /// The steps, each after its parent.
    pub(super) fn in_order(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.order.iter().filter_map(|node| self.get(*node))
    }

    /// The number of nodes of the session.
    pub(super) fn node_count(&self) -> usize {
        self.rows.len()
    }

    /// The steps from the root to `end`.
    pub(super) fn path(&self, end: Node) -> Vec<PathStep> {
        let mut path: Vec<PathStep> = self
            .up(end)
            .map(|step| PathStep {
                node: step.node,
                kind: step.kind,
                role: step.role,
            })
            .collect();
        path.reverse();
        path
    }

    /// This step and the steps above it.
    pub(super) fn up(&self, from: Node) -> impl Iterator<Item = &Step> {
        let next = |step: &&Step| self.get(step.above?);
        std::iter::successors(self.get(from), next)
    }

    /// The last steps of the branches that have a message of the user or an assistant, in file order. Archived branches
    /// are left out.
    pub(super) fn tips(&self, part: Part) -> Vec<Node> {
        let mut has_below = vec![false; self.rows.len()];
        let mut tips = Vec::new();
        let is_branch = matches!(part, Part::Branch(_));
        for step in self
            .in_order()
            .rev()
            .filter(|step| is_branch || !step.is_archived)
        {
            if has_below.get(step.node.number()) != Some(&true) && step.has_message {
                tips.push(step.node);
            }
            if let Some(above) = step
                .above
                .and_then(|above| has_below.get_mut(above.number()))
            {
                *above = true;
            }
        }
        tips.sort_unstable();
        tips
    }

    /// The answers with which a line of the data ends. For a branch, this is its last answer. Otherwise these are the
    /// answers without another answer below them, in file order and without archived branches.
    pub(super) fn ends(&self, part: Part) -> Vec<Node> {
        if let Part::Branch(_) = part {
            let last = self.in_order().rev().find(|step| step.is_answer());
            return last.map(|step| step.node).into_iter().collect();
        }
        let mut goes_on = vec![false; self.rows.len()];
        let mut ends = Vec::new();
        for step in self.in_order().rev().filter(|step| !step.is_archived) {
            let below = goes_on.get(step.node.number()) == Some(&true);
            if step.is_answer() && !below {
                ends.push(step.node);
            }
            let above = step.above.and_then(|above| goes_on.get_mut(above.number()));
            if let Some(above) = above {
                *above |= below || step.is_answer();
            }
        }
        ends.sort_unstable();
        ends
    }
}

/// The steps of a part, parents first. Each step comes with its parent.
fn links(tree: &Tree, part: Part) -> Vec<(Node, Option<Node>)> {
    let is_step = |node: Node| {
        let kind = tree.kind(node);
        kind != Kind::LeafRecord && !kind.is_bookkeeping()
    };
    let mut links = Vec::new();
    let mut open = match part {
        Part::Branch(tip) => {
            let mut above = None;
            for node in tree.path(tip).into_iter().filter(|node| is_step(*node)) {
                links.push((node, above));
                above = Some(node);
            }
            return links;
        }
        Part::Tree => tree
            .children(None)
            .into_iter()
            .map(|root| (root, None))
            .collect(),
        Part::Subtree(top) => vec![(top, None)],
    };
    open.reverse();
    let mut children = Vec::new();
    while let Some((node, above)) = open.pop() {
        let below = match is_step(node) {
            true => {
                links.push((node, above));
                Some(node)
            }
            false => above,
        };
        tree.children_into(Some(node), &mut children);
        open.extend(children.drain(..).rev().map(|child| (child, below)));
    }
    links
}
