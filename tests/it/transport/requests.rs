//! Malformed requests, and ids.

use crate::harness::*;

/// Sends one malformed line, and checks the code, kind and id of its answer.
#[track_caller]
fn check_line(line: &[u8], code: i64, kind: &str, id: Json) {
    let mut input = line.to_vec();
    input.extend_from_slice(
        b"\n{\"jsonrpc\":\"2.0\",\"id\":\"after\",\"method\":\"list_sessions\"}\n",
    );
    let output = Home::new().run(&[], &[], input).clean();
    let lines = output.lines();
    let shown = String::from_utf8_lossy(line).into_owned();
    assert_eq!(lines.len(), 2, "one answer each for {shown:?}: {lines:?}");
    let refusal = lines
        .iter()
        .find(|m| m["id"] != "after")
        .expect("the line is answered");
    assert_eq!(refusal["error"]["code"], code, "{shown:?}: {refusal}");
    assert_eq!(
        refusal["error"]["data"]["kind"], kind,
        "{shown:?}: {refusal}"
    );
    assert!(
        refusal["error"]["data"]["retryable"].is_boolean(),
        "{shown:?}: {refusal}"
    );
    assert_eq!(refusal["id"], id, "{shown:?}: {refusal}");
    let after = lines
        .iter()
        .find(|m| m["id"] == "after")
        .expect("the connection goes on");
    assert_eq!(after["result"]["sessions"], json!([]));
}

#[test]
fn lines_that_are_not_json_are_parse_errors() {
    for line in [
        &b"nonsense"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sess",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"} trailing",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
        b"\xc3\x28",
    ] {
        check_line(line, -32700, "parseError", Json::Null);
    }
}

#[test]
fn json_that_is_not_a_request_object_is_an_invalid_request() {
    for line in [
        "null",
        "42",
        "\"text\"",
        "true",
        "{}",
        "{\"id\":-1}",
        "{\"id\":1}",
        "{\"jsonrpc\":\"2.0\"}",
    ] {
        check_line(line.as_bytes(), -32600, "invalidRequest", Json::Null);
    }
    check_line(
        br#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        -32600,
        "invalidRequest",
        Json::Null,
    );
}

#[test]
fn ids_other_than_strings_and_safe_integers_are_refused() {
    for id in [
        "null",
        "-1",
        "1.5",
        "true",
        "[]",
        "{}",
        "9007199254740992",
        "123456789012345678901234567890",
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"list_sessions"}}"#);
        check_line(line.as_bytes(), -32600, "invalidRequest", Json::Null);
    }
}

#[test]
fn ids_are_returned_as_they_were_sent() {
    let mut d = Daemon::start();
    for id in [
        json!(0),
        json!(9007199254740991_u64),
        json!(""),
        json!("1"),
        json!(1),
        json!("naïve \" \\ \u{1F600}"),
    ] {
        d.send_as(id.clone(), "list_sessions", json!({}));
        assert_eq!(
            d.response(&id).expect("answered")["sessions"],
            json!([]),
            "id {id}"
        );
    }
}

#[test]
fn the_version_member_is_required() {
    for line in [
        r#"{"id":7,"method":"create_session"}"#,
        r#"{"jsonrpc":"1.0","id":7,"method":"create_session"}"#,
        r#"{"jsonrpc":2.0,"id":7,"method":"create_session"}"#,
    ] {
        let lines = Daemon::script(&[line.to_owned()]);
        assert_eq!(lines.len(), 1, "{line}: {lines:?}");
        assert_eq!(lines[0]["error"]["code"], -32600, "{line}: {lines:?}");
        assert_eq!(
            lines[0]["error"]["data"]["kind"], "invalidRequest",
            "{line}"
        );
    }
}

#[test]
fn an_unknown_method_is_method_not_found() {
    let mut d = Daemon::start();
    let error = d.err("no_such_method", json!({}));
    assert_eq!(
        (error.code, error.kind.as_str()),
        (-32601, "methodNotFound")
    );
    let error = d.err("createSession", json!({}));
    assert_eq!(
        (error.code, error.kind.as_str()),
        (-32601, "methodNotFound")
    );
}

#[test]
fn a_batch_is_refused_whole_and_nothing_of_it_runs() {
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"create_session","params":{"name":"from a batch"}}"#;
    for batch in [
        format!("[{call}]"),
        format!("[{call},{call}]"),
        "[]".to_owned(),
        "[1]".to_owned(),
    ] {
        let home = Home::new();
        let lines = script_in(&home, &[], std::slice::from_ref(&batch));
        assert_eq!(lines.len(), 1, "{batch}: {lines:?}");
        assert_eq!(lines[0]["error"]["code"], -32005, "{batch}");
        assert_eq!(
            lines[0]["error"]["data"]["kind"], "batchUnsupported",
            "{batch}"
        );
        assert_eq!(lines[0]["id"], Json::Null, "{batch}");
        assert!(home.session_files().is_empty(), "nothing ran");
    }
}

#[test]
fn absent_null_and_empty_params_mean_none() {
    for params in [
        "",
        r#","params":null"#,
        r#","params":{}"#,
        r#","params":[]"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"list_sessions"{params}}}"#);
        let lines = Daemon::script(std::slice::from_ref(&line));
        assert_eq!(lines.len(), 1, "{line}");
        assert_eq!(
            lines[0]["result"]["sessions"],
            json!([]),
            "{line}: {lines:?}"
        );
    }
}

