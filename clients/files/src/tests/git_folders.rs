//! Folders that are special to git: repositories inside the root, submodules, attributes, sparse and linked working
//! trees.

use super::restoring::Scene;
use super::world::{git, repository};
use super::{LIMITS, go, to, undo};
use crate::name::Name;
use crate::snapshot;
use crate::state::WAIT;
use std::fs;
use std::os::unix::ffi::OsStrExt;

fn skipped(scene: &Scene) -> Vec<Name> {
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    snapshot::take(&shadow, LIMITS).unwrap().skipped.paths
}

fn commit_all(folder: &std::path::Path) {
    git(folder, &["add", "--all"]);
    git(
        folder,
        &["commit", "--quiet", "--allow-empty", "--message", "x"],
    );
}

/// Without care, `git add` fails at a repository that has no commit, and saves no files of one that has commits.
#[test]
fn repositories_within_are_left_out_and_named() {
    let scene = Scene::new();
    for name in ["empty", "with"] {
        fs::create_dir(scene.work.join(name)).unwrap();
        git(&scene.work.join(name), &["init", "--quiet"]);
        scene.write(&format!("{name}/file"), "theirs");
    }
    commit_all(&scene.work.join("with"));
    scene.write("own", "1");
    let named = [b"empty/".to_vec(), b"with/".to_vec()].map(Name);
    assert_eq!(skipped(&scene), named);
    let commit = scene.save();
    scene.write("own", "2");
    scene.write("with/file", "theirs, changed");
    let own = repository(&scene.work.join("with"));
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.read("own"), "1");
    assert_eq!(scene.read("with/file"), "theirs, changed");
    assert!(own == repository(&scene.work.join("with")));
}

/// Once a restore replaced the branch, the index and the configuration of a repository that was not called `.git`.
#[test]
fn repositories_by_any_name_are_left_alone() {
    let scene = Scene::new();
    git(&scene.work, &["init", "--quiet", "--bare", ".bare"]);
    scene.write(".git", "gitdir: ./.bare\n");
    git(&scene.work, &["config", "core.bare", "false"]);
    git(&scene.work, &["init", "--quiet", "--bare", "deep/shared"]);
    // The user's rules overrule our own.
    scene.write(".gitignore", "!.bare/\n!.hg/\n!*\n");
    let foreign = [".hg/store", "sub/.svn/wc.db", ".JJ/repo", "_darcs/x"];
    for name in foreign {
        scene.write(name, "1");
    }
    scene.write("own", "1");
    commit_all(&scene.work);
    let named = [
        ".JJ/",
        ".bare/",
        ".hg/",
        "_darcs/",
        "deep/shared/",
        "sub/.svn/",
    ];
    assert_eq!(skipped(&scene), named.map(|name| Name(name.into())));
    let commit = scene.save();
    scene.write("own", "2");
    for name in foreign {
        scene.write(name, "2");
    }
    commit_all(&scene.work);
    git(&scene.work.join("deep/shared"), &["config", "a.b", "c"]);
    let of = |name: &str| {
        let mut command = std::process::Command::new("git");
        command.arg("--git-dir").arg(scene.work.join(name));
        let output = command.args(["config", "--list"]).output().unwrap();
        let head = std::fs::read(scene.work.join(name).join("index")).ok();
        (output.stdout, head)
    };
    let own = [of(".bare"), of("deep/shared")];
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.read("own"), "1");
    assert!(own == [of(".bare"), of("deep/shared")]);
    for name in foreign {
        assert_eq!(scene.read(name), "2");
    }
    for name in [".bare", "deep/shared/objects"] {
        assert!(snapshot::check_root(&scene.work.join(name)).is_err());
    }
}

/// A folder is saved, and later becomes a repository.
#[test]
fn a_folder_that_has_become_a_repository_is_left_alone() {
    let scene = Scene::new();
    for name in ["x/HEAD", "x/objects/a", "x/refs/b", "y/HEAD", "y/objects/a"] {
        scene.write(name, "1");
    }
    fs::rename(scene.work.join("x/refs"), scene.work.join("refs")).unwrap();
    let commit = scene.save();
    fs::rename(scene.work.join("refs"), scene.work.join("x/refs")).unwrap();
    for name in ["x/HEAD", "y/HEAD"] {
        scene.write(name, "2");
    }
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!([scene.read("x/HEAD"), scene.read("y/HEAD")], ["2", "1"]);
    assert!(scene.work.join("x/refs/b").exists());
}

