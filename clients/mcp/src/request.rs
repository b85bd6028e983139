//! Searches as the model asks for them.

use treelined_client::SearchField;

/// A search as the model asks for it.
pub struct SearchRequest {
    /// In the language of filters (protocol.md §3.19).
    pub query: String,
    /// Only entries that hold all words, in the daemon's order for words.
    pub exact: bool,
    /// Every hit, not only the first one of each session.
    pub every: bool,
    pub limit: u64,
    pub cursor: Option<String>,
}

/// A search as the daemon is asked for it.
#[derive(Clone, Default)]
pub struct Query {
    /// In the language of filters.
    pub text: String,
    /// Whether entries are ranked by how well they answer the text; else they must hold all of its words.
    pub is_question: bool,
    /// The type or custom type of the entries.
    pub entry_type: Option<&'static str>,
    pub fields: Vec<SearchField>,
}

impl Query {
    /// Entries that hold all words of a text in the language of filters.
    pub fn exact(text: &str) -> Query {
        Query {
            text: text.to_owned(),
            ..Query::default()
        }
    }

    /// The best entries for it: not every word must occur.
    pub fn question(text: &str) -> Query {
        Query {
            is_question: true,
            ..Query::exact(text)
        }
    }
}
