use super::*;
use crate::entry::{Line, Parent};
use crate::tree::{FilePlace, Flags, Tree};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;

/// Entries in one chain; each gets `id`, `parentId` and `timestamp` unless it brings its own id.
struct Chain {
    tree: Tree,
    bodies: Vec<Vec<u8>>,
    reads: RefCell<Vec<usize>>,
}

impl Chain {
    fn new(entries: &[Value]) -> Self {
        let entries = entries.iter().enumerate().map(|(at, entry)| {
            let mut body = json!({
                "type": "", "id": format!("e{at}"), "parentId": null,
                "timestamp": "1970-01-01T00:00:07.000Z",
            });
            for (name, value) in entry.as_object().unwrap() {
                body[name] = value.clone();
            }
            body.to_string().into_bytes()
        });
        Self::raw(entries.collect())
    }

    fn raw(bodies: Vec<Vec<u8>>) -> Self {
        let mut tree = Tree::new();
        let mut parent: Option<String> = None;
        for (at, body) in bodies.iter().enumerate() {
            let Line::Entry(envelope) = scan::scan_line(body).unwrap() else {
                panic!("no entry: {}", String::from_utf8_lossy(body));
            };
            let id = envelope.id.clone().unwrap().into_owned();
            let place = FilePlace {
                offset: at as u64,
                len: 0,
            };
            let above = match &parent {
                None => Parent::Null,
                Some(id) => Parent::Id(id.as_str().into()),
            };
            tree.insert(&id, &above, &envelope, place, Flags::NONE, at as u64 + 1);
            parent = Some(id);
        }
        Self {
            tree,
            bodies,
            reads: RefCell::default(),
        }
    }

    fn steps(&self) -> Vec<Step> {
        (0..self.bodies.len())
            .map(|at| {
                let node = self.tree.node(at).unwrap();
                Step {
                    node,
                    kind: self.tree.kind(node),
                    role: self.tree.role(node),
                }
            })
            .collect()
    }

    fn kept(&self) -> Kept {
        let body = |node: Node| Ok(self.bodies[node.number()].clone());
        Kept::of(&self.steps(), body, |id| self.tree.find(id)).unwrap()
    }

    fn context(&self, format: Format) -> Context {
        let mut body = |node: Node| {
            let at = node.number();
            self.reads.borrow_mut().push(at);
            Ok(self.bodies[at].clone())
        };
        let context = build(&self.steps(), self.kept(), format, &mut body).unwrap();
        assert_eq!(context.messages.len(), context.entry_ids.len());
        context
    }

    /// The entries read, each named once.
    fn read(&self) -> Vec<usize> {
        let mut reads = self.reads.borrow().clone();
        reads.sort_unstable();
        reads.dedup();
        reads
    }
}

fn user(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": text}})
}

fn assistant(text: &str) -> Value {
    json!({"type": "message", "message": {
        "role": "assistant", "content": [{"type": "text", "text": text}], "provider": "p", "model": text,
    }})
}

fn system(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "system", "content": text}})
}

fn compaction(summary: &str, first_kept: &str) -> Value {
    json!({"type": "compaction", "summary": summary, "firstKeptEntryId": first_kept, "tokensBefore": 9})
}

fn edit(target: &str, replacement: Value) -> Value {
    json!({"type": "context_edit", "targetId": target, "replacement": replacement})
}

fn label() -> Value {
    json!({"type": "label", "targetId": "e0", "label": "x"})
}

/// Contents of the messages, in short: a string as it is, blocks by their text, summaries in angle
/// brackets.
fn said(context: &Context) -> Vec<String> {
    let said = context.messages.iter().map(|message| {
        let message: Value = serde_json::from_slice(message).unwrap();
        if let Some(summary) = message["summary"].as_str() {
            return format!("<{summary}>");
        }
        match &message["content"] {
            Value::String(text) => text.clone(),
            content => content[0]["text"].as_str().unwrap_or("?").to_owned(),
        }
    });
    said.collect()
}

#[track_caller]
fn check(entries: &[Value], expect: &[&str]) -> Chain {
    let chain = Chain::new(entries);
    assert_eq!(said(&chain.context(Format::Agent)), expect);
    chain
}

