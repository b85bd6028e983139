//! The first write turns a file of version 1 or 2 into version 3. After a kill at any point, the old or the new file is
//! complete, and the original always is. Lines that other programs still write to the old file are carried over.
//! session-file.md §2.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

/// A file of an old version with `n` messages of about a kilobyte.
fn old_file(version: u64, n: usize) -> Vec<u8> {
    let mut text = json!({"type": "session", "version": version, "id": "old", "timestamp": stamp(0), "cwd": "/p",
        "unknown": 1.0});
    if version == 1 {
        text.as_object_mut().unwrap().remove("version");
    }
    let mut text = format!("{text}\n");
    for i in 0..n {
        let mut message = user(&format!("entry {i} {}", "x".repeat(1_000)));
        if version == 2 && i % 3 == 1 {
            message =
                json!({"role": "hookMessage", "customType": "h", "content": "y", "display": true});
        }
        text.push_str(&old_line(version, i, i.checked_sub(1), message));
        text.push('\n');
    }
    text.into_bytes()
}

fn old_line(version: u64, i: usize, parent: Option<usize>, message: Json) -> String {
    let mut entry = json!({"type": "message", "timestamp": stamp(i % 80_000), "message": message});
    if version > 1 {
        entry["id"] = json!(format!("n{i}"));
        entry["parentId"] = parent.map_or(Json::Null, |parent| json!(format!("n{parent}")));
    }
    entry.to_string()
}

fn placed(version: u64, n: usize) -> (Arc<Home>, PathBuf, Vec<u8>) {
    let home = Home::new();
    let original = old_file(version, n);
    let path = home.file("old.jsonl", &original);
    (home, path, original)
}

fn backup_of(version: u64, path: &Path) -> PathBuf {
    path.with_file_name(format!("old.jsonl.v{version}.bak"))
}

