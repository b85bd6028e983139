//! Hits and the branches that were left. protocol.md §3.16.

use super::{ask, ids, store};
use crate::harness::*;

/// This search returns the failed attempt, which no other search returns.
#[test]
fn a_hit_says_why_its_branch_was_left_and_what_was_tried_instead() {
    let home = Home::new();
    let note = |target: &str| json!({"customType": "note", "data": {"targetId": target, "reason": "It deadlocks.", "outcome": "abandoned"}});
    let log = Log::new("s")
        .user("u1", "", "Make it fast")
        .user("u2", "u1", "Try a mutex around the queue")
        .assistant("a2", "u2", "Added the mutex.")
        .user("u3", "u1", "Use a channel")
        .assistant("a3", "u3", "Works.")
        .entry("custom", "n1", "a3", note("a2"));
    store(&home, log, "s");
    let log = Log::new("t")
        .user("u1", "", "Start")
        .user("u2", "u1", "Try a spinlock")
        .user("u3", "u1", "Sleep")
        .entry(
            "branch_summary",
            "b1",
            "u3",
            // All summaries have the same first line. It was once shown instead of the reason.
            json!({"fromId": "u2", "summary": "This is a summary of a branch that was explored before the conversation returned here.\n\nToo hot."}),
        );
    store(&home, log, "t");
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(
        ask(&mut d, "mutex queue")["hits"][0]["branch"],
        json!({
            "tipId": "a2", "onActivePath": false, "leftAt": "u1",
            "reason": {"kind": "note", "entryId": "n1", "text": "It deadlocks."},
            "instead": {"entryId": "u3", "text": "Use a channel"},
        })
    );
    let reason = &ask(&mut d, "spinlock")["hits"][0]["branch"]["reason"];
    assert_eq!(
        *reason,
        json!({"kind": "summary", "entryId": "b1", "text": "Too hot."})
    );
    let active = json!({"query": "mutex", "mode": "ask", "branches": "active"});
    assert!(ids(&d.ok("search", active)).is_empty());
    // `treelined ask branch:left` once listed the branches that were left, and did not say why.
    let mut typed = |query: &str, mode: &str| {
        let params = json!({"query": query, "mode": mode, "syntax": "filters"});
        let result = d.ok("search", params);
        let hits = result["hits"].as_array().unwrap().iter();
        let branches = hits.map(|hit| hit["branch"].clone());
        branches.collect::<Vec<_>>()
    };
    for query in ["branch:left", "branch:left /mutex|spin/"] {
        let branches = typed(query, "ask");
        let reasons = branches.iter().map(|branch| &branch["reason"]["text"]);
        let reasons: Vec<_> = reasons.map(|reason| reason.as_str().unwrap()).collect();
        assert!(
            reasons.contains(&"It deadlocks.") && reasons.contains(&"Too hot."),
            "{query}: {reasons:?}"
        );
        let instead = |branch: &Json| branch["instead"]["text"].is_string();
        assert!(branches.iter().all(instead), "{query}: {branches:?}");
    }
    let branches = typed("branch:active", "ask");
    assert!(branches.iter().all(|branch| branch.get("reason").is_none()));
    let branches = typed("branch:left", "words");
    assert!(branches.iter().all(|branch| branch.get("reason").is_none()));
    // The word that an import writes at a fork without a title was once told as the reason.
    let log = Log::new("f")
        .user("u1", "", "Begin")
        .user("u2", "u1", "Try a semaphore")
        .label("l1", "u2", "u2", json!("fork"))
        .user("u3", "u1", "Wait");
    store(&home, log, "f");
    let branch = &ask(&mut d, "semaphore")["hits"][0]["branch"];
    assert_eq!(branch["instead"]["text"], "Wait");
    assert_eq!(branch.get("reason"), None);
}

