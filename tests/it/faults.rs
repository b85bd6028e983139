//! What goes wrong with disks and files, each fault answered by its kind: nothing acknowledged is lost,
//! what failed leaves no trace, and the session goes on when the fault ends. storage.md §3.
//!
//! A full disk needs root (a small tmpfs), failing calls need a C compiler (a preloaded shim): where they
//! are missing, a line says that the test was skipped.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};

use crate::harness::*;

/// A session with u1 → a1, and its file.
fn begun(d: &mut Daemon) -> PathBuf {
    d.create();
    d.chain(&["u1", "a1"]);
    d.home.only_file()
}

pub fn quiet(home: &Arc<Home>, args: &[&str], env: &[(&str, &str)]) -> Daemon {
    let mut d = Daemon::start_in(home, args, env);
    d.ignore_bookkeeping();
    d
}

pub fn skip(what: &str) {
    eprintln!("SKIPPED: {what}");
}

/// What the file holds is what the daemon says, here and for one that opens it anew.
#[track_caller]
fn agrees(d: &mut Daemon, path: &Path, expected: &[&str]) {
    assert_eq!(d.ids(), expected, "in memory");
    assert_eq!(d.leaf(), *expected.last().unwrap(), "the leaf");
    let mut other = quiet(&Home::new(), &[], &[]);
    other.open(path);
    assert_eq!(other.ids(), expected, "in the file");
    assert_eq!(
        other.leaf(),
        *expected.last().unwrap(),
        "the leaf on reopening"
    );
}

/// A fault and its end: an append fails with `kind` while it lasts, and is made afterwards.
#[track_caller]
fn fails_then_recovers(d: &mut Daemon, path: &Path, kind: &str, end: impl FnOnce()) {
    let params = json!({"message": user("x"), "entryId": "u2"});
    d.err_kind("append_message", params.clone(), kind);
    assert_eq!(d.leaf_if_readable(), json!("a1"), "the leaf did not move");
    end();
    d.ok("append_message", params);
    agrees(d, path, &["u1", "a1", "u2"]);
}

impl Daemon {
    /// The leaf; where the file is gone reads may fail, with what the append failed with.
    fn leaf_if_readable(&mut self) -> Json {
        self.call("get_leaf", json!({}))
            .map_or(json!("a1"), |found| found["leafId"].clone())
    }
}

// ---------------------------------------------------------------------------------------------
// No room

/// A tmpfs of this many KiB; `None` without the right to mount one.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(home: &Home, kib: u32) -> Option<SmallDisk> {
        let path = home.sessions();
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={kib}k,mode=700"),
                "tmpfs",
            ])
            .arg(&path)
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(SmallDisk(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Appends until there is no room, and says what was acknowledged.
fn fill(d: &mut Daemon, acknowledged: &mut Vec<String>, size: usize) -> RpcError {
    for number in 0.. {
        let id = format!("f{}-{number}", acknowledged.len());
        let params = json!({"message": user(&"x".repeat(size)), "entryId": id});
        match d.call("append_message", params) {
            Ok(_) => acknowledged.push(id),
            Err(error) => return error,
        }
    }
    unreachable!()
}

/// Sizes for which the last line that fits ends at different places of the last block.
const SIZES: [usize; 6] = [20_000, 3_000, 700, 111, 30, 1];

#[test]
fn a_full_disk_loses_nothing_and_is_recovered_from() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home, 256) else {
        return skip("a full disk: mounting a tmpfs needs root");
    };
    let mut d = quiet(&home, &[], &[]);
    d.ignore("diagnostics");
    d.let_complain();
    d.create();
    let mut acknowledged = vec!["u1".to_owned()];
    d.user("u1", "first");
    let path = home.only_file();
    let ballast = home.sessions().join("ballast");
    let piece = |size: usize| home.sessions().join(format!("ballast-{size}"));
    for size in SIZES {
        fs::write(piece(size), vec![0; 24 << 10]).unwrap();
    }
    for size in SIZES {
        let before = fs::read(&path).unwrap();
        let error = fill(&mut d, &mut acknowledged, size);
        assert_eq!(error.kind, "storageFull", "{error:?}");
        assert_eq!(error.data["retryable"], true);
        assert!(fs::read(&path).unwrap().starts_with(&before), "a prefix");
        assert_eq!(d.leaf(), *acknowledged.last().unwrap());
        fs::remove_file(piece(size)).unwrap();
        let id = format!("after-{size}");
        d.user(&id, "there is room again");
        acknowledged.push(id);
        let expected: Vec<&str> = acknowledged.iter().map(String::as_str).collect();
        agrees(&mut d, &path, &expected);
    }
    // A session whose first entry does not fit leaves nothing behind.
    fs::write(&ballast, vec![0; 512 << 10]).ok();
    let other = d.create();
    let params = json!({"sessionId": other, "message": user(&"x".repeat(9_000)), "entryId": "n1"});
    d.err_kind("append_message", params.clone(), "storageFull");
    assert_eq!(home.session_files(), [path]);
    fs::remove_file(&ballast).unwrap();
    d.ok("append_message", params);
    assert_eq!(home.session_files().len(), 2);
}

