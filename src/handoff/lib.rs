//! Hands conversations over to other agents, as new sessions of these agents (protocol.md §3.18).
//!
//! Files of an agent are never changed: a handoff only makes new files, below the folder where the agent keeps its
//! sessions or in a folder of the session directory. This crate starts no programs.
//!
//! The modules in reading order: [`prepare`] makes a [`Prepared`] from a [`Request`]. The `writers`, one for each
//! agent, are pure and make the bytes of the new session. `text` makes the handoff for any other agent, which begins
//! with an `overview`. `record` makes the record for the session that is handed over. [`place`] makes the files. The
//! path is cleaned by [`treelined_import::neutral`]. This crate promises no interface to other programs.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

mod overview;
mod place;
mod prepare;
mod record;
#[cfg(test)]
mod tests;
mod text;
mod writers;

pub use place::{NewFile, place};
pub use prepare::{Prepared, Request, prepare};
pub use treelined_import::Tool;
pub use treelined_import::neutral::{Loss, Losses, NeutralPath, Options, PathMessage};
