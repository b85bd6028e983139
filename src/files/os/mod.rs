//! Access to the operating system. No other module names one: files opened safely, temporary files, a bounded number
//! of open descriptors, other processes and programs, sockets, signals and standard streams.
//!
//! [`system`] is the side of this system; each has the same items. Where a system has no equal of a call, the call
//! fails with [`std::io::ErrorKind::Unsupported`].

pub mod file;
pub mod handle;
pub mod program;
pub mod temporary;

#[cfg(unix)]
#[path = "unix/mod.rs"]
mod system;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod system;

pub use system::{
    FileAt, activation, path, process, ready, running, shortcut, signal, socket, stream, watch,
};
