//! An event that waits for the result of its call.

use crate::member::Place;
use treelined_core::timestamp::Millis;

/// An event that has details about a call.
#[derive(Debug)]
pub(super) struct Event {
    /// The type under which the event is counted if no entry uses it.
    pub(super) kind: &'static str,
    pub(super) place: Place,
    pub(super) order: u64,
    pub(super) time: Option<Millis>,
    pub(super) fingerprint: u64,
}
