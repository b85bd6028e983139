//! Faults while a fork is copied: the source does not change, and an incomplete fork never has the name of a session.
//! session-file.md §3 and §5.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::faults::{Shim, SmallDisk, quiet};
use crate::harness::*;

/// A session of about 4 MB, which takes several writes.
fn large() -> Log {
    let mut log = Log::new("s1").user("u0", "", "begins");
    for number in 1..400 {
        let text = format!("{number} {}", "x".repeat(10_000));
        log = log.user(&format!("u{number}"), &format!("u{}", number - 1), &text);
    }
    log
}

const TIP: &str = "u399";

fn at_the_tip() -> Json {
    json!({"sessionId": "s1", "entryId": TIP, "position": "at"})
}

fn ignoring(mut d: Daemon) -> Daemon {
    for name in ["session_before_fork", "session_fork", "diagnostics"] {
        d.ignore(name);
    }
    d
}

/// Saves the session outside the session directory.
fn saved(home: &Home, log: &Log) -> PathBuf {
    home.file("large.jsonl", log.text().as_bytes())
}

/// The lines of the fork after its header.
#[track_caller]
fn lines_of(session: &Json) -> String {
    let text = fs::read_to_string(session["path"].as_str().unwrap()).unwrap();
    text.split_once('\n').unwrap().1.to_owned()
}

fn body(log: &Log) -> String {
    log.text().split_once('\n').unwrap().1.to_owned()
}

/// All files in the folders of the session directory, hidden ones included.
fn left_over(home: &Home) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.sessions()).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let named = |path: &PathBuf| path.is_dir() && !path.ends_with(".cache");
    let files = folders
        .filter(named)
        .flat_map(|path| fs::read_dir(path).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn a_full_disk_leaves_no_file_and_the_fork_succeeds_later() {
    let home = Home::new();
    let log = large();
    let path = saved(&home, &log);
    let Some(_disk) = SmallDisk::mount(&home, 6 << 10) else {
        return skip(Needs::Faults, "a full disk: mounting a tmpfs needs root");
    };
    let ballast = home.sessions().join("ballast");
    fs::write(&ballast, vec![0; 4 << 20]).unwrap();
    let mut d = ignoring(quiet(&home, &[], &[]));
    d.open(&path);
    d.err_kind("fork_session", at_the_tip(), "storageFull");
    assert_eq!(left_over(&home), [] as [PathBuf; 0]);
    assert_eq!(d.leaf(), TIP);
    fs::remove_file(ballast).unwrap();
    let made = d.ok("fork_session", at_the_tip());
    assert_eq!(lines_of(&made["session"]), body(&log));
    assert_eq!(fs::read_to_string(path).unwrap(), log.text());
}

#[test]
fn a_kill_while_copying_leaves_no_half_fork_and_its_temporary_file_is_removed_later() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(
            Needs::Faults,
            "a pause between two writes: there is no C compiler",
        );
    };
    let log = large();
    let path = saved(&home, &log);
    let mut d = ignoring(shim.start(&home, &[]));
    d.open(&path);
    shim.act("write pass 0\nwrite pass 0\nwrite pause 60000\n");
    d.send("fork_session", at_the_tip());
    eventually("two of its chunks are written", || {
        left_over(&home)
            .iter()
            .any(|file| file.metadata().unwrap().len() > 1 << 20)
    });
    d.kill();
    let half = left_over(&home);
    assert_eq!(half.len(), 1, "{half:?}");
    assert_eq!(
        home.session_files(),
        [] as [PathBuf; 0],
        "under its own name"
    );

    let mut d = ignoring(quiet(&home, &[], &[]));
    d.open(&path);
    let made = d.ok("fork_session", at_the_tip());
    // No process holds the lock of these files.
    eventually("what was left is removed", || !half[0].exists());
    assert_eq!(lines_of(&made["session"]), body(&log));
    assert_eq!(home.session_files().len(), 1);
}

/// A fork copies the source as it was when the fork was requested.
#[test]
fn a_source_that_grows_or_is_replaced_meanwhile_is_copied_as_it_was() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(
            Needs::Faults,
            "a pause between two writes: there is no C compiler",
        );
    };
    let log = large();
    let path = saved(&home, &log);
    let mut d = ignoring(shim.start(&home, &[]));
    d.open(&path);
    for replaced in [false, true] {
        shim.act("write pause 700\n");
        let asked = d.send("fork_session", at_the_tip());
        eventually("the daemon has begun to write", || {
            left_over(&home)
                .iter()
                .any(|file| file.to_string_lossy().ends_with(".tmp"))
        });
        if replaced {
            let other = home.file(
                "other",
                Log::new("other").user("o1", "", "x").text().as_bytes(),
            );
            fs::rename(other, &path).unwrap();
        } else {
            let more = log.clone().user("more", TIP, "y").text();
            fs::write(home.files().join("more"), &more).unwrap();
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, &more.as_bytes()[log.text().len()..]).unwrap();
        }
        let made = d.response(&asked).unwrap();
        shim.is_done();
        assert_eq!(
            lines_of(&made["session"]),
            body(&log),
            "replaced: {replaced}"
        );
        assert_eq!(made["session"]["entryCount"], 400);
    }
}