/// The signal that comes with this limit used to kill whoever did not expect it.
#[test]
fn the_file_size_limit_loses_nothing_and_is_recovered_from() {
    let mut d = Daemon::quiet();
    d.ignore("diagnostics");
    d.let_complain();
    let path = begun(&mut d);
    let mut acknowledged = vec!["u1".to_owned(), "a1".to_owned()];
    for size in SIZES {
        let limit = fs::metadata(&path).unwrap().len() + 5_000;
        limit_to(&d, Resource::Fsize, Some(limit));
        let error = fill(&mut d, &mut acknowledged, size);
        assert_eq!(error.kind, "storageFull", "{error:?}");
        limit_to(&d, Resource::Fsize, None);
        let id = format!("after-{size}");
        d.user(&id, "there is room again");
        acknowledged.push(id);
        let expected: Vec<&str> = acknowledged.iter().map(String::as_str).collect();
        agrees(&mut d, &path, &expected);
    }
}

fn limit_to(d: &Daemon, resource: Resource, current: Option<u64>) {
    let maximum = rustix::process::getrlimit(resource).maximum;
    let current = current.or(maximum);
    prlimit(Some(d.pid()), resource, Rlimit { current, maximum }).unwrap();
}

#[test]
fn out_of_descriptors_calls_fail_and_work_again_afterwards() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let other = d.home.file(
        "other.jsonl",
        Log::new("other").user("o1", "", "x").text().as_bytes(),
    );
    // Fewer than are open now: nothing can be opened.
    limit_to(&d, Resource::Nofile, Some(4));
    let error = d.err_kind("open_session", json!({"path": other}), "storageIo");
    assert!(error.message.contains("open"), "{error:?}");
    let params = json!({"message": user("x"), "entryId": "u2"});
    d.err_kind("append_message", params.clone(), "storageIo");
    limit_to(&d, Resource::Nofile, Some(1024));
    d.ok("append_message", params);
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
    d.open(&other);
}

// ---------------------------------------------------------------------------------------------
// Calls that fail

pub struct Shim {
    library: PathBuf,
    actions: PathBuf,
    /// Where it notes what was synced.
    synced: PathBuf,
}

