//! Finds the end of a private key in text. The key may be cut, and its line breaks may be escaped. Programs put
//! prefixes before its lines: line numbers, names of files, quotes.

use std::ops::Range;

/// The length of the longest line of a key, in bytes.
const LONGEST_LINE: usize = 200;

/// The length of the longest prefix of a line, in bytes.
const LONGEST_PREFIX: usize = 300;

/// The end of the key whose first line is at `begin`; `None` if no other line of a key follows.
pub(super) fn end(text: &[u8], begin: Range<usize>) -> Option<usize> {
    let prefix = LinePrefix::before(text, begin.start);
    let mut end = begin.end;
    let mut has_content = false;
    loop {
        let next = prefix.skip(text, skip_breaks(text, end));
        let rest = text.get(next..)?;
        if rest.starts_with(b"-----END ") {
            let name = rest.iter().skip(9).take_while(|byte| is_in_name(**byte));
            let line = 9 + name.count();
            let dashes = rest
                .iter()
                .skip(line)
                .take(5)
                .take_while(|byte| **byte == b'-');
            return Some(next + line + dashes.count());
        }
        let length = line_of_key(rest, &prefix)?;
        match length {
            0 => return has_content.then_some(end),
            _ => has_content = true,
        }
        end = next + length;
    }
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

/// The text before the first line of a key, such as `id_rsa:1:` or `# `. The same prefix may be before each line.
struct LinePrefix<'t>(&'t [u8]);

impl<'t> LinePrefix<'t> {
    fn before(text: &'t [u8], at: usize) -> Self {
        let head = text.get(at.saturating_sub(LONGEST_PREFIX)..at);
        let head = head.unwrap_or_default();
        let line = memchr::memrchr(b'\n', head).map_or(0, |at| at + 1);
        let escaped = memchr::memmem::rfind(head, b"\\n").map_or(0, |at| at + 2);
        let line = head.get(line.max(escaped)..).unwrap_or_default();
        Self(line.get(skip_breaks(line, 0)..).unwrap_or_default())
    }

    /// Skips the prefix at `at`, then the line breaks and quotes after it; returns `at` if there is no prefix.
    fn skip(&self, text: &[u8], at: usize) -> usize {
        match self.length_in(text.get(at..).unwrap_or_default()) {
            0 => at,
            length => skip_breaks(text, at + length),
        }
    }

    /// The length of the prefix at the start of `text`; 0 if it is not there. Numbers in the prefix may have other
    /// values.
    fn length_in(&self, text: &[u8]) -> usize {
        let (mut own, mut other) = (self.0, text);
        loop {
            match (own, other) {
                ([], _) => return text.len() - other.len(),
                ([b'0'..=b'9', ..], [b'0'..=b'9', ..]) => {
                    own = without_number(own);
                    other = without_number(other);
                }
                // The output of `grep` has the prefix `id_rsa:1:` before a line that matches, and `id_rsa-2-` before a
                // line of its context.
                ([a, own_rest @ ..], [b, rest @ ..])
                    if a == b || (matches!(a, b':' | b'-') && matches!(b, b':' | b'-')) =>
                {
                    own = own_rest;
                    other = rest;
                }
                _ => return 0,
            }
        }
    }
}

fn without_number(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    text.get(end.unwrap_or(text.len())..).unwrap_or_default()
}

/// Skips line breaks and blanks, escaped or not, and the numbers, quotes and operators that programs put before and
/// after lines.
fn skip_breaks(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        at += match rest {
            [b'\\', b'n' | b'r', ..] => 2,
            [b'\n' | b'\r' | b' ' | b'\t' | b'>' | b'|' | b'"' | b'+', ..] => 1,
            [b'\\' | b'\'' | b'`' | b',' | b'.' | b'&' | b'(' | b')', ..] => 1,
            // A removed line of a diff has one `-`. The last line of a key begins with five.
            [b'-', next, ..] if *next != b'-' => 1,
            [b'-', ..] if rest.starts_with(b"------END ") => 1,
            _ => match line_number(rest) {
                0 => return at,
                length => length,
            },
        };
    }
}

/// The length of a line number and its separator; 0 if there is no line number.
fn line_number(text: &[u8]) -> usize {
    let digits = text.iter().take(8).take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    let behind = text.get(digits..).unwrap_or_default();
    match behind {
        _ if digits == 0 => 0,
        [b'\t' | b':' | b'|' | b' ', ..] => digits + 1,
        // The arrow `→`.
        [0xe2, 0x86, 0x92, ..] => digits + 3,
        _ => 0,
    }
}

/// The length of the line of a key at the start of `text`: base64, or a header such as `Proc-Type: 4,ENCRYPTED`. 0 for
/// any other line.
fn line_of_key(text: &[u8], prefix: &LinePrefix<'_>) -> Option<usize> {
    let head = text.get(..text.len().min(LONGEST_LINE))?;
    let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_header = [
        &b"Proc-Type:"[..],
        b"DEK-Info:",
        b"Version:",
        b"Comment:",
        b"Hash:",
    ];
    if is_header.iter().any(|name| head.starts_with(name)) {
        let line = head
            .iter()
            .take_while(|byte| !matches!(byte, b'\n' | b'\r' | b'\\'));
        return Some(line.count());
    }
    // A line must be base64 to its end, however long it is.
    let length = text.iter().take_while(is_base64).count();
    let behind = text.get(length..).unwrap_or_default();
    let ends = matches!(
        behind,
        [] | [
            b'\n' | b'\r' | b'\\' | b' ' | b'\t' | b'"' | b'\'' | b'`' | b'-',
            ..
        ]
    );
    // Words in a sentence are shorter.
    let is_line = length >= 16
        || (behind.starts_with(b"-----END ") && length > 0)
        || is_checksum(text, length, prefix);
    Some(if ends && is_line { length } else { 0 })
}

/// Whether the line is the short last line of a key, or the checksum of an armored key.
fn is_checksum(text: &[u8], length: usize, prefix: &LinePrefix<'_>) -> bool {
    let behind = text.get(length..).unwrap_or_default();
    let next = prefix.skip(behind, skip_breaks(behind, 0));
    length > 0
        && next > 0
        && behind
            .get(next..)
            .is_some_and(|rest| rest.starts_with(b"-----END ") || rest.starts_with(b"="))
}
