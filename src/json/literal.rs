//! JSON string literals: pass over them quickly, decode them.
//!
//! Most bytes of a session stand in strings, so the speed of opening one is decided here.

use std::borrow::Cow;

use super::Malformed;

/// Decodes a JSON string literal, quotes included; `None` if `raw` is anything else. Lone
/// surrogates and invalid UTF-8 become U+FFFD. Borrowed when there is nothing to decode.
pub fn string(raw: &[u8]) -> Option<Cow<'_, str>> {
    let literal = skip_string(raw, 0).ok()?;
    if literal.end != raw.len() {
        return None;
    }
    let inner = raw.get(1..literal.end - 1)?;
    if !literal.escaped {
        return Some(lossy(inner));
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(slash) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at_checked(slash)?;
        out.push_str(&lossy(plain));
        let (char, length) = unescape(escape)?;
        out.push(char);
        rest = escape.get(length..)?;
    }
    out.push_str(&lossy(rest));
    Some(Cow::Owned(out))
}

/// The text of `bytes`. Valid UTF-8 is the rule, and the check alone is quicker than the repair.
#[inline]
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The longest a character can be in a string literal, in bytes: a surrogate pair.
pub const LONGEST_CHAR: usize = 12;

/// The characters of a valid JSON string literal, quotes included, decoded as they are asked for:
/// for who needs only the beginning of a long one. Decodes like [`string`]; none if it is no string.
pub fn chars(raw: &[u8]) -> impl Iterator<Item = char> + '_ {
    let mut rest = raw.strip_prefix(b"\"").unwrap_or_default();
    std::iter::from_fn(move || {
        let (char, length) = first_char(rest)?;
        rest = rest.get(length..)?;
        Some(char)
    })
}

/// The first of them where `text` stands inside a literal, and how many bytes it takes; `None` at
/// the closing quote.
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

/// The character a valid escape at the start of `text` stands for, and how many bytes it takes; a
/// surrogate pair is one escape of twelve.
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

/// A string literal that was passed.
pub(super) struct Literal {
    /// Position after the closing quote.
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// The byte 0x01, the low seven bits and the high bit, in each byte of a word.
const EACH: u64 = u64::MAX / 255;
const LOW: u64 = EACH * 0x7f;
const HIGH: u64 = EACH * 0x80;

/// Passes the string literal at `at`; anything else there is malformed.
#[inline]
pub(super) fn skip_string(text: &[u8], at: usize) -> Result<Literal, Malformed> {
    if text.get(at) != Some(&b'"') {
        return Err(Malformed { at });
    }
    let mut at = at + 1;
    while let Some([low, high]) = words(text, at) {
        let (low, high) = (first_special(low), first_special(high));
        if low | high == 0 {
            at += 16;
            continue;
        }
        at += first_byte(low).unwrap_or(8 + first_byte(high).unwrap_or(0));
        return match text.get(at) {
            Some(b'"') => Ok(Literal {
                end: at + 1,
                escaped: false,
            }),
            _ => skip_escaped(text, at),
        };
    }
    skip_string_end(text, at, false)
}

/// Marks quotes, backslashes and control characters by the high bits of their bytes. A borrow may
/// mark bytes behind such a one: only the first mark is to be trusted.
#[inline]
fn first_special(word: u64) -> u64 {
    let quote = (word ^ (EACH * 0x22)).wrapping_sub(EACH);
    let slash = (word ^ (EACH * 0x5c)).wrapping_sub(EACH);
    let control = word.wrapping_sub(EACH * 0x20);
    (quote | slash | control) & !word & HIGH
}

/// Goes on inside a string literal that holds escapes; `at` is at the start of one or of a character.
///
/// In real sessions every twentieth byte is an escape, nearly always `\n`, `\t` or `\"`, at places no
/// branch predictor can know. So these pass without a branch; all else (the end of the string, other
/// escapes, a control character) is an event, looked at one by one.
fn skip_escaped(text: &[u8], mut at: usize) -> Result<Literal, Malformed> {
    // The high bit of the lowest byte: whether the byte before this word is a backslash that
    // escapes what follows.
    let mut carried = 0;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        // Adding to seven bits cannot carry into the next byte: each high bit says "differs", or for
        // the last one "is no control character"; bytes above 0x7f have it set in `word`.
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
                escaped: true,
            }),
            _ => Err(Malformed { at }),
        };
    }
    skip_string_end(text, at - usize::from(carried != 0), true)
}

/// As above, byte by byte, where the text ends within the next word.
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

/// Passes the escape whose backslash is at `at`.
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

/// The next sixteen bytes as two words, the first byte lowest.
#[inline]
fn words(text: &[u8], at: usize) -> Option<[u64; 2]> {
    let pair = u128::from_le_bytes(*text.get(at..)?.first_chunk()?);
    Some([pair as u64, (pair >> 64) as u64])
}

/// Position of the first byte from `at` on that may not stand in a string literal as it is, or that
/// starts what readers in the field take for a line end: a quote, a backslash, a control character,
/// 0xe2. The end of the text if there is none.
pub(super) fn next_to_escape(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        let separator = word ^ (EACH * 0xe2);
        let separator = separator.wrapping_sub(EACH) & !separator & HIGH;
        if let Some(hit) = first_byte(first_special(word) | separator) {
            return at + hit;
        }
        at += 8;
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
    // The high bit of the lowest byte: whether a space stands before this word.
    let mut carried = 0x80;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        let low = word & LOW;
        // As in `skip_escaped`: exact in every byte, for spaces are looked for behind others.
        let space = !(((low ^ (EACH * 0x20)) + LOW) | word) & HIGH;
        let double = space & (space << 8 | carried);
        let delete = !(((low ^ LOW) + LOW) | word) & HIGH;
        let end = first_special(word) | double | delete | (word & HIGH);
        if let Some(hit) = first_byte(end) {
            at += hit;
            break;
        }
        carried = space >> 56;
        at += 8;
    }
    if text.len() - at < 8 {
        let mut after_space = at == 0 || text.get(at - 1) == Some(&b' ');
        while let Some(byte @ b' '..=b'~') = text.get(at)
            && !matches!(byte, b'"' | b'\\')
            && !(after_space && *byte == b' ')
        {
            after_space = *byte == b' ';
            at += 1;
        }
    }
    match text.get(..at) {
        Some([.., b' ']) => at - 1,
        _ => at,
    }
}

/// Index of the first byte whose high bit is marked.
#[inline]
fn first_byte(marks: u64) -> Option<usize> {
    (marks != 0).then_some((marks.trailing_zeros() / 8) as usize)
}