impl Shim {
    /// `None` where there is no C compiler.
    pub fn new(home: &Home) -> Option<Shim> {
        static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| {
            let folder = tempfile::Builder::new()
                .prefix("treelined-shim-")
                .tempdir()
                .unwrap()
                .keep();
            let source = folder.join("shim.c");
            fs::write(&source, include_str!("shim.c")).unwrap();
            let library = folder.join("shim.so");
            let compiled = Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .args([&library, &source])
                .status();
            compiled
                .is_ok_and(|status| status.success())
                .then_some(library)
        });
        let actions = home.files().join("actions");
        let synced = home.files().join("synced");
        fs::write(&actions, "").unwrap();
        Some(Shim {
            library: library.clone()?,
            actions,
            synced,
        })
    }

    /// What has a program preload it.
    pub fn env(&self) -> [(&str, &str); 3] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("SHIM_ACTIONS", self.actions.to_str().unwrap()),
            ("SHIM_SYNCED", self.synced.to_str().unwrap()),
        ]
    }

    pub fn start(&self, home: &Arc<Home>, args: &[&str]) -> Daemon {
        let mut d = quiet(home, args, &self.env());
        d.let_complain();
        d
    }

    /// Everything that was synced by now.
    pub fn synced(&self) -> String {
        fs::read_to_string(&self.synced).unwrap_or_default()
    }

    pub fn act(&self, actions: &str) {
        fs::write(&self.actions, actions).unwrap();
    }

    #[track_caller]
    pub fn is_done(&self) {
        let left = fs::read_to_string(&self.actions).unwrap();
        assert_eq!(left, "", "actions that did not happen");
    }
}

/// A daemon with the shim, a session u1 → a1, and its file.
pub fn shimmed(args: &[&str]) -> Option<(Shim, Daemon, PathBuf)> {
    let home = Home::new();
    let shim = Shim::new(&home)?;
    let mut d = shim.start(&home, args);
    let path = begun(&mut d);
    Some((shim, d, path))
}

#[test]
fn a_write_that_fails_leaves_no_trace() {
    let Some((shim, mut d, path)) = shimmed(&[]) else {
        return skip("failing calls: there is no C compiler");
    };
    for (errno, kind) in [
        (5, "storageIo"),
        (28, "storageFull"),
        (122, "storageFull"),
        (30, "pathDenied"),
    ] {
        let before = fs::read(&path).unwrap();
        shim.act(&format!("write error {errno}\n"));
        let label = json!({"targetId": "u1", "label": "no", "entryId": "l1"});
        d.err_kind("append_label", label, kind);
        shim.is_done();
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(d.leaf(), "a1");
        assert!(
            d.ok("get_label", json!({"entryId": "u1"}))
                .get("label")
                .is_none()
        );
        d.err_kind("get_entry", json!({"entryId": "l1"}), "entryNotFound");
        // Nor does a move leave one.
        shim.act(&format!("write error {errno}\n"));
        d.err_kind("set_leaf", json!({"leafId": "u1"}), kind);
        assert_eq!(d.leaf(), "a1");
        d.err_kind("undo_navigation", json!({}), "nothingToUndo");
    }
    // The same id is free.
    d.user("l1", "x");
    agrees(&mut d, &path, &["u1", "a1", "l1"]);
}

