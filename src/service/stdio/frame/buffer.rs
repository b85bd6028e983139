//! The unconsumed bytes of the input.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// Bytes per read while no larger frame is being read: the capacity of a Linux pipe.
pub(super) const CHUNK: usize = 64 * 1024;
/// A buffer larger than this, in bytes, is freed after its frame.
const KEEP: usize = treelined_core::budget::INPUT_BYTES;

/// The input and a buffer. All of `bytes` is initialized; `start..end` is unconsumed input.
#[derive(Debug)]
pub(super) struct Buffer<R> {
    input: R,
    pub(super) bytes: Vec<u8>,
    start: usize,
    end: usize,
    pub ended: bool,
    /// Bytes of the largest buffer that a frame needs.
    max_size: usize,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(input: R, max_frame_bytes: usize) -> Self {
        Self {
            input,
            bytes: vec![0; CHUNK],
            start: 0,
            end: 0,
            ended: false,
            max_size: max_frame_bytes.saturating_add(CHUNK),
        }
    }

    /// Reads once. `false`: the input has ended.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        self.make_room();
        while !self.ended {
            let room = self.bytes.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.end = self.bytes.len().min(self.end + count);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn make_room(&mut self) {
        let live = self.end - self.start;
        let shrink = self.bytes.len() > KEEP && live <= CHUNK / 2;
        if !shrink && live > 0 && self.bytes.len() - self.end >= CHUNK / 4 {
            return;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.start = 0;
        self.end = live;
        if shrink {
            self.bytes.truncate(CHUNK);
            self.bytes.shrink_to_fit();
        } else if live > self.bytes.len() / 2 {
            // Doubling keeps the copying linear; the last step ends at the maximal size.
            let size = self.bytes.len();
            let grown = size
                .saturating_mul(2)
                .min(self.max_size)
                .max(size + CHUNK / 4);
            self.bytes.reserve_exact(grown - size);
            self.bytes.resize(grown, 0);
        }
    }
}

impl<R> Buffer<R> {
    pub(super) fn live(&self) -> &[u8] {
        self.slice(self.start..self.end)
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Consumes the next `count` bytes, which stay in place until the next read.
    pub(super) fn consume(&mut self, count: usize) -> Range<usize> {
        let from = self.start;
        self.start = self.end.min(from + count);
        from..self.start
    }

    pub(super) fn consume_all(&mut self) -> Range<usize> {
        self.consume(self.end - self.start)
    }
}
