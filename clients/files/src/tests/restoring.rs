//! Each test restores one kind of change.

use super::{go, go_and_die, root_in, save, take_back, to, undo};
use crate::journal;
use crate::name::Name;
use crate::restore::Target;
use crate::state::{Root, WAIT};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(super) struct Scene {
    pub(super) folder: TempDir,
    pub(super) work: PathBuf,
    pub(super) root: Root,
}

impl Scene {
    pub(super) fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        let root = root_in(folder.path(), &work);
        Scene { folder, work, root }
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work.join(name)).unwrap()
    }

    pub(super) fn save(&self) -> String {
        save(&self.root, &self.root.lock(WAIT).unwrap()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(&self.work).unwrap();
        let mut names: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Once the folder of a removed file stayed.
#[test]
fn folders_that_a_restore_empties_are_removed() {
    let scene = Scene::new();
    scene.write("kept", "1");
    let commit = scene.save();
    scene.write("new/deep/file", "2");
    fs::create_dir(scene.work.join("own")).unwrap();
    let outcome = go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!((outcome.written, outcome.removed), (0, 1));
    assert_eq!(scene.names(), ["kept", "own"]);
    undo(&scene.root).unwrap();
    assert_eq!(scene.read("new/deep/file"), "2");
}

/// Once a killed restore left the folder of a file that it was about to write. The undo then found a folder in the
/// place of the file.
#[test]
fn a_folder_without_files_gives_way() {
    let scene = Scene::new();
    scene.write("name", "a file");
    let commit = scene.save();
    fs::remove_file(scene.work.join("name")).unwrap();
    fs::create_dir_all(scene.work.join("name/of/nothing")).unwrap();
    let outcome = go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(outcome.conflicts, []);
    assert_eq!(scene.read("name"), "a file");
}

#[test]
fn a_link_on_the_way_is_not_followed() {
    let scene = Scene::new();
    scene.write("inside/file", "saved");
    let commit = scene.save();
    let outside = scene.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir_all(scene.work.join("inside")).unwrap();
    let outcome = go(&scene.root, &to(&commit), &mut || {
        // During the restore, another program puts a link in the place of the folder.
        let _there = symlink(&outside, scene.work.join("inside"));
    });
    assert_eq!(outcome.unwrap().conflicts.len(), 1);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_not_saved_stays() {
    let scene = Scene::new();
    scene.write("out", "a file then");
    let commit = scene.save();
    fs::remove_file(scene.work.join("out")).unwrap();
    scene.write(".gitignore", "*.bin\n");
    scene.write("out/result.bin", "hours of work");
    let outcome = go(&scene.root, &to(&commit), &mut || {}).unwrap();
    let (name, why) = &outcome.conflicts[0];
    assert_eq!(*name, Name(b"out".to_vec()));
    assert_eq!(why, "a folder with files that are not saved is there");
    assert_eq!(scene.read("out/result.bin"), "hours of work");
}

#[test]
fn modes_come_back_with_an_undo() {
    let scene = Scene::new();
    let commit = scene.save();
    scene.write("secret", "1");
    let secret = scene.work.join("secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.names(), [".gitignore"; 0]);
    undo(&scene.root).unwrap();
    assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn only_the_files_that_are_meant_are_written() {
    let scene = Scene::new();
    scene.write("mine", "1");
    scene.write("yours", "1");
    let commit = scene.save();
    scene.write("mine", "2");
    scene.write("yours", "2");
    scene.write("new", "2");
    let target = Target {
        only: Some([Name(b"mine".to_vec())].into()),
        ..to(&commit)
    };
    go(&scene.root, &target, &mut || {}).unwrap();
    assert_eq!(
        (scene.read("mine"), scene.read("yours")),
        ("1".to_owned(), "2".to_owned())
    );
    assert_eq!(scene.read("new"), "2");
}

#[test]
fn a_restore_that_is_killed_at_any_step_is_undone() {
    let mut ran_to_its_end = false;
    for step in 0..60 {
        let scene = Scene::new();
        for (name, text) in [("a", "1"), ("b", "1"), ("folder/c", "1"), ("d/e", "1")] {
            scene.write(name, text);
        }
        let commit = scene.save();
        scene.write("a", "2");
        fs::remove_dir_all(scene.work.join("d")).unwrap();
        scene.write("d", "a file");
        scene.write("new/f", "2");
        fs::remove_file(scene.work.join("b")).unwrap();
        go_and_die(scene.folder.path(), &scene.root, &commit, step);
        let restores = journal::all(&scene.root).unwrap();
        ran_to_its_end = restores.iter().any(|restore| restore.is_done);
        if !restores.is_empty() {
            undo(&scene.root).unwrap();
        }
        assert_eq!(scene.names(), ["a", "d", "folder", "new"], "step {step}");
        let texts = ["a", "d", "folder/c", "new/f"].map(|name| scene.read(name));
        assert_eq!(texts, ["2", "a file", "1", "2"], "step {step}");
        if ran_to_its_end {
            break;
        }
    }
    assert!(ran_to_its_end);
}

/// The steps include the moment between the check of a file and its exchange.
#[test]
fn an_edit_at_any_step_is_kept() {
    for victim in ["replaced", "removed"] {
        let mut is_reached = true;
        let mut at = 0;
        while is_reached {
            is_reached = false;
            let scene = Scene::new();
            scene.write("replaced", "1");
            let commit = scene.save();
            scene.write("replaced", "2");
            scene.write("removed", "2");
            let mut step = 0;
            let done = go(&scene.root, &to(&commit), &mut || {
                if step == at {
                    is_reached = true;
                    scene.write("beside.log", "edited");
                    fs::rename(scene.work.join("beside.log"), scene.work.join(victim)).unwrap();
                }
                step += 1;
            });
            if is_reached {
                assert_eq!(scene.read(victim), "edited", "step {at}: {done:?}");
            }
            at += 1;
        }
        assert!(at > 10, "{at} steps");
    }
}

/// Once every restore, and even a preview, removed folders of the user whose names begin like a stage's, with all
/// their files.
#[test]
fn folders_that_only_have_the_name_of_a_stage_stay() {
    let scene = Scene::new();
    scene.write("a", "1");
    let commit = scene.save();
    scene.write("a", "2");
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    let own = journal::all(&scene.root).unwrap().remove(0).id;
    let names = [
        ".treelined-restore-notes.new/deep/x".to_owned(),
        ".treelined-restore-mine/a".to_owned(),
        ".treelined-restore-0123456789abcdef.new/n0".to_owned(),
        format!(".treelined-restore-{own}/deep/x"),
        format!(".treelined-restore-{own}/mine"),
        format!(".treelined-restore-{own}.new/n1"),
    ];
    for name in &names {
        scene.write(name, "1");
    }
    // These files are the restore's own: whole files, and the beginning of one.
    scene.write(&format!(".treelined-restore-{own}/n0"), "1");
    scene.write(&format!(".treelined-restore-{own}.new/n0"), "");
    let target = Target {
        only: Some([Name(b"a".to_vec())].into()),
        ..to(&commit)
    };
    scene.write("a", "3");
    let outcome = go(&scene.root, &target, &mut || {}).unwrap();
    for name in &names {
        assert_eq!(scene.read(name), "1", "{name}");
    }
    for name in ["", ".new"] {
        let name = format!(".treelined-restore-{own}{name}");
        assert!(!scene.work.join(&name).join("n0").exists());
        assert!(outcome.left.contains(&Name(name.into_bytes())));
    }
}

/// Once an undo overwrote bytes that were written since the restore, and could not be taken back.
#[test]
fn an_undo_leaves_what_was_written_since() {
    let scene = Scene::new();
    let texts = || ["a", "b"].map(|name| scene.read(name));
    scene.write("a", "1");
    scene.write("b", "1");
    let commit = scene.save();
    scene.write("a", "2");
    scene.write("b", "2");
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    scene.write("a", "hours of work");
    // This file is not saved, and does not block a path.
    fs::create_dir(scene.work.join("git~1")).unwrap();
    let (since, outcome) = take_back(&scene.root, false, false).unwrap();
    assert_eq!(
        (since.as_slice(), outcome.written),
        ([Name(b"a".into())].as_slice(), 1)
    );
    assert_eq!(texts(), ["hours of work", "2"]);
    assert_eq!(take_back(&scene.root, false, true).unwrap().0, []);
    assert_eq!(texts(), ["2", "2"]);
    assert!(take_back(&scene.root, false, false).is_err());
    take_back(&scene.root, true, false).unwrap();
    assert_eq!(texts(), ["hours of work", "2"]);
    take_back(&scene.root, true, false).unwrap();
    assert_eq!(texts(), ["hours of work", "1"]);
    assert!(take_back(&scene.root, true, false).is_err());
    // The redos can be undone, the last one first.
    take_back(&scene.root, false, false).unwrap();
    assert_eq!(texts(), ["hours of work", "2"]);
    take_back(&scene.root, false, false).unwrap();
    assert_eq!(texts(), ["2", "2"]);
    assert!(take_back(&scene.root, false, true).is_err());
}

/// A redo once had no undo. It said that an undo takes it back, and no command brought the bytes back that it had
/// replaced: they were in its safety snapshot alone.
#[test]
fn a_redo_can_be_undone_with_all_that_it_has_replaced() {
    let scene = Scene::new();
    let texts = || [scene.read("a"), scene.read("b")];
    scene.write("a", "1");
    scene.write("b", "1");
    let commit = scene.save();
    scene.write("a", "2");
    scene.write("b", "mine");
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    take_back(&scene.root, false, false).unwrap();
    scene.write("a", "edit");
    let (since, _) = take_back(&scene.root, true, false).unwrap();
    assert_eq!(since, [Name(b"a".into())]);
    assert_eq!(texts(), ["edit", "1"]);
    take_back(&scene.root, false, false).unwrap();
    assert_eq!(texts(), ["edit", "mine"]);
    take_back(&scene.root, true, true).unwrap();
    take_back(&scene.root, true, true).unwrap();
    assert_eq!(texts(), ["1", "1"]);
    take_back(&scene.root, false, false).unwrap();
    take_back(&scene.root, false, false).unwrap();
    assert_eq!(texts(), ["edit", "mine"]);
}

/// Once an undo that had been killed was continued for ever, although its restore was undone later.
#[test]
fn an_undo_that_was_killed_is_not_undone_twice() {
    let scene = Scene::new();
    scene.write("a", "1");
    let commit = scene.save();
    scene.write("a", "2");
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    undo(&scene.root).unwrap();
    let mut restores = journal::all(&scene.root).unwrap();
    for one in &mut restores {
        one.is_undone = false;
        one.is_done = one.undoes.is_none();
        journal::write(&scene.root, one).unwrap();
    }
    undo(&scene.root).unwrap();
    scene.write("a", "newer");
    assert!(take_back(&scene.root, false, true).is_err());
    assert_eq!(scene.read("a"), "newer");
}

/// Once a restore that had changed nothing could be undone, and the undo wrote old files over newer ones.
#[test]
fn a_restore_that_fails_leaves_nothing_to_undo() {
    let scene = Scene::new();
    scene.write("a", "1");
    let commit = scene.save();
    scene.write("a", "2");
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let id = shadow.line(["rev-parse", &format!("{commit}:a")]).unwrap();
    drop(lock);
    let saved = scene.root.repository().join("objects");
    let saved = saved.join(id.get(..2).unwrap()).join(id.get(2..).unwrap());
    let mut steps = 0;
    let failed = go(&scene.root, &to(&commit), &mut || {
        steps += 1;
        if steps == 3 {
            fs::remove_file(&saved).unwrap();
        }
    });
    let said = format!("{:#}", failed.unwrap_err());
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(journal::all(&scene.root).unwrap().len(), 0);
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let refs = shadow.line(["for-each-ref", "refs/tl-safety"]).unwrap();
    assert_eq!(refs, "");
    assert_eq!(scene.names(), ["a"]);
}

/// Once files that a restore had written counted as changes of the next turn.
#[test]
fn the_next_turn_has_not_made_what_a_restore_has() {
    let scene = Scene::new();
    scene.write("a", "1");
    let commit = scene.save();
    scene.write("a", "2");
    let last = || {
        let lock = scene.root.lock(WAIT).unwrap();
        let shadow = scene.root.shadow(&lock).unwrap();
        crate::snapshot::last(&shadow).unwrap().tree
    };
    let trees = |commit: &str| {
        let lock = scene.root.lock(WAIT).unwrap();
        let shadow = scene.root.shadow(&lock).unwrap();
        shadow
            .line(["rev-parse", &format!("{commit}^{{tree}}")])
            .unwrap()
    };
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(last(), trees(&commit));
    undo(&scene.root).unwrap();
    assert_ne!(last(), trees(&commit));
}

/// Once a restore removed files that the rules of the target leave out, as soon as other rules let them be saved.
#[test]
fn files_that_rules_left_out_then_are_not_removed() {
    let scene = Scene::new();
    scene.write(".gitignore", "data/\n");
    scene.write("in/.gitignore", "*.out\n!:(top).out\n");
    scene.write("data/results.csv", "precious");
    scene.write("in/deep/x.out", "precious");
    let commit = scene.save();
    for name in [".gitignore", "in/.gitignore"] {
        scene.write(name, "");
    }
    for name in ["new", "x.out", "in/:(top).out"] {
        scene.write(name, "2");
    }
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let plan = crate::restore::plan(&shadow, &to(&commit), super::LIMITS).unwrap();
    let kept = ["data/results.csv", "in/deep/x.out"].map(|name| Name(name.into()));
    assert_eq!(plan.kept, kept);
    drop(lock);
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    assert_eq!(scene.read("data/results.csv"), "precious");
    assert_eq!(scene.read("in/deep/x.out"), "precious");
    assert_eq!(scene.names(), [".gitignore", "data", "in"]);
    assert!(!scene.work.join("in/:(top).out").exists());
}

/// Once a file named a commit that did not exist any more, and nothing was saved from then on.
#[test]
fn what_was_saved_last_may_be_lost() {
    let scene = Scene::new();
    scene.write("a", "1");
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let save = |id: &str| {
        let about = (crate::record::When::End, "a1");
        crate::record::make((&scene.root, &lock), ("s", id), about, None, super::LIMITS)
    };
    save("r1").unwrap().unwrap();
    scene.write("a", "2");
    let last = crate::snapshot::last(&shadow).unwrap().commit;
    let object = scene.root.repository().join("objects");
    let object = object
        .join(last.get(..2).unwrap())
        .join(last.get(2..).unwrap());
    fs::remove_file(object).unwrap();
    assert_eq!(save("r2").unwrap().unwrap().before, None);
    scene.write("a", "3");
    assert!(save("r3").unwrap().unwrap().before.is_some());
}

/// Once a server continued to write into a log that a restore had replaced, without a warning.
#[test]
#[cfg(target_os = "linux")]
fn files_that_a_program_has_open_are_marked() {
    let scene = Scene::new();
    for name in ["log", "read"] {
        scene.write(name, "1");
    }
    let commit = scene.save();
    for name in ["log", "read", "new"] {
        scene.write(name, "2");
    }
    let mut append = fs::OpenOptions::new();
    let _log = append.append(true).open(scene.work.join("log")).unwrap();
    let _read = fs::File::open(scene.work.join("read")).unwrap();
    let lock = scene.root.lock(WAIT).unwrap();
    let shadow = scene.root.shadow(&lock).unwrap();
    let plan = crate::restore::plan(&shadow, &to(&commit), super::LIMITS).unwrap();
    assert_eq!(plan.held, [Name(b"log".into())].into());
    let mut shown = Vec::new();
    crate::show::plan(&mut shown, &plan, &plan.held).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!(shown.matches("a program has it open").count(), 1, "{shown}");
}

/// Once a killed git left its lock, and every later snapshot failed.
#[test]
fn locks_and_temporary_files_of_killed_calls_are_removed() {
    let scene = Scene::new();
    scene.write("a", "1");
    scene.save();
    let repository = scene.root.repository();
    let left = [
        "index.lock",
        "config.lock",
        "objects/pack/tmp_pack_1",
        "objects/tmp_objdir-incoming-1/x",
    ];
    for name in left {
        let path = repository.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    scene.write("a", "2");
    scene.save();
    assert!(left.iter().all(|name| !repository.join(name).exists()));
}

/// Once the last line did not wait. Calls of git inherit the lock, also those that other tests start at that moment, and
/// keep it until they end.
#[test]
fn a_second_command_waits_for_the_first() {
    let scene = Scene::new();
    let lock = scene.root.lock(WAIT).unwrap();
    let error = scene.root.lock(std::time::Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("another command"), "{error}");
    drop(lock);
    scene.root.lock(WAIT).unwrap();
}

#[test]
fn a_restore_can_be_undone_for_thirty_days() {
    let scene = Scene::new();
    scene.write("a", "1");
    let commit = scene.save();
    scene.write("a", "2");
    go(&scene.root, &to(&commit), &mut || {}).unwrap();
    let left_after = |days: u64| {
        let mut restore = journal::all(&scene.root).unwrap().remove(0);
        restore.time = crate::snapshot::now() - days * 24 * 60 * 60 * 1000;
        journal::write(&scene.root, &restore).unwrap();
        let lock = scene.root.lock(WAIT).unwrap();
        crate::space::prune(&scene.root, &lock, u64::MAX).unwrap();
        crate::space::of(&scene.root, &lock).unwrap().restores
    };
    assert_eq!((left_after(29), left_after(31)), (1, 0));
    assert!(take_back(&scene.root, false, false).is_err());
    assert_eq!(scene.read("a"), "1");
}

#[test]
fn old_records_are_dropped_to_fit_the_budget() {
    let scene = Scene::new();
    for number in 0..8 {
        let mut text = String::new();
        for line in 0..2_000 {
            text.push_str(&format!("{}\n", line * 7919 + number * 104_729));
        }
        scene.write("file", &text);
        scene.save();
    }
    let lock = scene.root.lock(WAIT).unwrap();
    let all = crate::space::of(&scene.root, &lock).unwrap();
    assert_eq!(all.records, 8);
    crate::space::prune(&scene.root, &lock, u64::MAX).unwrap();
    let packed = crate::space::of(&scene.root, &lock).unwrap();
    assert_eq!(packed.records, 8);
    // All objects are packed, so there is nothing to pack when the daemon is idle.
    assert!(!crate::space::pack_loose(&scene.root, &lock, 1).unwrap());
    let dropped = crate::space::prune(&scene.root, &lock, 1).unwrap();
    assert_eq!(dropped, 8);
    scene.write("file", "it goes on");
    drop(lock);
    scene.save();
    let lock = scene.root.lock(WAIT).unwrap();
    assert!(!crate::space::pack_loose(&scene.root, &lock, 1_000).unwrap());
    assert!(crate::space::pack_loose(&scene.root, &lock, 1).unwrap());
    assert!(!crate::space::pack_loose(&scene.root, &lock, 1).unwrap());
    assert!(Path::new(&scene.work).join("file").exists());
}
