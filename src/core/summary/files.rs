//! The files that the tool calls of a conversation read and changed (semantics.md §2).

use super::FileLists;
use crate::bytes::part;
use crate::context::content::{self, ContentBlock};
use crate::context::kind_and_role;
use crate::entry::{Kind, Role};
use crate::json::{self, Elements, Members};
use crate::tools::{self, FileAccess};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The levels of JSON within a call's arguments that are searched for further calls.
const NESTED_CALL_LEVELS: usize = 8;

/// Collects the files of all entries, also of entries that edits or the budget leave out.
#[derive(Default)]
pub struct FileCollector {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

/// The files that any of these entries touched.
pub fn touched_files<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> FileLists {
    let mut files = FileCollector::default();
    for entry in entries {
        files.note_entry(entry);
    }
    files.into_lists()
}

impl FileCollector {
    /// Adds the files that an entry touched.
    pub fn note_entry(&mut self, entry: &[u8]) {
        match kind_and_role(entry) {
            Some((Kind::Message, Role::Assistant)) => {
                let message = json::get(entry, "message").unwrap_or_default();
                for block in content::blocks(content::of(message)) {
                    if let ContentBlock::Call(call) = block {
                        self.note(&call.name, call.arguments);
                        self.note_nested(call.arguments);
                    }
                }
            }
            // A tool result records the calls that its tool made.
            Some((Kind::Message, Role::ToolResult)) => {
                if let Some(nested) = json::get_path(entry, &["message", "nestedCalls"]) {
                    self.note_nested(nested);
                }
            }
            Some((Kind::BranchSummary | Kind::Compaction, _)) => self.note_details(entry),
            _ => {}
        }
    }

    /// Adds the files of other entries.
    pub fn merge(&mut self, other: Self) {
        self.read.extend(other.read);
        self.modified.extend(other.modified);
    }

    /// The sorted lists. Each file is in one list only.
    pub fn into_lists(self) -> FileLists {
        let Self { mut read, modified } = self;
        read.retain(|path| !modified.contains(path));
        FileLists {
            read_files: read.into_iter().collect(),
            modified_files: modified.into_iter().collect(),
        }
    }

    fn note(&mut self, tool: &str, arguments: &[u8]) {
        let call = tools::CallArguments::new(tool, arguments);
        let files = match call.access() {
            FileAccess::Read => &mut self.read,
            FileAccess::Change => &mut self.modified,
            FileAccess::None => return,
        };
        files.extend(call.files().into_iter().map(Cow::into_owned));
    }

    /// Adds the calls within `value`: objects with the name of a tool and its arguments. A value that
    /// contains no name of a tool has no calls, and is skipped.
    fn note_nested(&mut self, value: &[u8]) {
        let mut open = vec![(value, 0)];
        let names: [&[u8]; 2] = [b"name", b"tool"];
        if names
            .iter()
            .all(|name| memchr::memmem::find(value, name).is_none())
        {
            return;
        }
        while let Some((value, level)) = open.pop() {
            let mut inner = Vec::new();
            if let Ok(mut members) = Members::open(value, 0) {
                let (mut tool, mut arguments): (&[u8], &[u8]) = (b"", b"");
                while let Ok(Some(member)) = members.next_member() {
                    let raw = part(value, member.value.clone());
                    match part(value, member.key.clone()) {
                        b"name" | b"tool" => tool = raw,
                        b"arguments" | b"args" => arguments = raw,
                        _ => {}
                    }
                    inner.push(raw);
                }
                if let Some(tool) = json::string(tool) {
                    self.note(&tool, arguments);
                }
            } else if let Ok(mut elements) = Elements::open(value, 0) {
                while let Ok(Some(span)) = elements.next_value() {
                    inner.push(part(value, span));
                }
            }
            if level < NESTED_CALL_LEVELS {
                inner.retain(|raw| matches!(raw.first(), Some(b'{' | b'[')));
                open.extend(inner.into_iter().map(|raw| (raw, level + 1)));
            }
        }
    }