/// The write ends at each byte in turn of a batch of three entries.
#[test]
fn a_short_write_keeps_whole_lines_and_isolates_the_rest() {
    let Some((shim, mut d, path)) = shimmed(&[]) else {
        return skip("short writes: there is no C compiler");
    };
    d.ignore("diagnostics");
    let mut expected = vec!["u1".to_owned(), "a1".to_owned()];
    let entry = |id: &str| json!({"type": "custom", "customType": "c", "data": 1, "id": id});
    let line = {
        d.ok("append_entries", json!({"entries": [entry("sz00")]}));
        expected.push("sz00".to_owned());
        fs::read_to_string(&path)
            .unwrap()
            .lines()
            .last()
            .unwrap()
            .len()
            + 1
    };
    for cut in
        (1..3 * line)
            .step_by(7)
            .chain([line - 1, line, line + 1, 2 * line - 1, 3 * line - 1])
    {
        for closes in [true, false] {
            let ids: Vec<String> = (0..3)
                .map(|n| format!("s{cut}{}{n}", u8::from(closes)))
                .collect();
            // Ids of one length would make lines of one length; the cut is what is of interest.
            let entries: Vec<Json> = ids.iter().map(|id| entry(id)).collect();
            let before = fs::read(&path).unwrap();
            shim.act(&if closes {
                format!("write short {cut}\n")
            } else {
                format!("write short {cut}\nwrite error 28\n")
            });
            let result = d.call("append_entries", json!({"entries": entries}));
            shim.act("");
            let after = fs::read(&path).unwrap();
            assert!(after.starts_with(&before), "nothing before it is touched");
            let new = String::from_utf8_lossy(&after[before.len()..]).into_owned();
            let whole: Vec<String> = ids
                .iter()
                .filter(|id| {
                    new.lines()
                        .any(|line| parse(line).is_ok_and(|entry| entry["id"] == id.as_str()))
                })
                .cloned()
                .collect();
            match result {
                Ok(result) => assert_eq!((ids_of(&result), &whole), (ids.clone(), &ids)),
                Err(error) => {
                    assert_eq!(error.kind, "storageFull");
                    let written = error.data["details"]["writtenIds"].clone();
                    let written = if written.is_null() {
                        vec![]
                    } else {
                        self::ids(&written)
                    };
                    assert_eq!(written, whole, "cut at {cut}");
                }
            }
            expected.extend(whole);
            let leaf = format!("ok{cut}{}", u8::from(closes));
            assert_eq!(d.ids(), expected, "cut at {cut}, closed: {closes}");
            d.user(&leaf, "there is room again");
            expected.push(leaf);
        }
    }
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    agrees(&mut d, &path, &expected);
}

fn ids_of(result: &Json) -> Vec<String> {
    ids(&result["entryIds"])
}

#[test]
fn with_always_a_failed_sync_is_told_and_the_entry_stays() {
    let Some((shim, mut d, path)) = shimmed(&["--durability", "always"]) else {
        return skip("failing syncs: there is no C compiler");
    };
    shim.act("sync error 5\n");
    let params = json!({"message": user("x"), "entryId": "u2"});
    let error = d.err_kind("append_message", params.clone(), "durabilityUnknown");
    assert_eq!(error.data["retryable"], false);
    shim.is_done();
    assert_eq!(d.leaf(), "u2", "it is in the file, and so it is indexed");
    // Sent again it is the same entry, of which no later sync proves anything; a later one is as
    // durable as ever.
    d.err_kind("append_message", params.clone(), "durabilityUnknown");
    assert_eq!(d.user("u3", "y")["durability"], "always");
    d.err_kind("append_message", params, "durabilityUnknown");
    agrees(&mut d, &path, &["u1", "a1", "u2", "u3"]);
}

#[test]
fn the_first_write_of_a_session_is_synced_whatever_the_policy() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip("failing syncs: there is no C compiler");
    };
    for policy in ["os", "interval", "always"] {
        let mut d = shim.start(&home, &["--durability", policy]);
        d.create();
        shim.act("sync error 5\n");
        d.err_kind(
            "append_message",
            json!({"message": user("x")}),
            "durabilityUnknown",
        );
        shim.is_done();
        // Made without an entry, the session leaves nothing.
        let before = home.session_files();
        shim.act("sync error 5\n");
        d.err_kind(
            "create_session",
            json!({"write": "now"}),
            "durabilityUnknown",
        );
        shim.is_done();
        assert_eq!(home.session_files(), before);
    }
}

/// A retry was answered with success and `durability: "none"` where the first one had been answered
/// `durabilityUnknown`: its durability is what the entry has.
#[test]
fn a_retry_after_a_failed_first_sync_is_told_the_same() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip("failing syncs: there is no C compiler");
    };
    let params = json!({"message": user("x"), "entryId": "u1"});
    for (policy, given) in [("os", Some("os")), ("interval", None), ("always", None)] {
        let mut d = shim.start(&home, &["--durability", policy]);
        d.create();
        shim.act("sync error 5\n");
        d.err_kind("append_message", params.clone(), "durabilityUnknown");
        shim.is_done();
        match given {
            // The policy promises no sync, so the failed one takes nothing away.
            Some(given) => assert_eq!(d.ok("append_message", params.clone())["durability"], given),
            None => {
                d.err_kind("append_message", params.clone(), "durabilityUnknown");
                let later = json!({"message": user("y"), "entryId": "u2"});
                for _ in 0..2 {
                    assert_eq!(d.ok("append_message", later.clone())["durability"], policy);
                }
            }
        }
    }
}

