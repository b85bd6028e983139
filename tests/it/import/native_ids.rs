//! Imported sessions by the tool that they come from, and by the ids that it gave them. protocol.md §3.4.

use super::*;

/// Only the id that the daemon made was known; people have that of their tool.
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