/// A person who tries another way does not repeat the prompt, so its hit once did not show the failed attempts.
#[test]
fn a_hit_on_the_path_has_the_branches_that_were_left_in_its_turn() {
    let home = Home::new();
    let note = json!({"customType": "note", "data": {"targetId": "a2", "reason": "It sleeps too.", "outcome": "abandoned"}});
    let log = Log::new("s")
        .user("u1", "", "Begin")
        .assistant("a1", "u1", "Ready.")
        .user("u2", "a1", "Make the websocket reconnect")
        .assistant("a2", "u2", "I use a timer.")
        .assistant("a3", "u2", "I ask the kernel.")
        .user("u3", "a3", "Shorter.")
        .assistant("a4", "a3", "Both ends inside.")
        // Another prompt in the place of the first.
        .user("u4", "a1", "Make the socket robust")
        .assistant("a5", "u2", "I use the events of the network.")
        .user("u5", "a5", "Now the page.")
        .user("u6", "a5", "Now the manual.")
        .assistant("a6", "u6", "Done.")
        .entry("custom", "n1", "a6", note);
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let mut left = |query: &str| {
        let branch = ask(&mut d, query)["hits"][0]["branch"].clone();
        let tips = branch["leftInTurn"]["newest"].as_array().cloned();
        let tips = tips.unwrap_or_default().into_iter();
        let tips: Vec<String> = tips
            .map(|one| one["tipId"].as_str().unwrap().into())
            .collect();
        (branch, tips.join(" "))
    };
    let (branch, tips) = left("websocket reconnect");
    assert_eq!(tips, "u5 u4 a4");
    assert_eq!(branch["leftInTurn"]["count"], 5);
    assert_eq!(branch.get("reason"), None);
    // The answer is in the same turn.
    assert_eq!(left("events network").1, "u5 u4 a4");
    let (branch, tips) = left("manual");
    assert_eq!(tips, "u5");
    let mut newest = branch["leftInTurn"]["newest"].clone();
    let at = newest[0].as_object_mut().unwrap().remove("at");
    assert!(at.is_some_and(|at| at.is_string()));
    let end = json!([{"tipId": "u5", "end": {"entryId": "u5", "text": "Now the page."}}]);
    assert_eq!(newest, end);
    assert_eq!(left("begin ready").1, "u4");
    // An entry that is not on the path has its own reason.
    let (branch, tips) = left("timer");
    assert_eq!(branch["reason"]["text"], "It sleeps too.");
    assert_eq!(tips, "");
}

/// The tip of the branch is below an answer without text.
#[test]
fn a_branch_in_a_turn_has_its_reason_and_its_end() {
    let home = Home::new();
    let log = Log::new("t")
        .user("u1", "", "Make the parser lazy")
        .assistant("a2", "u1", "")
        .user("u2", "a2", "Try it with a thunk")
        .entry(
            "label",
            "l1",
            "u2",
            json!({"targetId": "u2", "label": "too slow"}),
        )
        .assistant("a3", "u1", "It is lazy now.");
    store(&home, log, "t");
    let mut d = Daemon::quiet_in(&home);
    let branch = &ask(&mut d, "lazy parser")["hits"][0]["branch"];
    let newest = &branch["leftInTurn"]["newest"];
    assert_eq!(newest.as_array().unwrap().len(), 1);
    assert_eq!(
        (&newest[0]["tipId"], &newest[0]["reason"]),
        (
            &json!("u2"),
            &json!({"kind": "label", "entryId": "l1", "text": "too slow"})
        )
    );
    assert_eq!(
        newest[0]["end"],
        json!({"entryId": "u2", "text": "Try it with a thunk"})
    );
    let words = json!({"query": "lazy parser", "mode": "words"});
    assert_eq!(
        d.ok("search", words)["hits"][0]["branch"].get("leftInTurn"),
        None
    );
    // Archived branches are hidden here too.
    d.ignore("branches_changed");
    d.ok("open_session", json!({"sessionId": "t"}));
    d.ok("archive_branch", json!({"entryId": "u2"}));
    assert_eq!(
        ask(&mut d, "lazy parser")["hits"][0]["branch"].get("leftInTurn"),
        None
    );
}
