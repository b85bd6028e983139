//! The input and the output of the joining of members.

use crate::ids::NodeId;
use crate::member::NodeKind;
use crate::tool::Tool;
use std::collections::{BTreeMap, HashMap, HashSet};
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::Millis;

/// Number of a member in the input.
pub(crate) type MemberNumber = usize;

/// How members are joined.
pub(crate) struct Rules<'a> {
    pub(crate) tool: Tool,
    /// See [`Format::has_shared_keys`](crate::reader::Format::has_shared_keys).
    pub(crate) has_shared_keys: bool,
    /// Gives each native session its own session.
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
    /// The branch and commit of git, from the member that the tool wrote last.
    pub(crate) git: GitPlace,
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
    /// The entries that the session has already. Known only once it is compared; joining leaves it empty.
    pub(crate) adopted: Adopted,
}

/// The nodes of native sessions that are already entries of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Adopted {
    /// For each adopted node, by the index of its planned entry: the entry that has it. `None` for a node before the
    /// first entry.
    pub(crate) entries: HashMap<usize, Option<String>>,
    /// The same, by the ids that the nodes would have as entries. Only pairs that no import has recorded yet.
    pub(crate) new: BTreeMap<String, Option<String>>,
    /// The entry below which a planned entry without a parent is written.
    pub(crate) below: BTreeMap<usize, String>,
    /// When a native session continues in this session for the first time, an import moves the leaf only from one of
    /// these entries: the last adopted entry on the path to the native's leaf, and the entry that was handed over last.
    pub(crate) starts: Vec<String>,
    /// The native sessions that were handed over or recorded. Another program may have moved the leaf of the session.
    pub(crate) guests: HashSet<String>,
    /// The number of nodes of the session when its records were compared; `None` without records.
    pub(crate) compared: Option<usize>,
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

/// Whether an entry of this kind may be a leaf: a step of the conversation, not bookkeeping.
pub(crate) fn may_be_leaf(kind: &NodeKind) -> bool {
    !matches!(kind, NodeKind::Custom | NodeKind::Subagent { .. })
}
