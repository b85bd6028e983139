//! Computes the marks of a block in registers of 32 bytes (AVX2) or 64 bytes (AVX-512).
//!
//! The functions are safe. A caller that is not compiled for these instruction sets must check first that the processor
//! has them.

use super::marks::{BLOCK, Marks};
use bytemuck::must_cast;
use std::arch::x86_64::*;

/// See [`super::marks`].
#[inline]
#[target_feature(enable = "avx512bw")]
pub(crate) fn marks_avx512(bytes: &[u8; BLOCK]) -> Option<Marks> {
    let block: __m512i = must_cast(*bytes);
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte.cast_signed()));
    let (quotes, backslashes) = (is(b'"'), is(b'\\'));
    let controls = _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(0x20));
    (quotes | backslashes | controls != 0).then(|| Marks {
        quotes,
        backslashes,
        controls,
        usual: is(b'n') | is(b'r') | is(b't'),
    })
}

/// See [`super::marks`].
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn marks_avx2(bytes: &[u8; BLOCK]) -> Option<Marks> {
    let [low, high]: [__m256i; 2] = must_cast(*bytes);
    let is = |half, byte: u8| _mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte.cast_signed()));
    let control = |half| _mm256_cmpeq_epi8(_mm256_min_epu8(half, _mm256_set1_epi8(0x1f)), half);
    let or = |a, b| _mm256_or_si256(a, b);
    let special = |half| or(or(is(half, b'"'), is(half, b'\\')), control(half));
    if _mm256_movemask_epi8(or(special(low), special(high))) == 0 {
        return None;
    }
    let bits = |low, high| {
        let bits = |half| u64::from(_mm256_movemask_epi8(half).cast_unsigned());
        bits(low) | bits(high) << 32
    };
    let usual = |half| or(or(is(half, b'n'), is(half, b'r')), is(half, b't'));
    Some(Marks {
        quotes: bits(is(low, b'"'), is(high, b'"')),
        backslashes: bits(is(low, b'\\'), is(high, b'\\')),
        controls: bits(control(low), control(high)),
        usual: bits(usual(low), usual(high)),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    type Variant = fn(&[u8; BLOCK]) -> Option<Marks>;

    /// The variants that this processor can run.
    #[allow(unsafe_code, reason = "calling them is safe where they can run")]
    pub(crate) fn ways() -> Vec<Variant> {
        let mut ways: Vec<Variant> = Vec::new();
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: this processor has the instructions.
            ways.push(|bytes| unsafe { marks_avx512(bytes) });
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: this processor has the instructions.
            ways.push(|bytes| unsafe { marks_avx2(bytes) });
        }
        ways
    }
}
