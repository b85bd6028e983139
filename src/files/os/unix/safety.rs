//! Checks that no other user can change a file.

use crate::os::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The most links that are followed on the way to a file; more of them count as a cycle.
const MAX_LINKS: usize = 40;

/// Whether a file can be run as a program.
pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// Fails if another user could write the file or replace it. Each folder and link on the way to the file must belong to
/// this user or root, and only these two may write to the folders. Sticky folders are accepted, since in them no other
/// user can replace a file of this user.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    let mut at = PathBuf::from("/");
    check_owner(&at, &at.symlink_metadata().map_err(Failure::NotStarted)?)?;
    let mut links = 0;
    let mut left = parts_of(path);
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let metadata = next.symlink_metadata().map_err(Failure::NotStarted)?;
        check_owner(&next, &metadata)?;
        if metadata.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                let circle = io::Error::from(rustix::io::Errno::LOOP);
                return Err(Failure::NotStarted(circle));
            }
            let target = next.read_link().map_err(Failure::NotStarted)?;
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            left.extend(parts_of(&target));
            continue;
        }
        let mode = metadata.permissions().mode();
        let is_sticky_folder = metadata.is_dir() && mode & 0o1000 != 0 && !left.is_empty();
        // Bytes written to a device such as /dev/null cannot be read back, so other users may write to it.
        let is_device = metadata.file_type().is_char_device();
        if mode & 0o022 != 0 && !is_sticky_folder && !is_device {
            let shown = next.display();
            let why = format!("{shown} can be written by others; use chmod go-w");
            return Err(Failure::Unsafe(why));
        }
        at = next;
    }
    Ok(())
}

/// The components of a path without the root, the last one first.
fn parts_of(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        _ => None,
    });
    let mut parts: Vec<OsString> = parts.collect();
    parts.reverse();
    parts
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        let why = format!("{} belongs to another user", path.display());
        return Err(Failure::Unsafe(why));
    }
    Ok(())
}
