//! Summaries of branches and of contexts: what goes in, and the frame around what comes out
//! (semantics.md §2, §4).
//!
//! Pure. Which entries are left behind is navigation's to say; who writes the summary, and what a model
//! is told, is the summarizer's.

use crate::context::agent;
use crate::context::content::{self, Block};
use crate::context::{Edits, kind_and_role};
use crate::entry::{Kind, Role};
use crate::json::{self, Elements, Members};
use crate::summarizer::conversation::{self, Budget};
use crate::summarizer::{FileLists, MERGE_PREAMBLE, PREAMBLE, Request, Subject};
use crate::tools::{self, Access};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How deep in a call's arguments further calls are looked for, in levels of JSON.
const NESTED_CALL_LEVELS: usize = 8;
/// Longest goal, in characters.
const GOAL_CHARACTERS: usize = 2000;

/// What the client wants of the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryOptions {
    pub custom_instructions: Option<String>,
    /// The custom instructions replace the usual structure.
    pub replace_instructions: bool,
}

/// Whether an entry holds something a summary could speak of: a message that a model can see, a custom
/// message or an earlier summary. Labels, settings and other bookkeeping are not.
pub fn is_content(kind: Kind, role: Role) -> bool {
    match kind {
        Kind::Message => !matches!(role, Role::None | Role::Other | Role::System),
        Kind::CustomMessage | Kind::BranchSummary | Kind::Compaction => true,
        _ => false,
    }
}

/// What a summary of a branch is made of, entries as delivered.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// What the branch was for.
    pub goal: Option<String>,
    /// Of the nearest compaction.
    pub previous_summary: Option<String>,
    /// What that compaction kept; `None` if there is none.
    pub kept: Option<Vec<Vec<u8>>>,
    /// What came after it.
    pub entries: Vec<Vec<u8>>,
    /// Of the whole branch.
    pub files: FileLists,
}

/// The request for these entries, as delivered and in file order, after what `previous_summary` says.
pub fn request(
    entries: Vec<Vec<u8>>,
    previous_summary: Option<String>,
    wishes: SummaryOptions,
    budget: Budget,
) -> Request {
    let material = Material {
        previous_summary,
        files: touched_files(entries.iter().map(Vec::as_slice)),
        entries,
        ..Material::default()
    };
    branch_request(material, wishes, budget)
}

/// The request for a branch: what a model saw of it, in the order in which it saw it.
pub fn branch_request(material: Material, wishes: SummaryOptions, budget: Budget) -> Request {
    let is_blank = |text: &String| text.trim().is_empty();
    let mut edits = Edits::default();
    for entry in material.kept.iter().flatten().chain(&material.entries) {
        if let Some((Kind::ContextEdit, _)) = kind_and_role(entry) {
            edits.note(entry);
        }
    }
    let kept = material.kept.map(|kept| edited(kept, &edits));
    let kept_count = kept.as_ref().map(Vec::len);
    let mut entries = kept.unwrap_or_default();
    entries.extend(edited(material.entries, &edits));
    Request {
        subject: Subject::Branch,
        goal: material.goal,
        conversation: conversation::within(&entries, budget),
        previous_summary: material.previous_summary.filter(|text| !is_blank(text)),
        custom_instructions: wishes.custom_instructions.filter(|text| !is_blank(text)),
        replace_instructions: wishes.replace_instructions,
        context: Vec::new(),
        entries,
        kept_count,
        files: material.files,
    }
}

/// What an entry says, as far as a goal needs it; `None` if it says nothing, or an edit left it out.
pub fn goal(entry: Vec<u8>, edits: &Edits) -> Option<String> {
    let (kind, role) = kind_and_role(&entry)?;
    let entry = edits.apply(kind, role, entry)?;
    let message = agent::messages(kind, role, &entry).pop()?;
    let text = content::text(content::of(&message.json), "\n");
    let text = text.trim();
    (!text.is_empty()).then(|| conversation::cut(text.to_owned(), GOAL_CHARACTERS))
}

