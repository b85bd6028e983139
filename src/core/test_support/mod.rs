//! Helpers that tests of several crates share.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests call it"
)]

pub mod random;
pub mod sample;
pub mod time;