#[track_caller]
fn check_llm(entry: Value, expect: Value) {
    let chain = Chain::new(&[entry]);
    let messages: Vec<Value> = chain
        .context(Format::Llm)
        .messages
        .iter()
        .map(|message| serde_json::from_slice(message).unwrap())
        .collect();
    assert_eq!(Value::Array(messages), expect);
}

#[test]
fn an_empty_path_has_no_messages() {
    let context = Chain::new(&[]).context(Format::Agent);
    let expect = Context {
        messages: vec![],
        thinking_level: "off".into(),
        model: None,
        entry_ids: vec![],
    };
    assert_eq!(context, expect);
}

#[test]
fn only_messages_custom_messages_and_summaries_are_in_it_and_nothing_else_is_read() {
    let chain = check(
        &[
            user("a"),
            label(),
            json!({"type": "custom", "customType": "t"}),
            json!({"type": "session_info", "name": "n"}),
            json!({"type": "usage", "kind": "k"}),
            json!({"type": "strange"}),
            json!({"type": "branch_summary", "fromId": "x", "summary": "b"}),
            json!({"type": "custom_message", "customType": "t", "content": "c", "display": false}),
            assistant("d"),
        ],
        &["a", "<b>", "c", "d"],
    );
    assert_eq!(chain.read(), [0, 6, 7, 8]);
    assert_eq!(
        chain.context(Format::Agent).entry_ids,
        ["e0", "e6", "e7", "e8"]
    );
}

#[test]
fn stored_messages_keep_their_bytes() {
    let message = r#"{ "x":9007199254740993, "role" : "user","content":"a\ud800\/é", "x":1.0,"role":"user" }"#;
    let entry = format!(
        r#"{{"type":"message","id":"e","parentId":null,"timestamp":"","message":{message} }}"#
    );
    for format in [Format::Agent, Format::Llm] {
        let chain = Chain::raw(vec![entry.clone().into_bytes()]);
        let messages = chain.context(format).messages;
        assert_eq!(messages, [message.as_bytes()]);
    }
}

#[test]
fn the_latest_compaction_counts() {
    let chain = check(
        &[
            user("a"),
            compaction("old", "e0"),
            user("b"),
            user("c"),
            label(),
            compaction("new", "e3"),
            user("d"),
        ],
        &["<new>", "c", "d"],
    );
    assert_eq!(chain.read(), [3, 5, 6]);
    assert_eq!(chain.context(Format::Agent).entry_ids, ["e5", "e3", "e6"]);
}

#[test]
fn an_earlier_compaction_in_the_kept_range_contributes_nothing() {
    check(
        &[
            user("a"),
            compaction("old", "e0"),
            user("b"),
            compaction("new", "e0"),
        ],
        &["<new>", "a", "b"],
    );
}

#[test]
fn nothing_is_kept_if_the_boundary_is_the_compaction_itself_or_not_on_the_path() {
    let own = check(
        &[user("a"), compaction("s", "e1"), user("b")],
        &["<s>", "b"],
    );
    assert_eq!(own.read(), [1, 2]);
    check(
        &[user("a"), compaction("s", "gone"), user("b")],
        &["<s>", "b"],
    );
    check(
        &[user("a"), compaction("s", "e2"), user("b")],
        &["<s>", "b"],
    );
    let without = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": 5});
    let without = check(&[user("a"), without], &["<s>"]);
    assert_eq!(without.read(), [1]);
}

#[test]
fn a_boundary_may_be_any_entry() {
    check(
        &[user("a"), label(), user("b"), compaction("s", "e1")],
        &["<s>", "b"],
    );
}

#[test]
fn system_messages_are_left_out_of_the_kept_range_only() {
    check(
        &[
            system("s0"),
            user("a"),
            system("s1"),
            user("b"),
            compaction("c", "e1"),
            system("s2"),
        ],
        &["<c>", "a", "b", "s2"],
    );
    check(&[system("s0"), user("a"), system("s1")], &["s0", "a", "s1"]);
}

#[test]
fn the_compactions_system_message_comes_first() {
    let mut with = compaction("c", "e0");
    with["systemMessage"] = json!({"role": "system", "content": "s"});
    let chain = check(&[user("a"), with.clone()], &["s", "<c>", "a"]);
    assert_eq!(chain.context(Format::Llm).entry_ids, ["e1", "e1", "e0"]);
    for odd in [
        json!(null),
        json!("s"),
        json!([]),
        json!({"role": "user", "content": "s"}),
    ] {
        with["systemMessage"] = odd;
        check(&[user("a"), with.clone()], &["<c>", "a"]);
    }
    with["systemMessage"] = json!({"role": "system", "content": null});
    check(&[user("a"), with], &["", "<c>", "a"]);
}

