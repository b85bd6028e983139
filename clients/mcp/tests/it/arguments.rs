//! Arguments that a tool does not have, and answers that stay within their limit.

use crate::{Folders, Peer, daemon, fact, ids, quotation};
use serde_json::{Value, json};

/// The most bytes of an answer: 12,000 tokens of three bytes.
const MAX_ANSWER: usize = 36_000;
/// The most bytes of an answer if the caller gives no size. Codex leaves out the middle of a longer answer.
const MAX_PAGE: usize = 9_000;

fn read_session(folders: &Folders, lines: &[Value]) {
    let cwd = folders.path("work").display().to_string();
    let header = json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd});
    let lines = [&header].into_iter().chain(lines);
    let file: String = lines.map(|line| format!("{line}\n")).collect();
    std::fs::write(folders.path("sessions/s1.jsonl"), file).unwrap();
}

fn message(id: &str, parent: Option<&str>, text: &str) -> Value {
    let message = json!({"role": "user", "content": text});
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z", "message": message})
}

/// `read_entry` once answered an id of 300 kB with 300 kB, which is more than any answer may have.
#[test]
fn an_error_quotes_little_of_a_long_argument() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    let mut server = folders.server(&["--allow-notes"]);
    let long = "ignore all of this ".repeat(16_000);
    for (tool, arguments) in [
        ("read_entry", json!({"entry": long})),
        ("read_entry", json!({"session": long, "entry": "u1"})),
        ("read_entry", json!({"entry": "u1", "cursor": long})),
        ("read_branch", json!({"tip": long})),
        ("read_branch", json!({"tip": "u1", "from": long})),
        ("why_left", json!({"branch": long})),
        ("compare_branches", json!({"a": "u1", "b": long})),
        ("list_branches", json!({"session": long})),
        ("search_history", json!({"query": "x", "every": long})),
        ("search_history", json!({"query": format!("/({long}/")})),
        ("search_history", json!({"query": "x", "cursor": long})),
        ("list_sessions", json!({"cursor": long})),
        ("label_entry", json!({"entry": long, "label": "x"})),
        (
            "leave_note",
            json!({"entry": long, "reason": "x", "outcome": "x"}),
        ),
        ("name_session", json!({"name": long})),
        ("list_sessions", json!({long.as_str(): 1})),
    ] {
        let text = server.failure(tool, arguments);
        assert!(text.len() < 3_000, "{tool}: {} bytes", text.len());
    }
    for uri in [&long, &format!("treelined://session/{long}")] {
        let refused = server.request("resources/read", json!({"uri": uri}));
        let text = refused["error"]["message"].as_str().unwrap();
        assert!(text.len() < 3_000, "{} bytes", text.len());
    }
    let params = json!({"name": long, "arguments": {}});
    let refused = server.request("tools/call", params).to_string();
    assert!(refused.len() < 3_000, "{} bytes", refused.len());
}

#[test]
fn ids_of_any_length_do_not_fill_an_answer() {
    let folders = Folders::new();
    let long = |number: usize| format!("{number}{}", "i".repeat(60_000));
    let lines = (0..20).map(|number| message(&long(number), None, "needle"));
    read_session(&folders, &lines.collect::<Vec<_>>());
    let mut server = folders.server(&[]);
    for (tool, arguments) in [
        ("search_history", json!({"query": "needle", "limit": 100})),
        ("list_branches", json!({})),
        ("read_branch", json!({"tip": long(3), "maxTokens": 12_000})),
        ("read_entry", json!({"entry": long(3)})),
        ("why_left", json!({"branch": long(3)})),
        ("compare_branches", json!({"a": long(3), "b": long(4)})),
    ] {
        let text = server.text(tool, arguments);
        assert!(text.len() < MAX_ANSWER, "{tool}: {} bytes", text.len());
    }
}

/// An entry that consists of line ends was once three times as long in its quotation.
#[test]
fn a_text_of_short_lines_is_cut_where_it_is_quoted() {
    let folders = Folders::new();
    let lines = "a\n".repeat(60_000);
    read_session(&folders, &[message("u1", None, &lines)]);
    let mut server = folders.server(&[]);
    for (tool, arguments, most) in [
        ("read_branch", json!({"tip": "u1", "maxTokens": 500}), 1_500),
        ("read_branch", json!({"tip": "u1"}), MAX_PAGE),
        ("read_entry", json!({"entry": "u1"}), MAX_PAGE),
    ] {
        let text = server.text(tool, arguments);
        assert!(text.len() <= most, "{tool}: {} bytes", text.len());
        assert!(text.contains("\n> a\n"), "{text}");
    }
    let (mut cursor, mut whole) = (json!(0), String::new());
    while !cursor.is_null() {
        let text = server.text("read_entry", json!({"entry": "u1", "cursor": cursor}));
        whole += &quotation(&text);
        let next = fact(&text, "nextCursor").map(|next| next.parse::<u64>().unwrap());
        cursor = json!(next);
    }
    assert_eq!(whole, lines);
}

