//! Causes faults: a small disk, and a preloaded library that makes system calls fail.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use super::{begun, quiet};
use crate::harness::*;

/// A tmpfs in place of a folder. It is unmounted on drop.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts the disk in place of the session directory.
    pub(crate) fn mount(home: &Home, kib: u32) -> Option<SmallDisk> {
        SmallDisk::mount_at(home.sessions(), kib)
    }

    pub(crate) fn mount_at(path: PathBuf, kib: u32) -> Option<SmallDisk> {
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={kib}k,mode=700"),
                "tmpfs",
            ])
            .arg(&path)
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(SmallDisk(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

pub(crate) struct Shim {
    library: PathBuf,
    actions: PathBuf,
    /// The file to which the library writes the paths of synced files.
    synced: PathBuf,
}

impl Shim {
    /// `None` where there is no C compiler.
    pub(crate) fn new(home: &Home) -> Option<Shim> {
        static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| {
            let folder = tempfile::Builder::new()
                .prefix("treelined-shim-")
                .tempdir()
                .unwrap()
                .keep();
            let source = folder.join("shim.c");
            fs::write(&source, include_str!("shim.c")).unwrap();
            let library = folder.join("shim.so");
            let compiled = Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .args([&library, &source])
                .status();
            compiled
                .is_ok_and(|status| status.success())
                .then_some(library)
        });
        let actions = home.files().join("actions");
        let synced = home.files().join("synced");
        fs::write(&actions, "").unwrap();
        Some(Shim {
            library: library.clone()?,
            actions,
            synced,
        })
    }

    /// The environment variables that make a program preload the library.
    pub(crate) fn env(&self) -> [(&str, &str); 3] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("SHIM_ACTIONS", self.actions.to_str().unwrap()),
            ("SHIM_SYNCED", self.synced.to_str().unwrap()),
        ]
    }

    pub(crate) fn start(&self, home: &Arc<Home>, args: &[&str]) -> Daemon {
        let mut d = quiet(home, args, &self.env());
        d.allow_stderr();
        d
    }

    /// The paths of all files synced so far, one per line.
    pub(crate) fn synced(&self) -> String {
        fs::read_to_string(&self.synced).unwrap_or_default()
    }

    /// Whether all actions have happened. A pause counts when it has begun.
    pub(crate) fn has_acted(&self) -> bool {
        fs::read_to_string(&self.actions).unwrap().is_empty()
    }

    /// The number of actions that have not happened.
    pub(crate) fn left(&self) -> usize {
        fs::read_to_string(&self.actions).unwrap().lines().count()
    }

    pub(crate) fn act(&self, actions: &str) {
        fs::write(&self.actions, actions).unwrap();
    }

    #[track_caller]
    pub(crate) fn is_done(&self) {
        let left = fs::read_to_string(&self.actions).unwrap();
        assert_eq!(left, "", "actions that did not happen");
    }
}

/// A daemon with the library and with the session u1 → a1, and the path of its file.
pub(crate) fn shimmed(args: &[&str]) -> Option<(Shim, Daemon, PathBuf)> {
    let home = Home::new();
    let shim = Shim::new(&home)?;
    let mut d = shim.start(&home, args);
    let path = begun(&mut d);
    Some((shim, d, path))
}
