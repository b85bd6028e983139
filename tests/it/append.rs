//! Appending: messages, entries, labels; ids that make retries safe; what is refused; and that the
//! bytes of a client's entry are the bytes on disk. protocol.md §3 and §9, storage.md §1 and §3.

use std::fs;

use crate::harness::*;

/// A daemon with an open session of u1 → a1, and its file.
fn begun() -> (Daemon, std::path::PathBuf) {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1"]);
    let path = d.home.only_file();
    (d, path)
}

#[test]
fn a_message_goes_below_the_leaf() {
    let mut d = Daemon::quiet();
    d.create();
    let first = d.ok("append_message", json!({"message": user("one")}));
    let id = first["entryId"].as_str().unwrap().to_owned();
    assert!(
        id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()),
        "{id}"
    );
    assert_eq!(first["leafId"], first["entryId"]);
    let second = d.ok("append_message", json!({"message": assistant("two")}));
    let lines = file_lines(&d.home.only_file());
    let members: Vec<_> = lines[1]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members, ["type", "id", "parentId", "timestamp", "message"]);
    assert_eq!(lines[1]["parentId"], Json::Null);
    assert_eq!(lines[1]["message"], user("one"));
    assert_eq!(lines[2]["parentId"], json!(id));
    assert_eq!(lines[2]["id"], second["entryId"]);
    let stamp = lines[2]["timestamp"].as_str().unwrap();
    assert!(
        stamp.len() == 24 && stamp.ends_with('Z'),
        "milliseconds, UTC: {stamp}"
    );
    assert_eq!(d.entry(&id), lines[1], "delivered as stored");
}

/// A label kept its line breaks and white space, a retry of it in another spelling was a duplicate, and
/// only null and an empty text cleared.
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
        "a retry in another spelling is one"
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

/// In `append_entries` only the label or the name is normalized; all else keeps its bytes and order.
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
    // The same with a label that is left out, or null, is a retry.
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

/// Labels and names that others wrote are delivered as they stand in the file; what shows them shows one
/// trimmed line, and blank ones clear.
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

