//! Each test checks a row of the table in protocol.md §3.18.

mod calls;
mod images;

use super::{
    Call, CallResult, Loss, Message, ModelMessage, ModelPart, NeutralPath, Options, Part,
    PathMessage, UserMessage, hash, text_of,
};
use crate::Tool;
use serde_json::{Value, json};

/// Messages of a context, whose entries are e0, e1, ….
fn path(messages: &[Value]) -> Vec<PathMessage> {
    let messages = messages.iter().enumerate();
    let messages = messages.map(|(at, message)| PathMessage {
        json: message.to_string().into_bytes(),
        entry_id: format!("e{at}"),
        is_scaffolding: false,
    });
    messages.collect()
}

fn clean(messages: &[Value]) -> NeutralPath {
    NeutralPath::of(path(messages), Options::default())
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn model(content: Value) -> Value {
    json!({ "role": "assistant", "content": content, "provider": "p", "model": "m" })
}

fn said(text: &str) -> Value {
    model(json!([{ "type": "text", "text": text }]))
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments })
}

fn result(id: &str, text: &str) -> Value {
    json!({ "role": "toolResult", "toolCallId": id, "toolName": "bash", "isError": false,
        "content": [{ "type": "text", "text": text }] })
}

/// The path in short form: a word or a list for each message.
fn shape(path: &NeutralPath) -> Vec<String> {
    let parts = |parts: &[Part]| -> String {
        let words = parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Image { mime_type, .. } => format!("<{mime_type}>"),
        });
        words.collect::<Vec<_>>().join("+")
    };
    let messages = path.messages.iter().map(|message| match message {
        Message::User(UserMessage {
            parts: said,
            is_summary: true,
            ..
        }) => format!("summary {}", parts(said)),
        Message::User(said) => format!("user {}", parts(&said.parts)),
        Message::Model(ModelMessage { parts, .. }) => {
            let words = parts.iter().map(|part| match part {
                ModelPart::Text(text) => text.clone(),
                ModelPart::Call(call) => format!("{}({})", call.name, call.id),
            });
            format!("model {}", words.collect::<Vec<_>>().join("+"))
        }
        Message::Results(results) => {
            let words = results
                .iter()
                .map(|result| format!("{}={}", result.call_id, parts(&result.parts)));
            format!("results {}", words.collect::<Vec<_>>().join("+"))
        }
    });
    messages.collect()
}

#[test]
fn a_plain_conversation_stays_as_it_is() {
    let messages = [
        user("Why?"),
        model(
            json!([{ "type": "text", "text": "I look." }, call("c1", "bash", json!({ "command": "ls" }))]),
        ),
        result("c1", "a"),
        said("Two files."),
    ];
    let path = clean(&messages);
    let expected = [
        "user Why?",
        "model I look.+bash(c1)",
        "results c1=a",
        "model Two files.",
    ];
    assert_eq!(shape(&path), expected);
    assert_eq!(
        (path.prompt.as_deref(), path.losses.iter().count()),
        (None, 0)
    );
    assert_eq!(
        (path.first_entry(), path.last_entry()),
        (Some("e0"), Some("e3"))
    );
}

/// The signature of a thought is valid in one conversation only. Once an agent got such a signature, and its provider
/// refused the request.
#[test]
fn thoughts_are_left_out_or_put_into_the_text() {
    let thought = json!({ "type": "thinking", "thinking": "Hm.", "thinkingSignature": "x" });
    let hidden =
        json!({ "type": "thinking", "thinking": "", "thinkingSignature": "y", "redacted": true });
    let messages = [
        user("Why?"),
        model(json!([thought, hidden, { "type": "text", "text": "So." }])),
        model(json!([thought])),
    ];
    let path = clean(&messages);
    assert_eq!(shape(&path), ["user Why?", "model So."]);
    assert_eq!(path.losses.count(Loss::Thoughts), 3);
    let options = Options {
        keeps_thoughts: true,
        ..Options::default()
    };
    let kept = NeutralPath::of(self::path(&messages), options);
    assert_eq!(shape(&kept), ["user Why?", "model Hm.+So.+Hm."]);
    assert_eq!(kept.losses.count(Loss::Thoughts), 1);
}

