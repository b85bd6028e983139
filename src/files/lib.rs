//! Sessions on disk, for the daemon and for programs that embed them.
//!
//! Only this crate writes session files, and only [`os`] calls the operating system. Once an append is answered, its
//! whole line is in the file and stays there. The file only grows, and other programs may append to it at the same
//! time. After a crash, or when the disk is full, the file can still be opened. All files that are kept for speed can
//! be deleted. `schema/session-file.md` has the rules.
//!
//! [`embed`] is the interface for other programs. The other modules are for the crates of treelined, and change with
//! these crates.

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
#[cfg(not(feature = "simulation"))]
mod invariant;
#[cfg(feature = "simulation")]
pub mod invariant;
pub mod kept;
pub mod lock;
pub mod log;
pub mod os;
pub mod parallel;
pub mod session;
pub mod store;
