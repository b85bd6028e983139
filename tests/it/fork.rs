//! `fork_session` and `get_fork_messages`: copied lines keep their bytes, links change, and a question comes before a
//! fork. session-file.md §5, protocol.md §3 and §5.

use std::fs;
use std::path::PathBuf;

use crate::harness::*;

fn opened(log: &Log) -> Daemon {
    let home = Home::new();
    let path = log.save(&home);
    let mut d = quiet(&home);
    d.open(&path);
    d
}

fn quiet(home: &std::sync::Arc<Home>) -> Daemon {
    let mut d = Daemon::quiet_in(home);
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    d
}

/// Forks `s1` and returns the result with the fork's file, if it has one yet.
#[track_caller]
fn fork(d: &mut Daemon, mut params: Json) -> (Json, Option<PathBuf>) {
    params["sessionId"] = json!("s1");
    let result = d.ok("fork_session", params);
    assert_eq!(result["cancelled"], false, "{result}");
    let path = d.home.session_files().pop();
    if let Some(path) = result["session"]["path"].as_str()
        && PathBuf::from(path).exists()
    {
        is_as_reopened(d, &result["session"], path);
    }
    (result, path)
}

/// Checks that the open fork and its file, when another daemon opens it, have the same content.
#[track_caller]
fn is_as_reopened(d: &mut Daemon, session: &Json, path: &str) {
    let mut other = Daemon::quiet_in(&d.home);
    let opened = other.ok("open_session", json!({"path": path, "mode": "read"}));
    assert_eq!(opened["diagnostics"], json!([]));
    let id = json!({"sessionId": session["sessionId"]});
    for (method, member) in [
        ("get_tree", "nodes"),
        ("get_tree", "rootIds"),
        ("get_tree", "leafId"),
        ("get_entries", "entries"),
        ("get_context", "messages"),
        ("get_navigation_log", "moves"),
        ("list_branches", "branches"),
    ] {
        let mut params = id.clone();
        if method == "get_tree" {
            params["filter"] = json!("all");
        }
        let (here, there) = (d.ok(method, params.clone()), other.ok(method, params));
        assert_eq!(here[member], there[member], "{method} {member}");
    }
    assert_eq!(opened["session"]["entryCount"], session["entryCount"]);
    assert_eq!(opened["session"]["name"], session["name"]);
}

#[track_caller]
fn entries_of(d: &mut Daemon, session: &Json) -> Vec<Json> {
    d.ok("get_entries", json!({"sessionId": session["sessionId"]}))["entries"]
        .as_array()
        .unwrap()
        .clone()
}

