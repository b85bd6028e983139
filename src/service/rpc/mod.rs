//! JSON-RPC: the method table, and the layers between a frame and the daemon (protocol.md).
//!
//! In reading order: [`request`] reads a frame; [`dispatch`] passes it to its handler, which [`table`] finds;
//! [`handler`] runs it. What a handler gets depends on the scope of its method: a [`caller`], an [`arrival`], a session
//! to read ([`session_read`]), or a place in its queue. [`methods`] has a file per method group, whose handlers convert
//! between the types of `wire` and those of the core; [`reply`] is a result and [`response`] sends it.
//!
//! To add a method: write its row in [`treelined_wire::methods`], and its handler in the file that the row names.

mod arrival;
mod caller;
pub(crate) mod dispatch;
mod handler;
mod methods;
mod reply;
mod request;
mod response;
mod session_read;
mod table;

pub use dispatch::Dispatcher;
pub use table::names as method_names;
