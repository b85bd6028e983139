//! Searches that can continue. A cursor of the daemon names a file, so the model gets a number instead.

use crate::conversations::Conversations;
use crate::request::Query;
use std::collections::{HashMap, HashSet, VecDeque};
use treelined_client::{NearWords, SearchHit};

/// The most searches that are kept. Each holds at most one page of the daemon.
const MOST: usize = 16;

/// A search, and how much of it the model has seen.
#[derive(Clone, Default)]
pub struct Finding {
    pub query: String,
    pub exact: bool,
    pub every: bool,
    /// Hits that the model has not seen yet.
    pub waiting: VecDeque<SearchHit>,
    /// The cursor of the daemon's next page.
    pub cursor: Option<String>,
    /// The conversations that have a shown hit.
    pub shown: HashSet<String>,
    pub conversations: Conversations,
    /// The notes that are shown before other hits: session id and entry id.
    pub notes: HashSet<(String, String)>,
    /// The number of hits on all pages, and whether there may be more.
    pub total: u64,
    pub at_least: bool,
    /// The words that occur in no entry, each with similar words.
    pub near_words: Vec<NearWords>,
}

impl Finding {
    /// The query that the daemon gets.
    pub fn as_query(&self) -> Query {
        match self.exact {
            true => Query::exact(&self.query),
            false => Query::question(&self.query),
        }
    }
}

/// The newest searches that can continue.
#[derive(Default)]
pub struct Findings {
    next: u64,
    kept: HashMap<u64, Finding>,
}

impl Findings {
    /// Keeps a search, and forgets the oldest one. Returns its cursor.
    pub fn keep(&mut self, finding: Finding) -> String {
        self.next += 1;
        self.kept.insert(self.next, finding);
        self.kept.remove(&self.next.saturating_sub(MOST as u64));
        self.next.to_string()
    }

    /// The search of a cursor. It stays, so the same page can be requested again.
    pub fn of(&self, cursor: &str) -> Option<Finding> {
        self.kept.get(&cursor.parse().ok()?).cloned()
    }
}
