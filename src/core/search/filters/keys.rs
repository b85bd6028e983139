//! The filters, and the values that are known.

use crate::search::fields::FieldKind;
use serde::{Deserialize, Serialize};

/// The branches that a search takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SearchBranches"))]
pub enum BranchFilter {
    /// All entries.
    #[default]
    All,
    /// Entries on the path to the leaf.
    Active,
    /// Entries that are not on the path to the leaf.
    Abandoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    Role,
    Tool,
    Cwd,
    Since,
    Before,
    In,
    Branch,
    Source,
    Type,
    Tag,
    Git,
}

impl Filter {
    pub(super) const ALL: [Self; 11] = [
        Self::Role,
        Self::Tool,
        Self::Cwd,
        Self::Since,
        Self::Before,
        Self::In,
        Self::Branch,
        Self::Source,
        Self::Type,
        Self::Tag,
        Self::Git,
    ];

    /// The filter of this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.name() == name)
    }

    /// The name before the colon.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Tool => "tool",
            Self::Cwd => "cwd",
            Self::Since => "since",
            Self::Before => "before",
            Self::In => "in",
            Self::Branch => "branch",
            Self::Source => "source",
            Self::Type => "type",
            Self::Tag => "tag",
            Self::Git => "git",
        }
    }

    pub(super) const fn example(self) -> &'static str {
        match self {
            Self::Role => "user",
            Self::Tool => "bash",
            Self::Cwd => ".",
            Self::Since => "2w",
            Self::Before => "2026-11-01",
            Self::In => "labels",
            Self::Branch => "active",
            Self::Source => "codex",
            Self::Type => "note",
            Self::Tag => "x",
            Self::Git => "main",
        }
    }

    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Role => "messages of this role",
            Self::Tool => "calls of this tool, and its results",
            Self::Cwd => "sessions of this directory and below",
            Self::Since => "entries of this time or later",
            Self::Before => "entries before this time",
            Self::In => "the fields that are searched",
            Self::Branch => "active, or left",
            Self::Source => "imported from this program",
            Self::Type => "entries of this type or custom type",
            Self::Tag => "sessions with this tag",
            Self::Git => "sessions on this git branch",
        }
    }
}

pub(super) const ROLES: [&str; 8] = [
    "user",
    "assistant",
    "toolResult",
    "system",
    "bashExecution",
    "custom",
    "branchSummary",
    "compactionSummary",
];

pub(super) const FIELDS: [(&str, FieldKind); 6] = [
    ("text", FieldKind::Text),
    ("thinking", FieldKind::Thinking),
    ("toolCalls", FieldKind::ToolCalls),
    ("toolResults", FieldKind::ToolResults),
    ("labels", FieldKind::Labels),
    ("summaries", FieldKind::Summaries),
];

pub(super) const BRANCHES: [(&str, BranchFilter); 4] = [
    ("active", BranchFilter::Active),
    ("left", BranchFilter::Abandoned),
    ("abandoned", BranchFilter::Abandoned),
    ("all", BranchFilter::All),
];

pub(super) const TIMES: [&str; 6] = ["today", "yesterday", "12h", "3d", "2w", "6mo"];

/// The known types of entries. A search may also name a custom type.
pub(super) const TYPES: [&str; 7] = [
    "message",
    "note",
    "branch_summary",
    "compaction",
    "custom",
    "custom_message",
    "session_info",
];
