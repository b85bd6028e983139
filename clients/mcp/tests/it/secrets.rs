//! No answer shows a secret, unless the user has asked for it.

use crate::{Folders, Peer, fact};
use serde_json::{Value, json};

/// A token by its form, which scanners of repositories do not take for a real one.
const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8j9K0LmNpQrStUvWxYzA1";
const ID: &str = "ghp_0000111122223333444455556666777788889";

/// A session that has the secret in every text that a client may write, and an id that looks like a secret.
fn leaking(folders: &Folders) {
    let said = |role: &str, content: Value| json!({"role": role, "content": content});
    let arguments = json!({"command": format!("{} curl -H {SECRET}", "x".repeat(380)), "path": format!("/{SECRET}/file"), "file_path": format!("/{SECRET}/file")});
    let call = json!({"type": "toolCall", "id": "c1", "name": "read", "arguments": arguments});
    // The excerpt of the daemon ends in the middle of the secret.
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
        // A part of the secret must not be shown either.
        assert!(!answer.contains(&SECRET[..10]), "{call}: {answer}");
        assert!(!answer.contains(&SECRET[12..30]), "{call}: {answer}");
    }
    let text = server.text("read_branch", json!({"tip": "h1", "from": ID}));
    assert!(text.contains(&format!("\nentry {ID}, user, ")), "{text}");
    assert!(
        fact(&text, "redactions")
            .unwrap()
            .ends_with(" × github-token"),
        "{text}"
    );
    // The name of the session has a secret too.
    let text = server.text("read_branch", json!({"tip": "u1"}));
    assert_eq!(
        fact(&text, "redactions"),
        Some("2 × github-token, 1 × url-credentials")
    );
    let text = server.text("read_entry", json!({"entry": "k1"}));
    assert_eq!(fact(&text, "entry"), Some("k1"));
    let text = server.text("read_entry", json!({"entry": "u2"}));
    assert_eq!(
        fact(&text, "redactions"),
        Some("1 × github-token"),
        "{text}"
    );
}

/// The arguments of a call `{"password": "…"}` once reached an agent unchanged, while an export replaced them: members
/// whose names mean secrets were looked for only in texts.
#[test]
fn members_of_calls_and_of_plugins_that_say_secret_are_replaced() {
    const PASSWORD: &str = "kV8pQ2zT5wLx91";
    let folders = Folders::new();
    let arguments = json!({"password": PASSWORD, "env": {"API_KEY": [PASSWORD]}, "args": ["--password", PASSWORD], "path": "a.txt", "token": "${TOKEN}"});
    let call = json!({"type": "toolCall", "id": "c1", "name": "deploy", "arguments": arguments});
    let custom = json!({"type": "custom", "id": "k1", "customType": "plugin", "data": {"client_secret": PASSWORD}});
    folders.daemon(&[
        ("create_session", json!({"sessionId": "s1", "cwd": folders.path("work")})),
        ("append_message", json!({"entryId": "u1", "message": {"role": "user", "content": "Deploy."}})),
        ("append_message", json!({"entryId": "a1", "message": {"role": "assistant", "content": [call], "model": "m", "provider": "p"}})),
        ("append_entries", json!({"entries": [custom]})),
    ]);
    let mut server = folders.server(&[]);
    for (tool, arguments) in [
        ("read_branch", json!({"tip": "a1"})),
        ("read_entry", json!({"entry": "a1"})),
        ("read_entry", json!({"entry": "k1"})),
        ("search_history", json!({"query": "deploy"})),
    ] {
        let text = server.text(tool, arguments.clone());
        assert!(!text.contains(PASSWORD), "{tool} {arguments}: {text}");
    }
    let text = server.text("read_entry", json!({"entry": "a1"}));
    assert!(
        text.contains("a.txt") && text.contains("${TOKEN}"),
        "{text}"
    );
    assert!(text.contains("[redacted:"), "{text}");
}

/// An invisible character may stand inside a secret or between two words. The secret is found, and the words stay
/// apart.
#[test]
fn a_parted_secret_is_found_and_words_stay_apart() {
    let folders = Folders::new();
    let (head, tail) = SECRET.split_at(9);
    for (number, gap) in ["\u{200b}", "\u{85}", "\u{2028}", "\r"].iter().enumerate() {
        let id = format!("s{number}");
        let text = format!("one{gap}two {head}{gap}{tail} three{gap}four {head}{gap}{tail}");
        folders.daemon(&[
            (
                "create_session",
                json!({"sessionId": id, "cwd": folders.path("work")}),
            ),
            (
                "append_message",
                json!({"entryId": "u1", "message": {"role": "user", "content": text}}),
            ),
        ]);
        let mut server = folders.server(&["--session", &id]);
        let text = server.text("read_entry", json!({"entry": "u1"}));
        let said = text.split("Z\n> ").nth(1).unwrap();
        let space = if number == 0 { " " } else { "\n> " };
        let mark = "[redacted:github-token]";
        assert_eq!(
            said,
            format!("one{space}two {mark} three{space}four {mark}\n")
        );
        assert_eq!(fact(&text, "redactions"), Some("2 × github-token"));
    }
}

