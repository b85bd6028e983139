//! Moves of branches into the cold file and back, ended at each write and sync of a file. session-file.md §4.10.

use super::*;
use rustix::process::Signal;

/// A session with the archived branch u2, which takes several writes.
fn archived(home: &Arc<Home>) -> (PathBuf, Vec<u8>) {
    let mut log = Log::new("s1").user("u1", "", "start");
    log = log.user("u2", "u1", "left");
    for number in 0..3 {
        let parent = if number == 0 {
            "u2".to_owned()
        } else {
            format!("b{}", number - 1)
        };
        log = log.assistant(&format!("b{number}"), &parent, &"x".repeat(200_000));
    }
    log = log
        .user("u3", "u1", "right")
        .assistant("a3", "u3", &"y".repeat(300_000));
    let path = log.store(home, "x_s1.jsonl");
    let mut d = quiet(home, &[], &[]);
    ignore(&mut d);
    d.open(&path);
    d.ok("archive_branch", json!({"entryId": "u2"}));
    d.stop();
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

fn ignore(d: &mut Daemon) {
    for name in [
        "branches_changed",
        "session_reordered",
        "entries_appended",
        "diagnostics",
    ] {
        d.ignore(name);
    }
}

fn started(shim: &Shim, home: &Arc<Home>, path: &Path) -> Daemon {
    let mut d = shim.start(home, &[]);
    ignore(&mut d);
    d.open(path);
    d
}

/// Checks that both files are sound: every line is in one of them, and all come back.
#[track_caller]
fn is_sound(home: &Arc<Home>, path: &Path, before: &[u8]) {
    let mut d = quiet(home, &[], &[]);
    ignore(&mut d);
    let opened = d.open(path);
    assert_eq!(opened["diagnostics"], json!([]));
    assert_eq!(d.leaf(), "a3");
    d.ok("unshed_branches", json!({}));
    assert_eq!(fs::read(path).unwrap(), before);
    d.ok("shed_branches", json!({}));
    assert_eq!(d.ids(), ["u1", "u3", "a3"]);
    d.ok("unshed_branches", json!({}));
    assert_eq!(fs::read(path).unwrap(), before);
    let left = fs::read_dir(path.parent().unwrap()).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["x_s1.jsonl"], "unfinished files go");
    d.stop();
}

/// The number of such calls that the move makes.
fn calls(shim: &Shim, home: &Arc<Home>, path: &Path, method: &str, call: &str) -> usize {
    let mut d = started(shim, home, path);
    shim.act(&format!("{call} pass 0\n").repeat(100));
    d.ok(method, json!({}));
    let made = 100 - shim.left();
    shim.act("");
    d.stop();
    made
}

fn each_call(mut check: impl FnMut(&Shim, &Arc<Home>, &Path, &[u8], (&str, &str, usize))) -> bool {
    for method in ["shed_branches", "unshed_branches"] {
        for call in ["write", "sync"] {
            let home = Home::new();
            let Some(shim) = Shim::new(&home) else {
                return false;
            };
            let (path, before) = archived(&home);
            let prepare = |home: &Arc<Home>| {
                if method == "unshed_branches" {
                    let mut d = quiet(home, &[], &[]);
                    ignore(&mut d);
                    d.open(&path);
                    d.ok("shed_branches", json!({}));
                    d.stop();
                }
            };
            prepare(&home);
            let made = calls(&shim, &home, &path, method, call);
            assert!(made > 0, "{method} {call}");
            is_sound(&home, &path, &before);
            for number in 0..made {
                prepare(&home);
                check(&shim, &home, &path, &before, (method, call, number));
                is_sound(&home, &path, &before);
            }
        }
    }
    true
}

#[test]
fn a_kill_at_any_call_leaves_both_files_sound() {
    let done = each_call(|shim, home, path, _, (method, call, number)| {
        let mut d = started(shim, home, path);
        let passed = format!("{call} pass 0\n").repeat(number);
        shim.act(&format!("{passed}{call} kill 0\n"));
        d.send(method, json!({}));
        eventually("the kill", || shim.has_acted());
        d.successes_to_the_end();
        d.signal(Signal::KILL);
        d.kill();
    });
    if !done {
        skip(Needs::Faults, "kills at calls: there is no C compiler");
    }
}

#[test]
fn a_full_disk_at_any_call_leaves_both_files_sound() {
    let done = each_call(|shim, home, path, before, (method, call, number)| {
        let mut d = started(shim, home, path);
        let was = fs::read(path).unwrap();
        let passed = format!("{call} pass 0\n").repeat(number);
        shim.act(&format!("{passed}{call} error 28\n"));
        let outcome = d.call(method, json!({}));
        shim.is_done();
        match outcome {
            Err(error) => {
                assert_eq!(error.kind, "storageFull", "{error:?}");
                assert_eq!(fs::read(path).unwrap(), was, "{method} {call} {number}");
            }
            // Only the cold file could not be cleared.
            Ok(_) => assert_eq!(fs::read(path).unwrap(), before, "{method} {call} {number}"),
        }
        assert_eq!(d.leaf(), "a3");
        d.stop();
    });
    if !done {
        skip(Needs::Faults, "failing calls: there is no C compiler");
    }
}