/// The text of the entry: what it is where the context does not say so, the summary, and the files.
pub fn finish(subject: Subject, text: &str, files: &FileLists) -> String {
    let mut whole = opening(subject);
    whole.push_str(text.trim());
    whole.push_str(&closing(files));
    whole
}

/// What stands before the text of a summary.
pub fn opening(subject: Subject) -> String {
    match subject {
        Subject::Branch => format!("{PREAMBLE}\n\n"),
        Subject::Merge => format!("{MERGE_PREAMBLE}\n\n"),
        Subject::Context | Subject::TurnPrefix => String::new(),
    }
}

/// What stands behind the text of a summary.
pub fn closing(files: &FileLists) -> String {
    let mut lists = String::new();
    push_files(&mut lists, READ_FILES, &files.read_files);
    push_files(&mut lists, MODIFIED_FILES, &files.modified_files);
    lists
}

/// A summary without the file lists that [`finish`] put behind it.
pub fn without_files(summary: &str) -> &str {
    let mut rest = summary;
    for tag in [MODIFIED_FILES, READ_FILES] {
        if rest.ends_with(&format!("</{tag}>"))
            && let Some(start) = rest.rfind(&format!("\n\n<{tag}>\n"))
        {
            rest = rest.get(..start).unwrap_or_default();
        }
    }
    rest
}

/// The summary of a context whose last turn is split: that of the turns before, if there are any,
/// then that of the turn's beginning.
pub fn joined(history: Option<&str>, turn_prefix: &str) -> String {
    let history = history.unwrap_or("There was nothing before this turn.");
    format!(
        "{}\n\n---\n\n**The turn in progress, up to here:**\n\n{}",
        history.trim(),
        turn_prefix.trim()
    )
}

const READ_FILES: &str = "read-files";
const MODIFIED_FILES: &str = "modified-files";

fn push_files(out: &mut String, tag: &str, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    out.push_str(&format!("\n\n<{tag}>\n"));
    for path in paths {
        // One path a line, whatever the path.
        for char in path.chars() {
            if char.is_control() {
                out.extend(char.escape_default());
            } else {
                out.push(char);
            }
        }
        out.push('\n');
    }
    out.push_str(&format!("</{tag}>"));
}

/// The entries with the edits applied, context edits themselves left out.
fn edited(entries: Vec<Vec<u8>>, edits: &Edits) -> Vec<Vec<u8>> {
    let apply = |entry: Vec<u8>| match kind_and_role(&entry)? {
        (Kind::ContextEdit, _) => None,
        (kind, role) => edits.apply(kind, role, entry),
    };
    entries.into_iter().filter_map(apply).collect()
}

/// The files of a stretch being gathered, whatever edits and budget leave of it.
#[derive(Default)]
pub struct Files {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

/// The files that any of these entries touched.
pub fn touched_files<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> FileLists {
    let mut files = Files::default();
    for entry in entries {
        files.note_entry(entry);
    }
    files.into_lists()
}

impl Files {
    /// Takes in what an entry touched.
    pub fn note_entry(&mut self, entry: &[u8]) {
        match kind_and_role(entry) {
            Some((Kind::Message, Role::Assistant)) => {
                let message = json::get(entry, "message").unwrap_or_default();
                for block in content::blocks(content::of(message)) {
                    if let Block::Call(call) = block {
                        self.note(&call.name, call.arguments);
                        self.note_nested(call.arguments);
                    }
                }
            }
            // What a tool called in turn is recorded on its result.
            Some((Kind::Message, Role::ToolResult)) => {
                if let Some(nested) = json::get_path(entry, &["message", "nestedCalls"]) {
                    self.note_nested(nested);
                }
            }
            Some((Kind::BranchSummary | Kind::Compaction, _)) => self.note_details(entry),
            _ => {}
        }
    }

