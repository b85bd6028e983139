//! Calls and results in the format `llm`.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn calls(ids: &[&str]) -> Value {
    let blocks = ids.iter().map(
        |id| json!({"type": "toolCall", "id": id, "name": format!("tool-{id}"), "arguments": {}}),
    );
    json!({"type": "message", "message": {
        "role": "assistant", "content": blocks.collect::<Vec<_>>(), "timestamp": 5,
    }})
}

fn result(id: &str) -> Value {
    json!({"type": "message", "message": {
        "role": "toolResult", "toolCallId": id, "toolName": "t", "content": [],
    }})
}

/// The messages of the context in short, with their entries.
fn paired(entries: &[Value]) -> Vec<(String, Option<String>)> {
    let context = ChainFixture::new(entries).context(Format::Llm);
    let shorten = |message: &Vec<u8>| {
        let message: Value = serde_json::from_slice(message).unwrap();
        match message["role"].as_str().unwrap() {
            "toolResult" if message["isError"] == true => {
                let text = &message["content"][0]["text"];
                assert_eq!(*text, "No result was recorded.", "{message}");
                assert_eq!(message["timestamp"], 5, "{message}");
                let id = message["toolCallId"].as_str().unwrap();
                assert_eq!(message["toolName"], format!("tool-{id}"));
                format!("missing {id}")
            }
            "toolResult" => format!("result {}", message["toolCallId"].as_str().unwrap()),
            role => role.to_owned(),
        }
    };
    let messages = context.messages.iter().map(shorten);
    messages.zip(context.entry_ids).collect()
}

#[track_caller]
fn check_pairs(entries: &[Value], expect: &[(&str, Option<&str>)]) {
    let expect: Vec<_> = expect
        .iter()
        .map(|(said, id)| ((*said).to_owned(), id.map(str::to_owned)))
        .collect();
    assert_eq!(paired(entries), expect);
}

#[test]
fn missing_results_follow_those_that_are_there() {
    check_pairs(
        &[calls(&["a", "b", "c"]), result("b"), user("go on")],
        &[
            ("assistant", Some("e0")),
            ("result b", Some("e1")),
            ("missing a", None),
            ("missing c", None),
            ("user", Some("e2")),
        ],
    );
}

#[test]
fn calls_at_the_end_and_before_an_answer_are_closed() {
    check_pairs(
        &[calls(&["a"]), calls(&["b"])],
        &[
            ("assistant", Some("e0")),
            ("missing a", None),
            ("assistant", Some("e1")),
            ("missing b", None),
        ],
    );
}

#[test]
fn results_without_an_open_call_are_left_out() {
    check_pairs(
        &[
            result("of nobody"),
            calls(&["a"]),
            result("a"),
            result("a"),
            user("go on"),
            result("a"),
        ],
        &[
            ("assistant", Some("e1")),
            ("result a", Some("e2")),
            ("user", Some("e4")),
        ],
    );
}

#[test]
fn the_agent_format_stays_as_stored() {
    let chain = ChainFixture::new(&[result("x"), calls(&["a"]), user("go on")]);
    let context = chain.context(Format::Agent);
    let ids: Vec<_> = context.entry_ids.iter().flatten().collect();
    assert_eq!(ids, ["e0", "e1", "e2"]);
}

#[test]
fn added_results_count_against_the_limit_of_a_context() {
    let chain = ChainFixture::new(&[calls(&["a", "b", "c", "d", "e", "f", "g", "h"])]);
    let size = |context: &Context| context.messages.iter().map(Vec::len).sum::<usize>();
    let whole = size(&chain.context(Format::Llm));
    let within = |limit: usize| {
        let mut body = |node: Node| Ok(chain.bodies[node.number()].clone());
        build_within(&chain.steps(), chain.kept(), Format::Llm, limit, &mut body)
    };
    assert_eq!(size(&within(whole).unwrap()), whole);
    let refused = within(whole - 1).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::ResponseTooLarge);
}

proptest! {
    /// With any order of calls, results and texts, an assistant message is followed by the results of all its calls.
    /// Nothing else comes between them, and no other message comes before the last result.
    #[test]
    fn every_call_is_answered_once_before_the_next_turn(
        picks in prop::collection::vec((0_u8..4, 0_u8..4, 0_u8..4), 0..20)
    ) {
        let entries: Vec<Value> = picks
            .iter()
            .enumerate()
            .map(|(at, (kind, first, second))| match kind {
                0 => user("text"),
                1 => calls(&[&format!("{first}-{at}"), &format!("{second}+{at}")]),
                2 => calls(&[&first.to_string()]),
                _ => result(&first.to_string()),
            })
            .collect();
        let context = ChainFixture::new(&entries).context(Format::Llm);
        prop_assert_eq!(context.messages.len(), context.entry_ids.len());
        let mut open = HashSet::new();
        for message in &context.messages {
            let message: Value = serde_json::from_slice(message).unwrap();
            if message["role"] == "toolResult" {
                prop_assert!(open.remove(&message["toolCallId"].to_string()));
                continue;
            }
            prop_assert!(open.is_empty());
            let blocks = message["content"].as_array().into_iter().flatten();
            open.extend(blocks.filter(|block| block["type"] == "toolCall").map(|block| block["id"].to_string()));
        }
        prop_assert!(open.is_empty());
    }
}
