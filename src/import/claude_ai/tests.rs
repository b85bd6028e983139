use super::*;
use crate::tests::testing::{check_calls, read};
use crate::tests::{MappedMember, imported};
use serde_json::{Value, json};
use std::path::Path;
use treelined_core::timestamp;

/// The conversations in the fixture, by name.
fn fixture(name: &str) -> String {
    let path = "../../tests/data/import/claude-ai/conversations.json";
    let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let all: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let mut found = all.into_iter();
    found.find(|it| it["name"] == name).expect(name).to_string()
}

fn mapped(conversation: &str) -> MappedMember {
    read(&ClaudeAi, "export.json#id", conversation.as_bytes());
    let mut members = imported(&ClaudeAi, "export.json#id", conversation.as_bytes());
    assert_eq!(members.len(), 1);
    members.remove(0)
}

#[track_caller]
fn check(name: &str, expected: &[&str]) -> MappedMember {
    let conversation = fixture(name);
    let member = mapped(&conversation);
    assert_eq!(member.drawn(), expected.join("\n"));
    check_calls(&ClaudeAi, conversation.as_bytes(), &member.member);
    member
}

#[test]
fn messages_without_parents_are_one_path() {
    let expected = [
        "0 - user Hello",
        "1 0 assistant Hi.",
        "2 1 user Bye",
        "3 2 assistant See you.*",
    ];
    let member = check("Without parents", &expected).member;
    assert_eq!(member.title.as_deref(), Some("Without parents"));
    assert_eq!(member.started, timestamp::parse("2026-01-01T10:00:00.123Z"));
    assert_eq!(
        member.nodes[1].time,
        timestamp::parse("2026-01-01T10:01:00Z")
    );
    let expected = ["0 - user Only text", "1 0 assistant Only an answer*"];
    check("Old text", &expected);
}

#[test]
fn messages_with_parents_are_a_tree() {
    let expected = [
        "0 - user One?",
        "1 0 assistant First.",
        "2 1 user More",
        "3 2 assistant Enough.",
        "4 0 assistant Second.*",
    ];
    check("A tree", &expected);
}

#[test]
fn the_text_of_attachments_is_there_and_other_files_are_named() {
    let expected = [
        "0 - user Read this [file: notes.txt]\nline 1\nline 2 [file: photo.jpg]",
        "1 0 assistant I have read it.",
        "2 1 user [file: only.png]",
        "3 2 assistant A file alone.*",
    ];
    check("Attachments", &expected);
}

#[test]
fn results_end_an_entry_of_an_answer() {
    let expected = [
        "0 - user Search",
        r#"1 0 assistant (I should search.) Let me look. web_search{"query":"trees"}"#,
        "2 1 toolresult Trees grow. [image]",
        r#"3 2 assistant repl{"code":"1/0"} repl{"code":"2"}"#,
        "4 3 toolresult 2",
        "5 4 toolresult no !",
        "6 5 scaffolding lost",
        "7 6 assistant Trees grow, and 2 is 2.*",
    ];
    let member = check("Tools", &expected);
    let call = &member.bodies[1]["message"]["content"][2]["id"];
    assert_eq!(*call, "m4-1:2", "a separate id");
    assert_eq!(member.bodies[2]["message"]["toolCallId"], *call);
    assert_eq!(member.bodies[4]["message"]["toolCallId"], "toolu_2");
}

#[test]
fn hostile_conversations_lose_nothing() {
    let expected = ["0 gone user Who is above me?", "1 0 assistant Nobody.*"];
    check("A lost parent", &expected);
    let expected = ["0 - user one", "1 0 assistant two", "2 1 user three*"];
    check("A circle", &expected);
    let expected = ["0 - user one", "1 0 assistant two", "2 1 assistant two*"];
    check("Repeated ids", &expected);
    let expected = [
        "0 - user Hi",
        "1 0 scaffolding A notice",
        "2 1 assistant Hello.*",
    ];
    check("Another sender", &expected);
    assert_eq!(mapped(&fixture("")).member.nodes.len(), 0);
}

#[test]
fn an_answer_with_100_000_results_is_read() {
    let block = |number: usize| match number % 2 {
        0 => json!({"type": "tool_use", "name": "t", "input": {}}),
        _ => json!({"type": "tool_result", "name": "t", "content": "x"}),
    };
    let blocks: Vec<Value> = (0..100_000).map(block).collect();
    let message = json!({"uuid": "a", "sender": "assistant", "content": blocks});
    let conversation = json!({"uuid": "c", "chat_messages": [message]}).to_string();
    let mut reader = ClaudeAi.reader("x#c");
    reader.record(crate::member::Record {
        at: 0,
        number: 0,
        bytes: conversation.as_bytes(),
    });
    assert_eq!(reader.finish().remove(0).nodes.len(), 100_000);
}
