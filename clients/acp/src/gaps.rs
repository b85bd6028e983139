//! Tests that a message that cannot be recorded leaves an entry `acp.gap`, and changes nothing else. This holds for
//! every kind of message, at every position.

use crate::conversation::{Change, ChangeKind, Conversation, Side};
use crate::journal::{Journal, MAX_MESSAGE};
use crate::turn::Item;
use serde_json::{Value, json};

/// The messages of a conversation. The boolean says whether a gap is recorded if the message is lost.
fn script() -> Vec<(Side, Value, bool)> {
    use Side::{Agent, Editor};
    let ask = |id: u64, method: &str, params: Value| json!({"id": id, "method": method, "params": params});
    let answer = |id: u64, result: Value| json!({"id": id, "result": result});
    let prompt = |id: u64, session: &str| {
        let blocks = json!([{"type": "text", "text": "one"}]);
        ask(
            id,
            "session/prompt",
            json!({"sessionId": session, "prompt": blocks}),
        )
    };
    let chunk = |session: &str, kind: &str| {
        let content = json!({"type": "text", "text": "one"});
        let update = json!({"sessionUpdate": kind, "content": content});
        json!({"method": "session/update", "params": {"sessionId": session, "update": update}})
    };
    let of = |session: &str| json!({"sessionId": session, "cwd": "/w"});
    let ended = json!({"stopReason": "end_turn"});
    let call = json!({"sessionId": "s1", "toolCall": {"toolCallId": "c1"}, "options": []});
    vec![
        (Editor, ask(1, "session/new", json!({"cwd": "/w"})), false),
        (Agent, answer(1, of("s1")), false),
        (Editor, prompt(2, "s1"), true),
        (Agent, chunk("s1", "agent_message_chunk"), true),
        (Agent, ask(2, "session/request_permission", call), true),
        (
            Editor,
            answer(2, json!({"outcome": {"outcome": "selected"}})),
            true,
        ),
        (
            Agent,
            ask(3, "fs/read_text_file", json!({"sessionId": "s1"})),
            false,
        ),
        (Editor, answer(3, json!({"content": "a file"})), false),
        (Agent, answer(2, ended.clone()), true),
        (Editor, ask(4, "session/fork", of("s1")), false),
        (Agent, chunk("s2", "user_message_chunk"), true),
        (Agent, answer(4, of("s2")), false),
        (Editor, prompt(5, "s2"), true),
        (Agent, chunk("s2", "agent_thought_chunk"), true),
        (Agent, answer(5, ended), true),
        (Editor, ask(6, "session/load", of("s1")), false),
        (Agent, chunk("s1", "user_message_chunk"), true),
        (Agent, answer(6, Value::Null), false),
    ]
}

/// The message with one more member, before or after its other members. The member is too long, is nested too deeply,
/// has half of a surrogate pair, or has a byte that is not UTF-8.
fn damaged(message: &Value) -> Vec<Vec<u8>> {
    let whole = message.to_string();
    let members = &whole.as_bytes()[1..whole.len() - 1];
    let long = format!("\"{}\"", "x".repeat(MAX_MESSAGE));
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let values = [
        long.as_bytes(),
        deep.as_bytes(),
        b"\"\\ud800\"",
        b"\"\xff\"",
    ];
    let mut all = Vec::new();
    for value in values {
        all.push([b"{\"_x\":", value, b",", members, b"}"].concat());
        all.push([b"{", members, b",\"_x\":", value, b"}"].concat());
    }
    all
}

/// The changes that a journal of these messages makes.
fn changes(messages: &[(Side, Vec<u8>)]) -> Vec<Change> {
    let state = tempfile::tempdir().unwrap();
    let (mut journal, mut editor, mut agent) = Journal::create(state.path(), "x".into()).unwrap();
    let mut changes = Vec::new();
    for (side, message) in messages {
        let writer = match side {
            Side::Editor => &mut editor,
            Side::Agent => &mut agent,
        };
        for piece in message.chunks(60_000) {
            writer.write(piece);
        }
        writer.write(b"\n");
        while let Some(change) = journal.next_change().unwrap() {
            changes.push(change);
        }
    }
    journal.end();
    while let Some(change) = journal.next_change().unwrap() {
        changes.push(change);
    }
    changes
}

fn gaps(changes: &[Change]) -> usize {
    let items = changes.iter().map(|change| match &change.kind {
        ChangeKind::Begin { .. } => &[][..],
        ChangeKind::Append { items, .. }
        | ChangeKind::Align { items, .. }
        | ChangeKind::Fork { items, .. } => items,
    });
    items.flatten().filter(|item| Item::is_gap(item)).count()
}

/// The kind of each change, and the session that it changes.
fn outline(changes: &[Change]) -> Vec<(String, std::mem::Discriminant<ChangeKind>)> {
    let row = |change: &Change| {
        let kind = std::mem::discriminant(&change.kind);
        (change.agent_session.clone(), kind)
    };
    changes.iter().map(row).collect()
}

/// If the first update was over 48 MiB, it once left no gap, because no session was open yet. If a prompt was over
/// 48 MiB, its answer was taken for the late end of another turn. A message that is not valid JSON was left out
/// without a gap.
#[test]
fn a_lost_message_leaves_a_gap_and_changes_nothing_else() {
    let script = script();
    let whole: Vec<(Side, Vec<u8>)> = script
        .iter()
        .map(|(side, message, _)| (*side, message.to_string().into_bytes()))
        .collect();
    let expected = changes(&whole);
    assert_eq!(gaps(&expected), 0);
    assert_eq!(expected.len(), 7, "{expected:?}");
    for (at, (_, message, is_missed)) in script.iter().enumerate() {
        for (form, damaged) in damaged(message).into_iter().enumerate() {
            let mut messages = whole.clone();
            messages[at].1 = damaged;
            let found = changes(&messages);
            let case = format!("message {at}, form {form}: {found:#?}");
            assert_eq!(outline(&found), outline(&expected), "{case}");
            assert_eq!(gaps(&found), usize::from(*is_missed), "{case}");
        }
    }
}

/// The journal has no line for a message that did not fit, so its session is unknown.
#[test]
fn a_message_without_room_leaves_a_gap() {
    let script = script();
    for at in 0..script.len() {
        let mut conversation = Conversation::default();
        let mut found = Vec::new();
        for (number, (side, message, _)) in script.iter().enumerate() {
            match number == at {
                true => conversation.gap(),
                false => found.extend(conversation.see(*side, message)),
            }
            assert!(
                number != at || !conversation.is_idle(),
                "it is not told yet"
            );
        }
        found.extend(conversation.abort());
        assert!(gaps(&found) > 0, "message {at}: {found:#?}");
    }
}

/// A history whose `session/load` was not answered was once taken for new messages.
#[test]
fn a_history_whose_load_is_not_answered_is_not_replayed_again() {
    let script = script();
    let is_lost = |number: usize| number == script.len() - 1;
    let again = &script[2];
    let mut conversation = Conversation::default();
    let mut found = Vec::new();
    for (number, (side, message, _)) in script.iter().enumerate() {
        if !is_lost(number) {
            found = conversation.see(*side, message);
        }
    }
    assert!(found.is_empty());
    let found = conversation.see(again.0, &again.1);
    assert_eq!(found.len(), 1, "the prompt alone: {found:#?}");
}
