//! The transport of a connection (protocol.md §1): bytes to frames, and messages to bytes.
//!
//! [`FrameReader`] splits the input into messages and detects the client's framing. [`Outbox`] queues all output, and
//! merges or drops messages while the client does not read. [`Shortcut`] writes small answers without the writer
//! thread. The callers parse messages, answer errors, run the threads and choose exit codes. This module knows only two
//! parts of JSON-RPC: the id of a request that is too large to be parsed, and the notifications whose text is made when
//! they are written (`summary_delta`, `events_lost`).

mod frame;
mod outbox;
mod shared;

pub use frame::{Frame, FrameReader, id_in_head};
pub(crate) use outbox::Class;
pub use outbox::Outbox;
pub(crate) use outbox::OutboxItem;
pub(crate) use shared::{Message, SharedText};
pub(crate) use treelined_files::os::shortcut::Shortcut;
