use super::*;
use crate::member::{NodeKind, Parent};
use crate::tests::testing::{check_calls, outline, read};
use crate::tests::{MappedMember, imported};
use serde_json::{Value, json};
use std::path::Path;

/// The conversations in the fixture, by title.
fn fixture(title: &str) -> String {
    let path = "../../tests/data/import/chatgpt/conversations.json";
    let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let all: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let mut found = all.into_iter();
    let is_it = |it: &Value| it["title"].as_str().unwrap_or_default() == title;
    found.find(is_it).expect(title).to_string()
}

fn mapped(conversation: &str) -> MappedMember {
    read(&ChatGpt, "export.json#id", conversation.as_bytes());
    let mut members = imported(&ChatGpt, "export.json#id", conversation.as_bytes());
    assert_eq!(members.len(), 1);
    members.remove(0)
}

#[track_caller]
fn check(title: &str, expected: &[&str]) -> MappedMember {
    let conversation = fixture(title);
    let member = mapped(&conversation);
    assert_eq!(member.drawn(), expected.join("\n"));
    check_calls(&ChatGpt, conversation.as_bytes(), &member.member);
    member
}

#[test]
fn edited_questions_and_regenerated_answers_are_siblings() {
    let expected = [
        "0 - user Why is it slow?",
        "1 0 assistant The cache is stale.",
        "2 1 user Clear it then.",
        "3 2 assistant Done.*",
        "4 1 user How do I see that?",
        "5 4 assistant Look at the age.",
        "6 0 assistant A join has no index.",
    ];
    let found = check("The cache", &expected);
    let member = &found.member;
    assert_eq!(member.title.as_deref(), Some("The cache"));
    assert_eq!(member.native_id, "00000000-0000-4000-8000-000000000001");
    assert_eq!(member.started, Some(1_764_001_000_000));
    assert_eq!(member.ended, Some(1_764_001_500_250));
    assert_eq!(found.bodies[1]["message"]["model"], "gpt-4o");
    assert_eq!(member.nodes[0].time, Some(1_764_001_003_000));
}

#[test]
fn a_message_to_a_tool_is_a_call_and_the_next_of_a_tool_its_result() {
    let expected = [
        "0 - user What is 6 times 7?",
        r#"1 0 assistant python{"input":"print(6*7)"}"#,
        "2 1 toolresult 42",
        "3 2 assistant It is 42.*",
    ];
    let member = check("A sum in Python", &expected);
    assert_eq!(member.bodies[1]["message"]["stopReason"], "toolUse");
    assert_eq!(member.bodies[2]["message"]["toolName"], "python");
    let expected = [
        "0 - user Is Rust 2 out?",
        r#"1 0 assistant web.run{"search_query":[{"q":"rust 2"}]}"#,
        "2 1 toolresult No release found.",
        "3 2 scaffolding Rust https://example.com/rust Rust has editions.",
        "4 3 assistant No.*",
    ];
    let member = check("News", &expected);
    assert_eq!(member.bodies[3]["customType"], "chatgpt.tool");
    assert_eq!(member.bodies[3]["display"], true);
    let expected = [
        "0 - user Run it",
        r#"1 0 assistant python{"input":"1/0"}"#,
        "2 1 toolresult division by zero !",
        "3 2 assistant It fails.*",
    ];
    check("A failed tool", &expected);
}

#[test]
fn files_are_named_and_spoken_words_are_text() {
    let expected = [
        "0 - user [image_asset_pointer: sediment://file_01] What is this? [file: cat.png]",
        "1 0 assistant A cat.",
        "2 1 user And its name? [audio_asset_pointer: sediment://file_02]",
        "3 2 assistant I do not know.*",
    ];
    check("A picture", &expected);
}

#[test]
fn thoughts_are_thinking_and_hidden_messages_are_scaffolding() {
    let expected = [
        "0 - user Is 91 prime?",
        "1 0 assistant (Dividing) (91 = 7 * 13)",
        "2 1 custom",
        "3 2 assistant No, 7 times 13.*",
    ];
    check("A proof", &expected);
    let expected = [
        "0 - scaffolding I am Ada. Be short.",
        "1 0 scaffolding 1. Likes trees.",
        "2 1 user Hello",
        "3 2 assistant Hi Ada.*",
    ];
    let member = check("With instructions", &expected);
    assert_eq!(member.bodies[0]["display"], false);
    assert_eq!(member.bodies[3]["message"]["stopReason"], "aborted");
}

