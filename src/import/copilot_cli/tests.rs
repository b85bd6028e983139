use super::*;
use crate::tests::testing::{check_calls, read};
use crate::tests::{MappedMember, imported};
use serde_json::{Value, json};
use std::path::Path;

const RECORDED: &str = "11111111-2222-4333-8444-555555555555/events.jsonl";
const FORKED: &str = "62f5a124-bce0-4684-a5c1-0092ddcd13a8/events.jsonl";
const MADE: &str = "0b6ff0b2-3a53-4d4e-9d1a-6f2f4a1f0c11.jsonl";

/// The conversations in a fixture: the main conversation, and the conversations of subagents.
fn fixture(name: &str) -> Vec<MappedMember> {
    let folder = "../../tests/data/import/copilot-cli/session-state";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(name);
    let events = std::fs::read_to_string(&path).unwrap();
    mapped(name, &events)
}

fn mapped(name: &str, events: &str) -> Vec<MappedMember> {
    read(&CopilotCli, name, events.as_bytes());
    let members = imported(&CopilotCli, name, events.as_bytes());
    for mapped in &members {
        check_calls(&CopilotCli, events.as_bytes(), &mapped.member);
    }
    members
}

/// An event below another one.
fn event(id: &str, parent: Option<&str>, kind: &str, data: &Value) -> String {
    let event = json!({ "type": kind, "data": data, "id": id, "parentId": parent,
        "timestamp": "2026-01-01T00:00:00.000Z" });
    format!("{event}\n")
}

#[test]
fn a_recorded_session_has_its_messages_calls_and_results() {
    let members = fixture(RECORDED);
    let main = &members[0];
    assert_eq!(
        main.member.native_id,
        "11111111-2222-4333-8444-555555555555"
    );
    assert_eq!(main.member.cwd.as_deref(), Some("/tmp/project"));
    let task =
        r#"{"name":"sub","description":"d","prompt":"Prompt 6 of sub","agent_type":"explore"}"#;
    let expected = [
        "0 - user Prompt 1",
        "1 0 assistant You said: Prompt 1",
        "2 1 user Prompt 2 RUN",
        r#"3 2 assistant bash{"command":"echo hello","description":"say hello"}"#,
        "4 3 toolresult hello\n<shellId: 0 completed with exit code 0>",
        "5 4 assistant You said: Prompt 2 RUN",
        "6 5 user Prompt 4 after",
        "7 6 assistant You said: Prompt 4 after",
        r#"8 7 user Prompt 5 CALL task {"name":"sub","description":"d","prompt":"Prompt 6 of sub","agent_type":"explore"}"#,
        &format!("9 8 assistant task{task}"),
        "10 9 toolresult You said: Prompt 6 of sub",
        r#"11 10 assistant You said: Prompt 5 CALL task {"name":"sub","description":"d","prompt":"Prompt 6 of sub","agent_type":"explore"}"#,
        "12 11 user Prompt 7 at the end",
        "13 12 assistant You said: Prompt 7 at the end*",
    ];
    assert_eq!(main.drawn(), expected.join("\n"));
    let usage = &main.bodies[1]["message"]["usage"];
    assert_eq!((&usage["input"], &usage["output"]), (&json!(10), &json!(5)));
    assert_eq!(main.bodies[4]["message"]["toolName"], "bash");
}

#[test]
fn a_subagent_is_a_conversation_of_its_own() {
    let members = fixture(RECORDED);
    assert_eq!(members.len(), 2);
    let MappedMember { member, .. } = &members[1];
    assert_eq!(member.title.as_deref(), Some("sub"));
    let spawner = member.spawned_by.as_ref().unwrap();
    assert_eq!(spawner.native_id, "11111111-2222-4333-8444-555555555555");
    assert_eq!(spawner.tool_call_id.as_deref(), Some("call_7"));
    let expected = [
        "0 - modelchange",
        "1 0 user Prompt 6 of sub",
        "2 1 assistant You said: Prompt 6 of sub*",
    ];
    assert_eq!(members[1].drawn(), expected.join("\n"));
}

#[test]
fn a_fork_has_the_keys_of_its_source() {
    let [recorded, forked] = [RECORDED, FORKED].map(|name| fixture(name).remove(0).member);
    assert_ne!(recorded.native_id, forked.native_id);
    let keys = forked.nodes.iter().map(|node| &node.key);
    assert!(keys.eq(recorded.nodes.iter().take(6).map(|node| &node.key)));
}

#[test]
fn pictures_failures_summaries_and_a_new_beginning_are_there() {
    let members = fixture(MADE);
    let expected = [
        "0 - user What is in the picture? [image/png] [file: /home/ada/project/notes.md]",
        "1 0 scaffolding How to read pictures.",
        r#"2 1 assistant (A picture and a file.) I look. view{"path":"notes.md"} bash{"command":"false"}"#,
        "3 2 toolresult exit code 1 !",
        "4 3 toolresult Buy milk. [image/png]",
        "5 4 modelchange",
        "6 5 assistant A dot.",
        "7 6 compaction from 6 Ada showed a picture.",
        "8 7 user Go on",
        "9 8 custom",
        "10 9 user Again",
        "11 10 custom",
        "12 11 scaffolding main.rs",
        "13 - user Something new",
        "14 13 assistant Yes.*",
    ];
    assert_eq!(members[0].drawn(), expected.join("\n"));
    let MappedMember { member, bodies } = &members[0];
    assert_eq!(member.git.branch.as_deref(), Some("trunk"));
    assert_eq!(bodies[5]["modelId"], "claude-sonnet-4.5");
    assert_eq!(bodies[7]["tokensBefore"], 1200);
    assert_eq!(bodies[9]["customType"], "copilot.session.error");
    assert_eq!(bodies[11]["data"]["reason"], "user_initiated");
}

/// Older versions note a rewind in the file, but do not delete the removed events from the file.
#[test]
fn events_that_a_rewind_removes_stay_as_a_branch() {
    let says = |said: &str| json!({ "content": said });
    let events = [
        event("1", None, "user.message", &says("One?")),
        event("2", Some("1"), "assistant.message", &says("First.")),
        event("3", Some("2"), "user.message", &says("Wrong way")),
        event(
            "4",
            Some("3"),
            "session.snapshot_rewind",
            &json!({ "upToEventId": "3" }),
        ),
        event("5", Some("4"), "user.message", &says("Another way")),
        event("5", Some("4"), "user.message", &says("The same id")),
        event("6", Some("lost"), "user.message", &says("Lost")),
    ];
    let members = mapped("s.jsonl", &events.concat());
    let expected = [
        "0 - user One?",
        "1 0 assistant First.",
        "2 1 user Wrong way",
        "3 1 user Another way",
        "4 1 custom",
        "5 lost user Lost*",
    ];
    assert_eq!(members[0].drawn(), expected.join("\n"));
}

#[test]
fn a_file_of_a_workspace_names_the_session_and_its_directory() {
    let file = b"id: 1\ncwd: '/home/ada/it''s'\nname: \"A \\\"plan\\\"\"\nsummary: x\n";
    let expected = (
        Some("A \"plan\"".to_owned()),
        Some("/home/ada/it's".to_owned()),
    );
    assert_eq!(workspace(file), expected);
    assert_eq!(
        workspace(b"summary: Old\nname: |-\n  two\n  lines\ncwd:\n"),
        (Some("Old".to_owned()), None)
    );
    assert_eq!(workspace(b"\xff\x00"), (None, None));
}
