//! One entry of a session, as plain data: its kind, its role, and the envelope that the index keeps.
//!
//! The module is pure. [`scan`] reads a line into these types, [`draft`] extracts the text that goes back to an
//! editor, [`foreign`] recognizes the lines of other tools.

pub mod draft;
pub mod foreign;
pub mod scan;

use crate::json::{self, Malformed};
use std::borrow::Cow;
use std::fmt;

/// The `customType` of leaf records.
pub const LEAF_RECORD: &str = "treelined.leaf";
/// The `customType` of the record that ends a deleted session.
pub const TRASHED: &str = "treelined.trashed";
/// The `customType` of the record that follows [`TRASHED`] when the session is restored.
pub const RESTORED: &str = "treelined.restored";
/// The `customType` of the record that names a branch.
pub(crate) const BRANCH: &str = "treelined.branch";
/// The `customType` of the record that archives a branch.
pub const ARCHIVED: &str = "treelined.archived";
/// The `customType` of the record that brings an archived branch back.
pub(crate) const UNARCHIVED: &str = "treelined.unarchived";
/// The `customType` of the record of a branch whose lines are in the cold file.
pub(crate) const SHED: &str = "treelined.shed";
/// The `customType` of the record that changes the tags of the session.
pub const TAGS: &str = "treelined.tags";
/// The `customType` of the record that has the branch, commit and worktree of the session in git.
pub const GIT: &str = "treelined.git";
/// The cause of records that do not move the leaf.
pub(crate) const NO_MOVE: &str = "";
/// The cause of the leaf record that keeps the position where the file opens (session-file.md §4.3).
pub(crate) const KEEP: &str = "keep";
/// The cause of the leaf record that stores a continuation (session-file.md §4.6).
pub(crate) const CONTINUE: &str = "continue";

/// The `type` of an entry. A line of type `session` is a header ([`HeaderFacts`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    Message,
    ThinkingLevelChange,
    ModelChange,
    Compaction,
    BranchSummary,
    Custom,
    CustomMessage,
    Label,
    SessionInfo,
    Usage,
    ContextEdit,
    /// A `custom` entry of type `treelined.leaf`: a durable move of the leaf (session-file.md §4). A record of a
    /// deletion, of a branch, of tags or of git also has this kind; it moves nothing.
    LeafRecord,
    /// A type unknown to this program; the entry is kept.
    Unknown,
    /// A `custom` entry of type `note`, which is about another entry (session-file.md §1.4).
    Note,
    /// A change of the mode of oh-my-pi.
    ModeChange,
}

impl Kind {
    const ALL: [Kind; 15] = [
        Self::Message,
        Self::ThinkingLevelChange,
        Self::ModelChange,
        Self::Compaction,
        Self::BranchSummary,
        Self::Custom,
        Self::CustomMessage,
        Self::Label,
        Self::SessionInfo,
        Self::Usage,
        Self::ContextEdit,
        Self::LeafRecord,
        Self::Unknown,
        Self::Note,
        Self::ModeChange,
    ];

    /// The kind with this number (`kind as u8`). The numbers are part of the format of the side index.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The `type` in the file. `None` for [`Kind::Unknown`]: then only the line of the entry has the type.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Message => "message",
            Self::ThinkingLevelChange => "thinking_level_change",
            Self::ModelChange => "model_change",
            Self::Compaction => "compaction",
            Self::BranchSummary => "branch_summary",
            Self::Custom | Self::LeafRecord | Self::Note => "custom",
            Self::CustomMessage => "custom_message",
            Self::Label => "label",
            Self::SessionInfo => "session_info",
            Self::Usage => "usage",
            Self::ContextEdit => "context_edit",
            Self::ModeChange => "mode_change",
            Self::Unknown => return None,
        })
    }

    /// Whether entries of this kind are bookkeeping and not steps of the conversation. Two positions are the same
    /// conversation if only bookkeeping is between them (semantics.md, "The terms").
    pub fn is_bookkeeping(self) -> bool {
        matches!(
            self,
            Self::Label | Self::SessionInfo | Self::Custom | Self::Note | Self::Usage
        )
    }

    /// The kind of this type. Never [`Kind::LeafRecord`] or [`Kind::Note`]: these have the type `custom`, and only
    /// their `customType` shows their kind.
    pub fn of(name: &str) -> Self {
        match name {
            "message" => Self::Message,
            "thinking_level_change" => Self::ThinkingLevelChange,
            "model_change" => Self::ModelChange,
            "compaction" => Self::Compaction,
            "branch_summary" => Self::BranchSummary,
            "custom" => Self::Custom,
            "custom_message" => Self::CustomMessage,
            "label" => Self::Label,
            "session_info" => Self::SessionInfo,
            "usage" => Self::Usage,
            "context_edit" => Self::ContextEdit,
            "mode_change" => Self::ModeChange,
            _ => Self::Unknown,
        }
    }
}

