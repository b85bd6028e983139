//! Ids that the client chooses, which make a retry safe.

use super::*;

#[test]
fn a_retry_with_the_same_content_returns_the_first_result() {
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
fn a_retry_is_recognized_after_a_restart() {
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

/// A retry once failed with `leafMoved`, since the first attempt had moved the leaf.
#[test]
fn a_retry_with_an_expected_leaf_succeeds() {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["a"]);
    let params = json!({"message": user("again"), "entryId": "r", "expectedLeafId": "a"});
    let first = d.ok("append_message", params.clone());
    assert_eq!(d.ok("append_message", params)["entryId"], first["entryId"]);
}
