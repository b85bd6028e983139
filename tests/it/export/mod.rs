//! `export_session` and `treelined export`: protocol.md §16.

mod cli;
mod data;
mod documents;
mod files;
mod page;
mod redaction;
mod review;
mod session_files;
mod subtrees;
mod traces;
mod values;

pub(crate) use page::chunks;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::harness::*;

/// A token in the form of a token of GitHub. Scanners of repositories do not take it for a real token.
fn token() -> String {
    format!("ghp_{}", "a1B2".repeat(9))
}

/// Two branches below `a1`: one with a call, its result and an answer, and one with a label. The leaf is `a2`.
fn branched() -> Log {
    let call = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Look first."},
        {"type": "text", "text": "I look at **it**."},
        {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "cargo test"}},
    ], "provider": "p", "model": "m", "usage": {"input": 10, "output": 5}});
    let result = json!({"role": "toolResult", "toolCallId": "t1", "toolName": "bash", "isError": true, "content": [
        {"type": "text", "text": "3 failed\n```\n\u{1b}[31mred"},
    ]});
    Log::new("s1")
        .user("u1", "", "Why does it fail?")
        .message("a1", "u1", call)
        .message("r1", "a1", result)
        .assistant("a2", "r1", "An import is missing.\n\n```rust\nuse x;")
        .user("u2", "a1", "another <b>way</b>")
        .assistant("a3", "u2", "Yes.")
        .label("l1", "a3", "u2", json!("the other"))
        .record("x1", "a2", "l1")
}

fn daemon(home: &Arc<Home>) -> Daemon {
    let mut d = Daemon::quiet_in(home);
    d.ignore("progress");
    d
}

/// A daemon with this session open, and the path of its file.
fn opened(home: &Arc<Home>, log: &Log) -> (Daemon, PathBuf) {
    let path = log.save(home);
    let mut d = daemon(home);
    d.open(&path);
    (d, path)
}

/// The export as text.
#[track_caller]
fn content(d: &mut Daemon, params: Json) -> String {
    let result = d.ok("export_session", params);
    let content = result["content"].as_str().expect("content").to_owned();
    assert_eq!(result["bytes"], content.len());
    content
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
