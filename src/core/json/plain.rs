//! Runs of text that are the same inside and outside a string literal.

use super::block::special;
use wide::u8x16;

/// The index of the first byte from `at` on that a string literal must escape (a quote, a backslash, a
/// control character) or that may start a line separator (0xe2). The length of the text if there is none.
pub(super) fn next_to_escape(text: &[u8], mut at: usize) -> usize {
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let bytes = u8x16::new(*bytes);
        let hits = special(bytes) | bytes.simd_eq(u8x16::splat(0xe2));
        match hits.to_bitmask() {
            0 => at += 16,
            hits => return at + hits.trailing_zeros() as usize,
        }
    }
    // Most texts are ids of eight digits.
    if let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<8>)
        && is_plain_word(u64::from_ne_bytes(*bytes))
    {
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    let hit = rest
        .iter()
        .position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\' | 0xe2));
    hit.map_or(text.len(), |hit| at + hit)
}

/// Whether eight bytes have no byte that [`next_to_escape`] searches for.
fn is_plain_word(bytes: u64) -> bool {
    const EACH: u64 = u64::MAX / 255;
    const HIGH: u64 = EACH * 0x80;
    // The high bit of a byte is set if the byte is zero. A zero byte may also set the high bits of the bytes above it,
    // which does not matter here.
    let zeros = |bytes: u64| bytes.wrapping_sub(EACH) & !bytes & HIGH;
    let is = |byte: u8| zeros(bytes ^ (EACH * u64::from(byte)));
    let control = bytes.wrapping_sub(EACH * 0x20) & !bytes & HIGH;
    (control | is(b'"') | is(b'\\') | is(0xe2)) == 0
}

/// The length of the part at the start of `text` that needs neither decoding nor folding: visible ASCII, with single
/// spaces between words. Nearly all text has this form. The result neither starts nor ends with a space.
pub fn plain_words(text: &[u8]) -> usize {
    let mut at = 0;
    // 1 if the byte before this block is a space, or if there is no byte before it.
    let mut carry = 1;
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let bytes = u8x16::new(*bytes);
        // Bytes of at least 0x7f: subtracting 0x7e leaves a remainder.
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

/// The index of the first byte that is in `wanted`; the length of the text if there is none. No byte of
/// `wanted` may be zero.
#[inline]
pub fn first_of<const N: usize>(text: &[u8], wanted: &[u8; N]) -> usize {
    let hits = |block: &[u8; 16]| {
        let bytes = u8x16::new(*block);
        let mut hits = u8x16::splat(0);
        for byte in wanted {
            hits |= bytes.simd_eq(u8x16::splat(*byte));
        }
        hits.to_bitmask()
    };
    let (blocks, rest) = text.as_chunks::<16>();
    for (number, block) in blocks.iter().enumerate() {
        let hits = hits(block);
        if hits != 0 {
            return number * 16 + hits.trailing_zeros() as usize;
        }
    }
    let mut last = [0; 16];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let end = hits(&last).trailing_zeros() as usize;
    text.len().min(blocks.len() * 16 + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_of_several_bytes_is_found_at_any_place() {
        for len in [0, 1, 15, 16, 17, 40] {
            for at in 0..=len {
                let mut text = vec![b'a'; len];
                text.iter_mut()
                    .skip(at)
                    .step_by(3)
                    .for_each(|byte| *byte = b'<');
                assert_eq!(first_of(&text, b"\"<"), at, "{len}");
                assert_eq!(first_of(&text, b"\"\\"), len, "{at} of {len}");
            }
        }
    }

    #[test]
    fn any_byte_at_any_place_is_found_or_passed_over() {
        for len in [1, 7, 8, 9, 15, 16, 17, 24, 31, 33] {
            for at in 0..len {
                for byte in 0..=u8::MAX {
                    for around in [b'a', 0x7f, 0x80, 0xff, b' ', b'#', b'[', b']', b'!'] {
                        let mut text = vec![around; len];
                        text[at] = byte;
                        let is_found = matches!(byte, 0..0x20 | b'"' | b'\\' | 0xe2);
                        let expect = if is_found { at } else { len };
                        assert_eq!(
                            next_to_escape(&text, 0),
                            expect,
                            "{byte:x} at {at} of {len}"
                        );
                    }
                }
            }
        }
    }
}
