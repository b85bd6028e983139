//! Sessions of several machines: their lines are on servers, and a file is a replica of them (schema/fleet.md). The
//! servers run NATS JetStream or PostgreSQL, with the features `nats` and `postgres`. In this crate, the **log** of a
//! session is its lines on the servers, and a **backend** is anything that keeps such lines.
//!
//! Only the servers decide which lines a session has, and in which order. A file is a copy. No acknowledged line is
//! lost, and no line comes twice. Every call of a server has a deadline. Without a feature, this crate has only the
//! [`settings`]. It promises no interface to other programs.
//!
//! In reading order: `backend` is the trait of a backend, and `files` is the backend of a session directory. `engine`
//! is the trait of the servers of a team, and `engines` opens the engine that the settings name. `postgres` is one
//! engine, and `acknowledged` has the durability of its answers. `nats_engine` is the other engine: `stream` has the
//! positions in a stream, `publish` appends to it, `messages` reads it, `hints` reads new messages, and `objects` keeps
//! lines that are larger than a message. `subject` names a session in a stream, `connection` reaches the servers with
//! deadlines, and `limits` judges a stream. `replica` records how far a file and a log are equal, and `comparison`
//! compares them again. `transfer` copies lines between them. `replicated` keeps them equal while the session is open,
//! and a `follower` reads new lines for it; `live` does so for the open sessions of a daemon. `closing` ends the log of
//! a deleted session, `trash` moves its file, and `describe` reads what other machines see of it. `retention` closes
//! and erases sessions without activity; `quiet` describes such a session, and `nats_quiet` finds them in a stream.
//! `team` is the list of sessions that all machines share.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]
#![cfg_attr(
    all(test, not(all(feature = "nats", feature = "postgres"))),
    allow(
        dead_code,
        reason = "the parts that need no server are tested in every build"
    )
)]

#[cfg(any(feature = "postgres", test))]
mod acknowledged;
#[cfg(any(feature = "team", test))]
mod attempts;
#[cfg(any(feature = "team", test))]
pub mod backend;
#[cfg(any(feature = "team", test))]
pub(crate) mod closing;
#[cfg(any(feature = "team", test))]
mod comparison;
#[cfg(feature = "nats")]
mod connection;
#[cfg(feature = "team")]
mod connector;
#[cfg(any(feature = "team", test))]
pub mod describe;
#[cfg(feature = "team")]
pub mod engine;
#[cfg(feature = "team")]
pub mod engines;
#[cfg(any(feature = "team", test))]
pub mod files;
#[cfg(feature = "team")]
mod follower;
#[cfg(feature = "nats")]
pub mod guard;
#[cfg(feature = "nats")]
mod hints;
#[cfg(any(feature = "team", test))]
mod in_flight;
#[cfg(any(feature = "nats", test))]
pub mod limits;
#[cfg(feature = "team")]
pub mod live;
#[cfg(feature = "nats")]
mod messages;
#[cfg(feature = "nats")]
mod nats_engine;
#[cfg(feature = "nats")]
mod nats_log;
#[cfg(feature = "nats")]
mod nats_quiet;
#[cfg(feature = "nats")]
mod objects;
#[cfg(feature = "team")]
mod own_runtime;
#[cfg(any(feature = "team", test))]
mod patience;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "nats", test))]
pub mod probe;
#[cfg(feature = "nats")]
mod publish;
#[cfg(feature = "team")]
pub mod quiet;
#[cfg(any(feature = "team", test))]
mod replica;
#[cfg(any(feature = "team", test))]
pub mod replicated;
#[cfg(feature = "team")]
pub mod retention;
pub mod settings;
#[cfg(feature = "nats")]
pub mod stream;
#[cfg(any(feature = "team", test))]
mod subject;
#[cfg(any(feature = "team", test))]
pub mod team;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "team", test))]
pub mod transfer;
#[cfg(feature = "team")]
mod trash;
