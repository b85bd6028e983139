//! `treelined files open`: writes the files of a record into another folder, outside of the root.

use crate::git::Shadow;
use anyhow::{Context, bail};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Writes the files of a commit into a folder, which must not exist or must be empty. If a file cannot be written, no
/// file stays. Returns the number of files.
pub fn checkout(shadow: &Shadow, commit: &str, into: &Path) -> anyhow::Result<usize> {
    let shown = into.display();
    let into = std::path::absolute(into)?;
    match fs::read_dir(&into) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("read {shown}")),
        Ok(mut files) => {
            if files.next().is_some() {
                bail!("{shown} is not empty; name a new folder");
            }
        }
    }
    let parent = into.parent().context("name a new folder")?;
    let parent = parent
        .canonicalize()
        .with_context(|| format!("make the folder that is to hold {shown}"))?;
    if parent.starts_with(&shadow.root) {
        bail!(
            "{shown} is in {}, whose files are saved; name a folder elsewhere",
            shadow.root.display()
        );
    }
    let beside = parent.join(format!(".treelined-open-{}", uuid::Uuid::new_v4().simple()));
    // The original files may have been private, so only the owner gets access to the folder.
    let made = fs::DirBuilder::new().mode(0o700).create(&beside);
    made.with_context(|| format!("make {shown}"))?;
    let index = shadow.dir.join("open.index");
    let written = write(shadow, commit, &beside, &index).and_then(|files| {
        fs::rename(&beside, &into).with_context(|| format!("make {shown}"))?;
        Ok(files)
    });
    let _gone = fs::remove_file(&index);
    if written.is_err() {
        let _left = fs::remove_dir_all(&beside);
    }
    written
}

fn write(shadow: &Shadow, commit: &str, into: &Path, index: &Path) -> anyhow::Result<usize> {
    let there = Shadow {
        dir: shadow.dir.clone(),
        root: into.to_owned(),
    };
    for args in [
        ["read-tree", commit].as_slice(),
        ["checkout-index", "--all", "--quiet"].as_slice(),
    ] {
        there.run_with_index(args, index, None)?;
    }
    let files = there.run_with_index(&["ls-files", "-z"], index, None)?;
    Ok(files.iter().filter(|byte| **byte == 0).count())
}
