use super::*;
use crate::records::Layout;
use crate::tests::cuts;
use crate::tests::testing::{check_calls, read};
use crate::tests::{MappedMember, imported};
use serde_json::{Value, json};
use std::path::Path;
use treelined_core::agent::Tool;

const LOG: &str = "workspaceStorage/5d41402abc4b2a76b9719d911017c592/chatSessions/7f3c1e0a-6c58-4a86-8f0e-2b9a5f3d1c77.jsonl";
const DOCUMENT: &str = "workspaceStorage/5d41402abc4b2a76b9719d911017c592/chatSessions/c9b8a7d6-1e2f-4a3b-8c4d-5e6f7a8b9c0d.json";

fn fixture(name: &str) -> String {
    let folder = "../../tests/data/import/vscode-chat";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    std::fs::read_to_string(path.join(name)).unwrap()
}

/// The conversation in a session file.
fn mapped(log: &str) -> MappedMember {
    read(&VscodeChat, "s.jsonl", log.as_bytes());
    let mut members = imported(&VscodeChat, "s.jsonl", log.as_bytes());
    assert_eq!(members.len(), 1);
    let mapped = members.remove(0);
    check_calls(&VscodeChat, log.as_bytes(), &mapped.member);
    mapped
}

fn lines(changes: &[Value]) -> String {
    let lines = changes.iter().map(|change| format!("{change}\n"));
    lines.collect()
}

/// A request whose response is complete.
fn asked(id: &str, said: &str) -> Value {
    json!({ "requestId": id, "message": { "text": said }, "response": [{ "value": "Yes." }],
        "modelState": { "value": 1 } })
}

fn state(requests: &[Value]) -> Value {
    json!({ "kind": 0, "v": { "version": 3, "sessionId": "S", "requests": requests } })
}

#[test]
fn a_log_of_changes_has_its_rounds_calls_and_removed_requests() {
    let mapped = mapped(&fixture(LOG));
    let expected = [
        "0 - user Fix the build [file: main.rs]",
        r#"1 0 assistant (Where does it fail?) I read main.rs. read_file{"filePath":"main.rs"}"#,
        "2 1 toolresult fn main()\n{}",
        "3 2 assistant An import is missing.",
        "4 3 user Use another crate",
        "5 4 assistant Done with a crate.",
        "6 3 user Use no crate",
        r#"7 6 assistant I run it. run_in_terminal{"command":"cargo build"}"#,
        "8 7 toolresult error[E0433]",
        "9 8 assistant It fails.",
        "10 9 user Why?",
        "11 10 assistant !You have exceeded your quota.…*",
    ];
    assert_eq!(mapped.drawn(), expected.join("\n"));
    let MappedMember { member, bodies } = mapped;
    assert_eq!(member.native_id, "7f3c1e0a-6c58-4a86-8f0e-2b9a5f3d1c77");
    assert_eq!(member.title.as_deref(), Some("The build"));
    assert_eq!(bodies[1]["message"]["model"], "gpt-5");
    assert_eq!(bodies[2]["message"]["toolCallId"], "call_a");
    assert_eq!(bodies[2]["message"]["toolName"], "read_file");
    assert_eq!(bodies[9]["message"]["stopReason"], "aborted");
    assert_eq!(bodies[11]["message"]["stopReason"], "error");
    assert!(!member.origin_only.contains_key("bad patch"));
}

#[test]
fn a_document_has_the_parts_of_its_responses() {
    let document = fixture(DOCUMENT).replace('\n', " ");
    let mapped = mapped(&document);
    let expected = [
        "0 - user Hello",
        "1 0 assistant Hi, Ada.",
        "2 1 user Rename it",
        "3 2 assistant \n[edit: /home/ada/my project/main.rs]\n copilot_search{\"description\":\"Searching\"}…",
        "4 3 toolresult 2 matches…*",
    ];
    assert_eq!(mapped.drawn(), expected.join("\n"));
    assert_eq!(mapped.member.title.as_deref(), Some("Names"));
}

/// The conversation continues before a hidden request. The state of the last response says whether it has ended.
#[test]
fn a_hidden_request_is_a_branch_and_the_last_response_is_open() {
    let mut hidden = asked("b", "Two?");
    hidden["shouldBeRemovedOnSend"] = json!({ "requestId": "b" });
    let log = [
        state(&[asked("a", "One?"), hidden]),
        json!({ "kind": 3, "k": ["requests", 0, "vote"] }),
    ];
    let expected = [
        "0 - user One?",
        "1 0 assistant Yes.*",
        "2 1 user Two?",
        "3 2 assistant Yes.…",
    ];
    assert_eq!(mapped(&lines(&log)).drawn(), expected.join("\n"));
    let shown = json!({ "kind": 3, "k": ["requests", 1, "shouldBeRemovedOnSend"] });
    let log = [&log[..], &[shown]].concat();
    let member = mapped(&lines(&log)).member;
    assert_eq!((member.leaf, member.has_end_mark), (Some(3), true));
    let mut growing = asked("c", "Three?");
    growing["modelState"]["value"] = json!(0);
    let log = [
        &log[..],
        &[json!({ "kind": 2, "k": ["requests"], "v": [growing] })],
    ]
    .concat();
    let mapped = mapped(&lines(&log));
    assert!(
        mapped
            .drawn()
            .ends_with("4 3 user Three?\n5 4 assistant Yes.…*")
    );
    assert!(!mapped.member.has_end_mark);
}

