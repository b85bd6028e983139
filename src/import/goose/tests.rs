use super::super::member::Base;
use super::super::tests::{MappedMember, imported};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Lines of a session in a database.
struct Rows(Vec<u8>);

impl Rows {
    fn new(session: Value) -> Self {
        let mut row = json!({"id": "s", "name": "", "description": "About", "working_dir": "/w", "created_at": "2026-11-22 02:53:19"});
        for (name, value) in session.as_object().unwrap() {
            row[name] = value.clone();
        }
        Self(Vec::new()).row("sessions", row)
    }

    fn row(mut self, table: &str, row: Value) -> Self {
        self.0
            .extend(format!("{}\n", json!({"table": table, "rowid": 1, "row": row})).bytes());
        self
    }

    fn message(self, id: Value, role: &str, content: Value, metadata: Value) -> Self {
        let row = json!({"message_id": id, "session_id": "s", "role": role, "created_timestamp": 1_795_316_000,
            "content_json": content.to_string(), "metadata_json": metadata.to_string()});
        self.row("messages", row)
    }

    fn text(
        self,
        id: &str,
        role: &str,
        text: &str,
        is_user_visible: bool,
        is_agent_visible: bool,
    ) -> Self {
        let metadata = json!({"userVisible": is_user_visible, "agentVisible": is_agent_visible});
        self.message(
            json!(id),
            role,
            json!([{"type": "text", "text": text}]),
            metadata,
        )
    }

    fn read(&self) -> MappedMember {
        let mut members = imported(&Goose, "", &self.0);
        assert_eq!(members.len(), 1);
        members.remove(0)
    }
}

fn drawn(lines: &[&str]) -> String {
    lines.join("\n")
}

#[test]
fn two_compactions_are_found_by_the_messages_that_they_hid() {
    let rows = Rows::new(json!({}))
        .text("a", "user", "A", true, false)
        .text("b", "assistant", "B", true, false)
        .text("s1", "user", "Summary 1", false, false)
        .text(
            "c1",
            "assistant",
            "The previous message is a summary",
            false,
            false,
        )
        .text("d", "user", "D", true, false)
        .text("s2", "user", "Summary 2", false, true)
        .text(
            "c2",
            "assistant",
            "The previous message is a summary",
            false,
            true,
        )
        .text("e", "user", "E", true, true)
        .text("f", "user", "/compact", true, false)
        .text("g", "assistant", "Nothing to compact", true, false);
    let expected = [
        "0 - user A",
        "1 0 assistant B",
        "2 1 compaction Summary 1",
        "3 2 scaffolding The previous message is a summary",
        "4 3 user D",
        "5 4 compaction Summary 2",
        "6 5 scaffolding The previous message is a summary",
        "7 6 user E",
        "8 7 custom",
        "9 8 custom*",
    ];
    assert_eq!(rows.read().drawn(), drawn(&expected));
}

#[test]
fn hidden_messages_without_a_compaction_are_scaffolding() {
    let rows = Rows::new(json!({}))
        .text("h", "user", "Hints", false, true)
        .text("a", "user", "A", true, true)
        .text("i", "user", "More hints", false, true)
        .text("b", "assistant", "B", true, true);
    let expected = [
        "0 - scaffolding Hints",
        "1 0 user A",
        "2 1 scaffolding More hints",
        "3 2 assistant B…*",
    ];
    assert_eq!(rows.read().drawn(), drawn(&expected));
}

