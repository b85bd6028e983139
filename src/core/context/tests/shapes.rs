//! Tests entries of any shape, and compares the context with the result of a plain loop.

use super::*;
use proptest::prelude::*;

#[test]
fn odd_shapes_do_no_harm() {
    let odd = [
        "5",
        "null",
        "\"\"",
        "[]",
        "{}",
        "true",
        "\"\\ud800\"",
        "[5,null,[],{}]",
        "[[[[[]]]]]",
        r#"[{"type":"toolCall","name":5},{"type":"text"},{"type":"image"},{"text":"x"}]"#,
    ];
    for odd in odd {
        let mut bodies = Vec::new();
        let mut add = |kind: &str, member: &str| {
            let at = bodies.len();
            let body = format!(r#"{{"type":"{kind}","id":"e{at}","timestamp":{odd},{member}}}"#);
            bodies.push(body.into_bytes());
        };
        for role in [
            "user",
            "assistant",
            "toolResult",
            "system",
            "bashExecution",
            "custom",
            "branchSummary",
            "x",
        ] {
            add(
                "message",
                &format!(
                    r#""message":{{"role":"{role}","content":{odd},"command":{odd},"output":{odd},"exitCode":{odd},"summary":{odd}}}"#
                ),
            );
        }
        add("message", &format!(r#""message":{odd}"#));
        add("message", &format!(r#""message":{{"role":{odd}}}"#));
        add(
            "custom_message",
            &format!(r#""content":{odd},"display":{odd}"#),
        );
        add(
            "branch_summary",
            &format!(r#""summary":{odd},"fromId":{odd}"#),
        );
        add(
            "context_edit",
            &format!(r#""targetId":"e0","replacement":{{"content":{odd}}}"#),
        );
        add(
            "context_edit",
            &format!(r#""targetId":"e1","replacement":{odd}"#),
        );
        add("model_change", &format!(r#""provider":{odd}"#));
        add(
            "thinking_level_change",
            &format!(r#""thinkingLevel":{odd}"#),
        );
        for first_kept in ["\"e0\"", odd] {
            let mut bodies = bodies.clone();
            let body = format!(
                r#"{{"type":"compaction","id":"c","summary":{odd},"tokensBefore":{odd},"systemMessage":{odd},"firstKeptEntryId":{first_kept}}}"#
            );
            bodies.push(body.into_bytes());
            let chain = ChainFixture::raw(bodies);
            for format in [Format::Agent, Format::Llm] {
                for message in chain.context(format).messages {
                    assert_eq!(json::value_span(&message), Ok(0..message.len()));
                }
            }
        }
    }
}

fn any_entry() -> impl Strategy<Value = Value> {
    // No text is "s". The plain loop recognizes the system message by this text.
    let id = (0..14_usize).prop_map(|at| format!("e{at}"));
    prop_oneof![
        4 => "[a-r]{1,3}".prop_map(|text| user(&text)),
        2 => "[a-r]{1,3}".prop_map(|text| assistant(&text)),
        1 => Just(system("s")),
        1 => Just(label()),
        2 => id.clone().prop_map(|kept| compaction("c", &kept)),
        1 => id.clone().prop_map(|target| edit(&target, json!(null))),
        1 => id.prop_map(|target| edit(&target, json!({"content": "edited"}))),
        1 => Just(json!({"type": "model_change", "provider": "q", "modelId": "m"})),
    ]
}

/// The rules as a plain loop over everything. Returns the contents of the messages, and the model.
fn naive(entries: &[Value]) -> (Vec<String>, Option<String>) {
    let latest = entries
        .iter()
        .rposition(|entry| entry["type"] == "compaction");
    let first_kept = latest.map(|at| {
        let id = entries[at]["firstKeptEntryId"].as_str().unwrap();
        let index: usize = id[1..].parse().unwrap();
        if index < at { index } else { at }
    });
    let in_context: Vec<usize> = (first_kept.unwrap_or(0)..entries.len()).collect();
    let mut said: Vec<String> = Vec::new();
    let edit_of = |at: usize| {
        let edits = in_context.iter().rev().map(|at| &entries[*at]);
        edits
            .filter(|entry| entry["type"] == "context_edit")
            .find(|entry| entry["targetId"] == format!("e{at}"))
    };
    let mut take = |at: usize, text: &str| match edit_of(at) {
        Some(edit) if edit["replacement"].is_null() => {}
        Some(_) if !text.starts_with('<') && text != "s" => said.push("edited".into()),
        _ => said.push(text.to_owned()),
    };
    if let Some(at) = latest {
        take(at, "<c>");
    }
    for at in &in_context {
        let message = &entries[*at]["message"];
        let dropped = message["role"] == "system" && latest.is_some_and(|latest| *at < latest);
        if message.is_object() && !dropped {
            let content = &message["content"];
            take(
                *at,
                content.as_str().or(content[0]["text"].as_str()).unwrap(),
            );
        }
    }
    let model = entries.iter().rev().find_map(|entry| {
        let used = entry["message"]["model"].as_str();
        used.or(entry["modelId"].as_str()).map(str::to_owned)
    });
    (said, model)
}

proptest! {
    #[test]
    fn as_a_plain_loop_would_have_it_without_reading_before_the_kept_range(
        entries in prop::collection::vec(any_entry(), 0..14),
    ) {
        let chain = ChainFixture::new(&entries);
        let context = chain.context(Format::Agent);
        let (expect, model) = naive(&entries);
        prop_assert_eq!(said(&context), expect);
        prop_assert_eq!(context.model.map(|(_, model)| model), model);

        let latest = entries.iter().rposition(|entry| entry["type"] == "compaction");
        let Some(latest) = latest else { return Ok(()) };
        let kept: usize = entries[latest]["firstKeptEntryId"].as_str().unwrap()[1..].parse().unwrap();
        if kept <= latest {
            let before: Vec<usize> = chain.read().into_iter().filter(|at| *at < kept).collect();
            prop_assert!(before.len() <= 1, "{before:?}");
            let only_for_the_model = before
                .iter()
                .all(|at| entries[*at]["modelId"].is_string() || entries[*at]["message"]["model"].is_string());
            prop_assert!(only_for_the_model, "{before:?}");
        }
    }
}
