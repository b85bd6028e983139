//! The memory for large sessions, and answers about files that are edited in place. An answer that is too large is not
//! built, memory stays within the budgets, and every line is JSON.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{file, script};
use crate::harness::*;
use treelined_core::budget;
use treelined_files::kept::KEPT_BYTES;

const MIB: u64 = 1 << 20;

fn status(d: &Daemon, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", d.pid().as_raw_nonzero())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

fn resident(d: &Daemon) -> u64 {
    status(d, "VmRSS")
}

/// The most bytes by which resident memory grows during a call.
fn peak_of(d: &mut Daemon, call: impl FnOnce(&mut Daemon)) -> u64 {
    let before = resident(d);
    let clear = format!("/proc/{}/clear_refs", d.pid().as_raw_nonzero());
    fs::write(clear, "5").unwrap();
    call(d);
    status(d, "VmHWM").saturating_sub(before)
}

/// A chain of messages of `size` bytes each, of the user and the assistant in turn.
fn chain(home: &Home, session: &str, count: usize, size: usize) -> PathBuf {
    let mut log = Log::new(session).user("e0", "", &"x".repeat(size));
    for n in 1..count {
        let (id, parent) = (format!("e{n}"), format!("e{}", n - 1));
        let text = "text ".repeat(size / 5);
        log = match n % 2 {
            0 => log.user(&id, &parent, &text),
            _ => log.assistant(&id, &parent, &text),
        };
    }
    let path = home.files().join(format!("{session}.jsonl"));
    fs::write(&path, log.text()).unwrap();
    path
}

fn small_frames(d: &mut Daemon, bytes: u64) {
    d.init(json!({"maxFrameBytes": bytes}));
}

/// For a session of 1 GB an answer of 1 GB was once built before it was refused, which took 2 to 5 GB of memory. Now
/// such an answer is refused before the entries are read if their sizes are known, or reading stops at the limit.
#[test]
fn an_answer_larger_than_the_client_reads_is_refused_before_it_is_built() {
    let home = Home::new();
    let path = chain(&home, "big", 1_500, 20_000);
    let mut d = Daemon::quiet_in(&home);
    small_frames(&mut d, MIB);
    d.open(&path);
    let too_large = [
        ("get_path", json!({})),
        ("get_context", json!({})),
        ("get_context", json!({"format": "llm"})),
        ("get_fork_messages", json!({})),
        ("get_tree", json!({"format": "nested", "maxDepth": 10_000})),
        (
            "get_tree",
            json!({"format": "nested", "maxDepth": 10_000, "query": "text"}),
        ),
    ];
    for (method, params) in too_large {
        let peak = peak_of(&mut d, |d| {
            let error = d.err_kind(method, params.clone(), "responseTooLarge");
            assert!(
                error.message.contains("the client takes"),
                "{}",
                error.message
            );
        });
        println!("memory: {method} {peak}");
        assert!(peak < 16 * MIB, "{method}: {peak}");
    }
    let peak = peak_of(&mut d, |d| {
        let stats = d.ok("get_stats", json!({}));
        assert_eq!(stats["messages"], json!({"user": 750, "assistant": 750}));
        assert!(stats["contextTokens"].as_u64().unwrap() > 0);
    });
    println!("memory: get_stats {peak}");
    assert!(peak < 16 * MIB, "get_stats: {peak}");
}

/// A dry run and `prepare_compaction` once failed above the limit. Now they return ids instead of entries, as a
/// question does.
#[test]
fn preparations_over_the_limit_hold_ids() {
    let home = Home::new();
    let path = chain(&home, "big", 1_000, 20_000);
    let mut d = Daemon::quiet_in(&home);
    small_frames(&mut d, MIB);
    d.open(&path);
    let peak = peak_of(&mut d, |d| {
        let run = d.ok("navigate_tree", json!({"targetId": "e1", "dryRun": true}));
        let preparation = &run["preparation"];
        assert_eq!(preparation["truncated"], true);
        assert_eq!(preparation["entryIds"].as_array().unwrap().len(), 998);
        assert!(preparation.get("entriesToSummarize").is_none());
        let prepared = d.ok("prepare_compaction", json!({}));
        let preparation = &prepared["preparation"];
        assert_eq!(preparation["truncated"], true);
        let (ids, prefix) = (&preparation["entryIds"], &preparation["turnPrefixIds"]);
        let count = ids.as_array().unwrap().len() + prefix.as_array().map_or(0, Vec::len);
        let kept = preparation["firstKeptEntryId"].as_str().unwrap();
        assert_eq!(format!("e{count}"), kept);
        assert!(preparation.get("entriesToSummarize").is_none());
    });
    assert!(peak < 24 * MIB, "{peak}");
    // Below the limit the result has the entries.
    let run = d.ok("navigate_tree", json!({"targetId": "e989", "dryRun": true}));
    let entries = run["preparation"]["entriesToSummarize"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["id"]), (10, &json!("e990")));
    assert!(run["preparation"].get("truncated").is_none());
}

