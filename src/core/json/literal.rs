//! JSON string literals: skips them quickly, and decodes them.
//!
//! Most bytes of a session are in strings, so this module decides how fast a session opens.

use std::borrow::Cow;

use super::block::{self, BLOCK, Marks};
use super::span::Malformed;

/// Decodes a JSON string literal, quotes included; `None` if `raw` is anything else. Lone surrogates and invalid UTF-8
/// become U+FFFD. Borrowed if nothing needs to be decoded.
pub fn string(raw: &[u8]) -> Option<Cow<'_, str>> {
    if let Some(text) = short_and_plain(raw) {
        return Some(lossy(text));
    }
    let literal = skip_string(raw, 0).ok()?;
    if literal.end != raw.len() {
        return None;
    }
    let inner = lossy(raw.get(1..literal.end - 1)?);
    if !literal.escaped {
        return Some(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = &*inner;
    while let Some(slash) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at_checked(slash)?;
        out.push_str(plain);
        let (char, length) = unescape(escape.as_bytes())?;
        out.push(char);
        rest = escape.get(length..)?;
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// Like [`string`], for an id. A lone surrogate becomes U+FFFD and its four hexadecimal digits, so that two ids that
/// differ only in a surrogate still differ.
pub fn id(raw: &[u8]) -> Option<Cow<'_, str>> {
    let text = string(raw)?;
    let is_plain = matches!(text, Cow::Borrowed(_)) || !text.contains(char::REPLACEMENT_CHARACTER);
    if is_plain {
        return Some(text);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.get(1..raw.len() - 1)?;
    while let Some(slash) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at_checked(slash)?;
        out.push_str(&lossy(plain));
        let (char, length) = unescape(escape)?;
        out.push(char);
        if let Some(lone) = lone_surrogate(escape, char, length) {
            out.push_str(&lone.to_ascii_lowercase());
        }
        rest = escape.get(length..)?;
    }
    out.push_str(&lossy(rest));
    Some(Cow::Owned(out))
}

/// The four digits of the escape at the start of `text`, if it is the escape of a lone surrogate. `char` is the
/// character that it decodes to, `length` its length in bytes.
fn lone_surrogate(text: &[u8], char: char, length: usize) -> Option<&str> {
    let digits = text
        .get(2..6)
        .filter(|_| char == char::REPLACEMENT_CHARACTER && length == 6)?;
    let is_surrogate = (0xd800..0xe000).contains(&unit(digits)?);
    str::from_utf8(digits).ok().filter(|_| is_surrogate)
}

/// The text between the quotes of a literal of at most 32 bytes without escapes, as names and ids are;
/// `None` for all other values.
#[inline]
fn short_and_plain(raw: &[u8]) -> Option<&[u8]> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    // In each case the first and the last bytes are tested. These two parts may overlap.
    let specials = match inner.len() {
        16..=32 => {
            let is_plain = |bytes: &[u8; 16]| block::first_special(*bytes).is_none();
            return (is_plain(inner.first_chunk()?) && is_plain(inner.last_chunk()?))
                .then_some(inner);
        }
        8..16 => {
            let (first, last) = (inner.first_chunk()?, inner.last_chunk()?);
            specials(u64::from_le_bytes(*first)) | specials(u64::from_le_bytes(*last))
        }
        4..8 => {
            let (first, last) = (inner.first_chunk()?, inner.last_chunk()?);
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            specials(u64::from(first) | u64::from(last) << 32)
        }
        0..4 => {
            return inner
                .iter()
                .all(|byte| *byte >= b' ' && !b"\"\\".contains(byte))
                .then_some(inner);
        }
        _ => return None,
    };
    (specials == 0).then_some(inner)
}

/// Sets the high bit of each byte of the word that is a quote, a backslash or a control character.
#[inline]
fn specials(word: u64) -> u64 {
    // The comment in `skip_words` explains this.
    let low = word & LOW;
    let not_quote = (low ^ (EACH * 0x22)) + LOW;
    let not_slash = (low ^ (EACH * 0x5c)) + LOW;
    let printable = low + EACH * 0x60;
    !(not_quote & not_slash & printable | word) & HIGH
}

/// The text of `bytes`. Most text is valid UTF-8, and checking it is quicker than repairing it.
#[inline]
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The most bytes that one character takes in a string literal: the length of an escaped surrogate pair.
pub const LONGEST_CHAR: usize = 12;

