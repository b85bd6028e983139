//! The input and the output of joining members into sessions.

use crate::ids::NodeId;
use crate::member::NodeKind;
use std::collections::{BTreeMap, HashMap, HashSet};
use treelined_core::agent::Tool;
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::Millis;

/// The number of a member in the input.
pub(crate) type MemberNumber = usize;

/// The rules by which members are joined.
pub(crate) struct Rules<'a> {
    pub(crate) tool: Tool,
    /// See [`Format::has_shared_keys`](crate::reader::Format::has_shared_keys).
    pub(crate) has_shared_keys: bool,
    /// Whether each native session becomes a separate session.
    pub(crate) split: bool,
    /// For each native session that was imported before, its session.
    pub(crate) placed: &'a HashMap<String, Placement>,
}

/// The session in which an earlier import put a native session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) session_id: String,
    /// The number of native sessions that were placed earlier. The session that was placed first owns shared nodes.
    pub(crate) rank: usize,
}

/// A planned session.
#[derive(Debug)]
pub(crate) struct SessionTree {
    pub(crate) session_id: String,
    /// The native session from which the id of the session is made.
    pub(crate) native_id: String,
    pub(crate) cwd: Option<String>,
    /// The branch and commit of git. They come from the member that the tool wrote last.
    pub(crate) git: GitPlace,
    pub(crate) name: Option<String>,
    pub(crate) started: Option<Millis>,
    /// The time of the last record of all members.
    pub(crate) ended: Option<Millis>,
    /// The members whose nodes the session has. The member that owns the common beginning is the first.
    pub(crate) members: Vec<MemberNumber>,
    /// The entries. Parents come before their children.
    pub(crate) entries: Vec<TreeEntry>,
    /// The entry at which the tool continues.
    pub(crate) leaf: Option<usize>,
    pub(crate) labels: Vec<ForkLabel>,
    /// The session from which the beginning is copied, or whose call spawned this session.
    pub(crate) parent_session: Option<String>,
    pub(crate) spawned_by: Option<SpawnPoint>,
    /// The number of branches whose tip the tool does not show any more.
    pub(crate) recovered: u64,
    /// Whether members were joined because of equal content alone.
    pub(crate) is_heuristic: bool,
    /// Whether the family belongs to another session, but an earlier import has made this session separate.
    pub(crate) is_family_split: bool,
    /// The nodes that the session already has as entries. Joining leaves it empty; a later comparison fills it.
    pub(crate) adopted: Adopted,
}

/// The nodes of native sessions that a session already has as entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Adopted {
    /// The adopted nodes. The key is the index of the planned entry, and the value is the entry that stands for the
    /// node. `None`: the node is at the empty position, before the first entry.
    pub(crate) entries: HashMap<usize, Option<String>>,
    /// The adopted nodes again, by the id that the entry of the node would have. Pairs that an import has already
    /// recorded are left out.
    pub(crate) new: BTreeMap<String, Option<String>>,
    /// The entry below which a planned entry without a parent is written.
    pub(crate) below: BTreeMap<usize, String>,
    /// When an import writes a native session into this session for the first time, it moves the leaf only if the leaf
    /// is one of these entries: the last adopted entry on the path to the native session's leaf, or the entry that was
    /// handed over last.
    pub(crate) starts: Vec<String>,
    /// The native sessions that were handed over or recorded. For these, another program may have moved the leaf of
    /// the session.
    pub(crate) guests: HashSet<String>,
    /// The number of nodes in the session file when its records were compared; `None` without records.
    pub(crate) compared: Option<usize>,
}

/// A planned entry.
#[derive(Debug)]
pub(crate) struct TreeEntry {
    pub(crate) id: NodeId,
    /// The index of the parent, which is an earlier entry.
    pub(crate) parent: Option<usize>,
    /// The time of the node. Without one, the time of the parent.
    pub(crate) time: Millis,
    pub(crate) content: EntryContent,
    /// If the entry is a copy, the session that has the original.
    pub(crate) copied_from: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EntryContent {
    Node {
        member: MemberNumber,
        /// The index in the nodes of the member.
        node: usize,
        /// The entry of the first node that a compaction keeps.
        first_kept: Option<NodeId>,
    },
    /// An entry that stands for a parent which no source has.
    Gap { expected_parent: Box<str> },
}

/// The label of a fork, at the first entry that the fork does not share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForkLabel {
    /// The index of the labelled entry.
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

/// The result for one member.
#[derive(Debug, Default)]
pub(crate) struct MemberOutcome {
    /// The index of its session. `None` if the member has no nodes and no base.
    pub(crate) session: Option<usize>,
    /// The number of nodes that the member owns.
    pub(crate) entries: u64,
    /// The number of gaps directly above nodes of the member.
    pub(crate) gaps: u64,
    /// The number of records whose nodes another member owns.
    pub(crate) shared: u64,
    /// The native session that owns the first of these records.
    pub(crate) prefix_shared_with: Option<String>,
}

/// All sessions of one tool, with the result for each member.
#[derive(Debug)]
pub(crate) struct Forest {
    pub(crate) sessions: Vec<SessionTree>,
    pub(crate) members: Vec<MemberOutcome>,
    /// For each member, the ids of its nodes' entries.
    pub(crate) node_ids: Vec<Vec<NodeId>>,
}

/// Whether an entry of this kind may be the leaf. Only steps may; bookkeeping may not.
pub(crate) fn may_be_leaf(kind: &NodeKind) -> bool {
    !matches!(kind, NodeKind::Custom | NodeKind::Subagent { .. })
}
