//! The queue of a connection's output, and the rules for messages of a client that does not read.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use treelined_files::lock::lock;

use super::class::Class;
use super::kept::{Kept, Written};
use crate::memory::{Reservation, Share, WorkingMemory};
use crate::stdio::frame::Framing;
use crate::stdio::shared::Message;
use treelined_files::os::shortcut::{self, Shortcut};

/// While the outbox is corked, this many queued bytes wake the writer.
pub(super) const CORKED: usize = 64 * 1024;
/// The unread bytes that are counted for an `events_lost` or an empty delta.
const NOTICE: usize = 128;
/// The smallest hard limit, in bytes. With it, even a small queue has room for answers to cancels.
const MIN_HARD_LIMIT: usize = 1 << 20;
/// Answers above this size, in bytes, do not use the memory of small answers.
const LARGE: usize = 64 << 10;
/// Answers up to this size, in bytes, are never refused. They are hardly larger than the refusal.
const NEVER_REFUSED: usize = 4 << 10;
/// The capacity that the empty queue keeps.
pub(super) const KEEP: usize = 4096;

/// The output of one connection: many producers, one writer.
#[derive(Debug)]
pub struct Outbox {
    max_queued_bytes: usize,
    /// If more bytes than this are unread, the reader stops completely, even for answers and cancels. Otherwise the
    /// refusals of further requests would grow without a limit.
    hard_limit: usize,
    /// A mutex of std, since the work under it is in memory. It is held during a write only if the write cannot block.
    state: Mutex<OutboxState>,
    /// Wakes the writer.
    work: Condvar,
    /// Wakes the reader in `wait_for_room`.
    room: Condvar,
    /// Writes small messages on the threads that push them.
    shortcut: OnceLock<Shortcut>,
}

#[derive(Debug)]
pub(super) struct OutboxState {
    pub(super) queue: VecDeque<OutboxItem>,
    /// The position in the queue of the last gap of each session.
    gaps: HashMap<Arc<str>, usize>,
    /// The position in the queue of the last delta of each navigation.
    deltas: Vec<usize>,
    /// The bytes that are queued, and the bytes that the writer has taken.
    pub(super) unread: usize,
    /// The bytes of the queued messages of [`Class::Event`].
    events: usize,
    /// The memory of the messages.
    kept: Kept,
    framing: Framing,
    corked: bool,
    pub(super) phase: Phase,
    // A notification of a condition variable is a system call even if no thread waits. The next two members avoid that
    // call.
    pub(super) writer_sleeps: bool,
    pub(super) waiting_for_room: usize,
    /// The number of calls of `wake`. With it, no call between the check and the sleep is missed.
    wakes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Accepts no more messages. Queued messages are still written.
    Closed,
    /// The output has failed.
    Broken,
}

#[derive(Debug)]
pub(crate) enum OutboxItem {
    Message(Message),
    /// One message in several pieces.
    Pieces(Vec<Vec<u8>>),
    Delta(Box<QueuedDelta>),
    /// A range of lost messages. It is at the position of the first of these messages.
    Gap {
        session: Arc<str>,
        from: u64,
        to: u64,
    },
}

#[derive(Debug)]
pub(crate) struct QueuedDelta {
    session: Box<str>,
    navigation: Box<str>,
    index: u64,
    text: String,
}

impl Outbox {
    /// An open, empty queue. While more than `max_queued_bytes` (`limits.maxQueuedBytes`) are unread, [`Class`] decides
    /// which messages are dropped. Otherwise a message of any size is accepted.
    #[must_use]
    pub fn new(max_queued_bytes: usize) -> Arc<Self> {
        Self::within(max_queued_bytes, &WorkingMemory::new(usize::MAX))
    }

