//! Windows. The daemon serves stdio there. Sockets of the file system, the end of other processes and the owners of
//! files need calls that the standard library does not have: what rests on them fails with `Unsupported`.

pub(crate) mod activation;
mod at;
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

pub(crate) use at::FileAt;

use std::io;

/// The error of a call that this system has no equal of.
fn unsupported(action: &str) -> io::Error {
    let message = format!("treelined cannot {action} on Windows");
    io::Error::new(io::ErrorKind::Unsupported, message)
}
