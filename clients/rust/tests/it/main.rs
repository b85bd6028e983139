//! Tests the client with the real daemon, with one file for each subject. `fixture` starts daemons;
//! `fake_daemon` sends messages that a real daemon never sends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a panic fails the test and names the line"
)]

mod answers;
mod calls;
mod fake_daemon;
mod fixture;
mod lifetime;
mod notifications;
mod readme;
mod shared;
mod transport;