#[test]
fn positional_params_are_refused() {
    let mut d = Daemon::start();
    let error = d.err("list_sessions", json!(["/tmp"]));
    assert_eq!((error.code, error.kind.as_str()), (-32602, "invalidParams"));
}

#[test]
fn errors_of_params_name_the_field() {
    let mut d = Daemon::quiet();
    d.create();
    d.user("u1", "hello");
    for (method, params, field) in [
        ("get_entry", json!({"entryId": "u1", "bogus": 1}), "bogus"),
        ("get_entry", json!({"entryId": 5}), "entryId"),
        ("get_entry", json!({}), "entryId"),
        ("get_entry", json!({"entry_id": "u1"}), "entry_id"),
        ("list_sessions", json!({"sort": "sideways"}), "sort"),
        ("list_sessions", json!({"limit": -1}), "limit"),
        ("create_session", json!({"ephemeral": "yes"}), "ephemeral"),
        ("append_message", json!({}), "message"),
        ("append_entries", json!({"entries": 5}), "entries"),
        ("set_leaf", json!({}), "leafId"),
        (
            "navigate_tree",
            json!({"targetId": "u1", "onNoAnswer": "shrug"}),
            "onNoAnswer",
        ),
        ("get_tree", json!({"filter": "nothing"}), "filter"),
    ] {
        let error = d.err(method, params.clone());
        assert_eq!(
            (error.code, error.kind.as_str()),
            (-32602, "invalidParams"),
            "{method} {params}"
        );
        let named = error.details("field").as_str().expect("field is a string");
        assert!(
            named == field || named.ends_with(&format!(".{field}")),
            "{method} {params} names {named:?}"
        );
        assert!(
            error.details("reason").is_string(),
            "{method} {params}: {error:?}"
        );
    }
    let error = d.err(
        "branch",
        json!({"entryId": "u1", "summary": {"summary": "s", "bogus": 1}}),
    );
    assert_eq!(error.kind, "invalidParams");
    assert!(
        error.details("field").as_str().unwrap().contains("bogus"),
        "{error:?}"
    );
}

#[test]
fn params_are_checked_before_state() {
    let mut d = Daemon::start();
    let error = d.err(
        "get_entry",
        json!({"sessionId": "no-such-session", "entryId": "u1", "bogus": 1}),
    );
    assert_eq!(error.kind, "invalidParams");
    let error = d.err(
        "get_entry",
        json!({"sessionId": "no-such-session", "entryId": "u1"}),
    );
    assert_eq!(error.kind, "sessionNotFound");
}

#[test]
fn messages_without_an_id_run_and_are_never_answered() {
    let mut d = Daemon::quiet();
    d.notify("create_session", json!({"sessionId": "made-silently"}));
    d.notify(
        "append_message",
        json!({"message": user("hello"), "entryId": "u1"}),
    );
    d.notify("append_message", json!({"message": 5}));
    d.notify("no_such_method", json!({}));
    assert_eq!(d.leaf(), "u1");
    assert_eq!(d.ids(), ["u1"]);
}

#[test]
fn an_id_in_flight_is_refused_until_its_answer() {
    let mut d = Daemon::quiet();
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    d.ignore("event_resolved");
    d.send_as(json!("mine"), "navigate_tree", json!({"targetId": "a1"}));
    let event = d.notification("session_before_tree");
    d.bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"mine\",\"method\":\"get_leaf\"}\n".to_vec());
    let error = d.response_with_null_id();
    assert_eq!(
        (error.code, error.kind.as_str()),
        (-32600, "invalidRequest")
    );
    d.answer(&event, json!({}));
    assert_eq!(d.response(&json!("mine")).unwrap()["newLeafId"], "a1");

    d.send_as(json!("mine"), "get_leaf", json!({}));
    assert_eq!(
        d.response(&json!("mine")).unwrap()["leafId"],
        "a1",
        "free again after its answer"
    );
}

/// The id of an append could once be used again while the append waited for its group.
#[test]
fn an_id_is_in_use_until_its_response_is_sent() {
    let append = |id: &str, params: Json| (json!(id), "append_message", params);
    let mut d = Daemon::quiet();
    d.create();
    d.send_together(&[
        append("first", json!({"message": user("x"), "entryId": "e1"})),
        append(
            "twice",
            json!({"message": user("x"), "expectedLeafId": "nope"}),
        ),
        append("twice", json!({"message": user("x"), "entryId": "e2"})),
    ]);
    assert_eq!(d.response_with_null_id().kind, "invalidRequest");
    assert_eq!(d.response(&json!("first")).unwrap()["leafId"], "e1");
    let refused = d.response(&json!("twice")).unwrap_err();
    assert_eq!(refused.kind, "leafMoved");
    assert_eq!(d.ids(), ["e1"]);
    // The response was sent, so its id can be used again.
    d.send_together(&[append(
        "twice",
        json!({"message": user("x"), "entryId": "e2"}),
    )]);
    assert_eq!(d.response(&json!("twice")).unwrap()["leafId"], "e2");
}

/// A line `null` on stdin, or in a file, once ended the daemon.
#[test]
fn a_null_line_on_stdin_or_in_a_file_does_not_end_the_daemon() {
    let mut d = Daemon::start();
    d.bytes(b"null\n".to_vec());
    assert_eq!(d.response_with_null_id().kind, "invalidRequest");
    assert_eq!(d.ok("list_sessions", json!({}))["sessions"], json!([]));
    let text = format!("{}null\n", Log::new("s1").user("u1", "", "x").text());
    let (mut d, _) = Daemon::opened(text.as_bytes());
    assert_eq!(d.leaf(), "u1");
}
