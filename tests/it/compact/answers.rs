//! Answers to the question before a compaction, and other requests while the question is open.

use super::*;
use crate::config::{self, script};

#[test]
fn a_clients_compaction_is_stored_as_given() {
    let mut d = asked();
    talk(&mut d);
    let id = d.send(
        "compact",
        json!({"keepRecentTokens": 200, "customInstructions": "focus"}),
    );
    let event = d.notification("session_before_compact");
    assert_eq!(event["reason"], "manual");
    assert_eq!(event["timeoutMs"], 30_000);
    assert_eq!(event["preparation"]["firstKeptEntryId"], "u4");
    assert_eq!(event["preparation"]["customInstructions"], "focus");
    d.still_waits(&id);
    assert_eq!(d.leaf(), "a4", "reads never wait for a question");
    let given = json!({"summary": " S\n", "firstKeptEntryId": "a3", "details": {"n": 1.0}});
    d.answer(&event, json!({"compaction": given}));
    let resolved = d.notification("event_resolved");
    assert_eq!(resolved["event"], "session_before_compact");
    assert_eq!(resolved["outcome"], "summary");
    assert_eq!(resolved["by"], "it");
    let entry = d.response(&id).unwrap()["compactionEntry"].clone();
    let announced = d.notification("session_compact");
    assert_eq!(
        (&announced["compactionEntry"], &announced["fromHook"]),
        (&entry, &json!(true))
    );
    for member in ["summary", "firstKeptEntryId", "details"] {
        assert_eq!(entry[member], given[member]);
    }
    assert_eq!(entry["fromHook"], true);
    let own = entry["id"].as_str().unwrap();
    assert_eq!(context_ids(&mut d), [own, "a3", "u4", "a4"]);
}

#[test]
fn a_clients_compaction_keeps_from_the_prepared_entry_by_default_and_never_from_an_unknown_one() {
    let mut d = asked();
    talk(&mut d);
    for (given, expect) in [
        (json!({"summary": "S", "firstKeptEntryId": "nobody"}), None),
        (json!({"summary": "S"}), Some("u4")),
    ] {
        let id = d.send("compact", json!({"keepRecentTokens": 200}));
        let event = d.notification("session_before_compact");
        d.answer(&event, json!({"compaction": given}));
        d.notification("event_resolved");
        match expect {
            Some(kept) => {
                let entry = d.response(&id).unwrap()["compactionEntry"].clone();
                assert_eq!(entry["firstKeptEntryId"], kept);
                d.notification("session_compact");
            }
            None => {
                assert_eq!(d.response(&id).unwrap_err().kind, "entryNotFound");
                let failed = d.notification("session_compact_failed");
                assert_eq!(failed["error"]["data"]["kind"], "entryNotFound");
                assert_eq!(d.leaf(), "a4");
            }
        }
    }
}

/// The compaction of a client could once keep the entries from any entry on, even from an entry off the path. The usage
/// and the token counts of the client were refused.
#[test]
fn a_clients_compaction_carries_usage_and_tokens_and_keeps_entries_on_the_path() {
    let mut d = asked();
    talk(&mut d);
    d.ignore("session_tree");
    d.below(Some("u1"), "b1");
    d.set_leaf(Some("a4"));
    let usage = json!({"input": 7, "output": 3, "cost": {"total": 0.5}});
    let off_path = json!({"summary": "S", "firstKeptEntryId": "b1"});
    let before = d.ok("get_stats", json!({}));
    for (given, kept) in [
        (off_path, None),
        (
            json!({"summary": "S", "firstKeptEntryId": null, "tokensBefore": 12345, "usage": usage}),
            Some(Json::Null),
        ),
    ] {
        let id = d.send("compact", json!({"keepRecentTokens": 200}));
        let event = d.notification("session_before_compact");
        let wrong = json!({"eventId": event["eventId"], "result": {"compaction": {"summary": "S", "usage": []}}});
        d.err_kind("answer_event", wrong, "invalidParams");
        d.answer(&event, json!({"compaction": given}));
        d.notification("event_resolved");
        if kept.is_none() {
            let error = d.response(&id).unwrap_err();
            assert_eq!(error.kind, "entryNotFound");
            assert_eq!(error.details("entryId"), "b1");
            d.notification("session_compact_failed");
            assert_eq!(d.leaf(), "a4");
            continue;
        }
        let entry = d.response(&id).unwrap()["compactionEntry"].clone();
        assert_eq!(entry["firstKeptEntryId"], entry["id"], "null keeps nothing");
        assert_eq!(entry["tokensBefore"], 12345);
        assert_eq!(entry["usage"], usage);
        d.notification("session_compact");
        let after = d.ok("get_stats", json!({}));
        let input = |stats: &Json| stats["tokens"]["input"].as_u64().unwrap();
        assert_eq!(input(&after), input(&before) + 7);
        let tree = d.ok("get_tree", json!({}));
        let rows = tree["nodes"].as_array().unwrap();
        let row = rows.iter().find(|row| row["id"] == entry["id"]).unwrap();
        assert_eq!(row["tokens"], 12345);
    }
}

