//! Finds words, literal text and patterns in the whole text of entries.
//!
//! This module has the meaning of a query ([`Query`]), the text of an entry (`fields`), the test whether
//! an entry matches a query ([`Matcher`]), the ranking of entries by a question ([`ask`]), and the
//! excerpt that shows the match ([`Excerpt`]). It is pure: callers pass stored lines. Matches are
//! decided on the decoded text, field by field; the stored bytes are used only to skip lines that cannot
//! match (`prefilter`). A person types [`Filters`], which are a query with filters.

pub mod ask;
mod excerpt;
mod fields;
mod filters;
mod fold;
mod matcher;
mod prefilter;
mod query;
#[cfg(test)]
mod tests;

pub use excerpt::{BestField, Excerpt};
pub use fields::{FieldKind, each_field, each_field_with_kind, row_words};
pub use filters::{BranchFilter, Completion, CompletionItem, Fault, Filters, Written, complete};
pub use fold::folded_text;
pub use matcher::{Matcher, decoded};
pub use query::{Mode, Query, ShownText, quoted};
