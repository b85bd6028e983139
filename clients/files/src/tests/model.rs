//! Random histories: whatever happens during a restore, all bytes are in the folder or in the safety snapshot.
//!
//! `TREELINED_FILES_HISTORIES` is the number of histories, and `TREELINED_TEST_SEED` the first seed.

use super::world::{Chance, Files, Node, World, ignored, repository, saved};
use super::{LIMITS, UNDO, go, go_and_die, root_in, save, to, undo};
use crate::place;
use crate::snapshot;
use crate::state::{Root, WAIT};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The process is killed.
    Kill,
    /// Another program writes a file.
    Editor,
    /// The disk with the root is full.
    FullFolder,
    /// The disk with the state is full.
    FullState,
}

#[test]
fn no_history_loses_bytes() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let histories = number("TREELINED_FILES_HISTORIES").unwrap_or(24);
    let first = number("TREELINED_TEST_SEED").unwrap_or(1);
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let (memory, disk) = (Disk::mount("64m"), Disk::mount("6m"));
                for seed in (first..first + histories).filter(|seed| seed % threads == thread) {
                    // A killed process loses nothing that was not synced, so most of them need no real disk.
                    let memory = memory.as_ref().filter(|_| seed / threads % 10 != 0);
                    let folder = match memory {
                        Some(memory) => tempfile::tempdir_in(memory.0.path()),
                        None => tempfile::tempdir(),
                    };
                    let folder = folder.unwrap();
                    let ended =
                        std::panic::catch_unwind(|| history(seed, folder.path(), disk.as_ref()));
                    assert!(ended.is_ok(), "TREELINED_TEST_SEED={seed}");
                }
            });
        }
    });
}

/// `disk` is the small disk that a fault fills.
fn history(seed: u64, folder: &Path, disk: Option<&Disk>) {
    let mut chance = Chance(seed);
    let faults = [
        Fault::None,
        Fault::Kill,
        Fault::Kill,
        Fault::Editor,
        Fault::FullFolder,
        Fault::FullState,
    ];
    let mut fault = faults[chance.below(faults.len())];
    if disk.is_none() && matches!(fault, Fault::FullFolder | Fault::FullState) {
        fault = Fault::Kill;
    }
    let on_disk = disk.map(|disk| tempfile::tempdir_in(disk.0.path()).unwrap());
    let place = |is_small: bool| match (&on_disk, is_small) {
        (Some(small), true) => small.path().to_owned(),
        _ => folder.to_owned(),
    };
    let work = place(fault == Fault::FullFolder).join("work");
    let states = place(fault == Fault::FullState);
    let mut world = World::new(&work, &mut chance);
    let root = root_in(&states, &work);
    let mut commits = Vec::new();
    for _ in 0..=chance.below(2) {
        world.change(&mut chance, 25);
        let lock = root.lock(WAIT).unwrap();
        commits.push((save(&root, &lock).unwrap(), world.files()));
    }
    world.change(&mut chance, 25);
    let (commit, target) = &commits[chance.below(commits.len())];
    let before = world.files();
    let own = repository(&work);
    match fault {
        Fault::None => whole(&world, &root, commit, target, &before),
        Fault::Kill => killed(&world, &root, &states, commit, &before, &mut chance),
        Fault::Editor => edited(&mut world, &root, (commit, target), &before, &mut chance),
        Fault::FullFolder | Fault::FullState => {
            full(&world, &root, &states, commit, &before, fault, &mut chance);
        }
    }
    assert!(
        repository(&work) == own,
        "the user's repository has changed"
    );
}

/// Without a fault, the folder is as it was saved, and ignored files have not changed.
fn whole(world: &World, root: &Root, commit: &str, target: &Files, before: &Files) {
    let outcome = go(root, &to(commit), &mut || {}).unwrap();
    let after = world.files();
    same(&ignored(&after), &ignored(before), "ignored");
    if outcome.conflicts.is_empty() {
        same(&saved(&after), &saved(target), "restored");
    } else {
        // A file that is not saved blocks a path.
        assert!(!ignored(before).is_empty(), "{:?}", outcome.conflicts);
        for (name, _) in saved(before) {
            let kept = after.get(&name) == before.get(&name);
            let restored = saved(&after).get(&name) == saved(target).get(&name);
            assert!(kept || restored, "{}", String::from_utf8_lossy(&name));
        }
    }
    undone(world, root, before);
}

fn undone(world: &World, root: &Root, before: &Files) {
    if crate::undo::last(root, false).is_err() {
        same(&world.files(), before, "nothing was changed");
        return;
    }
    let outcome = undo(root).unwrap();
    assert_eq!(outcome.conflicts, [], "of the undo");
    // The modes are equal too.
    same(&world.files(), before, "after the undo");
}

fn killed(
    world: &World,
    root: &Root,
    states: &Path,
    commit: &str,
    before: &Files,
    chance: &mut Chance,
) {
    go_and_die(states, root, commit, chance.below(40));
    lost_nothing(world, root, before);
    if chance.below(3) == 0 && crate::undo::last(root, false).is_ok() {
        // The undo is killed too.
        go_and_die(states, root, UNDO, chance.below(20));
        lost_nothing(world, root, before);
    }
    undone(world, root, before);
}

