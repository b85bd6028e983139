//! JSON-RPC: the method table, and everything between a frame and a session (protocol.md).
//!
//! In reading order: [`server`] is what one process serves; [`request`] reads a frame; [`dispatch`] takes
//! it to its handler and the answer back; [`table`] finds the handler of a method; [`lane`] writes the
//! appends that are together in a session's queue ([`crate::daemon::queue`]); [`notify`] is what clients are told unasked; [`follow`] is what sessions find out unasked;
//! [`convert`] goes from core to wire. Then a file per method group, each a handler that decodes ids,
//! takes its session's turn and ends in a plain function over domain types.

mod append;
mod compact;
mod convert;
pub mod dispatch;
mod events;
mod find;
mod follow;
mod fork;
mod handshake;
mod lane;
mod list;
mod moves;
mod navigate;
mod navigator;
mod notify;
mod parallel;
mod pick;
mod question;
mod read;
mod reply;
mod request;
mod rows;
pub mod server;
mod sessions;
mod summaries;
mod table;
mod tree;
mod turns;

pub use dispatch::Dispatcher;
pub use server::{Config, Server};
