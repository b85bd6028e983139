use super::super::tests::{MappedMember, imported};
use super::*;
use crate::member::Record;
use serde_json::{Value, json};

mod random;

/// The lines of a session in a database.
#[derive(Default)]
struct Rows(Vec<u8>);

impl Rows {
    fn new(session: Value) -> Self {
        let mut row = json!({"id": "s", "directory": "/w", "title": "Title", "time_created": 1, "time_updated": 99});
        for (name, value) in session.as_object().unwrap() {
            row[name] = value.clone();
        }
        Self::default().row("session", row)
    }

    fn row(mut self, table: &str, row: Value) -> Self {
        self.0
            .extend(format!("{}\n", json!({"table": table, "rowid": 1, "row": row})).bytes());
        self
    }

    fn message(self, id: &str, created: u64, data: Value) -> Self {
        let row =
            json!({"id": id, "session_id": "s", "time_created": created, "data": data.to_string()});
        self.row("message", row)
    }

    fn user(self, id: &str, created: u64, text: &str) -> Self {
        let data = json!({"role": "user", "time": {"created": created}});
        self.message(id, created, data).part(
            &format!("{id}p"),
            id,
            json!({"type": "text", "text": text}),
        )
    }

    /// A completed answer with the part that ends it.
    fn answer(self, id: &str, created: u64, more: Value) -> Self {
        let mut data = json!({"role": "assistant", "time": {"created": created, "completed": created + 1}, "finish": "stop"});
        for (name, value) in more.as_object().unwrap() {
            data[name] = value.clone();
        }
        let reason = data["finish"].clone();
        self.message(id, created, data).part(
            &format!("{id}~"),
            id,
            json!({"type": "step-finish", "reason": reason}),
        )
    }

    fn part(self, id: &str, message: &str, data: Value) -> Self {
        let row =
            json!({"id": id, "message_id": message, "session_id": "s", "data": data.to_string()});
        self.row("part", row)
    }

    fn event(self, seq: u64, kind: &str, data: Value) -> Self {
        let row = json!({"id": "e", "aggregate_id": "s", "seq": seq, "type": kind, "data": data.to_string()});
        self.row("event", row)
    }

    fn updated(self, seq: u64, id: &str, created: u64, text: &str) -> Self {
        let info =
            json!({"id": id, "sessionID": "s", "role": "user", "time": {"created": created}});
        let part = json!({"id": format!("{id}p"), "sessionID": "s", "messageID": id, "type": "text", "text": text});
        let rows = self.event(
            seq,
            "message.updated.1",
            json!({"sessionID": "s", "info": info}),
        );
        rows.event(
            seq + 1,
            "message.part.updated.1",
            json!({"sessionID": "s", "part": part}),
        )
    }

    fn removed(self, seq: u64, id: &str) -> Self {
        self.event(
            seq,
            "message.removed.1",
            json!({"sessionID": "s", "messageID": id}),
        )
    }

    fn read(&self) -> MappedMember {
        let mut members = imported(&Opencode, "", &self.0);
        assert_eq!(members.len(), 1);
        members.remove(0)
    }

    fn drawn(&self) -> String {
        self.read().drawn()
    }
}

fn drawn(lines: &[&str]) -> String {
    lines.join("\n")
}

#[test]
fn a_message_that_was_deleted_alone_is_a_branch_and_the_later_ones_go_on_without_it() {
    let rows = Rows::new(json!({}))
        .user("a", 1, "A")
        .user("c", 3, "C")
        .answer("d", 4, json!({}));
    let rows = rows
        .updated(1, "a", 1, "A")
        .updated(3, "b", 2, "B")
        .updated(5, "c", 3, "C")
        .removed(7, "b");
    let session = rows.read();
    assert_eq!(
        session.drawn(),
        drawn(&["0 - user A", "1 0 user B", "2 0 user C", "3 2 assistant*"])
    );
    // There is no event for the answer.
    assert_eq!(session.member.disagreements, 1);
}

