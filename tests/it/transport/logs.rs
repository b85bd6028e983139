//! The log goes only to stderr, and has no content of conversations.

use crate::harness::*;

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
    // `lines` fails if a line is not JSON-RPC.
    assert!(output.lines().len() >= 4);
}

/// At the level `debug` the log once had the method of a request as the client had spelled it, at any length and with
/// control characters.
#[test]
fn a_log_does_not_hold_the_name_of_an_unknown_method() {
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

/// Warnings of a library once went to stdout, and clients could not parse them.
#[test]
fn stdout_holds_no_log_at_any_level() {
    let home = Home::new();
    let path = home.file("s.jsonl", include_bytes!("../../data/invalid-json.jsonl"));
    for level in ["trace", "debug", "info", "not-a-level"] {
        let input = format!(
            "{}\nnonsense\n",
            request(&json!(1), "open_session", &json!({"path": path}))
        );
        let output = home.run(&[], &[("TREELINED_LOG", level)], input);
        assert_eq!(output.code, Some(0), "{level}: {output:?}");
        // `lines` fails if a line is not JSON-RPC.
        assert!(output.lines().iter().any(|m| m["id"] == 1), "{level}");
    }
}
