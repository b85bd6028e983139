//! Adds the framing to queued messages, and writes small messages together.

use super::kept::Written;
use super::queue::{KEEP, Outbox, OutboxItem};
use crate::stdio::frame::Framing;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// Messages up to this size, in bytes, are collected and written together. Larger messages are written without a copy.
pub(super) const SMALL: usize = 64 * 1024;
/// The most bytes that are collected, and the most bytes of a write. The count of unread bytes is wrong by at most this
/// number.
pub(super) const CHUNK: usize = 256 * 1024;
/// The bytes that an idle writer keeps.
const KEEP_BYTES: usize = 16 * 1024;
/// The pause before the next write to an output that another process has made non-blocking.
const RETRY: Duration = Duration::from_millis(1);

impl Outbox {
    /// Writes queued messages until [`close`](Self::close). The writer thread runs this function.
    ///
    /// # Errors
    ///
    /// The first error of the output, including `BrokenPipe`. From then on the outbox is broken. `Interrupted` and
    /// `WouldBlock` are retried.
    pub fn run(&self, output: &mut impl Write) -> io::Result<()> {
        let result = self.write_all(output);
        if result.is_err() {
            let mut state = self.lock();
            state.discard();
            self.notify_room(state);
        }
        result
    }

    fn write_all(&self, output: &mut impl Write) -> io::Result<()> {
        let mut writer = Writer::new(self, output);
        let mut batch = VecDeque::new();
        while let Some((full, framing)) = self.next_batch(batch) {
            batch = full;
            while let Some(item) = batch.pop_front() {
                writer.write(item, framing)?;
            }
            writer.flush()?;
            writer.shrink();
            if batch.capacity() > KEEP {
                batch = VecDeque::new();
            }
        }
        Ok(())
    }
}

/// Adds the framing to messages, and collects the small ones.
pub(super) struct Writer<'a, W> {
    outbox: &'a Outbox,
    output: &'a mut W,
    collected: Vec<u8>,
    /// The cost of the messages in `collected`.
    held: usize,
    /// The complete messages that are not counted as written yet.
    ended: usize,
}

impl<'a, W: Write> Writer<'a, W> {
    pub(super) fn new(outbox: &'a Outbox, output: &'a mut W) -> Self {
        Self {
            outbox,
            output,
            collected: Vec::new(),
            held: 0,
            ended: 0,
        }
    }

    pub(super) fn write(&mut self, item: OutboxItem, framing: Framing) -> io::Result<()> {
        let cost = item.cost();
        if let OutboxItem::Pieces(pieces) = item {
            if framing == Framing::ContentLength {
                write!(self.collected, "Content-Length: {cost}\r\n\r\n")?;
            }
            for piece in pieces {
                self.write_piece(&piece, piece.len())?;
            }
        } else {
            let message = item.into_message();
            if framing == Framing::ContentLength {
                write!(self.collected, "Content-Length: {}\r\n\r\n", message.len())?;
            }
            self.write_piece(&message, cost)?;
        }
        if framing == Framing::Lines {
            self.collected.push(b'\n');
        }
        self.ended += 1;
        Ok(())
    }

    /// Writes a part of a message. The part counts `cost` unread bytes.
    fn write_piece(&mut self, piece: &[u8], cost: usize) -> io::Result<()> {
        if piece.len() <= SMALL {
            self.collected.extend_from_slice(piece);
            self.held += cost;
        } else {
            self.put_collected()?;
            // The JSON of a delta may have more or fewer bytes than its cost. Exactly the cost is counted as written.
            let (mut left, mut held) = (cost, 0);
            for chunk in piece.chunks(CHUNK) {
                self.put(chunk)?;
                let bytes = left.min(chunk.len());
                left -= bytes;
                held += bytes;
                self.written(bytes, held);
            }
            self.written(left, held);
        }
        if self.collected.len() >= CHUNK - SMALL {
            self.put_collected()?;
        }
        Ok(())
    }

    fn written(&mut self, bytes: usize, held: usize) {
        let messages = std::mem::take(&mut self.ended);
        self.outbox.written(Written {
            bytes,
            messages,
            held,
        });
    }

    /// Frees the buffer if it is large.
    fn shrink(&mut self) {
        if self.collected.capacity() > KEEP_BYTES {
            self.collected = Vec::new();
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.put_collected()?;
        self.output.flush()
    }

    fn put_collected(&mut self) -> io::Result<()> {
        let collected = std::mem::take(&mut self.collected);
        self.put(&collected)?;
        self.collected = collected;
        self.collected.clear();
        let bytes = std::mem::take(&mut self.held);
        self.written(bytes, 0);
        Ok(())
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.output.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => std::thread::sleep(RETRY),
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }
}