/// The raw lines have numbers, escapes and duplicates that a serializer would change.
fn plain() -> Log {
    Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two")
        .raw(r#"{"type":"message","id":"u2","parentId":"a1","timestamp":"2025-01-01T00:00:03.000Z","zz":1.0,"message":{"role":"user","content":"thr\u0065e","n":12345678901234567890123,"d":1,"d":2}}"#)
        .raw(r#"{ "x":1E+2, "parentId" : "u2","id":"a2","type":"message","timestamp":"2025-01-01T00:00:04.000Z","message":{"content":[],"role":"assistant"}}"#)
        .user("u3", "a1", "another branch")
}

#[test]
fn a_fork_at_an_entry_copies_the_path_byte_for_byte() {
    let log = plain();
    let mut d = opened(&log);
    let (result, path) = fork(&mut d, json!({"entryId": "a2"}));
    let session = &result["session"];
    assert_eq!(
        (&session["leafId"], &session["entryCount"]),
        (&json!("a2"), &json!(4))
    );
    assert!(result.get("editorText").is_none(), "{result}");
    let text = fs::read_to_string(path.unwrap()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[1..],
        [log.line(1), log.line(2), log.line(3), log.line(4)]
    );
    let header = parse(lines[0]).unwrap();
    assert_eq!(
        (&header["type"], &header["version"]),
        (&json!("session"), &json!(3))
    );
    assert_eq!(header["id"], session["sessionId"]);
    assert_ne!(header["id"], "s1");
    assert!(
        header["parentSession"]
            .as_str()
            .is_some_and(|p| p.contains("s.jsonl") || p == "s1"),
        "{header}"
    );
    assert_eq!(header["parentSession"], session["parentSession"]);
}

#[test]
fn the_fork_is_open_and_the_source_is_unchanged() {
    let log = plain();
    let mut d = opened(&log);
    let source = d.home.files().join("s.jsonl");
    let (result, _) = fork(&mut d, json!({"entryId": "a1"}));
    let id = &result["session"]["sessionId"];
    d.ok(
        "append_message",
        json!({"sessionId": id, "message": user("on in the fork"), "entryId": "f1"}),
    );
    assert_eq!(
        d.ok("get_path", json!({"sessionId": id}))["entries"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(d.ok("get_leaf", json!({"sessionId": "s1"}))["leafId"], "u3");
    d.err_kind(
        "get_entry",
        json!({"sessionId": "s1", "entryId": "f1"}),
        "entryNotFound",
    );
    assert_eq!(fs::read_to_string(source).unwrap(), log.text());
}

#[test]
fn a_fork_before_a_user_message_returns_its_text() {
    let mut d = opened(&plain());
    for params in [
        json!({"entryId": "u2"}),
        json!({"entryId": "u2", "position": "before"}),
    ] {
        let (result, _) = fork(&mut d, params);
        assert_eq!(result["editorText"], "three");
        assert_eq!(
            ids(&json!(entries_of(&mut d, &result["session"]))),
            ["u1", "a1"]
        );
    }
    let (result, _) = fork(&mut d, json!({"entryId": "u2", "position": "at"}));
    assert!(result.get("editorText").is_none(), "{result}");
    assert_eq!(
        ids(&json!(entries_of(&mut d, &result["session"]))),
        ["u1", "a1", "u2"]
    );
    let error = {
        let params = json!({"sessionId": "s1", "entryId": "a1", "position": "before"});
        d.err("fork_session", params)
    };
    assert_eq!((error.code, error.kind.as_str()), (1206, "notAUserMessage"));
}

#[test]
fn a_fork_without_entry_id_forks_at_the_leaf() {
    let mut d = opened(&plain());
    let (result, _) = fork(&mut d, json!({}));
    assert_eq!(
        result["editorText"], "another branch",
        "the leaf is a user message, so before it"
    );
    assert_eq!(
        ids(&json!(entries_of(&mut d, &result["session"]))),
        ["u1", "a1"]
    );
}

#[test]
fn a_fork_before_the_first_message_is_empty() {
    let mut d = opened(&plain());
    let (result, _) = fork(&mut d, json!({"entryId": "u1"}));
    assert_eq!(result["editorText"], "one");
    let session = &result["session"];
    assert_eq!(
        (&session["leafId"], &session["entryCount"]),
        (&Json::Null, &json!(0))
    );
    assert!(session["parentSession"].is_string(), "{session}");
    d.ok(
        "append_message",
        json!({"sessionId": session["sessionId"], "message": user("one, again")}),
    );
    let header = &file_lines(&d.home.only_file())[0];
    assert_eq!(header["parentSession"], session["parentSession"]);
}

#[test]
fn labels_and_records_are_left_out_and_the_chain_is_relinked() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .label("l1", "u1", "u1", json!("first"))
        .label("l2", "l1", "u1", json!("renamed"))
        .raw(r#"{"type":"message", "id":"a1","zz":1.0,"parentId":"l2","timestamp":"2025-01-01T00:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"\"parentId\":\"l2\""}]}}"#)
        .record("r1", "a1", "a1")
        .user("u2", "r1", "three")
        .label("l3", "u2", "a1", json!("gone"))
        .label("l4", "l3", "a1", Json::Null)
        .label("l5", "l4", "aside", json!("not kept"))
        .user("aside", "u1", "aside")
        .assistant("a2", "l5", "four")
        .label("l6", "a2", "u2", json!("later, and below"));
    let mut d = opened(&log);
    let (result, path) = fork(&mut d, json!({"entryId": "a2"}));
    let text = fs::read_to_string(path.unwrap()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[1], log.line(1));
    assert_eq!(
        lines[2],
        log.line(4)
            .replacen(r#""parentId":"l2""#, r#""parentId":"u1""#, 1),
        "the one edit"
    );
    assert_eq!(
        lines[3],
        log.line(6)
            .replace(r#""parentId":"r1""#, r#""parentId":"a1""#)
    );
    assert_eq!(
        lines[4],
        log.line(11)
            .replace(r#""parentId":"l5""#, r#""parentId":"u2""#)
    );
    let carried: Vec<_> = lines[5..].iter().map(|l| parse(l).unwrap()).collect();
    let found: Vec<_> = carried
        .iter()
        .map(|l| {
            (
                l["targetId"].clone(),
                l["label"].clone(),
                l["timestamp"].clone(),
            )
        })
        .collect();
    assert_eq!(found.len(), 2, "current labels of kept entries: {found:?}");
    assert!(
        found.contains(&(json!("u1"), json!("renamed"), json!(stamp(3)))),
        "original timestamps: {found:?}"
    );
    assert!(
        found.contains(&(json!("u2"), json!("later, and below"), json!(stamp(12)))),
        "{found:?}"
    );
    let session = result["session"]["sessionId"].clone();
    let label = d.ok("get_label", json!({"sessionId": session, "entryId": "u1"}));
    assert_eq!(
        (&label["label"], &label["labelTimestamp"]),
        (&json!("renamed"), &json!(stamp(3)))
    );
    let path: Vec<_> =
        ids(&d.ok("get_path", json!({"sessionId": session, "entryId": "a2"}))["entries"]);
    assert_eq!(path, ["u1", "a1", "u2", "a2"]);
    let moves = d.ok("get_navigation_log", json!({"sessionId": session}))["moves"].clone();
    assert_eq!(moves, json!([]), "records are not carried");
}

/// The daemon does not read a fork after it has written it: it uses the data of the source's entries.
#[test]
fn a_fork_holds_every_kind_of_entry_as_its_file_does() {
    let mut log = Log::new("s1").user("u0", "", "one");
    for (number, rest) in [
        r#""type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"t","arguments":{}}]}"#,
        r#""type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"t","isError":true,"content":[]}"#,
        r#""type":"message","message":{"role":"assistant","stopReason":"error","content":[]}"#,
        r#""type":"custom_message","customType":"x","content":"c","display":false"#,
        r#""type":"custom_message","customType":"x","content":"c","display":true"#,
        r#""type":"session_info","name":"a name""#,
        r#""type":"branch_summary","fromId":"u0","summary":"s""#,
        r#""type":"branch_summary","fromId":"nowhere","summary":"s","merge":true"#,
        r#""type":"compaction","firstKeptEntryId":"e1","summary":"s","tokensBefore":7"#,
        r#""type":"context_edit","targetId":"e2","replacement":null"#,
        r#""type":"thinking_level_change","thinkingLevel":"high""#,
        r#""type":"model_change","provider":"p","modelId":"m""#,
        r#""type":"custom","customType":"mine","data":{}"#,
        r#""type":"of another program","message":{"role":"user","content":"no"}"#,
        r#""type":"usage","kind":"k","provider":"p","model":"m","usage":{}"#,
        r#""type":"message","message":{"role":"user","content":"last"}"#,
    ]
    .iter()
    .enumerate()
    {
        let parent = match number {
            0 => "u0".to_owned(),
            n => format!("e{}", n - 1),
        };
        let at = match number % 3 {
            0 => "2025-01-01T00:00:09.000Z",
            1 => "2025-01-01T00:00:09+01:00",
            _ => "yesterday",
        };
        log = log.raw(&format!(
            r#"{{"id":"e{number}","parentId":"{parent}","timestamp":"{at}",{rest}}}"#
        ));
    }
    let mut d = opened(&log);
    let (result, _) = fork(&mut d, json!({"entryId": "e15", "position": "at"}));
    assert_eq!(result["session"]["entryCount"], 17);
    assert_eq!(result["session"]["leafId"], "e15");
}

#[test]
fn a_compaction_boundary_on_a_left_out_entry_is_moved() {
    for boundary in ["l1", "r1"] {
        let log = Log::new("s1")
            .user("u1", "", "one")
            .assistant("a1", "u1", "two")
            .label("l1", "a1", "u1", json!("x"))
            .record("r1", "l1", "u1")
            .user("u2", "r1", "three")
            .entry(
                "compaction",
                "k1",
                "u2",
                json!({"summary": "SUM", "firstKeptEntryId": boundary, "tokensBefore": 1}),
            )
            .assistant("a2", "k1", "four");
        let mut d = opened(&log);
        let (result, path) = fork(&mut d, json!({"entryId": "a2"}));
        let kept = file_lines(&path.unwrap())
            .into_iter()
            .find(|l| l["id"] == "k1")
            .unwrap();
        assert_eq!(kept["firstKeptEntryId"], "u2", "{boundary} was left out");
        let context = |d: &mut Daemon, id: &Json| {
            d.ok("get_context", json!({"sessionId": id, "leafId": "a2"}))["entryIds"].clone()
        };
        let forked = context(&mut d, &result["session"]["sessionId"]);
        assert_eq!(forked, json!(["k1", "u2", "a2"]));
        assert_eq!(
            context(&mut d, &json!("s1")),
            forked,
            "fork and source agree"
        );
    }
}

#[test]
fn unanswered_tool_calls_are_refused_or_closed() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .message(
            "c1",
            "u1",
            assistant_with(json!([
                tool_call("k1", "read", json!({"path": "x"})),
                tool_call("k2", "bash", json!({"command": "ls"})),
            ])),
        )
        .message("t1", "c1", tool_result("k1", "read", "x", false))
        .message("t2", "t1", tool_result("k2", "bash", "y", false));
    let mut d = opened(&log);
    for entry in ["c1", "t1"] {
        let error = d.err("fork_session", json!({"sessionId": "s1", "entryId": entry}));
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1208, "unansweredToolCalls"),
            "at {entry}"
        );
    }
    assert!(d.home.session_files().is_empty(), "nothing was made");
    let (result, path) = fork(&mut d, json!({"entryId": "t2"}));
    assert_eq!(result["session"]["entryCount"], 4, "all answered");
    fs::remove_file(path.unwrap()).unwrap();

    let (result, _) = fork(&mut d, json!({"entryId": "t1", "closeToolCalls": true}));
    let entries = entries_of(&mut d, &result["session"]);
    assert_eq!(ids(&json!(entries))[..3], ["u1", "c1", "t1"]);
    assert_eq!(entries.len(), 4, "one result for the one open call");
    let closing = &entries[3]["message"];
    assert_eq!(
        (&closing["role"], &closing["toolCallId"]),
        (&json!("toolResult"), &json!("k2"))
    );
    assert_eq!(
        (&closing["toolName"], &closing["isError"]),
        (&json!("bash"), &json!(true))
    );
    assert_eq!(entries[3]["parentId"], "t1");
}

#[test]
fn a_fork_at_an_unknown_entry_is_refused() {
    let mut d = opened(&plain());
    d.err_kind(
        "fork_session",
        json!({"entryId": "nobody"}),
        "entryNotFound",
    );
    d.err_kind(
        "fork_session",
        json!({"entryId": "u2", "position": "after"}),
        "invalidParams",
    );
}

// --- questions and notifications ---

fn asked() -> Daemon {
    let home = Home::new();
    let path = plain().save(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    for name in ["session_opened", "session_closed", "entries_appended"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_fork": {}}}));
    d.open(&path);
    d
}

#[test]
fn a_fork_can_be_cancelled_by_the_client() {
    let mut d = asked();
    let id = d.send("fork_session", json!({"entryId": "a2"}));
    let event = d.notification("session_before_fork");
    assert_eq!(event["sessionId"], "s1");
    assert_eq!(
        (&event["entryId"], &event["position"]),
        (&json!("a2"), &json!("at"))
    );
    assert!(event["timeoutMs"].as_u64() > Some(0), "{event}");
    d.still_waits(&id);
    d.answer(&event, json!({"cancel": true}));
    let resolved = d.notification("event_resolved");
    assert_eq!(
        (&resolved["event"], &resolved["outcome"]),
        (&json!("session_before_fork"), &json!("cancelled"))
    );
    assert_eq!(d.response(&id).unwrap()["cancelled"], true);
    assert!(d.home.session_files().is_empty());
    assert_eq!(d.leaf(), "u3", "one session is open");
}

/// If the session was not open yet when the request arrived, a fork once kept its position in the queue during its
/// question. A client that asked for the list before it answered the question got no answer to either request.
#[test]
fn a_list_does_not_wait_for_the_question_of_a_fork_sent_behind_the_opening() {
    let home = Home::new();
    let path = plain().save(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    for name in ["session_opened", "session_closed"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_fork": {}}}));
    let opening = d.send("open_session", json!({"path": path}));
    let id = d.send("fork_session", json!({"sessionId": "s1", "entryId": "a2"}));
    d.response(&opening).unwrap();
    let event = d.notification("session_before_fork");
    d.still_waits(&id);
    d.answer(&event, json!({"cancel": true}));
    assert_eq!(d.notification("event_resolved")["outcome"], "cancelled");
    assert_eq!(d.response(&id).unwrap()["cancelled"], true);
}

#[test]
fn a_fork_is_announced_in_the_source_session() {
    let mut d = asked();
    let id = d.send("fork_session", json!({"entryId": "u2"}));
    let event = d.notification("session_before_fork");
    assert_eq!(event["position"], "before");
    d.answer(&event, json!({}));
    assert_eq!(d.notification("event_resolved")["outcome"], "proceed");
    let result = d.response(&id).unwrap();
    let announced = d.notification("session_fork");
    assert_eq!(
        (&announced["sessionId"], &announced["entryId"]),
        (&json!("s1"), &json!("u2"))
    );
    assert_eq!(announced["newSessionId"], result["session"]["sessionId"]);
}

#[test]
fn a_fork_does_not_wait_for_a_client_without_answers() {
    let mut d = opened(&plain());
    fork(&mut d, json!({"entryId": "a2"}));
    assert_eq!(d.notification("session_before_fork")["timeoutMs"], 0);
}

#[test]
fn get_fork_messages_lists_user_messages() {
    let log = plain()
        .user("empty", "u3", "")
        .message("parts", "empty", json!({"role": "user", "timestamp": 1, "content": [
            {"type": "text", "text": "in parts"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]}));
    let mut d = opened(&log);
    let messages = d.ok("get_fork_messages", json!({}))["messages"].clone();
    let found: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            (
                m["entryId"].as_str().unwrap(),
                m["text"].as_str().unwrap(),
                m["onActivePath"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("u1", "one", true),
            ("u2", "three", false),
            ("u3", "another branch", true),
            ("parts", "in parts", true)
        ]
    );
}

fn labelled() -> Log {
    Log::new("s1")
        .user("u1", "", "one")
        .label("l1", "u1", "u1", json!("mark"))
        .assistant("a1", "l1", "two")
        .entry(
            "compaction",
            "k1",
            "a1",
            json!({"summary": "SUM", "firstKeptEntryId": "l1", "tokensBefore": 1}),
        )
        .assistant("a2", "k1", "three")
}

/// Labels were once left out of forks, but the entries below them still named them as parents, so the path was broken.
#[test]
fn a_label_between_messages_is_left_out_and_the_path_stays_whole() {
    let (mut d, _) = Daemon::opened(labelled().text().as_bytes());
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let fork = d.ok("fork_session", json!({"entryId": "a2"}))["session"]["sessionId"].clone();
    let path = d.ok("get_path", json!({"sessionId": fork, "entryId": "a2"}));
    assert_eq!(ids(&path["entries"]), ["u1", "a1", "k1", "a2"]);
    let opened = d.ok("open_session", json!({"sessionId": fork}));
    assert_eq!(opened["diagnostics"], json!([]), "no orphans");
}

/// If the first kept entry was such a label, the fork did not have it, so the kept messages were missing in the
/// context.
#[test]
fn a_compaction_that_keeps_from_a_left_out_label_keeps_the_same_messages() {
    let (mut d, _) = Daemon::opened(labelled().text().as_bytes());
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let before = d.ok("get_context", json!({}))["messages"].clone();
    assert_eq!(before.as_array().unwrap().len(), 3, "{before}");
    let fork = d.ok("fork_session", json!({"entryId": "a2"}))["session"]["sessionId"].clone();
    assert_eq!(
        d.ok("get_context", json!({"sessionId": fork, "leafId": "a2"}))["messages"],
        before
    );
}

#[test]
fn fork_session_makes_a_file_and_branch_moves_the_leaf() {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    d.ok("branch", json!({"entryId": "a1"}));
    assert_eq!(d.home.session_files().len(), 1);
    d.ok("fork_session", json!({"entryId": "a2"}));
    assert_eq!(d.home.session_files().len(), 2);
    assert_eq!(d.notification("session_before_fork")["entryId"], "a2");
    assert_eq!(d.notification("session_fork")["entryId"], "a2");
}
