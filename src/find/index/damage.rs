//! The error of a damaged index.

use std::io;

pub(super) fn damaged() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}
