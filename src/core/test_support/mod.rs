//! Helpers that tests of several modules share.

pub mod random;
pub mod sample;
