//! Paths from bytes, and a folder that only macOS has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The folder for the data of programs below the home folder, on systems that define one.
pub const APPLICATION_SUPPORT: Option<&str> = match cfg!(target_os = "macos") {
    true => Some("Library/Application Support"),
    false => None,
};

/// The path with these bytes, which are from [`OsStr::as_encoded_bytes`]. `None` if they are not a path; on Unix all
/// bytes are one.
#[allow(clippy::unnecessary_wraps, reason = "other systems have paths of text")]
#[inline]
pub fn from_bytes(bytes: &[u8]) -> Option<&OsStr> {
    Some(OsStr::from_bytes(bytes))
}