/// With `always`, a retry was answered while the first one's fdatasync was still running.
#[test]
fn a_retry_waits_for_the_sync_of_its_entry() {
    let Some((shim, mut d, _)) = shimmed(&["--durability", "always"]) else {
        return skip("slow syncs: there is no C compiler");
    };
    let params = json!({"message": user("x"), "entryId": "u2"});
    let message = json!({"customType": "c", "content": "x", "display": true, "entryId": "m1"});
    for (method, params) in [("append_message", params), ("send_message", message)] {
        shim.act("sync pause 1000\n");
        let began = Instant::now();
        let first = d.send(method, params.clone());
        std::thread::sleep(Duration::from_millis(100));
        let retry = d.send(method, params.clone());
        std::thread::sleep(Duration::from_millis(200));
        d.still_waits(&retry);
        d.still_waits(&first);
        for id in [retry, first] {
            assert_eq!(d.response(&id).unwrap()["durability"], "always");
        }
        assert!(began.elapsed() >= Duration::from_secs(1));
        shim.is_done();
        // Once it is on disk no further sync is made.
        shim.act("sync error 5\n");
        assert_eq!(d.ok(method, params)["durability"], "always");
        shim.act("");
    }
}

#[test]
fn a_session_may_have_a_durability_of_its_own() {
    let home = Home::new();
    let Some(shim) = Shim::new(&home) else {
        return skip("failing syncs: there is no C compiler");
    };
    let mut d = shim.start(&home, &["--durability", "os"]);
    let create = |d: &mut Daemon, params: Json| {
        let made = d.ok("create_session", params);
        made["session"]["sessionId"].as_str().unwrap().to_owned()
    };
    let append = |d: &mut Daemon, id: &str| {
        let params = json!({"sessionId": id, "message": user("x")});
        d.call("append_message", params)
    };
    let given = |d: &mut Daemon, id: &str| append(d, id).unwrap()["durability"].clone();
    let plain = create(&mut d, json!({}));
    let safe = create(&mut d, json!({"durability": "always"}));
    assert_eq!(
        (given(&mut d, &plain), given(&mut d, &safe)),
        (json!("os"), json!("always"))
    );
    // Not only said so: it waits for a sync, the other one for none.
    shim.act("sync error 5\n");
    assert_eq!(given(&mut d, &plain), "os");
    let error = append(&mut d, &safe).expect_err("the sync fails");
    assert_eq!(error.kind, "durabilityUnknown");
    shim.is_done();
    // Forks have it too.
    for name in ["session_before_fork", "session_fork"] {
        d.ignore(name);
    }
    let fork = d.ok("fork_session", json!({"sessionId": safe, "position": "at"}));
    let fork = fork["session"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(given(&mut d, &fork), "always");
    // It can be changed, and is the opening's, not the file's.
    d.ok("open_session", json!({"sessionId": safe}));
    assert_eq!(given(&mut d, &safe), "always");
    d.ok(
        "open_session",
        json!({"sessionId": safe, "durability": "interval"}),
    );
    assert_eq!(given(&mut d, &safe), "interval");
    d.ok("close_session", json!({"sessionId": safe}));
    d.ok("open_session", json!({"sessionId": safe}));
    assert_eq!(given(&mut d, &safe), "os");
    d.ok("close_session", json!({"sessionId": safe}));
    d.ok(
        "open_session",
        json!({"sessionId": safe, "durability": "always"}),
    );
    assert_eq!(given(&mut d, &safe), "always");
    let memory = create(&mut d, json!({"ephemeral": true, "durability": "always"}));
    assert_eq!(given(&mut d, &memory), "none");
    for (method, params) in [
        ("create_session", json!({"durability": "none"})),
        (
            "open_session",
            json!({"sessionId": plain, "durability": "Always"}),
        ),
    ] {
        let error = d.err_kind(method, params, "invalidParams");
        assert_eq!(error.details("field"), "durability");
    }
}

#[test]
fn with_interval_a_late_failure_is_announced_and_fails_the_next_append_once() {
    let Some((shim, mut d, path)) = shimmed(&["--durability", "interval"]) else {
        return skip("failing syncs: there is no C compiler");
    };
    // The sync of what `begun` has written is not the one to fail.
    std::thread::sleep(Duration::from_millis(150));
    shim.act("sync error 5\n");
    d.user("u2", "answered before the sync");
    let told = d.notification("diagnostics");
    assert_eq!(told["diagnostics"][0]["kind"], "durabilityUnknown");
    let params = json!({"message": user("x"), "entryId": "u3"});
    d.err_kind("append_message", params.clone(), "durabilityUnknown");
    assert_eq!(d.ids(), ["u1", "a1", "u2"], "nothing of it was written");
    d.ok("append_message", params);
    agrees(&mut d, &path, &["u1", "a1", "u2", "u3"]);
    d.no_notification("diagnostics");
}

#[test]
fn with_always_nothing_is_told_before_it_is_on_disk() {
    let Some((shim, mut d, _)) = shimmed(&["--durability", "always"]) else {
        return skip("slow syncs: there is no C compiler");
    };
    d.ok("get_leaf", json!({}));
    d.forget_order();
    shim.act("sync pause 400\n");
    let slow = d.send(
        "append_message",
        json!({"message": user("x"), "entryId": "u2"}),
    );
    let next = d.send(
        "append_label",
        json!({"targetId": "u1", "label": "l", "entryId": "l1"}),
    );
    // Reads do not wait for it, and see it.
    let began = Instant::now();
    assert_eq!(d.leaf(), "l1");
    assert!(
        began.elapsed() < Duration::from_millis(300),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(d.order(), ["=get_leaf"], "nobody was told yet");
    assert!(d.response(&slow).is_ok() && d.response(&next).is_ok());
    shim.is_done();
    let told: Vec<&str> = d.order().iter().map(String::as_str).collect();
    let at = |name: &str| told.iter().position(|told| *told == name).unwrap();
    assert!(at("entries_appended") < at("=append_message"), "{told:?}");
    assert_eq!(
        told.iter()
            .filter(|told| **told == "entries_appended")
            .count(),
        2
    );
}

// ---------------------------------------------------------------------------------------------
// Files and folders that are not what they were

#[test]
fn a_deleted_file_is_not_made_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let away = d.home.files().join("away");
    fs::rename(&path, &away).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "sessionDeleted", || {
        assert!(!path.exists(), "never recreated silently");
        fs::rename(&away, &path).unwrap();
    });
}