    /// Like [`new`](Self::new). The messages share `memory` with other connections.
    #[must_use]
    pub fn within(max_queued_bytes: usize, memory: &Arc<WorkingMemory>) -> Arc<Self> {
        Arc::new(Self {
            max_queued_bytes,
            hard_limit: max_queued_bytes.saturating_mul(2).max(MIN_HARD_LIMIT),
            state: Mutex::new(OutboxState {
                queue: VecDeque::new(),
                gaps: HashMap::new(),
                deltas: Vec::new(),
                unread: 0,
                events: 0,
                kept: Kept::new(memory.reservation()),
                framing: Framing::Lines,
                corked: false,
                phase: Phase::Open,
                writer_sleeps: false,
                waiting_for_room: 0,
                wakes: 0,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            shortcut: OnceLock::new(),
        })
    }

    /// Lets the thread that pushes a small message write the message, if the writer is idle. Then an event for many
    /// connections wakes no thread of this process.
    pub(crate) fn write_at_once(&self, shortcut: Shortcut) {
        let _same = self.shortcut.set(shortcut);
    }

    /// Sets the framing; the default is [`Framing::Lines`]. Must be called before the first message is pushed.
    pub fn set_framing(&self, framing: Framing) {
        self.lock().framing = framing;
    }

    /// Queues one message: JSON text without line end, and without a line break between tokens. The message is
    /// discarded if the outbox is closed or broken.
    pub fn push(&self, message: Vec<u8>, class: Class) {
        self.push_message(Message::Own(message), class);
    }

    /// Like [`push`](Self::push), for a message that several connections may share.
    pub(crate) fn push_message(&self, message: Message, class: Class) {
        self.push_item(OutboxItem::Message(message), class);
    }

    /// Queues an answer in one or several pieces; with several, a large answer need not be copied. Its memory may be
    /// `reserved` already. If there is no memory for the answer and `may_refuse`, returns false. Otherwise always
    /// queues the answer.
    #[must_use]
    pub(crate) fn push_answer(
        &self,
        answer: OutboxItem,
        reserved: Option<Reservation>,
        may_refuse: bool,
    ) -> bool {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return true;
        }
        if let Some(reserved) = reserved {
            state.kept.absorb(reserved);
        }
        let cost = answer.cost();
        let share = match cost > LARGE {
            true => Share::Whole,
            false => Share::Small,
        };
        let refuses = may_refuse && cost > NEVER_REFUSED;
        if refuses && !state.has_memory(cost, share) {
            state.give_back();
            return false;
        }
        state.put_within(answer, share);
        state.give_back();
        self.pushed(state);
        true
    }

    fn push_item(&self, item: OutboxItem, class: Class) {
        debug_assert!(item.is_one_line(), "a message is one line");
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return;
        }
        let (over, cost) = (state.is_over(self.max_queued_bytes), item.cost());
        match class {
            Class::Droppable { session, seq } => {
                match over || !state.has_memory(cost, Share::Notices) {
                    true => state.lose(session, seq),
                    false => state.put(item),
                }
            }
            Class::Event { session, seq } => {
                let over = state.events > self.hard_limit;
                if over || !state.has_memory(cost, Share::Small) {
                    state.lose(session, seq);
                } else {
                    state.events = state.events.saturating_add(cost);
                    state.put(item);
                }
            }
            Class::Progress if over || !state.has_memory(cost, Share::Notices) => return,
            Class::Progress | Class::Keep => state.put(item),
        }
        self.pushed(state);
    }

    /// Writes what was queued, or wakes the writer.
    fn pushed(&self, mut state: MutexGuard<'_, OutboxState>) {
        match self.shortcut.get().filter(|_| !state.corked) {
            Some(shortcut) if state.write_through(shortcut) => {}
            _ => self.notify_writer(state),
        }
    }