    /// Adds the lists of an earlier summary. Lists that a client wrote in another form are skipped.
    fn note_details(&mut self, summary: &[u8]) {
        if json::get(summary, "fromHook") == Some(b"true") {
            return;
        }
        let details = json::get(summary, "details").unwrap_or_default();
        for (name, files) in [
            ("readFiles", &mut self.read),
            ("modifiedFiles", &mut self.modified),
        ] {
            let list = json::get(details, name).unwrap_or_default();
            let Ok(mut elements) = Elements::open(list, 0) else {
                continue;
            };
            while let Ok(Some(span)) = elements.next_value() {
                let path = list.get(span).and_then(json::string);
                if let Some(path) = path.filter(|path| !path.is_empty()) {
                    files.insert(path.into_owned());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn call(tool: &str, arguments: Value) -> Value {
        json!({"type": "message", "message": {"role": "assistant", "content": [
            {"type": "toolCall", "id": "c", "name": tool, "arguments": arguments},
        ]}})
    }

    #[track_caller]
    fn check_files(given: &[Value], read: &[&str], modified: &[&str]) {
        let given: Vec<Vec<u8>> = given
            .iter()
            .map(|entry| entry.to_string().into_bytes())
            .collect();
        let files = touched_files(given.iter().map(Vec::as_slice));
        assert_eq!(files.read_files, read, "read");
        assert_eq!(files.modified_files, modified, "modified");
    }

    #[test]
    fn files_are_read_or_modified_and_sorted() {
        check_files(
            &[
                call("read", json!({"path": "z"})),
                call("read", json!({"path": "b"})),
                call("read", json!({"path": "a"})),
                call("edit", json!({"path": "b"})),
                call("write", json!({"path": "n"})),
                call("edit", json!({"path": "b"})),
                call("bash", json!({"path": "no"})),
                call("read", json!({"path": 5})),
                call("read", json!({"path": ""})),
                call("read", json!("path")),
            ],
            &["a", "z"],
            &["b", "n"],
        );
    }

    /// Once only the tool names of one agent and the argument `path` were known, so the files of other agents were in
    /// no list.
    #[test]
    fn other_agents_names_count_too() {
        check_files(
            &[
                call("Read", json!({"file_path": "r"})),
                call("MultiEdit", json!({"file_path": "m"})),
                call(
                    "apply_patch",
                    json!({"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}),
                ),
            ],
            &["r"],
            &["a", "m"],
        );
    }

    #[test]
    fn nested_calls_touch_files_too() {
        check_files(
            &[
                call(
                    "batch",
                    json!({"calls": [
                        {"name": "read", "arguments": {"path": "r"}},
                        {"tool": "edit", "args": {"path": "e"}},
                        {"name": "batch", "arguments": {"calls": [{"name": "write", "arguments": {"path": "w"}}]}},
                    ]}),
                ),
                json!({"type": "message", "message": {"role": "toolResult", "content": [], "nestedCalls": {
                    "complete": true, "calls": [{"id": "1", "name": "read", "arguments": {"path": "s"}, "status": "ok"}],
                }}}),
            ],
            &["r", "s"],
            &["e", "w"],
        );
    }

    #[test]
    fn files_of_earlier_summaries_count_unless_a_client_wrote_them() {
        let details = json!({"readFiles": ["r", 5], "modifiedFiles": ["m"]});
        for kind in ["branch_summary", "compaction"] {
            let mut summary = json!({"type": kind, "summary": "s", "details": details});
            check_files(&[summary.clone()], &["r"], &["m"]);
            summary["fromHook"] = json!(false);
            check_files(&[summary.clone()], &["r"], &["m"]);
            summary["fromHook"] = json!(true);
            check_files(&[summary], &[], &[]);
        }
    }
}
