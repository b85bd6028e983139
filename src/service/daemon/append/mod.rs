//! Appending. An append is a [`request`] that waits in the queue of its session. [`write`] writes adjacent appends
//! together. Before that, [`shed`] finds the shed branches that the appends need, so that these are brought back.

mod request;
mod shed;
mod write;

pub(crate) use request::{Append, AppendOutcome, OpenSessions};
