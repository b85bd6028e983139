//! Random rows, and random histories of events.

use super::*;
use crate::member::Parent;
use proptest::prelude::*;
use treelined_core::test_support::time;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        prop_oneof![Just(1e300), Just(-0.5)].prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "a",
            "b",
            "user",
            "assistant",
            "text",
            "tool",
            "completed",
            "{}",
            "compaction",
            "\u{2028}"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let names = prop::sample::select(vec![
            "id",
            "role",
            "type",
            "text",
            "time",
            "created",
            "completed",
            "state",
            "status",
            "input",
            "output",
            "callID",
            "tool",
            "messageID",
            "partID",
            "info",
            "part",
            "summary",
            "tokens",
            "error",
            "metadata",
            "sessionId",
            "tail_start_id",
            "revert",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..8).prop_map(|members| {
                Value::Object(
                    members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

/// A row in which each value may have any type.
fn any_row() -> impl Strategy<Value = String> {
    let tables = vec![
        "session", "message", "part", "part", "event", "event", "todo",
    ];
    let kinds = vec![
        "message.updated.1",
        "message.part.updated.1",
        "message.removed.1",
        "message.part.removed.1",
        "x",
    ];
    let id = || {
        prop::sample::select(vec![
            json!("a"),
            json!("b"),
            json!("c"),
            json!(1),
            Value::Null,
        ])
    };
    let parts = (
        prop::sample::select(tables),
        prop::sample::select(kinds),
        id(),
        id(),
        value(),
        0_u64..9,
        any::<bool>(),
    );
    parts.prop_map(|(table, kind, id, message, mut data, number, is_text)| {
        if let (Some(data), true) = (data.as_object_mut(), number % 2 == 0) {
            for name in ["messageID", "partID"] {
                data.insert(name.into(), message.clone());
            }
        }
        let data = if is_text { Value::from(data.to_string()) } else { data };
        let row = json!({"id": id, "message_id": message, "seq": number, "type": kind, "time_created": number, "data": data, "revert": data});
        json!({"table": table, "rowid": number, "row": row}).to_string()
    })
}

proptest! {
    #[test]
    fn any_rows_become_valid_entries(rows in prop::collection::vec(any_row(), 0..40)) {
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        imported(&Opencode, "x", lines.as_bytes());
    }

    /// After each event of a random history, the present state equals a simple list, and no message is lost.
    #[test]
    fn the_replay_ends_with_the_listed_messages_and_keeps_the_removed_ones(history in prop::collection::vec((any::<bool>(), 0_usize..6), 1..60)) {
        let mut list: Vec<u64> = Vec::new();
        let mut all: Vec<u64> = Vec::new();
        let mut before: std::collections::HashMap<u64, Option<u64>> = std::collections::HashMap::new();
        let mut rows = Rows::new(json!({}));
        for (seq, (is_revert, place)) in (0_u64..).zip(&history) {
            if *is_revert {
                let at = list.len().saturating_sub(*place);
                for (number, id) in (0..).zip(list.split_off(at)) {
                    rows = rows.removed(seq * 100 + number, &format!("m{id:04}"));
                }
            } else {
                before.insert(seq, list.last().copied());
                list.push(seq);
                all.push(seq);
                rows = rows.updated(seq * 100, &format!("m{seq:04}"), seq, &seq.to_string());
            }
        }
        for id in &list {
            rows = rows.user(&format!("m{id:04}"), *id, &id.to_string());
        }
        let session = rows.read();
        let nodes = &session.member.nodes;
        prop_assert_eq!(nodes.len(), all.len());
        prop_assert_eq!(session.member.disagreements, 0);
        for (node, id) in nodes.iter().zip(&all) {
            prop_assert_eq!(&*node.key, &format!("m{id:04}"));
            let parent = match &node.parent {
                Parent::Node(parent) => Some(all[*parent as usize]),
                _ => None,
            };
            prop_assert_eq!(parent, before[id]);
        }
        let leaf = session.member.leaf.map(|leaf| all[leaf as usize]);
        prop_assert_eq!(leaf, list.last().copied());
    }
}

/// The records are in the worst order.
#[test]
fn reading_is_linear_in_the_records() {
    time::check_linear("records", [100, 3_200], |count| {
        let count = count as u64;
        let mut rows = Rows::new(json!({}));
        for number in 0..count {
            rows = rows.updated(
                2 * number,
                &format!("m{:08}", count - number),
                count - number,
                "x",
            );
        }
        for number in 0..count {
            rows = rows.removed(2 * count + number, &format!("m{:08}", number + 1));
        }
        time::processor_time(|| imported(&Opencode, "", &rows.0))
    });
}
