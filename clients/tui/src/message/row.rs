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
    /// The part of the text that the search has found; `None` without a search.
    pub found: Option<MarkedText>,
    pub label: Option<String>,
    /// The time when the label was set, formatted.
    pub label_time: Option<String>,
    /// The time when it was written: month, day and minute, formatted.
    pub time: String,
    /// The number of visible children, folded ones included.
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
    pub is_error: bool,
    /// The guides before the row.
    pub prefix: String,
    /// The icon of the entry's renderer.
    pub icon: Option<String>,
    /// The style that the daemon gives the row.
    pub style: Option<RowStyle>,
    /// The daemon's flags of the row.
    pub flags: Vec<String>,
    /// Steps to the right.
    pub indent: u64,
    /// The number of branches that the row stands for; 0 for the row of an entry.
    pub branches: u64,
    /// The name of the branch that begins with the row; a folded row has it in its preview.
    pub branch_name: Option<String>,
    /// The sessions that come from the entry.
    pub sessions: Vec<BornSession>,
    /// The ids of the request that keep its branch open.
    pub expanded_by: Vec<String>,
    /// The ids in the request for which the row's branch gets a separate row.
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
    /// Another entry, with its type or role.
    Other(String),
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

    /// Returns whether the row stands for branches that were left.
    pub fn is_folded(&self) -> bool {
        self.branches > 0
    }

    /// Returns how many sessions of which kind come from the entry, such as `1 fork, 2 subagents`; empty without any.
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

    /// Returns whether a person wrote the row's message.
    pub fn is_prompt(&self) -> bool {
        self.kind == Kind::User && self.style != Some(RowStyle::Dim) && !self.is_folded()
    }
}
