//! Counts tokens and cost of all sessions in the session directory (usage.md).
//!
//! Every count reads the session files; nothing is kept between two counts. In reading order: [`Request`] says which
//! answers count and how they are grouped. [`usage`] reads the files, and counts each `answer` once even if several
//! sessions have it. [`Prices`] estimates the cost where none is recorded. [`Sums`] are the result. This crate
//! promises no interface to other programs.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )
)]

mod answer;
mod branch;
mod counting;
mod prices;
mod sums;
#[cfg(test)]
mod tests;

pub use counting::{BranchPlace, By, Request, Row, UnreadFile, Usage, branches, usage};
pub use prices::{Price, Prices};
pub use sums::Sums;
pub use treelined_core::stats::Cost;
