//! Gates on resident memory (session-file.md §6): peak at most start + trees + kept + working + 30 MiB, and after the
//! sessions are closed at most start + kept + 30 MiB. "Trees" is the memory that opening the sessions takes. The usual
//! form has small inputs and a small working part; the long form has 1 GB, a million entries, 1,024 clients and 100,000
//! sessions.

use crate::config::{file, script};
use crate::harness::*;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// What the daemon keeps of views, rows, imports and statistics.
const KEPT: u64 = 64 * MIB;
/// Everything that no budget counts.
const SLACK: u64 = 30 * MIB;

/// The working part of memory in this form of the test.
fn working() -> u64 {
    if is_long_run() { 256 * MIB } else { 16 * MIB }
}

/// The usual size, or the long one.
fn sized(usual: usize, long: usize) -> usize {
    if is_long_run() { long } else { usual }
}

fn limited(home: &Arc<Home>) -> SharedDaemon {
    limited_with(home, "")
}

/// `more` is added to the configuration.
fn limited_with(home: &Arc<Home>, more: &str) -> SharedDaemon {
    let text = format!("[limits]\nmax_working_bytes = {}\n{more}", working());
    let config = file(home, &text);
    SharedDaemon::start_in(home, &["--config", &config], &[])
}

/// A client that waits long, since the long forms take long.
fn patient(shared: &SharedDaemon, capabilities: Json) -> Daemon {
    let mut client = shared.client("patient", capabilities);
    client.deadline = Duration::from_secs(600);
    client
}

fn status(shared: &SharedDaemon, field: &str) -> u64 {
    let path = format!("/proc/{}/status", shared.pid().as_raw_nonzero());
    let status = fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// The memory that is kept with this many sessions: their rows leave 16 MiB of the 64 to everything else.
fn kept_with(sessions: usize) -> u64 {
    KEPT.max(sessions as u64 * 1024 + 16 * MIB)
}

/// The resident memory of a daemon from its start.
struct Gate<'a> {
    shared: &'a SharedDaemon,
    start: u64,
    kept: u64,
    /// What opening the sessions takes.
    trees: u64,
}

impl<'a> Gate<'a> {
    fn at_start(shared: &'a SharedDaemon) -> Self {
        let start = status(shared, "VmRSS");
        Gate {
            shared,
            start,
            kept: KEPT,
            trees: 0,
        }
    }

    fn opened(&mut self) {
        self.trees = status(self.shared, "VmRSS").saturating_sub(self.start);
    }

    /// Checks the most that was ever resident.
    fn check_peak(&self, what: &str) {
        let peak = status(self.shared, "VmHWM");
        let most = self.start + self.trees + self.kept + working() + SLACK;
        let mib = |bytes: u64| bytes / MIB;
        println!(
            "gate: {what}: start {}, trees {}, peak {} of {} MiB",
            mib(self.start),
            mib(self.trees),
            mib(peak),
            mib(most)
        );
        assert!(peak <= most, "{what}: {peak} > {most}");
    }

    /// Checks what stays after everything is closed.
    fn check_rest(&self, what: &str) {
        let most = self.start + self.kept + SLACK;
        eventually("the memory is given back", || {
            status(self.shared, "VmRSS") <= most
        });
        println!(
            "gate: {what}: after close {} of {} MiB",
            status(self.shared, "VmRSS") / MIB,
            most / MIB
        );
    }
}

