//! One question: the words, and the filters of fields, entries and sessions.

use crate::request::{EntryFilter, SearchRequest};
use std::sync::Arc;
use std::time::Duration;
use treelined_core::search::ask::{Question, Term, term_of_fact};

/// A question to all sessions.
#[derive(Debug, Clone)]
pub struct AskRequest {
    pub question: Question,
    /// The filters; its query has every entry.
    pub filters: Arc<SearchRequest>,
    /// How long sessions without counts may be read. `None`: until all are read.
    pub read_time: Option<Duration>,
}

impl AskRequest {
    /// The terms of the question.
    pub(super) fn terms(&self) -> Vec<Term> {
        self.question.terms().iter().map(|one| one.term).collect()
    }

    /// The facts that an entry must have.
    pub(super) fn facts(&self) -> Vec<Term> {
        let values = self.filters.entries.iter().flat_map(EntryFilter::values);
        values.map(|(name, value)| fact(name, value)).collect()
    }
}

/// The term of a fact. Upper and lower case of ASCII letters count as the same.
pub(super) fn fact(name: &str, value: &str) -> Term {
    term_of_fact(name, &value.to_ascii_lowercase())
}