/// Fails, and names the files that differ.
#[track_caller]
fn same(found: &Files, wanted: &Files, what: &str) {
    let names = found.keys().chain(wanted.keys());
    let differ = names.filter(|name| found.get(*name) != wanted.get(*name));
    let differ: BTreeSet<_> = differ.map(|name| String::from_utf8_lossy(name)).collect();
    assert!(differ.is_empty(), "{what}: {differ:?}");
}

/// Checks that each file is in the folder or in a safety snapshot.
fn lost_nothing(world: &World, root: &Root, before: &Files) {
    let there = bytes(&world.files());
    let lock = root.lock(WAIT).unwrap();
    let shadow = root.shadow(&lock).unwrap();
    // Only what the snapshots have themselves, and not the commits that are their parents.
    let args = ["rev-list", "--no-walk", "--objects", "--no-object-names"];
    let saved = shadow.line(args.into_iter().chain(["--glob=refs/tl-safety/*"]));
    let saved = saved.unwrap();
    let saved: BTreeSet<&str> = saved.lines().collect();
    for (name, node) in before {
        let content = content(node);
        if there.contains(&content) {
            continue;
        }
        let id = place::id_of(content.as_slice(), content.len() as u64);
        let is_saved = saved.contains(id.unwrap().unwrap().as_str());
        assert!(is_saved, "lost: {}", String::from_utf8_lossy(name));
    }
}

fn content(node: &Node) -> Vec<u8> {
    match node {
        Node::File(bytes, _) => bytes.clone(),
        Node::Link(target) => target.as_os_str().as_encoded_bytes().to_owned(),
    }
}

fn bytes(files: &Files) -> BTreeSet<Vec<u8>> {
    files.values().map(content).collect()
}

/// Bytes that an editor writes during a restore are kept. So are the bytes from before, unless the editor replaced
/// them.
fn edited(
    world: &mut World,
    root: &Root,
    (commit, target): (&str, &Files),
    before: &Files,
    chance: &mut Chance,
) {
    let names: Vec<Vec<u8>> = saved(before)
        .into_keys()
        .chain(saved(target).into_keys())
        .collect();
    let (mut written, mut replaced) = (BTreeSet::new(), BTreeSet::new());
    let done = go(root, &to(commit), &mut || {
        if chance.below(3) > 0 {
            return;
        }
        let old = bytes(&world.files());
        match names.get(chance.below(names.len() + 3)) {
            Some(name) => world.edit(name, chance),
            None => world.change_once(chance),
        }
        let new = bytes(&world.files());
        written.extend(new.difference(&old).cloned());
        replaced.extend(old.difference(&new).cloned());
    });
    let there = bytes(&world.files());
    for bytes in written.difference(&replaced) {
        assert!(there.contains(bytes), "an edit is lost: {done:?}");
    }
    let is_own = |node: &Node| replaced.contains(&content(node));
    let others = before.iter().filter(|(_, node)| !is_own(node));
    let others: Files = others
        .map(|(name, node)| (name.clone(), node.clone()))
        .collect();
    lost_nothing(world, root, &others);
}

/// If the disk is full, the folder is either as before or restored.
fn full(
    world: &World,
    root: &Root,
    states: &Path,
    commit: &str,
    before: &Files,
    fault: Fault,
    chance: &mut Chance,
) {
    let disk = match fault {
        Fault::FullFolder => world.root.parent().unwrap(),
        _ => states,
    };
    // The filler is outside of the root, so it is not saved itself.
    let filler = disk.join("filler");
    fill(&filler, u64::try_from(chance.below(24)).unwrap() << 12);
    let done = go(root, &to(commit), &mut || {});
    lost_nothing_full(world, &filler, root, before);
    match done {
        Err(_) => {
            let unchanged = world.files();
            same(&unchanged, before, "an error changes nothing");
        }
        Ok(outcome) if outcome.conflicts.is_empty() => {}
        // There was no room for the folder of a file.
        Ok(_) => {}
    }
    undone(world, root, before);
}

fn lost_nothing_full(world: &World, filler: &Path, root: &Root, before: &Files) {
    fs::remove_file(filler).unwrap();
    lost_nothing(world, root, before);
}

/// Writes a file until this many bytes are free on the disk.
fn fill(file: &Path, room: u64) {
    let free = snapshot::free_space(file.parent().unwrap()).unwrap();
    let filler = vec![0; usize::try_from(free.saturating_sub(room)).unwrap()];
    fs::write(file, filler).unwrap();
}

/// A disk in memory. To make it, the test needs root.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount(size: &str) -> Option<Disk> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .status()
            .is_ok_and(|status| status.success());
        if mounted {
            return Some(Disk(folder));
        }
        let required =
            std::env::var_os("TREELINED_FAULTS").is_some_and(|value| value == "required");
        assert!(!required, "mounting a tmpfs needs root");
        eprintln!("SKIPPED: full disks: mounting a tmpfs needs root");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _left = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// The tests set no limit for free space, because some of them fill a disk.
#[test]
fn a_disk_with_too_little_room_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    let root = root_in(folder.path(), &work);
    let lock = root.lock(WAIT).unwrap();
    let shadow = root.shadow(&lock).unwrap();
    let limits = crate::exclude::Limits {
        free: u64::MAX,
        ..LIMITS
    };
    let error = snapshot::take(&shadow, limits).unwrap_err().to_string();
    assert!(error.contains("MiB are free"), "{error}");
}
