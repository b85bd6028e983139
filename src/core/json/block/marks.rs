//! Where a block has bytes that matter.

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// The places of the special bytes in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub quotes: u64,
    pub backslashes: u64,
    /// Below 0x20.
    pub controls: u64,
    /// `n`, `r` and `t`: with quote and backslash, the last bytes of nearly all escapes.
    pub usual: u64,
}
