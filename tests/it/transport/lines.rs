//! The framing by lines: separators, and the longest line. Requests run in order, and each is answered once.

use std::time::{Duration, Instant};

use crate::harness::*;
use treelined_core::test_support::time::check_linear;

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
fn only_a_line_feed_separates_requests() {
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
fn a_frame_over_the_limit_is_skipped_and_the_connection_continues() {
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
fn a_frame_of_exactly_the_limit_is_accepted() {
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
        began.elapsed() < Duration::from_secs(60),
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
fn each_request_sees_the_effects_of_earlier_ones() {
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

/// After each block that arrived, the whole buffer was once searched from its beginning, so that a large request took
/// minutes.
#[test]
fn a_request_line_of_8_mb_is_read_in_linear_time() {
    check_linear("a request", [1 << 18, 8 << 20], |bytes| {
        let text = "x".repeat(bytes);
        let mut d = Daemon::quiet();
        d.create();
        let began = Instant::now();
        d.user("big", &text);
        let took = began.elapsed();
        let stored = d.entry("big")["message"]["content"].clone();
        assert_eq!(stored.as_str().map(str::len), Some(bytes));
        took
    });
}