    /// Queues a `summary_delta` (protocol.md §7). Queued deltas of one navigation are merged: the result has the text
    /// of all deltas and the index of the first.
    pub fn push_delta(&self, session: &str, navigation: &str, index: u64, delta: &str) {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return;
        }
        if !state.merge(session, navigation, delta) {
            let place = state.queue.len();
            state.deltas.push(place);
            state.put(OutboxItem::Delta(Box::new(QueuedDelta {
                session: session.into(),
                navigation: navigation.into(),
                index,
                text: delta.into(),
            })));
        }
        self.notify_writer(state);
    }

    /// Lets the writer sleep while messages are pushed, until [`uncork`](Self::uncork) is called or 64 KiB are queued.
    /// The reader calls this while it processes frames that it has already read. It must uncork before it waits. A
    /// second call has no effect.
    pub fn cork(&self) {
        self.lock().corked = true;
    }

    /// Ends [`cork`](Self::cork), and wakes the writer if messages are queued.
    pub fn uncork(&self) {
        let mut state = self.lock();
        state.corked = false;
        if !state.queue.is_empty() {
            self.notify_writer(state);
        }
    }

    /// Ends [`cork`](Self::cork). If the queue is small and the writer is idle, writes the queue through the shortcut.
    /// Otherwise wakes the writer.
    pub fn uncork_through(&self, shortcut: &Shortcut) {
        let mut state = self.lock();
        state.corked = false;
        if state.queue.is_empty() || state.write_through(shortcut) {
            return;
        }
        self.notify_writer(state);
    }

    /// The bytes of messages that are queued or about to be written, without framing and without the escapes of merged
    /// deltas.
    pub fn queued_bytes(&self) -> usize {
        self.lock().unread
    }

    /// Whether more than `max_queued_bytes` are unread, or the messages have more memory than they may have.
    pub fn is_over_limit(&self) -> bool {
        self.lock().is_over(self.max_queued_bytes)
    }

    /// Whether the unread bytes exceed the hard limit, so that the reader has stopped completely.
    pub(crate) fn is_stuffed(&self) -> bool {
        self.lock().is_over(self.hard_limit)
    }

    /// Blocks the reader while the queue is over its limit. Returns early if the output is closed or broken, or if
    /// `unless` is true and the queue is not over its hard limit (twice the limit). Calls `unless` again after every
    /// [`wake`](Self::wake). The call is made without a lock, and may push messages. If the reader has to wait, the
    /// outbox is uncorked.
    pub fn wait_for_room(&self, unless: &dyn Fn() -> bool) {
        if !self.is_over_limit() {
            return;
        }
        self.uncork();
        loop {
            let seen = self.lock().wakes;
            let goes_on = unless();
            let mut state = self.lock();
            loop {
                if goes_on && !state.is_over(self.hard_limit) {
                    return;
                }
                if state.wakes != seen {
                    break;
                }
                if !state.is_over(self.max_queued_bytes) || state.phase != Phase::Open {
                    return;
                }
                state.waiting_for_room += 1;
                state = self
                    .room
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.waiting_for_room -= 1;
            }
        }
    }

    /// Makes [`wait_for_room`](Self::wait_for_room) check its condition again.
    pub fn wake(&self) {
        let mut state = self.lock();
        state.wakes += 1;
        self.notify_room(state);
    }

    /// Accepts no more messages. [`run`](Self::run) writes the queued ones, and then returns.
    pub fn close(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closed;
        }
        state.corked = false;
        self.work.notify_all();
        self.notify_room(state);
    }

    /// Waits until everything is written, or until the output has failed. False if the client reads nothing for the
    /// time that `patience` returns. `patience` may return no limit. It is called again after every
    /// [`wake`](Self::wake), under a lock.
    pub(crate) fn is_written(&self, patience: &dyn Fn() -> Option<Duration>) -> bool {
        let mut state = self.lock();
        while state.unread > 0 && state.phase != Phase::Broken {
            let before = state.unread;
            let limit = patience().unwrap_or(Duration::MAX);
            state.waiting_for_room += 1;
            let waited = self.room.wait_timeout(state, limit);
            let timeout;
            (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state.waiting_for_room -= 1;
            if timeout.timed_out() && state.unread == before {
                return false;
            }
        }
        true
    }

    /// Whether the output has failed. Then [`run`](Self::run) has returned an error, and all messages are discarded.
    pub fn is_broken(&self) -> bool {
        self.lock().phase == Phase::Broken
    }

    /// Takes all queued messages and leaves an empty queue. `None` if the outbox is closed and nothing is queued.
    pub(super) fn next_batch(
        &self,
        empty: VecDeque<OutboxItem>,
    ) -> Option<(VecDeque<OutboxItem>, Framing)> {
        let mut state = self.lock();
        while state.queue.is_empty() {
            if state.phase != Phase::Open {
                return None;
            }
            state.writer_sleeps = true;
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.writer_sleeps = false;
        }
        Some((state.take(empty), state.framing))
    }

    /// Counts bytes as written, so they are no longer unread.
    pub(super) fn written(&self, written: Written) {
        let mut state = self.lock();
        let was_stuffed = state.is_over(self.hard_limit);
        state.unread = state.unread.saturating_sub(written.bytes);
        state.kept.written(written.messages, written.held);
        state.give_back();
        let passes_hard_limit = was_stuffed && !state.is_over(self.hard_limit);
        if passes_hard_limit || !state.is_over(self.max_queued_bytes) {
            self.notify_room(state);
        }
    }

    fn notify_writer(&self, mut state: MutexGuard<'_, OutboxState>) {
        if state.writer_sleeps && (!state.corked || state.unread >= CORKED) {
            // The flag is cleared here, so that later pushes make no system call before the writer is awake.
            state.writer_sleeps = false;
            drop(state);
            self.work.notify_one();
        }
    }

    pub(super) fn notify_room(&self, state: MutexGuard<'_, OutboxState>) {
        if state.waiting_for_room > 0 {
            drop(state);
            self.room.notify_all();
        }
    }

    /// The state is consistent even if another thread has panicked with the lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, OutboxState> {
        lock(&self.state)
    }
}