/// Paths and indices that no program writes change nothing, and are counted.
#[test]
fn changes_that_do_not_fit_are_counted_and_change_nothing() {
    let huge = u64::MAX;
    let bad = [
        json!({ "kind": 2, "k": ["requests"], "v": [asked("x", "x")], "i": 2 }),
        json!({ "kind": 2, "k": ["requests"], "v": [], "i": huge }),
        json!({ "kind": 2, "k": ["requests"], "v": [], "i": -1 }),
        json!({ "kind": 1, "k": ["requests", huge, "response"], "v": [] }),
        json!({ "kind": 1, "k": ["requests", 7], "v": asked("x", "x") }),
        json!({ "kind": 1, "k": ["requests", 0, "response", 9], "v": { "value": "x" } }),
        json!({ "kind": 1, "k": ["requests", 0, "response", 0, "value"], "v": "x" }),
        json!({ "kind": 2, "k": ["requests", 0, "response"], "v": [], "i": 2 }),
        json!({ "kind": 1, "k": ["requests", "0", "response"], "v": [] }),
        json!({ "kind": 1, "k": [], "v": {} }),
        json!({ "kind": 1, "k": [[0]], "v": {} }),
        json!({ "kind": 1, "k": "requests", "v": [] }),
        json!({ "kind": 0, "v": [] }),
        json!({ "kind": 9, "k": ["requests"] }),
        json!([]),
    ];
    let log = [&[state(&[asked("a", "One?")])][..], &bad].concat();
    let mapped = mapped(&lines(&log));
    assert_eq!(mapped.drawn(), "0 - user One?\n1 0 assistant Yes.…*");
    assert_eq!(mapped.member.origin_only["bad patch"], bad.len() as u64);
    // A change without a state before it does not fit either.
    let mapped = self::mapped(&lines(&[json!({ "kind": 2, "k": ["requests"], "v": [] })]));
    assert_eq!(mapped.member.origin_only["bad patch"], 1);
}

#[test]
fn requests_with_equal_ids_and_elements_that_are_not_requests_keep_their_positions() {
    let log = [
        state(&[
            asked("a", "One?"),
            json!(null),
            asked("a", "Again"),
            asked("b", "Two?"),
        ]),
        json!({ "kind": 1, "k": ["requests", 3, "message", "text"], "v": "Changed" }),
    ];
    let expected = [
        "0 - user One?",
        "1 0 assistant Yes.",
        "2 1 user Changed",
        "3 2 assistant Yes.…*",
    ];
    assert_eq!(mapped(&lines(&log)).drawn(), expected.join("\n"));
}

#[test]
fn files_are_read_when_they_are_cut_anywhere() {
    cuts::check(
        Tool::VscodeChat,
        "s.jsonl",
        Layout::Lines,
        fixture(LOG).as_bytes(),
    );
    let document = fixture(DOCUMENT);
    cuts::check(
        Tool::VscodeChat,
        "s.json",
        Layout::Document,
        document.as_bytes(),
    );
}

/// If a part takes more than linear time, this test runs for minutes.
#[test]
fn long_logs_take_linear_time() {
    let many = 20_000;
    let one = |at: usize| asked(&format!("r{at}"), "x");
    let mut log = vec![state(&[])];
    log.extend((0..many).map(|at| json!({ "kind": 2, "k": ["requests"], "v": [one(at)] })));
    let mut source = lines(&log);
    assert_eq!(
        read(&VscodeChat, "s.jsonl", source.as_bytes())[0]
            .nodes
            .len(),
        2 * many
    );
    // All requests are removed and come again, many times.
    let again = json!({ "kind": 2, "k": ["requests"], "i": many - 1, "v": [one(many)] });
    source.push_str(&format!("{again}\n").repeat(many));
    assert_eq!(
        read(&VscodeChat, "s.jsonl", source.as_bytes())[0]
            .nodes
            .len(),
        2 * many + 2
    );
    let parts = json!({ "kind": 2, "k": ["requests", 0, "response"], "v": [{ "value": "x" }] });
    let mut source = lines(&[state(&[asked("a", "One?")])]);
    source.push_str(&format!("{parts}\n").repeat(many));
    assert_eq!(
        read(&VscodeChat, "s.jsonl", source.as_bytes())[0]
            .nodes
            .len(),
        2
    );
}

#[test]
fn a_file_of_a_workspace_names_its_directory() {
    let of = |file: Value| directory(file.to_string().as_bytes());
    let folder = of(json!({ "folder": "file:///home/ada/my%20project" }));
    assert_eq!(folder.as_deref(), Some("/home/ada/my project"));
    let several = of(json!({ "workspace": "file:///home/ada/all.code-workspace" }));
    assert_eq!(several.as_deref(), Some("/home/ada"));
    assert_eq!(
        of(json!({ "folder": "vscode-remote://ssh/home/ada" })),
        None
    );
    assert_eq!(of(json!({ "folder": "file:///%ff" })), None);
    assert_eq!(
        of(json!({ "folder": "file:///a%2" })).as_deref(),
        Some("/a%2")
    );
}