#[test]
fn secrets_are_shown_to_the_user_who_asks_for_it() {
    let folders = Folders::new();
    leaking(&folders);
    let mut server = folders.server(&["--show-secrets"]);
    for (call, answer) in answers(&mut server) {
        assert!(!answer.contains("[redacted:"), "{call}: {answer}");
    }
    let text = server.text("read_branch", json!({"tip": "h1"}));
    assert!(text.contains(SECRET));
    assert_eq!(fact(&text, "redactions"), None);
}

/// The commands of one agent printed the user's variables, and their values once reached the next agent.
#[test]
fn values_of_the_variables_of_the_server_are_replaced() {
    const VALUE: &str = "tangerine-boat-sails";
    let folders = Folders::new();
    let said = format!("It answered {VALUE}.");
    folders.daemon(&[
        (
            "create_session",
            json!({"sessionId": "s1", "cwd": folders.path("work")}),
        ),
        (
            "append_message",
            json!({"entryId": "u1", "message": {"role": "user", "content": said}}),
        ),
    ]);
    for (variable, is_replaced) in [("TOUR_NAME", false), ("TOUR_TOKEN", true)] {
        let variables = [(variable, VALUE)];
        let mut server = folders.server_among(&variables, &crate::daemon(), &[]);
        for (tool, arguments) in [
            ("read_entry", json!({"entry": "u1"})),
            ("read_branch", json!({"tip": "u1"})),
            ("search_history", json!({"query": "answered"})),
        ] {
            let text = server.text(tool, arguments);
            assert_eq!(text.contains(VALUE), !is_replaced, "{tool}: {text}");
            let mark = text.contains("[redacted:variable]");
            assert_eq!(mark, is_replaced, "{tool}: {text}");
        }
    }
}

/// Exports replaced the words of the configuration, and the answers of this server showed them.
#[test]
fn words_of_the_configuration_are_replaced() {
    let folders = Folders::new();
    let said = "The customer Acme Corp asked, and acme corp waits.";
    folders.daemon(&[
        (
            "create_session",
            json!({"sessionId": "s1", "cwd": folders.path("work"), "name": "for Acme Corp"}),
        ),
        (
            "append_message",
            json!({"entryId": "u1", "message": {"role": "user", "content": said}}),
        ),
    ]);
    let home = folders.path("home");
    let usual = folders.path("home/.config/treelined/config.toml");
    let own = folders.path("own.toml");
    let words = "[redact]\nwords = [\"acme corp\"]\n";
    std::fs::create_dir_all(usual.parent().unwrap()).unwrap();
    std::fs::write(&own, words).unwrap();
    let path = |path: &std::path::Path| path.display().to_string();
    let (home, named) = (path(&home), path(&own));
    for (place, is_shown) in [("none", true), ("named", false), ("usual", false)] {
        let mut variables = vec![("HOME", home.as_str()), ("XDG_CONFIG_HOME", "")];
        match place {
            "named" => variables.push(("TREELINED_CONFIG", named.as_str())),
            "usual" => std::fs::write(&usual, words).unwrap(),
            _ => {}
        }
        let mut server = folders.server_among(&variables, &crate::daemon(), &[]);
        for (tool, arguments) in [
            ("read_entry", json!({"entry": "u1"})),
            ("read_branch", json!({"tip": "u1"})),
            ("search_history", json!({"query": "asked"})),
            ("list_sessions", json!({})),
        ] {
            let text = server.text(tool, arguments);
            let shows = text.to_lowercase().contains("acme");
            assert_eq!(shows, is_shown, "{place}, {tool}: {text}");
            let marks = text.contains("[redacted:word]");
            assert_eq!(marks, !is_shown, "{place}, {tool}: {text}");
        }
        let mut server = folders.server_among(&variables, &crate::daemon(), &["--show-secrets"]);
        let text = server.text("read_entry", json!({"entry": "u1"}));
        assert!(text.contains(said), "{place}: {text}");
    }
}

/// A mistake in the file must not show the words, nor the line that has them.
#[test]
fn a_configuration_that_cannot_be_read_ends_the_server() {
    let folders = Folders::new();
    let file = folders.path("own.toml");
    std::fs::write(&file, "[redact]\nwords = [\"acme corp\", 5]\n").unwrap();
    for named in [file, folders.path("missing.toml")] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_treelined-mcp"));
        command.arg("--daemon").arg(crate::daemon());
        command.arg("--session-dir").arg(folders.path("sessions"));
        command.env("TREELINED_CONFIG", &named);
        command.stdin(std::process::Stdio::null());
        let out = command.output().unwrap();
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert!(
            !out.status.success() && stderr.contains(".toml"),
            "{stderr}"
        );
        assert!(!stderr.contains("acme"), "{stderr}");
    }
}
