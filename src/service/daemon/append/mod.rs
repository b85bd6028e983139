//! Appending: [`request`] waits in the queue of its session, and [`write`] writes adjacent ones together, after
//! [`shed`] has brought back the branches that they need.

mod request;
mod shed;
mod write;

pub(crate) use request::{Append, AppendOutcome, OpenSessions};
