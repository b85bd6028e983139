//! Linux, macOS and other Unix systems.

pub mod activation;
pub(crate) mod calls;
pub(crate) mod folder;
pub(crate) mod group;
pub mod heap;
pub mod path;
pub mod process;
pub mod ready;
pub mod reports;
pub mod running;
pub(crate) mod safety;
pub mod shortcut;
pub mod signal;
pub mod socket;
pub(crate) mod stat;
pub mod stream;
pub mod watch;

pub use calls::FileAt;
