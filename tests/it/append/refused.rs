//! Entries that are refused. The error names the index and the field.

use super::*;

/// Messages that lack a member that their role requires.
fn malformed_messages() -> Vec<(&'static str, Json)> {
    vec![
        (
            "no role",
            json!({"type": "message", "message": {"content": "x"}}),
        ),
        (
            "a role that is not a string",
            json!({"type": "message", "message": {"role": 5, "content": "x"}}),
        ),
        ("no message", json!({"type": "message"})),
        (
            "a message that is not an object",
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
    ]
}

/// Entries that lack a member that their type requires.
fn malformed_types() -> Vec<(&'static str, Json)> {
    vec![
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
            "a name that is not a string",
            json!({"type": "session_info", "name": 5}),
        ),
    ]
}

/// Entries and ids that clients must not write.
fn forbidden() -> Vec<(&'static str, Json)> {
    let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
    vec![
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
    ]
}

#[test]
fn malformed_entries_are_refused() {
    let (mut d, path) = begun();
    let bytes = fs::read(&path).unwrap();
    for (what, entry) in [malformed_messages(), malformed_types(), forbidden()].concat() {
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

// A message with the role `asistant` was once stored, and no model got it.
#[test]
fn a_role_that_is_nearly_a_known_one_is_refused_with_that_one() {
    let (mut d, path) = begun();
    let bytes = fs::read(&path).unwrap();
    for (role, meant) in [
        ("asistant", "assistant"),
        ("Assistant", "assistant"),
        ("users", "user"),
        ("tool_result", "toolResult"),
    ] {
        let message = json!({"role": role, "content": []});
        let error = d.err("append_message", json!({ "message": message }));
        assert_eq!(error.kind, "entryInvalid", "{role}");
        assert_eq!(error.details("field"), "message.role");
        let hint = format!("did you mean {meant:?}?");
        assert!(error.message.contains(&hint), "{error:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was written");
    for role in ["developer", "tool", "oracle", "human"] {
        let message = json!({"role": role, "content": "kept"});
        d.ok("append_message", json!({ "message": message }));
    }
}

/// The `details` of a client's summary were once stored at any depth, even with five million levels, which no parser
/// can read.
#[test]
fn nesting_over_256_is_refused_in_everything_that_is_stored() {
    let mut d = Daemon::start();
    d.ignore_bookkeeping();
    for name in [
        "event_resolved",
        "session_before_compact",
        "session_compact",
    ] {
        d.ignore(name);
    }
    let answers = json!({"session_before_tree": {}, "session_before_compact": {}});
    d.init(json!({ "answers": answers }));
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let refused = |d: &mut Daemon, method: &str, params: &str, field: &str| {
        let id = d.send_text(method, params);
        let error = d.response(&id).expect_err(method);
        assert_eq!(error.kind, "entryInvalid", "{method}: {error:?}");
        assert_eq!(error.details("field"), field, "{method}");
    };
    let usage = json!({"entryId": "a1", "summary": {"summary": "s", "usage": {"input": "many"}}});
    refused(&mut d, "branch", &usage.to_string(), "summary.usage.input");
    for (levels, is_refused) in [(257, true), (5_000_000, true), (256, false)] {
        let details = nested(levels);
        let leaf = d.leaf();
        let branch =
            format!(r#"{{"entryId":"a1","summary":{{"summary":"s","details":{details}}}}}"#);
        if is_refused {
            refused(&mut d, "branch", &branch, "summary.details");
            let message =
                format!(r#"{{"customType":"c","content":"x","display":true,"details":{details}}}"#);
            refused(&mut d, "send_message", &message, "");
            assert_eq!(d.leaf(), leaf, "nothing was written");
        }
        let wanted = json!({"targetId": "u1", "summarize": true});
        let navigation = d.send("navigate_tree", wanted);
        let event = d.notification("session_before_tree");
        let event_id = event["eventId"].as_str().unwrap();
        let answer = format!(
            r#"{{"eventId":"{event_id}","result":{{"summary":{{"summary":"s","details":{details}}}}}}}"#
        );
        if is_refused {
            refused(&mut d, "answer_event", &answer, "result.summary.details");
            d.still_waits(&navigation);
            d.answer(&event, json!({"cancel": true}));
            assert_eq!(d.response(&navigation).unwrap()["cancelled"], true);
        } else {
            let id = d.send_text("answer_event", &answer);
            assert_eq!(d.response(&id).unwrap()["accepted"], true);
            assert_eq!(d.response(&navigation).unwrap()["cancelled"], false);
        }
    }
    d.set_leaf(Some("a2"));
    let compaction = d.send("compact", json!({"keepRecentTokens": 1}));
    let event = d.notification("session_before_compact");
    let event_id = event["eventId"].as_str().unwrap();
    let details = nested(257);
    let answer = format!(
        r#"{{"eventId":"{event_id}","result":{{"compaction":{{"summary":"s","details":{details}}}}}}}"#
    );
    refused(&mut d, "answer_event", &answer, "result.compaction.details");
    d.answer(&event, json!({"compaction": {"summary": "s"}}));
    d.response(&compaction).unwrap();
}
