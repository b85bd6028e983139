//! The wire below the methods: framing, ids, errors of form, limits, order, backpressure, and how the
//! daemon ends. protocol.md §1.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::*;

/// One hostile line; the expected code, and the id its answer carries.
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
fn json_that_is_no_request_object_is_an_invalid_request() {
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
fn ids_come_back_as_they_were_sent() {
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
fn an_unknown_method_is_named_as_such() {
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
fn wrong_params_name_the_field() {
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
fn an_id_in_flight_is_taken_until_its_answer() {
    let mut d = Daemon::quiet();
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    d.ignore("event_resolved");
    d.send_as(json!("mine"), "navigate_tree", json!({"targetId": "a1"}));
    let event = d.notification("session_before_tree");
    d.bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"mine\",\"method\":\"get_leaf\"}\n".to_vec());
    let error = d.response_to_nobody();
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

#[test]
fn a_bom_and_carriage_returns_are_tolerated() {
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"list_sessions"}"#;
    let two = line.replace("\"id\":1", "\"id\":2");
    for input in [
        format!("\u{feff}{line}\n{two}\n"),
        format!("{line}\r\n{two}\r\n"),
        format!("\u{feff}{line}\r\n{two}"),
    ] {
        let output = Home::new().run(&[], &[], input.clone()).clean();
        assert_eq!(output.responses().len(), 2, "{input:?}: {output:?}");
        for (id, answer) in output.responses() {
            assert_eq!(answer["result"]["sessions"], json!([]), "{id} of {input:?}");
        }
    }
}

#[test]
fn only_a_line_feed_separates_records() {
    let mut d = Daemon::quiet();
    d.create();
    let text = "a\u{2028}b\u{2029}c\u{85}d";
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\r\"id\":77,\r\"method\":\"append_message\",\"params\":{}}}",
        json!({
            "message": user(text), "entryId": "u1",
        })
    );
    d.raw_line(line.as_bytes());
    assert_eq!(d.response(&json!(77)).unwrap()["entryId"], "u1");
    let id = d.send("get_entry", json!({"entryId": "u1"}));
    let answer = d.response_text(&id);
    assert!(
        !answer.contains(['\u{2028}', '\u{2029}']),
        "escaped on output: {answer}"
    );
    assert!(
        answer.contains("\\u2028") && answer.contains("\\u2029"),
        "{answer}"
    );
    assert_eq!(
        parse(&answer).unwrap()["result"]["entry"]["message"]["content"],
        text
    );
}

#[test]
fn a_frame_over_the_limit_is_skipped_and_the_connection_goes_on() {
    let big = "x".repeat(100_000);
    let id_first = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"create_session","params":{{"name":"{big}"}}}}"#
    );
    let id_last = format!(
        r#"{{"jsonrpc":"2.0","method":"create_session","params":{{"name":"{big}"}},"id":6}}"#
    );
    let home = Home::new();
    let lines = script_in(
        &home,
        &["--max-frame-bytes", "65536"],
        &[
            id_first,
            id_last,
            request(&json!(7), "list_sessions", &json!({})),
        ],
    );
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(
        lines
            .iter()
            .filter(|m| m["error"]["code"] == -32007)
            .count(),
        2,
        "{lines:?}"
    );
    for (id, kind) in [
        (json!(5), "requestTooLarge"),
        (Json::Null, "requestTooLarge"),
    ] {
        let answer = lines
            .iter()
            .find(|m| m["id"] == id)
            .unwrap_or_else(|| panic!("no answer to {id}: {lines:?}"));
        assert_eq!(answer["error"]["data"]["kind"], kind, "{answer}");
    }
    let after = lines
        .iter()
        .find(|m| m["id"] == 7)
        .expect("the connection goes on");
    assert_eq!(after["result"]["sessions"], json!([]));
}

