//! Helpers that tests of several modules share.

pub(crate) mod random;
pub(crate) mod sample;
