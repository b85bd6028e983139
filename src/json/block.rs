//! 64 bytes of a string literal at a time, as bit masks (bit n: byte n).

use wide::u8x16;

/// Bytes of a block.
pub const BLOCK: usize = 64;

/// Four registers of sixteen bytes.
pub struct Block([u8x16; 4]);

impl Block {
    #[inline]
    pub fn load(bytes: &[u8; BLOCK]) -> Self {
        let (quarters, _) = bytes.as_chunks::<16>();
        let quarter = |n: usize| u8x16::new(quarters.get(n).copied().unwrap_or_default());
        Self([quarter(0), quarter(1), quarter(2), quarter(3)])
    }

    /// Whether nothing in it needs a look: no quote, backslash or control character.
    #[inline]
    pub fn is_plain(&self) -> bool {
        let [a, b, c, d] = self.0;
        (special(a) | special(b) | special(c) | special(d)).to_bitmask() == 0
    }

    #[inline]
    pub fn quotes(&self) -> u64 {
        self.mask(|bytes| bytes.simd_eq(u8x16::splat(b'"')))
    }

    #[inline]
    pub fn backslashes(&self) -> u64 {
        self.mask(|bytes| bytes.simd_eq(u8x16::splat(b'\\')))
    }

    #[inline]
    pub fn controls(&self) -> u64 {
        self.mask(control)
    }

    /// `n`, `r` and `t`: with the quote and the backslash, what nearly all escapes end in.
    #[inline]
    pub fn usual_escapes(&self) -> u64 {
        self.mask(|bytes| {
            let is = |byte| bytes.simd_eq(u8x16::splat(byte));
            is(b'n') | is(b'r') | is(b't')
        })
    }

    #[inline]
    fn mask(&self, of: impl Fn(u8x16) -> u8x16) -> u64 {
        let bits = |bytes| u64::from(of(bytes).to_bitmask());
        let [a, b, c, d] = self.0;
        bits(a) | bits(b) << 16 | bits(c) << 32 | bits(d) << 48
    }
}

/// The first of sixteen bytes that is a quote, backslash or control character.
#[inline]
pub fn first_special(bytes: [u8; 16]) -> Option<usize> {
    let marks = special(u8x16::new(bytes)).to_bitmask();
    (marks != 0).then_some(marks.trailing_zeros() as usize)
}

#[inline]
pub fn special(bytes: u8x16) -> u8x16 {
    let is = |byte| bytes.simd_eq(u8x16::splat(byte));
    is(b'"') | is(b'\\') | control(bytes)
}

#[inline]
fn control(bytes: u8x16) -> u8x16 {
    bytes.min(u8x16::splat(0x1f)).simd_eq(bytes)
}

/// Bytes that a backslash before them escapes; `carry` says whether the block before ended in one
/// that escapes, and is set for the next. `slashes` are the backslashes of the block.
#[inline]
pub fn escaped(slashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    // Runs of backslashes are told apart by whether they begin at an odd or even place: adding the
    // start of a run to the run leaves a bit behind its end.
    let slashes = slashes & !*carry;
    let follows = slashes << 1 | *carry;
    let odd_starts = slashes & !EVEN & !follows;
    let (even_runs, overflow) = odd_starts.overflowing_add(slashes);
    *carry = u64::from(overflow);
    (EVEN ^ (even_runs << 1)) & follows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_backslash_escapes() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let (mut carry, mut in_escape) = (0, false);
        for round in 0..10_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let slashes = match round % 4 {
                0 => random,
                1 => random | random << 1 | random << 2,
                2 => u64::MAX,
                _ => random & random << 7,
            };
            let mut expected = 0;
            for bit in 0..64 {
                expected |= u64::from(in_escape) << bit;
                in_escape = !in_escape && slashes >> bit & 1 == 1;
            }
            assert_eq!(escaped(slashes, &mut carry), expected, "{slashes:x}");
            assert_eq!(carry == 1, in_escape);
        }
    }

    #[test]
    fn masks() {
        let mut bytes = [b'x'; BLOCK];
        assert!(Block::load(&bytes).is_plain());
        for (at, byte) in [
            (0, b'"'),
            (15, b'\\'),
            (16, 0),
            (33, 0x1f),
            (63, b'n'),
            (40, 0x7f),
            (41, 0xff),
        ] {
            bytes[at] = byte;
        }
        let block = Block::load(&bytes);
        assert!(!block.is_plain());
        assert_eq!(block.quotes(), 1);
        assert_eq!(block.backslashes(), 1 << 15);
        assert_eq!(block.controls(), 1 << 16 | 1 << 33);
        assert_eq!(block.usual_escapes(), 1 << 63);
        assert_eq!(first_special(*bytes.first_chunk().unwrap()), Some(0));
        assert_eq!(first_special(*b"0123456789abcde\\"), Some(15));
        assert_eq!(first_special([b' '; 16]), None);
    }
}
