//! The search over all sessions: what is asked for, and what is found.

use crate::marked::MarkedText;

/// A request for a page of hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Answers with an older generation are ignored.
    pub generation: u64,
    /// As typed, in the language of filters if the mode has it.
    pub query: String,
    pub mode: SearchMode,
    /// Only this session.
    pub session_id: Option<String>,
    /// Only sessions of the working directory and of those below it.
    pub here: bool,
    pub cursor: Option<String>,
    pub limit: usize,
}

/// How the query of a search over all sessions is understood (protocol.md §3.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMode {
    /// A question: the best entries, of which none must have every word.
    #[default]
    Ask,
    /// All words, in the order of time.
    Words,
    /// Exactly this text.
    Literal,
    /// A regular expression.
    Regex,
}

impl SearchMode {
    /// Returns the name in the protocol, before the query and in the status line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Words => "words",
            Self::Literal => "literal",
            Self::Regex => "regex",
        }
    }

    /// Returns the next mode in the cycle.
    pub const fn next(self) -> Self {
        match self {
            Self::Ask => Self::Words,
            Self::Words => Self::Literal,
            Self::Literal => Self::Regex,
            Self::Regex => Self::Ask,
        }
    }

    /// Returns whether the query is in the language of filters.
    pub const fn has_filters(self) -> bool {
        matches!(self, Self::Ask | Self::Words)
    }
}

/// A request to complete the word before the cursor of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionQuery {
    /// Answers with an older generation are ignored.
    pub generation: u64,
    pub query: String,
    /// The cursor, in Unicode code points.
    pub position: usize,
}

/// The part of a query before the cursor, and the texts that may replace it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryCompletion {
    /// Characters before the part that is replaced; it ends at the cursor.
    pub start: usize,
    /// Filters with their colon, or values, each with a few words about it; empty for a value.
    pub items: Vec<(String, String)>,
}

/// An entry that a search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub session_id: String,
    pub session_name: String,
    pub entry_id: String,
    /// The kind of the text that was found, in a word.
    pub field: &'static str,
    /// Seconds since 1970.
    pub at: i64,
    pub excerpt: MarkedText,
    pub on_active_path: bool,
    /// Where the hit's branch left the active path; `None` on the path, and if they have nothing in common.
    pub left_at: Option<String>,
    /// Why its branch was left, if that is known.
    pub reason: Option<String>,
    /// The first message of what was tried instead, if that is known.
    pub instead: Option<String>,
}

/// A page of hits, the best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HitPage {
    pub hits: Vec<Hit>,
    /// By session, how many of its entries with words of the question are not among the hits.
    pub more: Vec<(String, u64)>,
    /// Words that no entry has, each with a near one.
    pub near: Vec<(String, String)>,
    /// The hits of all pages.
    pub total: u64,
    /// The number of sessions that have them.
    pub sessions: u64,
    /// Whether there may be more hits and sessions than counted.
    pub at_least: bool,
    /// The number of files that could not be searched.
    pub unread: usize,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}
