//! A snapshot: the files of a root, as a tree of the shadow repository (files.md §2 and §3).

use crate::exclude::{self, Limits, Skipped};
use crate::foreign::is_in_repository;
use crate::git::{Shadow, ask_user};
use crate::left_out;
use crate::name::Name;
use anyhow::{Context, bail};
use rustix::fs::{StatVfs, statvfs};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const LAST: &str = "refs/tl-last";

/// The files of a root at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub tree: String,
    pub skipped: Skipped,
    /// The names of all files in the tree.
    pub names: Vec<Name>,
    pub ms: u64,
}

/// HEAD and the branch of the user's repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    pub commit: Option<String>,
    pub branch: Option<String>,
}

/// Saves the files of the root as a tree. No ref keeps the tree yet.
pub fn take(shadow: &Shadow, limits: Limits) -> anyhow::Result<Snapshot> {
    let start = Instant::now();
    check_space(&shadow.dir, limits)?;
    exclude::write_rules(shadow)?;
    let new = exclude::new_files(shadow, limits)?;
    let mut said = add(shadow, &new.skipped)?;
    if !said.is_empty() {
        // If a folder was replaced by a link to itself, git warns once about the files that were in it, and removes
        // these files from the index. So the second call does not warn about them.
        said = add(shadow, &new.skipped)?;
    }
    // If a folder cannot be read, git only warns. Here that is an error.
    if !said.is_empty() {
        bail!("{said}");
    }
    let tree = shadow.line(["write-tree"])?;
    let ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Snapshot {
        tree,
        skipped: new.as_skipped(),
        names: new.skipped,
        ms,
    })
}

/// Updates the index to the present files. Returns git's warnings.
fn add(shadow: &Shadow, skipped: &[Name]) -> anyhow::Result<String> {
    let args = [
        "add",
        "--all",
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
    ];
    Ok(shadow.run(args, Some(exclude::pathspecs(skipped)))?.said)
}

/// Makes a commit of a tree. Its message names the files that were left out individually.
pub fn commit(
    shadow: &Shadow,
    tree: &str,
    parent: Option<&str>,
    skipped: &[Name],
) -> anyhow::Result<String> {
    let mut args = vec!["commit-tree", tree, "-F", "-"];
    args.extend(parent.iter().flat_map(|parent| ["-p", parent]));
    let message = left_out::message(skipped)?;
    let id = shadow.run(args, Some(message.into_bytes()))?.out;
    Ok(String::from_utf8(id)?.trim_end().to_owned())
}

/// The tree of the root when it was last saved. The ref `refs/tl-last` points to its commit, which has no parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Last {
    pub tree: String,
    pub commit: String,
}

/// The tree that was last saved. `None` if nothing was saved, or if it is lost.
pub fn last(shadow: &Shadow) -> Option<Last> {
    let args = ["for-each-ref", "--format=%(objectname) %(tree)", LAST];
    let line = shadow.line(args).ok()?;
    let (commit, tree) = line.split_once(' ')?;
    let (commit, tree) = (commit.to_owned(), tree.to_owned());
    Some(Last { tree, commit })
}

/// Remembers a tree as the one that was last saved.
pub fn remember(shadow: &Shadow, tree: &str) -> anyhow::Result<Last> {
    if let Some(last) = last(shadow).filter(|last| last.tree == tree) {
        return Ok(last);
    }
    let commit = commit(shadow, tree, None, &[])?;
    shadow.run(["update-ref", LAST, &commit], None)?;
    let tree = tree.to_owned();
    Ok(Last { tree, commit })
}

fn check_space(folder: &Path, limits: Limits) -> anyhow::Result<()> {
    let free = free_space(folder)?;
    match free < limits.free {
        true => bail!(
            "only {} MiB are free in {}; {} MiB must be: --free changes that",
            free >> 20,
            folder.display(),
            limits.free >> 20
        ),
        false => Ok(()),
    }
}

/// The number of bytes that this user may still write.
pub fn free_space(folder: &Path) -> anyhow::Result<u64> {
    let StatVfs {
        f_bavail, f_frsize, ..
    } = statvfs(folder).context("look for free space")?;
    Ok(f_bavail.saturating_mul(f_frsize))
}

/// HEAD and the branch of the user's repository, if the root has a repository.
pub fn head(root: &Path) -> anyhow::Result<Head> {
    if root.join(".git").symlink_metadata().is_err() {
        return Ok(Head::default());
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let commit = ask_user(root, &["rev-parse", "--quiet", "--verify", "HEAD"])?.map(text);
    let branch = ask_user(root, &["symbolic-ref", "--quiet", "--short", "HEAD"])?.map(text);
    Ok(Head { commit, branch })
}

/// The root for a folder: the working tree that the folder is in, or the folder itself.
pub fn working_tree(folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = folder
        .canonicalize()
        .with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut above = folder.ancestors();
    let top = above.find(|above| above.join(".git").symlink_metadata().is_ok());
    Ok(top.unwrap_or(&folder).to_owned())
}

/// Fails for a folder that must not be saved.
pub fn check_root(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    // If the variable `HOME` is missing, as in timers, the home directory comes from the list of users.
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    if path.parent().is_none() {
        bail!("{shown} is the whole disk; name a project's folder");
    }
    if home.as_deref() == Some(path) {
        bail!("{shown} is the home folder; name a project's folder");
    }
    if home.is_some_and(|home| home.starts_with(path)) {
        bail!("{shown} holds the home folder; name a project's folder");
    }
    if is_in_repository(path) {
        bail!("{shown} is in a repository itself; name a working tree");
    }
    if path.to_str().is_none() {
        bail!("{shown} is not UTF-8; rename the folder");
    }
    if is_remote(path)? {
        bail!("{shown} is on a network file system; files there are not saved");
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn is_remote(path: &Path) -> anyhow::Result<bool> {
    // The file systems are NFS, SMB, CIFS, SMB2, 9p, FUSE, AFS, Ceph, Coda and NCP, by their numbers in
    // linux/magic.h.
    const REMOTE: [u64; 10] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
        0x6573_5546,
        0x5346_414f,
        0x00c3_6400,
        0x7375_7245,
        0x564c,
    ];
    let stat = rustix::fs::statfs(path).context("look at the file system")?;
    #[allow(clippy::cast_sign_loss, reason = "a set of bits")]
    let kind = stat.f_type as u64 & 0xffff_ffff;
    Ok(REMOTE.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_path: &Path) -> anyhow::Result<bool> {
    Ok(false)
}

/// The present time in Unix milliseconds.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
