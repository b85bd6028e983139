//! Answers to the model: the facts, the record, and the bytes that each may use.

use crate::clean::{Cleaner, inert, visible};
use crate::text::HEADING;
use std::fmt::{self, Display, Write};
use treelined_client::NearWords;

/// The most tokens of an answer. If an answer has more than 50,000 bytes, Claude Code and opencode show only its
/// beginning to the model.
pub const MAX_TOKENS: u64 = 12_000;

/// The fewest tokens that a caller can ask for.
pub(super) const MIN_TOKENS: u64 = 500;

/// The tokens of a page if the caller does not set them. If an answer has more than 10,000 bytes, Codex leaves out its
/// middle.
pub(super) const DEFAULT_TOKENS: u64 = 3_000;

/// The least number of bytes in a token.
pub(super) const TOKEN_BYTES: u64 = 3;

/// The bytes that an answer reserves for the facts.
pub(super) const FACT_BYTES: usize = 900;

/// The most characters of names and previews.
pub(super) const MAX_LINE: usize = 160;

/// The lines before a record: a name and a value each. The model passes the value of a fact to the next call as the
/// argument of the same name, or without `next`: `nextCursor` is the value of the argument `cursor`.
#[derive(Default)]
pub struct Facts(pub(super) String);

impl Facts {
    pub fn add(&mut self, name: &str, value: impl Display) {
        let _infallible = writeln!(self.0, "{name}: {value}");
    }

    pub fn id(&mut self, name: &str, id: &str) {
        self.add(name, inert(id));
    }

    /// The words that no entry has, each with similar words.
    pub(super) fn near_words(&mut self, words: &[NearWords]) {
        for near in words {
            if near.near.is_empty() {
                self.add("unknown", inert(&near.word));
                continue;
            }
            let mut words = format!("{} for {}", near.near.join(", "), near.word);
            if let Some(taken) = &near.taken {
                words += &format!("; {taken} counts instead");
            }
            self.add("didYouMean", inert(&words));
        }
    }

    /// The position at which the next page begins, if there is one.
    pub(super) fn cursor(&mut self, cursor: Option<&str>) {
        if let Some(cursor) = cursor {
            self.add("nextCursor", visible(cursor));
        }
    }
}

impl Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text of an answer.
pub(super) fn answer(mut facts: Facts, record: &str, cleaner: Cleaner<'_>) -> String {
    let counts = cleaner.into_counts();
    if !counts.is_empty() {
        let counts: Vec<_> = counts
            .iter()
            .map(|(kind, count)| format!("{count} × {kind}"))
            .collect();
        facts.add("redactions", counts.join(", "));
    }
    format!("{HEADING}\n{facts}{record}")
}

/// Whether a page has at most [`DEFAULT_TOKENS`].
pub(super) fn fits(page: &str) -> bool {
    page.len() as u64 <= DEFAULT_TOKENS * TOKEN_BYTES
}

/// The bytes that the record may have in an answer of `max_tokens` tokens.
pub(super) fn budget(max_tokens: Option<u64>) -> usize {
    let tokens = max_tokens.unwrap_or(DEFAULT_TOKENS);
    let tokens = tokens.clamp(MIN_TOKENS, MAX_TOKENS);
    usize::try_from(tokens * TOKEN_BYTES).unwrap_or_default() - FACT_BYTES
}
