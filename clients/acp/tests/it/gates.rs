//! A gate on the resident memory of the recorder, as session-file.md §6 has them for the daemon: its memory at the start, the
//! turn, which it records at its end, and what the daemon may keep and work with in the usual form of its gates and what no
//! budget counts. The usual turn has more than this; that of `TREELINED_TEST_LONG` has 1 GB.

use crate::Folders;
use serde_json::{Value, json};
use std::io::BufRead;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// The memory that is kept, the memory that requests need, and the rest, which no budget counts.
const MORE: u64 = (64 + 16 + 30) * MIB;

/// A number of `/proc/PID/status` in bytes; `None` if the process has ended.
fn status(pid: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

#[test]
fn a_turn_with_many_calls_is_recorded_in_little_memory() {
    let is_long = std::env::var_os("TREELINED_TEST_LONG").is_some();
    let (calls, size) = (if is_long { 20_000 } else { 2_400 }, 50_000);
    assert!(calls * size > MORE);
    let folders = Folders::new();
    let mut command = folders.command(&crate::daemon());
    command.args(["--", "python3", crate::AGENT]);
    command.env("FLOOD", format!("{calls} {size}"));
    let mut editor = crate::Editor::start(command);
    editor.ask(
        "session/new",
        json!({"cwd": folders.path("work"), "mcpServers": []}),
    );
    let pid = editor.child.id();
    let start = status(pid, "VmRSS").unwrap();
    let watch = std::thread::spawn(move || {
        let mut peak = start;
        while let Some(now) = status(pid, "VmHWM") {
            peak = now;
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    });
    let prompt = json!([{"type": "text", "text": "flood"}]);
    let id = editor.begin(
        "session/prompt",
        json!({"sessionId": "s1", "prompt": prompt}),
    );
    let (mut line, mut passed) = (String::new(), 0);
    loop {
        line.clear();
        assert!(editor.stdout.read_line(&mut line).unwrap() > 0, "a message");
        passed += line.len() as u64;
        if line.len() < 4096 {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                break;
            }
        }
    }
    assert!(passed > calls * size, "{passed}");
    assert_eq!(editor.end(), 0);
    let peak = watch.join().unwrap();
    println!(
        "gate: {passed} bytes: start {}, peak {} of {} MiB",
        start / MIB,
        peak / MIB,
        (start + passed + MORE) / MIB
    );
    assert!(
        peak <= start + passed + MORE,
        "{peak} > {start} + {passed} + {MORE}"
    );
    if crate::MAY_LACK.take() {
        folders.recover();
    }
    let written = folders.path("sessions");
    let folder = std::fs::read_dir(written).unwrap();
    let folder = folder.map(|entry| entry.unwrap().path());
    let project = folder.into_iter().find(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("--")
    });
    let mut files = std::fs::read_dir(project.unwrap()).unwrap();
    let file = files.find_map(|file| {
        let path = file.unwrap().path();
        path.extension()
            .is_some_and(|ending| ending == "jsonl")
            .then_some(path)
    });
    let text = std::fs::read_to_string(file.unwrap()).unwrap();
    let results = text.matches(r#""role":"toolResult""#).count();
    assert_eq!(results as u64, calls);
}
