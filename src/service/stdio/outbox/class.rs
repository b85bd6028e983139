//! The class of a message: what happens to it while the client does not read.

use std::sync::Arc;

/// The rule for a message while more bytes than the limit are unread.
#[derive(Debug, Clone)]
pub enum Class {
    /// Never dropped: responses, and notifications without `seq`.
    Keep,
    /// Dropped while the queued messages of this class exceed the hard limit, and replaced by `events_lost`. These are
    /// questions, `event_resolved`, `session_tree`, and the events of opening and closing. Requests of other
    /// connections cause them even while this client reads nothing.
    Event {
        /// The `sessionId` of the notification.
        session: Arc<str>,
        /// The `seq` of the notification.
        seq: u64,
    },
    /// Dropped above the limit, and replaced by `events_lost`: `entries_appended`.
    Droppable {
        /// The `sessionId` of the notification.
        session: Arc<str>,
        /// The `seq` of the notification.
        seq: u64,
    },
    /// Dropped above the limit without `events_lost`: `progress`, `search_hit`.
    Progress,
}