#[test]
fn each_call_gets_one_result_and_each_result_has_its_call() {
    let both = json!([call("c1", "bash", json!({})), call("c2", "bash", json!({}))]);
    let messages = [
        user("Run both."),
        model(both),
        result("c2", "two"),
        result("c9", "nobody asked"),
        user("Stop."),
        result("c1", "late"),
        said("Stopped."),
        model(json!([call("c3", "bash", json!({}))])),
    ];
    let path = clean(&messages);
    let not_run = "Not run: the branch ends here.";
    let expected = [
        "user Run both.".to_owned(),
        "model bash(c1)+bash(c2)".to_owned(),
        format!("results c1={not_run}+c2=two"),
        "user Stop.".to_owned(),
        "model Stopped.+bash(c3)".to_owned(),
        format!("results c3={not_run}"),
    ];
    assert_eq!(shape(&path), expected);
    assert_eq!(path.losses.count(Loss::ClosedCalls), 2);
    assert_eq!(path.losses.count(Loss::OrphanResults), 2);
    let Some(Message::Results(results)) = path.messages.last() else {
        panic!("no result");
    };
    let closed = results
        .first()
        .map(|closed| (closed.is_error, closed.entry.clone()));
    assert_eq!(closed, Some((true, None)));
}

/// Once `call_abc.1` was kept as an id: the agent accepted it, but its provider did not.
#[test]
fn ids_of_calls_are_those_that_every_provider_takes() {
    let long = "x".repeat(65);
    let calls = json!([
        call("ok_-1", "bash", json!({})),
        call("call.1", "bash", json!({})),
        call("", "bash", json!({})),
        call(&long, "bash", json!({})),
        call("ok_-1", "bash", json!({})),
    ]);
    let path = clean(&[
        user("Go."),
        model(calls),
        result("call.1", "r"),
        said("Done."),
    ]);
    assert_eq!(path.losses.count(Loss::CallIds), 4);
    let Some(Message::Model(said)) = path.messages.get(1) else {
        panic!("no calls");
    };
    let ids: std::collections::BTreeSet<&str> = said
        .parts
        .iter()
        .filter_map(|part| match part {
            ModelPart::Call(call) => Some(call.id.as_str()),
            ModelPart::Text(_) => None,
        })
        .collect();
    assert_eq!(ids.len(), 5);
    let is_taken = |id: &&str| {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
        !id.is_empty() && id.len() <= 64 && id.chars().all(is_allowed)
    };
    assert!(ids.iter().all(is_taken), "{ids:?}");
    let Some(Message::Results(results)) = path.messages.get(2) else {
        panic!("no results");
    };
    let answered = results.iter().find(|result| text_of(&result.parts) == "r");
    let answered = answered.map(|result| &*result.call_id);
    assert!(answered.is_some_and(|id| id != "ok_-1" && ids.contains(id)));
}

#[test]
fn neighbours_of_one_role_are_one_message_and_a_question_at_the_end_is_the_prompt() {
    let messages = [
        user("One."),
        user("Two."),
        said("A."),
        said("B."),
        user("Three."),
        user("Four."),
    ];
    let path = clean(&messages);
    assert_eq!(shape(&path), ["user One.+Two.", "model A.+B."]);
    assert_eq!(path.prompt.as_deref(), Some("Three.\nFour."));
    assert_eq!(path.last_entry(), Some("e3"));
    let Some(Message::Model(model)) = path.messages.get(1) else {
        panic!("no answer");
    };
    assert_eq!(model.entries, ["e2", "e3"]);
}

#[test]
fn a_path_that_begins_with_an_answer_gets_a_message_before_it() {
    let path = clean(&[said("Hello.")]);
    let first = "user (The beginning of this conversation is not part of this session.)";
    assert_eq!(shape(&path), [first, "model Hello."]);
    assert_eq!(path.losses.count(Loss::Beginning), 1);
    assert_eq!(path.first_entry(), Some("e0"));
}

