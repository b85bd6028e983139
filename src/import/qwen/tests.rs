use super::*;
use crate::tests::testing::{check_calls, read};
use crate::tests::{MappedMember, imported};
use serde_json::{Value, json};
use std::path::Path;

const NAME: &str = "895b6a71-0d2f-4c42-b450-055c158c7720";

/// The chat that was recorded.
fn fixture() -> String {
    let folder = "../../tests/data/import/qwen-code/projects/-tmp-project/chats";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    std::fs::read_to_string(folder.join(format!("{NAME}.jsonl"))).unwrap()
}

fn mapped(chat: &str) -> MappedMember {
    let path = format!("{NAME}.jsonl");
    read(&Qwen, &path, chat.as_bytes());
    let mut members = imported(&Qwen, &path, chat.as_bytes());
    assert_eq!(members.len(), 1);
    let member = members.remove(0);
    check_calls(&Qwen, chat.as_bytes(), &member.member);
    member
}

/// A record whose parent is another record.
fn record(id: &str, parent: Option<&str>, kind: &str, more: &Value) -> String {
    let mut record = json!({ "uuid": id, "parentUuid": parent, "sessionId": "s", "type": kind,
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w", "version": "0.15.10" });
    let all = record.as_object_mut().unwrap();
    all.extend(more.as_object().unwrap().clone());
    format!("{record}\n")
}

fn says(text: &str) -> Value {
    json!({ "message": { "role": "user", "parts": [{ "text": text }] } })
}

#[test]
fn a_recorded_chat_has_its_messages_calls_and_results() {
    let MappedMember { member, bodies } = mapped(&fixture());
    assert_eq!(member.native_id, NAME);
    assert_eq!(member.cwd.as_deref(), Some("/tmp/project"));
    let roles: Vec<&str> = bodies
        .iter()
        .map(|entry| entry["message"]["role"].as_str().unwrap())
        .collect();
    let turn = ["user", "assistant", "toolResult", "assistant"];
    assert_eq!(roles, [&["user", "assistant"][..], &turn, &turn].concat());
    let call = &bodies[3]["message"]["content"][0];
    assert_eq!(call["name"], "run_shell_command");
    assert_eq!(call["arguments"]["command"], "echo hello");
    let result = &bodies[4]["message"];
    assert_eq!(result["toolCallId"], call["id"]);
    assert_eq!(result["isError"], false);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Output: hello"), "{text}");
    let failed = &bodies[8]["message"];
    assert_eq!(failed["isError"], true, "{failed}");
    assert_eq!(
        failed["content"][0]["text"],
        "File not found: /tmp/project/missing.txt"
    );
    let answer = &bodies[9]["message"];
    assert_eq!(answer["model"], "stub-1");
    assert_eq!(answer["usage"]["input"], 10);
    assert_eq!(answer["usage"]["output"], 5);
    assert_eq!(member.leaf, Some(9));
}

#[test]
fn a_rewind_leaves_a_branch() {
    let chat = [
        record("1", None, "user", &says("One?")),
        record("2", Some("1"), "assistant", &says("First.")),
        record(
            "3",
            Some("2"),
            "system",
            &json!({ "subtype": "ui_telemetry", "systemPayload": {} }),
        ),
        record("4", Some("3"), "user", &says("Wrong way")),
        record(
            "5",
            Some("3"),
            "system",
            &json!({ "subtype": "rewind", "systemPayload": {} }),
        ),
        record("6", Some("5"), "user", &says("Another way")),
    ];
    let member = mapped(&chat.concat());
    let expected = [
        "0 - user One?",
        "1 0 assistant First.",
        "2 1 user Wrong way",
        "3 1 user Another way*",
    ];
    assert_eq!(member.drawn(), expected.join("\n"));
}

#[test]
fn a_compression_is_a_compaction() {
    let history = json!([
        { "role": "user", "parts": [{ "text": "The build fails for want of an import." }] },
        { "role": "model", "parts": [{ "text": "Understood." }] },
    ]);
    let payload = json!({ "compressedHistory": history, "info": { "originalTokenCount": 900 } });
    let chat = [
        record("1", None, "user", &says("Why?")),
        record("2", Some("1"), "assistant", &says("An import is missing.")),
        record(
            "3",
            Some("2"),
            "system",
            &json!({ "subtype": "chat_compression", "systemPayload": payload }),
        ),
        record("4", Some("3"), "user", &says("Go on")),
    ];
    let MappedMember { bodies, .. } = mapped(&chat.concat());
    assert_eq!(bodies[2]["type"], "compaction");
    assert_eq!(
        bodies[2]["summary"],
        "The build fails for want of an import."
    );
    assert_eq!(bodies[2]["tokensBefore"], 900);
}

/// Calls without ids are numbered within their message, and so are their results.
#[test]
fn calls_without_ids_have_their_results() {
    let call = |name: &str| json!({ "functionCall": { "name": name, "args": {} } });
    let result = |said: &str| json!({ "functionResponse": { "response": { "output": said } } });
    let chat = [
        record("1", None, "user", &says("Two calls")),
        record(
            "2",
            Some("1"),
            "assistant",
            &json!({ "message": { "role": "model", "parts": [call("a"), call("b")] } }),
        ),
        record(
            "3",
            Some("2"),
            "tool_result",
            &json!({ "message": { "role": "user", "parts": [result("of a"), result("of b")] } }),
        ),
    ];
    let MappedMember { bodies, .. } = mapped(&chat.concat());
    let calls = &bodies[1]["message"]["content"];
    for (at, said) in [(0, "of a"), (1, "of b")] {
        let entry = &bodies[2 + at]["message"];
        assert_eq!(entry["toolCallId"], calls[at]["id"]);
        assert_eq!(entry["content"][0]["text"], said);
    }
}
