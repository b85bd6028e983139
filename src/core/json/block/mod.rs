//! Examines a string literal in blocks of 64 bytes. The results are bit masks; bit n is about byte n.

mod marks;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(super) use marks::{BLOCK, Marks};
use wide::u8x16;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{marks_avx2, marks_avx512};

/// The marks of a block; `None` if it has no quote, backslash or control character.
///
/// This function works on any processor; [`x86`] has variants for wider registers.
#[inline]
pub(super) fn marks(bytes: &[u8; BLOCK]) -> Option<Marks> {
    let block = Block::load(bytes);
    (!block.is_plain()).then(|| Marks {
        quotes: block.quotes(),
        backslashes: block.backslashes(),
        controls: block.controls(),
        usual: block.usual_escapes(),
    })
}

/// Four registers of sixteen bytes.
struct Block([u8x16; 4]);

impl Block {
    #[inline]
    fn load(bytes: &[u8; BLOCK]) -> Self {
        let (quarters, _) = bytes.as_chunks::<16>();
        let quarter = |n: usize| u8x16::new(quarters.get(n).copied().unwrap_or_default());
        Self([quarter(0), quarter(1), quarter(2), quarter(3)])
    }

    #[inline]
    fn is_plain(&self) -> bool {
        let [a, b, c, d] = self.0;
        (special(a) | special(b) | special(c) | special(d)).to_bitmask() == 0
    }

    #[inline]
    fn quotes(&self) -> u64 {
        self.mask(|bytes| bytes.simd_eq(u8x16::splat(b'"')))
    }

    #[inline]
    fn backslashes(&self) -> u64 {
        self.mask(|bytes| bytes.simd_eq(u8x16::splat(b'\\')))
    }

    #[inline]
    fn controls(&self) -> u64 {
        self.mask(control)
    }

    #[inline]
    fn usual_escapes(&self) -> u64 {
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

/// The index of the first byte that is a quote, backslash or control character.
#[inline]
pub(super) fn first_special(bytes: [u8; 16]) -> Option<usize> {
    let marks = special(u8x16::new(bytes)).to_bitmask();
    (marks != 0).then_some(marks.trailing_zeros() as usize)
}

#[inline]
pub(super) fn special(bytes: u8x16) -> u8x16 {
    let is = |byte| bytes.simd_eq(u8x16::splat(byte));
    is(b'"') | is(b'\\') | control(bytes)
}

#[inline]
fn control(bytes: u8x16) -> u8x16 {
    bytes.min(u8x16::splat(0x1f)).simd_eq(bytes)
}

/// The bytes that a backslash escapes. `carry` says whether the previous block ended in such a backslash, and is set
/// for the next block. `slashes` are the backslashes of the block.
#[inline]
pub(super) fn escaped(slashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    // Adding the first bit of a run of backslashes to the run sets the bit after its end. Whether the byte there is
    // escaped depends on whether the run begins at an even or at an odd index.
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

    type Variant = fn(&[u8; BLOCK]) -> Option<Marks>;

    /// Each variant that this processor can run.
    fn ways() -> Vec<Variant> {
        let mut ways: Vec<Variant> = vec![marks];
        #[cfg(target_arch = "x86_64")]
        ways.extend(x86::tests::ways());
        ways
    }

    #[test]
    fn every_byte_is_marked_the_same_by_all() {
        for at in 0..BLOCK {
            for byte in 0..=u8::MAX {
                let mut bytes =
                    *b"plain text, { [0-9]: }; so many bytes as there are in one block.";
                bytes[at] = byte;
                let bit = |is: bool| u64::from(is) << at;
                let naive = Marks {
                    quotes: bit(byte == b'"'),
                    backslashes: bit(byte == b'\\'),
                    controls: bit(byte < 0x20),
                    usual: 0,
                };
                for way in ways() {
                    let found = way(&bytes).map(|marks| Marks { usual: 0, ..marks });
                    let is_plain = naive.quotes | naive.backslashes | naive.controls == 0;
                    assert_eq!(found, (!is_plain).then_some(naive), "{byte} at {at}");
                    let whole = way(&bytes);
                    assert_eq!(whole, marks(&bytes), "{byte} at {at}");
                }
            }
        }
    }

    #[test]
    fn masks() {
        let mut bytes = [b'x'; BLOCK];
        assert_eq!(marks(&bytes), None);
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
        let expected = Marks {
            quotes: 1,
            backslashes: 1 << 15,
            controls: 1 << 16 | 1 << 33,
            usual: 1 << 63,
        };
        for way in ways() {
            assert_eq!(way(&bytes), Some(expected));
        }
        assert_eq!(first_special(*bytes.first_chunk().unwrap()), Some(0));
        assert_eq!(first_special(*b"0123456789abcde\\"), Some(15));
        assert_eq!(first_special([b' '; 16]), None);
    }
}