/// The `role` of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Role {
    /// No message, or a message without a role.
    #[default]
    None,
    User,
    Assistant,
    ToolResult,
    System,
    BashExecution,
    /// `custom`, and `hookMessage`, its name before version 3.
    Custom,
    BranchSummary,
    CompactionSummary,
    /// A role unknown to this program.
    Other,
}

impl Role {
    const ALL: [Role; 10] = [
        Self::None,
        Self::User,
        Self::Assistant,
        Self::ToolResult,
        Self::System,
        Self::BashExecution,
        Self::Custom,
        Self::BranchSummary,
        Self::CompactionSummary,
        Self::Other,
    ];

    /// The role with this number (`role as u8`). The numbers are part of the format of the side index.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The role in a version 3 file. `None` for [`Role::None`], and for [`Role::Other`], whose name is only in the line
    /// of the entry.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "toolResult",
            Self::System => "system",
            Self::BashExecution => "bashExecution",
            Self::Custom => "custom",
            Self::BranchSummary => "branchSummary",
            Self::CompactionSummary => "compactionSummary",
            Self::None | Self::Other => return None,
        })
    }

    /// The role of this name.
    pub fn of(name: &str) -> Self {
        match name {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "toolResult" => Self::ToolResult,
            "system" => Self::System,
            "bashExecution" => Self::BashExecution,
            "custom" | "hookMessage" => Self::Custom,
            "branchSummary" => Self::BranchSummary,
            "compactionSummary" => Self::CompactionSummary,
            _ => Self::Other,
        }
    }
}

/// An entry's `parentId`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parent<'a> {
    /// Absent, or neither a string nor null.
    Absent,
    Null,
    Id(Cow<'a, str>),
}

/// The data of one entry that the index keeps. Strings are decoded, and borrowed if they have no escapes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope<'a> {
    pub kind: Kind,
    pub id: Option<Cow<'a, str>>,
    pub parent: Parent<'a>,
    /// The text in the file. It is ISO 8601 if the writer followed the format.
    pub timestamp: Option<Cow<'a, str>>,
    pub facts: Facts<'a>,
    /// Present for an entry that was appended in the background (session-file.md §4.9).
    pub background: Option<Background<'a>>,
    /// Present for an entry that came from another session (semantics.md §5.4).
    pub copied_from: Option<CopiedFrom<'a>>,
    /// Whether the line differs from the usual form: its members do not begin with `type, id, parentId, timestamp`, one
    /// of these members comes twice, or a key has an escape. For information only.
    pub odd: bool,
}

/// An append in the background: it extended a branch, and did not move the leaf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Background<'a> {
    /// The name of the question, if the branch is one of the candidates for its answer.
    pub group: Option<Cow<'a, str>>,
}

/// The entry of another session from which an entry was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiedFrom<'a> {
    pub session_id: Cow<'a, str>,
    pub entry_id: Cow<'a, str>,
}

