//! Secrets in exports.

use super::*;

fn secret() -> Log {
    let token = token();
    Log::new("s1")
        .user("u1", "", &format!("use {token}"))
        .message("a1", "u1", json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": token},
            {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": format!("curl -H 'Authorization: Bearer {}' https://a:pw12@h/", "x1".repeat(12)), &token: [token]}},
        ]}))
        .message("r1", "a1", json!({"role": "toolResult", "toolCallId": "t1", "toolName": token, "content": [{"type": "text", "text": format!("\u{1b}[1m{token}\nhash {}", "ab".repeat(20))}]}))
        .entry("custom_message", "m1", "r1", json!({"customType": token, "content": token, "display": true}))
        .label("l1", "m1", "u1", json!(token))
        .entry("session_info", "n1", "l1", json!({"name": format!("about {token}")}))
}

#[test]
fn secrets_are_replaced_in_every_string_and_counted() {
    let home = Home::new();
    let (mut d, source) = opened(&home, &secret());
    let before = std::fs::read(&source).unwrap();
    for format in ["markdown", "text", "html"] {
        let result = d.ok("export_session", json!({"format": format, "scope": "tree"}));
        let mut text = result["content"].as_str().unwrap().to_owned();
        if format == "html" {
            for (_, chunk) in page::chunks(&text) {
                text.push_str(&chunk.to_string());
            }
        }
        assert!(
            !text.contains("ghp_") && !text.contains("pw12") && !text.contains("x1x1"),
            "{format}: {text}"
        );
        assert!(text.contains("[redacted:github-token]"), "{format}");
        assert!(text.contains(&"ab".repeat(20)), "a hash stays");
        let redactions = result["redactions"].as_array().unwrap();
        let kinds: Vec<_> = redactions
            .iter()
            .map(|item| item["kind"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            ["authorization", "github-token", "url-credentials"],
            "{format}"
        );
        assert_eq!(redactions[0]["entryIds"], json!(["a1"]));
        assert_eq!(
            redactions[2],
            json!({"kind": "url-credentials", "count": 1, "entryIds": ["a1"]})
        );
        let tokens = &redactions[1];
        let least = if format == "html" { 9 } else { 8 };
        assert!(
            tokens["count"].as_u64().unwrap() >= least,
            "{format}: {tokens}"
        );
    }
    assert_eq!(std::fs::read(&source).unwrap(), before);
}

#[test]
fn nothing_is_replaced_without_redaction_and_in_session_files() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &secret());
    for params in [
        json!({"format": "markdown", "redact": false}),
        json!({"format": "jsonl"}),
    ] {
        let result = d.ok("export_session", params);
        assert!(result["content"].as_str().unwrap().contains(&token()));
        assert_eq!(result["redactions"], json!([]));
    }
}

#[test]
fn paths_in_the_home_directory_are_shortened_on_request() {
    let home = Home::new();
    let in_home = home.files().join("project/x.rs").display().to_string();
    let (mut d, _) = opened(&home, &Log::new("s1").user("u1", "", &in_home));
    assert!(content(&mut d, json!({"format": "text"})).contains(&in_home));
    let short = content(&mut d, json!({"format": "text", "home": "shorten"}));
    let is_home = d.ok("export_session", json!({"format": "text"}))["content"]
        .as_str()
        .unwrap()
        .contains(&in_home);
    assert!(
        is_home
            && short.contains("~/")
            && short.contains("project/x.rs")
            && !short.contains(&in_home),
        "{short}"
    );
}