#[test]
fn a_file_replaced_by_another_session_is_refused() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let away = d.home.files().join("away");
    fs::rename(&path, &away).unwrap();
    let other = Log::new("other").user("o1", "", "x").text();
    fs::write(&path, &other).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "sessionReplaced", || {
        assert_eq!(fs::read_to_string(&path).unwrap(), other, "untouched");
        fs::rename(&away, &path).unwrap();
    });
}

#[test]
fn a_file_replaced_by_the_same_session_is_followed() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let copy = d.home.files().join("copy");
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&entry_line(
        9,
        "message",
        "o1",
        "a1",
        json!({"message": user("other")}),
    ));
    fs::write(&copy, text + "\n").unwrap();
    fs::rename(&copy, &path).unwrap();
    d.user("u2", "x");
    assert_eq!(d.ids(), ["u1", "a1", "o1", "u2"]);
    assert_eq!(
        d.entry("u2")["parentId"],
        "a1",
        "this daemon's leaf did not follow"
    );
    agrees(&mut d, &path, &["u1", "a1", "o1", "u2"]);
}

/// Editors and other programs that write in place leave the inode; old offsets are worth nothing.
#[test]
fn a_file_rewritten_in_place_is_read_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let text = fs::read_to_string(&path).unwrap();
    let longer = text.replacen("text of u1", "text of u1, and then some more", 1);
    fs::write(&path, &longer).unwrap();
    assert_eq!(
        d.entry("u1")["message"]["content"],
        "text of u1, and then some more"
    );
    assert_eq!(d.entry("a1")["id"], "a1");
    d.user("u2", "x");
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
}

