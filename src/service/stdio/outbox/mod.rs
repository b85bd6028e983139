//! Output (protocol.md §1, Backpressure): the queue of a connection, the rules for messages while the client does not
//! read, and the loop that writes messages.
//!
//! Producers never wait for the client. Only the reader may wait, in [`Outbox::wait_for_room`]. The callers run
//! [`Outbox::run`] on a thread, and decide what happens when the output fails.
//!
//! [`class`] has the rules for a message, [`queue`] has the messages that wait, [`kept`] reserves their memory, and
//! [`writer`] writes them.

mod class;
mod kept;
mod queue;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use class::Class;
pub use queue::Outbox;
pub(crate) use queue::OutboxItem;
