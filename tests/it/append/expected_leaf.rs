//! `expectedLeafId`: a write is refused if the leaf is another entry.

use super::*;

#[test]
fn an_expected_leaf_is_checked() {
    let (mut d, _) = begun();
    // Two moves, so that there is something to undo.
    d.set_leaf(Some("u1"));
    d.set_leaf(Some("a1"));
    for (method, params) in [
        ("append_message", json!({"message": user("x")})),
        (
            "append_entries",
            json!({"entries": [{"type": "custom", "customType": "x"}]}),
        ),
        ("append_label", json!({"targetId": "u1", "label": "x"})),
        ("set_session_name", json!({"name": "x"})),
        ("set_leaf", json!({"leafId": "u1"})),
        ("branch", json!({"entryId": "u1"})),
        ("navigate_tree", json!({"targetId": "u1"})),
        ("undo_navigation", json!({})),
    ] {
        for expected in [json!("u1"), Json::Null] {
            let mut params = params.clone();
            params["expectedLeafId"] = expected.clone();
            let error = d.err(method, params);
            assert_eq!(
                (error.code, error.kind.as_str()),
                (1201, "leafMoved"),
                "{method} expecting {expected}"
            );
            assert_eq!(error.details("expectedLeafId"), &expected, "{method}");
            assert_eq!(error.details("leafId"), "a1", "{method}");
        }
    }
    assert_eq!(d.ids(), ["u1", "a1"]);
    d.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "u2", "expectedLeafId": "a1"}),
    );
    d.set_leaf(None);
    d.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "u3", "expectedLeafId": null}),
    );
    assert_eq!(d.path_ids(None), ["u3"]);
}

/// A guard that recorded each turn once made the writes of clients with `expectedLeafId` fail.
#[test]
fn bookkeeping_does_not_change_the_expected_leaf() {
    let (mut d, _) = begun();
    d.ok("append_label", json!({"targetId": "u1", "label": "x"}));
    d.ok("set_session_name", json!({"name": "x"}));
    let about = json!({"targetId": "u1", "reason": "x", "outcome": "abandoned"});
    let entries = json!([
        {"type": "custom", "customType": "note", "data": about},
        {"type": "custom", "customType": "note", "data": {"text": "x"}},
        {"type": "custom", "customType": "todo.state"},
        {"type": "usage", "kind": "title", "provider": "p", "model": "m", "usage": {"input": 1}},
    ]);
    d.ok(
        "append_entries",
        json!({"entries": entries, "expectedLeafId": "a1"}),
    );
    d.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "u2", "expectedLeafId": "a1"}),
    );
    assert_eq!(d.leaf(), "u2");
}

/// After it had appended a label or a state entry, the daemon once did not notice the entries that others had appended
/// below its step.
#[test]
fn own_bookkeeping_does_not_hide_the_steps_of_others() {
    let (mut d, path) = begun();
    let theirs = json!({"message": user("foreign")});
    foreign_append(&path, &entry_line(9, "message", "f1", "a1", theirs));
    let entries = json!({"entries": [{"type": "custom", "customType": "todo.state", "id": "s1"}]});
    d.ok("append_entries", entries);
    for expected in ["a1", "s1"] {
        let message = json!({"message": user("x"), "expectedLeafId": expected});
        d.err_kind("append_message", message, "leafMoved");
    }
    let theirs = json!({"customType": "todo.state"});
    d.set_leaf(Some("f1"));
    foreign_append(&path, &entry_line(9, "custom", "f2", "f1", theirs));
    let message = json!({"message": user("x"), "expectedLeafId": "f1"});
    assert_eq!(d.ok("append_message", message)["durability"], "interval");
}

#[test]
fn an_entry_of_another_program_below_the_expected_leaf_is_a_conflict() {
    let (mut d, path) = begun();
    foreign_append(
        &path,
        &entry_line(
            9,
            "message",
            "f1",
            "a1",
            json!({"message": user("foreign")}),
        ),
    );
    let error = d.err(
        "append_message",
        json!({"message": user("x"), "expectedLeafId": "a1"}),
    );
    assert_eq!(error.kind, "leafMoved");
    assert!(
        error.details("entries").to_string().contains("f1"),
        "{error:?}"
    );
    d.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "u2"}),
    );
    assert_eq!(
        d.entry("u2")["parentId"],
        "a1",
        "the leaf does not follow others; theirs became a branch"
    );
    assert_eq!(d.ids(), ["u1", "a1", "f1", "u2"]);
}
