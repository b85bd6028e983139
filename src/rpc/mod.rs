//! JSON-RPC: the method table, and everything between a frame and the daemon (protocol.md).
//!
//! In reading order: [`request`] reads a frame; [`dispatch`] takes it to its handler, which [`table`] finds;
//! [`handler`] says what a handler of each scope may do; [`methods`] has a file per method group, whose handlers
//! go between the types of `wire` and those of the core; [`reply`] is a result and [`response`] its way back.

pub(crate) mod dispatch;
mod handler;
mod methods;
mod reply;
mod request;
mod response;
mod table;

pub use dispatch::Dispatcher;
