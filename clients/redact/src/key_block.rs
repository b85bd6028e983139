//! The end of a private key in text, which may be cut, or have its line breaks escaped.

/// Bytes of the longest line of a key.
const LONGEST_LINE: usize = 200;

/// The end of the key whose first line ends at `at`; `None` if no line of a key follows.
pub(super) fn end(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    let mut has_content = false;
    loop {
        let next = skip_breaks(text, end);
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
        let length = line_of_key(rest)?;
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

/// Skips line breaks and blanks, also escaped ones, and the numbers and marks that programs put before lines.
fn skip_breaks(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        at += match rest {
            [b'\\', b'n' | b'r', ..] => 2,
            [b'\n' | b'\r' | b' ' | b'\t' | b'>' | b'|' | b'"' | b'+', ..] => 1,
            // A removed line of a difference. The last line of a key begins with five.
            [b'-', next, ..] if *next != b'-' => 1,
            [b'-', ..] if rest.starts_with(b"------END ") => 1,
            _ => match line_number(rest) {
                0 => return at,
                length => length,
            },
        };
    }
}

/// The length of a line's number with what parts it from the line; 0 if there is none.
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

/// The length of the line of a key at the start of `text`: base64, or a header such as `Proc-Type: 4,ENCRYPTED`.
/// 0 if it is no such line.
fn line_of_key(text: &[u8]) -> Option<usize> {
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
    // A whole line, of any length, must be base64.
    let length = text.iter().take_while(is_base64).count();
    let behind = text.get(length..).unwrap_or_default();
    let ends = matches!(
        behind,
        [] | [
            b'\n' | b'\r' | b'\\' | b' ' | b'\t' | b'"' | b'\'' | b'-',
            ..
        ]
    );
    // Words in a sentence are shorter.
    let is_line = length >= 16
        || (behind.starts_with(b"-----END ") && length > 0)
        || is_checksum(text, length);
    Some(if ends && is_line { length } else { 0 })
}

/// Whether the line is the short last one of a key, or the checksum of an armored one.
fn is_checksum(text: &[u8], length: usize) -> bool {
    let behind = text.get(length..).unwrap_or_default();
    let next = skip_breaks(behind, 0);
    length > 0
        && next > 0
        && behind
            .get(next..)
            .is_some_and(|rest| rest.starts_with(b"-----END ") || rest.starts_with(b"="))
}