/// A compaction that keeps what is not above it was stored, and kept nothing without a word.
#[test]
fn a_compaction_keeps_only_what_is_on_its_path() {
    let (mut d, path) = begun();
    d.below(Some("u1"), "b1");
    d.set_leaf(Some("a1"));
    let compaction = |kept: Json, parent: Json| {
        let mut entry = json!({"type": "compaction", "id": "k1", "summary": "S", "firstKeptEntryId": kept, "tokensBefore": 1});
        if !parent.is_null() {
            entry["parentId"] = parent;
        }
        entry
    };
    let message = |id: &str| json!({"type": "message", "id": id, "message": user("x")});
    let before = fs::read(&path).unwrap();
    for (named, entries) in [
        ("b1", json!([compaction(json!("b1"), Json::Null)])),
        ("a1", json!([compaction(json!("a1"), json!("b1"))])),
        ("nobody", json!([compaction(json!("nobody"), Json::Null)])),
        (
            "m1",
            json!([compaction(json!("m1"), Json::Null), message("m1")]),
        ),
        (
            "m1",
            json!([message("m1"), compaction(json!("m1"), json!("a1"))]),
        ),
    ] {
        let error = d.err_kind(
            "append_entries",
            json!({"entries": entries}),
            "entryNotFound",
        );
        assert_eq!(error.details("entryId"), named, "{entries}");
    }
    let rooted = json!({"type": "compaction", "parentId": null, "summary": "S", "firstKeptEntryId": "u1", "tokensBefore": 1});
    d.err_kind(
        "append_entries",
        json!({"entries": [rooted]}),
        "entryNotFound",
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    for entries in [
        json!([compaction(json!("u1"), Json::Null)]),
        json!([compaction(json!("b1"), json!("b1"))]),
        json!([message("m1"), compaction(json!("m1"), Json::Null)]),
        json!([
            message("m1"),
            message("m2"),
            compaction(json!("u1"), Json::Null)
        ]),
        json!([compaction(Json::Null, Json::Null)]),
        json!([compaction(json!("k1"), Json::Null)]),
    ] {
        let (mut d, _) = begun();
        d.below(Some("u1"), "b1");
        d.set_leaf(Some("a1"));
        let params = json!({"entries": entries});
        let first = d.ok("append_entries", params.clone());
        assert_eq!(
            d.ok("append_entries", params)["entryIds"],
            first["entryIds"],
            "{entries}"
        );
    }
}

#[test]
fn results_say_how_durable_they_are() {
    for durability in ["os", "interval", "always"] {
        let mut d = Daemon::start_with(&["--durability", durability], &[]);
        d.ignore_bookkeeping();
        d.create();
        assert_eq!(d.user("u1", "x")["durability"], durability);
        d.assistant("a1", "y");
        for (method, params) in [
            ("append_label", json!({"targetId": "u1", "label": "l"})),
            ("set_session_name", json!({"name": "n"})),
            (
                "append_entries",
                json!({"entries": [{"type": "custom", "customType": "c"}]}),
            ),
            ("set_leaf", json!({"leafId": "u1"})),
        ] {
            assert_eq!(d.ok(method, params)["durability"], durability, "{method}");
        }
    }
    let (mut d, _) = begun();
    assert_eq!(d.user("u2", "x")["durability"], "interval", "the default");
}

#[test]
fn an_append_is_announced_with_ids_and_without_bodies() {
    let mut d = Daemon::start();
    d.ignore("session_opened");
    d.ignore("session_closed");
    let session = d.create();
    d.user("u1", "x");
    let told = d.notification("entries_appended");
    assert_eq!(told["sessionId"], session);
    assert_eq!(told["origin"], "self");
    assert_eq!(told["entryIds"], json!(["u1"]));
    assert_eq!(
        (&told["leafId"], &told["fileLeafId"]),
        (&json!("u1"), &json!("u1"))
    );
    assert!(
        told.get("entries").is_none(),
        "bodies only for others': {told}"
    );
    d.ok("append_entries", json!({"entries": [
        {"type": "custom", "id": "c1", "customType": "x"}, {"type": "custom", "id": "c2", "customType": "x"},
    ]}));
    assert_eq!(
        d.notification("entries_appended")["entryIds"],
        json!(["c1", "c2"])
    );
}

// --- ids of the client ---

#[test]
fn a_retry_with_the_same_content_gives_the_first_result() {
    let (mut d, path) = begun();
    let params = json!({"message": user("again"), "entryId": "u2"});
    let first = d.ok("append_message", params.clone());
    d.chain(&["a2"]);
    let bytes = fs::read(&path).unwrap();
    let again = d.ok("append_message", params);
    assert_eq!(again["entryId"], first["entryId"]);
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing is written twice");
    assert_eq!(d.leaf(), "a2", "a retry moves nothing");

    let params = json!({"targetId": "u1", "label": "here", "entryId": "l1"});
    let first = d.ok("append_label", params.clone());
    let bytes = fs::read(&path).unwrap();
    assert_eq!(d.ok("append_label", params)["entryId"], first["entryId"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);

    let params = json!({"entries": [
        {"type": "custom", "id": "c1", "customType": "x", "data": {"n": 1}},
        {"type": "custom", "id": "c2", "customType": "x"},
    ]});
    let first = d.ok("append_entries", params.clone());
    let bytes = fs::read(&path).unwrap();
    assert_eq!(
        d.ok("append_entries", params)["entryIds"],
        first["entryIds"]
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_retry_is_known_after_a_restart() {
    let (d, path) = begun();
    let bytes = fs::read(&path).unwrap();
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert_eq!(d.assistant("a1", "text of a1")["entryId"], "a1");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_taken_id_with_other_content_is_refused() {
    let (mut d, path) = begun();
    d.ok(
        "append_label",
        json!({"targetId": "u1", "label": "here", "entryId": "l1"}),
    );
    let bytes = fs::read(&path).unwrap();
    for (method, params) in [
        (
            "append_message",
            json!({"message": user("other"), "entryId": "u1"}),
        ),
        (
            "append_message",
            json!({"message": user("text of a1"), "entryId": "a1"}),
        ),
        (
            "append_label",
            json!({"targetId": "u1", "label": "there", "entryId": "l1"}),
        ),
        (
            "append_label",
            json!({"targetId": "u1", "label": "x", "entryId": "u1"}),
        ),
        (
            "append_entries",
            json!({"entries": [
                {"type": "custom", "id": "new", "customType": "x"}, {"type": "custom", "id": "u1", "customType": "x"},
            ]}),
        ),
        (
            "append_entries",
            json!({"entries": [
                {"type": "custom", "id": "same", "customType": "x"}, {"type": "custom", "id": "same", "customType": "y"},
            ]}),
        ),
    ] {
        let error = d.err(method, params.clone());
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1205, "duplicateEntryId"),
            "{method} {params}"
        );
    }
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was written");
}

// --- places ---

#[test]
fn a_parent_can_be_named_without_that_being_a_navigation() {
    let mut d = Daemon::start();
    for name in ["session_opened", "session_closed", "entries_appended"] {
        d.ignore(name);
    }
    d.create();
    d.chain(&["u1", "a1"]);
    let result = d.ok(
        "append_message",
        json!({"message": user("aside"), "entryId": "u2", "parentId": "u1"}),
    );
    assert_eq!(
        result["leafId"], "u2",
        "the leaf is the last appended entry, always"
    );
    assert_eq!(d.leaf(), "u2");
    d.ok(
        "append_message",
        json!({"message": user("root"), "entryId": "u3", "parentId": null}),
    );
    assert_eq!(d.path_ids(None), ["u3"]);
    assert_eq!(
        ids(&d.ok("get_children", json!({"entryId": null}))["entries"]),
        ["u1", "u3"]
    );
    // No `session_tree` (the harness would fail), and nothing to undo.
    let error = d.err("undo_navigation", json!({}));
    assert_eq!(error.kind, "nothingToUndo");
    d.err_kind(
        "append_message",
        json!({"message": user("x"), "parentId": "nobody"}),
        "entryNotFound",
    );
}

#[test]
fn entries_chain_onto_each_other_unless_they_say_otherwise() {
    let (mut d, path) = begun();
    let result = d.ok("append_entries", json!({"entries": [
        {"type": "message", "id": "x1", "message": user("one")},
        {"type": "message", "id": "x2", "message": assistant("two"), "timestamp": "2020-02-02T02:02:02.020Z"},
        {"type": "message", "id": "x3", "message": user("aside"), "parentId": "u1"},
        {"type": "message", "message": assistant("below the aside")},
        {"type": "message", "id": "x5", "message": user("root"), "parentId": null},
    ]}));
    let given = ids(&result["entryIds"]);
    assert_eq!(
        (given.len(), given[0].as_str(), given[4].as_str()),
        (5, "x1", "x5")
    );
    assert_eq!(result["leafId"], "x5");
    let parents: Vec<_> = file_lines(&path)[3..]
        .iter()
        .map(|l| l["parentId"].clone())
        .collect();
    assert_eq!(
        parents,
        [
            json!("a1"),
            json!("x1"),
            json!("u1"),
            json!("x3"),
            Json::Null
        ]
    );
    assert_eq!(d.entry("x2")["timestamp"], "2020-02-02T02:02:02.020Z");
}

#[test]
fn a_batch_of_entries_is_all_or_nothing() {
    let (mut d, path) = begun();
    let bytes = fs::read(&path).unwrap();
    let error = d.err(
        "append_entries",
        json!({"entries": [
            {"type": "message", "message": user("good")},
            {"type": "message", "message": {"content": "no role"}},
        ]}),
    );
    assert_eq!(error.kind, "entryInvalid");
    assert_eq!(error.details("index"), 1);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(d.leaf(), "a1");
    d.err_kind(
        "append_entries",
        json!({"entries": [{"type": "custom", "customType": "x"}, {"type": "custom", "customType": "x", "parentId": "nobody"}]}),
        "entryNotFound",
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

// --- expectedLeafId ---

#[test]
fn an_expected_leaf_is_checked() {
    let (mut d, _) = begun();
    // So that there is something to undo.
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

#[test]
fn labels_and_names_do_not_disappoint_an_expectation() {
    let (mut d, _) = begun();
    d.ok("append_label", json!({"targetId": "u1", "label": "x"}));
    d.ok("set_session_name", json!({"name": "x"}));
    d.ok(
        "append_message",
        json!({"message": user("x"), "entryId": "u2", "expectedLeafId": "a1"}),
    );
    assert_eq!(d.leaf(), "u2");
}

#[test]
fn others_entries_below_the_leaf_disappoint_an_expectation() {
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

// --- what is refused ---

#[test]
fn entries_that_are_no_entries_are_refused() {
    let (mut d, path) = begun();
    let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
    let bytes = fs::read(&path).unwrap();
    for (what, entry) in [
        (
            "no role",
            json!({"type": "message", "message": {"content": "x"}}),
        ),
        (
            "a role that is no string",
            json!({"type": "message", "message": {"role": 5, "content": "x"}}),
        ),
        ("no message", json!({"type": "message"})),
        (
            "a message that is no object",
            json!({"type": "message", "message": "hello"}),
        ),
        (
            "a number as user content",
            json!({"type": "message", "message": {"role": "user", "content": 5}}),
        ),
        (
            "an object as assistant content",
            json!({"type": "message", "message": {"role": "assistant", "content": {}}}),
        ),
        (
            "a number as tool result content",
            json!({"type": "message", "message": {
            "role": "toolResult", "toolCallId": "c", "toolName": "t", "content": 7, "isError": false}}),
        ),
        ("no thinkingLevel", json!({"type": "thinking_level_change"})),
        (
            "no modelId",
            json!({"type": "model_change", "provider": "p"}),
        ),
        (
            "no summary",
            json!({"type": "compaction", "firstKeptEntryId": "u1", "tokensBefore": 1}),
        ),
        (
            "tokensBefore as text",
            json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "u1", "tokensBefore": "1"}),
        ),
        (
            "no fromId",
            json!({"type": "branch_summary", "summary": "s"}),
        ),
        (
            "no replacement",
            json!({"type": "context_edit", "targetId": "u1"}),
        ),
        ("no customType", json!({"type": "custom"})),
        (
            "no display",
            json!({"type": "custom_message", "customType": "c", "content": "x"}),
        ),
        ("no targetId", json!({"type": "label", "label": "x"})),
        (
            "a name that is no string",
            json!({"type": "session_info", "name": 5}),
        ),
        (
            "a header",
            json!({"type": "session", "version": 3, "cwd": "/"}),
        ),
        (
            "our own bookkeeping",
            json!({"type": "custom", "customType": "treelined.leaf", "data": {}}),
        ),
        (
            "our own namespace",
            json!({"type": "custom", "customType": "treelined.anything"}),
        ),
        (
            "the id root",
            json!({"type": "custom", "customType": "x", "id": "root"}),
        ),
        (
            "an id with a slash",
            json!({"type": "custom", "customType": "x", "id": "a/b"}),
        ),
        (
            "an empty id",
            json!({"type": "custom", "customType": "x", "id": ""}),
        ),
        (
            "an id too long",
            json!({"type": "custom", "customType": "x", "id": "i".repeat(129)}),
        ),
        (
            "nesting over 256",
            json!({"type": "custom", "customType": "x", "data": deep}),
        ),
    ] {
        let error = d.err(
            "append_entries",
            json!({"entries": [{"type": "custom", "customType": "fine"}, entry]}),
        );
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1202, "entryInvalid"),
            "{what}: {error:?}"
        );
        assert_eq!(error.details("index"), 1, "{what}");
        assert!(error.details("field").is_string(), "{what}: {error:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was written");
    let error = d.err("append_message", json!({"message": {"content": "no role"}}));
    assert_eq!(
        (error.kind.as_str(), error.details("index")),
        ("entryInvalid", &json!(0))
    );
    d.err_kind(
        "append_label",
        json!({"targetId": "nobody", "label": "x"}),
        "entryNotFound",
    );
}

#[test]
fn every_documented_type_and_unknown_ones_are_taken() {
    let (mut d, path) = begun();
    let nested = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let entries = json!([
        {"type": "message", "message": {"role": "oracle", "anything": [1]}},
        {"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "t"}]}},
        {"type": "thinking_level_change", "thinkingLevel": "high"},
        {"type": "model_change", "provider": "p", "modelId": "m"},
        {"type": "compaction", "id": "k1", "summary": "s", "firstKeptEntryId": null, "tokensBefore": 5},
        {"type": "compaction", "summary": "s", "firstKeptEntryId": "u1", "tokensBefore": 5, "details": {}, "usage": {}},
        {"type": "branch_summary", "fromId": "u1", "summary": "s", "details": {"x": 1}},
        {"type": "branch_summary", "fromId": "root", "summary": "s"},
        {"type": "context_edit", "targetId": "u1", "replacement": null},
        {"type": "context_edit", "targetId": "u1", "replacement": {"content": "new"}},
        {"type": "custom", "customType": "c", "data": nested},
        {"type": "custom_message", "customType": "c", "content": "x", "display": true, "details": 5},
        {"type": "label", "targetId": "u1", "label": "x"},
        {"type": "label", "targetId": "u1"},
        {"type": "session_info", "name": "n"},
        {"type": "session_info"},
        {"type": "usage", "kind": "k", "provider": "p", "model": "m", "usage": {"input": 1}, "note": "n"},
        {"type": "never_heard_of", "with": {"anything": [null]}},
    ]);
    let given = ids(&d.ok("append_entries", json!({"entries": entries}))["entryIds"]);
    let stored = &file_lines(&path)[3..];
    assert_eq!(stored.len(), entries.as_array().unwrap().len());
    for ((line, entry), id) in stored.iter().zip(entries.as_array().unwrap()).zip(&given) {
        assert_eq!(line["id"], json!(id));
        for (name, value) in entry.as_object().unwrap() {
            if name == "firstKeptEntryId" && value.is_null() {
                assert_eq!(line[name], "k1", "null is stored as the entry's own id");
            } else {
                assert_eq!(&line[name], value, "{name} of {line}");
            }
        }
        assert_eq!(&d.entry(id), line);
    }
}

// --- bytes ---

const AWKWARD: &str = concat!(
    r#"{"role":"user","zeta":1.0,"alpha":12345678901234567890123,"content":"a\/b\u0041 \ud83d lone","#,
    r#""dup":1,"dup":2,"exp":1E+2,"neg":-0.0,"small":1e-400,"n" : [ 1 ,2 ],"é":"ü","nul":"\u0000"}"#
);

#[test]
fn the_bytes_of_a_message_survive() {
    let (mut d, path) = begun();
    let id = d.send_text(
        "append_message",
        &format!(r#"{{"entryId":"raw","message":{AWKWARD}}}"#),
    );
    assert_eq!(d.response(&id).unwrap()["entryId"], "raw");
    let file = fs::read_to_string(&path).unwrap();
    assert!(file.contains(AWKWARD), "{file}");
    for (method, params) in [
        ("get_entry", json!({"entryId": "raw"})),
        ("get_entries", json!({})),
        ("get_path", json!({})),
        ("get_tree", json!({"format": "nested"})),
    ] {
        let id = d.send(method, params);
        let text = d.response_text(&id);
        assert!(text.contains(AWKWARD), "{method}: {text}");
    }
}

#[test]
fn the_bytes_of_entries_survive_members_unknown_to_us_too() {
    let (mut d, path) = begun();
    let extra = r#""zz":1.0,"big":98765432109876543210,"message":{"role":"user","content":"x","k":1.50},"aa":{"b":1,"a":2,"b":3}"#;
    let id = d.send_text(
        "append_entries",
        &format!(r#"{{"entries":[{{"type":"message","id":"raw",{extra}}}]}}"#),
    );
    assert_eq!(d.response(&id).unwrap()["entryIds"], json!(["raw"]));
    let file = fs::read_to_string(&path).unwrap();
    let line = file.lines().last().unwrap();
    assert!(
        line.starts_with(r#"{"type":"message","id":"raw","parentId":"a1","timestamp":"#),
        "{line}"
    );
    assert!(line.ends_with(&format!("{extra}}}")), "{line}");
}

#[test]
fn line_breaks_between_tokens_become_spaces() {
    let home = Home::new();
    let framed = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let create = request(&json!(1), "create_session", &json!({}));
    let append = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"append_message\",\"params\":{\"entryId\":\"u1\",\n\"message\":{\n  \"role\": \"user\",\n  \"content\": \"line\\nbreak\"\n}}}";
    let input = format!("{}{}", framed(&create), framed(append));
    home.run(&[], &[], input).clean();
    let lines = file_lines(&home.only_file());
    assert_eq!(lines.len(), 2, "one entry, one line");
    assert_eq!(
        lines[1]["message"],
        json!({"role": "user", "content": "line\nbreak"})
    );
    let file = fs::read_to_string(home.only_file()).unwrap();
    assert!(
        file.contains(r#"  "role": "user","#),
        "spaces, and nothing else changed: {file}"
    );
}

#[test]
fn labels_advance_the_leaf_and_hang_below_it() {
    let (mut d, _) = begun();
    let result = d.ok(
        "append_label",
        json!({"targetId": "u1", "label": "start", "entryId": "l1"}),
    );
    assert_eq!(
        (&result["entryId"], &result["leafId"]),
        (&json!("l1"), &json!("l1"))
    );
    assert_eq!(d.entry("l1")["parentId"], "a1");
    assert_eq!(d.entry("l1")["targetId"], "u1");
    assert_eq!(d.leaf(), "l1");
}