/// Lines swapped in place by one of the same length: only the body shows it.
#[test]
fn a_body_that_is_another_entrys_is_noticed() {
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "first");
    d.user("u2", "other");
    d.user("u3", "third");
    let path = d.home.only_file();
    let text = fs::read_to_string(&path).unwrap();
    let swapped = text
        .replace("\"id\":\"u1\"", "\"id\":\"uX\"")
        .replace("\"parentId\":\"u1\"", "\"parentId\":\"uX\"");
    // Not truncated first: watching the file, the daemon would notice that.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, swapped.as_bytes(), 0).unwrap();
    let error = d.err_kind("get_entry", json!({"entryId": "u1"}), "sessionReplaced");
    assert!(!error.message.is_empty());
    assert_eq!(d.ids(), ["uX", "u2", "u3"], "it has been read again");
    assert_eq!(d.leaf(), "u3");
}

#[test]
fn a_truncated_file_is_read_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    d.user("u2", "x");
    let text = fs::read_to_string(&path).unwrap();
    let shorter = text.rfind("{\"type\"").unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(shorter as u64)
        .unwrap();
    assert_eq!(d.ids(), ["u1", "a1"]);
    d.user("u3", "x");
    agrees(&mut d, &path, &["u1", "a1", "u3"]);
    // To nothing: there is no session any more.
    fs::write(&path, "").unwrap();
    d.err_kind(
        "append_message",
        json!({"message": user("x")}),
        "sessionReplaced",
    );
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_file_swapped_for_a_link_is_not_followed() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let away = d.home.files().join("away.jsonl");
    fs::rename(&path, &away).unwrap();
    symlink(&away, &path).unwrap();
    let before = fs::read(&away).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "pathDenied", || {
        assert_eq!(
            fs::read(&away).unwrap(),
            before,
            "not written through the link"
        );
        fs::remove_file(&path).unwrap();
        fs::rename(&away, &path).unwrap();
    });
}

#[test]
fn a_folder_swapped_for_a_link_is_not_followed() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let folder = path.parent().unwrap().to_owned();
    let away = d.home.files().join("away");
    fs::rename(&folder, &away).unwrap();
    symlink(&away, &folder).unwrap();
    // What is open is relative to the folder that was opened: it follows the folder, not the link.
    d.user("u2", "x");
    assert_eq!(file_lines(&away.join(path.file_name().unwrap())).len(), 4);
    // Whoever looks for the session does not go through the link.
    let session = d.ok("get_leaf", json!({}))["leafId"].clone();
    assert_eq!(session, "u2");
    assert_eq!(d.ok("list_sessions", json!({}))["sessions"], json!([]));
    fs::remove_file(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
}

#[test]
fn a_folder_that_is_gone_and_back_is_found_again() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let folder = path.parent().unwrap().to_owned();
    let text = fs::read(&path).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    fails_then_recovers(&mut d, &path.clone(), "sessionDeleted", || {
        assert!(!folder.exists());
        fs::create_dir(&folder).unwrap();
        fs::write(&path, text).unwrap();
    });
}

