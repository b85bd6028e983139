//! The header block before a message with the framing `Content-Length`.

use memchr::memchr;

/// The bytes of the longest header block. A longer block is not recognized.
pub(super) const MAX_BLOCK: usize = 16 * 1024;
/// The bytes of the longest header name. The limit bounds the repeated scan of a line that arrives in parts.
pub(super) const MAX_NAME: usize = 64;

/// A header block that is partly read. It is `Copy`, so the reader can look ahead at no cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeaderBlock {
    /// The start of the current line, in bytes from the start of the block.
    pub line: usize,
    /// The bytes of the current line that are known to have no `\n`.
    scanned: usize,
    pub length: Option<u64>,
}

pub(super) enum BlockProgress {
    /// The bytes may be the beginning of a header block.
    More,
    /// A line is not `Name: value`, or the block is too long for a header block.
    NoHeader,
    /// `Content-Length` is missing, is not a number, or contradicts an earlier one.
    Bad,
    /// The block has `size` bytes, its blank line included. A body of `length` bytes follows.
    End { size: usize, length: u64 },
}

impl HeaderBlock {
    /// Continues with `bytes`, which start at the same byte as in the last call.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> BlockProgress {
        loop {
            let rest = bytes.get(self.line..).unwrap_or_default();
            let unseen = rest.get(self.scanned..).unwrap_or_default();
            let Some(at) = memchr(b'\n', unseen) else {
                self.scanned = rest.len();
                // This is decided before the line ends, so that the reader does not wait for the rest of a line that
                // cannot be a header.
                if bytes.len() > MAX_BLOCK || !may_become_header(rest) {
                    return BlockProgress::NoHeader;
                }
                return BlockProgress::More;
            };
            let end = self.scanned + at;
            let line = rest.get(..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.line += end + 1;
            self.scanned = 0;
            if self.line > MAX_BLOCK {
                return BlockProgress::NoHeader;
            }
            if line.is_empty() {
                return match self.length {
                    Some(length) => BlockProgress::End {
                        size: self.line,
                        length,
                    },
                    None => BlockProgress::Bad,
                };
            }
            let Some((name, value)) = split_header(line) else {
                return BlockProgress::NoHeader;
            };
            if name.eq_ignore_ascii_case(b"content-length") {
                match parse_length(value) {
                    Some(length) if self.length.is_none_or(|other| other == length) => {
                        self.length = Some(length);
                    }
                    _ => return BlockProgress::Bad,
                }
            }
        }
    }
}

/// Whether these first bytes of a line can begin a header, or the blank line after the last header.
fn may_become_header(line: &[u8]) -> bool {
    let name = line.iter().take_while(|byte| is_name_byte(**byte)).count();
    match line.get(name) {
        None => name <= MAX_NAME,
        Some(b':') => (1..=MAX_NAME).contains(&name),
        Some(_) => line == b"\r",
    }
}

fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = line.split_at_checked(memchr(b':', line)?)?;
    let named = (1..=MAX_NAME).contains(&name.len()) && name.iter().all(|b| is_name_byte(*b));
    named.then_some((name, value.strip_prefix(b":")?))
}

/// A token character of RFC 9110 §5.6.2; field names consist of these.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    // `u64::from_str` takes a leading plus sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The length of the empty lines (`\n` or `\r\n`) at the beginning.
pub(super) fn blank_lines(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some(next) = rest
        .strip_prefix(b"\n")
        .or_else(|| rest.strip_prefix(b"\r\n"))
    {
        rest = next;
    }
    bytes.len() - rest.len()
}
