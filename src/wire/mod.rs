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
pub(crate) mod append;
pub(crate) mod commands;
pub(crate) mod compact;
pub(crate) mod compare;
pub(crate) mod entry;
pub(crate) mod event;
pub(crate) mod export;
pub(crate) mod failure;
pub(crate) mod fork;
pub(crate) mod handshake;
pub(crate) mod import;
pub(crate) mod message;
pub(crate) mod methods;
pub(crate) mod navigate;
pub(crate) mod notification;
pub(crate) mod people;
pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod renderers;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod team;
pub(crate) mod tree;
pub(crate) mod turn;
pub(crate) mod watch;
pub(crate) mod web;

pub(crate) use append::*;
pub(crate) use commands::*;
pub(crate) use compact::*;
pub(crate) use compare::*;
pub(crate) use event::*;
pub(crate) use export::*;
pub(crate) use failure::*;
pub(crate) use fork::*;
pub(crate) use handshake::*;
pub(crate) use import::*;
pub(crate) use navigate::*;
pub(crate) use params::MAX_COUNT;
pub(crate) use params::{GivenPosition, Mutation, OnSession, Raw, RequestId, decode};
pub(crate) use people::*;
pub(crate) use read::*;
pub(crate) use render::*;
pub(crate) use renderers::*;
pub(crate) use search::*;
pub(crate) use session::*;
pub(crate) use team::*;
pub(crate) use tree::*;
pub(crate) use turn::*;
pub(crate) use watch::{UnwatchSessionsParams, UnwatchSessionsResult};
pub(crate) use watch::{WatchSessionsParams, WatchSessionsResult};
pub(crate) use web::*;

/// Parses the example of a type for the documents. JSON that does not parse becomes null, which a test
/// refuses.
fn example(json: &str) -> serde_json::Value {
    serde_json::from_str(json).unwrap_or_default()
}

#[cfg(test)]
mod tests;