/// The facts of an entry that rows, labels and the navigation log need. They depend on its kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Facts<'a> {
    None,
    Message {
        role: Role,
        /// Whether the entry is an assistant message without text, or with blank text, that has tool calls or thinking
        /// and did not end early.
        silent: bool,
        /// Whether the entry is a failed tool result or command, or an answer that ended in an error or was aborted.
        is_error: bool,
        /// The tool of a tool result.
        tool_name: Option<Cow<'a, str>>,
        said: MessageTime,
    },
    Compaction {
        tokens_before: Option<u64>,
        first_kept_entry_id: Option<Cow<'a, str>>,
        /// In version 1: the index of the entry among the parsed lines, where the header has the index 0.
        first_kept_entry_index: Option<u64>,
    },
    BranchSummary {
        from_id: Option<Cow<'a, str>>,
        merge: bool,
    },
    /// `None` for a null or empty label, which removes the label.
    Label {
        target_id: Option<Cow<'a, str>>,
        label: Option<Cow<'a, str>>,
    },
    /// `None` for a null or empty name, which removes the name.
    SessionInfo {
        name: Option<Cow<'a, str>>,
    },
    /// `display` is false only if the member is the literal `false`.
    CustomMessage {
        display: bool,
    },
    ContextEdit {
        target_id: Option<Cow<'a, str>>,
    },
    /// The cause is `NO_MOVE` for a record of a deletion.
    LeafRecord {
        from: Option<Cow<'a, str>>,
        cause: Option<Cow<'a, str>>,
    },
    /// A record of a branch (session-file.md §4.7). Its kind is [`Kind::LeafRecord`].
    BranchRecord {
        /// The first entry of the branch.
        entry_id: Option<Cow<'a, str>>,
        change: BranchChange<'a>,
    },
}

/// The change that a record makes to a branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BranchChange<'a> {
    /// `None` removes the name.
    Name(Option<Cow<'a, str>>),
    Archive,
    Unarchive,
    /// The lines of the branch are in the cold file (session-file.md §4.10).
    Shed,
}

/// The latest time that JavaScript can represent, in Unix milliseconds.
const MAX_MILLIS: f64 = 8.64e15;

/// The time at which a message of the user or the assistant was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageTime {
    /// The entry is not such a message, or the message has no content.
    Never,
    /// The message has no time, so the time of its entry counts.
    WithEntry,
    /// In Unix milliseconds.
    At(i64),
}

/// The content of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    Entry(Envelope<'a>),
    /// An object of type `session`, on any line.
    Header(HeaderFacts<'a>),
    /// The session's title. Some programs write this line at the start of a file; it is not an entry.
    Title(Option<Cow<'a, str>>),
    /// White space only.
    Blank,
}

/// The version of a header whose `version` is not a whole number. It counts as newer than every known version.
pub(super) const UNREADABLE_VERSION: u64 = u64::MAX;

/// The first line of a session file (session-file.md §1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderFacts<'a> {
    /// 1 if absent or null; `UNREADABLE_VERSION` if it is not a whole number: then the file is not migrated.
    pub version: u64,
    pub id: Option<Cow<'a, str>>,
    pub timestamp: Option<Cow<'a, str>>,
    pub cwd: Option<Cow<'a, str>>,
    pub parent_session: Option<Cow<'a, str>>,
    /// The last entry of the fork in its parent session.
    pub parent_entry_id: Option<Cow<'a, str>>,
    pub spawned_by: Option<SpawnedBy>,
    /// The session's name, which some programs write into the header.
    pub title: Option<Cow<'a, str>>,
}

/// The call that spawned a subagent's session (session-file.md §1.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpawnedBy {
    pub session_id: String,
    pub entry_id: Option<String>,
    pub tool_call_id: Option<String>,
}

impl SpawnedBy {
    /// Reads the raw value of `spawnedBy`; `None` if it names no session.
    pub(crate) fn parse(raw: &[u8]) -> Option<Self> {
        let text = |name: &str| Some(json::id(json::get(raw, name)?)?.into_owned());
        Some(Self {
            session_id: text("sessionId")?,
            entry_id: text("entryId"),
            tool_call_id: text("toolCallId"),
        })
    }
}

/// Why a line is not an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadLine {
    /// Not JSON; `at` is the offset of the first wrong byte from the start of the line.
    InvalidJson { at: usize },
    /// JSON, but not an object, or an object without a string `type`.
    NotAnObject,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidJson { at } => Malformed { at: *at }.fmt(f),
            Self::NotAnObject => f.write_str("not an object with a type"),
        }
    }
}

impl std::error::Error for BadLine {}

impl From<Malformed> for BadLine {
    fn from(Malformed { at }: Malformed) -> Self {
        Self::InvalidJson { at }
    }
}