#[test]
fn synthesized_messages_have_the_members_of_their_entry() {
    let chain = Chain::new(&[
        json!({"type": "branch_summary", "fromId": "f", "summary": "b", "details": 1}),
        json!({"type": "custom_message", "customType": "t", "content": [], "display": true, "details": {"d": 1}}),
        json!({"type": "custom_message", "customType": "t", "content": null, "display": false}),
        compaction("c", "e0"),
    ]);
    let messages = chain.context(Format::Agent).messages;
    let messages: Vec<&str> = messages
        .iter()
        .map(|m| str::from_utf8(m).unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            r#"{"role":"compactionSummary","summary":"c","tokensBefore":9,"timestamp":7000}"#,
            r#"{"role":"branchSummary","summary":"b","fromId":"f","timestamp":7000}"#,
            r#"{"role":"custom","customType":"t","content":[],"display":true,"details":{"d":1},"timestamp":7000}"#,
            r#"{"role":"custom","customType":"t","content":[],"display":false,"timestamp":7000}"#,
        ]
    );
}

#[test]
fn an_empty_branch_summary_is_no_message_and_a_timestamp_that_is_none_is_zero() {
    let entry = json!({"type": "branch_summary", "fromId": "f", "summary": ""});
    check(&[entry], &[]);
    let entry = json!({"type": "branch_summary", "summary": "b", "timestamp": "yesterday"});
    let chain = Chain::new(&[entry]);
    let messages = chain.context(Format::Agent).messages;
    let expect = r#"{"role":"branchSummary","summary":"b","timestamp":0}"#;
    assert_eq!(messages, [expect.as_bytes()]);
}

#[test]
fn null_content_becomes_empty() {
    for (role, empty) in [
        ("user", json!([])),
        ("assistant", json!([])),
        ("toolResult", json!([])),
        ("system", json!("")),
    ] {
        for content in [
            json!({"role": role, "content": null}),
            json!({"role": role}),
        ] {
            let entry = json!({"type": "message", "message": content});
            check_llm(entry, json!([{"role": role, "content": empty}]));
        }
    }
}

#[test]
fn the_latest_edit_wins_and_null_leaves_out() {
    check(
        &[
            user("a"),
            user("b"),
            edit("e0", json!({"content": "1"})),
            edit("e1", json!({"content": "1"})),
            edit("e0", json!(null)),
            edit("e1", json!({"content": "2"})),
        ],
        &["2"],
    );
    check(
        &[
            user("a"),
            edit("e0", json!(null)),
            edit("e0", json!({"content": "2"})),
        ],
        &["2"],
    );
}

#[test]
fn an_edit_before_the_compaction_counts_if_its_target_is_kept() {
    let chain = check(
        &[
            user("a"),
            edit("e0", json!(null)),
            user("b"),
            edit("e2", json!({"content": "B"})),
            compaction("s", "e2"),
            edit("e0", json!({"content": "A"})),
        ],
        &["<s>", "B"],
    );
    assert_eq!(chain.read(), [2, 3, 4, 5]);
}

