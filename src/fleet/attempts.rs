//! The number of attempts of a copy, and the error after the last attempt.

use treelined_core::error::{Error, Kind};

/// How often a copy begins again because another program has written.
pub(super) const ROUNDS: usize = 16;

pub(super) fn conflict(session: &str) -> Error {
    let why = format!("others write to session {session:?} all the time");
    let mut error = Error::new(Kind::LogConflict, why);
    error.retry_after_ms = Some(500);
    error
}
