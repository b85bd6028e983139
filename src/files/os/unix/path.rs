//! Paths: their bytes, and a folder that one system has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The folder for the data of programs below the home folder, on systems that define one.
pub const APPLICATION_SUPPORT: Option<&str> = match cfg!(target_os = "macos") {
    true => Some("Library/Application Support"),
    false => None,
};

/// The path with these bytes, which [`OsStr::as_encoded_bytes`] has given; `None` if it has none. On Unix every path has
/// any bytes.
#[allow(clippy::unnecessary_wraps, reason = "other systems have paths of text")]
#[inline]
pub fn from_bytes(bytes: &[u8]) -> Option<&OsStr> {
    Some(OsStr::from_bytes(bytes))
}
