//! Appending: [`request`] waits in the queue of its session, and [`write`] writes adjacent ones together.

mod request;
mod write;

pub(crate) use request::{Append, AppendOutcome, OpenSessions};