#[test]
fn a_frame_of_exactly_the_limit_is_taken() {
    let empty = r#"{"jsonrpc":"2.0","id":1,"method":"list_sessions","params":{"query":""}}"#;
    let exact = empty.replace("\"\"", &format!("\"{}\"", "q".repeat(65536 - empty.len())));
    assert_eq!(exact.len(), 65536);
    let lines = script_in(&Home::new(), &["--max-frame-bytes", "65536"], &[exact]);
    assert_eq!(lines[0]["result"]["sessions"], json!([]), "{lines:?}");
}

#[test]
fn a_line_of_100_megabytes_is_answered_in_linear_time() {
    let mut input =
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"create_session\",\"params\":{\"name\":\""
            .to_vec();
    input.resize(100 << 20, b'x');
    input.extend_from_slice(b"\"}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"list_sessions\"}\n");
    let began = Instant::now();
    let answers = Home::new().run(&[], &[], input).clean().responses();
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "took {:?}",
        began.elapsed()
    );
    assert_eq!(answers["1"]["error"]["data"]["kind"], "requestTooLarge");
    assert_eq!(answers["2"]["result"]["sessions"], json!([]));
}

#[test]
fn a_last_line_without_line_feed_is_executed() {
    let home = Home::new();
    let input = format!(
        "{}\n{}",
        request(&json!(1), "create_session", &json!({})),
        request(
            &json!(2),
            "append_message",
            &json!({"message": user("hello"), "entryId": "u1"})
        ),
    );
    let answers = home.run(&[], &[], input).clean().responses();
    assert_eq!(answers["2"]["result"]["entryId"], "u1");
    assert_eq!(file_lines(&home.only_file()).len(), 2);
}

#[test]
fn half_a_line_at_the_end_is_a_parse_error() {
    let input = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"met";
    let lines = Home::new().run(&[], &[], input).clean().lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|m| m["id"] == 1 && m["result"].is_object()),
        "{lines:?}"
    );
    assert!(
        lines
            .iter()
            .any(|m| m["id"].is_null() && m["error"]["code"] == -32700),
        "{lines:?}"
    );
}

#[test]
fn nothing_at_all_ends_well() {
    let output = Home::new().run(&[], &[], "").clean();
    assert_eq!(output.text(), "");
}

#[test]
fn ten_thousand_pipelined_calls_are_each_answered_once() {
    let mut lines = vec![
        request(&json!(0), "create_session", &json!({})),
        request(
            &json!("first"),
            "append_message",
            &json!({"message": user("hello"), "entryId": "u1"}),
        ),
    ];
    lines.extend((1..=10_000).map(|n| request(&json!(n), "get_leaf", &json!({}))));
    let input: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let answers = Home::new().run(&[], &[], input).clean().responses();
    assert_eq!(answers.len(), 10_002);
    for n in 1..=10_000 {
        assert_eq!(
            answers[&n.to_string()]["result"]["leafId"],
            "u1",
            "call {n}"
        );
    }
}

#[test]
fn each_request_sees_all_earlier_ones() {
    let mut lines = vec![request(&json!("c"), "create_session", &json!({}))];
    for n in 0..200 {
        let id = format!("e{n}");
        lines.push(request(
            &json!(2 * n),
            "append_message",
            &json!({"message": user("x"), "entryId": id}),
        ));
        lines.push(request(&json!(2 * n + 1), "get_leaf", &json!({})));
    }
    let input: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let answers = Home::new().run(&[], &[], input).clean().responses();
    for n in 0..200 {
        assert_eq!(
            answers[&(2 * n + 1).to_string()]["result"]["leafId"],
            format!("e{n}")
        );
    }
}

#[test]
fn everything_accepted_is_answered_and_kept_at_eof() {
    let home = Home::new();
    let mut lines = vec![request(&json!("c"), "create_session", &json!({}))];
    lines.extend((0..500).map(|n| {
        request(
            &json!(n),
            "append_message",
            &json!({"message": user("x"), "entryId": format!("e{n}")}),
        )
    }));
    let input: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let answers = home.run(&[], &[], input).clean().responses();
    assert_eq!(answers.len(), 501);
    assert_eq!(
        file_lines(&home.only_file()).len(),
        501,
        "header and 500 entries"
    );
}