/// A compaction that a client cancelled was once answered as a cancelled request and announced as a failure.
#[test]
fn a_cancelled_compaction_is_not_a_failure() {
    let mut d = asked();
    talk(&mut d);
    let id = d.send("compact", json!({"keepRecentTokens": 200}));
    let event = d.notification("session_before_compact");
    d.answer(&event, json!({"cancel": true}));
    assert_eq!(d.notification("event_resolved")["outcome"], "cancelled");
    let expect = json!({
        "cancelled": true, "reason": "cancelledByClient", "by": "it", "durability": "none"
    });
    assert_eq!(d.response(&id).unwrap(), expect);

    let params = json!({"keepRecentTokens": 200, "answerTimeoutMs": 50, "onNoAnswer": "cancel"});
    let id = d.send("compact", params);
    let event = d.notification("session_before_compact");
    assert_eq!(event["timeoutMs"], 50);
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
    let expect = json!({"cancelled": true, "reason": "noAnswer", "durability": "none"});
    assert_eq!(d.response(&id).unwrap(), expect);
    d.no_notification("session_compact_failed");
    assert_eq!(d.leaf(), "a4");
    assert_eq!(file_lines(&d.home.only_file()).len(), 9);
}

#[test]
fn a_cancelled_request_and_a_missing_summarizer_are_reported_and_change_nothing() {
    let mut d = asked();
    talk(&mut d);
    let id = d.send("compact", json!({"keepRecentTokens": 200}));
    d.notification("session_before_compact");
    d.ok("$/cancel_request", json!({"requestId": id}));
    assert_eq!(d.notification("event_resolved")["outcome"], "aborted");
    let error = d.response(&id).unwrap_err();
    assert_eq!((error.kind.as_str(), error.code), ("cancelled", -32800));
    d.notification("session_compact_failed");

    // Without an answer the compaction proceeds by default.
    let params = json!({"keepRecentTokens": 200, "answerTimeoutMs": 50});
    let id = d.send("compact", params);
    d.notification("session_before_compact");
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
    assert_eq!(d.response(&id).unwrap_err().kind, "summarizerUnavailable");
    d.notification("session_compact_failed");
    assert_eq!(d.leaf(), "a4");
    assert_eq!(file_lines(&d.home.only_file()).len(), 9);
}

/// Answers once did not change the request to the summarizer, and the question did not name the model in use.
#[test]
fn answers_change_the_request_to_the_summarizer() {
    let home = Home::new();
    let heard = home.files().join("requests");
    let body = format!("cat >> {}; echo text", heard.display());
    let program = script(&home, "summarize", &body);
    let hook = "echo '{\"context\":[\"of the hook\"],\"customInstructions\":\"late\"}'";
    let hook = script(
        &home,
        "hook",
        &format!(
            "while [ ! -e {}.go ]; do sleep 0.02; done; {hook}",
            heard.display()
        ),
    );
    let text = format!(
        "[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [{program:?}]\n\
         [[hooks]]\nevents = [\"session_before_compact\"]\nargv = [{hook:?}]\n"
    );
    let mut d = Daemon::start_in(&home, &["--config", &config::file(&home, &text)], &[]);
    d.ignore_bookkeeping();
    d.init(json!({"answers": {"session_before_compact": {}}}));
    d.create();
    talk(&mut d);
    let params = json!({
        "keepRecentTokens": 100, "customInstructions": "asked", "replaceInstructions": false,
    });
    let id = d.send("compact", params);
    let event = d.notification("session_before_compact");
    let model = json!({"provider": "prov", "modelId": "mod"});
    assert_eq!(event["model"], model);
    assert_eq!(event["preparation"]["model"], model);
    assert_eq!(event["preparation"]["customInstructions"], "asked");
    assert_eq!(event["preparation"]["replaceInstructions"], false);
    d.answer(
        &event,
        json!({"customInstructions": "answered", "replaceInstructions": true, "context": ["one", "two"]}),
    );
    std::fs::write(format!("{}.go", heard.display()), "").unwrap();
    let result = d.response(&id).unwrap();
    d.notification("event_resolved");
    d.notification("session_compact");
    assert_eq!(result["cancelled"], false);
    assert!(result.get("reason").is_none(), "{result}");
    let requests = std::fs::read_to_string(heard).unwrap();
    let requests: Vec<Json> = requests.lines().map(|line| parse(line).unwrap()).collect();
    assert_eq!(requests.len(), 2, "the history, and the turn that is cut");
    for request in &requests {
        assert_eq!(request["customInstructions"], "answered");
        assert_eq!(request["replaceInstructions"], true);
    }
    assert_eq!(requests[0]["context"], json!(["one", "two", "of the hook"]));
    assert!(requests[1].get("context").is_none(), "once is enough");
}

