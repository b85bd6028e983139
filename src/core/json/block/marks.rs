//! The positions of the special bytes in a block.

/// The length of a block in bytes.
pub(crate) const BLOCK: usize = 64;

/// The positions of the special bytes in a block, as bit masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub quotes: u64,
    pub backslashes: u64,
    /// Bytes below 0x20.
    pub controls: u64,
    /// The letters `n`, `r` and `t`. Nearly all escapes end in one of these, in a quote or in a
    /// backslash.
    pub usual: u64,
}
