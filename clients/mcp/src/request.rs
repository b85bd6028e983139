//! Searches as the model asks for them.

use treelined_client::SearchField;

/// A search as the model asks for it.
pub struct SearchRequest {
    /// In the language of filters (protocol.md §3.19).
    pub query: String,
    /// Every hit, not only the first one of each session.
    pub every: bool,
    pub limit: u64,
    pub cursor: Option<String>,
}

/// A search as the daemon is asked for it.
#[derive(Default)]
pub struct Query {
    pub text: String,
    /// Whether the text is a pattern; else it is in the language of filters.
    pub is_pattern: bool,
    /// The type or custom type of the entries.
    pub entry_type: Option<&'static str>,
    pub fields: Vec<SearchField>,
}

/// The most words of which any may occur.
const MOST_WORDS: usize = 12;
/// The fewest characters of such a word: shorter ones are everywhere.
const SHORTEST_WORD: usize = 4;

impl Query {
    pub fn filters(text: &str) -> Query {
        Query {
            text: text.to_owned(),
            ..Query::default()
        }
    }

    /// Entries with any of the longer words of a text; `None` if it has none.
    pub fn any_word(text: &str) -> Option<Query> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| word.chars().count() >= SHORTEST_WORD);
        let words: Vec<&str> = words.take(MOST_WORDS).collect();
        (!words.is_empty()).then(|| Query {
            text: format!("(?i)\\b({})\\b", words.join("|")),
            is_pattern: true,
            ..Query::default()
        })
    }
}
