//! A folder with files of every kind, which change at random.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Random numbers. The same seed gives the same numbers (SplitMix64).
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % most as u64).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// The state of a path: a file, a link or an empty folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    File(Vec<u8>, u32),
    Link(PathBuf),
}

pub(super) type Files = BTreeMap<Vec<u8>, Node>;

/// Names with line ends, with bytes that are not UTF-8, with case as the only difference, and with characters that
/// git and shells obey.
const NAMES: [&[u8]; 16] = [
    b"a",
    b"b",
    b"A",
    b"new\nline",
    b"\xff\xfe",
    "ä".as_bytes(),
    b" space ",
    b"-dash",
    b":(top)",
    b"*",
    b"#",
    b"back\\slash",
    b"c.log",
    b"ignored",
    b"\x1b[31m",
    b"tab\t",
];

const IGNORED: &str = "*.log\nignored\n";

pub(super) fn is_ignored(name: &[u8]) -> bool {
    let mut parts = name.split(|byte| *byte == b'/');
    parts.any(|part| part.ends_with(b".log") || part == b"ignored")
}

pub(super) struct World {
    pub(super) root: PathBuf,
    number: usize,
}

impl World {
    /// A new folder. Half of these folders are a repository of the user's.
    pub(super) fn new(root: &Path, chance: &mut Chance) -> World {
        fs::create_dir(root).unwrap();
        fs::write(root.join(".gitignore"), IGNORED).unwrap();
        let world = World {
            root: root.to_owned(),
            number: 0,
        };
        if chance.below(2) == 0 {
            commit_first(root);
        }
        world
    }

    fn path(&self, chance: &mut Chance) -> PathBuf {
        let mut path = self.root.clone();
        for _ in 0..=chance.below(3) {
            let name = NAMES[chance.below(NAMES.len())];
            path.push(OsStr::from_bytes(name));
        }
        path
    }

    /// Makes some random changes.
    pub(super) fn change(&mut self, chance: &mut Chance, most: usize) {
        for _ in 0..chance.below(most + 1) {
            self.change_once(chance);
        }
    }

    pub(super) fn change_once(&mut self, chance: &mut Chance) {
        let path = self.path(chance);
        self.number += 1;
        let mut bytes = format!("{} {}\r\n", self.number, chance.below(1 << 30)).into_bytes();
        // One in four changes may replace a file by a folder, or a folder by a file.
        let replaces = chance.below(4) == 0;
        if !clear_way(&self.root, &path, replaces) {
            return;
        }
        let there = path.symlink_metadata().ok();
        let is_file = there.as_ref().is_some_and(|file| file.is_file());
        match chance.below(10) {
            0..5 => {
                bytes.resize(bytes.len() + chance.below(3000), 0);
                if put_folder(&path, there, replaces) {
                    fs::write(&path, bytes).unwrap();
                }
            }
            5 | 6 => remove(&path, there, replaces),
            7 if is_file => {
                let mode = *chance.of(&[0o644, 0o755, 0o600, 0o700, 0o664]);
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            7 => {}
            _ => {
                let target = *chance.of(&["a", "/nowhere/passwd", "..", "nowhere", "ignored"]);
                if put_folder(&path, there, replaces) {
                    symlink(target, &path).unwrap();
                }
            }
        }
    }

    /// Writes a file as an editor does: in place, or as a new file that replaces the old one.
    pub(super) fn edit(&mut self, name: &[u8], chance: &mut Chance) {
        let path = self.root.join(OsStr::from_bytes(name));
        self.number += 1;
        if !clear_way(&self.root, &path, false) || path.is_dir() {
            return;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("edit {} {}\n", self.number, chance.below(1 << 30));
        let beside = self.root.join("beside.log");
        match chance.below(2) == 0 && !path.is_symlink() {
            true => fs::write(&path, text).unwrap(),
            false => {
                fs::write(&beside, text).unwrap();
                fs::rename(beside, path).unwrap();
            }
        }
    }

    /// All files except those of the user's repository.
    pub(super) fn files(&self) -> Files {
        let mut files = Files::new();
        walk(&self.root, &self.root, &mut files);
        files
    }
}

/// Makes a repository with one commit of the `.gitignore`. The calls of git for it are made once, as each takes
/// milliseconds.
fn commit_first(root: &Path) {
    static MADE: OnceLock<BTreeMap<PathBuf, Option<Vec<u8>>>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join(".gitignore"), IGNORED).unwrap();
        git(folder, &["init", "--quiet", "--template="]);
        git(folder, &["add", ".gitignore"]);
        git(folder, &["commit", "--quiet", "--message", "first"]);
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.join(".git")];
        while let Some(above) = folders.pop() {
            let name = above.strip_prefix(folder).unwrap().to_owned();
            found.insert(name, None);
            for path in fs::read_dir(above).unwrap() {
                let path = path.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap().to_owned();
                    found.insert(name, Some(fs::read(path).unwrap()));
                }
            }
        }
        found
    });
    // A folder is before the files in it.
    for (name, bytes) in made {
        match bytes {
            Some(bytes) => fs::write(root.join(name), bytes).unwrap(),
            None => fs::create_dir(root.join(name)).unwrap(),
        }
    }
}