// --- ends ---

/// A navigation that waits for this client's answer.
fn waiting_navigation() -> (Daemon, Json) {
    let mut d = Daemon::start();
    for name in ["entries_appended", "session_opened", "session_closed"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let id = d.send("navigate_tree", json!({"targetId": "a1"}));
    let event = d.notification("session_before_tree");
    assert!(event["timeoutMs"].as_u64() > Some(0), "{event}");
    (d, id)
}

#[track_caller]
fn ends_with_the_question_aborted(mut d: Daemon, id: &Json) {
    let began = Instant::now();
    assert_eq!(d.exited(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "took {:?}",
        began.elapsed()
    );
    let result = d.response(id).expect("a cancelled navigation is no error");
    assert_eq!(result["cancelled"], true, "{result}");
    assert_eq!(result["reason"], "aborted", "{result}");
    assert_eq!(d.notification("event_resolved")["outcome"], "aborted");
    let home = d.stop();
    assert_eq!(
        file_lines(&home.only_file()).len(),
        4,
        "nothing was written"
    );
}

#[test]
fn eof_aborts_open_questions() {
    let (mut d, id) = waiting_navigation();
    d.close_stdin();
    ends_with_the_question_aborted(d, &id);
}

#[test]
fn sigterm_ends_like_eof() {
    let (d, id) = waiting_navigation();
    d.signal(Signal::TERM);
    ends_with_the_question_aborted(d, &id);
}

#[test]
fn sigint_ends_like_eof() {
    let (d, id) = waiting_navigation();
    d.signal(Signal::INT);
    ends_with_the_question_aborted(d, &id);
}

#[test]
fn shutdown_answers_and_ends_like_eof() {
    let (mut d, id) = waiting_navigation();
    assert_eq!(d.ok("shutdown", json!({})), json!({}));
    ends_with_the_question_aborted(d, &id);
}

#[test]
fn a_reader_that_has_gone_ends_the_daemon() {
    let home = Home::new();
    let mut child = home.command(&[], &[]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}\n";
    stdin.write_all(line).unwrap();
    // Stdin stays open: what ends the daemon is the broken pipe, not an EOF.
    wait(&mut child, Duration::from_secs(5));
    drop(stdin);
}

// --- backpressure ---

/// A session whose one entry is large, so that few answers fill any pipe.
fn with_a_large_entry(d: &mut Daemon) {
    d.create();
    d.user("big", &"y".repeat(40_000));
}

#[test]
fn a_client_that_stops_reading_gets_everything_when_it_reads_on() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "1000000"], &[]);
    d.ignore_bookkeeping();
    d.deadline = Duration::from_secs(30);
    with_a_large_entry(&mut d);
    d.stop_reading();
    let asked: Vec<_> = (0..500)
        .map(|_| d.send("get_entry", json!({"entryId": "big"})))
        .collect();
    std::thread::sleep(Duration::from_millis(700));
    d.read_on();
    for id in asked {
        let entry = d
            .response(&id)
            .expect("without an open question nothing is refused");
        assert_eq!(entry["entry"]["id"], "big");
    }
}

