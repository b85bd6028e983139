//! Output (protocol.md §1, Backpressure): the queue of a connection, the rules for messages while the client
//! does not read, and the loop that writes them.
//!
//! Producers never wait for the client; the reader may, in [`Outbox::wait_for_room`]. Callers own the thread of
//! [`Outbox::run`], and what happens when the output fails.
//!
//! [`class`] has what may happen to a message, [`queue`] the messages that wait, and [`writer`] writes them.

mod class;
mod queue;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use class::Class;
pub use queue::Outbox;
