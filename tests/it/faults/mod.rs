//! Faults of disks and files. Each is reported by its kind, no acknowledged entry is lost, a failed write leaves no
//! trace, and the session works again after the fault. session-file.md §3.
//!
//! A full disk needs root, to mount a small tmpfs. Failing system calls need a C compiler, to build a preloaded
//! library. Without these the tests are skipped, or fail if TREELINED_FAULTS is `required`.

mod files;
mod locks;
mod marks;
mod shed;
mod shim;
mod syncs;
mod writes;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, prlimit};

pub(crate) use self::shim::{Shim, SmallDisk, shimmed};
use crate::harness::*;

/// A session with u1 → a1, and its file.
fn begun(d: &mut Daemon) -> PathBuf {
    d.create();
    d.chain(&["u1", "a1"]);
    d.home.only_file()
}

pub(crate) fn quiet(home: &Arc<Home>, args: &[&str], env: &[(&str, &str)]) -> Daemon {
    let mut d = Daemon::start_in(home, args, env);
    d.ignore_bookkeeping();
    d
}

/// Checks that the daemon and a second one that reopens the file have the same entries and leaf.
#[track_caller]
fn agrees(d: &mut Daemon, path: &Path, expected: &[&str]) {
    assert_eq!(d.ids(), expected, "in memory");
    assert_eq!(d.leaf(), *expected.last().unwrap(), "the leaf");
    let mut other = quiet(&Home::new(), &[], &[]);
    other.open(path);
    assert_eq!(other.ids(), expected, "in the file");
    assert_eq!(
        other.leaf(),
        *expected.last().unwrap(),
        "the leaf on reopening"
    );
}

/// Checks that an append fails with `kind` during a fault, and succeeds after `end` has removed the fault.
#[track_caller]
fn fails_then_recovers(d: &mut Daemon, path: &Path, kind: &str, end: impl FnOnce()) {
    let params = json!({"message": user("x"), "entryId": "u2"});
    d.err_kind("append_message", params.clone(), kind);
    assert_eq!(d.leaf_if_readable(), json!("a1"), "the leaf did not move");
    end();
    d.ok("append_message", params);
    agrees(d, path, &["u1", "a1", "u2"]);
}

impl Daemon {
    /// The leaf. A read may fail while the file is missing; then the leaf from before the fault.
    fn leaf_if_readable(&mut self) -> Json {
        self.call("get_leaf", json!({}))
            .map_or(json!("a1"), |found| found["leafId"].clone())
    }
}

fn limit_to(d: &Daemon, resource: Resource, current: Option<u64>) {
    let maximum = rustix::process::getrlimit(resource).maximum;
    let current = current.or(maximum);
    prlimit(Some(d.pid()), resource, Rlimit { current, maximum }).unwrap();
}
