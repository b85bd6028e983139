//! Searches: the request of the model, and the query for the daemon.

use treelined_client::SearchField;

/// A search that the model requests.
pub struct SearchRequest {
    /// The text of the search, in the language of filters (protocol.md §3.19).
    pub query: String,
    /// Whether an entry must contain all words. The hits then have the daemon's order for words.
    pub exact: bool,
    /// Whether all hits are returned, not only the first one of each session.
    pub every: bool,
    pub limit: u64,
    pub cursor: Option<String>,
}

/// A search that the daemon runs.
#[derive(Clone, Default)]
pub struct Query {
    /// The text of the query, in the language of filters.
    pub text: String,
    /// Whether entries are ranked by how well they answer the text. Otherwise an entry must contain all of its words.
    pub is_question: bool,
    /// The type or custom type that the entries must have.
    pub entry_type: Option<&'static str>,
    pub fields: Vec<SearchField>,
    /// Only the entries of this session. For a question, all ranked entries of the session are hits, not only the best
    /// three.
    pub session: Option<String>,
}

impl Query {
    /// Finds the entries that contain all words of a text in the language of filters.
    pub fn exact(text: &str) -> Query {
        Query {
            text: text.to_owned(),
            ..Query::default()
        }
    }

    /// Finds the best entries for a text. An entry need not contain every word.
    pub fn question(text: &str) -> Query {
        Query {
            is_question: true,
            ..Query::exact(text)
        }
    }
}