#[test]
fn calls_and_results_of_all_forms_are_read() {
    let call = |id: &str, call: Value| json!({"type": "toolRequest", "id": id, "toolCall": call});
    let result =
        |id: &str, result: Value| json!({"type": "toolResponse", "id": id, "toolResult": result});
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let rows = Rows::new(json!({"provider_name": "p", "model_config_json": r#"{"model_name":"m"}"#}))
        .message(json!("a"), "assistant", json!([
            {"type": "thinking", "thinking": "Hm", "signature": "sig"},
            {"type": "redactedThinking", "data": "x"},
            call("1", json!({"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}})),
        ]), json!({}))
        .message(json!("a"), "assistant", json!([
            call("2", json!({"status": "error", "error": "unreadable call"})),
            call("3", json!({"status": "success", "value": {"name": "old", "arguments": ["x"]}})),
        ]), json!({"usage": {"inputTokens": 3, "outputTokens": 4}}))
        .message(json!("b"), "user", json!([
            result("1", json!({"status": "success", "value": {"content": [{"type": "text", "text": "x"}, image], "isError": false}})),
            result("2", json!({"status": "error", "error": "failed"})),
            result("3", json!({"status": "success", "value": [{"type": "text", "text": "older"}]})),
            {"type": "text", "text": "and more"},
        ]), json!({}));
    let session = rows.read();
    let expected = [
        r#"0 - assistant (Hm) shell{"command":"ls"} unknown{"_raw":"unreadable call"} old{"_raw":"[\"x\"]"}"#,
        "1 0 toolresult x [image/png]",
        "2 1 toolresult failed !",
        "3 2 toolresult older",
        "4 3 user and more*",
    ];
    assert_eq!(session.drawn(), drawn(&expected));
    let answer = &session.bodies[0]["message"];
    assert_eq!(
        (&answer["provider"], &answer["model"]),
        (&json!("p"), &json!("m"))
    );
    assert_eq!(answer["usage"]["totalTokens"], 7);
    assert_eq!(session.bodies[1]["message"]["toolName"], "shell");
    assert_eq!(&*session.member.nodes[4].key, "b");
    assert_eq!(session.member.title.as_deref(), Some("About"));
}

/// Rows that are older than the column `message_id` are named by their content, so copies have equal names.
#[test]
fn messages_without_an_id_have_names_that_follow_from_their_content() {
    let rows = || {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let rows = Rows::new(json!({})).message(Value::Null, "user", text("yes"), json!({}));
        let rows = rows.message(Value::Null, "user", text("yes"), json!({}));
        rows.message(Value::Null, "assistant", text("yes"), json!({}))
            .read()
    };
    let keys: Vec<_> = rows()
        .member
        .nodes
        .iter()
        .map(|node| node.key.to_string())
        .collect();
    assert_eq!(keys[1], format!("{}.2", keys[0]));
    assert_ne!(keys[2], keys[0]);
    assert_eq!(
        keys,
        rows()
            .member
            .nodes
            .iter()
            .map(|node| node.key.to_string())
            .collect::<Vec<_>>()
    );
}

#[test]
fn an_edited_message_keeps_its_id_and_has_another_fingerprint() {
    let fingerprint = |text: &str| {
        Rows::new(json!({}))
            .text("a", "user", text, true, true)
            .read()
            .member
            .nodes[0]
            .fingerprint
    };
    assert_eq!(fingerprint("A"), fingerprint("A"));
    assert_ne!(fingerprint("A"), fingerprint("B"));
}

#[test]
fn a_parent_session_is_a_caller_or_a_source_of_copies() {
    let member = |kind: &str| {
        Rows::new(json!({"session_type": kind, "parent_session_id": "up"}))
            .read()
            .member
    };
    assert_eq!(member("sub_agent").spawned_by.unwrap().native_id, "up");
    assert_eq!(
        member("user").base,
        Base::CopyOf {
            native_id: "up".into()
        }
    );
}

#[test]
fn a_file_with_a_line_about_the_session_is_read() {
    let lines = concat!(
        r#"{"working_dir":"/w","description":"Old","message_count":2}"#,
        "\n",
        r#"{"role":"user","created":1750000000,"content":[{"type":"text","text":"A"}]}"#,
        "\n",
        r#"{"id":"x","role":"assistant","created":1750000001,"content":[{"type":"text","text":"B"}],"metadata":{"userVisible":true}}"#,
        "\n",
    );
    let session = imported(&Goose, "/home/sessions/20250615_1.jsonl", lines.as_bytes()).remove(0);
    assert_eq!(session.drawn(), drawn(&["0 - user A", "1 0 assistant B…*"]));
    let member = &session.member;
    assert_eq!(
        (
            &*member.native_id,
            member.cwd.as_deref(),
            member.title.as_deref()
        ),
        ("20250615_1", Some("/w"), Some("Old"))
    );
    assert_eq!(member.nodes[0].time, Some(1_750_000_000_000));
}

fn any_line() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        (-3_i64..9).prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "success",
            "error",
            "text",
            "toolRequest",
            "toolResponse",
            "thinking",
            "image",
            "[]",
            "{}"
        ])
        .prop_map(Value::from),
    ];
    let names = || {
        prop::sample::select(vec![
            "type",
            "id",
            "text",
            "toolCall",
            "toolResult",
            "status",
            "value",
            "error",
            "name",
            "arguments",
            "content",
            "isError",
            "data",
            "mimeType",
            "thinking",
            "userVisible",
            "agentVisible",
            "turnContext",
            "usage",
            "inference",
            "inputTokens",
            "outputTokens",
        ])
    };
    let value = leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((names(), inner), 0..8).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    });
    let tables = prop::sample::select(vec![
        "messages",
        "messages",
        "messages",
        "sessions",
        "usage_ledger",
        "",
    ]);
    let id = prop::sample::select(vec![json!("a"), json!("b"), json!(1), Value::Null]);
    let role = prop::sample::select(vec!["user", "assistant", "x"]);
    (tables, id, role, value.clone(), value, any::<bool>()).prop_map(|(table, id, role, content, metadata, is_text)| {
        let stored = |value: &Value| if is_text { Value::from(value.to_string()) } else { value.clone() };
        let row = json!({"id": id, "message_id": id, "role": role, "created_timestamp": 5, "content_json": stored(&content),
            "metadata_json": stored(&metadata), "content": content, "metadata": metadata, "name": metadata});
        match table {
            "" => row.to_string(),
            table => json!({"table": table, "rowid": 1, "row": row}).to_string(),
        }
    })
}

proptest! {
    #[test]
    fn any_rows_become_valid_entries(rows in prop::collection::vec(any_line(), 0..30)) {
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        imported(&Goose, "x", lines.as_bytes());
    }
}
