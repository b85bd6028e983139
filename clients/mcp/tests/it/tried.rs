//! The tools that return earlier attempts, and the sessions that read or changed a file.

use crate::{Folders, fact, ids};
use serde_json::{Value, json};

/// The most bytes of an answer of 2,000 tokens.
const MAX_TRIED: usize = 6_000;

fn call(id: &str, tool: &str, arguments: &Value) -> [(&'static str, Value); 2] {
    let called = json!([{"type": "toolCall", "id": id, "name": tool, "arguments": arguments}]);
    let result = json!({"role": "toolResult", "toolCallId": id, "toolName": tool, "content": []});
    [
        (
            "append_message",
            json!({"entryId": id, "message": {"role": "assistant", "content": called}}),
        ),
        ("append_message", json!({"message": result})),
    ]
}

fn open(id: &str) -> (&'static str, Value) {
    ("open_session", json!({"sessionId": id}))
}

/// An agent once had to search, to list the branches, and to call `why_left` for each of them.
#[test]
fn one_answer_says_what_was_tried_and_why_it_was_left() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    folders.conversation("away", &folders.path("elsewhere"));
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let mut requests = vec![open("s1"), ("set_leaf", json!({"leafId": "a2"}))];
    requests.extend(call("c1", "edit", &json!({"path": "src/zebra.rs"})));
    let end = json!({"role": "assistant", "content": [{"type": "text", "text": format!("zebra {secret}")}]});
    requests.push(("append_message", json!({"entryId": "a9", "message": end})));
    requests.push(("set_leaf", json!({"leafId": "u3"})));
    let note =
        json!({"targetId": "a9", "reason": "The zebra cache is empty.", "outcome": "abandoned"});
    requests.push((
        "append_entries",
        json!({"entries": [{"type": "custom", "customType": "note", "data": note}]}),
    ));
    let kept = json!({"role": "user", "content": "The zebra stays."});
    requests.push(("append_message", json!({"entryId": "u9", "message": kept})));
    folders.daemon(&requests);
    let mut server = folders.server(&[]);
    let text = server.text("what_was_tried", json!({"topic": "zebra"}));
    assert_eq!(
        (fact(&text, "left"), fact(&text, "kept")),
        (Some("1"), Some("1")),
        "{text}"
    );
    for said in [
        "\nbranch a9 of session s1, left, ",
        "> note about a9: abandoned: The zebra cache is empty.\n",
        "> changed: src/zebra.rs\n",
        "\nbranch u9 of session s1, kept, ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("away") && !text.contains(secret), "{text}");
    // An entry need not contain every word.
    let text = server.text("what_was_tried", json!({"topic": "the zebra crossing"}));
    assert_eq!(fact(&text, "left"), Some("1"), "{text}");
    let text = server.text("what_was_tried", json!({"topic": "unheard"}));
    assert_eq!(
        (fact(&text, "left"), fact(&text, "kept")),
        (Some("0"), Some("0"))
    );
    // The notes come first, then one hit of each session.
    let text = server.text("search_history", json!({"query": "zebra"}));
    assert!(
        text.contains("\nnote ") && ids(&text, "entry").is_empty(),
        "{text}"
    );
    let every = json!({"query": "zebra", "every": true, "limit": 2});
    let text = server.text("search_history", every.clone());
    assert!(
        text.find("\nnote ").unwrap() < text.find("\nentry ").unwrap(),
        "{text}"
    );
    // A cursor once named the path of a file.
    let cursor = fact(&text, "nextCursor").unwrap().to_owned();
    assert!(cursor.parse::<u64>().is_ok(), "{cursor}");
    let mut next = every;
    next["cursor"] = json!(cursor);
    let more = server.text("search_history", next.clone());
    assert!(
        ids(&more, "entry")
            .iter()
            .all(|id| !ids(&text, "entry").contains(id)),
        "{more}"
    );
    // All hits, in entries that contain all the words.
    let exact = |query: &str| json!({"query": query, "exact": true, "every": true});
    let text = server.text("search_history", exact("zebra unheard"));
    assert_eq!(fact(&text, "hits"), Some("0"), "{text}");
    let text = server.text("search_history", json!({"query": "was the zebra clear?"}));
    assert!(
        text.contains("\n> left because: ") && text.contains("\n> instead: "),
        "{text}"
    );
    let text = server.text("search_history", json!({"query": "zerba"}));
    assert_eq!(
        fact(&text, "didYouMean"),
        Some("zebra for zerba; zebra counts instead"),
        "{text}"
    );
    // A filter with a value that nothing has once looked like a question without an answer.
    let text = server.text("search_history", json!({"query": "zebra type:nota"}));
    assert_eq!(
        (fact(&text, "hits"), fact(&text, "didYouMean")),
        (Some("0"), Some("type:note for type:nota")),
        "{text}"
    );
    next["query"] = json!("other");
    let refused = server.failure("search_history", next);
    assert!(refused.contains("not of this search"), "{refused}");
    let refused = server.failure("search_history", json!({"query": "zebra rol:user"}));
    assert!(
        refused.contains("character 7") && refused.contains("role:"),
        "{refused}"
    );
}

/// A person who goes back to try another way does not repeat the prompt. Its words stand above the failed attempt, which was once
/// not returned for them.
#[test]
fn an_attempt_below_the_prompt_with_the_topic_is_returned() {
    let folders = Folders::new();
    let say = |id: &str, role: &str, text: &str| {
        let message = json!({"role": role, "content": [{"type": "text", "text": text}]});
        ("append_message", json!({"entryId": id, "message": message}))
    };
    let note = json!({"targetId": "a2", "reason": "The timer sleeps too.", "outcome": "abandoned"});
    folders.daemon(&[
        (
            "create_session",
            json!({"sessionId": "s1", "cwd": folders.path("work")}),
        ),
        say("u1", "user", "Make the websocket reconnect after sleep"),
        say("a1", "assistant", "I use a timer."),
        say("u2", "user", "Shorter."),
        say("a2", "assistant", "Ten seconds now."),
        ("set_leaf", json!({"leafId": "u1"})),
        say("a3", "assistant", "I use the events of the network."),
        (
            "append_entries",
            json!({"entries": [{"type": "custom", "customType": "note", "data": note}]}),
        ),
        say("u3", "user", "Now the page."),
        ("set_leaf", json!({"leafId": "a3"})),
        say("u4", "user", "Now the text."),
    ]);
    let mut server = folders.server(&[]);
    let text = server.text("what_was_tried", json!({"topic": "websocket reconnect"}));
    assert_eq!(
        (fact(&text, "left"), fact(&text, "kept")),
        (Some("2"), Some("1")),
        "{text}"
    );
    for said in [
        "\nbranch a2 of session s1, left, ",
        "> note about a2: abandoned: The timer sleeps too.\n",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// A conversation that was imported and then recorded is two sessions. Each of its hits once came twice.
#[test]
fn a_conversation_of_two_sessions_is_returned_once() {
    let folders = Folders::new();
    folders.record_and_import();
    let mut server = folders.server(&[]);
    let sessions = server.text("list_sessions", json!({}));
    assert_eq!(ids(&sessions, "session").len(), 2, "{sessions}");
    let text = server.text("search_history", json!({"query": "zebra crossing"}));
    assert_eq!(ids(&text, "entry").len(), 1, "{text}");
    for exact in [false, true] {
        let every = json!({"query": "zebra crossing", "every": true, "exact": exact});
        let text = server.text("search_history", every);
        assert_eq!(ids(&text, "entry").len(), 2, "{text}");
    }
    let text = server.text("what_was_tried", json!({"topic": "zebra crossing"}));
    assert_eq!(ids(&text, "branch").len(), 1, "{text}");
}

/// "rate" was once in "separate" as well as in "rate limit", and the newer entry came first.
#[test]
fn whole_words_of_a_topic_come_before_parts_of_words() {
    let folders = Folders::new();
    let say = |session: &str, text: &str| {
        let message = json!({"role": "user", "content": text});
        [
            (
                "create_session",
                json!({"sessionId": session, "cwd": folders.path("work")}),
            ),
            (
                "append_message",
                json!({"sessionId": session, "message": message}),
            ),
        ]
    };
    let mut requests = Vec::new();
    requests.extend(say("whole", "The server has a rate limit."));
    requests.extend(say("parts", "Separate the unlimited queues."));
    requests.extend(say("stem", "It was rate limited at the gateway."));
    folders.daemon(&requests);
    let mut server = folders.server(&[]);
    let mut sessions = |topic: &str| {
        let text = server.text("what_was_tried", json!({"topic": topic}));
        let lines = text.lines().filter(|line| line.starts_with("branch "));
        let sessions = lines.map(|line| line.split([' ', ',']).nth(4).unwrap().to_owned());
        sessions.collect::<Vec<_>>()
    };
    assert_eq!(sessions("rate limit"), ["stem", "whole"]);
    // A part of a word counts if no entry has it as a word.
    assert_eq!(sessions("unlimit"), ["parts"]);
}

#[test]
fn the_newest_attempts_come_first() {
    let folders = Folders::new();
    let cwd = folders.path("work").display().to_string();
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd}),
    ];
    // The order of the days differs from the order of the file and from its reverse.
    for (id, day) in [("first", 3), ("second", 9), ("third", 1), ("fourth", 5)] {
        let message = json!({"role": "user", "content": "Clear the zebra cache."});
        let at = format!("2026-01-0{day}T00:00:00.000Z");
        lines.push(json!({"type": "message", "id": id, "parentId": null, "timestamp": at, "message": message}));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let path = folders.path("sessions").join("s1.jsonl");
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
    let text = folders
        .server(&[])
        .text("what_was_tried", json!({"topic": "zebra"}));
    assert_eq!(
        ids(&text, "branch"),
        ["second", "fourth", "first", "third"],
        "{text}"
    );
}

/// A page has three hits of a session, so five of eight attempts at one prompt were missing, and nothing said so.
#[test]
fn all_attempts_of_one_session_are_returned() {
    let folders = Folders::new();
    let say = |id: &str, role: &str, content: String| {
        let message = match role {
            "user" => json!({"role": role, "content": content}),
            _ => json!({"role": role, "content": [{"type": "text", "text": content}]}),
        };
        ("append_message", json!({"entryId": id, "message": message}))
    };
    folders.conversation("s1", &folders.path("work"));
    let mut requests = vec![
        open("s1"),
        say("start", "assistant", "What next?".to_owned()),
    ];
    for number in 0..8 {
        requests.push(("set_leaf", json!({"leafId": "start"})));
        let said = format!("Migrate the zebra schema, way {number}.");
        requests.push(say(&format!("way{number}"), "user", said));
        requests.push(say(
            &format!("end{number}"),
            "assistant",
            "It failed.".to_owned(),
        ));
    }
    folders.daemon(&requests);
    let mut server = folders.server(&[]);
    let text = server.text(
        "what_was_tried",
        json!({"topic": "migrate the zebra schema"}),
    );
    let mut found = ids(&text, "branch");
    found.sort_unstable();
    let ends: Vec<String> = (0..8).map(|number| format!("end{number}")).collect();
    assert_eq!(found, ends, "{text}");
    let facts = ["left", "kept", "leftOut"].map(|name| fact(&text, name).unwrap());
    assert_eq!(facts, ["7", "1", "0"], "{text}");
}

/// An import labels a fork without a title. The mark was told as the reason, in place of how the branch ended.
#[test]
fn the_mark_of_a_fork_is_not_a_reason() {
    let folders = Folders::new();
    let say = |id: &str, text: &str| {
        let message = json!({"role": "user", "content": text});
        ("append_message", json!({"entryId": id, "message": message}))
    };
    folders.conversation("s1", &folders.path("work"));
    folders.daemon(&[
        open("s1"),
        say("q1", "Feed the zebra."),
        ("append_label", json!({"targetId": "q1", "label": "fork"})),
        ("set_leaf", json!({"leafId": null})),
        say("q2", "Wash the zebra."),
    ]);
    let mut server = folders.server(&[]);
    let text = server.text("what_was_tried", json!({"topic": "feed the zebra"}));
    assert!(
        text.contains("no reason was written; it ends with"),
        "{text}"
    );
    let text = server.text("why_left", json!({"branch": "q1", "session": "s1"}));
    assert_eq!(fact(&text, "reasons"), Some("0"), "{text}");
}

#[test]
fn what_was_tried_has_a_budget() {
    let folders = Folders::new();
    let mut requests = Vec::new();
    for number in 0..40 {
        let id = format!("s{number}");
        let said = json!({"role": "user", "content": format!("zebra {}", "針".repeat(400))});
        let create =
            json!({"sessionId": id, "cwd": folders.path("work"), "name": "名前".repeat(90)});
        requests.push(("create_session", create));
        for entry in ["u1", "u2"] {
            let append = json!({"sessionId": id, "entryId": entry, "message": said});
            requests.push(("append_message", append));
        }
        requests.push(("set_leaf", json!({"sessionId": id, "leafId": "u1"})));
    }
    folders.daemon(&requests);
    let mut server = folders.server(&[]);
    let text = server.text("what_was_tried", json!({"topic": "zebra"}));
    assert!(text.len() <= MAX_TRIED, "{} bytes", text.len());
    let number = |name: &str| {
        let fact = fact(&text, name).unwrap();
        fact.trim_start_matches("at least ")
            .parse::<usize>()
            .unwrap()
    };
    assert!(number("left") > 0 && number("kept") > 0, "{text}");
    assert_eq!(number("left") + number("kept") + number("leftOut"), 80);
}

#[test]
fn a_files_history_names_the_calls_that_read_or_changed_it() {
    let folders = Folders::new();
    folders.conversation("s1", &folders.path("work"));
    folders.conversation("away", &folders.path("elsewhere"));
    std::fs::create_dir_all(folders.path("work/src")).unwrap();
    std::fs::create_dir_all(folders.path("work/below")).unwrap();
    folders.conversation("below", &folders.path("work/below"));
    let absolute = |name: &str| folders.path(name).display().to_string();
    let mut requests = vec![open("s1")];
    for (id, tool, arguments) in [
        ("c1", "read", json!({"path": "src/a.rs"})),
        (
            "c2",
            "Edit",
            json!({"file_path": absolute("work/src/a.rs")}),
        ),
        ("c3", "bash", json!({"command": "wc -l ./src/a.rs; true"})),
        (
            "c4",
            "apply_patch",
            json!({"input": "*** Update File: src/a.rs\n@@"}),
        ),
        ("o1", "read", json!({"path": "src/a.rs.orig"})),
        ("o2", "read", json!({"path": "lib/src/a.rs"})),
        (
            "o3",
            "read",
            json!({"path": absolute("elsewhere/src/a.rs")}),
        ),
        ("o4", "read", json!({"path": "xsrc/a.rs"})),
    ] {
        requests.extend(call(id, tool, &arguments));
    }
    requests.extend([("close_session", json!({})), open("away")]);
    requests.extend(call("c5", "read", &json!({"path": "src/a.rs"})));
    // The same relative path once was the same file, whatever the directory of the session was.
    requests.extend([("close_session", json!({})), open("below")]);
    requests.extend(call("c6", "read", &json!({"path": "src/a.rs"})));
    // The path from the directory of a session below once was another file.
    requests.extend(call("c7", "read", &json!({"path": "../src/a.rs"})));
    requests.extend(call("c8", "edit", &json!({"path": "b.rs"})));
    folders.daemon(&requests);
    let mut server = folders.server(&[]);
    for path in ["src/a.rs", "./src/../src/a.rs", &absolute("work/src/a.rs")] {
        let text = server.text("files_history", json!({"path": path}));
        let mut found = ids(&text, "entry");
        found.sort_unstable();
        assert_eq!(found, ["c1", "c2", "c3", "c4", "c7"], "{path}: {text}");
        for said in [
            "read by read",
            "changed by Edit",
            "named by bash",
            "changed by apply_patch",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
    let text = server.text("files_history", json!({"path": "below/b.rs"}));
    assert_eq!(ids(&text, "entry"), ["c8"], "{text}");
    for outside in ["../elsewhere/src/a.rs", "/etc/passwd", ""] {
        let refused = server.failure("files_history", json!({"path": outside}));
        assert!(refused.contains("--all"), "{refused}");
    }
}

/// A file was found only if its path had no characters but letters, digits and `/._-~`. So nothing was found below a folder
/// with a blank, and no route such as `[id]`.
#[test]
fn a_file_with_any_characters_in_its_path_has_a_history() {
    let folders = Folders::new();
    let work = folders.path("work/my project");
    std::fs::create_dir_all(work.join("src")).unwrap();
    folders.conversation("s1", &work);
    let absolute = |name: &str| work.join(name).display().to_string();
    let mut requests = vec![open("s1")];
    for (id, tool, arguments) in [
        ("c1", "edit", json!({"file_path": absolute("src/a.rs")})),
        (
            "c2",
            "bash",
            json!({"command": format!("sed -i s/a/b/ \"{}\"", absolute("src/a.rs"))}),
        ),
        ("c3", "bash", json!({"command": "cat 'src/a.rs'; true"})),
        (
            "c4",
            "read",
            json!({"path": "app/(shop)/cart+x/[id]/page.tsx"}),
        ),
        (
            "c5",
            "bash",
            json!({"command": "cat app/(shop)/cart+x/[id]/page.tsx | wc"}),
        ),
        (
            "o1",
            "read",
            json!({"path": "other/app/(shop)/cart+x/[id]/page.tsx"}),
        ),
        (
            "o2",
            "bash",
            json!({"command": "cat lib/app/(shop)/cart+x/[id]/page.tsx"}),
        ),
    ] {
        requests.extend(call(id, tool, &arguments));
    }
    folders.daemon(&requests);
    let mut server = folders.server(&[]);
    for (path, expected) in [
        ("my project/src/a.rs", &["c1", "c2", "c3"][..]),
        ("my project/app/(shop)/cart+x/[id]/page.tsx", &["c4", "c5"]),
    ] {
        let text = server.text("files_history", json!({"path": path}));
        let mut found = ids(&text, "entry");
        found.sort_unstable();
        assert_eq!(found, expected, "{path}: {text}");
    }
}
