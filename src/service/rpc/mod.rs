//! JSON-RPC: the method table, and the layers between a frame and the daemon (protocol.md).
//!
//! In reading order: [`request`] reads a frame. [`dispatch`] passes the request on: [`table`] finds its handler,
//! [`decode`](decode::decode) reads its params, and [`handler`] runs the handler. The scope of a method decides what
//! the handler gets: a [`caller`], an [`arrival`], a session to read ([`session_read`]), or a place in the queue of a
//! session. [`methods`] has a file for each group of methods. The handlers there convert between the types of `wire`
//! and the types of the core. [`reply`] is a result, and [`response`] sends it.
//!
//! A new method needs a row in [`treelined_wire::methods`], and a handler in the file that the row names.

mod arrival;
mod caller;
mod decode;
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