#[test]
fn reverts_one_after_another_leave_a_branch_each() {
    let rows = Rows::new(json!({}))
        .user("a", 1, "A")
        .user("e", 9, "E")
        .answer("f", 10, json!({}));
    let rows = rows
        .updated(1, "a", 1, "A")
        .updated(3, "b", 2, "B")
        .updated(5, "c", 3, "C")
        .removed(7, "b")
        .removed(8, "c")
        .updated(9, "d", 5, "D")
        .removed(11, "d")
        .updated(12, "e", 9, "E");
    let expected = [
        "0 - user A",
        "1 0 user B",
        "2 1 user C",
        "3 0 user D",
        "4 0 user E",
        "5 4 assistant*",
    ];
    assert_eq!(rows.drawn(), drawn(&expected));
}

/// A revert to the position before the first message empties the list. The conversation begins a second time.
#[test]
fn a_conversation_that_was_reverted_as_a_whole_has_two_roots() {
    let rows = Rows::new(json!({}))
        .user("c", 3, "C")
        .answer("d", 4, json!({}));
    let rows = rows
        .updated(1, "a", 1, "A")
        .updated(3, "b", 2, "B")
        .removed(5, "a")
        .removed(6, "b")
        .updated(7, "c", 3, "C");
    let expected = ["0 - user A", "1 0 user B", "2 - user C", "3 2 assistant*"];
    assert_eq!(rows.drawn(), drawn(&expected));
}

#[test]
fn events_count_in_the_order_of_their_numbers() {
    let rows = Rows::new(json!({}))
        .user("a", 1, "A")
        .answer("z", 9, json!({}));
    let rows = rows
        .removed(5, "b")
        .updated(3, "b", 2, "B")
        .updated(1, "a", 1, "A");
    assert_eq!(
        rows.drawn(),
        drawn(&["0 - user A", "1 0 user B", "2 0 assistant*"])
    );
}

#[test]
fn the_tables_count_where_the_events_end_with_something_else() {
    let rows = Rows::new(json!({}))
        .user("a", 1, "as stored")
        .answer("z", 9, json!({}));
    let session = rows
        .updated(1, "a", 1, "as told")
        .updated(3, "b", 2, "B")
        .read();
    assert_eq!(
        session.drawn(),
        drawn(&["0 - user as stored", "1 0 user B", "2 0 assistant*"])
    );
    assert_eq!(session.member.disagreements, 3);
}