#[test]
fn summaries_commands_and_messages_of_plugins_are_the_users() {
    let messages = [
        json!({ "role": "compactionSummary", "summary": "Much.", "tokensBefore": 9 }),
        user("Go on."),
        said("Yes."),
        json!({ "role": "branchSummary", "summary": "Learned.", "fromId": "x" }),
        json!({ "role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0 }),
        json!({ "role": "custom", "customType": "note", "content": "Noted.", "display": true }),
        said("I see."),
    ];
    let path = clean(&messages);
    let shape = shape(&path);
    assert!(
        shape[0].starts_with("summary The conversation history"),
        "{shape:?}"
    );
    assert!(
        shape[0].contains("<summary>\nMuch.\n</summary>"),
        "{shape:?}"
    );
    assert_eq!(shape[1], "user Go on.");
    assert!(
        shape[3].contains("Learned.")
            && shape[3].contains("Ran `ls`")
            && shape[3].ends_with("+Noted.")
    );
    assert_eq!(shape.len(), 5);
}

/// The last message may be a summary.
#[test]
fn a_summary_at_the_end_is_handed_over() {
    let summary = json!({ "role": "compactionSummary", "summary": "Much.", "tokensBefore": 9 });
    let path = clean(&[summary]);
    assert_eq!((path.messages.len(), path.prompt.clone()), (1, None));
}

#[test]
fn system_messages_and_those_that_an_agent_wrote_for_itself_are_left_out() {
    let mut messages = path(&[
        json!({ "role": "system", "content": "Be kind." }),
        json!({ "role": "custom", "customType": "codex.context", "content": "<environment_context>", "display": false }),
        user("Why?"),
        said("So."),
    ]);
    messages[1].is_scaffolding = true;
    let path = NeutralPath::of(messages, Options::default());
    assert_eq!(shape(&path), ["user Why?", "model So."]);
    let losses = [Loss::SystemMessages, Loss::Scaffolding].map(|loss| path.losses.count(loss));
    assert_eq!(losses, [1, 1]);
}

#[test]
fn images_that_agents_do_not_take_are_described() {
    let image = |mime: &str, data: &str| json!({ "type": "image", "mimeType": mime, "data": data });
    let large = "A".repeat(8 << 20);
    let said_ = json!({ "role": "user", "content": [
        { "type": "text", "text": "Look." }, image("image/png", "iVBORw0K"), image("image/tiff", "AAAA"), image("image/png", &large),
    ]});
    let options = Options {
        tool: Some(Tool::Codex),
        ..Options::default()
    };
    let path = NeutralPath::of(path(&[said_, said("I see.")]), options);
    let shape = shape(&path);
    assert!(shape[0].starts_with(
        "user Look.+<image/png>+[An image is not part of this session: image/tiff, 3 bytes, SHA-256"
    ));
    assert!(shape[0].contains("image/png, 6291456 bytes"));
    assert_eq!(path.losses.count(Loss::Images), 2);
}

/// Once agents that are written in Rust could not read a file at all, because it had a lone surrogate.
#[test]
fn text_that_is_not_unicode_and_nul_are_replaced() {
    let raw = |text: &str| PathMessage {
        json: text.as_bytes().to_vec(),
        entry_id: "e".to_owned(),
        is_scaffolding: false,
    };
    let path = NeutralPath::of(
        vec![
            raw(r#"{"role":"user","content":"a\ud83d\u0000b \ud83d\ude00"}"#),
            raw(
                r#"{"role":"assistant","content":[{"type":"text","text":"ok \ufffd"},{"type":"toolCall","id":"c","name":"x","arguments":{"k\\":"\\ud83d \ud83d\ude00","l":"\udc00","n":["a\u0000"]}}]}"#,
            ),
        ],
        Options::default(),
    );
    let shape = shape(&path);
    assert_eq!(shape[0], "user a\u{fffd}\u{fffd}b \u{1f600}");
    let Some(Message::Model(said)) = path.messages.get(1) else {
        panic!("no answer");
    };
    let expected = json!({ "k\\": "\\ud83d \u{1f600}", "l": "\u{fffd}", "n": ["a\u{fffd}"] });
    let Some(ModelPart::Call(call)) = said.parts.get(1) else {
        panic!("no call");
    };
    assert_eq!(Value::Object(call.arguments.clone()), expected);
    // The text `l` has U+FFFD in the source already, so it does not count as a loss.
    assert_eq!(path.losses.count(Loss::Characters), 3);
}

#[test]
fn arguments_that_are_not_an_object_become_a_text() {
    for (arguments, text) in [
        (json!("*** Begin Patch"), "*** Begin Patch"),
        (json!([1]), "[1]"),
    ] {
        let path = clean(&[
            user("Go."),
            model(json!([call("c", "apply_patch", arguments)])),
        ]);
        let Some(Message::Model(said)) = path.messages.get(1) else {
            panic!("no call");
        };
        let Some(ModelPart::Call(call)) = said.parts.first() else {
            panic!("no call");
        };
        assert_eq!(
            Value::Object(call.arguments.clone()),
            json!({ "_raw": text })
        );
    }
}

/// The call of a tool as an agent gets it, and the number of tool names that the agent does not have.
fn renamed(name: &str, arguments: Value, tool: Tool) -> (String, Value, u64) {
    let options = Options {
        tool: Some(tool),
        ..Options::default()
    };
    let messages = [
        user("Go."),
        model(json!([call("c", name, arguments)])),
        result("c", "r"),
    ];
    let path = NeutralPath::of(path(&messages), options);
    let Some(Message::Model(said)) = path.messages.get(1) else {
        panic!("no call");
    };
    let Some(ModelPart::Call(Call {
        name, arguments, ..
    })) = said.parts.first()
    else {
        panic!("no call");
    };
    let losses = path.losses.count(Loss::ToolNames);
    (name.clone(), Value::Object(arguments.clone()), losses)
}

/// Claude Code shows nothing for a call named `exec_command`.
#[test]
fn tools_that_an_agent_has_get_its_names() {
    let check = |given: (&str, Value), tool, expected: (&str, Value, u64)| {
        let (name, arguments, losses) = renamed(given.0, given.1, tool);
        assert_eq!((name.as_str(), arguments, losses), expected, "{tool:?}");
    };
    check(
        ("exec_command", json!({ "cmd": "ls", "workdir": "/x" })),
        Tool::ClaudeCode,
        ("Bash", json!({ "command": "ls", "workdir": "/x" }), 0),
    );
    check(
        ("shell", json!({ "command": ["bash", "-lc", "ls -l"] })),
        Tool::Opencode,
        ("bash", json!({ "command": "ls -l" }), 0),
    );
    check(
        ("Bash", json!({ "command": "ls" })),
        Tool::Codex,
        ("exec_command", json!({ "cmd": "ls" }), 0),
    );
    check(
        (
            "Edit",
            json!({ "file_path": "a", "old_string": "x", "new_string": "y" }),
        ),
        Tool::Pi,
        (
            "edit",
            json!({ "path": "a", "oldText": "x", "newText": "y" }),
            0,
        ),
    );
    check(
        ("read", json!({ "filePath": "a" })),
        Tool::Gemini,
        ("read_file", json!({ "file_path": "a" }), 0),
    );
    // A name stays if the call lacks an argument that the agent's tool needs, or if the agent has no such tool.
    check(
        ("read", json!({ "x": 1 })),
        Tool::Gemini,
        ("read", json!({ "x": 1 }), 1),
    );
    check(
        ("deploy", json!({ "to": "prod" })),
        Tool::ClaudeCode,
        ("deploy", json!({ "to": "prod" }), 1),
    );
    check(
        ("Read", json!({ "file_path": "a" })),
        Tool::Codex,
        ("Read", json!({ "file_path": "a" }), 1),
    );
    check(
        ("Bash", json!({ "command": "ls" })),
        Tool::ClaudeCode,
        ("Bash", json!({ "command": "ls" }), 0),
    );
}

#[test]
fn the_last_turns_begin_with_the_user() {
    let messages = [
        json!({ "role": "compactionSummary", "summary": "Much.", "tokensBefore": 9 }),
        user("One."),
        said("A."),
        user("Two."),
        said("B."),
        user("Three."),
        said("C."),
        user("Four?"),
    ];
    let last = |turns| {
        let options = Options {
            last: Some(turns),
            ..Options::default()
        };
        NeutralPath::of(path(&messages), options)
    };
    let two = last(2);
    assert_eq!(
        shape(&two),
        ["user Two.", "model B.", "user Three.", "model C."]
    );
    assert_eq!(
        (two.losses.count(Loss::EarlierTurns), two.prompt.as_deref()),
        (1, Some("Four?"))
    );
    assert_eq!(two.first_entry(), Some("e3"));
    assert_eq!(last(3).messages.len(), 7);
}

#[test]
fn a_summary_stands_for_what_was_before() {
    let options = Options {
        summary: Some("Much was \"said\"."),
        ..Options::default()
    };
    let path = NeutralPath::of(path(&[user("On."), said("Yes.")]), options);
    let shape = shape(&path);
    assert!(shape[0].starts_with("summary ") && shape[0].contains("Much was \"said\"."));
    assert_eq!((shape.len(), path.losses.count(Loss::Compacted)), (3, 1));
    assert_eq!(path.first_entry(), Some("e0"));
}

/// Once the path had only the last turns and no summary, but a summary was reported.
#[test]
fn the_last_turns_leave_the_summary_out() {
    let messages = [user("One."), said("A."), user("Two."), said("B.")];
    let cleaned = |last| {
        let options = Options {
            summary: Some("Much."),
            last: Some(last),
            ..Options::default()
        };
        NeutralPath::of(path(&messages), options)
    };
    let is_there = |path: NeutralPath| {
        (
            path.begins_with_summary(),
            path.losses.count(Loss::Compacted),
        )
    };
    assert_eq!(is_there(cleaned(1)), (false, 0));
    assert_eq!(is_there(cleaned(2)), (true, 1));
}

#[test]
fn nothing_but_a_question_hands_nothing_over() {
    let path = clean(&[user("Why?")]);
    assert_eq!(
        (
            path.messages.len(),
            path.prompt.as_deref(),
            path.last_entry()
        ),
        (0, Some("Why?"), None)
    );
}

/// If an agent returns messages in another form, their hash is the same. Other messages have another hash.
#[test]
fn the_hash_is_over_what_every_agent_gives_back() {
    let plain = clean(&[
        user("One two."),
        model(
            json!([{ "type": "text", "text": "A." }, call("c", "bash", json!({ "command": "ls" }))]),
        ),
        result("c", "r"),
        said("B."),
    ]);
    // printf 'uOnetwo.\0aA.\0cbash\0rr\0aB.\0' | sha256sum
    let digits = hash(&plain.messages);
    assert_eq!(
        digits,
        "2272a328fb60862e34b62c50e0bd2bda0ac08ede47ee5f13a48dae816546bf0c"
    );
    let other_form = clean(&[
        user("One"),
        user("\ttwo.\n"),
        model(json!([{ "type": "text", "text": "A." }])),
        model(json!([call("d", "bash", json!({}))])),
        json!({ "role": "toolResult", "toolCallId": "d", "isError": true, "content": [{ "type": "text", "text": "r " }] }),
        said("B."),
    ]);
    assert_eq!(hash(&other_form.messages), digits);
    let mut changed = plain.messages.clone();
    let Some(Message::Results(results)) = changed.get_mut(2) else {
        panic!("no results");
    };
    *results = vec![CallResult {
        parts: vec![Part::Text("s".to_owned())],
        ..results[0].clone()
    }];
    assert_ne!(hash(&changed), digits);
    changed.truncate(2);
    assert_ne!(hash(&changed), digits);
}
