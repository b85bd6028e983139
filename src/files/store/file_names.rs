//! The names of session files and their folders.

use crate::log::header::Header;
use std::ffi::{OsStr, OsString};
use treelined_core::terminal::is_control;

/// The ending of the names of session files.
pub(super) const EXTENSION: &str = ".jsonl";

pub(super) fn file_name(header: &Header) -> String {
    let stamp = header.timestamp.as_deref().unwrap_or_default();
    let stamp = stamp.replace([':', '.'], "-");
    format!("{stamp}_{}{EXTENSION}", header.id)
}

/// The name of the folder for sessions of `cwd`: `--<cwd without its leading separator, / \ : and
/// control characters as ->--`.
pub(super) fn folder_name(cwd: &str) -> OsString {
    let inner = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    // The length of a file name is limited. The end of a path is kept, since it distinguishes folders
    // better than the start.
    let safe: String = inner
        .chars()
        .map(|c| {
            if matches!(c, '/' | '\\' | ':') || is_control(c) {
                '-'
            } else {
                c
            }
        })
        .collect();
    let mut start = safe.len().saturating_sub(240);
    while !safe.is_char_boundary(start) {
        start += 1;
    }
    format!("--{}--", safe.get(start..).unwrap_or_default()).into()
}

pub(super) fn is_session_file(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.ends_with(EXTENSION.as_bytes()) && !name.starts_with(b".")
}

pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Whether a part of a name is a number, such as the number of a second file in the trash.
pub(super) fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}
