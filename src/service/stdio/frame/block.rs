//! The header block before a message with `Content-Length` framing.

use memchr::memchr;

/// Bytes of the longest header block; a longer one is not recognized.
pub(super) const MAX_BLOCK: usize = 16 * 1024;
/// Bytes of the longest header name; bounds the repeated scan of a line that arrives in parts.
pub(super) const MAX_NAME: usize = 64;

/// A partly read header block. It is `Copy`, so looking ahead costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeaderBlock {
    /// Start of the current line, in bytes from the start of the block.
    pub line: usize,
    /// Bytes of the current line that hold no `\n`.
    scanned: usize,
    pub length: Option<u64>,
}

pub(super) enum BlockProgress {
    /// The bytes may begin a header block.
    More,
    /// A line is not `Name: value`, or the block is too long to be one.
    NoHeader,
    /// `Content-Length` is missing, is not a number, or contradicts an earlier one.
    Bad,
    /// The block has `size` bytes with its blank line, and a body of `length` bytes follows.
    End { size: usize, length: u64 },
}

impl HeaderBlock {
    /// Continues with `bytes`, which begin at the same place as in the last call.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> BlockProgress {
        loop {
            let rest = bytes.get(self.line..).unwrap_or_default();
            let unseen = rest.get(self.scanned..).unwrap_or_default();
            let Some(at) = memchr(b'\n', unseen) else {
                self.scanned = rest.len();
                // Decided before the line ends, so that the reader does not wait for a line that cannot be a
                // header.
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

/// Whether these first bytes can begin a header, or the blank line after the last.
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
