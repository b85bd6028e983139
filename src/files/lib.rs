//! Sessions on disk, for the daemon and for programs that embed them.
//!
//! This crate is the only one that writes a session file, and all of its calls of the system stand in [`os`]. A line
//! that an append has answered is in the file, whole, and stays there: the file only grows, other programs may append
//! to it at the same time, and a crash or a full disk leaves a file that opens. Whatever is kept for speed can be
//! deleted. `schema/session-file.md` has the rules.
//!
//! [`embed`] is the interface to other programs. The other modules are for the crates of treelined, and change with them.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

pub mod blocking;
pub mod cache;
pub mod cancel;
pub mod clock;
pub mod embed;
pub mod lock;
pub mod log;
pub mod os;
pub mod parallel;
pub mod session;
pub mod store;