#[test]
fn the_model_of_the_conversation_is_that_of_answers_that_name_none() {
    let expected = [
        "0 - user A new export has no metadata",
        "1 0 assistant So the conversation names the model.*",
    ];
    let member = check("", &expected);
    assert_eq!(member.member.title, None);
    assert_eq!(member.bodies[1]["message"]["model"], "gpt-5-thinking");
}

#[test]
fn missing_parents_circles_and_unknown_contents_lose_nothing() {
    let expected = [
        "0 gone user Who is above me?",
        "1 0 assistant Nobody that the export has.*",
    ];
    check("A lost parent", &expected);
    let expected = ["0 - user one", "1 0 assistant two", "2 1 user three*"];
    check("A circle", &expected);
    let expected = ["0 - user Draw", "1 0 custom", "2 1 assistant Drawn.*"];
    let member = check("Unknown content", &expected);
    assert_eq!(member.bodies[1]["data"]["content"]["cube"][0], 1);
    assert_eq!(mapped(&fixture("Nothing said")).member.nodes.len(), 0);
}

#[test]
fn a_second_node_with_an_id_and_another_body_is_kept() {
    let node = |text: &str| {
        let message = json!({"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}});
        json!({"message": message, "parent": null, "children": []}).to_string()
    };
    let (one, two) = (node("one"), node("two"));
    let mapping = format!(r#"{{"a":{one},"a":{one},"a":{two}}}"#);
    let member = mapped(&format!(
        r#"{{"id":"c","mapping":{mapping},"current_node":"a"}}"#
    ));
    assert_eq!(member.drawn(), "0 - user one*\n1 - custom");
    assert_eq!(member.bodies[1]["customType"], "import.duplicate");
}

fn conversation(nodes: impl Iterator<Item = (String, Option<String>)>) -> String {
    let node = |(id, parent): (String, Option<String>)| {
        let message =
            json!({"author": {"role": "user"}, "content": {"content_type": "text", "parts": [id]}});
        format!("\"{id}\":{}", json!({"message": message, "parent": parent}))
    };
    let nodes: Vec<String> = nodes.map(node).collect();
    format!(r#"{{"id":"c","mapping":{{{}}}}}"#, nodes.join(","))
}

/// The time is linear in the nodes: no node makes the reader search or repeat earlier work.
#[test]
fn a_row_of_100_000_siblings_and_a_path_of_100_000_nodes_are_read() {
    let name = |number: usize| format!("n{number}");
    let row = (0..100_000).map(|number| (name(number), Some("root".to_owned())));
    let row = conversation([("root".to_owned(), None)].into_iter().chain(row));
    let mut reader = ChatGpt.reader("x#c");
    let record = |bytes| crate::member::Record {
        at: 0,
        number: 0,
        bytes,
    };
    reader.record(record(row.as_bytes()));
    let member = reader.finish().remove(0);
    assert_eq!(member.nodes.len(), 100_001);
    assert!(
        member.nodes[1..]
            .iter()
            .all(|node| node.parent == Parent::Node(0))
    );
    // In the file, the children come before their parents.
    let path = (0..100_000).rev();
    let path = path.map(|number| (name(number), number.checked_sub(1).map(name)));
    let path = conversation(path);
    let mut reader = ChatGpt.reader("x#c");
    reader.record(record(path.as_bytes()));
    let member = reader.finish().remove(0);
    assert_eq!(member.nodes.len(), 100_000);
    assert_eq!(outline(&member).forks, 0);
    assert_eq!(member.nodes[99_999].kind, NodeKind::User);
}

/// A long id is not copied into each node that names it: there are 100,000 such nodes.
#[test]
fn a_long_id_is_shortened() {
    let long = "x".repeat(1 << 16);
    let nodes = [(long.clone(), None), ("b".to_owned(), Some(long))];
    let member = mapped(&conversation(nodes.into_iter()));
    assert!(member.member.nodes[0].key.len() < 20);
    assert_eq!(member.member.nodes[1].parent, Parent::Node(0));
}
