//! Tests whether one entry matches a query.

use super::fields::each_field;
use super::fold::push_folded;
use super::prefilter::Presence;
use super::query::{Needles, Query};
use crate::entry::Kind;
use crate::json;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The needles that were found in the fields of one entry so far.
#[derive(Debug)]
pub struct Matcher<'q> {
    query: &'q Query,
    /// One bit for each needle.
    found: u64,
    folded: Vec<u8>,
}

impl<'q> Matcher<'q> {
    pub fn new(query: &'q Query) -> Self {
        Self {
            query,
            found: 0,
            folded: Vec::new(),
        }
    }

    /// Starts the next entry. The needles `found` (one bit each) count as found already.
    pub fn begin(&mut self, found: u64) {
        self.found = found;
    }

    /// The needles found so far, one bit each.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Whether all needles were found.
    pub fn is_match(&self) -> bool {
        self.found == self.query.all()
    }

    /// Whether any needle was found.
    pub fn is_touched(&self) -> bool {
        self.found != 0
    }

    /// Searches a field.
    pub fn see(&mut self, text: &str) -> ControlFlow<()> {
        let text = self.query.shown_of(text);
        self.found |= self.query.found_in(&text, self.found, &mut self.folded);
        match self.is_match() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Searches all fields of a stored line.
    pub fn see_line(&mut self, line: &[u8], kind: Kind) {
        if !self.is_match() && self.may_add(line) {
            each_field(line, kind, |raw| self.see_raw(raw));
        }
    }

    /// Searches a field as stored. Most fields need not be decoded.
    pub fn see_raw(&mut self, raw: &[u8]) -> ControlFlow<()> {
        let mut is_open = false;
        for (at, prefilter) in self.query.prefilters.iter().enumerate() {
            if self.found & 1 << at == 0 {
                match prefilter.tell(raw) {
                    Presence::Yes if !self.query.hides_text() => self.found |= 1 << at,
                    Presence::Yes | Presence::Maybe => is_open = true,
                    Presence::No => {}
                }
            }
        }
        match (self.is_match(), is_open) {
            (true, _) => ControlFlow::Break(()),
            (false, true) => self.see(&decoded(raw)),
            (false, false) => ControlFlow::Continue(()),
        }
    }

    /// Whether this line may have every missing needle. If not, the line can be skipped, unless partial matches are
    /// wanted.
    pub fn may_complete(&self, line: &[u8]) -> bool {
        let prefilters = self.query.prefilters.iter().enumerate();
        let mut missing = prefilters.filter(|(at, _)| self.found & 1 << at == 0);
        missing.all(|(_, prefilter)| prefilter.passes(line))
    }

    /// Whether this line may have any missing needle.
    pub fn may_add(&self, raw: &[u8]) -> bool {
        let prefilters = self.query.prefilters.iter().enumerate();
        let mut missing = prefilters.filter(|(at, _)| self.found & 1 << at == 0);
        missing.any(|(_, prefilter)| prefilter.passes(raw))
    }
}

/// The text of a field.
pub fn decoded(raw: &[u8]) -> Cow<'_, str> {
    json::string(raw).unwrap_or_else(|| String::from_utf8_lossy(raw))
}

impl Query {
    /// The needles in `text`, without the needles `known`.
    pub(crate) fn found_in(&self, text: &str, known: u64, folded: &mut Vec<u8>) -> u64 {
        let is_found = match &self.needles {
            Needles::Literal(literal) => literal.find(text.as_bytes()).is_some(),
            Needles::Regex(regex) => regex.is_match(text),
            Needles::Words(words) => {
                folded.clear();
                push_folded(folded, text);
                let mut found = 0;
                for (at, word) in words.iter().enumerate() {
                    if known & 1 << at == 0 && word.find(folded).is_some() {
                        found |= 1 << at;
                    }
                }
                return found;
            }
        };
        u64::from(is_found)
    }
}