/// After `close_session`, a session of 196 MB once kept 1.3 GB of memory. Now the sum of the budgets limits it. A page of
/// memory that has a kept piece and freed ones stays, which on a busy machine has taken up to 29 MiB: requests then run in
/// more heaps at once.
#[test]
fn memory_after_closing_large_sessions_is_within_the_budgets() {
    let home = Home::new();
    let paths: Vec<PathBuf> = (0..3)
        .map(|n| chain(&home, &format!("big{n}"), 2_000, 10_000))
        .collect();
    let mut d = Daemon::quiet_in(&home);
    d.ok("list_sessions", json!({}));
    // Without the pages of the program's file, whose number depends on the other tests.
    let anonymous = |d: &Daemon| status(d, "RssAnon");
    let before = anonymous(&d);
    for (n, path) in paths.iter().enumerate() {
        d.open(path);
        let session = format!("big{n}");
        for (method, params) in [
            ("get_path", json!({})),
            ("get_context", json!({})),
            ("get_stats", json!({})),
            ("get_tree", json!({"filter": "all"})),
            ("get_entries", json!({})),
            ("get_fork_messages", json!({})),
            ("prepare_compaction", json!({})),
            ("navigate_tree", json!({"targetId": "e1", "dryRun": true})),
        ] {
            let mut params = params;
            params["sessionId"] = json!(session);
            d.ok(method, params);
        }
    }
    for n in 0..paths.len() {
        d.ok("close_session", json!({"sessionId": format!("big{n}")}));
    }
    let slack = 48 * MIB;
    eventually("memory is given back", || {
        anonymous(&d).saturating_sub(before) < KEPT_BYTES as u64 + slack
    });
    println!("memory: {before} before, {} after closing", anonymous(&d));
}

/// A page of sessions was once limited only by its number of rows, and rows of 100 kB made it too large to send.
#[test]
fn a_list_of_long_rows_is_split_into_pages() {
    let home = Home::new();
    for n in 0..30 {
        let name = format!("{n} {}", "n".repeat(100_000));
        Log::new(&format!("s{n}"))
            .user("e0", "", "x")
            .entry("session_info", "e1", "e0", json!({"name": name}))
            .store(&home, &format!("s{n}.jsonl"));
    }
    for (limit, is_whole) in [(MIB, true), (50_000, false)] {
        let mut d = Daemon::quiet_in(&home);
        small_frames(&mut d, limit);
        let (mut seen, mut cursor) = (Vec::new(), Json::Null);
        loop {
            let page = d.ok("list_sessions", json!({"cursor": cursor}));
            let rows = page["sessions"].as_array().unwrap();
            assert!(!rows.is_empty());
            for row in rows {
                let name = row["name"].as_str().unwrap();
                assert_eq!(name.len() > 100_000, is_whole);
                seen.push(row["sessionId"].as_str().unwrap().to_owned());
            }
            cursor = page.get("nextCursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                break;
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 30);
    }
}

/// Overwrites a part of a file without truncating it. File watchers do not report this.
fn edit(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let text = fs::read_to_string(path).unwrap();
    let at = text.find(from).unwrap() as u64;
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(to.as_bytes(), at).unwrap();
}

/// An edit in place can break the body of an entry but not its id. Once the answer was then a line that is not JSON, so
/// the request had no response. The daemon reads the file again: the entry becomes a diagnostic, and the answer has all
/// other entries.
#[test]
fn a_body_edited_in_place_breaks_no_answer() {
    let reads = [
        ("get_entries", json!({})),
        ("get_path", json!({})),
        ("get_children", json!({"entryId": "u1"})),
        ("get_tree", json!({"format": "nested"})),
        ("get_context", json!({"leafId": "u2"})),
    ];
    // The first edit ends a text too early, the second one puts a line break into a text.
    let edits = [
        ("\"content\":\"second\"", "\"content\":\"sec\"nd\""),
        ("\"content\":\"second\"", "\"content\":\"sec\nnd\""),
    ];
    for (from, to) in edits {
        for (method, params) in &reads {
            let mut d = Daemon::quiet();
            d.create();
            d.user("u1", "first");
            d.user("u2", "second");
            d.user("u4", "fourth");
            d.below(Some("u1"), "u3");
            d.set_leaf(Some("u4"));
            edit(&d.home.only_file(), from, to);
            let answer = match d.call(method, params.clone()) {
                Ok(answer) => answer.to_string(),
                // The requested entry is now missing.
                Err(error) => error.data["details"].to_string() + &error.kind,
            };
            let expected = match *method {
                "get_path" => "u4",
                "get_context" => "entryNotFound",
                _ => "u3",
            };
            assert!(!answer.contains("\"sec"), "{method}: {answer}");
            assert!(answer.contains(expected), "{method}: {answer}");
            let announced = d.notification("diagnostics").to_string();
            assert!(announced.contains("invalidJson"), "{announced}");
            d.err_kind("get_entry", json!({"entryId": "u2"}), "entryNotFound");
            d.user("u5", "goes on");
        }
    }
    // For a single entry the first read fails, and the file is read again.
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "first");
    d.user("u2", "second");
    edit(&d.home.only_file(), edits[0].0, edits[0].1);
    d.ignore("diagnostics");
    d.err_kind("get_entry", json!({"entryId": "u2"}), "sessionReplaced");
    d.err_kind("get_entry", json!({"entryId": "u2"}), "entryNotFound");
}

