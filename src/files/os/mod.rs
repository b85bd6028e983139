//! Access to the operating system. All other modules use it through this one: files that are opened safely, temporary
//! files, a limited number of open descriptors, other processes and programs, sockets, signals and standard streams.
//!
//! `unix` has the code for Linux, macOS and other Unix systems, the only ones so far. Another system needs a folder
//! with the same items. If a system has no equivalent of a call, the call fails with
//! [`std::io::ErrorKind::Unsupported`].

pub mod file;
pub mod handle;
pub mod program;
#[cfg(feature = "simulation")]
pub mod simulated;
pub mod temporary;
pub mod time;

mod failure;
mod status;
mod unix;

pub use unix::{
    FileAt, activation, heap, path, process, ready, reports, running, shortcut, signal, socket,
    stream, watch,
};
