//! The language in which people write a search: words, phrases, words that must be missing, a pattern, and filters
//! such as `role:user` (protocol.md §3.19).
//!
//! Only this module reads the language: each client passes the text on as it was typed. The time is linear in the
//! length of the text.

mod complete;
mod keys;
mod parse;
#[cfg(test)]
mod tests;
mod token;

pub use complete::{Completion, CompletionItem, complete};
pub use keys::BranchFilter;
pub use parse::{Fault, Filters, Written};