/// The characters of a valid JSON string literal (quotes included), decoded lazily, for callers that need only the
/// beginning of a long literal. Decodes like [`string`]; yields no characters if `raw` is not a string.
pub fn chars(raw: &[u8]) -> impl Iterator<Item = char> + '_ {
    let mut rest = raw.strip_prefix(b"\"").unwrap_or_default();
    std::iter::from_fn(move || {
        let (char, length) = first_char(rest)?;
        rest = rest.get(length..)?;
        Some(char)
    })
}

/// The first character of `text`, and its length in bytes; `None` at the closing quote. `text` is the inside of a
/// literal, up to its closing quote.
#[inline]
pub fn first_char(text: &[u8]) -> Option<(char, usize)> {
    match text.first()? {
        b'"' => None,
        b'\\' => unescape(text),
        &ascii @ 0..0x80 => Some((char::from(ascii), 1)),
        _ => {
            let chunk = text.get(..4).unwrap_or(text).utf8_chunks().next()?;
            Some(match chunk.valid().chars().next() {
                Some(char) => (char, char.len_utf8()),
                None => (char::REPLACEMENT_CHARACTER, chunk.invalid().len()),
            })
        }
    }
}

/// The character of the escape at the start of `text`, and the length of the escape in bytes; a surrogate
/// pair is one escape of twelve.
fn unescape(text: &[u8]) -> Option<(char, usize)> {
    let char = match text.get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let unit = unit(text.get(2..6)?)?;
            let low = match text.get(6..12) {
                Some([b'\\', b'u', digits @ ..]) => self::unit(digits),
                _ => None,
            };
            let pair = [unit, low.unwrap_or(0)];
            return match char::decode_utf16(pair).next()? {
                Ok(char) if char > '\u{ffff}' => Some((char, 12)),
                Ok(char) => Some((char, 6)),
                Err(_) => Some((char::REPLACEMENT_CHARACTER, 6)),
            };
        }
        &other => char::from(other),
    };
    Some((char, 2))
}

