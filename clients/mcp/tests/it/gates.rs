//! A gate on the resident memory of the server, as session-file.md §6 has them for the daemon. The server keeps no views and
//! no input, and its answers are short, so all that it may take besides its memory at the start is what the daemon may take
//! that no budget counts. The usual session has several times as much; that of `TREELINED_TEST_LONG` has 1 GB.

use crate::Folders;
use serde_json::{Value, json};
use std::io::Write;

const MIB: u64 = 1 << 20;
/// Everything that no budget counts.
const SLACK: u64 = 30 * MIB;

fn status(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// A session of one path, a branch that was left after every tenth message, and long results.
fn long_session(folders: &Folders, count: usize) -> u64 {
    let folder = folders.path("sessions/--work--");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("2026-01-01T00-00-00-000Z_long.jsonl");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let cwd = folders.path("work");
    let time = "2026-01-01T00:00:00.000Z";
    let header =
        json!({"type": "session", "version": 3, "id": "long", "timestamp": time, "cwd": cwd});
    writeln!(out, "{header}").unwrap();
    let text = "zebra crossing ".repeat(1_000);
    let mut say = |id: &str, parent: &Value, role: &str| {
        let content = json!([{"type": "text", "text": format!("{id} {text}")}]);
        let message = json!({"role": role, "content": content});
        let entry = json!({
            "type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message,
        });
        writeln!(out, "{entry}").unwrap();
        json!(id)
    };
    let mut parent = Value::Null;
    for n in 0..count {
        let role = ["user", "assistant"][n % 2];
        if n % 10 == 1 {
            say(&format!("b{n}"), &parent, "assistant");
        }
        parent = say(&format!("n{n}"), &parent, role);
    }
    out.flush().unwrap();
    std::fs::metadata(&path).unwrap().len()
}

#[test]
fn a_huge_session_is_read_in_little_memory() {
    let is_long = std::env::var_os("TREELINED_TEST_LONG").is_some();
    let count = if is_long { 60_000 } else { 5_000 };
    let folders = Folders::new();
    let bytes = long_session(&folders, count);
    assert!(bytes > 2 * SLACK, "{bytes}");
    let mut server = folders.server(&[]);
    let pid = server.child.id();
    let start = status(pid, "VmRSS");
    let last = format!("n{}", count - 1);
    server.text("list_sessions", json!({}));
    server.text("list_branches", json!({}));
    server.text("read_branch", json!({"tip": last, "maxTokens": 12_000}));
    for n in (1..count).step_by(count / 20) {
        server.text(
            "read_branch",
            json!({"tip": last, "from": format!("n{n}"), "maxTokens": 12_000}),
        );
    }
    for n in (0..count).step_by(count / 50) {
        server.text("read_entry", json!({"entry": format!("n{n}")}));
    }
    server.text("compare_branches", json!({"a": "b1", "b": last}));
    server.text("why_left", json!({"branch": "b1"}));
    server.text("search_history", json!({"query": "zebra", "limit": 20}));
    server.text(
        "search_history",
        json!({"query": "zebra crossing", "exact": true}),
    );
    server.text("what_was_tried", json!({"topic": "zebra crossing"}));
    let peak = status(pid, "VmHWM");
    println!(
        "gate: {bytes} bytes: start {}, peak {} of {} MiB",
        start / MIB,
        peak / MIB,
        (start + SLACK) / MIB
    );
    assert!(peak <= start + SLACK, "{peak} > {start} + {SLACK}");
}