#[test]
fn a_submodule_is_left_alone() {
    let scene = Scene::new();
    let other = scene.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "--quiet"]);
    commit_all(&other);
    git(&scene.work, &["init", "--quiet"]);
    git(
        &scene.work,
        &[
            "submodule",
            "--quiet",
            "add",
            other.to_str().unwrap(),
            "sub",
        ],
    );
    let commit = scene.save();
    scene.write("sub/file", "theirs");
    scene.write("own", "2");
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.read("sub/file"), "theirs");
    assert!(!scene.work.join("own").exists());
}

/// Without care, attributes change line ends, and the filter of LFS stores a pointer in place of the file.
#[test]
fn attributes_change_no_bytes() {
    let scene = Scene::new();
    git(&scene.work, &["init", "--quiet"]);
    scene.write(
        ".gitattributes",
        "*.txt text eol=lf ident\n*.u16 working-tree-encoding=UTF-16LE text\n*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    scene.write("a.txt", "one\r\n$Id$\r\n");
    scene.write("b.u16", "odd");
    scene.write("c.bin", "not a pointer");
    let commit = scene.save();
    for name in ["a.txt", "b.u16", "c.bin"] {
        scene.write(name, "changed");
    }
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    let texts = ["a.txt", "b.u16", "c.bin"].map(|name| scene.read(name));
    assert_eq!(texts, ["one\r\n$Id$\r\n", "odd", "not a pointer"]);
}

/// Once a crash left the attributes empty, and line ends were changed from then on.
#[test]
fn attributes_that_are_not_whole_are_written_again() {
    let scene = Scene::new();
    scene.write(".gitattributes", "*.txt text eol=lf\n");
    scene.save();
    fs::write(scene.root.repository().join("info/attributes"), "").unwrap();
    scene.write("a.txt", "one\r\n");
    let commit = scene.save();
    fs::remove_file(scene.work.join("a.txt")).unwrap();
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.read("a.txt"), "one\r\n");
}

/// Once a relative path of a file with rules was resolved in the folder in which the program runs, and secrets were
/// saved.
#[test]
fn rules_may_be_named_from_the_top() {
    let scene = Scene::new();
    git(&scene.work, &["init", "--quiet"]);
    scene.write("rules", "*.secret\n");
    git(&scene.work, &["config", "core.excludesFile", "rules"]);
    scene.write("a.secret", "1");
    let commit = scene.save();
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let files = shadow.line(["ls-tree", "-r", "--name-only", &commit]);
    assert_eq!(files.unwrap(), "rules");
}

/// Once a snapshot waited for ever at a pipe, and kept the lock.
#[test]
fn rules_that_are_a_pipe_are_refused() {
    let scene = Scene::new();
    git(&scene.work, &["init", "--quiet"]);
    let pipe = scene.folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let named = |path: &str| git(&scene.work, &["config", "core.excludesFile", path]);
    named(pipe.to_str().unwrap());
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let error = snapshot::take(&shadow, LIMITS).unwrap_err().to_string();
    assert!(error.contains("pipe is not a regular file"), "{error}");
    named("/dev/null");
    snapshot::take(&shadow, LIMITS).unwrap();
}

#[test]
fn the_users_rules_and_ours_leave_files_out() {
    let scene = Scene::new();
    git(&scene.work, &["init", "--quiet"]);
    fs::write(scene.work.join(".git/info/exclude"), "private\n").unwrap();
    let rules = scene.folder.path().join("rules");
    fs::write(&rules, "*.mine\n").unwrap();
    git(
        &scene.work,
        &["config", "core.excludesFile", rules.to_str().unwrap()],
    );
    scene.write(".gitignore", "*.out\n!large\n");
    for name in [
        "private",
        "x.mine",
        "x.out",
        "node_modules/x",
        "target/x",
        ".env.local",
        "kept",
    ] {
        scene.write(name, "1");
    }
    fs::write(scene.work.join("large"), vec![0; (2 << 20) + 1]).unwrap();
    fs::write(scene.work.join("large\nline"), vec![0; (2 << 20) + 1]).unwrap();
    let commit = scene.save();
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let files = shadow
        .run(["ls-tree", "-r", "-z", "--name-only", &commit], None)
        .unwrap();
    assert_eq!(files.out, b".gitignore\0kept\0");
    drop(lock);
    let named = ["large", "large\nline"].map(|name| Name(name.as_bytes().to_vec()));
    assert_eq!(skipped(&scene), named);
}

