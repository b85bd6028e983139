//! One tool's conversation without its bodies.

use std::collections::BTreeMap;
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::Millis;

/// One record of a source: a JSON value.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Its start in the (decompressed) source, in bytes.
    pub at: u64,
    /// The number of the record in the source, from 0.
    pub number: u64,
    pub bytes: &'a [u8],
}

/// A stretch of a source, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub at: u64,
    pub len: u64,
}

/// One conversation in one source. Members whose nodes copy or continue each other make a family, and one tree.
#[derive(Debug, Default)]
pub(crate) struct Member {
    /// The tool's id of the session.
    pub(crate) native_id: String,
    /// The tool's id of this part of the session, if the tool keeps a session in several sources (Codex: the
    /// rollout id); otherwise `native_id`.
    pub(crate) part_id: String,
    /// The place that it continues.
    pub(crate) base: Base,
    /// Directory of the conversation.
    pub(crate) cwd: Option<String>,
    /// Where in git the conversation is, as far as the tool says so; the last place.
    pub(crate) git: GitPlace,
    /// Project within which equal content marks copies, if the tool names no parent.
    pub(crate) project: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) started: Option<Millis>,
    /// Time of the last record.
    pub(crate) ended: Option<Millis>,
    /// In the order of the source. Parents come before their children.
    pub(crate) nodes: Vec<Node>,
    /// Other ids by which nodes of other members may name their parent: the ids of records without a node, with the
    /// index of the node to which their children are attached.
    pub(crate) aliases: Vec<(Box<str>, u32)>,
    /// Index of the node at which the tool continues.
    pub(crate) leaf: Option<u32>,
    /// The call that spawned this conversation, if it is a subagent's.
    pub(crate) spawned_by: Option<Spawner>,
    /// Whether the tool has replaced this part of the session (Codex: by a revert). Known only once all members are
    /// read; a reader leaves it false.
    pub(crate) is_superseded: bool,
    /// Whether the tool says that the last message has ended. Its nodes are open all the same: the mark counts once the
    /// source has been quiet for a second, since records of the message may follow the one with the mark.
    pub(crate) has_end_mark: bool,
    /// Records that only the origin keeps, by type.
    pub(crate) origin_only: BTreeMap<String, u64>,
    /// Records that repeat an earlier one byte for byte.
    pub(crate) duplicates: u64,
    /// Messages and parts for which a tool's history and its present state differ. The present state counts.
    pub(crate) disagreements: u64,
}

/// The place that a member continues.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Base {
    /// None, or the nodes that its own nodes name by their keys.
    #[default]
    None,
    /// The last node of the part `part_id` whose `order` is less than `order`.
    Before { part_id: String, order: u64 },
    /// It began as a copy of this session, by the tool's own records.
    CopyOf { native_id: String },
}

/// The call that spawned a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spawner {
    pub(crate) native_id: String,
    pub(crate) tool_call_id: Option<String>,
}

/// One entry to be.
#[derive(Debug)]
pub(crate) struct Node {
    /// Names the node within its native session: the tool's id, or `#<record number>` (Codex:
    /// `<part id>#<ordinal>`); then `/r:<call id>` for a result, `/<n>` for the n-th further entry of one record.
    pub(crate) key: Box<str>,
    pub(crate) parent: Parent,
    pub(crate) kind: NodeKind,
    /// The tool's time; without one, the entry gets its parent's.
    pub(crate) time: Option<Millis>,
    /// Place in the order of the native session (Codex: the ordinal; otherwise the number of the first record).
    pub(crate) order: u64,
    /// Whole records from which the entry is made.
    pub(crate) places: Vec<Place>,
    /// Hash of the content that copies of this node share; 0 if content does not identify a copy.
    pub(crate) fingerprint: u64,
    /// The mapper's data from other records, in its own form (the tool's name of a result, …).
    pub(crate) note: Option<Box<str>>,
    /// Part of the last model message with its results, which may still grow.
    pub(crate) is_open: bool,
}

/// The parent of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parent {
    /// It begins a conversation, or continues the member's base.
    Base,
    /// Index of a node of the same member, before this one.
    Node(u32),
    /// Key of a node that this member does not have. Another member may; otherwise a gap marks the place.
    Key(Box<str>),
}

/// The entry that a node becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// A message that a person typed.
    User,
    /// A message of the harness to the model.
    Scaffolding,
    Assistant,
    ToolResult,
    /// A summary that replaces the messages before it, from `first_kept` (an index) on; without `first_kept`, all of
    /// them.
    Compaction {
        first_kept: Option<u32>,
    },
    ModelChange,
    /// State, or an event, as an entry of type `custom`.
    Custom,
    /// A `custom` entry `subagent` at the call that spawned this native session.
    Subagent {
        native_id: Box<str>,
    },
}

/// The members of an entry besides `type`, `id`, `parentId`, `timestamp` and `origin`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// Type of the entry.
    pub(crate) kind: &'static str,
    /// Raw JSON: each member with a comma before it, such as `,"message":{…}`. The writer adds the ids of other entries
    /// (`firstKeptEntryId`) and a subagent's `sessionId`.
    pub(crate) members: Vec<u8>,
}