/// Four hexadecimal digits as a UTF-16 code unit.
fn unit(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0, |unit, &digit| {
        let value = char::from(digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

/// A string literal that was skipped.
pub(super) struct Literal {
    /// Position after the closing quote.
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// Words whose bytes are all equal: 0x01, the low seven bits, and the high bit.
const EACH: u64 = u64::MAX / 255;
const LOW: u64 = EACH * 0x7f;
const HIGH: u64 = EACH * 0x80;

/// Skips the string literal at `at`. Fails if there is no valid literal.
#[inline]
pub(super) fn skip_string(text: &[u8], at: usize) -> Result<Literal, Malformed> {
    if text.get(at) != Some(&b'"') {
        return Err(Malformed { at });
    }
    let at = at + 1;
    let Some(next) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) else {
        return skip_string_end(text, at, false);
    };
    let Some(hit) = block::first_special(*next) else {
        return skip_on(text, at + 16, false);
    };
    match next.get(hit) {
        Some(b'"') => Ok(Literal {
            end: at + hit + 1,
            escaped: false,
        }),
        _ => skip_on(text, at + hit, false),
    }
}

/// Continues inside a string literal, at the start of a character or escape; `escaped` says whether the part before has
/// an escape. Uses the widest registers of the processor. `skip_blocks` is the same function for any processor.
#[allow(
    unsafe_code,
    reason = "calling what is compiled for some processors is safe only on those"
)]
fn skip_on(text: &[u8], at: usize, escaped: bool) -> Result<Literal, Malformed> {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("bmi1") {
            // SAFETY: this processor has the instructions, and the function requires nothing else.
            return unsafe { skip_on_avx512(text, at, escaped) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
            // SAFETY: this processor has the instructions, and the function requires nothing else.
            return unsafe { skip_on_avx2(text, at, escaped) };
        }
    }
    skip_blocks(text, at, escaped, block::marks)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1")]
fn skip_on_avx512(text: &[u8], at: usize, escaped: bool) -> Result<Literal, Malformed> {
    skip_blocks(text, at, escaped, |bytes| block::marks_avx512(bytes))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
fn skip_on_avx2(text: &[u8], at: usize, escaped: bool) -> Result<Literal, Malformed> {
    skip_blocks(text, at, escaped, |bytes| block::marks_avx2(bytes))
}

/// Like `skip_on`; `marks` computes the marks of a block.
///
/// In real sessions every twentieth byte is an escape, nearly always `\n`, `\t` or `\"`, at positions that no branch
/// predictor can know. So these escapes are skipped without a branch. All other special bytes (the end of the string,
/// other escapes, control characters) are events, which are examined one by one.
#[inline(always)]
fn skip_blocks(
    text: &[u8],
    mut at: usize,
    mut escaped: bool,
    marks: impl Fn(&[u8; BLOCK]) -> Option<Marks>,
) -> Result<Literal, Malformed> {
    const NO_MARKS: Marks = Marks {
        quotes: 0,
        backslashes: 0,
        controls: 0,
        usual: 0,
    };
    // 1 if the byte before this block is a backslash that escapes the first byte.
    let mut carry = 0;
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let found = match marks(bytes) {
            Some(found) => found,
            None if carry == 0 => {
                at += BLOCK;
                continue;
            }
            // The first byte is escaped, so the escape must be examined.
            None => match bytes.first() {
                Some(b'n' | b'r' | b't') => Marks {
                    usual: 1,
                    ..NO_MARKS
                },
                _ => NO_MARKS,
            },
        };
        let (quotes, slashes) = (found.quotes, found.backslashes);
        let after = block::escaped(slashes, &mut carry);
        let usual = quotes | slashes | found.usual;
        let event = quotes & !after | found.controls | after & !usual;
        // All bits below the first event; all bits if there is no event.
        let before_event = (event & event.wrapping_neg()).wrapping_sub(1);
        escaped |= slashes & before_event != 0;
        if event == 0 {
            at += BLOCK;
            continue;
        }
        let hit = event.trailing_zeros() as usize;
        at += hit;
        if after >> hit & 1 == 1 {
            at = skip_escape(text, at - 1)?;
            carry = 0;
            continue;
        }
        return match text.get(at) {
            Some(b'"') => Ok(Literal {
                end: at + 1,
                escaped,
            }),
            _ => Err(Malformed { at }),
        };
    }
    skip_words(text, at - usize::from(carry != 0), escaped)
}

/// Like `skip_on`, eight bytes at a time, if the text ends within the next block.
fn skip_words(text: &[u8], mut at: usize, mut found: bool) -> Result<Literal, Malformed> {
    // The high bit of the lowest byte is set if the byte before this word is a backslash that escapes the first byte.
    let mut carried = 0;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        // A sum of seven-bit values cannot carry into the next byte. In the first sums a high bit means "differs"; in
        // the last sum it means "is not a control character". Bytes above 0x7f have the high bit set in `word`.
        let low = word & LOW;
        let not_quote = (low ^ (EACH * 0x22)) + LOW;
        let not_slash = (low ^ (EACH * 0x5c)) + LOW;
        let not_n = (low ^ (EACH * 0x6e)) + LOW;
        let not_t = (low ^ (EACH * 0x74)) + LOW;
        let printable = low + EACH * 0x60;
        let slash = !(not_slash | word) & HIGH;
        let escaped = slash << 8 | carried;
        let plain = (printable & (not_quote | escaped)) | word;
        let rare_escape = escaped & (word | (not_quote & not_n & not_t));
        let event = (!plain | rare_escape) & HIGH;
        // All bits below the first event; all bits if there is no event.
        let before_event = (event & event.wrapping_neg()).wrapping_sub(1);
        found |= slash & before_event != 0;
        let Some(hit) = first_byte(event) else {
            carried = slash >> 56;
            at += 8;
            continue;
        };
        at += hit;
        if escaped & event & event.wrapping_neg() != 0 {
            at = skip_escape(text, at - 1)?;
            carried = 0;
            continue;
        }
        return match text.get(at) {
            Some(b'"') => Ok(Literal {
                end: at + 1,
                escaped: found,
            }),
            _ => Err(Malformed { at }),
        };
    }
    skip_string_end(text, at - usize::from(carried != 0), found)
}

/// Like `skip_words`, byte by byte, if the text ends within the next word.
fn skip_string_end(text: &[u8], mut at: usize, mut escaped: bool) -> Result<Literal, Malformed> {
    loop {
        match text.get(at) {
            Some(b'"') => {
                return Ok(Literal {
                    end: at + 1,
                    escaped,
                });
            }
            Some(b'\\') => {
                escaped = true;
                at = skip_escape(text, at)?;
            }
            Some(0x20..) => at += 1,
            _ => return Err(Malformed { at }),
        }
    }
}

/// Skips the escape whose backslash is at `at`.
#[inline]
fn skip_escape(text: &[u8], at: usize) -> Result<usize, Malformed> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let digits = text.get(at + 2..).unwrap_or_default().iter().take(4);
            match digits.take_while(|digit| digit.is_ascii_hexdigit()).count() {
                4 => Ok(at + 6),
                good => Err(Malformed { at: at + 2 + good }),
            }
        }
        _ => Err(Malformed { at: at + 1 }),
    }
}

