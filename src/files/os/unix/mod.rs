//! Linux, macOS and other Unix systems.

pub mod activation;
pub mod folder;
pub mod group;
pub mod path;
pub mod process;
pub mod ready;
pub mod running;
pub mod safety;
pub mod shortcut;
pub mod signal;
pub mod socket;
pub mod stat;
pub mod stream;
pub mod watch;

pub use std::os::unix::fs::FileExt as FileAt;
