//! Removes the stages that killed restores have left in the root (files.md §5).

use crate::changes::{Change, Side, changes};
use crate::git::Shadow;
use crate::journal::{self, Journal};
use crate::name::Name;
use crate::place::{FOLDER, Found, STAGE, UNFILLED, found, id_of};
use crate::state::Root;
use rustix::fs::{self, AtFlags, CWD, Mode};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

/// Removes the stages of this root's restores. A file in a stage is removed only if the safety snapshot or the target
/// has its bytes. Returns the stages that stay. A folder with the name of a stage is not touched if no restore of
/// this root has made it.
pub fn tidy(root: &Root, shadow: &Shadow) -> anyhow::Result<Vec<Name>> {
    let mut kept = Vec::new();
    for journal in journal::all(root)? {
        for end in [UNFILLED, ""] {
            let name = format!("{STAGE}{}{end}", journal.id);
            let path = root.path.join(&name);
            let stage = match fs::openat(CWD, &path, FOLDER, Mode::empty()) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                stage => stage?,
            };
            empty(shadow, &journal, &stage, end == UNFILLED)?;
            if fs::unlinkat(CWD, &path, AtFlags::REMOVEDIR).is_err() {
                kept.push(Name(name.into_bytes()));
            }
        }
    }
    Ok(kept)
}

/// Removes the files of a stage whose bytes are saved.
fn empty(
    shadow: &Shadow,
    journal: &Journal,
    stage: &OwnedFd,
    is_unfilled: bool,
) -> anyhow::Result<()> {
    // If the changes are not known, it is not known which files are saved.
    let Ok(all) = changes(shadow, &journal.safety, &journal.target) else {
        return Ok(());
    };
    let of: BTreeMap<Name, Change> = all
        .into_iter()
        .map(|change| (change.name.clone(), change))
        .collect();
    for (at, name) in journal.names.iter().enumerate() {
        let Some(change) = of.get(name) else {
            continue;
        };
        for file in [format!("n{at}"), format!("o{at}")] {
            let file: &OsStr = file.as_ref();
            let there = found(stage.as_fd(), file)?;
            let new = change.new.as_ref();
            let is_saved = [change.old.as_ref(), new]
                .into_iter()
                .flatten()
                .any(|side| there.is(Some(side)));
            // The restore was killed while it wrote this file, so the file has only the beginning of a saved file.
            let is_begun = || match (&there, new) {
                (Found::Saved(there), Some(new)) if is_unfilled => {
                    begins(shadow, stage, file, there, new)
                }
                _ => Ok(false),
            };
            if is_saved || is_begun()? {
                fs::unlinkat(stage, file, AtFlags::empty())?;
            }
        }
    }
    Ok(())
}

/// Whether the bytes of a staged file are the beginning of a saved file.
fn begins(
    shadow: &Shadow,
    stage: &OwnedFd,
    file: &OsStr,
    there: &Side,
    new: &Side,
) -> anyhow::Result<bool> {
    let stat = fs::statat(stage, file, AtFlags::SYMLINK_NOFOLLOW)?;
    let size = u64::try_from(stat.st_size)?;
    let mut child = shadow.spawn(["cat-file", "blob", &new.id])?;
    let id = match child.stdout.take() {
        Some(saved) => id_of(saved.take(size), size)?,
        None => None,
    };
    let _ended = child.kill();
    child.wait()?;
    Ok(id.as_ref() == Some(&there.id))
}
