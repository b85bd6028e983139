//! Runs of text that go into a string literal, or out of one, as they stand.

use super::block::special;
use wide::u8x16;

/// Position of the first byte from `at` on that may not stand in a string literal as it is, or that
/// starts what readers in the field take for a line end: a quote, a backslash, a control character,
/// 0xe2. The end of the text if there is none.
pub(super) fn next_to_escape(text: &[u8], mut at: usize) -> usize {
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let bytes = u8x16::new(*bytes);
        let hits = special(bytes) | bytes.simd_eq(u8x16::splat(0xe2));
        match hits.to_bitmask() {
            0 => at += 16,
            hits => return at + hits.trailing_zeros() as usize,
        }
    }
    let rest = text.get(at..).unwrap_or_default();
    let hit = rest
        .iter()
        .position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\' | 0xe2));
    hit.map_or(text.len(), |hit| at + hit)
}

/// Length of the text at the start of `text` that stands in a literal as it reads and needs no
/// folding: visible ASCII with single spaces between, which is nearly all there is. Starts and ends
/// with no space.
pub fn plain_words(text: &[u8]) -> usize {
    let mut at = 0;
    // Whether a space, or nothing, stands before this block.
    let mut carry = 1;
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let bytes = u8x16::new(*bytes);
        // From 0x7f on: what is left of it after taking away 0x7e.
        let high = bytes.saturating_sub(u8x16::splat(0x7e));
        let visible = high.simd_eq(u8x16::splat(0)).to_bitmask();
        let spaces = bytes.simd_eq(u8x16::splat(b' ')).to_bitmask();
        let double = spaces & (spaces << 1 | carry);
        let ends = special(bytes).to_bitmask() | (!visible & 0xffff) | double;
        if ends != 0 {
            at += ends.trailing_zeros() as usize;
            return at - usize::from(at > 0 && text.get(at - 1) == Some(&b' '));
        }
        carry = spaces >> 15;
        at += 16;
    }
    let mut after_space = carry == 1;
    while let Some(byte @ b' '..=b'~') = text.get(at)
        && !matches!(byte, b'"' | b'\\')
        && !(after_space && *byte == b' ')
    {
        after_space = *byte == b' ';
        at += 1;
    }
    at - usize::from(at > 0 && after_space)
}
