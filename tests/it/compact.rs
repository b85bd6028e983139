//! `prepare_compaction` and `compact`: where the context is cut, what is asked, told and written, and
//! what the context is afterwards. semantics.md §1 and §4.

use std::collections::HashSet;

use crate::config::{self, script};
use crate::harness::*;
use crate::real_input::real;

/// Nobody answers; `outline` writes.
fn unasked() -> Daemon {
    let home = Home::new();
    let mut d = Daemon::start_in(&home, &["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    d.ignore("session_before_compact");
    d
}

/// A client that answers `session_before_compact`.
fn asked() -> Daemon {
    let mut d = Daemon::start();
    d.ignore_bookkeeping();
    d.init(json!({"answers": {"session_before_compact": {}}}));
    d.create();
    d
}

/// Eight messages of 100 estimated tokens each, in four turns.
fn talk(d: &mut Daemon) {
    for n in 1..=4 {
        d.user(&format!("u{n}"), &"x".repeat(400));
        d.assistant(&format!("a{n}"), &"y".repeat(400));
    }
}

fn calling(d: &mut Daemon, id: &str, calls: &[&str]) {
    let calls: Vec<Json> = calls
        .iter()
        .map(|call| tool_call(call, "read", json!({"path": format!("{call}.rs")})))
        .collect();
    let message = assistant_with(json!(calls));
    d.ok("append_message", json!({"message": message, "entryId": id}));
}

fn answered(d: &mut Daemon, id: &str, call: &str, size: usize) {
    let message = tool_result(call, "read", &"z".repeat(size), false);
    d.ok("append_message", json!({"message": message, "entryId": id}));
}

#[track_caller]
fn prepare(d: &mut Daemon, keep: u64) -> Json {
    let params = json!({"keepRecentTokens": keep});
    d.ok("prepare_compaction", params)["preparation"].clone()
}

/// Ids of the entries the context is made of.
fn context_ids(d: &mut Daemon) -> Vec<String> {
    ids(&d.ok("get_context", json!({}))["entryIds"])
}

#[test]
fn the_preparation_says_what_is_summarized_and_what_is_kept() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    let preparation = prepare(&mut d, 200);
    assert_eq!(preparation["firstKeptEntryId"], "u4");
    assert_eq!(
        ids(&preparation["entriesToSummarize"]),
        ["u1", "a1", "u2", "a2", "u3", "a3"]
    );
    assert_eq!(preparation["entriesToSummarize"][0], d.entry("u1"));
    assert_eq!(preparation["isSplitTurn"], false);
    assert!(preparation.get("turnPrefix").is_none());
    assert!(preparation.get("previousSummary").is_none());
    assert_eq!(preparation["previousCompactions"], json!([]));
    assert_eq!(
        preparation["fileOps"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    // Counted by the provider with the last answer: 1 + 2 + 3 + 4.
    assert_eq!(preparation["tokensBefore"], 10);
}

#[test]
fn a_turn_that_is_cut_is_split_and_its_prefix_stands_apart() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    let preparation = prepare(&mut d, 100);
    assert_eq!(preparation["firstKeptEntryId"], "a4");
    assert_eq!(preparation["isSplitTurn"], true);
    assert_eq!(ids(&preparation["turnPrefix"]), ["u4"]);
    assert_eq!(
        ids(&preparation["entriesToSummarize"]),
        ["u1", "a1", "u2", "a2", "u3", "a3"]
    );
    d.ok("compact", json!({"keepRecentTokens": 100}));
    let entry = d.notification("session_compact")["compactionEntry"].clone();
    let summary = entry["summary"].as_str().unwrap();
    let (history, turn) = summary.split_once("\n---\n").expect("two summaries");
    assert!(history.contains("Asked since"), "{history}");
    assert!(turn.contains("The turn in progress"), "{turn}");
}

#[test]
fn the_cut_never_parts_a_call_from_its_result() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    calling(&mut d, "c1", &["k1", "k2"]);
    answered(&mut d, "r1", "k1", 4000);
    d.user("u5", "meanwhile");
    answered(&mut d, "r2", "k2", 4000);
    d.assistant("a5", "done");
    for (keep, kept) in [
        (1, "a5"),
        (10, "a5"),
        (1003, "a5"),
        (2010, "c1"),
        (2100, "a4"),
    ] {
        assert_eq!(
            prepare(&mut d, keep)["firstKeptEntryId"],
            kept,
            "keeping {keep}"
        );
    }
    let preparation = prepare(&mut d, 10);
    assert_eq!(
        preparation["fileOps"]["readFiles"],
        json!(["k1.rs", "k2.rs"])
    );
}

#[test]
fn too_little_is_nothing_to_compact() {
    let mut d = unasked();
    d.create();
    d.err_kind("prepare_compaction", json!({}), "nothingToCompact");
    talk(&mut d);
    d.err_kind("prepare_compaction", json!({}), "nothingToCompact");
    d.err_kind("compact", json!({}), "nothingToCompact");
    let failed = d.notification("session_compact_failed");
    assert_eq!(failed["reason"], "manual");
    assert_eq!(failed["error"]["data"]["kind"], "nothingToCompact");
    assert_eq!(failed["error"]["code"], 1302);
}

#[test]
fn compacting_appends_one_entry_and_the_context_is_summary_and_kept() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    let before = std::fs::read(d.home.only_file()).unwrap();
    let result = d.ok(
        "compact",
        json!({"keepRecentTokens": 200, "customInstructions": "mind the names"}),
    );
    let entry = &result["compactionEntry"];
    assert_eq!(d.notification("session_compact")["compactionEntry"], *entry);
    assert_eq!(entry["type"], "compaction");
    assert_eq!(entry["parentId"], "a4");
    assert_eq!(entry["firstKeptEntryId"], "u4");
    assert_eq!(entry["tokensBefore"], 10);
    assert_eq!(
        entry["details"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    assert!(entry.get("fromHook").is_none(), "{entry}");
    let summary = entry["summary"].as_str().unwrap();
    assert!(summary.contains("mind the names"), "{summary}");
    assert!(
        summary.starts_with("## Goal"),
        "no sentence of a branch: {summary}"
    );
    assert_eq!(d.leaf(), entry["id"]);

    let after = std::fs::read(d.home.only_file()).unwrap();
    assert!(after.starts_with(&before), "no line is ever rewritten");
    assert_eq!(file_lines(&d.home.only_file()).len(), 10);

    let id = entry["id"].as_str().unwrap();
    assert_eq!(context_ids(&mut d), [id, "u4", "a4"]);
    let context = d.ok("get_context", json!({}));
    assert_eq!(context["messages"][0]["role"], "compactionSummary");
    assert_eq!(context["messages"][0]["summary"], entry["summary"]);
    // What the provider counted with a4 was the context before.
    let stats = d.ok("get_stats", json!({}));
    let estimated = summary.chars().count().div_ceil(4) + 200;
    assert_eq!(stats["contextTokens"], estimated);
}

#[test]
fn a_previous_compaction_is_updated_with_what_it_kept() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    calling(&mut d, "c1", &["early"]);
    answered(&mut d, "r1", "early", 40);
    let first = d.ok("compact", json!({"keepRecentTokens": 1}))["compactionEntry"].clone();
    d.notification("session_compact");
    assert_eq!(first["firstKeptEntryId"], "c1");
    d.err_kind(
        "compact",
        json!({"keepRecentTokens": 1}),
        "nothingToCompact",
    );
    d.notification("session_compact_failed");

    d.user("u5", &"x".repeat(400));
    d.assistant("a5", &"y".repeat(400));
    let preparation = prepare(&mut d, 100);
    assert_eq!(preparation["previousSummary"], first["summary"]);
    assert_eq!(preparation["previousCompactions"], json!([first["id"]]));
    assert_eq!(ids(&preparation["entriesToSummarize"]), ["c1", "r1"]);
    assert_eq!(ids(&preparation["turnPrefix"]), ["u5"]);
    assert_eq!(preparation["fileOps"]["readFiles"], json!(["early.rs"]));

    let second = d.ok("compact", json!({"keepRecentTokens": 100}))["compactionEntry"].clone();
    d.notification("session_compact");
    assert_eq!(second["details"]["readFiles"], json!(["early.rs"]));
    let summary = second["summary"].as_str().unwrap();
    assert_eq!(summary.matches("<read-files>").count(), 1, "{summary}");
    let id = second["id"].as_str().unwrap();
    assert_eq!(context_ids(&mut d), [id, "a5"]);
    let preparation_of_third = {
        d.user("u6", &"x".repeat(400));
        prepare(&mut d, 100)
    };
    assert_eq!(
        preparation_of_third["previousCompactions"],
        json!([second["id"], first["id"]]),
        "newest first"
    );
    assert_eq!(
        preparation_of_third["fileOps"]["readFiles"],
        json!(["early.rs"]),
        "from the details of the compaction before"
    );
}

#[test]
fn edits_count_and_what_they_leave_out_is_not_summarized() {
    let mut d = unasked();
    d.create();
    talk(&mut d);
    d.ok(
        "append_entries",
        json!({"entries": [
            {"type": "context_edit", "targetId": "u1", "replacement": null},
            {"type": "context_edit", "targetId": "a1", "replacement": {"content": "edited"}},
        ]}),
    );
    let preparation = prepare(&mut d, 200);
    assert_eq!(
        ids(&preparation["entriesToSummarize"]),
        ["a1", "u2", "a2", "u3", "a3"]
    );
    assert_eq!(
        preparation["entriesToSummarize"][0]["message"]["content"],
        json!([{"type": "text", "text": "edited"}])
    );
    // Counts made before an edit are not believed: 6 × 100, and "edited" is 2.
    assert_eq!(preparation["tokensBefore"], 602);
}

#[test]
fn the_system_message_in_force_survives() {
    let mut d = unasked();
    d.create();
    let system = json!({"role": "system", "content": "be kind", "timestamp": 1});
    d.ok(
        "append_message",
        json!({"message": system, "entryId": "s1"}),
    );
    talk(&mut d);
    let entry = d.ok("compact", json!({"keepRecentTokens": 200}))["compactionEntry"].clone();
    d.notification("session_compact");
    assert_eq!(entry["systemMessage"], system);
    let context = d.ok("get_context", json!({}));
    assert_eq!(context["messages"][0], system);
    assert_eq!(context["messages"][1]["role"], "compactionSummary");
}

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
    let told = d.notification("session_compact");
    assert_eq!(
        (&told["compactionEntry"], &told["fromHook"]),
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
fn without_a_first_kept_entry_the_prepared_one_counts_and_an_unknown_one_is_refused() {
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

/// An answer's compaction was stored with what it keeps as long as there is such an entry anywhere, and
/// what it had cost and the tokens that its author counted were refused.
#[test]
fn a_compaction_of_an_answer_carries_usage_and_tokens_and_keeps_what_is_on_the_path() {
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

/// A cancel of the client's came back as the error of a cancelled request, and as a failure.
#[test]
fn a_cancelled_compaction_is_no_failure() {
    let mut d = asked();
    talk(&mut d);
    let id = d.send("compact", json!({"keepRecentTokens": 200}));
    let event = d.notification("session_before_compact");
    d.answer(&event, json!({"cancel": true}));
    assert_eq!(d.notification("event_resolved")["outcome"], "cancelled");
    let expect = json!({"cancelled": true, "reason": "cancelledByClient", "durability": "none"});
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
fn a_cancelled_request_and_a_missing_summarizer_are_told_and_change_nothing() {
    let mut d = asked();
    talk(&mut d);
    let id = d.send("compact", json!({"keepRecentTokens": 200}));
    d.notification("session_before_compact");
    d.ok("$/cancel_request", json!({"requestId": id}));
    assert_eq!(d.notification("event_resolved")["outcome"], "aborted");
    let error = d.response(&id).unwrap_err();
    assert_eq!((error.kind.as_str(), error.code), ("cancelled", -32800));
    d.notification("session_compact_failed");

    // Silence lets it happen, if not said otherwise.
    let params = json!({"keepRecentTokens": 200, "answerTimeoutMs": 50});
    let id = d.send("compact", params);
    d.notification("session_before_compact");
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
    assert_eq!(d.response(&id).unwrap_err().kind, "summarizerUnavailable");
    d.notification("session_compact_failed");
    assert_eq!(d.leaf(), "a4");
    assert_eq!(file_lines(&d.home.only_file()).len(), 9);
}

/// Answers changed nothing of how the summary is made, and the question did not say which model is in use.
#[test]
fn answers_change_what_the_summarizer_is_asked() {
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

/// A member of an answer to another event was taken, and ignored, and the question was over.
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
fn while_a_compaction_waits_others_are_busy_and_appending_ends_it() {
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

/// Tool results of the context whose call does not stand before them.
fn dangling(context: &Json) -> Vec<String> {
    let mut calls = HashSet::new();
    let mut dangling = Vec::new();
    for message in context["messages"].as_array().unwrap() {
        if message["role"] == "assistant" {
            for block in message["content"].as_array().unwrap() {
                if block["type"] == "toolCall" {
                    calls.insert(block["id"].as_str().unwrap().to_owned());
                }
            }
        }
        if message["role"] == "toolResult" {
            let id = message["toolCallId"].as_str().unwrap();
            if !calls.contains(id) {
                dangling.push(id.to_owned());
            }
        }
    }
    dangling
}

/// Compacts from the leaf at each of these sizes, and goes back each time; gives how often there was
/// something to compact.
fn compacted_at_every_size(d: &mut Daemon, sizes: impl Iterator<Item = u64>) -> usize {
    let leaf = d.leaf();
    let mut kept_before = 0;
    let mut compacted = 0;
    for keep in sizes {
        let result = d.call("compact", json!({"keepRecentTokens": keep}));
        let entry = match result {
            Ok(result) => result["compactionEntry"].clone(),
            Err(error) => {
                assert_eq!(error.kind, "nothingToCompact", "keeping {keep}");
                d.notification("session_compact_failed");
                continue;
            }
        };
        d.notification("session_compact");
        compacted += 1;
        let context = d.ok("get_context", json!({}));
        assert_eq!(dangling(&context), [""; 0], "keeping {keep}");
        let from = ids(&context["entryIds"]);
        assert_eq!(from[0], entry["id"].as_str().unwrap());
        assert_eq!(from[1], entry["firstKeptEntryId"].as_str().unwrap());
        assert!(from.len() >= kept_before, "keeping more keeps more");
        kept_before = from.len();
        d.ok("set_leaf", json!({"leafId": leaf}));
    }
    compacted
}

#[test]
fn a_real_session_is_compacted_at_every_size_and_no_result_stands_without_its_call() {
    let Some(bytes) = real() else { return };
    let mut d = unasked();
    let path = d.home.file("real.jsonl", &bytes);
    d.open(&path);
    assert_eq!(dangling(&d.ok("get_context", json!({}))), [""; 0]);
    let compacted = compacted_at_every_size(&mut d, (100..=100_000).step_by(1_000));
    assert!(compacted > 90, "{compacted} compactions");
}

#[test]
fn turns_of_every_shape_are_compacted_at_every_size_and_no_result_stands_without_its_call() {
    let mut d = unasked();
    d.create();
    let mut entries = Vec::new();
    let mut push = |message: Json| entries.push(json!({"type": "message", "message": message}));
    for turn in 0..60 {
        push(user(&"what next? ".repeat(1 + turn % 7)));
        // As many calls at once as the turn has, answered in another order, with other things between.
        for step in 0..turn % 4 {
            let call = |n: usize| format!("call-{turn}-{step}-{n}");
            let count = 1 + (turn + step) % 3;
            let calls: Vec<Json> = (0..count)
                .map(|n| tool_call(&call(n), "read", json!({"path": "p"})))
                .collect();
            push(assistant_with(json!(calls)));
            for n in (0..count).rev() {
                push(tool_result(&call(n), "read", &"x".repeat(30 * n), false));
                if turn % 5 == 0 && n == 1 {
                    push(user("and hurry"));
                }
            }
        }
        match turn % 6 {
            // Broken off.
            5 => push(assistant_with(json!([tool_call(
                "open",
                "bash",
                json!({})
            )]))),
            _ => push(assistant(&"done. ".repeat(turn % 9))),
        }
    }
    d.ok("append_entries", json!({"entries": entries}));
    assert_eq!(dangling(&d.ok("get_context", json!({}))), [""; 0]);
    let compacted = compacted_at_every_size(&mut d, (0..4_000).step_by(61));
    assert!(compacted > 20, "{compacted} compactions");
}

#[test]
fn a_real_session_is_compacted_again_and_again() {
    let Some(bytes) = real() else { return };
    let mut d = unasked();
    let path = d.home.file("real.jsonl", &bytes);
    d.open(&path);
    let mut keep = 60_000;
    let mut times = 0;
    while keep > 100 {
        if d.call("compact", json!({"keepRecentTokens": keep})).is_ok() {
            let entry = d.notification("session_compact")["compactionEntry"].clone();
            times += 1;
            let context = d.ok("get_context", json!({}));
            assert_eq!(dangling(&context), [""; 0], "keeping {keep}");
            assert_eq!(ids(&context["entryIds"])[0], entry["id"].as_str().unwrap());
            d.user(&format!("next{times}"), "go on");
        } else {
            d.notification("session_compact_failed");
        }
        keep = keep * 2 / 3;
    }
    assert!(times > 8, "{times} compactions");
}
