//! Finding words, literal text and patterns in the whole text of entries.
//!
//! Owns how a query is understood ([`Query`]), what an entry's text is ([`fields`]), whether the one is in
//! the other ([`Matcher`]), and the excerpt that shows where ([`Excerpt`]). Pure: it is handed stored lines
//! and knows neither sessions nor files. What decides is the decoded text, field by field. Stored bytes
//! are looked at first ([`prefilter`]), and only to pass over lines that cannot match.

mod excerpt;
mod fields;
mod fold;
mod matcher;
mod prefilter;
mod query;
#[cfg(test)]
mod tests;

pub use excerpt::{BestField, EXCERPT_CHARS, Excerpt};
pub use fields::{each_field, row_words};
pub use matcher::Matcher;
pub use query::{Mode, Query};
