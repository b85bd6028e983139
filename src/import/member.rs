//! The conversation of a tool, as a reader returns it: its nodes, without the bodies of their entries.

use std::collections::BTreeMap;
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::Millis;

/// One record of a source: a JSON value.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The position of the record in the (decompressed) source, in bytes.
    pub at: u64,
    /// The number of the record in the source, from 0.
    pub number: u64,
    pub bytes: &'a [u8],
}

/// A range of bytes of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub at: u64,
    pub len: u64,
}

/// One conversation in one source. Members whose nodes copy or continue each other form a family, and become one
/// tree.
#[derive(Debug, Default)]
pub(crate) struct Member {
    /// The tool's id of the session, called its native id.
    pub(crate) native_id: String,
    /// The tool's id of this part of the session, if the tool keeps a session in several sources (in Codex, the id of
    /// the rollout). Otherwise it equals `native_id`.
    pub(crate) part_id: String,
    /// The position that the member continues.
    pub(crate) base: Base,
    /// The directory of the conversation.
    pub(crate) cwd: Option<String>,
    /// The last position in git that the tool has recorded for the conversation.
    pub(crate) git: GitPlace,
    /// The project. If a tool does not name the parent of a copy, equal content marks copies within one project.
    pub(crate) project: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) started: Option<Millis>,
    /// The time of the last record.
    pub(crate) ended: Option<Millis>,
    /// The nodes in the order of the source. Parents come before their children.
    pub(crate) nodes: Vec<Node>,
    /// Ids of records that have no node, each with the index of the node to which the children of the record are
    /// attached. Nodes of other members may name such a record as their parent.
    pub(crate) aliases: Vec<(Box<str>, u32)>,
    /// The index of the node at which the tool continues.
    pub(crate) leaf: Option<u32>,
    /// The call that has spawned the subagent, if the conversation belongs to a subagent.
    pub(crate) spawned_by: Option<Spawner>,
    /// Whether the tool has replaced this part of the session (in Codex, by a revert). A reader leaves this false; it
    /// is set when all members are read.
    pub(crate) is_superseded: bool,
    /// Whether the tool says that the last message has ended. Even then the nodes of this message are open: more of its
    /// records may follow the mark, so the mark counts only when the source has been quiet for a second.
    pub(crate) has_end_mark: bool,
    /// For each type, the number of records that only the origin keeps.
    pub(crate) origin_only: BTreeMap<String, u64>,
    /// The number of records that repeat an earlier record byte for byte.
    pub(crate) duplicates: u64,
    /// The number of messages and parts whose present state differs from the history that the tool keeps. The present
    /// state is imported.
    pub(crate) disagreements: u64,
}

/// The position that a member continues.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Base {
    /// The member continues nothing, or its nodes name their parents in other members by key.
    #[default]
    None,
    /// The last node of the part `part_id` whose `order` is less than `order`.
    Before { part_id: String, order: u64 },
    /// The member began as a copy of this session, as the tool has recorded.
    CopyOf { native_id: String },
}

/// The call that spawned a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spawner {
    pub(crate) native_id: String,
    pub(crate) tool_call_id: Option<String>,
}

/// A node, which becomes one entry.
#[derive(Debug)]
pub(crate) struct Node {
    /// The name of the node within its native session: the tool's id, or `#<record number>` (in Codex `<part
    /// id>#<ordinal>`). For a result, `/r:<call id>` is added; for the n-th further entry of one record, `/<n>`.
    pub(crate) key: Box<str>,
    pub(crate) parent: Parent,
    pub(crate) kind: NodeKind,
    /// The tool's time. Without one, the entry gets the time of its parent.
    pub(crate) time: Option<Millis>,
    /// The position in the order of the native session. In Codex it is the ordinal, otherwise the number of the first
    /// record.
    pub(crate) order: u64,
    /// The places of the records from which the entry is made. They are whole records.
    pub(crate) places: Vec<Place>,
    /// A hash of the content. Copies of the node have the same hash. The hash is 0 if the content does not identify a
    /// copy.
    pub(crate) fingerprint: u64,
    /// Data from other records that the mapper needs, in the mapper's own form. An example is the name of a result's
    /// tool.
    pub(crate) note: Option<Box<str>>,
    /// Whether the node belongs to the last model message or its results, which may still grow.
    pub(crate) is_open: bool,
}

/// The parent of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parent {
    /// The node begins a conversation, or continues the member's base.
    Base,
    /// The index of an earlier node of the same member.
    Node(u32),
    /// The key of a node that this member does not have. If no other member has this node, an entry for the gap is
    /// made.
    Key(Box<str>),
}

/// The entry that a node becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// A message that the user has typed.
    User,
    /// A message to the model from the harness, which is the program around the model.
    Scaffolding,
    Assistant,
    ToolResult,
    /// A summary. It replaces the messages before the node with the index `first_kept`. Without an index, it replaces
    /// all messages before the summary.
    Compaction {
        first_kept: Option<u32>,
    },
    ModelChange,
    /// A state or an event, which becomes an entry of type `custom`.
    Custom,
    /// A `custom` entry of the type `subagent`, at the call that has spawned this native session.
    Subagent {
        native_id: Box<str>,
    },
}

/// The type and the members of an entry, without `id`, `parentId`, `timestamp` and `origin`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// The type of the entry.
    pub(crate) kind: &'static str,
    /// The members as raw JSON, each with a comma before it, such as `,"message":{…}`. The caller adds
    /// `firstKeptEntryId` and a subagent's `sessionId`, because they have ids of other entries or sessions.
    pub(crate) members: Vec<u8>,
}
