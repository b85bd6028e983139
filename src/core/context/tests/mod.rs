use super::*;
use crate::entry::{Line, Parent};
use crate::tree::{FilePlace, Flags, Tree};
use serde_json::{Value, json};
use std::cell::RefCell;

mod calls;
mod convert;
mod edits;
mod shapes;

/// A chain of entries. Each entry gets `id`, `parentId` and `timestamp`, unless it has its own id.
struct ChainFixture {
    tree: Tree,
    bodies: Vec<Vec<u8>>,
    reads: RefCell<Vec<usize>>,
}

impl ChainFixture {
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

    fn steps(&self) -> Vec<PathStep> {
        (0..self.bodies.len())
            .map(|at| {
                let node = self.tree.node(at).unwrap();
                PathStep {
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

    /// The entries that were read, each listed once.
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

/// The contents of the messages, in short: a string as it is, blocks by their text, summaries in angle brackets.
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

/// The entries of the messages.
fn ids(context: &Context) -> Vec<&str> {
    let ids = context.entry_ids.iter();
    ids.map(|id| id.as_deref().expect("an entry")).collect()
}

#[track_caller]
fn check(entries: &[Value], expect: &[&str]) -> ChainFixture {
    let chain = ChainFixture::new(entries);
    assert_eq!(said(&chain.context(Format::Agent)), expect);
    chain
}

#[track_caller]
fn check_llm(entry: Value, expect: Value) {
    let chain = ChainFixture::new(&[entry]);
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
    let context = ChainFixture::new(&[]).context(Format::Agent);
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
    assert_eq!(ids(&chain.context(Format::Agent)), ["e0", "e6", "e7", "e8"]);
}

#[test]
fn stored_messages_keep_their_bytes() {
    let message = r#"{ "x":9007199254740993, "role" : "user","content":"a\ud800\/é", "x":1.0,"role":"user" }"#;
    let entry = format!(
        r#"{{"type":"message","id":"e","parentId":null,"timestamp":"","message":{message} }}"#
    );
    for format in [Format::Agent, Format::Llm] {
        let chain = ChainFixture::raw(vec![entry.clone().into_bytes()]);
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
    assert_eq!(ids(&chain.context(Format::Agent)), ["e5", "e3", "e6"]);
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
    assert_eq!(ids(&chain.context(Format::Llm)), ["e1", "e1", "e0"]);
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
    let chain = ChainFixture::new(&[
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
fn an_empty_branch_summary_is_not_a_message_and_a_timestamp_that_is_none_is_zero() {
    let entry = json!({"type": "branch_summary", "fromId": "f", "summary": ""});
    check(&[entry], &[]);
    let entry = json!({"type": "branch_summary", "summary": "b", "timestamp": "yesterday"});
    let chain = ChainFixture::new(&[entry]);
    let messages = chain.context(Format::Agent).messages;
    let expect = r#"{"role":"branchSummary","summary":"b","timestamp":0}"#;
    assert_eq!(messages, [expect.as_bytes()]);
}

#[test]
fn null_content_becomes_empty() {
    for (role, empty) in [
        ("user", json!([])),
        ("assistant", json!([])),
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
fn thinking_level_and_model_come_from_the_whole_path() {
    let level = |level: &str| json!({"type": "thinking_level_change", "thinkingLevel": level});
    let model = |model: &str| json!({"type": "model_change", "provider": "q", "modelId": model});
    let chain = ChainFixture::new(&[
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
    let chain = ChainFixture::new(entries);
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
    // Entries that name no model are skipped.
    check_model(&[set("m"), nameless(), nameless()], Some("m"));
    check_model(&[assistant("a"), nameless()], Some("a"));
    check_model(
        &[set("m"), json!({"type": "model_change", "modelId": "x"})],
        Some("m"),
    );
    // An answer that an edit removes from the context still counts.
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
fn a_failure_to_read_a_body_is_returned() {
    let chain = ChainFixture::new(&[user("a")]);
    let mut body = |_| Err(Error::cancelled());
    let failed = build(&chain.steps(), chain.kept(), Format::Agent, &mut body).unwrap_err();
    assert_eq!(failed.kind, crate::error::Kind::Cancelled);
}
