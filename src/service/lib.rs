//! The daemon: connections, requests in order, questions to clients, notifications, and the ends of all of these.
//!
//! Requests to one session take effect in the order of their arrival. A request that waits for a client or a summarizer
//! lets other requests run, and checks the leaf again before it writes. Every question has one outcome, also if the
//! client that was asked dies: a missing answer is not consent. A client that stops reading does not delay other
//! clients, and the messages that wait for it have a limit. The program gives the daemon [`parts::Parts`] for the
//! conversations of other tools and for other machines. This crate promises no interface to other programs; clients
//! have the protocol.
//!
//! Invariants: the daemon is made of parts, and a part does not know the daemon. A verb is a function above the parts,
//! in the file that owns its types. A handler gets only what the scope of its method allows: the connection that asks,
//! a place in a queue, or a session that it cannot change. At most twelve files use the same file.
//!
//! In reading order: [`stdio`] splits the input into frames, and has the one queue of output; [`rpc`] has the method
//! table and the way from a frame to a handler and back; [`daemon`] has the state that all connections share; [`ask`],
//! [`peers`] and [`people`] are questions; [`hooks`] and [`extensions`] are the user's programs; clients connect over
//! [`serve`], [`endpoint`] and [`web`]; [`access`] limits some connections.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

pub mod access;
pub mod ask;
pub mod commands;
pub mod daemon;
pub mod endpoint;
pub mod extensions;
pub mod hooks;
pub mod memory;
pub mod parts;
pub mod peers;
pub mod people;
#[allow(
    clippy::cast_possible_truncation,
    reason = "limits that clients give are cut to the size of memory"
)]
pub mod rpc;
pub mod serve;
pub mod settings;
pub mod stdio;
pub mod summarizer;
pub mod web;
