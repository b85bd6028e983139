//! Builds the requests for summaries of branches and of contexts (semantics.md §2, §4).

use super::conversation::{self, TokenBudget};
use super::entries::SummaryEntries;
use super::{FileLists, SummaryRequest, SummarySubject};
use crate::context::agent;
use crate::context::content;
use crate::context::{Edits, kind_and_role};
use crate::entry::{Kind, Role};
use crate::error::Result;

/// Longest goal, in characters.
const GOAL_CHARACTERS: usize = 2000;

/// The client's options for a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryOptions {
    pub custom_instructions: Option<String>,
    /// Whether the custom instructions replace the usual structure.
    pub replace_instructions: bool,
}

/// Whether an entry has content for a summary: a message that a model can see, a custom message, or an
/// earlier summary. Labels, settings and other bookkeeping have none.
pub(crate) fn is_content(kind: Kind, role: Role) -> bool {
    match kind {
        Kind::Message => !matches!(role, Role::None | Role::Other | Role::System),
        Kind::CustomMessage | Kind::BranchSummary | Kind::Compaction => true,
        _ => false,
    }
}

/// The input for a summary.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// The goal of the branch.
    pub goal: Option<String>,
    /// The summary of the nearest compaction.
    pub previous_summary: Option<String>,
    /// The entries that this compaction kept, and the entries after it.
    pub entries: SummaryEntries,
    /// The files of the whole branch or context.
    pub files: FileLists,
}

/// The request for a summary of a branch. Fails with the errors of the entries.
pub fn request(
    material: Material,
    options: SummaryOptions,
    budget: TokenBudget,
) -> Result<SummaryRequest> {
    let is_blank = |text: &String| text.trim().is_empty();
    Ok(SummaryRequest {
        subject: SummarySubject::Branch,
        goal: material.goal,
        conversation: conversation::within(&material.entries, budget)?,
        previous_summary: material.previous_summary.filter(|text| !is_blank(text)),
        custom_instructions: options.custom_instructions.filter(|text| !is_blank(text)),
        replace_instructions: options.replace_instructions,
        context: Vec::new(),
        entries: material.entries,
        files: material.files,
    })
}

/// The text of an entry as a goal; `None` if it has no text, or an edit leaves it out.
pub fn goal(entry: Vec<u8>, edits: &Edits) -> Option<String> {
    let (kind, role) = kind_and_role(&entry)?;
    let entry = edits.apply(kind, role, entry)?;
    let message = agent::messages(kind, role, &entry).pop()?;
    let text = content::text(content::of(&message.json), "\n");
    let text = text.trim();
    (!text.is_empty()).then(|| conversation::cut(text.to_owned(), GOAL_CHARACTERS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::summary::files::touched_files;
    use serde_json::{Value, json};

    fn call(tool: &str, arguments: Value) -> Value {
        json!({"type": "message", "message": {"role": "assistant", "content": [
            {"type": "toolCall", "id": "c", "name": tool, "arguments": arguments},
        ]}})
    }

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

    fn request_within(given: Vec<Vec<u8>>, budget: TokenBudget) -> SummaryRequest {
        let material = Material {
            files: touched_files(given.iter().map(Vec::as_slice)),
            entries: given.into(),
            ..Material::default()
        };
        request(material, SummaryOptions::default(), budget).unwrap()
    }

    fn request_for(given: Vec<Vec<u8>>) -> SummaryRequest {
        request_within(given, TokenBudget::default())
    }

    #[test]
    fn files_come_from_all_entries_whatever_budget_and_edits_leave() {
        let given = entries(&[
            call("read", json!({"path": "far"})),
            call("edit", json!({"path": "left out"})),
            json!({"type": "context_edit", "targetId": "e1", "replacement": null}),
            json!({"type": "message", "message": {"role": "user", "content": "x".repeat(100)}}),
        ]);
        let budget = TokenBudget {
            context_window: 30,
            reserve_tokens: 4,
        };
        let request = request_within(given, budget);
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
        let request = request_for(entries(&[
            user("secret"),
            user("old"),
            user("stays"),
            edit("e0", json!(null)),
            edit("e1", json!({"content": "older"})),
            edit("e1", json!({"content": "new"})),
        ]));
        assert_eq!(request.conversation, "[User]: new\n\n[User]: stays");
        let mut ids = Vec::new();
        let note = |entry: &[u8]| ids.push(json::get(entry, "id").unwrap().to_vec());
        request.entries.each(note).unwrap();
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
    fn blank_options_are_none() {
        let options = SummaryOptions {
            custom_instructions: Some(" \n".into()),
            replace_instructions: true,
        };
        let material = Material {
            previous_summary: Some(String::new()),
            ..Material::default()
        };
        let request = request(material, options, TokenBudget::default()).unwrap();
        assert_eq!(request.custom_instructions, None);
        assert_eq!(request.previous_summary, None);
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
            let request = request_for(vec![entry.into_bytes()]);
            assert_eq!(request.files.read_files, read);
        }
    }

    #[test]
    fn values_that_are_not_entries_are_skipped() {
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
        let request = request_for(given);
        let mut seen = 0;
        request.entries.each(|_| seen += 1).unwrap();
        assert_eq!((seen, &*request.conversation), (0, ""));
        assert_eq!(request.files, FileLists::default());
    }
}
