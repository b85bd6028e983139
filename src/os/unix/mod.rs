//! Linux, macOS and other Unix systems.

pub(crate) mod activation;
pub(crate) mod folder;
pub(crate) mod group;
pub(crate) mod path;
pub(crate) mod process;
pub(crate) mod ready;
pub(crate) mod running;
pub(crate) mod safety;
pub(crate) mod shortcut;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod stat;
pub(crate) mod stream;
pub(crate) mod watch;

pub(crate) use std::os::unix::fs::FileExt as FileAt;