#[test]
fn an_edit_replaces_nothing_but_the_content() {
    let message = r#"{"role":"assistant", "content":[1] ,"big":9007199254740993}"#;
    let chain = Chain::raw(vec![
        format!(r#"{{"type":"message","id":"a","message":{message}}}"#).into_bytes(),
        br#"{"type":"context_edit","id":"b","targetId":"a","replacement":{"content":"x\u00e9"}}"#
            .to_vec(),
    ]);
    let expect = r#"{"role":"assistant", "content":[{"type":"text","text":"x\u00e9"}] ,"big":9007199254740993}"#;
    for format in [Format::Agent, Format::Llm] {
        assert_eq!(chain.context(format).messages, [expect.as_bytes()]);
    }
}

#[test]
fn edits_reach_the_four_roles_with_content_and_leave_the_others() {
    let replacement = || json!({"content": "new"});
    for role in ["user", "assistant", "toolResult", "custom"] {
        let entry = json!({"type": "message", "message": {"role": role, "content": "old"}});
        check(&[entry, edit("e0", replacement())], &["new"]);
    }
    let entry = json!({"type": "custom_message", "customType": "t", "content": "old"});
    check(&[entry, edit("e0", replacement())], &["new"]);
    let summary = json!({"type": "branch_summary", "fromId": "f", "summary": "b"});
    check(&[summary.clone(), edit("e0", replacement())], &["<b>"]);
    check(&[summary, edit("e0", json!(null))], &[]);
    check(&[system("s"), edit("e0", replacement())], &["s"]);
    check(
        &[user("a"), compaction("c", "e0"), edit("e1", replacement())],
        &["<c>", "a"],
    );
}

#[test]
fn an_edit_without_a_replacement_to_speak_of_is_none() {
    for replacement in [json!(5), json!({}), json!([]), json!("x")] {
        check(&[user("a"), edit("e0", replacement)], &["a"]);
    }
    check(
        &[user("a"), json!({"type": "context_edit", "targetId": "e0"})],
        &["a"],
    );
    check(
        &[
            user("a"),
            json!({"type": "context_edit", "targetId": 7, "replacement": null}),
        ],
        &["a"],
    );
    let broken = json!({"type": "message", "message": 5});
    check(&[broken, edit("e0", json!({"content": "x"}))], &[]);
}

#[test]
fn thinking_level_and_model_come_from_the_whole_path() {
    let level = |level: &str| json!({"type": "thinking_level_change", "thinkingLevel": level});
    let model = |model: &str| json!({"type": "model_change", "provider": "q", "modelId": model});
    let chain = Chain::new(&[
        level("low"),
        level("high"),
        model("m1"),
        model("m2"),
        user("a"),
        compaction("c", "e4"),
        user("b"),
    ]);
    let context = chain.context(Format::Agent);
    assert_eq!(context.thinking_level, "high");
    assert_eq!(context.model, Some(("q".into(), "m2".into())));
    assert_eq!(chain.read(), [1, 3, 4, 5, 6]);
}

#[track_caller]
fn check_model(entries: &[Value], expect: Option<&str>) -> Vec<usize> {
    let chain = Chain::new(entries);
    let model = chain.context(Format::Llm).model.map(|(_, model)| model);
    assert_eq!(model.as_deref(), expect);
    chain.read()
}

#[test]
fn the_model_is_the_last_used_or_set() {
    let set = |model: &str| json!({"type": "model_change", "provider": "q", "modelId": model});
    let nameless = || json!({"type": "message", "message": {"role": "assistant", "content": []}});
    check_model(&[user("u")], None);
    check_model(&[set("m"), assistant("a")], Some("a"));
    check_model(&[assistant("a"), set("m")], Some("m"));
    // What names none is passed over.
    check_model(&[set("m"), nameless(), nameless()], Some("m"));
    check_model(&[assistant("a"), nameless()], Some("a"));
    check_model(
        &[set("m"), json!({"type": "model_change", "modelId": "x"})],
        Some("m"),
    );
    // An answer that an edit takes out of the context was still given.
    check_model(
        &[assistant("a"), assistant("b"), edit("e1", json!(null))],
        Some("b"),
    );
    let read = check_model(
        &[
            set("m"),
            nameless(),
            nameless(),
            user("u"),
            compaction("c", "e3"),
        ],
        Some("m"),
    );
    assert_eq!(
        read,
        [0, 2, 3, 4],
        "of the answers before the context only the nearest is read"
    );
}

#[test]
fn what_fails_is_the_bodys_failure() {
    let chain = Chain::new(&[user("a")]);
    let mut body = |_| Err(Error::cancelled());
    let failed = build(&chain.steps(), chain.kept(), Format::Agent, &mut body).unwrap_err();
    assert_eq!(failed.kind, crate::error::Kind::Cancelled);
}

#[test]
fn summaries_become_user_messages() {
    let text = |text: &str| json!([{"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 7000}]);
    check_llm(
        compaction("c\n", "e0"),
        text(
            "The conversation history before this point was compacted into the following summary:\n\n<summary>\nc\n\n</summary>",
        ),
    );
    check_llm(
        json!({"type": "branch_summary", "fromId": "f", "summary": "b"}),
        text(
            "The following is a summary of a branch that this conversation came back from:\n\n<summary>\nb</summary>",
        ),
    );
    check_llm(
        json!({"type": "custom_message", "customType": "t", "content": "c", "display": true}),
        text("c"),
    );
    check_llm(
        json!({"type": "custom_message", "customType": "t", "content": [{"type": "image"}]}),
        json!([{"role": "user", "content": [{"type": "image"}], "timestamp": 7000}]),
    );
}

#[test]
fn commands_become_user_messages() {
    let ran = |message: Value, expect: &str| {
        let mut message = message;
        message["role"] = json!("bashExecution");
        message["command"] = json!("ls");
        message["timestamp"] = json!(3);
        check_llm(
            json!({"type": "message", "message": message}),
            json!([{"role": "user", "content": [{"type": "text", "text": expect}], "timestamp": 3}]),
        );
    };
    ran(
        json!({"output": "a\nb", "exitCode": 0}),
        "Ran `ls`\n```\na\nb\n```",
    );
    ran(json!({"output": ""}), "Ran `ls`\n(no output)");
    ran(json!({"exitCode": null}), "Ran `ls`\n(no output)");
    ran(
        json!({"output": "o", "exitCode": 2}),
        "Ran `ls`\n```\no\n```\n\nCommand exited with code 2",
    );
    ran(
        json!({"output": "o", "exitCode": -1.0}),
        "Ran `ls`\n```\no\n```\n\nCommand exited with code -1",
    );
    ran(
        json!({"output": "o", "exitCode": 2, "cancelled": true}),
        "Ran `ls`\n```\no\n```\n\n(command cancelled)",
    );
    ran(
        json!({"output": "o", "truncated": true, "fullOutputPath": "/p"}),
        "Ran `ls`\n```\no\n```\n\n[Output truncated. Full output: /p]",
    );
    ran(
        json!({"output": "o", "truncated": true}),
        "Ran `ls`\n```\no\n```",
    );
    ran(
        json!({"output": "o", "truncated": false, "fullOutputPath": "/p"}),
        "Ran `ls`\n```\no\n```",
    );
}

#[test]
fn the_model_does_not_see_unknown_roles_and_excluded_commands() {
    let excluded =
        json!({"role": "bashExecution", "command": "x", "output": "", "excludeFromContext": true});
    for message in [
        excluded,
        json!({"role": "strange", "content": "x"}),
        json!({"content": "x"}),
    ] {
        let entry = json!({"type": "message", "message": message});
        check_llm(entry.clone(), json!([]));
        assert_eq!(
            Chain::new(&[entry]).context(Format::Agent).messages.len(),
            1
        );
    }
}

#[test]
fn lone_surrogates_reach_the_model_as_they_stand() {
    let entry = br#"{"type":"branch_summary","id":"a","summary":"x\ud800\n"}"#;
    let chain = Chain::raw(vec![entry.to_vec()]);
    let [message] = &chain.context(Format::Llm).messages[..] else {
        panic!("one message");
    };
    let text = String::from_utf8_lossy(message);
    assert!(
        text.contains(r#"<summary>\nx\ud800\n</summary>""#),
        "{text}"
    );
}

#[test]
fn deep_content_is_no_recursion() {
    for (open, close) in [("[", "]"), ("{\"content\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        for role in ["user", "assistant", "bashExecution", "strange"] {
            let message = format!(r#"{{"role":"{role}","content":{deep}}}"#);
            let edit = format!(
                r#"{{"type":"context_edit","id":"b","targetId":"a","replacement":{{"content":{deep}}}}}"#
            );
            let chain = Chain::raw(vec![
                format!(r#"{{"type":"message","id":"a","message":{message}}}"#).into_bytes(),
                edit.into_bytes(),
            ]);
            let messages = chain.context(Format::Agent).messages;
            assert_eq!(messages, [message.as_bytes()]);
        }
    }
}

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
            let chain = Chain::raw(bodies);
            for format in [Format::Agent, Format::Llm] {
                for message in chain.context(format).messages {
                    assert_eq!(json::value_span(&message), Ok(0..message.len()));
                }
            }
        }
    }
}

fn any_entry() -> impl Strategy<Value = Value> {
    // No text is "s", by which the plain loop knows the system message.
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

/// The rules as a plain loop over everything: contents of the messages, and the model.
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
        let chain = Chain::new(&entries);
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
