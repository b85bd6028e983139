//! The queue of a connection's output, and the rules for messages while the client does not read.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use treelined_files::lock::lock;

use super::class::Class;
use crate::stdio::frame::Framing;
use crate::stdio::shared::Message;
use treelined_files::os::shortcut::{self, Shortcut};

/// Bytes that wake the writer while the outbox is corked.
pub(super) const CORKED: usize = 64 * 1024;
/// The bytes counted for an `events_lost` or an empty delta.
const NOTICE: usize = 128;
/// Bytes of the smallest hard limit, so that a small queue still has room for answers to cancels.
const MIN_HARD_LIMIT: usize = 1 << 20;
/// Capacity that the empty queue keeps.
pub(super) const KEEP: usize = 4096;

/// The output of one connection: many producers, one writer.
#[derive(Debug)]
pub struct Outbox {
    max_queued_bytes: usize,
    /// With more unread bytes the reader stops completely, even for answers and cancels. Otherwise refusals
    /// of further requests would grow without bound.
    hard_limit: usize,
    /// A std mutex: held for work in memory, and across a write only if that cannot block.
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
    /// Position in the queue of the last gap of each session.
    gaps: HashMap<Arc<str>, usize>,
    /// Positions in the queue of the last delta of each navigation.
    deltas: Vec<usize>,
    /// Bytes queued and bytes the writer holds.
    pub(super) unread: usize,
    /// Bytes of the queued messages of [`Class::Event`].
    events: usize,
    framing: Framing,
    corked: bool,
    pub(super) phase: Phase,
    // Notifying a condition variable makes a system call even if no thread waits; the next two members avoid it.
    pub(super) writer_sleeps: bool,
    pub(super) waiting_for_room: usize,
    /// Counts calls of `wake`, so that none is missed between checking and sleeping.
    wakes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Accepts no more messages; queued ones are still written.
    Closed,
    /// The output has failed.
    Broken,
}

#[derive(Debug)]
pub(super) enum OutboxItem {
    Message(Message),
    /// One message in several pieces.
    Pieces(Vec<Vec<u8>>),
    Delta(Box<QueuedDelta>),
    /// A range of lost messages, in the place of the first of them.
    Gap {
        session: Arc<str>,
        from: u64,
        to: u64,
    },
}

#[derive(Debug)]
pub(super) struct QueuedDelta {
    session: Box<str>,
    navigation: Box<str>,
    index: u64,
    text: String,
}

