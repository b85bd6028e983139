//! The names of origins, and the errors that contain such names.

use std::io;
use std::path::Path;
use treelined_core::error::Error;

/// Whether `name`, from an entry's `source`, is a name of an origin, and not some other path.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_part)
}

pub(super) fn name_of(base: &str, generation: u32) -> String {
    match generation {
        1 => base.to_owned(),
        later => format!("{base}-{later}"),
    }
}

pub(super) fn failed(action: &str, path: &Path, error: &io::Error) -> Error {
    Error::io(&format!("{action} {}", path.display()), error)
}
