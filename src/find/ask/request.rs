//! One question: the words, the phrases, and the filters of fields, entries and sessions.

use crate::request::{EntryFilter, SearchRequest};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::entry::{Kind, Role};
use treelined_core::search::ask::{Question, Term, term_of_fact, words_in};
use treelined_core::search::{FieldKind, Matcher, Mode, Query, each_field_with_kind, quoted};

/// A question to all sessions.
#[derive(Debug, Clone)]
pub struct AskRequest {
    pub question: Question,
    /// The phrases that an entry must have.
    pub phrases: Option<Phrases>,
    /// The filters. The query in it matches every entry.
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

/// The phrases in quotes of a question. Each must be in a field of an entry, exactly, except for upper and lower case.
#[derive(Debug, Clone)]
pub struct Phrases {
    query: Arc<Query>,
    /// The terms of their words. An entry can have the phrases only if it has all of these terms that the question also
    /// has.
    terms: Vec<Term>,
}

impl Phrases {
    /// The phrases of a text; `None` if it has none. Fails with the reason if they are too many.
    pub fn of(text: &str) -> Result<Option<Self>, String> {
        let phrases = quoted(text);
        let query = Query::parse(&phrases, Mode::Words)?;
        Ok(query.map(|query| Self {
            query: query.into(),
            terms: words_in(&phrases),
        }))
    }

    /// The numbers of the terms of the question that an entry with the phrases has.
    pub(super) fn terms(&self, question: &Question) -> Vec<usize> {
        let numbers = self.terms.iter();
        numbers.filter_map(|term| question.number(*term)).collect()
    }

    /// Whether an entry has all phrases. `label` is its current label.
    pub(super) fn are_in(
        &self,
        line: &[u8],
        (kind, role): (Kind, Role),
        label: Option<&str>,
        filters: &SearchRequest,
    ) -> bool {
        let (mut matcher, mut found) = (Matcher::new(&self.query), 0);
        if let Some(label) = label.filter(|_| filters.fields.has(FieldKind::Labels)) {
            matcher.begin(0);
            let _seen = matcher.see(label);
            found |= matcher.found();
        }
        each_field_with_kind(line, kind, role, |field, raw| {
            if filters.fields.has(field) {
                matcher.begin(0);
                let _seen = matcher.see_raw(raw);
                found |= matcher.found();
            }
            match found == self.query.all() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        found == self.query.all()
    }
}

/// The term of a fact. Upper and lower case of ASCII letters count as the same.
pub(super) fn fact(name: &str, value: &str) -> Term {
    term_of_fact(name, &value.to_ascii_lowercase())
}
