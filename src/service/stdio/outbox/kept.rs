//! The memory of the messages of one connection, reserved from the memory of all connections.

use crate::memory::{Reservation, Share};

/// The bytes that each connection may use without a reservation. A thousand connections have 8 MiB.
const FREE: usize = 8 << 10;
/// The bytes by which a reservation grows.
const STEP: usize = 32 << 10;
/// The bytes that a message needs beside its text.
const PER_MESSAGE: usize = 96;

/// A part of the output that the writer has written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) bytes: usize,
    /// The messages that end in this part.
    pub(super) messages: usize,
    /// The written bytes of a message. They stay in memory until the whole message is written.
    pub(super) held: usize,
}

#[derive(Debug)]
pub(super) struct Kept {
    memory: Reservation,
    /// The messages that are queued or being written.
    messages: usize,
    /// The written bytes that stay in memory until their whole message is written.
    written: usize,
    /// Whether there was not enough memory for a message. The client must read until at most [`FREE`] bytes are unread.
    is_over: bool,
}

impl Kept {
    pub(super) fn new(memory: Reservation) -> Self {
        Self {
            memory,
            messages: 0,
            written: 0,
            is_over: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn absorb(&mut self, reserved: Reservation) {
        self.memory.absorb(reserved);
    }

    /// Reserves memory for one more message. `unread` is the number of unread bytes, this message included. False if
    /// there is not enough memory.
    pub(super) fn reserve(&mut self, unread: usize, share: Share) -> bool {
        self.messages += 1;
        let has = self.fit(unread, share);
        self.messages -= 1;
        has
    }

    /// Counts one more message. `unread` is the number of unread bytes, this message included.
    pub(super) fn put(&mut self, unread: usize, share: Share) {
        self.messages += 1;
        self.grow(unread, share);
    }

    /// Counts more bytes of a message. If there is not enough memory for them, the connection is over its limit.
    pub(super) fn grow(&mut self, unread: usize, share: Share) {
        if !self.fit(unread, share) {
            self.memory.force(self.need(unread));
            self.is_over = true;
        }
    }

    fn fit(&mut self, unread: usize, share: Share) -> bool {
        let need = self.need(unread);
        need <= self.memory.bytes().max(FREE)
            || self.memory.resize_within(need.saturating_add(STEP), share)
            || self.memory.resize_within(need, share)
    }

    fn need(&self, unread: usize) -> usize {
        let messages = self.messages.saturating_mul(PER_MESSAGE);
        unread.saturating_add(self.written).saturating_add(messages)
    }

    /// Counts messages as written. `held` bytes of the next message are written, but still in memory.
    pub(super) fn written(&mut self, messages: usize, held: usize) {
        self.messages = self.messages.saturating_sub(messages);
        self.written = held;
    }

    /// Frees the memory that `unread` bytes do not need.
    pub(super) fn give_back(&mut self, unread: usize) {
        let need = self.need(unread);
        if need <= FREE {
            self.is_over = false;
            self.memory.force(0);
        } else if need.saturating_add(4 * STEP) < self.memory.bytes() {
            self.memory.force(need.saturating_add(STEP));
        }
    }

    /// Forgets all messages.
    pub(super) fn clear(&mut self) {
        self.written(self.messages, 0);
        self.give_back(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::WorkingMemory;

    #[test]
    fn a_message_without_memory_makes_the_connection_read_all_before() {
        let memory = WorkingMemory::new(1 << 20);
        let _others = memory.reserve(1_000_000).unwrap();
        let mut kept = Kept::new(memory.reservation());
        kept.put(FREE - PER_MESSAGE, Share::Whole);
        assert!(!kept.is_over(), "this is free");
        assert!(!kept.reserve(200_000, Share::Whole));
        assert!(!kept.is_over(), "nothing was queued");
        kept.put(200_000, Share::Whole);
        kept.written(1, 0);
        kept.give_back(100_000);
        assert!(kept.is_over(), "until the client has read");
        kept.written(1, 0);
        kept.give_back(0);
        assert!(!kept.is_over());
    }

    #[test]
    fn bytes_that_are_written_count_until_their_message_is_freed() {
        let memory = WorkingMemory::new(1 << 20);
        let mut kept = Kept::new(memory.reservation());
        kept.put(900_000, Share::Whole);
        kept.written(0, 800_000);
        kept.give_back(100_000);
        assert!(memory.reserve(400_000).is_err());
        kept.written(1, 0);
        kept.give_back(0);
        assert!(memory.reserve(1_000_000).is_ok());
    }
}