impl OutboxState {
    /// Whether more bytes than the limit are unread, or the messages have more memory than they may have.
    fn is_over(&self, limit: usize) -> bool {
        self.unread > limit || self.kept.is_over()
    }

    /// Reserves the memory for one more message of this size. False if there is not enough.
    fn has_memory(&mut self, cost: usize, share: Share) -> bool {
        self.kept.reserve(self.unread.saturating_add(cost), share)
    }

    /// Frees the memory that the messages do not need any more.
    pub(super) fn give_back(&mut self) {
        self.kept.give_back(self.unread);
    }

    fn put(&mut self, item: OutboxItem) {
        self.put_within(item, Share::Small);
    }

    /// Queues a message. If there is not enough memory for it, the connection is over its limit.
    fn put_within(&mut self, item: OutboxItem, share: Share) {
        self.unread = self.unread.saturating_add(item.cost());
        self.kept.put(self.unread, share);
        self.queue.push_back(item);
    }

    /// Extends the gap that ends just before `seq`, or begins a gap. No delivered message can be inside a gap of
    /// consecutive numbers, since each message has a different `seq`. Every message after the gap in the queue has a
    /// later number.
    fn lose(&mut self, session: Arc<str>, seq: u64) {
        let last = self
            .gaps
            .get(&session)
            .and_then(|place| self.queue.get_mut(*place));
        if let Some(OutboxItem::Gap { to, .. }) = last
            && to.checked_add(1) == Some(seq)
        {
            *to = seq;
            return;
        }
        self.gaps.insert(Arc::clone(&session), self.queue.len());
        self.put(OutboxItem::Gap {
            session,
            from: seq,
            to: seq,
        });
    }

    /// Writes all queued messages if the write cannot block. False if nothing was written.
    fn write_through(&mut self, shortcut: &Shortcut) -> bool {
        let bytes = self.short_message();
        let is_written =
            bytes.is_some_and(|bytes| shortcut.write(&bytes).is_ok_and(|written| written));
        if is_written {
            self.queue.clear();
            self.gaps.clear();
            self.deltas.clear();
            self.unread = 0;
            self.events = 0;
            self.kept.clear();
        }
        is_written
    }

