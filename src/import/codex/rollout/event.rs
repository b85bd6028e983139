//! An event that waits for the result of its call.

use crate::member::Place;
use treelined_core::timestamp::Millis;

/// An event about a call.
#[derive(Debug)]
pub(super) struct Event {
    /// The type in the counts if no entry uses the event.
    pub(super) kind: &'static str,
    pub(super) place: Place,
    pub(super) order: u64,
    pub(super) time: Option<Millis>,
    pub(super) fingerprint: u64,
}
