//! A temporary folder.

use anyhow::Context;
use std::path::PathBuf;
use treelined_files::os::file::make_private_folder;

/// A temporary folder (0700). It is removed with its contents when dropped.
pub(super) struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes a temporary folder whose name contains `purpose`.
    pub(super) fn new(purpose: &str) -> anyhow::Result<Self> {
        let name = format!("treelined-{purpose}-{}", uuid::Uuid::new_v4());
        let path = std::env::temp_dir().join(name);
        let made = make_private_folder(&path);
        made.with_context(|| format!("make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If the removal fails, the folder stays in the folder for temporary files of the system.
        let _left = std::fs::remove_dir_all(&self.0);
    }
}
