//! Finds imported sessions by their tool, and by the ids that the tool gave them. protocol.md §3.4.

use super::*;

/// Once only the id that the daemon made could be used, but people have the id of their tool.
#[test]
fn a_session_is_found_by_the_id_that_its_tool_gave_it() {
    let home = Home::new();
    const NATIVE: &str = "48f428f9-72d8-40b2-9594-953019809473";
    home.file("s.jsonl", conversation(NATIVE, 2).as_bytes());
    let mut d = Daemon::quiet_in(&home);
    d.ok("import_sessions", params(&home));
    d.ok("create_session", json!({"cwd": "/w"}));
    let found = |d: &mut Daemon, params: Json| {
        let rows = d.ok("list_sessions", params)["sessions"]
            .as_array()
            .unwrap()
            .clone();
        let ids = rows
            .iter()
            .map(|row| (row["source"].clone(), row["nativeIds"].clone()));
        ids.collect::<Vec<_>>()
    };
    let imported = [(json!("claude-code"), json!([NATIVE]))];
    assert_eq!(found(&mut d, json!({"query": NATIVE})), imported);
    assert_eq!(found(&mut d, json!({"source": "claude-code"})), imported);
    assert_eq!(found(&mut d, json!({"source": "codex"})), []);
    let run = |args: &[&str]| home.run(args, &[], "").clean().text();
    for id in [NATIVE, &NATIVE[..8]] {
        let drawn = run(&["tree", id]);
        assert!(drawn.starts_with("question 0\n"), "{drawn}");
    }
    let listed = run(&["list", "--all", "--from", "claude-code"]);
    assert!(
        listed.contains("claude-code") && listed.contains("question 0"),
        "{listed}"
    );
    let none = home.run(&["list", "--all", "--from", "pi"], &[], "");
    assert!(
        none.stderr.contains("no session imported from pi"),
        "{}",
        none.stderr
    );
    let searched = home.run(&["search", NATIVE], &[], "");
    assert!(
        searched.stderr.contains("a session has this id"),
        "{}",
        searched.stderr
    );
}

/// A conversation that was recorded over ACP and then imported was once two sessions, without a message about it.
#[test]
fn a_record_and_an_import_of_one_conversation_name_each_other() {
    let home = Home::new();
    let [native, other] = ["48f428f9-72d8-40b2-9594-953019809473", "5f2c"];
    home.file("s.jsonl", conversation(native, 1).as_bytes());
    home.file("t.jsonl", conversation("another", 1).as_bytes());
    let mut d = Daemon::quiet_in(&home);
    for (id, agents) in [("record", native), ("record-of-another", other)] {
        d.ok("create_session", json!({"cwd": "/w", "sessionId": id}));
        let about = json!({
            "type": "custom", "id": "about", "parentId": null, "customType": "acp.session",
            "data": {"agent": "claude-code-acp", "sessionId": agents},
        });
        let mut entries = vec![about];
        // A conversation that moves often continues in many sessions of the agent.
        for number in 0..70 {
            entries.push(json!({
                "type": "custom", "id": format!("later{number}"), "parentId": "about", "customType": "acp.session",
                "data": {"agent": "claude-code-acp", "sessionId": format!("{id}{number}")},
            }));
        }
        d.ok(
            "append_entries",
            json!({"sessionId": id, "entries": entries}),
        );
    }
    let result = d.ok("import_sessions", params(&home));
    let sessions = result["sessions"].as_array().unwrap();
    let reported = |id: &str| {
        let row = sessions.iter().find(|row| row["nativeId"] == id).unwrap();
        (row["sessionId"].clone(), row["sameConversation"].clone())
    };
    let (imported, others) = reported(native);
    assert_eq!(others, json!(["record"]));
    assert_eq!(reported("another").1, Json::Null);
    let list = d.ok("list_sessions", json!({}));
    let named = |id: &Json| {
        let rows = list["sessions"].as_array().unwrap();
        let row = rows.iter().find(|row| row["sessionId"] == *id).unwrap();
        row["sameConversation"].clone()
    };
    assert_eq!(named(&json!("record")), json!([imported]));
    assert_eq!(named(&imported), json!(["record"]));
    assert_eq!(named(&json!("record-of-another")), Json::Null);
    drop(d);
    let files = home.files().display().to_string();
    for args in [
        &["list", "--all"][..],
        &["search", "answer"],
        &["import", "--from", "claude-code", &files],
    ] {
        let shown = home.run(args, &[], "").clean().text();
        let named = shown.matches("same conversation: record").count();
        assert_eq!(named, 1, "{args:?}: {shown}");
    }
}

