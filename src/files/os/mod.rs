//! Access to the operating system. No other module names one: files opened safely, temporary files, a bounded number
//! of open descriptors, other processes and programs, sockets, signals and standard streams.
//!
//! `unix` is the side of Linux, macOS and other Unix systems, the only ones so far. Another system needs a folder with
//! the same items. Where a system has no equal of a call, the call fails with [`std::io::ErrorKind::Unsupported`].

pub mod file;
pub mod handle;
pub mod program;
pub mod temporary;

mod failure;
mod status;
mod unix;

pub use unix::{
    FileAt, activation, path, process, ready, reports, running, shortcut, signal, socket, stream,
    watch,
};
