//! The input of the tests: messages as clients send them, and lines and files as other programs write them
//! (session-file.md §1). Also functions that read such files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::harness::{Home, Json, json, parse, shorten};

pub(crate) fn user(text: &str) -> Json {
    json!({"role": "user", "content": text, "timestamp": 1735689600000_u64})
}

pub(crate) fn assistant(text: &str) -> Json {
    assistant_with(json!([{"type": "text", "text": text}]))
}

pub(crate) fn assistant_with(content: Json) -> Json {
    json!({
        "role": "assistant", "content": content, "api": "anthropic-messages", "provider": "prov", "model": "mod",
        "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4,
                  "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.5}},
        "stopReason": "stop", "timestamp": 1735689600000_u64
    })
}

pub(crate) fn tool_call(call: &str, name: &str, arguments: Json) -> Json {
    json!({"type": "toolCall", "id": call, "name": name, "arguments": arguments})
}

pub(crate) fn tool_result(call: &str, name: &str, text: &str, is_error: bool) -> Json {
    json!({
        "role": "toolResult", "toolCallId": call, "toolName": name,
        "content": [{"type": "text", "text": text}], "isError": is_error, "timestamp": 1735689600000_u64
    })
}

/// The `id` members of an array of objects, or the elements of an array of strings.
#[track_caller]
pub(crate) fn ids(list: &Json) -> Vec<String> {
    list.as_array()
        .unwrap_or_else(|| panic!("not an array: {}", shorten(&list.to_string())))
        .iter()
        .map(|item| {
            item.get("id")
                .unwrap_or(item)
                .as_str()
                .expect("an id")
                .to_owned()
        })
        .collect()
}

/// The lines of a file as JSON. Each line must parse, and none may be blank.
#[track_caller]
pub(crate) fn file_lines(path: &Path) -> Vec<Json> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(!text.contains("\n\n"), "a blank line");
    file_lines_of_many(path)
}

/// The lines of a file as JSON, with blank lines allowed. A blank line occurs if a program writes without a lock: the
/// daemon may end a line that the program is still writing, and the program then ends it again.
#[track_caller]
pub(crate) fn file_lines_of_many(path: &Path) -> Vec<Json> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(text.ends_with('\n'), "the last line is whole");
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| parse(line).unwrap_or_else(|e| panic!("{e}: {}", shorten(line))))
        .collect()
}

/// The number of complete lines of a file to which others may be writing.
pub(crate) fn line_count(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Appends a line to a session file as another program does: without a lock, in one write.
pub(crate) fn foreign_append(path: &Path, line: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A session file that a test builds. Timestamps count up by a second; the parent `""` is null.
#[derive(Clone)]
pub(crate) struct Log {
    lines: Vec<String>,
}

impl Log {
    pub(crate) fn new(session: &str) -> Log {
        Log::with_header(json!({
            "type": "session", "version": 3, "id": session, "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/project",
        }))
    }

    pub(crate) fn with_header(header: Json) -> Log {
        Log {
            lines: vec![header.to_string()],
        }
    }

    pub(crate) fn raw(mut self, line: &str) -> Log {
        self.lines.push(line.to_owned());
        self
    }

    pub(crate) fn entry(self, kind: &str, id: &str, parent: &str, members: Json) -> Log {
        let second = self.lines.len();
        self.entry_at(second, kind, id, parent, members)
    }

    pub(crate) fn entry_at(
        self,
        second: usize,
        kind: &str,
        id: &str,
        parent: &str,
        members: Json,
    ) -> Log {
        let line = entry_line(second, kind, id, parent, members);
        self.raw(&line)
    }

    pub(crate) fn message(self, id: &str, parent: &str, message: Json) -> Log {
        self.entry("message", id, parent, json!({"message": message}))
    }

    pub(crate) fn user(self, id: &str, parent: &str, text: &str) -> Log {
        self.message(id, parent, user(text))
    }

    pub(crate) fn assistant(self, id: &str, parent: &str, text: &str) -> Log {
        self.message(id, parent, assistant(text))
    }

    pub(crate) fn label(self, id: &str, parent: &str, target: &str, label: Json) -> Log {
        self.entry(
            "label",
            id,
            parent,
            json!({"targetId": target, "label": label}),
        )
    }

    /// A leaf record (session-file.md §4).
    pub(crate) fn record(self, id: &str, parent: &str, from: &str) -> Log {
        let line = record_line(self.lines.len(), id, parent, from);
        self.raw(&line)
    }

    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    pub(crate) fn line(&self, index: usize) -> &str {
        &self.lines[index]
    }

    /// Saves the file outside the session directory, so that a test opens it by its path.
    pub(crate) fn save(&self, home: &Home) -> PathBuf {
        home.file("s.jsonl", self.text().as_bytes())
    }

    /// Saves the file in the session directory, so that it is listed and opened by its id.
    pub(crate) fn store(&self, home: &Home, name: &str) -> PathBuf {
        let folder = home.sessions().join("--project--");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, self.text()).unwrap();
        path
    }
}

/// The timestamp that `entry_line` writes for this second.
pub(crate) fn stamp(second: usize) -> String {
    format!(
        "2025-01-01T{:02}:{:02}:{:02}.000Z",
        second / 3600 % 24,
        second / 60 % 60,
        second % 60
    )
}

/// The same time in Unix milliseconds.
pub(crate) fn stamp_ms(second: usize) -> u64 {
    1_735_689_600_000 + 1000 * second as u64
}

pub(crate) fn entry_line(
    second: usize,
    kind: &str,
    id: &str,
    parent: &str,
    members: Json,
) -> String {
    let mut entry =
        json!({"type": kind, "id": id, "parentId": or_null(parent), "timestamp": stamp(second)});
    for (name, value) in members.as_object().expect("members are an object") {
        entry[name] = value.clone();
    }
    entry.to_string()
}

pub(crate) fn record_line(second: usize, id: &str, parent: &str, from: &str) -> String {
    json!({
        "type": "custom", "customType": "treelined.leaf", "id": id, "parentId": or_null(parent),
        "timestamp": stamp(second), "data": {"from": or_null(from), "cause": "set_leaf"},
    })
    .to_string()
}

fn or_null(id: &str) -> Json {
    if id.is_empty() { Json::Null } else { json!(id) }
}
