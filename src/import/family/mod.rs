//! Members joined into trees: one for each family and directory.
//!
//! A family is the set of members that copy or continue each other. In reading order: [`identity`] finds nodes that are
//! the same, [`links`] finds the parent of each, [`sessions`] groups members into sessions, and [`tree`] orders the
//! entries of each. All of it is linear in the nodes.

mod identity;
mod links;
mod sessions;
#[cfg(test)]
mod tests;
mod tree;

use super::Tool;
use super::ids::NodeId;
use super::member::{Base, Member, NodeKind};
use std::collections::HashMap;
use treelined_core::timestamp::Millis;

/// Number of a member in the input.
pub(crate) type MemberNumber = usize;

/// How members are joined.
pub(crate) struct Rules<'a> {
    pub(crate) tool: Tool,
    /// See [`super::Format::has_shared_keys`].
    pub(crate) has_shared_keys: bool,
    /// Gives each native session a session of its own.
    pub(crate) split: bool,
    /// Native sessions of earlier imports, with their session.
    pub(crate) placed: &'a HashMap<String, Placement>,
}

/// The session to which an earlier import gave a native session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) session_id: String,
    /// Its position among the placements: the earliest session owns shared nodes.
    pub(crate) rank: usize,
}

/// A planned session.
#[derive(Debug)]
pub(crate) struct SessionTree {
    pub(crate) session_id: String,
    /// The native session that names the session.
    pub(crate) native_id: String,
    pub(crate) cwd: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) started: Option<Millis>,
    /// Time of the last record of any member.
    pub(crate) ended: Option<Millis>,
    /// The members whose nodes it has, the owner of the common prefix first.
    pub(crate) members: Vec<MemberNumber>,
    /// Parents before children.
    pub(crate) entries: Vec<TreeEntry>,
    /// The entry at which the tool continues.
    pub(crate) leaf: Option<usize>,
    pub(crate) labels: Vec<ForkLabel>,
    /// The session from which its prefix is copied, or whose call spawned it.
    pub(crate) parent_session: Option<String>,
    pub(crate) spawned_by: Option<SpawnPoint>,
    /// Branches whose tip the tool no longer shows.
    pub(crate) recovered: u64,
    /// Members were joined by equal content alone.
    pub(crate) is_heuristic: bool,
    /// The family belongs to another session, but earlier imports made this one separate.
    pub(crate) is_family_split: bool,
}

/// A planned entry.
#[derive(Debug)]
pub(crate) struct TreeEntry {
    pub(crate) id: NodeId,
    /// Index of the parent, an earlier entry.
    pub(crate) parent: Option<usize>,
    /// The node's time, else its parent's.
    pub(crate) time: Millis,
    pub(crate) content: EntryContent,
    /// The session of the original, if this entry is a copy.
    pub(crate) copied_from: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EntryContent {
    Node {
        member: MemberNumber,
        /// Index in the nodes of the member.
        node: usize,
        /// The entry of a compaction's first kept node.
        first_kept: Option<NodeId>,
    },
    /// Marks the place of a parent that no source has.
    Gap { expected_parent: Box<str> },
}

/// The label of a fork at its first own entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForkLabel {
    /// Index of the labelled entry.
    pub(crate) entry: usize,
    pub(crate) id: NodeId,
    pub(crate) text: String,
}

/// The call that spawned a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpawnPoint {
    pub(crate) session_id: String,
    pub(crate) entry: Option<NodeId>,
    pub(crate) tool_call_id: Option<String>,
}

/// The outcome of a member.
#[derive(Debug, Default)]
pub(crate) struct MemberOutcome {
    /// Index of its session; `None` if it has no nodes and no base.
    pub(crate) session: Option<usize>,
    /// Nodes that it owns.
    pub(crate) entries: u64,
    /// Gaps before its own nodes.
    pub(crate) gaps: u64,
    /// Records whose nodes another member has too and owns.
    pub(crate) shared: u64,
    /// The native session that owns the first of them.
    pub(crate) prefix_shared_with: Option<String>,
}

/// All sessions of one tool, and the outcome of each member.
#[derive(Debug)]
pub(crate) struct Forest {
    pub(crate) sessions: Vec<SessionTree>,
    pub(crate) members: Vec<MemberOutcome>,
    /// For each member the entries of its nodes.
    pub(crate) node_ids: Vec<Vec<NodeId>>,
}

/// Joins the members of one tool. Sets their `is_superseded`, and takes their `aliases`.
pub(crate) fn join(members: &mut [Member], rules: &Rules<'_>) -> Forest {
    supersede(members);
    let order = order(members, rules);
    let mut nodes = identity::find(members, &order, rules);
    let links = links::resolve(members, &order, &nodes, rules);
    // The memory of a large import is highest while the entries are laid out.
    nodes.forget_names();
    for member in members.iter_mut() {
        member.aliases = Vec::new();
    }
    let sessions = sessions::group(members, &order, &nodes, &links, rules);
    tree::lay_out(members, &nodes, &links, &sessions, rules.tool)
}

/// The order in which members own shared nodes: earlier placements first, then by start; of those that started at the
/// same time, copies come after the session that they name.
fn order(members: &[Member], rules: &Rules<'_>) -> Vec<MemberNumber> {
    let copies = copies(members);
    let mut order: Vec<MemberNumber> = (0..members.len()).collect();
    order.sort_by_cached_key(|number| {
        let member = members.get(*number);
        member.map(|member| {
            let placed = rules.placed.get(&member.native_id);
            let longest_first = std::cmp::Reverse(member.nodes.len());
            (
                placed.map_or(usize::MAX, |placed| placed.rank),
                member.started.unwrap_or(Millis::MAX),
                copies.get(&*member.native_id).copied().unwrap_or_default(),
                member.native_id.clone(),
                member.part_id.clone(),
                longest_first,
            )
        })
    });
    order
}

/// For each native session that is a copy the number of sessions above it, each a copy of the next.
fn copies(members: &[Member]) -> HashMap<String, usize> {
    let mut parents: HashMap<&str, &str> = HashMap::new();
    for member in members {
        if let Base::CopyOf { native_id } = &member.base {
            parents.entry(&member.native_id).or_insert(native_id);
        }
    }
    let mut copies: HashMap<String, usize> = HashMap::new();
    for first in parents.keys() {
        let (mut path, mut at) = (Vec::new(), *first);
        // A cycle of names ends where it began.
        while let Some(parent) = parents.get(at)
            && !copies.contains_key(at)
        {
            copies.insert(at.to_owned(), 0);
            path.push(at);
            at = parent;
        }
        let above = copies.get(at).copied().unwrap_or_default();
        for (number, native_id) in path.into_iter().rev().enumerate() {
            copies.insert(native_id.to_owned(), above + number + 1);
        }
    }
    copies
}

/// Of several parts of one native session, the tool shows the most recently started.
fn supersede(members: &mut [Member]) {
    let mut shown: HashMap<String, (Option<Millis>, String)> = HashMap::new();
    let age = |member: &Member| (member.started, member.part_id.clone());
    for member in members.iter() {
        let newest = shown
            .entry(member.native_id.clone())
            .or_insert_with(|| age(member));
        *newest = std::mem::take(newest).max(age(member));
    }
    for member in members {
        let newest = shown.get(&member.native_id);
        member.is_superseded |= newest.is_some_and(|(_, part)| *part != member.part_id);
    }
}

/// Whether an entry of this kind may be a leaf: a step of the conversation, not bookkeeping.
pub(crate) fn may_be_leaf(kind: &NodeKind) -> bool {
    !matches!(kind, NodeKind::Custom | NodeKind::Subagent { .. })
}
