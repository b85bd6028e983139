//! The handlers, a file per method group.

pub(super) mod append;
pub(super) mod commands;
pub(super) mod compact;
pub(super) mod compare;
pub(super) mod continuation;
mod entries;
pub(super) mod events;
pub(super) mod export;
pub(super) mod fork;
pub(super) mod handshake;
pub(super) mod import;
pub(super) mod list;
pub(super) mod moves;
pub(super) mod navigate;
pub(super) mod peers;
pub(super) mod people;
pub(super) mod pick;
pub(super) mod read;
pub(super) mod render;
pub(super) mod renderers;
pub(super) mod search;
pub(super) mod sessions;
mod team_rows;
pub(super) mod tree;
pub(super) mod turns;
pub(super) mod watch;
pub(super) mod web;