impl Outbox {
    /// An open, empty queue. Above `max_queued_bytes` of unread output (`limits.maxQueuedBytes`)
    /// [`Class`] decides which messages are dropped. Below it a message of any size is accepted.
    #[must_use]
    pub fn new(max_queued_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            max_queued_bytes,
            hard_limit: max_queued_bytes.saturating_mul(2).max(MIN_HARD_LIMIT),
            state: Mutex::new(OutboxState {
                queue: VecDeque::new(),
                gaps: HashMap::new(),
                deltas: Vec::new(),
                unread: 0,
                events: 0,
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

    /// Has small messages written on the threads that push them, if the writer is idle: one event for many connections
    /// then wakes no thread of this process.
    pub(crate) fn write_at_once(&self, shortcut: Shortcut) {
        let _same = self.shortcut.set(shortcut);
    }

    /// Sets the framing, which is [`Framing::Lines`] by default. Call it before pushing the first message.
    pub fn set_framing(&self, framing: Framing) {
        self.lock().framing = framing;
    }

    /// Queues one message: JSON text without line end, and without a line break between tokens.
    /// Discarded once the outbox is closed or broken.
    pub fn push(&self, message: Vec<u8>, class: Class) {
        self.push_message(Message::Own(message), class);
    }

    /// Like [`push`](Self::push), for a message that several connections may share.
    pub(crate) fn push_message(&self, message: Message, class: Class) {
        self.push_item(OutboxItem::Message(message), class);
    }

    /// Queues one message that is never dropped, in pieces, so that a large one need not be copied. Otherwise
    /// as [`push`](Self::push).
    pub fn push_pieces(&self, pieces: Vec<Vec<u8>>) {
        self.push_item(OutboxItem::Pieces(pieces), Class::Keep);
    }

    fn push_item(&self, item: OutboxItem, class: Class) {
        debug_assert!(item.is_one_line(), "a message is one line");
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return;
        }
        let over = state.unread > self.max_queued_bytes;
        match class {
            Class::Droppable { session, seq } if over => state.lose(session, seq),
            Class::Event { session, seq } if state.events > self.hard_limit => {
                state.lose(session, seq);
            }
            Class::Event { .. } => {
                state.events = state.events.saturating_add(item.cost());
                state.put(item);
            }
            Class::Progress if over => return,
            _ => state.put(item),
        }
        match self.shortcut.get().filter(|_| !state.corked) {
            Some(shortcut) if state.write_through(shortcut) => {}
            _ => self.notify_writer(state),
        }
    }

    /// Queues a `summary_delta` (protocol.md §7). Queued deltas of one navigation are merged: the text of all,
    /// the index of the first.
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

    /// Lets the writer sleep while messages are pushed, until [`uncork`](Self::uncork) or until 64 KiB are
    /// queued. The reader corks while it processes frames that it has already read, and must uncork before it
    /// waits. Corking again has no further effect.
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

    /// Ends [`cork`](Self::cork). A small queue is written through the shortcut if the writer is idle;
    /// otherwise the writer is woken.
    pub fn uncork_through(&self, shortcut: &Shortcut) {
        let mut state = self.lock();
        state.corked = false;
        if state.queue.is_empty() || state.write_through(shortcut) {
            return;
        }
        self.notify_writer(state);
    }

    /// Bytes of messages that are queued or about to be written, without framing and the escapes of merged
    /// deltas.
    pub fn queued_bytes(&self) -> usize {
        self.lock().unread
    }

    /// Whether more than `max_queued_bytes` are unread.
    pub fn is_over_limit(&self) -> bool {
        self.lock().unread > self.max_queued_bytes
    }

    /// Whether the reader has stopped completely, even for answers.
    pub(crate) fn is_stuffed(&self) -> bool {
        self.lock().unread > self.hard_limit
    }

    /// Blocks the reader while the queue is over its limit. Returns early if `unless` is true and the queue is
    /// not over its hard limit (twice the limit), or if the output is closed or broken. `unless` is asked again
    /// after every [`wake`](Self::wake); it is called without a lock, and may push. Uncorks if it has to wait.
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
                if goes_on && state.unread <= self.hard_limit {
                    return;
                }
                if state.wakes != seen {
                    break;
                }
                if state.unread <= self.max_queued_bytes || state.phase != Phase::Open {
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

    /// Accepts no more messages: queued ones are written, and [`run`](Self::run) returns.
    pub fn close(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closed;
        }
        state.corked = false;
        self.work.notify_all();
        self.notify_room(state);
    }

    /// Waits until everything is written, or the output has failed. False if the client reads nothing for the time that
    /// `patience` returns, if it returns one; it is asked again after every [`wake`](Self::wake), under a lock.
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

    /// Whether the output has failed: [`run`](Self::run) returned an error, and all messages are discarded.
    pub fn is_broken(&self) -> bool {
        self.lock().phase == Phase::Broken
    }

    /// Takes all queued messages and leaves an empty queue. `None`: closed and drained.
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

    /// Counts `bytes` of the unread ones as written.
    pub(super) fn written(&self, bytes: usize) {
        let mut state = self.lock();
        let was_stuffed = state.unread > self.hard_limit;
        state.unread = state.unread.saturating_sub(bytes);
        let passes_hard_limit = was_stuffed && state.unread <= self.hard_limit;
        if passes_hard_limit || state.unread <= self.max_queued_bytes {
            self.notify_room(state);
        }
    }

    fn notify_writer(&self, mut state: MutexGuard<'_, OutboxState>) {
        if state.writer_sleeps && (!state.corked || state.unread >= CORKED) {
            // Cleared here, so that pushes make no system call before the writer is awake.
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

    /// A panic of another thread leaves the state consistent.
    pub(super) fn lock(&self) -> MutexGuard<'_, OutboxState> {
        lock(&self.state)
    }
}

impl OutboxState {
    fn put(&mut self, item: OutboxItem) {
        self.unread = self.unread.saturating_add(item.cost());
        self.queue.push_back(item);
    }

    /// Extends the gap that ends just before `seq`, or begins one. No delivered message can be inside a
    /// consecutive gap, since each has a different `seq`, and everything after the gap in the queue is
    /// later.
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

    /// Writes all queued messages if that cannot block; false if nothing was written.
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
        }
        is_written
    }

    /// All queued messages, framed, if they are few and the writer is idle.
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
                return true;
            }
        }
        false
    }

    pub(super) fn take(&mut self, empty: VecDeque<OutboxItem>) -> VecDeque<OutboxItem> {
        self.gaps.clear();
        self.deltas.clear();
        self.events = 0;
        std::mem::replace(&mut self.queue, empty)
    }
}

impl OutboxItem {
    /// Its share of the unread bytes.
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

/// JSON text of a string, with U+2028 and U+2029 escaped (protocol.md §1).
fn json_string(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    if !json.contains(['\u{2028}', '\u{2029}']) {
        return json;
    }
    json.replace('\u{2028}', r"\u2028")
        .replace('\u{2029}', r"\u2029")
}
