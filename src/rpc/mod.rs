//! JSON-RPC: the method table, and everything between a frame and the daemon (protocol.md).
//!
//! In reading order: [`request`] reads a frame; [`dispatch`] takes it to its handler, which [`table`] finds,
//! and the answer back; [`call`] is a request on its way. Then a file per method group: a handler decodes
//! ids, works on the session that its request means, and ends in a plain function over domain types.

mod append;
mod call;
mod compact;
pub(crate) mod dispatch;
mod events;
mod fork;
mod handshake;
mod import;
mod list;
mod moves;
mod navigate;
mod navigator;
mod pick;
mod read;
mod reply;
mod request;
mod sessions;
mod summaries;
mod table;
mod tree;
mod turns;

pub use dispatch::Dispatcher;
