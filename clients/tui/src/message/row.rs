//! The rows of the tree.

use crate::marked::MarkedText;

/// A row of the tree, as the daemon describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub id: String,
    /// The nearest visible ancestor.
    pub parent: Option<String>,
    pub kind: Kind,
    pub preview: String,
    /// The text with the matches of the search; `None` without a search.
    pub found: Option<MarkedText>,
    pub label: Option<String>,
    /// The time at which the label was set, formatted.
    pub label_time: Option<String>,
    /// The time at which the entry was written, formatted as month, day and minute.
    pub time: String,
    /// The number of visible children, including folded ones.
    pub children: u64,
    pub on_active_path: bool,
    pub is_leaf: bool,
    pub is_branch_point: bool,
    /// Whether the entry is in an archived branch.
    pub is_archived: bool,
    /// The token count of a compaction.
    pub tokens: Option<u64>,
    /// The tool of a tool result.
    pub tool: Option<String>,
    /// Whether the preview is a call with its result, which says that it failed.
    pub is_call: bool,
    pub is_error: bool,
    /// The guides before the row.
    pub prefix: String,
    /// The icon that the renderer of the entry gives.
    pub icon: Option<String>,
    /// The style that the daemon gives the row.
    pub style: Option<RowStyle>,
    /// The daemon's flags of the row.
    pub flags: Vec<String>,
    /// The number of steps to the right.
    pub indent: u64,
    /// The number of branches that the row stands for; 0 for the row of an entry.
    pub branches: u64,
    /// The name of the branch that begins with the row. A folded row has this name in its preview.
    pub branch_name: Option<String>,
    /// The sessions that come from this entry.
    pub sessions: Vec<BornSession>,
    /// The ids in the request that keep the branch of this row open.
    pub expanded_by: Vec<String>,
    /// The ids in the request that give the branch of this row its own row.
    pub listed_by: Vec<String>,
}

/// The kind of a row, which decides its style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kind {
    #[default]
    User,
    Assistant,
    Tool,
    Bash,
    Compaction,
    Summary,
    /// A message of a plugin.
    Plugin,
    /// An entry of another kind, with the word for its type or role.
    Other(String),
}

impl Kind {
    /// Returns the word before the text of a row. All clients show the same word (protocol.md §6.9).
    pub fn word(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Bash => "shell",
            Self::Compaction => "compaction",
            Self::Summary => "summary",
            Self::Plugin => "note",
            Self::Other(word) => word,
        }
    }
}

/// A session that comes from an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BornSession {
    pub id: String,
    /// `fork`, `subagent` or `continuation`.
    pub kind: String,
}

/// The style of a custom message, by its meaning (protocol.md §14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStyle {
    Accent,
    Success,
    Warning,
    Error,
    Dim,
}

impl Row {
    /// Returns whether the row has siblings, so that a branch begins here.
    pub fn heads_branch(&self) -> bool {
        self.prefix.ends_with("─ ")
    }

    /// Returns whether the row stands for branches that the leaf has left.
    pub fn is_folded(&self) -> bool {
        self.branches > 0
    }

    /// Returns the numbers of sessions that come from the entry, by kind, such as `1 fork, 2 subagents`; empty if
    /// there are none.
    pub fn born(&self) -> String {
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for session in &self.sessions {
            match kinds.iter_mut().find(|(kind, _)| *kind == session.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((&session.kind, 1)),
            }
        }
        let counted = kinds.into_iter().map(|(kind, count)| match count {
            1 => format!("1 {kind}"),
            _ => format!("{count} {kind}s"),
        });
        counted.collect::<Vec<_>>().join(", ")
    }

    /// Returns whether the row is a message that a person wrote.
    pub fn is_prompt(&self) -> bool {
        self.kind == Kind::User && self.style != Some(RowStyle::Dim) && !self.is_folded()
    }
}
