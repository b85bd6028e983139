//! The read tools: each returns text for the model, and the same facts as structured content.

mod branches;
mod lists;
mod pages;

pub use branches::{Comparison, WhyLeft, compare_branches, why_left};
pub use lists::{
    BranchList, SearchHistory, SearchRequest, SessionList, list_branches, list_sessions,
    search_history,
};
pub use pages::{BranchPart, BranchText, EntryText, read_branch, read_entry};

use crate::clean::{Cleaner, Redaction, inert};
use crate::history::OpenSession;
use crate::portable::portable;
use crate::text::HEADING;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// The most tokens of an answer, text and structured content together.
pub const MAX_TOKENS: u64 = 25_000;
/// The tokens of a page if the caller names none.
const DEFAULT_TOKENS: u64 = 6_000;
/// Bytes a token, at least. What is said twice, as text and as structured content, is counted twice.
const TOKEN_BYTES: u64 = 3;
/// The most characters of names and previews.
const MAX_LINE: usize = 160;

/// Text and structured content of an answer.
pub struct Answer<T> {
    pub text: String,
    pub data: Shown<T>,
}

/// Structured content, and the secrets that it does not show.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = portable)]
pub struct Shown<T> {
    #[serde(flatten)]
    pub data: T,
    /// The secrets in the texts of this answer, each shown as `[redacted:KIND]`.
    pub redactions: Vec<Redaction>,
}

impl<T> Answer<T> {
    pub fn new(mut text: String, data: T, cleaner: Cleaner<'_>) -> Answer<T> {
        let redactions = cleaner.into_redactions();
        if !redactions.is_empty() {
            let kinds = redactions.iter();
            let kinds: Vec<_> = kinds
                .map(|redaction| format!("{} × {}", redaction.count, redaction.kind))
                .collect();
            let _infallible = writeln!(text, "\nSecrets are replaced: {}.", kinds.join(", "));
        }
        let data = Shown { data, redactions };
        Answer { text, data }
    }

    /// An answer that has no text of earlier conversations.
    pub fn without_records(text: String, data: T) -> Answer<T> {
        let redactions = Vec::new();
        let data = Shown { data, redactions };
        Answer { text, data }
    }
}

impl<T: Serialize> Answer<T> {
    /// Whether the text and the structured content have at most [`MAX_TOKENS`].
    fn fits(&self) -> bool {
        let data = serde_json::to_string(&self.data).unwrap_or_default();
        (self.text.len() + data.len()) as u64 <= MAX_TOKENS * TOKEN_BYTES
    }
}

/// The bytes of quoted text in an answer of so many tokens.
fn budget(max_tokens: Option<u64>) -> usize {
    let tokens = max_tokens.unwrap_or(DEFAULT_TOKENS).clamp(200, MAX_TOKENS);
    // Half for the text, half for the structured content, less the words around them.
    usize::try_from(tokens * TOKEN_BYTES / 2).unwrap_or_default() * 9 / 10
}

fn say_next(text: &mut String, cursor: Option<&str>) {
    if let Some(cursor) = cursor {
        let _infallible = writeln!(text, "\nMore: the same call with cursor: {cursor}");
    }
}

impl OpenSession<'_> {
    fn heading(&self, cleaner: &mut Cleaner<'_>) -> String {
        let (id, name) = (inert(&self.id), cleaner.line(&self.name, MAX_LINE));
        match name.is_empty() {
            true => format!("{HEADING}\nSession {id}\n"),
            false => format!("{HEADING}\nSession {id}: {name}\n"),
        }
    }
}
