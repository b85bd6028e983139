//! The folders of one measurement. The folders are new, so that the measurement finds no cache of an earlier one.

use crate::Bench;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use treelined_bench::library::Generated;

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// A home with a session directory, removed when dropped.
pub struct World {
    root: PathBuf,
}

impl World {
    pub fn new(bench: &Bench) -> Result<Self> {
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let root = bench
            .folder
            .join(format!("scratch/{}-{number}", std::process::id()));
        let world = Self { root };
        // The daemon warns of a session directory that other users can read.
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(world.project());
        made.with_context(|| format!("create {}", world.root.display()))?;
        Ok(world)
    }

    /// The folder that takes the place of the user's home, and of all folders of the platform in it.
    pub fn home(&self) -> &Path {
        &self.root
    }

    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// The folder for sessions of the generated working directory.
    pub fn project(&self) -> PathBuf {
        self.sessions().join("--bench--")
    }

    /// A hard link to the generated file, for measurements that only read.
    pub fn link(&self, session: &Generated) -> Result<PathBuf> {
        let path = self.project().join(file_name(session));
        fs::hard_link(&session.path, &path)?;
        Ok(path)
    }

    /// A copy, for measurements that write.
    pub fn copy(&self, session: &Generated) -> Result<PathBuf> {
        let path = self.project().join(file_name(session));
        fs::copy(&session.path, &path)?;
        Ok(path)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // If this fails, the next `cargo clean` removes the folder.
        let _removed = fs::remove_dir_all(&self.root);
    }
}

fn file_name(session: &Generated) -> &OsStr {
    session.path.file_name().unwrap_or_default()
}
