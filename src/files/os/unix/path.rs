//! Paths from bytes, and a folder that only macOS has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The folder below the home folder for the data of programs, on systems that define one.
pub const APPLICATION_SUPPORT: Option<&str> = match cfg!(target_os = "macos") {
    true => Some("Library/Application Support"),
    false => None,
};

/// The path with these bytes, which are from [`OsStr::as_encoded_bytes`]. `None` if the bytes are not a path; on
/// Unix any bytes are a path.
#[allow(clippy::unnecessary_wraps, reason = "other systems have paths of text")]
#[inline]
pub fn from_bytes(bytes: &[u8]) -> Option<&OsStr> {
    Some(OsStr::from_bytes(bytes))
}
