//! Ranks entries by a question (the mode `ask` of protocol.md §3.16).
//!
//! This module has the terms of a text (`terms`, `stem`, `known`), the question (`question`), the score of an entry
//! from counts of terms (`score`), the terms of a stored line (`line`), and the passage that shows the answer
//! (`passage`). The module is pure: callers count terms, and keep the counts.

mod known;
mod line;
mod passage;
mod question;
mod score;
mod stem;
mod terms;
#[cfg(test)]
mod tests;

pub use line::terms_of_line;
pub use passage::{Passage, Reader};
pub use question::{MistypedWord, Question, QuestionTerm, Taken, letter, words_in};
pub use score::{
    Corpus, TermCount, TermScorer, UnitCounts, bounded_weight, closeness, field_weight, recency,
    together,
};
pub use terms::{Form, Term, Tokenizer, term_of_fact};
