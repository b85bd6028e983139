//! A session without activity, as an engine finds it (schema/fleet.md "Retention").

use super::backend::Position;
use std::time::Duration;

/// The change that is due for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Close,
    Erase,
}

/// A session without activity.
#[derive(Debug, Clone)]
pub struct QuietSession {
    pub session: String,
    /// The end of its log.
    pub end: Position,
    /// The time since its last line was stored, by the clock of the servers.
    pub quiet: Duration,
    pub due: Due,
}