/// The index of the lowest byte whose high bit is set.
#[inline]
fn first_byte(marks: u64) -> Option<usize> {
    (marks != 0).then_some((marks.trailing_zeros() / 8) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variant = fn(&[u8], usize, bool) -> Result<Literal, Malformed>;

    /// Each variant of `skip_blocks` that this processor can run.
    #[allow(unsafe_code, reason = "as for skip_on")]
    fn ways() -> Vec<Variant> {
        let mut ways: Vec<Variant> =
            vec![|text, at, found| skip_blocks(text, at, found, block::marks)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("bmi1") {
                // SAFETY: this processor has the instructions.
                ways.push(|text, at, found| unsafe { skip_on_avx512(text, at, found) });
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
                // SAFETY: this processor has the instructions.
                ways.push(|text, at, found| unsafe { skip_on_avx2(text, at, found) });
            }
        }
        ways
    }

    #[test]
    fn short_literals_are_decoded_like_long_ones() {
        for len in 0..40 {
            for at in 0..=len {
                for piece in ["", "\\n", "\"", "\\", "\t", "\\u0041", "é"] {
                    let mut inner = "x".repeat(len);
                    inner.insert_str(at, piece);
                    let raw = format!("\"{inner}\"");
                    let decoded = serde_json::from_str::<String>(&raw).ok();
                    assert_eq!(
                        string(raw.as_bytes()).map(Cow::into_owned),
                        decoded,
                        "{raw}"
                    );
                    assert_eq!(string(inner.as_bytes()), None, "{inner}");
                }
            }
        }
        assert_eq!(string(b"\""), None);
    }

    /// All variants must give the same result.
    #[test]
    fn blocks_words_and_bytes_agree() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) % limit
        };
        let (mut whole, mut broken) = (0, 0);
        for _ in 0..20_000 {
            let mut text = Vec::new();
            let escapes = next(4) * 8;
            for _ in 0..next(300) {
                match next(64) {
                    0 if next(8) == 0 => text.push(*b"\"\x00\x1f\\".get(next(4) as usize).unwrap()),
                    1 => text.extend_from_slice("\u{7f}ü😀\u{2028}".as_bytes()),
                    n if n < escapes => {
                        let escape = [
                            "\\n", "\\t", "\\\"", "\\\\", "\\r", "\\u001b", "\\/", "\\b", "\\f",
                            "\\ud800",
                        ];
                        text.extend_from_slice(escape[next(10) as usize].as_bytes());
                        if next(400) == 0 {
                            text.extend_from_slice(b"\\x");
                        }
                    }
                    n => text.push(0x30 + n as u8),
                }
            }
            text.extend_from_slice(
                b"\",\"behind\":\"a\\\\b\\n and more, so that a block is full: 0123456789\"}",
            );
            let end = text.len() - next(60) as usize;
            let text = &text[..end];
            let told = |passed: Result<Literal, Malformed>| match passed {
                Ok(literal) => Ok((literal.end, literal.escaped)),
                Err(malformed) => Err(malformed.at),
            };
            let bytes = told(skip_string_end(text, 0, false));
            assert_eq!(told(skip_on(text, 0, false)), bytes, "{:?}", text);
            for skip in ways() {
                assert_eq!(told(skip(text, 0, false)), bytes, "{:?}", text);
            }
            assert_eq!(told(skip_words(text, 0, false)), bytes, "{:?}", text);
            let quoted = [b"\"", text].concat();
            let shifted = bytes
                .map(|(end, escaped)| (end + 1, escaped))
                .map_err(|at| at + 1);
            assert_eq!(told(skip_string(&quoted, 0)), shifted, "{:?}", text);
            match bytes {
                Ok(_) => whole += 1,
                Err(_) => broken += 1,
            }
        }
        assert!(whole > 1000 && broken > 100, "{whole} {broken}");
    }
}
