//! Decides which files are not saved (files.md §3). The reason is a rule of the user, one of our own rules, the size of
//! the file, or another repository that contains it.

use crate::foreign::Repositories;
use crate::git::{Shadow, ask_user};
use crate::name::Name;
use crate::place::{STAGE, UNFILLED};
use anyhow::{Context, bail};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A new file of more bytes than this is not saved.
const MAX_NEW: u64 = 2 << 20;
/// The most files that may be left out individually, without a rule.
const MAX_SKIPPED: usize = 5_000;
/// The most names of such files in a record.
const MAX_NAMED: usize = 100;
/// The most bytes of a file with rules.
const MAX_RULES: u64 = 1 << 20;

/// Our own rules. A `.gitignore` may overrule them.
const RULES: &str = "node_modules/\ntarget/\n.venv/\n.env*\n";

/// The limits for saving a root.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub files: usize,
    pub bytes: u64,
    /// The free space that saving must leave on the disk, in bytes.
    pub free: u64,
}

impl Limits {
    pub const USUAL: Limits = Limits {
        files: 200_000,
        bytes: 4 << 30,
        free: 5 << 30,
    };
}

/// The files that were left out individually.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The number of these files.
    pub files: usize,
    /// Their total size in bytes. Repositories do not count.
    pub bytes: u64,
    /// The first names, in the order of their bytes. The name of a repository ends with `/`.
    pub paths: Vec<Name>,
}

/// The new files: the number of files that are saved, and the names of all other new files.
pub struct New {
    pub files: usize,
    pub bytes: u64,
    pub skipped: Vec<Name>,
    pub skipped_bytes: u64,
}

impl New {
    pub fn as_skipped(&self) -> Skipped {
        Skipped {
            files: self.skipped.len(),
            bytes: self.skipped_bytes,
            paths: self.skipped.iter().take(MAX_NAMED).cloned().collect(),
        }
    }
}

/// Writes the user's rules and our own into the shadow repository.
pub fn write_rules(shadow: &Shadow) -> anyhow::Result<()> {
    let id = "[0-9a-f]".repeat(16);
    let mut rules = format!("/{STAGE}{id}/\n/{STAGE}{id}{UNFILLED}/\n{RULES}").into_bytes();
    if shadow.root.join(".git").symlink_metadata().is_ok() {
        for file in user_rules(&shadow.root)? {
            rules.extend(read_rules(&file)?);
            rules.push(b'\n');
        }
    }
    let path = shadow.dir.join("info/exclude");
    // The file is written only if it differs, because git forgets what it knows about folders when the file changes.
    if fs::read(&path).ok().as_deref() != Some(&rules) {
        fs::write(&path, rules).context("write the rules of what is saved")?;
    }
    Ok(())
}

/// The files with rules that git reads in addition to `.gitignore` files. Later files overrule earlier files.
fn user_rules(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let path = |bytes: Vec<u8>| PathBuf::from(OsStr::from_bytes(&bytes));
    let named = ask_user(
        root,
        &["config", "--type=path", "--get", "core.excludesFile"],
    )?;
    // git resolves a relative path from the top of the working tree.
    let named = named.map(|named| root.join(path(named)));
    let global = named.or_else(|| {
        let config = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
        let config = config.map(PathBuf::from).or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(PathBuf::from(home).join(".config"))
        });
        config.map(|config| config.join("git/ignore"))
    });
    let Some(own) = ask_user(root, &["rev-parse", "--git-path", "info/exclude"])? else {
        bail!("git cannot read the repository in {}", root.display());
    };
    Ok(global.into_iter().chain([root.join(path(own))]).collect())
}

fn read_rules(file: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("read the rules in {}", file.display());
    // Opening a file that is not regular, such as a pipe, could wait for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(file, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
        opened => fs::File::from(opened.with_context(failed)?),
    };
    if !opened.metadata().with_context(failed)?.is_file() {
        if file == Path::new("/dev/null") {
            return Ok(Vec::new());
        }
        bail!("{} is not a regular file", file.display());
    }
    let mut rules = Vec::new();
    let read = opened.take(MAX_RULES + 1).read_to_end(&mut rules);
    if read.with_context(failed)? as u64 > MAX_RULES {
        bail!("{} has more than {MAX_RULES} bytes", file.display());
    }
    Ok(rules)
}

/// Finds the files that no rule leaves out and that were not saved before. Fails if they exceed the limits.
pub fn new_files(shadow: &Shadow, limits: Limits) -> anyhow::Result<New> {
    let args = ["ls-files", "-z", "--others", "--exclude-standard"];
    let answer = shadow.run(args, None)?;
    if !answer.said.is_empty() {
        bail!("{}", answer.said);
    }
    let mut new = New {
        files: 0,
        bytes: 0,
        skipped: Vec::new(),
        skipped_bytes: 0,
    };
    let names = answer.out.split(|byte| *byte == 0);
    let mut repositories = Repositories::new(&shadow.root);
    let mut found = BTreeSet::new();
    for name in names.filter(|name| !name.is_empty()) {
        let repository = repositories.of(&Name(name.to_owned()));
        if repository.as_ref().is_some_and(|one| found.contains(one)) {
            continue;
        }
        found.extend(repository.clone());
        let name = repository.as_ref().map_or(name, |one| one.0.as_slice());
        let size = match name.last() {
            _ if repository.is_some() => None,
            // The name is a repository of the user inside the root.
            Some(b'/') => None,
            _ => match shadow.root.join(OsStr::from_bytes(name)).symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => Some(metadata.context("look at a file")?.len()),
            },
        };
        match size {
            Some(size) if size <= MAX_NEW => {
                new.files += 1;
                new.bytes = new.bytes.saturating_add(size);
            }
            size => {
                new.skipped.push(Name(name.to_owned()));
                let size = size.unwrap_or(0);
                new.skipped_bytes = new.skipped_bytes.saturating_add(size);
            }
        }
        let why = match () {
            () if new.files > limits.files => format!("more than {} files", limits.files),
            () if new.bytes > limits.bytes => format!("more than {} MB", limits.bytes >> 20),
            () if new.skipped.len() > MAX_SKIPPED => {
                format!("more than {MAX_SKIPPED} files over {} MiB", MAX_NEW >> 20)
            }
            () => continue,
        };
        let root = shadow.root.display();
        bail!("{root} has {why}; leave folders out in its .gitignore");
    }
    new.skipped.sort();
    Ok(new)
}

/// The paths for `git add`: the whole root without the skipped names.
pub fn pathspecs(skipped: &[Name]) -> Vec<u8> {
    let mut specs = b":(top)\0".to_vec();
    for name in skipped {
        specs.extend(b":(top,exclude,literal)");
        specs.extend(name.0.strip_suffix(b"/").unwrap_or(&name.0));
        specs.push(0);
    }
    specs
}
