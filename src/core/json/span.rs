//! Positions in a text, and the error for a text that is not JSON.

use std::fmt;

/// Positions in bytes, end exclusive.
pub type Span = std::ops::Range<usize>;

/// A text is not JSON. `at` is the byte offset of the first wrong byte, or the length of the text if only
/// its end is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON from byte {} on", self.at)
    }
}

impl std::error::Error for Malformed {}