#[test]
fn without_its_directory_the_daemon_makes_it_again_for_new_sessions() {
    let mut d = Daemon::quiet();
    begun(&mut d);
    let unwritten = d.create();
    fs::remove_dir_all(d.home.sessions()).unwrap();
    assert_eq!(d.ok("list_sessions", json!({}))["sessions"], json!([]));
    d.ok(
        "append_message",
        json!({"sessionId": unwritten, "message": user("x")}),
    );
    assert_eq!(d.home.session_files().len(), 1);
    let new = d.create();
    d.ok(
        "append_message",
        json!({"sessionId": new, "message": user("x")}),
    );
    assert_eq!(d.home.session_files().len(), 2);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&d.home.sessions()), 0o700);
}

#[test]
fn a_file_and_a_folder_that_cannot_be_written_are_said_so() {
    let home = Home::new();
    let nobody = 65_534;
    let mut command = home.command(&["--session-dir", home.sessions().to_str().unwrap()], &[]);
    if rustix::process::getuid().is_root() {
        // Permissions are nothing to root.
        command.uid(nobody);
        for folder in [
            home.sessions(),
            home.cwd(),
            home.files(),
            home.sessions().join(".."),
        ] {
            std::os::unix::fs::chown(folder, Some(nobody), None).unwrap();
        }
    }
    let mut d = Daemon::spawned(&home, command);
    d.ignore_bookkeeping();
    let path = begun(&mut d);
    let set =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    d.ok("close_session", json!({}));
    set(&path, 0o400);
    d.open(&path);
    fails_then_recovers(&mut d, &path.clone(), "pathDenied", || set(&path, 0o600));

    let folder = path.parent().unwrap();
    set(folder, 0o500);
    d.user("u3", "an existing file can be appended to");
    let new = d.create();
    let params = json!({"sessionId": new, "message": user("x"), "entryId": "n1"});
    d.err_kind("append_message", params.clone(), "pathDenied");
    set(folder, 0o700);
    d.ok("append_message", params);
}

// ---------------------------------------------------------------------------------------------
// A lock that somebody else holds

#[test]
fn a_lock_held_for_ever_is_sessionlocked_after_2_seconds() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    let began = Instant::now();
    // All of them wait together, not one after the other.
    let waiting: Vec<Json> = (0..50)
        .map(|n| {
            d.send(
                "append_message",
                json!({"message": user("x"), "entryId": format!("w{n}")}),
            )
        })
        .collect();
    // Meanwhile everything else is answered.
    d.ok("list_sessions", json!({}));
    assert!(began.elapsed() < Duration::from_secs(1));
    for id in &waiting {
        let error = d.response(id).expect_err("the lock is held");
        assert_eq!(error.kind, "sessionLocked");
        assert_eq!(error.data["retryable"], true);
    }
    let took = began.elapsed();
    assert!((2.0..3.5).contains(&took.as_secs_f64()), "{took:?}");
    // One that comes later waits as long, and goes on as soon as the lock is free.
    let late = d.send(
        "append_message",
        json!({"message": user("x"), "entryId": "u2"}),
    );
    std::thread::sleep(Duration::from_millis(500));
    d.still_waits(&late);
    holder.unlock().unwrap();
    d.response(&late).expect("the lock is free");
    agrees(&mut d, &path, &["u1", "a1", "u2"]);
}

#[test]
fn waiting_for_a_lock_can_be_cancelled() {
    let mut d = Daemon::quiet();
    let path = begun(&mut d);
    let holder = fs::File::open(&path).unwrap();
    holder.lock().unwrap();
    let waiting = d.send(
        "append_message",
        json!({"message": user("x"), "entryId": "u2"}),
    );
    d.ok("$/cancel_request", json!({"requestId": waiting}));
    assert_eq!(
        d.response(&waiting).expect_err("cancelled").kind,
        "cancelled"
    );
    holder.unlock().unwrap();
    agrees(&mut d, &path, &["u1", "a1"]);
}
