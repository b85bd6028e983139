//! Entries from another session: `cherry_pick` and `merge_branch` with `fromSessionId` (protocol.md §3.12).

use crate::harness::*;

fn usage(cost: f64) -> Json {
    json!({"input": 10, "output": 1, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": cost}})
}

fn answer(text: &str, cost: f64) -> Json {
    let content = json!([{"type": "text", "text": text}]);
    json!({"role": "assistant", "content": content, "usage": usage(cost), "provider": "p", "model": "m", "stopReason": "stop"})
}

/// A session u1 → a1 → u2 that is open, and a closed fork of it at a1, which continues with f1 → f2.
fn with_fork() -> (Daemon, String, std::path::PathBuf) {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    for name in [
        "session_opened",
        "session_closed",
        "session_fork",
        "entries_appended",
        "event_resolved",
        "progress",
        "session_before_tree",
        "session_before_fork",
        "diagnostics",
    ] {
        d.ignore(name);
    }
    d.init(json!({"answers": {}}));
    d.ok("create_session", json!({"sessionId": "mother"}));
    d.chain(&["u1", "a1", "u2"]);
    let params = json!({"sessionId": "mother", "entryId": "a1", "position": "at"});
    let fork = d.ok("fork_session", params)["session"].clone();
    let id = fork["sessionId"].as_str().unwrap().to_owned();
    let entries = json!([
        {"type": "message", "id": "f1", "message": user("Try the other way.")},
        {"type": "message", "id": "f2", "message": answer("It works.", 0.5)},
    ]);
    d.ok(
        "append_entries",
        json!({"sessionId": id, "entries": entries}),
    );
    d.ok("close_session", json!({"sessionId": id}));
    let path = std::path::PathBuf::from(fork["path"].as_str().unwrap());
    (d, id, path)
}

fn tokens(d: &mut Daemon) -> Json {
    d.ok("get_stats", json!({}))["cost"].clone()
}

/// The message once said that this session has no such entry, although the entry of the other session was requested.
#[test]
fn an_unknown_entry_is_one_of_the_other_session() {
    let (mut d, fork, _) = with_fork();
    let calls = [
        (
            "cherry_pick",
            json!({"entryIds": ["f1", "nosuch"], "fromSessionId": fork}),
        ),
        (
            "merge_branch",
            json!({"tipId": "nosuch", "fromSessionId": fork}),
        ),
    ];
    for (method, params) in calls {
        let refused = d.err(method, params);
        assert_eq!(refused.kind, "entryNotFound");
        assert_eq!(refused.details("entryId"), "nosuch");
        assert!(
            refused
                .message
                .contains(&format!("the other session {fork:?}")),
            "{refused:?}"
        );
    }
}

#[test]
fn copies_name_the_session_and_the_entry() {
    let (mut d, fork, _) = with_fork();
    let before = tokens(&mut d);
    let picked = d.ok(
        "cherry_pick",
        json!({"entryIds": ["f1", "f2"], "fromSessionId": fork}),
    );
    let ids = ids(&picked["entryIds"]);
    assert_eq!(d.path_ids(None), ["u1", "a1", "u2", &ids[0], &ids[1]]);
    let copy = d.entry(&ids[1]);
    assert_eq!(
        copy["copiedFrom"],
        json!({"sessionId": fork, "entryId": "f2"})
    );
    assert_eq!(copy["message"], answer("It works.", 0.5));
    assert_eq!(tokens(&mut d), before, "the other session has counted it");
    let unknown = json!({"entryIds": ["f9"], "fromSessionId": fork});
    d.err_kind("cherry_pick", unknown, "entryNotFound");
    let unknown = json!({"entryIds": ["f1"], "fromSessionId": "nowhere"});
    d.err_kind("cherry_pick", unknown, "sessionNotFound");
    let own = d.ok(
        "cherry_pick",
        json!({"entryIds": ["u1"], "fromSessionId": "mother"}),
    );
    let own = own["leafId"].as_str().unwrap().to_owned();
    assert_eq!(d.entry(&own)["copiedFrom"], "u1");
}

#[test]
fn a_forks_own_part_is_merged() {
    let (mut d, fork, _) = with_fork();
    let merged = d.ok("merge_branch", json!({"fromSessionId": fork}));
    let summary = &merged["summaryEntry"];
    assert_eq!(
        (&summary["parentId"], &summary["fromId"], &summary["merge"]),
        (&json!("u2"), &json!("f2"), &json!(true))
    );
    assert_eq!(
        summary["copiedFrom"],
        json!({"sessionId": fork, "entryId": "f2"})
    );
    let text = summary["summary"].as_str().unwrap();
    assert!(
        text.contains("It works.") && text.contains("Try the other way."),
        "{text}"
    );
    assert!(
        !text.contains("text of u1"),
        "what both have is not merged: {text}"
    );
    assert_eq!(d.leaf(), summary["id"]);
    let nothing = d.ok(
        "merge_branch",
        json!({"fromSessionId": fork, "tipId": "a1"}),
    );
    assert_eq!(nothing["reason"], "alreadyThere");
    assert_eq!(nothing.get("summaryEntry"), None);
    d.err_kind("merge_branch", json!({}), "invalidParams");
}

#[test]
fn a_second_call_is_answered_with_the_first() {
    let (mut d, fork, _) = with_fork();
    let path = d
        .home
        .session_files()
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("mother"));
    let path = path.unwrap();
    let params = json!({"entryIds": ["f1", "f2"], "fromSessionId": fork, "expectedLeafId": "u2"});
    let first = d.ok("cherry_pick", params.clone());
    let merged = d.ok(
        "merge_branch",
        json!({"fromSessionId": fork, "tipId": "f2"}),
    );
    let before = std::fs::read(&path).unwrap();
    let again = d.ok("cherry_pick", params.clone());
    assert_eq!(
        (&again["entryIds"], &again["durability"]),
        (&first["entryIds"], &json!("none"))
    );
    let again = d.ok("merge_branch", json!({"fromSessionId": fork}));
    assert_eq!(
        (&again["summaryEntry"], &again["reason"]),
        (&merged["summaryEntry"], &json!("alreadyThere"))
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // A retry in another process, and after a restart, has the same result.
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("session_tree");
    d.open(&path);
    assert_eq!(d.ok("cherry_pick", params)["entryIds"], first["entryIds"]);
    // At another position of the leaf the same call is another request.
    d.set_leaf(Some("u2"));
    let there = json!({"entryIds": ["f1", "f2"], "fromSessionId": fork});
    assert_ne!(d.ok("cherry_pick", there)["entryIds"], first["entryIds"]);
}

#[test]
fn the_other_session_is_only_read() {
    let (mut d, fork, path) = with_fork();
    let before = std::fs::read(&path).unwrap();
    // The other session is open in another daemon, and its last line is incomplete.
    let mut other = Daemon::quiet_in(&d.home);
    other.ignore("diagnostics");
    other.open(&path);
    d.ok(
        "cherry_pick",
        json!({"entryIds": ["f1"], "fromSessionId": fork}),
    );
    d.ok("merge_branch", json!({"fromSessionId": fork}));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    d.err_kind("get_leaf", json!({"sessionId": fork}), "sessionNotFound");
    foreign_append(&path, "{\"type\":\"message\",\"id\":\"to");
    let merged = d.ok("merge_branch", json!({"fromSessionId": fork}));
    assert_eq!(merged["reason"], "alreadyThere", "{merged}");
    // The other session is open here: what is appended to it can be merged later.
    d.ok("open_session", json!({"sessionId": fork}));
    let params = json!({"sessionId": fork, "message": user("And faster?"), "entryId": "f3"});
    d.ok("append_message", params);
    let params = json!({"sessionId": "mother", "fromSessionId": fork});
    let merged = d.ok("merge_branch", params);
    assert_eq!(merged["summaryEntry"]["fromId"], "f3");
    d.allow_stderr();
}

/// Once, after a label on the last step of the other session, a retry made another summary and found that the leaf had
/// moved.
#[test]
fn a_repeated_merge_passes_over_bookkeeping_and_its_own_summary() {
    let (mut d, fork, _) = with_fork();
    let params = json!({"sessionId": "mother", "fromSessionId": fork, "expectedLeafId": "u2"});
    let merged = d.ok("merge_branch", params.clone());
    assert_eq!(
        d.ok("merge_branch", params.clone())["reason"],
        "alreadyThere"
    );
    d.ok("open_session", json!({"sessionId": fork}));
    let label = json!({"sessionId": fork, "targetId": "f2", "label": "good", "entryId": "l1"});
    d.ok("append_label", label);
    for tip in [Json::Null, json!("l1"), json!("f2")] {
        let mut params = params.clone();
        if !tip.is_null() {
            params["tipId"] = tip;
        }
        let again = d.ok("merge_branch", params);
        assert_eq!(again["summaryEntry"], merged["summaryEntry"]);
    }
    let other = json!({"sessionId": "mother", "fromSessionId": fork, "tipId": "f1", "expectedLeafId": "u2"});
    d.err_kind("merge_branch", other, "leafMoved");
}

/// Clients choose ids, so a session that is not a fork may have the same ones. Once, its beginning was missing in the
/// merge.
#[test]
fn sessions_with_equal_ids_are_not_forks() {
    let (mut d, ..) = with_fork();
    d.ok("create_session", json!({"sessionId": "stranger"}));
    let at = "2026-01-01T00:00:00.000Z";
    let entries = json!([
        {"type": "message", "id": "u1", "timestamp": at, "message": user("Is it raining?")},
        {"type": "message", "id": "a1", "timestamp": at, "message": answer("It pours.", 0.5)},
    ]);
    d.ok(
        "append_entries",
        json!({"sessionId": "stranger", "entries": entries}),
    );
    d.ok("close_session", json!({"sessionId": "stranger"}));
    let merged = d.ok("merge_branch", json!({"fromSessionId": "stranger"}));
    let text = merged["summaryEntry"]["summary"].as_str().unwrap();
    assert!(
        text.contains("Is it raining?") && text.contains("It pours."),
        "{text}"
    );
}
