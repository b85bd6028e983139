//! Every type of the protocol (protocol.md), one file for each group of methods. The schema is derived from these
//! types, so their comments are the descriptions that clients read.
//!
//! This crate has names and shapes, and decides nothing about sessions. `rpc` of `treelined-service` decodes params and
//! connects the shapes with the sessions. If a param is a choice for a pure module, such as the filter of a tree, its type is
//! defined in that module.
//!
//! For example, the method `get_leaf` has the types `GetLeafParams` and `GetLeafResult`. In params, unknown
//! members are refused, and null means absent unless a field says otherwise. JSON that is only passed on stays raw
//! ([`Raw`]), so that its bytes are kept.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

#[macro_use]
mod params;
pub mod append;
pub mod branch;
pub mod commands;
pub mod compact;
pub mod compare;
pub mod continuation;
#[cfg(feature = "schema")]
pub mod entry;
pub mod event;
pub mod export;
pub mod failure;
pub mod family;
pub mod fork;
pub mod handshake;
pub mod import;
#[cfg(feature = "schema")]
pub mod message;
pub mod methods;
pub mod navigate;
pub mod notification;
pub mod open_target;
pub mod people;
pub mod read;
pub mod render;
pub mod rendered;
pub mod renderers;
pub mod schema;
pub mod search;
pub mod session;
pub mod shed;
pub mod sorting;
pub mod team;
pub mod tree;
pub mod turn;
pub mod usage;
pub mod watch;
pub mod web;

pub use append::*;
pub use branch::*;
pub use commands::*;
pub use compact::*;
pub use compare::*;
pub use continuation::*;
pub use event::*;
pub use export::*;
pub use failure::*;
pub use family::*;
pub use fork::*;
pub use handshake::*;
pub use import::*;
pub use navigate::*;
pub use open_target::*;
pub use params::{GivenPosition, MAX_COUNT, Mutation, OnSession, Raw, RequestId};
pub use people::*;
pub use read::*;
pub use render::*;
pub use rendered::*;
pub use renderers::*;
pub use search::*;
pub use session::*;
pub use shed::*;
pub use sorting::*;
pub use team::*;
pub use tree::*;
pub use turn::*;
pub use usage::*;
pub use watch::{
    UnwatchSessionsParams, UnwatchSessionsResult, WatchSessionsParams, WatchSessionsResult,
};
pub use web::*;

#[cfg(feature = "schema")]
mod examples;
#[cfg(feature = "schema")]
mod shapes;
mod spawned_by;
mod summary;
#[cfg(test)]
mod tests;
