//! The daemon: connections, requests in order, questions to clients, notifications, and the ends of all of these.
//!
//! Requests to one session take effect in the order in which they came; a request that waits for a client or a
//! summarizer lets others pass and checks the leaf again before it writes. Every question has one outcome, also if the
//! client that was asked dies: silence does not consent. A client that stops reading holds up nobody else, and what is
//! kept for it has a limit. The program gives the daemon [`parts::Parts`] for conversations of other tools and for
//! other machines. This crate promises no interface to other programs; clients have the protocol.
//!
//! Invariants: the daemon is made of parts that do not know it, and its verbs are functions above them,
//! each in the file that owns its types. A handler gets what the scope of its method allows: who asks, a place in a
//! queue, or a session that it cannot change. No file is used by more than twelve others.
//!
//! In reading order: [`stdio`] cuts frames, and is the one queue of output; [`rpc`] has the method table and the way from
//! a frame to a handler and back; [`daemon`] is what all connections share; [`ask`], [`peers`] and [`people`] are
//! questions; [`hooks`] and [`extensions`] are the user's programs; [`serve`], [`endpoint`] and [`web`] are the places
//! where clients connect, and [`access`] limits those that arrive at some of them.

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
