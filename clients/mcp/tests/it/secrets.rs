//! No answer shows a secret, unless the user has asked for it.

use crate::{Folders, Peer};
use serde_json::{Value, json};

/// Forms of tokens; no scanner of repositories takes them for real ones.
const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8j9K0LmNpQrStUvWxYzA1";
const ID: &str = "ghp_0000111122223333444455556666777788889";

/// A session in which every text that a client may write has the secret, and an id of the secret's form.
fn leaking(folders: &Folders) {
    let said = |role: &str, content: Value| json!({"role": role, "content": content});
    let arguments = json!({"command": format!("{} curl -H {SECRET}", "x".repeat(380)), "path": format!("/{SECRET}/file"), "file_path": format!("/{SECRET}/file")});
    let call = json!({"type": "toolCall", "id": "c1", "name": "read", "arguments": arguments});
    // The excerpt of the daemon ends within the secret.
    let long = format!("needle {} {SECRET}", "word ".repeat(36));
    let mut result = said(
        "toolResult",
        json!([{"type": "text", "text": format!("out {SECRET}")}]),
    );
    result["toolCallId"] = json!("c1");
    result["toolName"] = json!(format!("read {SECRET}"));
    let mut answer = said(
        "assistant",
        json!([{"type": "text", "text": "Reading."}, call]),
    );
    answer["model"] = json!(SECRET);
    answer["provider"] = json!("p");
    let custom = json!({"type": "custom", "id": "k1", "customType": SECRET, "data": {"id": SECRET, "deep": [{"key": SECRET}]}});
    let append =
        |id: &str, message: Value| ("append_message", json!({"entryId": id, "message": message}));
    folders.daemon(&[
        ("create_session", json!({"sessionId": "s1", "cwd": folders.path("work"), "name": format!("the {SECRET} build")})),
        append("u1", said("user", json!(format!("Use {SECRET}, and https://ada:{SECRET}@example.org.")))),
        append(ID, said("user", json!(long))),
        append("a1", answer),
        append("r1", result),
        append("h1", said("user", json!(format!("hid\u{200b}den {}\u{200b}{}", &SECRET[..9], &SECRET[9..])))),
        ("append_label", json!({"targetId": "h1", "label": format!("see {SECRET}")})),
        ("append_entries", json!({"entries": [custom, {"type": "custom", "customType": "note", "data": {"targetId": "h1", "reason": SECRET, "outcome": SECRET}}]})),
        ("branch", json!({"entryId": "u1", "summary": {"summary": format!("It was {SECRET}.")}})),
        append("u2", said("user", json!("Another way."))),
    ]);
}

/// The answers of every read tool and resource, as text.
fn answers(server: &mut Peer) -> Vec<(String, String)> {
    let calls = [
        ("search_history", json!({"query": "needle"})),
        ("search_history", json!({"query": "out"})),
        ("search_history", json!({"query": "see"})),
        (
            "search_history",
            json!({"query": &SECRET[4..20], "mode": "literal"}),
        ),
        ("list_sessions", json!({})),
        ("list_branches", json!({})),
        ("read_branch", json!({"tip": "h1"})),
        ("read_branch", json!({"tip": "h1", "from": ID})),
        ("read_entry", json!({"entry": "a1"})),
        ("read_entry", json!({"entry": "k1"})),
        ("compare_branches", json!({"a": "h1", "b": "u2"})),
        ("why_left", json!({"branch": "h1"})),
        ("read_entry", json!({"entry": "k1-is-not-there"})),
    ];
    let mut answers = Vec::new();
    for (tool, arguments) in calls {
        let answer = server.tool(tool, arguments.clone()).to_string();
        answers.push((format!("{tool} {arguments}"), answer));
    }
    let list = server.request("resources/list", json!({})).to_string();
    answers.push(("resources/list".to_owned(), list));
    for uri in ["treelined://session/s1", "treelined://session/s1/branch/h1"] {
        let answer = server.request("resources/read", json!({"uri": uri}));
        assert!(answer.get("error").is_none(), "{answer}");
        answers.push((uri.to_owned(), answer.to_string()));
    }
    answers
}

#[test]
fn every_tool_and_resource_replaces_secrets_and_keeps_ids() {
    let folders = Folders::new();
    leaking(&folders);
    let mut server = folders.server(&[]);
    for (call, answer) in answers(&mut server) {
        // A part of the secret is one too.
        assert!(!answer.contains(&SECRET[..10]), "{call}: {answer}");
        assert!(!answer.contains(&SECRET[12..30]), "{call}: {answer}");
    }
    let (page, text) = server.data("read_branch", json!({"tip": "h1", "from": ID}));
    assert_eq!(page["passages"][0]["entryId"], ID);
    assert!(text.contains(&format!("entry {ID}, user")), "{text}");
    let kinds = page["redactions"].as_array().unwrap();
    assert_eq!(kinds.len(), 1, "{page}");
    assert_eq!(kinds[0]["kind"], "github-token");
    assert!(text.contains("Secrets are replaced: "), "{text}");
    let (page, _) = server.data("read_branch", json!({"tip": "u1"}));
    let name = json!({"kind": "github-token", "count": 2});
    let url = json!({"kind": "url-credentials", "count": 1});
    assert_eq!(page["redactions"], json!([name, url]));
    let (entry, _) = server.data("read_entry", json!({"entry": "k1"}));
    assert_eq!(entry["entryId"], "k1");
    let (plain, text) = server.data("read_entry", json!({"entry": "u2"}));
    // The name of the session.
    assert_eq!(plain["redactions"][0]["count"], 1, "{text}");
}

#[test]
fn secrets_are_shown_to_the_user_who_asks_for_it() {
    let folders = Folders::new();
    leaking(&folders);
    let mut server = folders.server(&["--show-secrets"]);
    for (call, answer) in answers(&mut server) {
        assert!(!answer.contains("[redacted:"), "{call}: {answer}");
    }
    let (page, _) = server.data("read_branch", json!({"tip": "h1"}));
    assert!(page.to_string().contains(SECRET));
    assert_eq!(page["redactions"], json!([]));
}