/// A conversation that was imported and then recorded once gave every hit twice.
#[test]
fn an_entry_of_a_record_and_of_its_import_is_one_answer() {
    let home = Home::new();
    const NATIVE: &str = "48f428f9-72d8-40b2-9594-953019809473";
    home.file("s.jsonl", conversation(NATIVE, 1).as_bytes());
    let mut d = Daemon::quiet_in(&home);
    d.ok("import_sessions", params(&home));
    for id in ["record", "another"] {
        d.ok("create_session", json!({"cwd": "/w", "sessionId": id}));
        let said = json!({"type": "message", "id": "said", "parentId": null,
            "message": {"role": "user", "content": "question 0"}});
        let about = json!({
            "type": "custom", "id": "about", "parentId": "said", "customType": "acp.session",
            "data": {"agent": "claude-code-acp", "sessionId": if id == "record" { NATIVE } else { "x" }},
        });
        let entries = json!([said, about]);
        d.ok(
            "append_entries",
            json!({"sessionId": id, "entries": entries}),
        );
    }
    let found = |d: &mut Daemon, mode: &str| {
        let hits = d.ok("search", json!({"query": "question", "mode": mode}));
        hits["hits"].as_array().unwrap().len()
    };
    assert_eq!(found(&mut d, "words"), 3, "exact searches are complete");
    assert_eq!(
        found(&mut d, "ask"),
        2,
        "the session of another conversation stays"
    );
}

/// An editor once loaded a session that an agent had got from treelined, and the recorder of the editor found no
/// session with that id.
#[test]
fn a_session_is_found_by_the_agents_that_go_on_from_it() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    let handed_over = json!({"id": "0123456789abcdef", "sessionId": "s", "entryId": "m", "tool": "codex",
        "nativeId": "native-of-codex", "cwd": "/w", "messages": 2, "sha256": "0"});
    d.ok("create_session", json!({"cwd": "/w", "sessionId": "s"}));
    let of = |id: &str, agents: &str, its: &str| {
        json!({"type": "custom", "id": id, "parentId": null, "customType": "acp.session",
            "data": {"agent": "a", "sessionId": agents, "in": its}})
    };
    let message = json!({"type": "message", "id": "m", "parentId": null,
        "message": {"role": "user", "content": "hello"}});
    let entries = json!([
        message,
        of("about", "recorded", "s"),
        of("copied", "of-another", "t")
    ]);
    d.ok(
        "append_entries",
        json!({"sessionId": "s", "entries": entries}),
    );
    let listed = |d: &mut Daemon, query: &str| {
        d.ok("list_sessions", json!({"query": query}))["sessions"].clone()
    };
    let path = listed(&mut d, "recorded")[0]["path"].clone();
    drop(d);
    let path = path.as_str().unwrap();
    let record = json!({"type": "custom", "customType": "treelined.leaf", "id": "r", "parentId": "m",
        "timestamp": "2026-03-01T09:55:00.000Z",
        "data": {"from": "m", "cause": "continue", "continuation": handed_over}});
    let text = std::fs::read_to_string(path).unwrap() + &format!("{record}\n");
    std::fs::write(path, text).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let agents = json!([{"nativeId": "native-of-codex", "entryId": "m", "tool": "codex"},
        {"nativeId": "recorded", "entryId": "about"}]);
    for query in ["native-of-codex", "recorded"] {
        assert_eq!(listed(&mut d, query)[0]["agentSessions"], agents, "{query}");
    }
    assert_eq!(listed(&mut d, "of-another"), json!([]));
}
