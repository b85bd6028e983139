//! `doctor --repair` and `migrate` while other programs write without a lock: the lines of these programs are carried
//! over. session-file.md §2.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::harness::*;

fn line(number: usize) -> String {
    let message = json!({"message": user(&format!("late {number}"))});
    entry_line(number, "message", &format!("late{number}"), "u1", message) + "\n"
}

fn started(home: &Home, args: &[&str], path: &Path) -> Child {
    let args = [args, &[path.to_str().unwrap()]].concat();
    home.command(&args, &[]).spawn().unwrap()
}

fn damaged(home: &Arc<Home>) -> PathBuf {
    let text = Log::new("s1").user("u1", "", "hello").text() + "{\"type\":\"mess\n";
    home.file("s1.jsonl", text.as_bytes())
}

fn ids_in(home: &Arc<Home>, path: &Path) -> Vec<String> {
    let mut d = Daemon::quiet_in(home);
    assert_eq!(d.open(path)["diagnostics"], json!([]));
    d.ids()
}

/// `migrate` once closed the old file after a second, and a program that wrote every 1.4 s lost every line. Now lines
/// are carried over as long as a program has the old file open.
#[test]
fn a_migration_loses_no_line_of_a_slow_writer() {
    let home = Home::new();
    let header =
        json!({"type": "session", "version": 2, "id": "s1", "timestamp": stamp(0), "cwd": "/p"});
    let path = Log::with_header(header).user("u1", "", "hello").save(&home);
    let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let mut child = started(&home, &["migrate"], &path);
    eventually("it is migrated", || file_lines(&path)[0]["version"] == 3);
    for number in 1..4 {
        thread::sleep(Duration::from_millis(1400));
        late.write_all(line(number).as_bytes()).unwrap();
    }
    drop(late);
    assert_eq!(wait(&mut child, DEADLINE), Some(0));
    assert_eq!(ids_in(&home, &path), ["u1", "late1", "late2", "late3"]);
}

/// A repair once carried over only lines that had arrived by its end, so a program with an open descriptor lost nearly
/// all lines. Now even a line that is written in two pieces, before and after the repair, is complete.
#[test]
fn a_repair_loses_no_line_of_another_writer() {
    let home = Home::new();
    let path = damaged(&home);
    let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let text = line(1);
    let (first, rest) = text.split_at(20);
    late.write_all(first.as_bytes()).unwrap();
    let original = fs::metadata(&path).unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino;
    let mut child = started(&home, &["doctor", "--repair"], &path);
    eventually("it is repaired", || {
        fs::metadata(&path).is_ok_and(|now| inode(&now) != inode(&original))
    });
    late.write_all(rest.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(1400));
    late.write_all(line(2).as_bytes()).unwrap();
    drop(late);
    assert_eq!(wait(&mut child, DEADLINE), Some(0));
    assert_eq!(ids_in(&home, &path), ["u1", "late1", "late2"]);
}

/// Many repairs run while a program opens the file, appends to it and closes it. Once 45 of 4,566 lines were lost.
/// Later, a late line was written into the middle of a line that another program was writing, since late lines waited
/// at most 2 s in all. A line in one write is never lost. A line in two writes can be cut between them, and then both
/// parts stay beside the session.
#[test]
fn repeated_repairs_lose_no_slow_append() {
    let home = Home::new();
    let path = damaged(&home);
    let (there, appends) = (path.clone(), 60);
    let writer = thread::spawn(move || {
        for number in 1..=appends {
            let mut file = fs::OpenOptions::new().append(true).open(&there).unwrap();
            let text = line(number);
            let (first, rest) = text.split_at(first_write(number, &text));
            file.write_all(first.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(30));
            file.write_all(rest.as_bytes()).unwrap();
        }
    });
    let mut children = Vec::new();
    while !writer.is_finished() {
        let child = started(&home, &["doctor", "--repair"], &path);
        children.push(child);
        thread::sleep(Duration::from_millis(300));
    }
    writer.join().unwrap();
    for mut child in children {
        wait(&mut child, DEADLINE);
    }
    let mut d = Daemon::quiet_in(&home);
    d.ignore("diagnostics");
    d.open(&path);
    let ids = d.ids();
    let kept = [vec![fs::read_to_string(&path).unwrap()], quarantined(&path)].concat();
    let is_kept = |part: &str| kept.iter().any(|text| text.contains(part.trim_end()));
    for number in (1..=appends).filter(|number| !ids.contains(&format!("late{number}"))) {
        let text = line(number);
        let (first, rest) = text.split_at(first_write(number, &text));
        assert!(!first.is_empty(), "line {number} is lost: {kept:?}");
        assert!(is_kept(first) && is_kept(rest), "line {number}: {kept:?}");
    }
}

/// The part of a line that the first of two writes has: half of each second line, and nothing of the others.
fn first_write(number: usize, text: &str) -> usize {
    match number % 2 {
        0 => text.len() / 2,
        _ => 0,
    }
}

fn quarantined(path: &Path) -> Vec<String> {
    let folder = path.with_file_name("s1.jsonl.quarantine");
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

/// The commands warn about lines that may be lost before they change anything.
#[test]
fn commands_warn_before_they_act() {
    let home = Home::new();
    let repaired = home.run(
        &["doctor", "--repair", damaged(&home).to_str().unwrap()],
        &[],
        "",
    );
    let text = repaired.clean().text();
    let (warned, done) = (
        text.find("is lost").unwrap(),
        text.find("repaired:").unwrap(),
    );
    assert!(warned < done, "{text}");
    let header =
        json!({"type": "session", "version": 2, "id": "s2", "timestamp": stamp(0), "cwd": "/p"});
    let path = Log::with_header(header).user("u1", "", "hello").save(&home);
    let text = home
        .run(&["migrate", path.to_str().unwrap()], &[], "")
        .clean()
        .text();
    assert!(
        text.find("is lost").unwrap() < text.find("version 3 now").unwrap(),
        "{text}"
    );
    assert!(text.contains(".v2.bak"), "{text}");
}