    /// Sorted, each file in one list only.
    pub fn into_lists(self) -> FileLists {
        let Self { mut read, modified } = self;
        read.retain(|path| !modified.contains(path));
        FileLists {
            read_files: read.into_iter().collect(),
            modified_files: modified.into_iter().collect(),
        }
    }

    fn note(&mut self, tool: &str, arguments: &[u8]) {
        let call = tools::Call::new(tool, arguments);
        let files = match call.access() {
            Access::Read => &mut self.read,
            Access::Change => &mut self.modified,
            Access::None => return,
        };
        files.extend(call.files().into_iter().map(Cow::into_owned));
    }

    /// Calls within `value`: objects that hold a tool's name and its arguments. Without a name there is
    /// no call, so what has none is not looked into.
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
                while let Ok(Some(member)) = members.next() {
                    let raw = value.get(member.value.clone()).unwrap_or_default();
                    match value.get(member.key.clone()).unwrap_or_default() {
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
                while let Ok(Some(span)) = elements.next() {
                    inner.push(value.get(span).unwrap_or_default());
                }
            }
            if level < NESTED_CALL_LEVELS {
                inner.retain(|raw| matches!(raw.first(), Some(b'{' | b'[')));
                open.extend(inner.into_iter().map(|raw| (raw, level + 1)));
            }
        }
    }

