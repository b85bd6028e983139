//! What the daemon shares between its connections: the open sessions, and the order of the requests about them.
//!
//! [`queue`] orders requests, one queue per session.

pub mod queue;
#[cfg(test)]
mod queue_tests;
