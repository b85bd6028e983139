//! Searches that can go on. A cursor of the daemon names a file; the model gets a number instead.

use crate::request::Query;
use std::collections::{HashMap, HashSet, VecDeque};
use treelined_client::{NearWords, SearchHit};

/// The most searches that are kept: each has at most one page of the daemon.
const MOST: usize = 16;

/// A search, as far as it was shown.
#[derive(Clone, Default)]
pub struct Finding {
    pub query: String,
    pub exact: bool,
    pub every: bool,
    /// Hits that are not shown yet.
    pub waiting: VecDeque<SearchHit>,
    /// The cursor of the daemon's next page.
    pub cursor: Option<String>,
    /// The sessions with a hit that is shown.
    pub sessions: HashSet<String>,
    /// Notes that come first: session and entry.
    pub notes: HashSet<(String, String)>,
    /// Hits on all pages, and whether there may be more.
    pub total: u64,
    pub at_least: bool,
    /// Words that no entry has, each with near ones.
    pub near_words: Vec<NearWords>,
}

impl Finding {
    /// The search as the daemon is asked for it.
    pub fn as_query(&self) -> Query {
        match self.exact {
            true => Query::exact(&self.query),
            false => Query::question(&self.query),
        }
    }
}

/// The last searches that can go on.
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

    /// The search of a cursor, which stays: the page can be asked for again.
    pub fn of(&self, cursor: &str) -> Option<Finding> {
        self.kept.get(&cursor.parse().ok()?).cloned()
    }
}