#[test]
fn a_pending_revert_moves_the_leaf_and_nothing_else() {
    for (revert, leaf) in [
        (r#"{"messageID":"c"}"#, Some(1)),
        (r#"{"messageID":"a"}"#, None),
        (r#"{"messageID":"?"}"#, Some(2)),
    ] {
        let session = Rows::new(json!({ "revert": revert }))
            .user("a", 1, "A")
            .answer("b", 2, json!({}))
            .user("c", 3, "C")
            .read();
        assert_eq!(session.member.leaf, leaf, "{revert}");
        assert!(session.member.nodes.iter().all(|node| !node.is_open));
    }
}

#[test]
fn an_answer_has_its_calls_and_each_result_follows() {
    let tool = |call: &str, state: Value| json!({"type": "tool", "tool": "bash", "callID": call, "state": state});
    let image = json!({"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"});
    let rows = Rows::new(json!({}))
        .user("a", 1, "A")
        .answer("b", 2, json!({"finish": "tool-calls", "modelID": "m", "providerID": "p", "cost": 0.25, "tokens": {
            "input": 10, "output": 5, "reasoning": 3, "total": 20, "cache": {"read": 2, "write": 0}}}))
        .part("b1", "b", json!({"type": "reasoning", "text": "Hm", "metadata": {"anthropic": {"signature": "sig"}}}))
        .part("b2", "b", json!({"type": "text", "text": ""}))
        .part("b3", "b", tool("1", json!({"status": "completed", "input": {"command": "ls"}, "output": "x", "attachments": [image], "metadata": {"diff": "+a"}, "time": {"end": 7}})))
        .part("b4", "b", tool("2", json!({"status": "error", "input": "ls", "error": "failed"})))
        .part("b5", "b", tool("3", json!({"status": "running", "input": null})))
        .part("b6", "b", json!({"type": "patch", "hash": "x"}))
        .answer("c", 9, json!({"error": {"name": "MessageAbortedError", "data": {"message": "Stopped"}}}));
    let session = rows.read();
    let expected = [
        "0 - user A",
        r#"1 0 assistant (Hm) bash{"command":"ls"} bash{"_raw":"ls"} bash{}"#,
        "2 1 toolresult x [image/png]",
        "3 2 toolresult failed !",
        "4 3 assistant !Stopped*",
    ];
    assert_eq!(session.drawn(), drawn(&expected));
    let answer = &session.bodies[1]["message"];
    assert_eq!(answer["content"][0]["thinkingSignature"], "sig");
    let usage = json!({"input": 10, "output": 8, "cacheRead": 2, "cacheWrite": 0, "totalTokens": 20, "cost": {"total": 0.25}});
    assert_eq!(answer["usage"], usage);
    assert_eq!(
        (&answer["model"], &answer["provider"], &answer["stopReason"]),
        (&json!("m"), &json!("p"), &json!("toolUse"))
    );
    let result = &session.bodies[2]["message"];
    assert_eq!(
        *result,
        json!({"role": "toolResult", "toolCallId": "1", "toolName": "bash", "content": result["content"], "details": {"diff": "+a"}, "isError": false, "timestamp": 7})
    );
    assert_eq!(session.bodies[4]["message"]["stopReason"], "aborted");
    assert_eq!(
        session.member.origin_only,
        [
            ("part patch".to_owned(), 1),
            ("part step-finish".to_owned(), 2),
            ("part text".to_owned(), 1),
            ("session".to_owned(), 1)
        ]
        .into()
    );
}

/// In older versions one message had all steps of an answer: after a result come further calls and texts.
#[test]
fn each_step_of_an_answer_is_an_entry_with_its_own_results_and_the_usage_counts_once() {
    let tool = json!({"type": "tool", "tool": "ls", "callID": "1", "state": {"status": "success", "input": {}, "output": "x"}});
    let rows = Rows::new(json!({}))
        .answer("b", 2, json!({"tokens": {"input": 1, "output": 1}}))
        .part("b1", "b", json!({"type": "step-start"}))
        .part("b2", "b", tool)
        .part("b3", "b", json!({"type": "step-start"}))
        .part("b4", "b", json!({"type": "text", "text": "Done"}));
    let session = rows.read();
    assert_eq!(
        session.drawn(),
        drawn(&[
            "0 - assistant ls{}",
            "1 0 toolresult x",
            "2 1 assistant Done*"
        ])
    );
    let messages: Vec<_> = session.bodies.iter().map(|body| &body["message"]).collect();
    assert_eq!(
        (&messages[0]["stopReason"], &messages[2]["stopReason"]),
        (&json!("toolUse"), &json!("stop"))
    );
    assert!(messages[0]["usage"].is_object() && messages[2]["usage"].is_null());
    assert_eq!(&*session.member.nodes[2].key, "b/1");
}

#[test]
fn added_text_is_scaffolding_after_the_typed_text() {
    let rows = Rows::new(json!({}))
        .user("a", 1, "Read @x")
        .part(
            "ap1",
            "a",
            json!({"type": "text", "text": "Called the Read tool", "synthetic": true}),
        )
        .part(
            "ap2",
            "a",
            json!({"type": "text", "text": "not for the model", "ignored": true}),
        )
        .message("b", 2, json!({"role": "user"}))
        .part(
            "b1",
            "b",
            json!({"type": "text", "text": "Continue", "synthetic": true}),
        )
        .answer("c", 3, json!({}));
    let expected = [
        "0 - user Read @x",
        "1 0 scaffolding Called the Read tool",
        "2 1 scaffolding Continue",
        "3 2 assistant*",
    ];
    assert_eq!(rows.drawn(), drawn(&expected));
}

#[test]
fn a_compaction_keeps_the_messages_that_it_names() {
    let request = |tail: Value| json!({"type": "compaction", "auto": true, "tail_start_id": tail});
    let session = |tail: &str| {
        let rows = Rows::new(json!({}))
            .user("a", 1, "A")
            .user("b", 2, "B")
            .message("c", 3, json!({"role": "user"}));
        let rows = rows.part("c1", "c", request(json!(tail)));
        let rows = rows.answer(
            "d",
            4,
            json!({"summary": true, "tokens": {"input": 7, "output": 2, "cache": {"read": 3}}}),
        );
        rows.part("d1", "d", json!({"type": "text", "text": "So"}))
            .part("d2", "d", json!({"type": "text", "text": "far"}))
            .read()
    };
    let kept = session("b");
    assert_eq!(
        kept.drawn(),
        drawn(&["0 - user A", "1 0 user B", "2 1 compaction from 1 So\nfar*"])
    );
    assert_eq!(kept.bodies[2]["tokensBefore"], 10);
    assert_eq!(kept.member.nodes[2].places.len(), 5);
    for tail in ["c", "d", "?"] {
        assert!(
            session(tail).drawn().ends_with("compaction So\nfar*"),
            "{tail}"
        );
    }
}

#[test]
fn the_last_message_is_open_until_it_is_completed_or_another_follows() {
    let open = |rows: Rows| -> Vec<bool> {
        rows.read()
            .member
            .nodes
            .iter()
            .map(|node| node.is_open)
            .collect()
    };
    let begun = || {
        Rows::new(json!({})).user("a", 1, "A").message(
            "b",
            2,
            json!({"role": "assistant", "time": {"created": 2}}),
        )
    };
    assert_eq!(open(begun()), [false, true]);
    assert_eq!(open(begun().user("c", 3, "C")), [false, false, true]);
    assert_eq!(
        open(Rows::new(json!({})).answer("b", 2, json!({}))),
        [false]
    );
    // A fork is copied message by message, each before its parts.
    let copied = || {
        Rows::new(json!({})).message(
            "b",
            2,
            json!({"role": "assistant", "finish": "stop", "time": {"completed": 3}}),
        )
    };
    let finish = |reason: &str| json!({"type": "step-finish", "reason": reason});
    assert_eq!(open(copied()), [true]);
    assert_eq!(open(copied().part("b1", "b", finish("tool-calls"))), [true]);
    assert_eq!(open(copied().part("b1", "b", finish("stop"))), [false]);
    assert!(!begun().read().member.has_end_mark);
    assert!(copied().read().member.has_end_mark);
}

#[test]
fn a_task_names_the_session_of_its_subagent() {
    let state = json!({"status": "completed", "input": {}, "output": "x", "metadata": {"sessionId": "child"}});
    let rows = Rows::new(json!({"parent_id": "up"}))
        .answer("b", 2, json!({}))
        .part(
            "b1",
            "b",
            json!({"type": "tool", "tool": "task", "callID": "1", "state": state}),
        );
    let session = rows.read();
    assert_eq!(
        session.drawn(),
        drawn(&[
            "0 - assistant task{}",
            "1 0 subagent child",
            "2 1 toolresult x*"
        ])
    );
    assert_eq!(session.member.nodes[1].note.as_deref(), Some("1"));
    assert_eq!(session.member.spawned_by.as_ref().unwrap().native_id, "up");
}

#[test]
fn lone_surrogates_in_texts_and_arguments_are_kept() {
    let text = r#"{\"type\":\"text\",\"text\":\"\\ud83d A \\u0000\"}"#;
    let row = format!(
        "{{\"table\":\"part\",\"rowid\":1,\"row\":{{\"id\":\"ap\",\"message_id\":\"a\",\"data\":\"{text}\"}}}}\n"
    );
    let mut rows = Rows::new(json!({})).message("a", 1, json!({"role": "user"}));
    rows.0.extend(row.bytes());
    let mut reader = Opencode.reader("");
    let lines: Vec<&[u8]> = rows
        .0
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    for line in &lines {
        reader.record(Record {
            at: line.as_ptr() as u64,
            number: 0,
            bytes: line,
        });
    }
    let member = reader.finish().remove(0);
    let body = Opencode.body(&member, &member.nodes[0], &lines[1..]);
    let members = String::from_utf8(body.members).unwrap();
    assert!(members.contains(r#""text":"\ud83d A \u0000""#), "{members}");
}
