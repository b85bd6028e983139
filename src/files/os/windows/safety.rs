//! Files that no other user can change: their access lists are not read, so none is known to be safe.

use crate::os::program::Failure;
use std::fs::Metadata;
use std::path::Path;

/// Whether a file can be run as a program.
pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file()
}

/// Fails: it is not known who can write the file.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    path.symlink_metadata().map_err(Failure::NotStarted)?;
    let shown = path.display();
    let why = format!("treelined cannot tell on Windows who may change {shown}");
    Err(Failure::Unsafe(why))
}
