//! The input, and its bytes that are not consumed.

use crate::memory::Reservation;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// The bytes of a read while no larger frame is being read: the capacity of a pipe on Linux. A larger buffer is freed
/// after its frame.
pub(super) const CHUNK: usize = 64 * 1024;

/// How the buffer gets room for the next read.
enum NextRoom {
    Enough,
    /// The bytes are moved to the beginning of the buffer.
    Moved,
    Shrunk,
    /// The buffer grows to this size, in bytes.
    Grown(usize),
}

/// The input and a buffer. All of `bytes` is initialized. The input in `start..end` is not consumed.
#[derive(Debug)]
pub(super) struct Buffer<R> {
    input: R,
    pub(super) bytes: Vec<u8>,
    start: usize,
    end: usize,
    pub ended: bool,
    /// The size of the largest buffer that a frame needs, in bytes.
    max_size: usize,
    /// The reserved memory for the bytes above [`CHUNK`]; `None` if memory has no limit.
    memory: Option<Reservation>,
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
            memory: None,
        }
    }

    /// Reads once. Returns false if the input has ended.
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

    /// Reserves the memory of this buffer from `memory`.
    pub(super) fn within(&mut self, memory: Reservation) {
        self.memory = Some(memory);
    }

    /// Reserves the memory that the next [`fill`](Self::fill) needs. Returns false if there is not enough.
    pub(super) fn reserve(&mut self) -> bool {
        let size = match self.next_room() {
            NextRoom::Grown(size) => size,
            NextRoom::Enough | NextRoom::Moved | NextRoom::Shrunk => return true,
        };
        let memory = self.memory.as_mut();
        memory.is_none_or(|memory| memory.resize(size.saturating_sub(CHUNK)))
    }

    fn next_room(&self) -> NextRoom {
        let (live, size) = (self.end - self.start, self.bytes.len());
        let shrinks = size > CHUNK && live <= CHUNK / 2;
        match () {
            () if shrinks => NextRoom::Shrunk,
            () if live > 0 && size - self.end >= CHUNK / 4 => NextRoom::Enough,
            // Since the size doubles, the copying is linear. The last step ends at the maximal size.
            () if live > size / 2 => {
                let doubled = size.saturating_mul(2).min(self.max_size);
                NextRoom::Grown(doubled.max(size + CHUNK / 4))
            }
            () => NextRoom::Moved,
        }
    }

    fn make_room(&mut self) {
        let room = self.next_room();
        if matches!(room, NextRoom::Enough) {
            return;
        }
        let live = self.end - self.start;
        self.bytes.copy_within(self.start..self.end, 0);
        self.start = 0;
        self.end = live;
        match room {
            NextRoom::Shrunk => {
                self.bytes.truncate(CHUNK);
                self.bytes.shrink_to_fit();
                if let Some(memory) = &mut self.memory {
                    let _less = memory.resize(0);
                }
            }
            NextRoom::Grown(size) => {
                self.bytes
                    .reserve_exact(size.saturating_sub(self.bytes.len()));
                self.bytes.resize(size, 0);
            }
            NextRoom::Enough | NextRoom::Moved => {}
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

    /// Consumes the next `count` bytes. They stay in the buffer until the next read.
    pub(super) fn consume(&mut self, count: usize) -> Range<usize> {
        let from = self.start;
        self.start = self.end.min(from + count);
        from..self.start
    }

    pub(super) fn consume_all(&mut self) -> Range<usize> {
        self.consume(self.end - self.start)
    }
}