/// An answer with a member of another event was once accepted: the member was ignored, and the question was closed.
#[test]
fn a_member_of_another_event_is_refused_and_the_question_stays_open() {
    let mut d = Daemon::start();
    d.ignore_bookkeeping();
    for name in ["session_before_fork", "session_before_compact"] {
        d.ignore(name);
    }
    let events = [
        "session_before_tree",
        "session_before_fork",
        "session_before_compact",
    ];
    d.init(json!({"answers": {events[0]: {}, events[1]: {}, events[2]: {}}}));
    d.create();
    talk(&mut d);
    let members = [
        ("summary", json!({"summary": "S"}), &events[..1]),
        ("label", json!("l"), &events[..1]),
        ("customInstructions", json!("i"), &[events[0], events[2]]),
        ("replaceInstructions", json!(false), &[events[0], events[2]]),
        ("compaction", json!({"summary": "S"}), &events[2..]),
        ("context", json!([]), &events[2..]),
    ];
    for (method, event, params) in [
        ("navigate_tree", events[0], json!({"targetId": "a1"})),
        ("fork_session", events[1], json!({})),
        ("compact", events[2], json!({"keepRecentTokens": 200})),
    ] {
        let id = d.send(method, params);
        let asked = d.notification(event);
        for (member, value, of) in &members {
            let result = json!({"cancel": true, *member: value});
            if of.contains(&event) {
                continue;
            }
            let answer = json!({"eventId": asked["eventId"], "result": result});
            let error = d.err_kind("answer_event", answer, "invalidParams");
            assert_eq!(error.details("field"), &json!(format!("result.{member}")));
            let unknown = json!({"eventId": "nothing", "result": result});
            d.err_kind("answer_event", unknown, "eventNotPending");
        }
        d.still_waits(&id);
        d.answer(&asked, json!({"cancel": true}));
        assert_eq!(d.response(&id).unwrap()["cancelled"], true, "{method}");
        d.notification("event_resolved");
        let late = json!({"eventId": asked["eventId"], "result": {"context": []}});
        d.err_kind("answer_event", late, "eventNotPending");
    }
}

#[test]
fn while_a_compaction_waits_others_are_busy_and_an_append_makes_it_fail() {
    let mut d = asked();
    talk(&mut d);
    let id = d.send("compact", json!({"keepRecentTokens": 200}));
    let event = d.notification("session_before_compact");
    for (method, params) in [
        ("compact", json!({})),
        ("navigate_tree", json!({"targetId": "a1"})),
        ("begin_turn", json!({})),
    ] {
        let error = d.err_kind(method, params, "sessionBusy");
        assert_eq!(error.details("by"), "compaction", "{method}");
    }
    d.user("u5", "meanwhile");
    d.answer(&event, json!({"compaction": {"summary": "S"}}));
    d.notification("event_resolved");
    assert_eq!(d.response(&id).unwrap_err().kind, "leafMoved");
    d.notification("session_compact_failed");
    assert_eq!(d.leaf(), "u5");
}

#[test]
fn without_a_handshake_later_requests_wait_for_the_compaction() {
    let home = Home::new();
    let append = |id: u64, entry: &str| {
        let params = json!({"message": user(&"x".repeat(400)), "entryId": entry});
        request(&json!(id), "append_message", &params)
    };
    let lines = [
        request(&json!(1), "create_session", &json!({})),
        append(2, "u1"),
        append(3, "u2"),
        request(&json!(4), "compact", &json!({"keepRecentTokens": 100})),
        request(&json!(5), "get_leaf", &json!({})),
    ];
    let said = script_in(&home, &["--summarizer", "outline"], &lines);
    let answer = |id: u64| said.iter().find(|line| line["id"] == id).unwrap()["result"].clone();
    let compacted = answer(4)["compactionEntry"]["id"].clone();
    assert_eq!(answer(5)["leafId"], compacted);
}