/// Clears the way to a path: removes files and links above it if they may be removed. Returns whether only folders
/// are above it now.
fn clear_way(root: &Path, path: &Path, replaces: bool) -> bool {
    for above in path.ancestors().skip(1) {
        if above == root {
            return true;
        }
        if above.symlink_metadata().is_ok_and(|file| !file.is_dir()) {
            if !replaces {
                return false;
            }
            fs::remove_file(above).unwrap();
        }
    }
    false
}

/// Removes a file or a link. Removes a folder only if it may be removed.
fn remove(path: &Path, there: Option<fs::Metadata>, replaces: bool) {
    match there {
        Some(file) if !file.is_dir() => fs::remove_file(path).unwrap(),
        Some(_) if replaces => fs::remove_dir_all(path).unwrap(),
        _ => {}
    }
}

/// Makes the folder of a path. Returns whether the path is free.
fn put_folder(path: &Path, there: Option<fs::Metadata>, replaces: bool) -> bool {
    remove(path, there, replaces);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path.symlink_metadata().is_err()
}

fn walk(root: &Path, folder: &Path, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path == root.join(".git") {
            continue;
        }
        let metadata = path.symlink_metadata().unwrap();
        let name = path
            .strip_prefix(root)
            .unwrap()
            .as_os_str()
            .as_bytes()
            .to_owned();
        if metadata.is_dir() {
            walk(root, &path, files);
        } else if metadata.is_symlink() {
            files.insert(name, Node::Link(fs::read_link(&path).unwrap()));
        } else {
            let node = Node::File(fs::read(&path).unwrap(), metadata.mode() & 0o777);
            files.insert(name, node);
        }
    }
}

/// The files that are saved. In place of the mode, each has the bit that makes it a program.
pub(super) fn saved(files: &Files) -> Files {
    let kept = files.iter().filter(|(name, _)| !is_ignored(name));
    kept.map(|(name, node)| {
        let node = match node {
            Node::File(bytes, mode) => Node::File(bytes.clone(), mode & 0o100),
            link => link.clone(),
        };
        (name.clone(), node)
    })
    .collect()
}

pub(super) fn ignored(files: &Files) -> Files {
    let left = files.iter().filter(|(name, _)| is_ignored(name));
    left.map(|(name, node)| (name.clone(), node.clone()))
        .collect()
}

/// All files of the user's repository, with the times of their changes.
pub(super) fn repository(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, i64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.join(".git")];
    while let Some(folder) = folders.pop() {
        let Ok(files) = fs::read_dir(&folder) else {
            continue;
        };
        for file in files {
            let file = file.unwrap();
            let metadata = file.metadata().unwrap();
            let bytes = match metadata.is_dir() {
                true => {
                    folders.push(file.path());
                    Vec::new()
                }
                false => fs::read(file.path()).unwrap(),
            };
            found.insert(file.path(), (bytes, metadata.mtime_nsec()));
        }
    }
    found
}

pub(super) fn git(folder: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=u",
            "-c",
            "user.email=u@localhost",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "git {args:?}");
}
