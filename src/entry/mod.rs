//! One entry of a session, as plain data: its kind, its role, and the envelope that the index keeps.
//!
//! Pure. [`scan`] reads a line into these types.

pub mod draft;
pub mod scan;

use crate::json::Malformed;
use std::borrow::Cow;
use std::fmt;

/// The `type` of an entry; `session` is a [`Header`] instead.
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
    /// A `custom` of type `treelined.leaf`: a durable move of the leaf (storage.md §4).
    LeafRecord,
    /// A type this program does not know; the entry is kept all the same.
    Unknown,
}

impl Kind {
    const ALL: [Kind; 13] = [
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
    ];

    /// The kind whose number (`as u8`) this is; another order is another format of the side index.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The `type` as it stands in the file; `None` for [`Kind::Unknown`], whose entry has it.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Message => "message",
            Self::ThinkingLevelChange => "thinking_level_change",
            Self::ModelChange => "model_change",
            Self::Compaction => "compaction",
            Self::BranchSummary => "branch_summary",
            Self::Custom | Self::LeafRecord => "custom",
            Self::CustomMessage => "custom_message",
            Self::Label => "label",
            Self::SessionInfo => "session_info",
            Self::Usage => "usage",
            Self::ContextEdit => "context_edit",
            Self::Unknown => return None,
        })
    }

    /// Never [`Kind::LeafRecord`]: the type alone does not tell.
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
            _ => Self::Unknown,
        }
    }
}

/// The `role` of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Role {
    /// No message, or one without a role.
    #[default]
    None,
    User,
    Assistant,
    ToolResult,
    System,
    BashExecution,
    /// `custom`, and `hookMessage`, as it was called before version 3.
    Custom,
    BranchSummary,
    CompactionSummary,
    /// A role this program does not know.
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

    /// The role whose number (`as u8`) this is; another order is another format of the side index.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The role as it stands in a version 3 file; `None` where the entry has to tell.
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
    /// No such member, or one that is neither a string nor null.
    Absent,
    Null,
    Id(Cow<'a, str>),
}

/// What the index keeps of one entry. Strings are decoded, and borrowed where nothing is escaped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope<'a> {
    pub kind: Kind,
    pub id: Option<Cow<'a, str>>,
    pub parent: Parent<'a>,
    /// As written; ISO 8601 if the writer kept to the format.
    pub timestamp: Option<Cow<'a, str>>,
    pub facts: Facts<'a>,
    /// The members do not begin with `type, id, parentId, timestamp`, one of these comes twice, or
    /// a key is escaped. For information only.
    pub odd: bool,
}

/// The few facts that rows, labels and the navigation log need of an entry, by its kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Facts<'a> {
    None,
    Message {
        role: Role,
        /// Of an assistant: it has no text but blank one, and did not end early: tool calls or
        /// thinking at most.
        silent: bool,
        /// A failed tool result or command, or an answer that ended in an error or was aborted.
        is_error: bool,
        /// Of a tool result.
        tool_name: Option<Cow<'a, str>>,
        said: Said,
    },
    Compaction {
        tokens_before: Option<u64>,
        first_kept_entry_id: Option<Cow<'a, str>>,
        /// Version 1: index into the parsed lines, the header counted.
        first_kept_entry_index: Option<u64>,
    },
    BranchSummary {
        from_id: Option<Cow<'a, str>>,
        merge: bool,
    },
    /// A label that is null or empty clears, and is `None`.
    Label {
        target_id: Option<Cow<'a, str>>,
        label: Option<Cow<'a, str>>,
    },
    /// A name that is null or empty clears, and is `None`.
    SessionInfo {
        name: Option<Cow<'a, str>>,
    },
    /// `display` holds unless it is literally false.
    CustomMessage {
        display: bool,
    },
    ContextEdit {
        target_id: Option<Cow<'a, str>>,
    },
    LeafRecord {
        from: Option<Cow<'a, str>>,
        cause: Option<Cow<'a, str>>,
    },
}

/// The largest time there is in JavaScript, in Unix milliseconds.
const MAX_MILLIS: f64 = 8.64e15;

/// When a message of the user or the assistant was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// It is neither's, or has no content.
    Never,
    /// The message does not say: when its entry was written.
    WithEntry,
    /// In Unix milliseconds.
    At(i64),
}

/// What a line holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    Entry(Envelope<'a>),
    /// An object of type `session`, wherever it stands.
    Header(Header<'a>),
    /// The line with which some programs begin a file: the session's title, and nothing of an entry.
    Title(Option<Cow<'a, str>>),
    /// Nothing but white space.
    Blank,
}

/// The first line of a session file (storage.md §1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    /// 1 where it is absent or null. A version that is no whole number is `u64::MAX`: nothing we
    /// can read, so nothing we may migrate.
    pub version: u64,
    pub id: Option<Cow<'a, str>>,
    pub timestamp: Option<Cow<'a, str>>,
    pub cwd: Option<Cow<'a, str>>,
    pub parent_session: Option<Cow<'a, str>>,
    /// What some programs call the session.
    pub title: Option<Cow<'a, str>>,
}

/// Why a line is no entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadLine {
    /// Not JSON from the byte offset `at` on, counted from the start of the line.
    InvalidJson { at: usize },
    /// JSON, but no object, or an object without a string `type`.
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
