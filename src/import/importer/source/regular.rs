//! Opens regular files.

use std::fs::File;
use std::io;
use std::path::Path;
use treelined_files::os::file;
use treelined_files::os::file::Status;

/// Opens a regular file to read it. Fails if the last component of the path is a symbolic link.
pub(in crate::importer) fn open(path: &Path) -> io::Result<(File, Status)> {
    let file = file::open_regular(path)?;
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    let status = file::status_of(&file)?;
    Ok((file, status))
}

pub(in crate::importer) fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "not a regular file")
}