/// A cached row of the list was once used whenever length and modification time of the file were unchanged.
#[test]
fn a_listed_session_shows_an_edit_that_keeps_the_modification_time() {
    let home = Home::new();
    let path = Log::new("s1")
        .user("e0", "", "before")
        .store(&home, "s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    let first = |d: &mut Daemon| {
        let list = d.ok("list_sessions", json!({}));
        list["sessions"][0]["firstMessage"].clone()
    };
    assert_eq!(first(&mut d), "before");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    edit(&path, "before", "edited");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(first(&mut d), "edited");
}

/// A cached preview was once compared with its line only at its first use, so an edit in place was not noticed while
/// the session was open.
#[test]
fn rows_show_an_edit_in_place_while_the_session_is_open() {
    let home = Home::new();
    let mut log = Log::new("s1").user("e0", "", "first");
    for n in 1..5_000 {
        let parent = format!("e{}", n - 1);
        log = log.user(
            &format!("e{n}"),
            &parent,
            &format!("{n} text {}", "x".repeat(500)),
        );
    }
    let path = log.store(&home, "s1.jsonl");
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    let preview = |d: &mut Daemon| {
        let tree = d.ok("get_tree", json!({"filter": "all"}));
        tree["nodes"][2500]["preview"].as_str().unwrap()[..9].to_owned()
    };
    assert_eq!(preview(&mut d), "2500 text");
    assert_eq!(preview(&mut d), "2500 text");
    edit(&path, "\"2500 text", "\"2500 edit");
    assert_eq!(preview(&mut d), "2500 edit");
}

fn hooked(home: &Arc<Home>, body: &str) -> Daemon {
    let hook = script(home, "slow", body);
    let text =
        format!("[[hooks]]\nevents = [\"session_tree\"]\nargv = [{hook:?}]\ntimeout_ms = 20000\n");
    let path = file(home, &text);
    let mut d = Daemon::start_in(home, &["--config", &path], &[]);
    d.ignore_bookkeeping();
    d.allow_stderr();
    d
}

/// Once, up to a thousand events of any size waited for a slow hook, 1.7 GB in all, and at its end the daemon waited
/// for the hook. Now the queue has a budget, events above it are dropped, and the daemon waits at most a few seconds.
#[test]
fn events_for_a_slow_hook_stay_within_the_budget_and_delay_the_end_only_briefly() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let body = format!("cat >> {}; sleep 5", heard.display());
    let mut d = hooked(&home, &body);
    d.init(json!({"optOut": ["session_tree", "entries_appended"]}));
    d.create();
    d.chain(&["u1", "a1"]);
    let before = resident(&d);
    let summary = "s".repeat(1 << 20);
    for _ in 0..40 {
        let made = d.ok(
            "branch",
            json!({"entryId": "u1", "summary": {"summary": summary}}),
        );
        assert!(made.get("summaryEntry").is_some());
    }
    let more = resident(&d).saturating_sub(before);
    println!("memory: {more} more for the queue");
    assert!(more < budget::HOOK_QUEUE_BYTES as u64 + 48 * MIB, "{more}");
    let began = Instant::now();
    d.close_stdin();
    assert_eq!(d.exited(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
    let text = fs::read_to_string(&heard).unwrap();
    let count = text.lines().count();
    assert!((1..30).contains(&count), "{count} events were heard");
}