    /// All queued messages, with framing, if they are small and the writer is idle.
    fn short_message(&self) -> Option<Vec<u8>> {
        if !self.writer_sleeps || self.unread > shortcut::MAX_BYTES {
            return None;
        }
        let mut bytes = Vec::with_capacity(self.unread + 64);
        for item in &self.queue {
            let OutboxItem::Message(message) = item else {
                return None;
            };
            if self.framing == Framing::ContentLength {
                write!(bytes, "Content-Length: {}\r\n\r\n", message.len()).ok()?;
            }
            message.write_to(&mut bytes);
            if self.framing == Framing::Lines {
                bytes.push(b'\n');
            }
        }
        (bytes.len() <= shortcut::MAX_BYTES).then_some(bytes)
    }

    fn merge(&mut self, session: &str, navigation: &str, text: &str) -> bool {
        for place in self.deltas.iter().rev() {
            if let Some(OutboxItem::Delta(delta)) = self.queue.get_mut(*place)
                && *delta.navigation == *navigation
                && *delta.session == *session
            {
                delta.text.push_str(text);
                self.unread = self.unread.saturating_add(text.len());
                self.kept.grow(self.unread, Share::Small);
                return true;
            }
        }
        false
    }

    /// Forgets all messages, since the output has failed.
    pub(super) fn discard(&mut self) {
        self.phase = Phase::Broken;
        self.unread = 0;
        self.kept.clear();
        drop(self.take(VecDeque::new()));
    }

    pub(super) fn take(&mut self, empty: VecDeque<OutboxItem>) -> VecDeque<OutboxItem> {
        self.gaps.clear();
        self.deltas.clear();
        self.events = 0;
        std::mem::replace(&mut self.queue, empty)
    }
}

impl OutboxItem {
    /// A message in one piece: JSON text on one line, without line end.
    pub(crate) fn of(message: Vec<u8>) -> Self {
        Self::Message(Message::Own(message))
    }

    /// The unread bytes that this item counts.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Message(message) => message.len(),
            Self::Pieces(pieces) => pieces.iter().map(Vec::len).sum(),
            Self::Delta(delta) => NOTICE.saturating_add(delta.text.len()),
            Self::Gap { .. } => NOTICE,
        }
    }

    fn is_one_line(&self) -> bool {
        let is_one_line = |bytes: &Vec<u8>| memchr::memchr(b'\n', bytes).is_none();
        match self {
            Self::Message(message) => message.is_one_line(),
            Self::Pieces(pieces) => pieces.iter().all(is_one_line),
            Self::Delta(_) | Self::Gap { .. } => true,
        }
    }

    pub(super) fn into_message(self) -> Vec<u8> {
        match self {
            Self::Message(message) => message.into_text(),
            Self::Pieces(pieces) => pieces.concat(),
            Self::Delta(delta) => format!(
                r#"{{"jsonrpc":"2.0","method":"summary_delta","params":{{"sessionId":{},"navigationId":{},"index":{},"delta":{}}}}}"#,
                json_string(&delta.session),
                json_string(&delta.navigation),
                delta.index,
                json_string(&delta.text),
            )
            .into_bytes(),
            Self::Gap { session, from, to } => format!(
                r#"{{"jsonrpc":"2.0","method":"events_lost","params":{{"sessionId":{},"fromSeq":{from},"toSeq":{to}}}}}"#,
                json_string(&session),
            )
            .into_bytes(),
        }
    }
}

/// A string as JSON, with U+2028 and U+2029 as escapes (protocol.md §1).
fn json_string(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    if !json.contains(['\u{2028}', '\u{2029}']) {
        return json;
    }
    json.replace('\u{2028}', r"\u2028")
        .replace('\u{2029}', r"\u2029")
}