/// Copying in bulk once did not check the copied lines. The edit changes one byte: a daemon that notices a file that
/// was truncated reads it again, and then copies the new lines.
#[test]
fn a_source_edited_in_place_is_not_copied() {
    let log = large();
    let at = log.text().find("\"id\":\"u200\"").unwrap();
    let end = at + log.text()[at..].find('\n').unwrap();
    for (at, change) in [(at + 6, "U"), (end, " ")] {
        let home = Home::new();
        let path = saved(&home, &log);
        let mut d = ignoring(quiet(&home, &[], &[]));
        d.open(&path);
        let source = fs::OpenOptions::new().write(true).open(&path).unwrap();
        source.write_all_at(change.as_bytes(), at as u64).unwrap();
        d.err_kind("fork_session", at_the_tip(), "sessionReplaced");
        assert_eq!(left_over(&home), [] as [PathBuf; 0]);
    }
}

// --- durability ---

fn with_policy(shim: &Shim, home: &Arc<Home>, policy: &str) -> Daemon {
    let path = saved(home, &large());
    let mut d = shim.start(home, &["--durability", policy]);
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    d.open(&path);
    d
}

#[test]
fn with_always_a_fork_is_synced_before_the_answer() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "slow syncs: there is no C compiler");
    };
    let mut d = with_policy(&shim, &home, "always");
    shim.act("sync pause 400\n");
    let began = Instant::now();
    let made = d.ok("fork_session", at_the_tip());
    assert!(began.elapsed() >= Duration::from_millis(400));
    shim.is_done();
    assert_eq!(made["durability"], "always");
    let before = home.session_files();
    shim.act("sync error 5\n");
    d.err_kind("fork_session", at_the_tip(), "storageIo");
    assert_eq!(home.session_files(), before, "nothing of it is left");
    assert_eq!(left_over(&home).len(), 1);
}

/// A close of the fork waits for its sync. The place of the fork was free for a moment before the file was noted as
/// unsynced, so that a close which came in this moment did not wait.
#[test]
fn without_always_a_fork_is_synced_after_the_answer() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "slow syncs: there is no C compiler");
    };
    for policy in ["os", "interval"] {
        let mut d = with_policy(&shim, &home, policy);
        // On a busy machine an answer can take longer than the shorter pauses.
        let came_before = [1500, 6000, 24_000].into_iter().any(|pause| {
            let pause = Duration::from_millis(pause);
            // The first sync is that of the header.
            shim.act(&format!("sync pause 0\nsync pause {}\n", pause.as_millis()));
            let began = Instant::now();
            let made = d.ok("fork_session", at_the_tip());
            let came_before = began.elapsed() < pause;
            assert_eq!(made["durability"], policy);
            let fork = made["session"]["sessionId"].clone();
            // Closing the session waits for the sync. So does the end of the process.
            d.ok("close_session", json!({"sessionId": fork}));
            assert!(began.elapsed() >= pause, "{policy}");
            shim.is_done();
            came_before
        });
        assert!(came_before, "{policy}");
    }
}

#[test]
fn a_late_failure_to_sync_a_fork_is_announced() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip(Needs::Faults, "failing syncs: there is no C compiler");
    };
    for policy in ["os", "interval"] {
        let mut d = with_policy(&shim, &home, policy);
        // Without a header on the disk there is no fork.
        let before = home.session_files();
        shim.act("sync error 5\n");
        d.err_kind("fork_session", at_the_tip(), "storageIo");
        assert_eq!(home.session_files(), before);
        shim.act("sync pause 0\nsync error 5\n");
        let made = d.ok("fork_session", at_the_tip());
        let announced = d.notification("diagnostics");
        assert_eq!(announced["sessionId"], made["session"]["sessionId"]);
        assert_eq!(announced["diagnostics"][0]["kind"], "durabilityUnknown");
        let params = json!({"sessionId": announced["sessionId"], "message": user("x")});
        if policy == "interval" {
            d.err_kind("append_message", params.clone(), "durabilityUnknown");
        }
        d.ok("append_message", params);
    }
}