#[test]
fn with_an_open_question_a_stalled_client_can_still_answer() {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "200000"], &[]);
    d.ignore_bookkeeping();
    d.ignore("event_resolved");
    d.ignore("events_lost");
    d.deadline = Duration::from_secs(30);
    d.init(json!({"answers": {"session_before_tree": {}}}));
    with_a_large_entry(&mut d);
    d.chain(&["u1"]);
    let navigation = d.send("navigate_tree", json!({"targetId": "big", "rewind": true}));
    let event = d.notification("session_before_tree");
    d.stop_reading();
    let asked: Vec<_> = (0..300)
        .map(|_| d.send("get_entry", json!({"entryId": "big"})))
        .collect();
    let append = d.send(
        "append_message",
        json!({"message": user("too much"), "entryId": "refused"}),
    );
    let answer = d.send(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {"cancel": true}}),
    );
    std::thread::sleep(Duration::from_millis(500));
    d.read_on();
    let mut overloaded = 0;
    for id in asked {
        match d.response(&id) {
            Ok(result) => assert_eq!(result["entry"]["id"], "big"),
            Err(error) => {
                assert_eq!((error.code, error.kind.as_str()), (-32009, "overloaded"));
                overloaded += 1;
            }
        }
    }
    assert!(overloaded > 0, "12 MB of answers do not fit 200 kB");
    assert_eq!(
        d.response(&append)
            .expect_err("refused like all others")
            .kind,
        "overloaded"
    );
    assert_eq!(
        d.response(&answer).expect("answers get through")["accepted"],
        true
    );
    assert_eq!(
        d.response(&navigation).unwrap()["reason"],
        "cancelledByClient"
    );
    assert_eq!(
        d.ids(),
        ["big", "u1"],
        "what was answered overloaded was not executed"
    );
}

// --- Content-Length framing ---

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Bodies of the frames in `output`.
#[track_caller]
fn frames(output: &[u8]) -> Vec<Json> {
    let mut reader = BufReader::new(output);
    let mut found = Vec::new();
    loop {
        let mut length = None;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap() == 0 {
                assert!(length.is_none(), "headers without a body");
                return found;
            }
            let header = header
                .strip_suffix("\r\n")
                .expect("headers end with \\r\\n");
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':').expect("a header has a colon");
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse::<usize>().expect("a number"));
            }
        }
        let mut body = vec![0; length.expect("a length in each block")];
        reader.read_exact(&mut body).unwrap();
        found.push(parse(std::str::from_utf8(&body).unwrap()).unwrap());
    }
}

#[test]
fn content_length_framing_is_detected_and_used_both_ways() {
    let text = "grüße \u{1F600}";
    let create = request(&json!(1), "create_session", &json!({}));
    let append = request(
        &json!(2),
        "append_message",
        &json!({"message": user(text), "entryId": "u1"}),
    );
    let get = request(&json!(3), "get_entry", &json!({"entryId": "u1"}));
    let input = format!("{}{}{}", framed(&create), framed(&append), framed(&get));
    let output = Home::new().run(&[], &[], input).clean();
    let all = frames(&output.stdout);
    let got = all
        .iter()
        .find(|m| m["id"] == 3)
        .expect("the third is answered");
    assert_eq!(got["result"]["entry"]["message"]["content"], text);
    assert_eq!(all.iter().filter(|m| m.get("method").is_none()).count(), 3);
    assert!(
        all.iter().any(|m| m["method"] == "entries_appended"),
        "notifications are framed too"
    );
}

#[test]
fn header_names_are_case_insensitive_and_others_are_skipped() {
    let body = |n: u32| request(&json!(n), "list_sessions", &json!({}));
    let (one, two, three) = (body(1), body(2), body(3));
    let input = format!(
        "content-length: {}\r\n\r\n{one}Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-LENGTH:{}\r\n\r\n{two}{}",
        one.len(),
        two.len(),
        framed(&three),
    );
    let output = Home::new().run(&[], &[], input).clean();
    assert_eq!(frames(&output.stdout).len(), 3);
}

#[test]
fn another_header_may_stand_first_of_all() {
    let body = request(&json!(1), "list_sessions", &json!({}));
    let input = format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let output = Home::new().run(&[], &[], input).clean();
    let all = frames(&output.stdout);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["result"]["sessions"], json!([]));
}