    /// The lists of an earlier summary; those a client wrote may mean anything.
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
            while let Ok(Some(span)) = elements.next() {
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

    fn entries(entries: &[Value]) -> Vec<Vec<u8>> {
        let entries = entries.iter().enumerate().map(|(at, entry)| {
            let mut body = json!({"type": "", "id": format!("e{at}")});
            for (name, value) in entry.as_object().unwrap() {
                body[name] = value.clone();
            }
            body.to_string().into_bytes()
        });
        entries.collect()
    }

    fn request_for(given: &[Value]) -> Request {
        request(
            entries(given),
            None,
            SummaryOptions::default(),
            Budget::default(),
        )
    }

    fn call(tool: &str, arguments: Value) -> Value {
        json!({"type": "message", "message": {"role": "assistant", "content": [
            {"type": "toolCall", "id": "c", "name": tool, "arguments": arguments},
        ]}})
    }

    #[track_caller]
    fn check_files(given: &[Value], read: &[&str], modified: &[&str]) {
        let files = request_for(given).files;
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

    /// Only pi's names were known, and only its `path`: what other agents read and changed was in no
    /// list.
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

    #[test]
    fn files_come_from_all_entries_whatever_budget_and_edits_leave() {
        let given = entries(&[
            call("read", json!({"path": "far"})),
            call("edit", json!({"path": "left out"})),
            json!({"type": "context_edit", "targetId": "e1", "replacement": null}),
            json!({"type": "message", "message": {"role": "user", "content": "x".repeat(100)}}),
        ]);
        let budget = Budget {
            context_window: 30,
            reserve_tokens: 4,
        };
        let request = request(given, None, SummaryOptions::default(), budget);
        assert!(
            !request.conversation.contains("far"),
            "{}",
            request.conversation
        );
        assert_eq!(request.files.read_files, ["far"]);
        assert_eq!(request.files.modified_files, ["left out"]);
    }

    #[test]
    fn edits_are_applied_to_conversation_and_entries() {
        let user =
            |text: &str| json!({"type": "message", "message": {"role": "user", "content": text}});
        let edit = |target: &str, replacement: Value| json!({"type": "context_edit", "targetId": target, "replacement": replacement});
        let request = request_for(&[
            user("secret"),
            user("old"),
            user("stays"),
            edit("e0", json!(null)),
            edit("e1", json!({"content": "older"})),
            edit("e1", json!({"content": "new"})),
        ]);
        assert_eq!(request.conversation, "[User]: new\n\n[User]: stays");
        let ids: Vec<_> = request
            .entries
            .iter()
            .map(|entry| json::get(entry, "id").unwrap())
            .collect();
        assert_eq!(ids, [b"\"e1\"", b"\"e2\""]);
    }

    #[test]
    fn only_what_can_be_spoken_of_is_worth_a_summary() {
        let worth = |line: &[u8]| {
            let (kind, role) = kind_and_role(line).unwrap();
            is_content(kind, role)
        };
        for kind in [
            "label",
            "custom",
            "session_info",
            "usage",
            "thinking_level_change",
            "model_change",
            "context_edit",
            "strange",
        ] {
            assert!(
                !worth(format!(r#"{{"type":"{kind}"}}"#).as_bytes()),
                "{kind}"
            );
        }
        for kind in ["custom_message", "branch_summary", "compaction"] {
            assert!(
                worth(format!(r#"{{"type":"{kind}"}}"#).as_bytes()),
                "{kind}"
            );
        }
        for (role, expect) in [
            ("user", true),
            ("assistant", true),
            ("toolResult", true),
            ("bashExecution", true),
            ("custom", true),
            ("system", false),
            ("strange", false),
        ] {
            let line = format!(r#"{{"type":"message","message":{{"role":"{role}"}}}}"#);
            assert_eq!(worth(line.as_bytes()), expect, "{role}");
        }
    }

    #[test]
    fn blank_wishes_are_none() {
        let wishes = SummaryOptions {
            custom_instructions: Some(" \n".into()),
            replace_instructions: true,
        };
        let request = request(Vec::new(), Some(String::new()), wishes, Budget::default());
        assert_eq!(request.custom_instructions, None);
        assert_eq!(request.previous_summary, None);
    }

    #[test]
    fn a_finished_summary_says_what_it_is_and_lists_the_files() {
        let mut files = FileLists::default();
        assert_eq!(
            finish(Subject::Branch, "\ntext\n", &files),
            format!("{PREAMBLE}\n\ntext")
        );
        files.modified_files = vec!["m".into(), "n\n</modified-files>".into()];
        assert_eq!(
            finish(Subject::Branch, "text", &files),
            format!(
                "{PREAMBLE}\n\ntext\n\n<modified-files>\nm\nn\\n</modified-files>\n</modified-files>"
            )
        );
        files.read_files = vec!["r".into()];
        let whole = finish(Subject::Branch, "text", &files);
        assert_eq!(without_files(&whole), format!("{PREAMBLE}\n\ntext"));
        let expect = format!(
            "{PREAMBLE}\n\ntext\n\n<read-files>\nr\n</read-files>\n\n<modified-files>\nm\n"
        );
        assert!(whole.starts_with(&expect), "{whole}");
    }

    #[test]
    fn deep_and_wide_arguments_are_passed_in_time() {
        let deep = format!(
            "{}\"path\"{}",
            "{\"a\":[".repeat(100_000),
            "]}".repeat(100_000)
        );
        let wide = format!(
            "[{}{{\"name\":\"read\",\"arguments\":{{\"path\":\"w\"}}}}]",
            "{},".repeat(100_000)
        );
        for (arguments, read) in [(&deep, &[][..]), (&wide, &["w"][..])] {
            let entry = format!(
                r#"{{"type":"message","id":"a","message":{{"role":"assistant","content":[{{"type":"toolCall","name":"x","arguments":{arguments}}}]}}}}"#
            );
            let request = request(
                vec![entry.into_bytes()],
                None,
                SummaryOptions::default(),
                Budget::default(),
            );
            assert_eq!(request.files.read_files, read);
        }
    }

    #[test]
    fn what_is_no_entry_is_passed_over() {
        let given = [
            "",
            "5",
            "null",
            "[]",
            "{}",
            "{\"type\":5}",
            "{\"type\":\"message\"",
            "{\"type\":\"session\"}",
        ];
        let given = given
            .iter()
            .map(|entry| entry.as_bytes().to_vec())
            .collect();
        let request = request(given, None, SummaryOptions::default(), Budget::default());
        assert_eq!(request, Request::default());
    }
}