#[test]
fn a_list_that_has_no_room_has_a_next_page() {
    let folders = Folders::new();
    let mut requests = Vec::new();
    for number in 0..90 {
        let cwd = folders.path("work").join("below");
        let name = format!("{number} {}", "名前".repeat(90));
        let create = json!({"sessionId": format!("s{number}"), "cwd": cwd, "name": name});
        requests.push(("create_session", create));
        let said = json!({"role": "user", "content": format!("needle {}", "針".repeat(300))});
        let append = json!({"sessionId": format!("s{number}"), "message": said});
        requests.push(("append_message", append));
    }
    folders.daemon(&requests);
    let mut server = folders.server(&[]);
    for (tool, row) in [("list_sessions", "session"), ("search_history", "entry")] {
        let (mut seen, mut cursor) = (0, Value::Null);
        loop {
            let mut arguments = json!({"query": "needle", "limit": 200});
            if !cursor.is_null() {
                arguments["cursor"] = cursor;
            }
            let text = server.text(tool, arguments);
            assert!(text.len() <= MAX_PAGE, "{tool}: {} bytes", text.len());
            seen += ids(&text, row).len();
            cursor = json!(fact(&text, "nextCursor"));
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(seen, 90, "{tool}");
    }
}

#[test]
fn an_argument_that_a_tool_does_not_take_is_named() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    let mut server = folders.server(&[]);
    let text = server.failure(
        "read_branch",
        json!({"tip": "a2", "max_tokens": 300, "form": "u2"}),
    );
    assert!(
        text.contains("`form`") && text.contains("`max_tokens`"),
        "{text}"
    );
    assert!(
        text.contains("maxTokens") && !text.contains("`tip`"),
        "{text}"
    );
    // An optional argument may be null.
    server.text(
        "read_branch",
        json!({"tip": "a2", "from": null, "session": null}),
    );
}

#[test]
fn blank_notes_and_names_are_refused() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    let before = folders.daemon(&[("open_session", json!({"sessionId": "s1"}))]);
    let mut server = folders.server(&["--allow-notes"]);
    for (tool, arguments, argument) in [
        (
            "leave_note",
            json!({"entry": "a2", "reason": " \n", "outcome": "abandoned"}),
            "reason",
        ),
        (
            "leave_note",
            json!({"entry": "a2", "reason": "It fails.", "outcome": ""}),
            "outcome",
        ),
        ("name_session", json!({"name": "\t "}), "name"),
        ("name_session", json!({"name": ""}), "name"),
    ] {
        let text = server.failure(tool, arguments);
        assert!(text.contains(argument) && text.contains("blank"), "{text}");
    }
    let after = folders.daemon(&[("open_session", json!({"sessionId": "s1"}))]);
    assert_eq!(
        before[0]["session"]["entryCount"],
        after[0]["session"]["entryCount"]
    );
    assert_eq!(after[0]["session"]["name"], "the build");
}

/// Each page once opened the session again, so the pages of a branch of 3,000 entries took 13 s.
#[test]
fn the_pages_of_a_branch_open_its_session_once() {
    let folders = Folders::new();
    let ids: Vec<String> = (0..100).map(|number| format!("e{number}")).collect();
    let text = "word ".repeat(100);
    let lines = ids.iter().enumerate().map(|(number, id)| {
        let parent = number.checked_sub(1).map(|above| ids[above].as_str());
        message(id, parent, &text)
    });
    read_session(&folders, &lines.collect::<Vec<_>>());
    let requests = folders.path("requests");
    let daemon = listening_daemon(&folders, &requests);
    let mut server = folders.server_with(&daemon, &[]);
    let (mut pages, mut from) = (0, None::<String>);
    loop {
        let text = server.text("read_branch", json!({"tip": "e99", "from": from}));
        pages += 1;
        from = fact(&text, "nextFrom").map(str::to_owned);
        if from.is_none() {
            break;
        }
    }
    assert!(pages > 3, "{pages}");
    drop(server);
    let requests = std::fs::read_to_string(requests).unwrap();
    let opened = requests.matches("\"open_session\"").count();
    let closed = requests.matches("\"close_session\"").count();
    assert_eq!(opened, closed + 1, "it is open until the end");
}

/// A daemon that writes a copy of the requests to `requests`.
pub(crate) fn listening_daemon(
    folders: &Folders,
    requests: &std::path::Path,
) -> std::path::PathBuf {
    let (daemon, requests) = (daemon(), requests.display());
    let text = format!(
        "#!/bin/sh\ntee '{requests}' | '{}' \"$@\"\n",
        daemon.display()
    );
    folders.script(&text)
}

#[test]
fn a_session_that_stays_open_is_read_as_its_file_is() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    folders.conversation("s2", &folders.path("work"));
    let mut server = folders.server(&["--allow-notes", "--session", "s1"]);
    let active = |server: &mut Peer| {
        let text = server.text("list_branches", json!({}));
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("branch "));
        let line = lines.find(|line| line.contains(", active, ")).unwrap();
        line.split(',').next().unwrap().to_owned()
    };
    assert_eq!(active(&mut server), "u3");
    let message = json!({"role": "user", "content": "Go back."});
    let results = folders.daemon(&[
        ("open_session", json!({"sessionId": "s1"})),
        ("branch", json!({"entryId": "a2"})),
        (
            "append_message",
            json!({"entryId": "u9", "message": message}),
        ),
    ]);
    assert_eq!(active(&mut server), "u9");
    // Another session is read in between, and a note opens the session again.
    server.text("list_branches", json!({"session": "s2"}));
    server.text(
        "leave_note",
        json!({"entry": "u3", "reason": "No import.", "outcome": "open"}),
    );
    let why = server.text("why_left", json!({"branch": "u3"}));
    assert!(why.contains("No import."), "{why}");

    // A deleted session is not found, although it was open.
    std::fs::remove_file(results[0]["session"]["path"].as_str().unwrap()).unwrap();
    let text = server.failure("list_branches", json!({}));
    assert!(text.contains("s1"), "{text}");
    server.text("list_branches", json!({"session": "s2"}));
}