#[test]
fn bad_bodies_in_frames_are_answered_and_the_connection_goes_on() {
    let input = format!(
        "{}{}{}{}",
        framed("{\"jsonrpc\":"),
        framed("null"),
        framed("[]"),
        framed(&request(&json!(1), "list_sessions", &json!({}))),
    );
    let output = Home::new().run(&[], &[], input).clean();
    let codes: Vec<_> = frames(&output.stdout)
        .iter()
        .map(|m| m["error"]["code"].clone())
        .collect();
    for code in [json!(-32700), json!(-32600), json!(-32005), Json::Null] {
        assert_eq!(
            codes.iter().filter(|c| **c == code).count(),
            1,
            "{code} in {codes:?}"
        );
    }
}

#[test]
fn a_header_block_without_a_length_ends_the_connection() {
    let input = format!(
        "{}Content-Type: application/json\r\n\r\n{{}}",
        framed(&request(&json!(1), "list_sessions", &json!({})))
    );
    let output = Home::new().run(&[], &[], input);
    assert_eq!(output.code, Some(1), "{output:?}");
    let all = frames(&output.stdout);
    assert!(
        all.iter().any(|m| m["id"] == 1 && m["result"].is_object()),
        "{all:?}"
    );
    assert!(
        all.iter()
            .any(|m| m["id"].is_null() && m["error"]["code"] == -32700),
        "{all:?}"
    );
}

#[test]
fn a_frame_too_large_is_skipped_in_this_framing_too() {
    let body = request(
        &json!(9),
        "create_session",
        &json!({"name": "x".repeat(100_000)}),
    );
    let input = format!(
        "{}{}",
        framed(&body),
        framed(&request(&json!(10), "list_sessions", &json!({})))
    );
    let output = Home::new()
        .run(&["--max-frame-bytes", "65536"], &[], input)
        .clean();
    let all = frames(&output.stdout);
    let refused = all
        .iter()
        .find(|m| m["id"] == 9)
        .expect("answered with its id");
    assert_eq!(refused["error"]["data"]["kind"], "requestTooLarge");
    assert!(
        all.iter().any(|m| m["id"] == 10 && m["result"].is_object()),
        "{all:?}"
    );
}

// --- logs ---

#[test]
fn logs_go_to_stderr_and_never_hold_content() {
    let secret = "sk-very-secret-content";
    let input = format!(
        "{}\n{}\n{}\nnonsense {secret}\n",
        request(&json!(1), "create_session", &json!({})),
        request(
            &json!(2),
            "append_message",
            &json!({"message": user(secret), "entryId": "u1"})
        ),
        request(&json!(3), "get_context", &json!({})),
    );
    let output = Home::new().run(&[], &[("TREELINED_LOG", "trace")], input);
    assert_eq!(output.code, Some(0));
    assert!(!output.stderr.is_empty(), "trace says something");
    assert!(!output.stderr.contains(secret), "{}", output.stderr);
    // `lines` refuses whatever is not protocol.
    assert!(output.lines().len() >= 4);
}

/// At the level of `debug` the method of a request stood in the log as the client had spelled it: whole,
/// however long, and with its escapes.
#[test]
fn a_log_holds_no_method_that_is_none() {
    let evil = format!("\u{9b}2J\u{202e}\u{1b}[31m{}", "x".repeat(100_000));
    let lines = [
        request(&json!(1), "list_sessions", &json!({})),
        request(&json!(2), &evil, &json!({})),
    ];
    let output = Home::new().run(&[], &[("TREELINED_LOG", "trace")], lines.join("\n"));
    assert_eq!(output.code, Some(0));
    let log = &output.stderr;
    assert!(
        log.contains("list_sessions") && log.contains("unknown"),
        "{log}"
    );
    assert!(!log.contains("2J") && log.len() < 10_000, "{log}");
    let error = output.responses()["2"]["error"].clone();
    assert_eq!(error["data"]["kind"], "methodNotFound");
    assert!(error["message"].as_str().unwrap().len() < 1000);
}
