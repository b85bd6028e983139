//! Conversations as new sessions of other agents (protocol.md §3.18).
//!
//! Nothing that an agent has is ever changed: a handoff makes files that did not exist, and only below the folder where
//! the agent keeps its sessions or in a folder of the session directory. No program is started here. In reading order:
//! [`prepare`] makes a [`Prepared`] of a [`Request`], by the `writers`, one for each agent, which are pure; `text` is the
//! handoff for every other agent, which begins with an `overview`; `record` is what the session remembers; [`place`] makes the files. The path is cleaned
//! by [`treelined_import::neutral`]. This crate promises no interface to other programs.

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
