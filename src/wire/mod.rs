//! Every type that crosses the pipe (protocol.md), one file per method group. The schema is derived
//! from these types, so their comments are the descriptions that clients read.
//!
//! Owns names, shapes and the decoding of params. Holds no core type and decides nothing about
//! sessions: `rpc` goes between.
//!
//! For the method `get_leaf` there are `GetLeafParams` and `GetLeafResult`. In params, unknown
//! members are refused, and null means absent unless a field says otherwise. JSON that is only
//! passed on stays raw ([`Raw`]), so that its bytes survive.

#[macro_use]
mod params;
pub mod append;
pub mod compact;
pub mod entry;
pub mod event;
pub mod failure;
pub mod fork;
pub mod handshake;
pub mod message;
pub mod methods;
pub mod navigate;
pub mod notification;
pub mod read;
pub mod session;
pub mod tree;
pub mod turn;

pub use append::*;
pub use compact::*;
pub use event::*;
pub use failure::*;
pub use fork::*;
pub use handshake::*;
pub use navigate::*;
pub use params::{GivenPosition, Mutation, OnSession, Raw, RequestId, decode};
pub use read::*;
pub use session::*;
pub use tree::*;
pub use turn::*;

#[cfg(test)]
mod tests;
