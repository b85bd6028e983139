//! The daemon trims labels and session names to one line, when it stores them and when it shows them.

use super::*;

/// Labels once kept their line breaks and white space. A retry in another spelling was refused as a duplicate, and only
/// null and an empty text cleared a label.
#[test]
fn labels_are_one_trimmed_line_and_blank_ones_clear() {
    let (mut d, path) = begun();
    let label = |text: &str| json!({"targetId": "u1", "label": text, "entryId": "l1"});
    d.ok("append_label", label(" \u{7}a\r\nb\u{2028}c\t "));
    assert_eq!(file_lines(&path).last().unwrap()["label"], "a b c");
    d.ok("append_label", label("a\tb c"));
    d.err_kind("append_label", label("a  b c"), "duplicateEntryId");
    assert_eq!(
        file_lines(&path).len(),
        4,
        "a retry with other white space adds no entry"
    );
    for clears in [
        json!({"targetId": "u1"}),
        json!({"targetId": "u1", "label": null}),
        json!({"targetId": "u1", "label": ""}),
        json!({"targetId": "u1", "label": " \r\n\u{1}"}),
    ] {
        d.ok("append_label", json!({"targetId": "u1", "label": "x"}));
        assert_eq!(d.ok("get_label", json!({"entryId": "u1"}))["label"], "x");
        d.ok("append_label", clears.clone());
        let cleared = d.ok("get_label", json!({"entryId": "u1"}));
        assert!(cleared.get("label").is_none(), "{clears}: {cleared}");
        assert!(
            file_lines(&path).last().unwrap().get("label").is_none(),
            "{clears}"
        );
    }
}

/// `append_entries` changes only the label or the name. All other bytes stay in their order.
#[test]
fn labels_and_names_among_entries_are_normalized_and_nothing_else_is() {
    let (mut d, path) = begun();
    let entries = r#"{"entries":[{"label":" a\u0001b\n","z":" 1\n","type":"label","id":"l1","targetId":"u1","name":" n "},{"type":"label","id":"l2","targetId":"a1","label":"caf\u00e9","y":1.0},{"name":"\tThe\r\nname ","type":"session_info","id":"i1","label":" l "},{"type":"custom","id":"c1","customType":"x","name":" as it is ","label":" too "}]}"#;
    let id = d.send_text("append_entries", entries);
    d.response(&id).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for stored in [
        r#","label":"a b","z":" 1\n","targetId":"u1","name":" n "}"#,
        r#","label":"caf\u00e9","y":1.0}"#,
        r#","name":"The name","label":" l "}"#,
        r#","name":" as it is ","label":" too "}"#,
    ] {
        assert!(text.contains(stored), "{stored} in {text}");
    }
    let again = d.send_text("append_entries", entries);
    assert_eq!(
        d.response(&again).unwrap()["leafId"],
        "c1",
        "a retry, in the first spelling"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(d.ok("get_label", json!({"entryId": "u1"}))["label"], "a b");
    let blank =
        json!({"entries": [{"type": "label", "id": "b1", "targetId": "u1", "label": " \n"}]});
    d.ok("append_entries", blank);
    // The same entry is a retry, whether its label is left out, null or empty.
    for label in [None, Some(Json::Null), Some(json!(""))] {
        let mut again = json!({"type": "label", "id": "b1", "targetId": "u1"});
        if let Some(label) = label {
            again["label"] = label;
        }
        d.ok("append_entries", json!({ "entries": [again] }));
    }
    d.ok("append_label", json!({"targetId": "u1", "entryId": "b1"}));
    assert!(
        d.ok("get_label", json!({"entryId": "u1"}))
            .get("label")
            .is_none()
    );
}

/// Other programs may write labels and names that are not normalized. Entries deliver them as stored. Rows show them as
/// one trimmed line, and a blank label or name counts as none.
#[test]
fn labels_and_names_in_files_are_delivered_as_stored_and_shown_normalized() {
    let home = Home::new();
    let path = Log::new("s")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two")
        .entry(
            "label",
            "l0",
            "a1",
            json!({"targetId": "a1", "label": "gone"}),
        )
        .entry(
            "label",
            "l1",
            "l0",
            json!({"targetId": "u1", "label": " a\nb\t"}),
        )
        .entry(
            "label",
            "l2",
            "l1",
            json!({"targetId": "a1", "label": " \n"}),
        )
        .entry("session_info", "i1", "l2", json!({"name": " the\r\nname "}))
        .store(&home, "2025-01-01T00-00-00-000Z_s.jsonl");
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    assert_eq!(opened["session"]["name"], "the name");
    assert_eq!(d.entry("l1")["label"], " a\nb\t");
    assert_eq!(d.entry("i1")["name"], " the\r\nname ");
    assert_eq!(d.ok("get_label", json!({"entryId": "u1"}))["label"], "a b");
    assert!(
        d.ok("get_label", json!({"entryId": "a1"}))
            .get("label")
            .is_none()
    );
    let tree = d.ok("get_tree", json!({}));
    assert_eq!(tree["nodes"][0]["label"], "a b");
    assert_eq!(
        d.ok("list_sessions", json!({}))["sessions"][0]["name"],
        "the name"
    );
    let labeled = d.ok("get_tree", json!({"filter": "labeled-only"}));
    assert_eq!(ids(&labeled["nodes"]), ["u1"]);
    let path = Log::new("t")
        .entry("session_info", "i1", "", json!({"name": "n"}))
        .entry("session_info", "i2", "i1", json!({"name": " \t"}))
        .save(&home);
    let opened = d.open(&path);
    assert!(opened["session"].get("name").is_none(), "{opened}");
}

#[test]
fn a_name_given_to_a_new_session_is_one_trimmed_line() {
    let mut d = Daemon::quiet();
    let made = d.ok("create_session", json!({"name": " a\nb "}));
    assert_eq!(made["session"]["name"], "a b");
    let made = d.ok("create_session", json!({"name": " \n", "sessionId": "s2"}));
    assert!(made["session"].get("name").is_none(), "{made}");
    assert_eq!(made["session"]["entryCount"], 0);
}
