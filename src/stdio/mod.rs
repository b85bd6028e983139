//! The transport on stdin and stdout (protocol.md §1): bytes to frames, and messages to bytes.
//!
//! [`FrameReader`] cuts the input into messages and finds out which framing the client speaks;
//! [`Outbox`] is the one queue through which everything leaves, with the limits and the rules of
//! what may be merged or dropped while the client does not read; [`Shortcut`] is the way around the
//! writer thread for small answers. Not here: what a message means,
//! which errors are answered, the threads that run the two, and exit codes. Neither half knows
//! JSON-RPC beyond the id of a request too large to be parsed and the two notifications whose text
//! is only known when they are written (`summary_delta`, `events_lost`).

mod frame;
mod outbox;
mod shortcut;

pub use frame::{Frame, FrameReader, Framing, id_in_head};
pub use outbox::{Class, Outbox};
pub use shortcut::Shortcut;
