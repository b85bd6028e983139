//! The search over all sessions: requests and results.

use crate::marked::MarkedText;

/// A request for a page of hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// The number of the request. Answers with a lower number are ignored.
    pub generation: u64,
    /// The query as it was typed. It is in the language of filters if the mode has filters.
    pub query: String,
    pub mode: SearchMode,
    /// The only session to search, if there is one.
    pub session_id: Option<String>,
    /// Whether only sessions of the working directory, and of directories below it, are searched.
    pub here: bool,
    pub cursor: Option<String>,
    pub limit: usize,
}

/// How the query of a search over all sessions is interpreted (protocol.md §3.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMode {
    /// A question: finds the best entries, which need not have every word.
    #[default]
    Ask,
    /// Finds entries that have all words, in the order of time.
    Words,
    /// Exactly this text.
    Literal,
    /// A regular expression.
    Regex,
}

impl SearchMode {
    /// Returns the name of the mode in the protocol. It is also shown before the query and in the status
    /// line.
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
    /// The number of the request. Answers with a lower number are ignored.
    pub generation: u64,
    pub query: String,
    /// The position of the cursor, in Unicode code points.
    pub position: usize,
}

/// The part of a query before the cursor, and the texts that may replace it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryCompletion {
    /// The number of characters before the part that is replaced. This part ends at the cursor.
    pub start: usize,
    /// The texts that may replace it: filters with their colon, or values. Each has a few words of
    /// explanation, which are empty for a value.
    pub items: Vec<(String, String)>,
}

/// An entry that a search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub session_id: String,
    pub session_name: String,
    pub entry_id: String,
    /// The kind of the field that matches, in one word.
    pub field: &'static str,
    /// The time of the entry, in seconds since 1970.
    pub at: i64,
    pub excerpt: MarkedText,
    pub on_active_path: bool,
    /// The entry where the hit's branch left the active path. `None` if the hit is on the active path, or
    /// has no common ancestor with it.
    pub left_at: Option<String>,
    /// The reason why the branch of the hit was left, if it is known.
    pub reason: Option<String>,
    /// The first message of the branch that was tried instead, if it is known.
    pub instead: Option<String>,
    /// The newest of the branches that were left in the turn of the hit, and their number.
    pub left_here: Option<String>,
}

/// A word or a filter that no entry has, and a similar word or filter that entries have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearWord {
    pub word: String,
    /// The similar word or filter; `None` if none is known.
    pub near: Option<String>,
    /// Whether the entries of `near` are hits in place of the entries of `word`.
    pub is_taken: bool,
}

/// A page of hits, the best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HitPage {
    pub hits: Vec<Hit>,
    /// For each session, the number of entries with words of the question that are not among the hits.
    pub more: Vec<(String, u64)>,
    pub near: Vec<NearWord>,
    /// The number of hits on all pages.
    pub total: u64,
    /// The number of sessions that have hits.
    pub sessions: u64,
    /// Whether there may be more hits and sessions than were counted.
    pub at_least: bool,
    /// The number of files that could not be searched.
    pub unread: usize,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}
