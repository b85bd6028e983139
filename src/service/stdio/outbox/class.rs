//! The fate of a message whose client does not read.

use std::sync::Arc;

/// The rule for a message while more than the limit is unread.
#[derive(Debug, Clone)]
pub enum Class {
    /// Never dropped: responses, and notifications without `seq`.
    Keep,
    /// Dropped while more notifications than the hard limit wait, and replaced by `events_lost`: questions,
    /// `event_resolved`, `session_tree`, lifecycle. Requests of other connections cause them while this client reads
    /// nothing.
    Event {
        /// Its `sessionId`.
        session: Arc<str>,
        /// Its `seq`.
        seq: u64,
    },
    /// Dropped above the limit, and replaced by `events_lost`: `entries_appended`.
    Droppable {
        /// Its `sessionId`.
        session: Arc<str>,
        /// Its `seq`.
        seq: u64,
    },
    /// Dropped above the limit without notice: `progress`, `search_hit`.
    Progress,
}
