//! Where appended entries go, which types are accepted, and what the daemon answers and announces.

use super::*;

#[test]
fn a_message_is_a_child_of_the_leaf() {
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

/// `firstKeptEntryId` of a compaction must be an entry on its own path. A compaction that named another entry was once
/// stored without an error, and kept nothing.
#[test]
fn a_compaction_keeps_only_entries_on_its_path() {
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
fn results_name_their_durability() {
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

/// Clients that show a new session once had to read its first row after each append to get a title.
#[test]
fn the_first_message_is_announced_once() {
    let mut d = Daemon::start();
    d.ignore("session_opened");
    d.create();
    let steps = [
        ("a", "assistant", "Ready.", None),
        ("b", "user", "<command-name>/clear</command-name>", None),
        ("c", "user", "Fix the **build**", Some("Fix the build")),
        ("d", "user", "And the tests", None),
    ];
    for (id, role, said, expected) in steps {
        let message = json!({"role": role, "content": [{"type": "text", "text": said}]});
        let entry = json!({"type": "message", "id": id, "message": message});
        d.ok("append_entries", json!({"entries": [entry]}));
        let announced = d.notification("entries_appended");
        let first = announced.get("firstMessage").and_then(Json::as_str);
        assert_eq!(first, expected, "{id}: {announced}");
    }
}

#[test]
fn an_append_is_announced_with_ids_and_without_bodies() {
    let mut d = Daemon::start();
    d.ignore("session_opened");
    d.ignore("session_closed");
    let session = d.create();
    d.user("u1", "x");
    let announced = d.notification("entries_appended");
    assert_eq!(announced["sessionId"], session);
    assert_eq!(announced["origin"], "self");
    assert_eq!(announced["entryIds"], json!(["u1"]));
    assert_eq!(
        (&announced["leafId"], &announced["fileLeafId"]),
        (&json!("u1"), &json!("u1"))
    );
    assert!(
        announced.get("entries").is_none(),
        "bodies only for others': {announced}"
    );
    d.ok("append_entries", json!({"entries": [
        {"type": "custom", "id": "c1", "customType": "x"}, {"type": "custom", "id": "c2", "customType": "x"},
    ]}));
    assert_eq!(
        d.notification("entries_appended")["entryIds"],
        json!(["c1", "c2"])
    );
}

#[test]
fn an_append_below_another_parent_is_not_a_navigation() {
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
    // No `session_tree` is sent, and there is no move to undo. The harness fails at an unclaimed notification.
    let error = d.err("undo_navigation", json!({}));
    assert_eq!(error.kind, "nothingToUndo");
    d.err_kind(
        "append_message",
        json!({"message": user("x"), "parentId": "nobody"}),
        "entryNotFound",
    );
}

#[test]
fn entries_of_a_batch_form_a_chain_unless_they_name_a_parent() {
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

#[test]
fn every_documented_and_unknown_type_is_accepted() {
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

#[test]
fn a_label_is_a_child_of_the_leaf_and_becomes_the_leaf() {
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

/// Who writes is only in entries of a team, unless the user configures it. Other programs get no entry that they did not
/// get before.
#[test]
fn entries_name_their_writer_only_if_the_settings_do() {
    let home = Home::new();
    let plain = Daemon::start_in(&home, &[], &[]);
    let config = crate::config::file(&home, "[author]\nname = \"Ada L.\"\n");
    let named = Daemon::start_in(&home, &["--config", &config], &[]);
    for (mut d, is_named) in [(plain, false), (named, true)] {
        d.ignore_bookkeeping();
        let instance = d.initialize(json!({"protocolVersion": 1}))["instanceId"].clone();
        d.create();
        d.user("u1", "hello");
        let entry = d.ok("get_entry", json!({"entryId": "u1"}))["entry"].clone();
        assert_eq!(entry.get("by").is_some(), is_named, "{entry}");
        if is_named {
            assert_eq!(entry["by"]["name"], "Ada L.");
            assert_eq!(entry["by"]["daemon"], instance);
        }
        let given =
            json!({"type": "custom", "id": "c1", "customType": "x", "by": "another program"});
        d.ok("append_entries", json!({"entries": [given]}));
        let entry = d.ok("get_entry", json!({"entryId": "c1"}))["entry"].clone();
        assert_eq!(entry["by"], "another program");
        d.stop();
    }
}
