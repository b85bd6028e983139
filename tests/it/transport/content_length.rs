//! `Content-Length` framing.

use std::io::{BufRead, BufReader, Read};

use crate::harness::*;

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The bodies of the frames in `output`.
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
fn header_names_are_case_insensitive_and_unknown_headers_are_skipped() {
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
fn another_header_may_come_first() {
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
fn bad_bodies_in_frames_are_answered_and_the_connection_continues() {
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
fn a_frame_over_the_limit_is_skipped() {
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
