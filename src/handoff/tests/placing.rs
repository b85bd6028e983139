//! A file is made whole or not at all, and an existing file is never changed.

use super::World;
use crate::place::{NewFile, place};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use treelined_core::error::Kind;

/// A handoff never changes an existing file, and leaves no incomplete file.
#[test]
fn a_file_that_exists_is_never_touched() {
    let world = World::new();
    let path = world.at("folder/inner/file");
    let file = NewFile {
        path: path.clone(),
        bytes: b"mine".to_vec(),
    };
    place(std::slice::from_ref(&file)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let other = NewFile {
        bytes: b"other".to_vec(),
        ..file
    };
    let error = place(&[other]).unwrap_err();
    assert_eq!(error.kind, Kind::FileExists);
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

/// Once the first of two files stayed although the second file could not be made.
#[test]
fn a_failure_leaves_none_of_the_files() {
    let world = World::new();
    let file = |path: &str| NewFile {
        path: world.at(path),
        bytes: b"new".to_vec(),
    };
    let (first, second) = (file("folder/one"), file("folder/two"));
    fs::create_dir(world.at("folder")).unwrap();
    fs::write(&second.path, "there before").unwrap();
    let error = place(&[first, second]).unwrap_err();
    assert_eq!(error.kind, Kind::FileExists);
    assert_eq!(names(&world.at("folder")), ["two"]);
    assert_eq!(fs::read(world.at("folder/two")).unwrap(), b"there before");
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<OsString> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Once any old file was removed, even a file that does not belong to a continuation, or a file below a link.
#[test]
fn only_own_old_files_are_removed_and_no_link_is_followed() {
    let world = World::new();
    let own = world.at("sessions/.continuations");
    let elsewhere = world.at("elsewhere");
    let old = [
        "session-1.jsonl",
        "ses_1.json",
        "goose-1.jsonl",
        "1.prompt.md",
        "notes.md",
    ];
    let long_ago = SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    for folder in [&own, &elsewhere] {
        fs::create_dir_all(folder).unwrap();
        for name in old {
            let file = fs::File::create(folder.join(name)).unwrap();
            file.set_modified(long_ago).unwrap();
        }
    }
    let file = NewFile {
        path: own.join("goose-2.jsonl"),
        bytes: b"new".to_vec(),
    };
    place(std::slice::from_ref(&file)).unwrap();
    assert_eq!(names(&own), ["goose-2.jsonl", "notes.md"]);
    fs::remove_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
    assert!(place(&[file]).is_err());
    assert_eq!(names(&elsewhere).len(), old.len());
}

#[test]
fn a_folder_that_is_a_file_is_an_error() {
    let world = World::new();
    fs::write(world.at("file"), "").unwrap();
    let file = NewFile {
        path: world.at("file/inner"),
        bytes: Vec::new(),
    };
    assert!(place(&[file]).is_err());
}
