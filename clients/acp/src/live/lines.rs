//! Reads a stream line by line. A line that is too long is read in parts.

use crate::journal::MAX_MESSAGE;
use std::io::{self, BufRead};

/// The most bytes of a buffer that is used again for the next line.
const MAX_KEPT: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A whole line. The last line of a stream may lack its line break.
    Line,
    /// A part of a line that is too long. `is_end`: the last part.
    Part { is_end: bool },
}

impl Piece {
    /// Whether the next piece belongs to the same line.
    pub(crate) fn goes_on(self) -> bool {
        self == Piece::Part { is_end: false }
    }
}

pub(crate) struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
    is_long: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(from: R) -> Lines<R> {
        Lines {
            from,
            bytes: Vec::new(),
            is_long: false,
        }
    }

    /// The bytes of the piece that was read last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads the next piece; `None` at the end of the stream.
    pub(crate) fn read(&mut self) -> io::Result<Option<Piece>> {
        self.bytes.clear();
        if self.bytes.capacity() > MAX_KEPT {
            self.bytes = Vec::new();
        }
        loop {
            let block = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                block => block?,
            };
            if block.is_empty() {
                let last = match self.is_long {
                    true => Piece::Part { is_end: true },
                    false => Piece::Line,
                };
                self.is_long = false;
                return Ok((!self.bytes.is_empty()).then_some(last));
            }
            let line_break = block.iter().position(|byte| *byte == b'\n');
            let length = line_break.map_or(block.len(), |at| at + 1);
            self.bytes
                .extend_from_slice(block.get(..length).unwrap_or_default());
            self.from.consume(length);
            let is_end = line_break.is_some();
            if self.is_long || self.bytes.len() > MAX_MESSAGE {
                self.is_long = !is_end;
                return Ok(Some(Piece::Part { is_end }));
            }
            if is_end {
                return Ok(Some(Piece::Line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn no_byte_is_lost_and_lines_are_whole() {
        let long = "x".repeat(3 * MAX_MESSAGE);
        let text = format!("one\n\n{long}\ntwo\r\nthree");
        for size in [1, 7, 64 << 10] {
            let mut lines = Lines::new(BufReader::with_capacity(size, text.as_bytes()));
            let (mut all, mut whole, mut ends) = (Vec::new(), Vec::new(), 0);
            while let Some(piece) = lines.read().unwrap() {
                all.extend_from_slice(lines.bytes());
                match piece {
                    Piece::Line => whole.push(String::from_utf8(lines.bytes().to_vec()).unwrap()),
                    Piece::Part { is_end } => ends += usize::from(is_end),
                }
            }
            assert!(all == text.as_bytes(), "{size}: {} bytes", all.len());
            assert_eq!(whole, ["one\n", "\n", "two\r\n", "three"], "{size}");
            assert_eq!(ends, 1, "{size}");
        }
    }
}
