//! Filters with a value that nothing has, and values that complete a query. protocol.md §3.16 and §3.19.

use super::two;
use crate::harness::*;

fn unknown(d: &mut Daemon, query: &str, mode: &str) -> Json {
    let params = json!({"query": query, "syntax": "filters", "mode": mode});
    let found = d.ok("search", params);
    assert_eq!(found["hits"], json!([]), "{query}");
    found["didYouMean"].clone()
}

/// `tool:bsh` and `source:cluade` once found nothing, without a reason.
#[test]
fn a_value_that_nothing_has_is_named_with_a_near_one() {
    let home = Home::new();
    two(&home);
    let members = json!({"message": user("plums"), "origin": {"tool": "claude-code"}});
    Log::new("imported")
        .raw(&entry_line(70, "message", "m1", "", members))
        .store(&home, "2025-05-01T00-00-00-000Z_imported.jsonl");
    let near = |word: &str, near: &[&str]| json!([{"word": word, "near": near}]);
    let mut d = Daemon::quiet_in(&home);
    // The first round reads the files, the later ones the kept counts.
    for round in 0..3 {
        for mode in ["words", "ask"] {
            let mut unknown = |query: &str| unknown(&mut d, query, mode);
            for (query, word, meant) in [
                ("apples tool:Bsh", "tool:Bsh", "tool:bash"),
                ("tool:bsh", "tool:bsh", "tool:bash"),
                ("source:cluade", "source:cluade", "source:claude-code"),
                (
                    "apples source:claude",
                    "source:claude",
                    "source:claude-code",
                ),
                ("type:mesage", "type:mesage", "type:message"),
            ] {
                assert_eq!(unknown(query), near(word, &[meant]), "{round} {mode}");
            }
            assert_eq!(
                unknown("apples tool:\"my editor\""),
                near("tool:\"my editor\"", &["tool:bash"])
            );
            // No hit is a label, so no entry is of this type.
            let types = unknown("type:label");
            assert!(
                !types.to_string().contains("\"near\":[\"type:label"),
                "{types}"
            );
            // Each value occurs, but not with the words.
            assert_eq!(unknown("plums tool:bash"), Json::Null, "{mode}");
        }
    }
    // A param is of a program, which knows its values.
    let found = d.ok("search", json!({"query": "apples", "tool": "bsh"}));
    assert_eq!(found.get("didYouMean"), None);
}

#[test]
fn tags_branches_and_directories_that_no_session_has_are_named() {
    let home = Home::new();
    two(&home);
    let git = json!({"customType": "treelined.git", "data": {"branch": "fix/cache"}});
    Log::new("tagged")
        .user("u1", "", "apples")
        .entry("custom", "g1", "u1", git)
        .store(&home, "2025-05-01T00-00-00-000Z_tagged.jsonl");
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"sessionId": "tagged"}));
    d.ok("tag_session", json!({"add": ["release"]}));
    let near = |word: &str, near: &[&str]| json!([{"word": word, "near": near}]);
    for (query, word, meant) in [
        ("apples tag:realese", "tag:realese", "tag:release"),
        ("apples git:fix/cahe", "git:fix/cahe", "git:fix/cache"),
        ("cwd:/other/gardn", "cwd:/other/gardn", "cwd:/other/garden"),
    ] {
        assert_eq!(unknown(&mut d, query, "words"), near(word, &[meant]));
    }
    assert_eq!(
        unknown(&mut d, "cwd:/nowhere", "words"),
        near("cwd:/nowhere", &[])
    );
    let both = unknown(&mut d, "apples tag:x git:fix/cache", "words");
    assert_eq!(both, near("tag:x", &["tag:release"]));
    assert_eq!(unknown(&mut d, "plums cwd:/other", "words"), Json::Null);
}

/// An agent that searches its own directory must not learn the names of another one.
#[test]
fn other_directories_give_no_values() {
    let home = Home::new();
    two(&home);
    let mut d = Daemon::quiet_in(&home);
    for mode in ["words", "ask"] {
        let params = json!({
            "query": "apples tool:bsh cwd:/none", "syntax": "filters", "mode": mode, "cwd": "/elsewhere",
        });
        let found = d.ok("search", params);
        assert!(!found.to_string().contains("bash"), "{found}");
        assert!(!found.to_string().contains("garden"), "{found}");
        let params = json!({
            "query": "apples tool:bsh", "syntax": "filters", "mode": mode, "cwd": "/elsewhere",
        });
        let found = d.ok("search", params);
        assert_eq!(
            found["didYouMean"],
            json!([{"word": "tool:bsh", "near": []}])
        );
    }
}

#[test]
fn a_query_is_completed() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    let completed = d.ok("complete_query", json!({"query": "é ro x", "position": 4}));
    let items = json!([{"text": "role:", "about": "messages of this role"}]);
    assert_eq!(completed, json!({"start": 2, "end": 4, "items": items}));
    let completed = d.ok("complete_query", json!({"query": "source:claude-c"}));
    assert_eq!(
        completed,
        json!({"start": 7, "end": 15, "items": [{"text": "claude-code"}]})
    );
}

/// The filters whose values only the sessions have were once not completed.
#[test]
fn values_that_occur_complete_a_query() {
    let home = Home::new();
    two(&home);
    let mut d = Daemon::quiet_in(&home);
    let texts = |completed: Json| {
        let items = completed["items"].as_array().unwrap().clone();
        let texts = items.iter().map(|item| item["text"].as_str().unwrap());
        texts.collect::<Vec<_>>().join(" ")
    };
    for (id, branch) in [("t1", "main"), ("t2", "main"), ("t3", "fix it")] {
        let git = json!({"branch": branch});
        d.ok(
            "create_session",
            json!({"sessionId": id, "cwd": "/project", "git": git}),
        );
        let append = json!({"sessionId": id, "message": user("plums")});
        d.ok("append_message", append);
    }
    d.ok(
        "tag_session",
        json!({"sessionId": "t1", "add": ["Later", "later-still"]}),
    );
    let mut items = |query: &str| texts(d.ok("complete_query", json!({"query": query})));
    assert_eq!(items("tag:la"), "later later-still");
    assert_eq!(items("plums tag:#later-"), "later-still");
    assert_eq!(items("git:"), "main \"fix it\"");
    assert_eq!(items("git:m"), "main");
    assert_eq!(items("git:x"), "");
    // The first question makes the counts.
    d.ok("search", json!({"query": "apples", "mode": "ask"}));
    let mut found = String::new();
    for _round in 0..300 {
        found = texts(d.ok("complete_query", json!({"query": "apples tool:BA"})));
        if !found.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(found, "bash");
}