/// A chain of messages with this many bytes each.
fn chain(home: &Home, session: &str, count: usize, size: usize) -> PathBuf {
    let path = home.files().join(format!("{session}.jsonl"));
    let mut out = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    writeln!(out, r#"{{"type":"session","version":3,"id":"{session}","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/project"}}"#).unwrap();
    let text = "text ".repeat(size.div_ceil(5));
    for n in 0..count {
        let parent = n
            .checked_sub(1)
            .map_or("null".to_owned(), |at| format!("\"n{at}\""));
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        writeln!(out, r#"{{"type":"message","id":"n{n}","parentId":{parent},"timestamp":"2025-01-01T00:00:00.000Z","message":{{"role":"{role}","content":[{{"type":"text","text":"{n} {text}"}}]}}}}"#).unwrap();
    }
    out.flush().unwrap();
    path
}

/// What a client of a session asks for. `count` is the number of entries.
fn read_all(client: &mut Daemon, count: usize) {
    client.ok("get_tree", json!({"limit": 500}));
    client.ok(
        "get_tree",
        json!({"limit": 500, "filter": "all", "offset": count / 2}),
    );
    client.ok("get_stats", json!({}));
    client.ok("navigate_tree", json!({"targetId": "n1", "dryRun": true}));
    client.ok("prepare_compaction", json!({}));
    let mut cursor = json!(null);
    for _ in 0..20 {
        let page = client.ok("get_path", json!({"limit": 100, "since": cursor}));
        cursor = page.get("nextCursor").cloned().unwrap_or_default();
    }
}

#[test]
fn reading_a_large_session() {
    let home = Home::new();
    let count = sized(5_000, 100_000);
    let path = chain(&home, "large", count, 10_000);
    let shared = limited(&home);
    let mut client = patient(&shared, json!({"maxFrameBytes": MIB}));
    let mut gate = Gate::at_start(&shared);
    client.open(&path);
    gate.opened();
    read_all(&mut client, count);
    gate.check_peak("a large session");
    client.ok("close_session", json!({}));
    gate.check_rest("a large session");
}

#[test]
fn reading_a_session_of_many_entries() {
    let home = Home::new();
    let count = sized(20_000, 1_000_000);
    let path = chain(&home, "many", count, 10);
    let shared = limited(&home);
    let mut client = patient(&shared, json!({}));
    let mut gate = Gate::at_start(&shared);
    client.open(&path);
    gate.opened();
    read_all(&mut client, count);
    gate.check_peak("many entries");
    client.ok("close_session", json!({}));
    gate.check_rest("many entries");
}

/// A summary of a branch of 980 MB once took 2.1 to 2.3 GB, and 600 MB stayed: the whole branch was read, and written for
/// the program.
fn summarizing_with(summarizer: &str, name: &str) {
    let home = Home::new();
    let count = sized(8_000, 100_000);
    let path = chain(&home, name, count, 10_000);
    let shared = limited_with(&home, summarizer);
    let mut client = patient(&shared, json!({"maxFrameBytes": MIB}));
    let mut gate = Gate::at_start(&shared);
    client.open(&path);
    gate.opened();
    let moved = client.ok(
        "navigate_tree",
        json!({"targetId": "n1", "summarize": true}),
    );
    assert!(moved["summaryEntry"].is_object(), "{moved}");
    client.ok("set_leaf", json!({"leafId": format!("n{}", count - 1)}));
    let compacted = client.ok("compact", json!({}));
    assert!(compacted["compactionEntry"].is_object(), "{compacted}");
    client.notification("session_before_compact");
    client.notification("session_compact");
    gate.check_peak(name);
    client.ok("close_session", json!({}));
    gate.check_rest(name);
}

#[test]
fn summarizing_a_large_branch_as_an_outline() {
    summarizing_with("[summarizer]\nuse = \"outline\"\n", "outline");
}

#[test]
fn summarizing_a_large_branch_with_a_program() {
    let home = Home::new();
    let program = script(&home, "summarize", "wc -c");
    let summarizer =
        format!("[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [{program:?}]\n");
    summarizing_with(&summarizer, "program");
}

/// Every client opens the session and asks for large answers; every second one reads nothing.
#[test]
fn many_clients() {
    let home = Home::new();
    let path = chain(&home, "shared", 600, 4_000);
    let clients = sized(100, 1_024);
    crate::connections::limits::raise_descriptor_limit();
    let shared = limited(&home);
    let mut first = patient(&shared, json!({}));
    let mut gate = Gate::at_start(&shared);
    first.open(&path);
    gate.opened();
    let line = |id: usize, method: &str, mut params: Json| {
        params["sessionId"] = json!("shared");
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        format!("{request}\n")
    };
    let connect = |_| {
        let stream = UnixStream::connect(&shared.socket).unwrap();
        let wait = Some(Duration::from_secs(120));
        stream.set_read_timeout(wait).unwrap();
        let mut text = line(1, "open_session", json!({}));
        text += &line(2, "get_tree", json!({}));
        text += &line(3, "get_entries", json!({}));
        text += &line(4, "get_path", json!({}));
        (&stream).write_all(text.as_bytes()).unwrap();
        BufReader::new(stream)
    };
    let mut streams: Vec<_> = (0..clients).map(connect).collect();
    for stream in streams.iter_mut().step_by(2) {
        let mut answers = 0;
        while answers < 4 {
            let mut text = String::new();
            assert!(
                stream.read_line(&mut text).unwrap() > 0,
                "the connection ended"
            );
            answers += usize::from(text.starts_with(r#"{"jsonrpc":"2.0","id":"#));
        }
    }
    gate.check_peak("many clients");
    drop(streams);
    first.ok("close_session", json!({}));
    gate.check_rest("many clients");
}

#[test]
fn listing_many_sessions() {
    let home = Home::new();
    let count = sized(2_000, 100_000);
    let folder = home.sessions().join("--project--");
    fs::create_dir_all(&folder).unwrap();
    for n in 0..count {
        let mut text = String::new();
        writeln!(text, r#"{{"type":"session","version":3,"id":"s{n}","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/project"}}"#).unwrap();
        writeln!(text, r#"{{"type":"message","id":"u1","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","message":{{"role":"user","content":"question {n}"}}}}"#).unwrap();
        fs::write(
            folder.join(format!("2025-01-01T00-00-00-000Z_s{n}.jsonl")),
            text,
        )
        .unwrap();
    }
    let shared = limited(&home);
    let mut client = patient(&shared, json!({}));
    let mut gate = Gate::at_start(&shared);
    gate.kept = kept_with(count);
    let (mut listed, mut cursor) = (0, json!(null));
    loop {
        let page = client.ok("list_sessions", json!({"limit": 500, "cursor": cursor}));
        listed += page["sessions"].as_array().unwrap().len();
        cursor = page.get("nextCursor").cloned().unwrap_or_default();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed, count);
    let found = client.ok("search", json!({"query": "question 77", "limit": 10}));
    assert!(!found["hits"].as_array().unwrap().is_empty(), "{found}");
    gate.check_peak("many sessions");
    gate.check_rest("many sessions");
}

/// A file of Codex that is compressed with zstd: blocks that each repeat one byte, so that 20 kB make 640 MB.
fn bomb(blocks: usize) -> Vec<u8> {
    let block = |byte: u8, size: u32, is_last: bool| {
        let head = u32::from(is_last) | 1 << 1 | size << 3;
        let head = head.to_le_bytes();
        [head[0], head[1], head[2], byte]
    };
    // A frame whose window has 128 KiB.
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
    for n in 0..blocks {
        bytes.extend(block(b' ', 128 << 10, false));
        bytes.extend(block(b'\n', 1, n + 1 == blocks));
    }
    bytes
}

#[test]
fn importing_small_compressed_files() {
    let home = Home::new();
    let shared = limited(&home);
    let mut client = patient(&shared, json!({}));
    let gate = Gate::at_start(&shared);
    let mut paths = Vec::new();
    for n in 0..4 {
        let name =
            format!("rollout-2026-11-22T02-44-44-01a20124-4777-7de2-915b-00000000000{n}.jsonl.zst");
        let bytes = bomb(sized(2_500, 10_000));
        assert!(bytes.len() < 100 << 10);
        paths.push(home.file(&name, &bytes));
    }
    let report = client.ok("import_sessions", json!({"paths": paths}));
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 4, "{report}");
    for file in files {
        assert_eq!(file["error"]["kind"], "importTooLarge", "{report}");
    }
    gate.check_peak("small compressed files");
    gate.check_rest("small compressed files");
}
