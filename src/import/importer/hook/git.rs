//! Finds the position of a folder in git, that is its branch and commit. Only git's files are read. git itself is not
//! started, because it would run programs that the configuration of the folder names.

use crate::importer::source::regular;
use std::io::Read;
use std::path::{Path, PathBuf};
use treelined_core::tags::{GitPlace, MOST_GIT_BYTES};

/// The most bytes of a file that has one line.
const MAX_LINE: u64 = 4_096;
/// The most bytes of `packed-refs` that are searched.
const MAX_PACKED: u64 = 4 << 20;
/// The most folders between a folder and the root of its worktree.
const MAX_ABOVE: usize = 64;

/// The branch, the commit and the root of the worktree. `None` outside of git, or if git's files cannot be read.
pub(super) fn place_of(folder: &Path) -> Option<GitPlace> {
    if !folder.is_absolute() {
        return None;
    }
    let above = folder.ancestors().take(MAX_ABOVE);
    let (root, git) = above
        .filter_map(|root| Some((root, git_folder(root)?)))
        .next()?;
    let head = line(&git.join("HEAD"))?;
    let (branch, commit) = match head.strip_prefix("ref: ") {
        Some(name) => (branch_of(name), commit_of(&git, name)),
        None => (None, commit(&head)),
    };
    let worktree = root.to_str().filter(|root| root.len() <= MOST_GIT_BYTES);
    Some(GitPlace {
        branch,
        commit,
        worktree: worktree.map(str::to_owned),
    })
}

/// The folder with git's files: `.git`, or the folder that a file `.git` names in an added worktree.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let at = root.join(".git");
    if at.is_dir() {
        return Some(at);
    }
    let named = line(&at)?;
    let named = named.strip_prefix("gitdir: ")?;
    Some(root.join(named))
}

/// The branch that `HEAD` names. In a repository with tables of references, `HEAD` names `refs/heads/.invalid`, which
/// is not a branch.
fn branch_of(name: &str) -> Option<String> {
    let branch = name.strip_prefix("refs/heads/")?;
    (branch != ".invalid").then(|| branch.to_owned())
}

/// The commit of a reference: from the reference's own file, or from a line of `packed-refs`.
fn commit_of(git: &Path, name: &str) -> Option<String> {
    let is_plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !is_plain || !name.starts_with("refs/") {
        return None;
    }
    let common = line(&git.join("commondir"));
    let common = common.map_or_else(|| git.to_owned(), |common| git.join(common));
    if let Some(own) = line(&common.join(name)) {
        return commit(&own);
    }
    let packed = read(&common.join("packed-refs"), MAX_PACKED)?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(id, of)| (of == name).then(|| commit(id))?)
}

/// The text, if it is the id of a commit.
fn commit(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_owned())
}

/// The line of a file that has only one.
fn line(path: &Path) -> Option<String> {
    let text = read(path, MAX_LINE)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    (!line.is_empty() && !line.contains('\n')).then(|| line.to_owned())
}

fn read(path: &Path, most: u64) -> Option<String> {
    let (file, status) = regular::open(path).ok()?;
    let mut text = String::new();
    let is_small = status.size <= most;
    (is_small && file.take(most).read_to_string(&mut text).is_ok()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn said(folder: &Path) -> Option<(String, String)> {
        let place = place_of(folder)?;
        let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        assert!(place.worktree.is_some());
        Some((text(place.branch), text(place.commit)))
    }

    #[test]
    fn the_branch_and_its_commit_are_read_from_git() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let of = |branch: &str, commit: &str| Some((branch.to_owned(), commit.to_owned()));
        assert_eq!(said(&root.join("none")), None);
        write(
            &root,
            &[
                ("a/.git/HEAD", "ref: refs/heads/fix/build\n"),
                ("a/.git/refs/heads/fix/build", &format!("{COMMIT}\n")),
                ("a/sub/x", ""),
                ("b/.git/HEAD", "ref: refs/heads/main\n"),
                (
                    "b/.git/packed-refs",
                    &format!("# pack-refs\n{COMMIT} refs/heads/main\n"),
                ),
                ("c/.git/HEAD", &format!("{COMMIT}\n")),
                ("d/.git/HEAD", "ref: refs/heads/new\n"),
                ("e/.git/HEAD", "ref: refs/heads/.invalid\n"),
                ("tree/.git", "gitdir: ../a/.git/worktrees/tree\n"),
                ("a/.git/worktrees/tree/HEAD", "ref: refs/heads/other\n"),
                ("a/.git/worktrees/tree/commondir", "../..\n"),
                ("a/.git/refs/heads/other", &format!("{COMMIT}\n")),
            ],
        );
        assert_eq!(said(&root.join("a/sub")), of("fix/build", COMMIT));
        assert_eq!(
            place_of(&root.join("a/sub")).unwrap().worktree.unwrap(),
            root.join("a").to_str().unwrap()
        );
        assert_eq!(said(&root.join("b")), of("main", COMMIT));
        assert_eq!(said(&root.join("c")), of("-", COMMIT));
        assert_eq!(said(&root.join("d")), of("new", "-"));
        assert_eq!(said(&root.join("e")), of("-", "-"));
        assert_eq!(said(&root.join("tree")), of("other", COMMIT));
    }

    /// A malicious repository must not make the reader reveal the content of other files.
    #[test]
    fn hostile_files_of_git_say_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write(
            &root,
            &[
                ("secret", "password\n"),
                ("a/.git/HEAD", "ref: refs/../../../secret\n"),
                ("b/.git/HEAD", "ref: refs/heads/x\nmore\n"),
                ("c/.git/HEAD", &"x".repeat(5_000)),
                ("d/.git/HEAD", "ref: refs/heads/x\n"),
                ("d/.git/refs/heads/x", "password\n"),
                ("e/.git/x", ""),
            ],
        );
        std::os::unix::fs::symlink(root.join("secret"), root.join("e/.git/HEAD")).unwrap();
        let none = ("-".to_owned(), "-".to_owned());
        assert_eq!(said(&root.join("a")), Some(none));
        for name in ["b", "c", "e"] {
            assert_eq!(said(&root.join(name)), None, "{name}");
        }
        assert_eq!(
            said(&root.join("d")),
            Some(("x".to_owned(), "-".to_owned()))
        );
        assert_eq!(place_of(Path::new("a")), None);
    }
}
