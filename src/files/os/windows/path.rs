//! Paths.

use std::ffi::OsStr;

/// The folder of programs' data below the home folder, where a system has one of its own.
pub(crate) const APPLICATION_SUPPORT: Option<&str> = None;

/// The path with these bytes, which [`OsStr::as_encoded_bytes`] has given; `None` if it is no text.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<&OsStr> {
    std::str::from_utf8(bytes).ok().map(OsStr::new)
}