/// The names of the session file and of the files beside it.
fn names(path: &Path) -> Vec<String> {
    let folder = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<String> = folder
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_first_write_migrates_and_keeps_the_original() {
    for version in [1, 2] {
        let (home, path, original) = placed(version, 20);
        let mut d = Daemon::quiet_in(&home);
        let before = d.open(&path)["session"].clone();
        let delivered = d.ok("get_entries", json!({}))["entries"].clone();
        assert_eq!(fs::read(&path).unwrap(), original, "opening never writes");
        d.user("new", "x");
        assert_eq!(fs::read(backup_of(version, &path)).unwrap(), original);
        assert_eq!(
            names(&path),
            ["old.jsonl".to_owned(), format!("old.jsonl.v{version}.bak")]
        );
        for file in [&path, &backup_of(version, &path)] {
            assert_eq!(
                fs::metadata(file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        let lines = file_lines(&path);
        assert_eq!(lines[0]["version"], 3);
        assert_eq!(
            lines[0]["unknown"].to_string(),
            "1.0",
            "the header keeps its other members"
        );
        assert_eq!(json!(lines[1..21]), delivered, "as it was delivered before");
        assert_eq!(lines[21]["parentId"], before["leafId"]);
        // A second write finds version 3, and does not migrate again.
        d.user("more", "x");
        assert_eq!(
            names(&path),
            ["old.jsonl".to_owned(), format!("old.jsonl.v{version}.bak")]
        );
        let ids = d.ids();
        d.ok("close_session", json!({}));
        assert_eq!(d.open(&path)["diagnostics"], json!([]));
        assert_eq!(d.ids(), ids);
    }
}

#[test]
fn an_existing_file_with_the_name_of_the_backup_is_kept() {
    let (home, path, original) = placed(2, 3);
    fs::write(backup_of(2, &path), "mine").unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d.user("new", "x");
    assert_eq!(fs::read_to_string(backup_of(2, &path)).unwrap(), "mine");
    let second = path.with_file_name("old.jsonl.v2.bak.2");
    assert_eq!(fs::read(second).unwrap(), original);
}

#[test]
fn a_kill_at_any_point_leaves_the_old_or_the_new_file_whole() {
    let kills = if is_long_run() { 400 } else { 24 };
    let n = 400;
    let mut random = seeded_random(7);
    let took = {
        let (home, path, _) = placed(2, n);
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        let began = Instant::now();
        d.user("new", "x");
        began.elapsed().as_micros() as usize
    };
    let (mut old, mut new) = (0, 0);
    for kill in 0..kills {
        let version = 1 + kill % 2;
        let (home, path, original) = placed(version, n);
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d.send(
            "append_message",
            json!({"message": user("x"), "entryId": "new"}),
        );
        // Some kills come near the moment when the new file gets the name of the old one.
        let aimed = kill % 3 > 0;
        while aimed && !backup_of(version, &path).exists() {
            thread::yield_now();
        }
        let range = if aimed { took } else { took * 3 / 2 };
        thread::sleep(Duration::from_micros(random.below(range) as u64));
        d.signal(rustix::process::Signal::KILL);
        d.successes_to_the_end();
        d.kill();

        let is_old = fs::read(&path).unwrap() == original;
        let backup = backup_of(version, &path);
        if is_old {
            old += 1;
        } else {
            new += 1;
            let lines = file_lines(&path);
            assert_eq!(lines[0]["version"], 3, "kill {kill}");
            let count = lines.len();
            assert!((n + 1..=n + 2).contains(&count), "kill {kill}: {count}");
        }
        if !is_old || backup.exists() {
            assert_eq!(fs::read(backup).unwrap(), original, "kill {kill}");
        }
        // The session continues with the old or the new file, and no temporary file is left.
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d.user("again", "x");
        let ids = d.ids();
        assert_eq!(
            ids.len() - usize::from(ids.contains(&"new".to_owned())),
            n + 1,
            "kill {kill}"
        );
        d.stop();
        let left: Vec<String> = names(&path)
            .into_iter()
            .filter(|name| name.ends_with(".tmp"))
            .collect();
        if is_old {
            assert!(left.is_empty(), "kill {kill}: {left:?}");
        }
    }
    println!("migration: {kills} kills, the old file {old} times, the new one {new} times");
    assert!(
        old > 0 && new > 0,
        "the kills fell on one side: {old} old, {new} new"
    );
}

/// A program that opened the file before the migration writes to it afterwards.
#[test]
fn lines_written_to_the_old_file_are_carried_over() {
    for version in [1, 2] {
        let (home, path, _) = placed(version, 5);
        let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut d = Daemon::start_in(&home, &[], &[]);
        d.ignore_bookkeeping();
        d.open(&path);
        d.user("new", "x");
        d.received("entries_appended");
        let line = old_line(version, 77, Some(4), user("late"));
        // The daemon waits until the line is complete.
        let (first, second) = line.split_at(30);
        late.write_all(first.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(file_lines(&path).len(), 7);
        late.write_all(format!("{second}\n").as_bytes()).unwrap();
        let announced = d.notification("entries_appended");
        assert_eq!(announced["origin"], "other");
        assert_eq!(announced["entries"][0]["message"]["content"], "late");
        assert_eq!(announced["leafId"], "new", "this daemon's leaf stays");
        let lines = file_lines(&path);
        assert_eq!(lines.len(), 8);
        assert_eq!(lines[7]["message"]["content"], "late");
        // The parent is the entry after which the line was written to the old file.
        assert_eq!(lines[7]["parentId"], lines[5]["id"], "version {version}");
        // The next append carries the line over at once.
        late.write_all((old_line(version, 78, Some(77), user("later")) + "\n").as_bytes())
            .unwrap();
        d.user("more", "x");
        let ids = d.ids();
        assert_eq!(ids.len(), 9);
        let message = d.entry(&ids[7])["message"].clone();
        assert_eq!(message["content"], "later");
        d.ok("close_session", json!({}));
        assert_eq!(d.open(&path)["diagnostics"], json!([]));
        assert_eq!(d.ids(), ids);
        d.received("entries_appended");
    }
}

#[test]
fn another_daemon_follows_the_migrated_file() {
    for version in [1, 2] {
        let (home, path, _) = placed(version, 5);
        let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let (mut first, mut second) = (Daemon::quiet_in(&home), Daemon::quiet_in(&home));
        first.open(&path);
        second.open(&path);
        let ids = second.ids();
        first.user("new", "x");
        // The daemon that has migrated dies. The other daemon still has the old file open.
        first.kill();
        assert_eq!(second.ids()[..5], ids, "ids that were derived are the same");
        assert_eq!(second.ids().len(), 6);
        late.write_all((old_line(version, 77, Some(4), user("late")) + "\n").as_bytes())
            .unwrap();
        eventually("it is carried over", || second.ids().len() == 7);
        second.user("on", "x");
        assert_eq!(file_lines(&path).len(), 9);
        assert_eq!(second.ids().len(), 8);
    }
}

#[test]
fn two_daemons_do_not_carry_over_the_same_line_twice() {
    let (home, path, _) = placed(2, 5);
    let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let (mut first, mut second) = (Daemon::quiet_in(&home), Daemon::quiet_in(&home));
    for d in [&mut first, &mut second] {
        d.ignore("diagnostics");
        d.open(&path);
    }
    first.user("new", "x");
    second.user("new2", "x");
    for n in 70..90 {
        late.write_all((old_line(2, n, Some(4), user("late")) + "\n").as_bytes())
            .unwrap();
        first.user(&format!("f{n}"), "x");
        second.user(&format!("s{n}"), "x");
    }
    eventually("everything is there", || first.ids().len() == 5 + 2 + 60);
    assert_eq!(second.ids().len(), 67);
    assert_eq!(file_lines(&path).len(), 68, "each line once");
}

/// Lines are carried over even if the session is closed or the daemon ends.
#[test]
fn lines_written_after_the_session_was_closed_are_carried_over() {
    for version in [1, 2] {
        let (home, path, _) = placed(version, 5);
        let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut arrive = |i: usize| {
            let line = old_line(version, i, Some(4), user(&format!("late {i}"))) + "\n";
            late.write_all(line.as_bytes()).unwrap();
        };
        let last = |path: &Path| file_lines(path).pop().unwrap()["message"]["content"].clone();
        let mut d = Daemon::start_in(&home, &[], &[]);
        d.ignore_bookkeeping();
        d.open(&path);
        d.user("new", "x");
        d.ok("close_session", json!({}));
        d.received("entries_appended");
        arrive(77);
        eventually("it is carried over", || last(&path) == "late 77");
        d.no_notification("entries_appended");
        // After the session is opened again, the line is an entry of another program, and occurs once.
        d.open(&path);
        assert_eq!(d.ids().len(), 7);
        d.ok("close_session", json!({}));
        // The line arrives right before the end of the daemon, after its last check of the old file.
        arrive(78);
        d.stop();
        assert_eq!(last(&path), "late 78");
        assert_eq!(file_lines(&path).len(), 9);
    }
}

/// Whether a process has the replaced file of this name open.
fn is_held(path: &Path) -> bool {
    let replaced = format!("{} (deleted)", path.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut descriptors = processes
        .filter(|process| process.path() != Path::new(&format!("/proc/{}", std::process::id())))
        .filter_map(|process| fs::read_dir(process.path().join("fd")).ok())
        .flat_map(Iterator::flatten);
    descriptors.any(|descriptor| {
        fs::read_link(descriptor.path()).is_ok_and(|target| target == Path::new(&replaced))
    })
}

/// Once a script's input ended right after its append had migrated the file, and the daemon ended too. A line that
/// another program wrote to the old file 50 ms later was lost.
#[test]
fn lines_written_after_the_daemon_has_ended_are_carried_over() {
    for version in [1, 2] {
        let (home, path, _) = placed(version, 5);
        let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
        // Lines arrive before, during and after the end of the daemon.
        let writer = thread::spawn(move || {
            for i in 1_000..1_200 {
                let line = old_line(version, i, Some(4), user(&format!("late {i}"))) + "\n";
                late.write_all(line.as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(5));
            }
            late
        });
        let append = json!({"sessionId": "old", "message": user("new")});
        let lines = [
            request(&json!(1), "open_session", &json!({"path": path})),
            request(&json!(2), "append_message", &append),
        ];
        let input = lines.join("\n") + "\n";
        let output = home.run(&["--durability", "os"], &[], input).clean();
        assert!(
            output.responses()["2"]["result"].is_object(),
            "{}",
            output.text()
        );
        assert!(
            !writer.is_finished(),
            "the daemon waits for no other program"
        );
        let late = writer.join().unwrap();
        eventually("all lines are there", || {
            line_count(&path) >= 1 + 5 + 1 + 200
        });
        let contents: Vec<Json> = file_lines(&path)
            .iter()
            .map(|line| line["message"]["content"].clone())
            .filter(|content| {
                content
                    .as_str()
                    .is_some_and(|text| text.starts_with("late"))
            })
            .collect();
        let expected: Vec<Json> = (1_000..1_200).map(|i| json!(format!("late {i}"))).collect();
        assert_eq!(contents, expected, "each once");
        assert!(is_held(&path));
        drop(late);
        eventually("the process that went on has ended", || !is_held(&path));
    }
}

/// Lines are also carried over after other ends of the daemon: the client is gone, or it sends `shutdown`.
#[test]
fn every_end_of_a_daemon_hands_replaced_files_over() {
    for (i, end) in ["output", "shutdown", "signal"].into_iter().enumerate() {
        let (home, path, _) = placed(2, 5);
        let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d.user("new", "x");
        match end {
            "shutdown" => drop(d.ok("shutdown", json!({}))),
            "signal" => d.signal(rustix::process::Signal::TERM),
            _ => d.close_stdin(),
        }
        assert_eq!(d.exited(), Some(0), "{end}");
        late.write_all((old_line(2, 70 + i, Some(4), user("late")) + "\n").as_bytes())
            .unwrap();
        eventually(end, || line_count(&path) == 8);
    }
}

/// A line that is written after the deletion does not bring the session back.
#[test]
fn lines_written_after_the_session_was_deleted_create_no_file() {
    let (home, path, _) = placed(2, 5);
    let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d.user("new", "x");
    d.ok("delete_session", json!({"sessionId": "old"}));
    late.write_all((old_line(2, 77, Some(4), user("late")) + "\n").as_bytes())
        .unwrap();
    d.stop();
    assert_eq!(names(&path), [""; 0], "the original is in the trash, too");
}

/// The command ends a second after the last line, if no program has the old file open any more.
#[test]
fn the_migrate_command_carries_over_lines_written_to_the_old_file() {
    for version in [1, 2] {
        let (home, path, original) = placed(version, 5);
        let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut child = home
            .command(&["migrate", path.to_str().unwrap()], &[])
            .spawn()
            .unwrap();
        eventually("it is migrated", || file_lines(&path)[0]["version"] == 3);
        for i in [77, 78] {
            let line = old_line(version, i, Some(4), user(&format!("late {i}"))) + "\n";
            late.write_all(line.as_bytes()).unwrap();
            eventually("it is carried over", || line_count(&path) == i - 70);
        }
        drop(late);
        assert_eq!(wait(&mut child, DEADLINE), Some(0));
        assert_eq!(fs::read(backup_of(version, &path)).unwrap(), original);
        let lines = file_lines(&path);
        assert_eq!(lines[7]["message"]["content"], "late 78");
        assert_eq!(
            lines[7]["parentId"],
            lines[if version == 1 { 6 } else { 5 }]["id"]
        );
    }
}

/// This limit sends the signal SIGXFSZ, which once ended the command.
#[test]
fn the_migrate_command_reports_a_full_disk() {
    let (home, path, original) = placed(2, 50);
    let command = home.command(&["migrate", path.to_str().unwrap()], &[]);
    let mut shell = std::process::Command::new("sh");
    // The limit is in blocks of 512 bytes, and smaller than the file.
    shell.args(["-c", "ulimit -f 20; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("storageFull"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), original);
    assert_eq!(names(&path), ["old.jsonl"], "no temporary file is left");
}

/// The daemon checks the old file for about a minute after the migration.
#[test]
fn the_old_file_is_watched_for_a_minute() {
    if !is_long_run() {
        return skip(Needs::Time, "a minute of waiting is for tests/long/run");
    }
    let (home, path, _) = placed(2, 5);
    let mut late = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    d.user("new", "x");
    thread::sleep(Duration::from_secs(45));
    late.write_all((old_line(2, 77, Some(4), user("late")) + "\n").as_bytes())
        .unwrap();
    eventually("it is carried over", || d.ids().contains(&"n77".to_owned()));
    thread::sleep(Duration::from_secs(35));
    let fds = format!("/proc/{}/fd", d.pid().as_raw_nonzero());
    let open = fs::read_dir(fds).unwrap();
    let deleted = open
        .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok())
        .filter(|target| target.to_string_lossy().ends_with("(deleted)"));
    assert_eq!(deleted.count(), 0, "the old file is closed");
}

/// Damaged lines are copied, and so is an incomplete last line.
#[test]
fn damaged_lines_are_kept_by_the_migration() {
    let (home, path, mut original) = placed(2, 3);
    original.extend_from_slice(b"{\"type\":\"mess\n42\nnot json\n");
    original.extend_from_slice(old_line(2, 9, Some(2), user("after")).as_bytes());
    original.extend_from_slice(b"\n{\"type\":\"message\",\"id\":\"torn");
    fs::write(&path, &original).unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("diagnostics");
    d.open(&path);
    d.user("new", "x");
    let text = fs::read_to_string(&path).unwrap();
    for kept in [
        "\n{\"type\":\"mess\n",
        "\n42\n",
        "\nnot json\n",
        "\n{\"type\":\"message\",\"id\":\"torn\n",
    ] {
        assert!(text.contains(kept), "{kept:?}");
    }
    assert_eq!(d.ids(), ["n0", "n1", "n2", "n9", "new"]);
}

/// The old file was once rewritten in place. After a kill during the write, neither the old nor the new file existed.
#[test]
fn a_version_1_file_keeps_every_entry_when_the_daemon_is_killed() {
    let original = include_bytes!("../data/v1.jsonl");
    let home = Home::new();
    for round in 0..12_u64 {
        let path = home.file(&format!("s{round}.jsonl"), original);
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        d.send(
            "append_message",
            json!({"message": user("x"), "entryId": "added"}),
        );
        std::thread::sleep(Duration::from_micros(round * 400));
        d.kill();
        let mut d = Daemon::quiet_in(&home);
        d.open(&path);
        let entries = d.ok("get_entries", json!({}))["entries"]
            .as_array()
            .unwrap()
            .clone();
        assert!(
            entries.len() == 10 || entries.len() == 11,
            "round {round}: {} entries",
            entries.len()
        );
        assert_eq!(entries[9]["message"]["content"], "five", "round {round}");
        assert_eq!(
            entries[7]["firstKeptEntryId"], entries[2]["id"],
            "round {round}"
        );
    }
}