#[test]
fn sparse_and_linked_working_trees_are_restored() {
    let scene = Scene::new();
    let main = scene.folder.path().join("main");
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "--quiet"]);
    fs::create_dir_all(main.join("in")).unwrap();
    fs::create_dir_all(main.join("out")).unwrap();
    fs::write(main.join("in/a"), "1").unwrap();
    fs::write(main.join("out/b"), "1").unwrap();
    commit_all(&main);
    fs::remove_dir(&scene.work).unwrap();
    git(
        &main,
        &[
            "worktree",
            "add",
            "--quiet",
            scene.work.to_str().unwrap(),
            "-b",
            "linked",
        ],
    );
    git(&scene.work, &["sparse-checkout", "set", "in"]);
    // The folder was removed and made again.
    let root = super::root_in(scene.folder.path(), &scene.work);
    let scene = Scene { root, ..scene };
    assert!(!scene.work.join("out").exists());
    assert_eq!(
        snapshot::working_tree(&scene.work.join("in")).unwrap(),
        scene.root.path
    );
    let own = repository(&main);
    let commit = scene.save();
    scene.write("in/a", "2");
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.read("in/a"), "1");
    assert!(!scene.work.join("out").exists());
    undo(&scene.root).unwrap();
    assert_eq!(scene.read("in/a"), "2");
    assert!(
        own == repository(&main),
        "the user's repository has changed"
    );
    assert_ne!(
        scene.root.path.as_os_str().as_bytes(),
        main.as_os_str().as_bytes()
    );
}

#[test]
fn a_root_that_is_too_large_is_refused() {
    let scene = Scene::new();
    for number in 0..5 {
        scene.write(&number.to_string(), "1");
    }
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let few = crate::exclude::Limits { files: 4, ..LIMITS };
    let small = crate::exclude::Limits { bytes: 4, ..LIMITS };
    for limits in [few, small] {
        let error = snapshot::take(&shadow, limits).unwrap_err().to_string();
        assert!(error.contains("leave folders out"), "{error}");
    }
    snapshot::take(&shadow, LIMITS).unwrap();
}

#[test]
fn folders_that_are_never_saved_are_refused() {
    let home = std::env::var("HOME").unwrap();
    for path in ["/", &home] {
        let path = std::path::Path::new(path).canonicalize().unwrap();
        assert!(snapshot::check_root(&path).is_err(), "{}", path.display());
    }
    let scene = Scene::new();
    git(&scene.work, &["init", "--quiet"]);
    commit_all(&scene.work);
    for name in [b".git".as_slice(), b".git/objects", b"\xff"] {
        let path = scene.work.join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(&path).unwrap();
        assert!(snapshot::check_root(&path).is_err(), "{}", path.display());
    }
}

/// If git fails, the tree of an earlier snapshot is not used.
#[test]
fn a_file_that_git_cannot_save_makes_no_snapshot() {
    let scene = Scene::new();
    scene.write("a", "1");
    scene.save();
    fs::remove_file(scene.work.join("a")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(scene.work.join("a"))
        .status();
    assert!(made.unwrap().success());
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let error = snapshot::take(&shadow, LIMITS).unwrap_err().to_string();
    assert!(error.contains("git add failed"), "{error}");
    fs::remove_file(scene.work.join("a")).unwrap();
    snapshot::take(&shadow, LIMITS).unwrap();
}

/// Once git warned about the files of such a folder, and nothing was saved from then on.
#[test]
fn a_link_to_itself_in_the_place_of_a_folder_is_saved() {
    let scene = Scene::new();
    scene.write("a/b", "1");
    let commit = scene.save();
    fs::remove_dir_all(scene.work.join("a")).unwrap();
    std::os::unix::fs::symlink("a", scene.work.join("a")).unwrap();
    scene.save();
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.read("a/b"), "1");
    undo(&scene.root).unwrap();
    assert!(scene.work.join("a").is_symlink());
}

/// Once a folder that cannot be read was only a warning, and its files stayed as in an earlier snapshot.
#[test]
fn a_folder_that_cannot_be_read_makes_no_snapshot() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root reads every folder");
        return;
    }
    let scene = Scene::new();
    scene.write("closed/a", "1");
    scene.save();
    let closed = scene.work.join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let taken = snapshot::take(&shadow, LIMITS);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(taken.is_err());
}
