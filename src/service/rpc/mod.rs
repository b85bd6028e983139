//! JSON-RPC: the method table, and the layers between a frame and the daemon (protocol.md).
//!
//! In reading order: [`request`] reads a frame; [`dispatch`] passes it to its handler, which [`table`] finds;
//! [`handler`] defines the form of handlers for each scope; [`methods`] has a file per method group, whose handlers
//! convert between the types of `wire` and those of the core; [`reply`] is a result and [`response`] sends it.

pub(crate) mod dispatch;
mod handler;
mod methods;
mod reply;
mod request;
mod response;
mod table;

pub use dispatch::Dispatcher;
pub use table::names as method_names;
