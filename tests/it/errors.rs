//! Each kind of error that these methods can return, with its code and its details. protocol.md §8. The kinds for
//! disks, locks, replaced files, summarizers and compactions have tests beside their subjects.

use crate::harness::*;

/// u1 → a1 → u2 in a new session.
fn begun() -> Daemon {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    d
}

fn answering(events: Json) -> Daemon {
    let mut d = Daemon::quiet();
    for name in ["event_resolved", "session_before_fork", "session_fork"] {
        d.ignore(name);
    }
    d.init(json!({"answers": events}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    d
}

fn opening(bytes: &str, params: Json) -> (Daemon, Json) {
    let home = Home::new();
    let path = home.file("s.jsonl", bytes.as_bytes());
    let mut params = params;
    params["path"] = json!(path);
    (Daemon::quiet_in(&home), params)
}

fn to_nobody(line: &[u8]) -> RpcError {
    let mut d = Daemon::start();
    d.bytes([line, b"\n"].concat());
    d.response_with_null_id()
}

/// Produces an error and checks its kind, code, and details.
#[track_caller]
fn check(kind: &str, code: i64, details: &[&str], produce: impl FnOnce() -> RpcError) {
    let error = produce();
    assert_eq!((error.kind.as_str(), error.code), (kind, code), "{error:?}");
    assert!(error.data["retryable"].is_boolean(), "{error:?}");
    assert!(!error.message.is_empty(), "{error:?}");
    for member in details {
        // This fails if the member is missing.
        error.details(member);
    }
}

#[test]
fn json_rpc_errors() {
    check("parseError", -32700, &[], || to_nobody(b"{"));
    check("invalidRequest", -32600, &[], || to_nobody(b"42"));
    check("methodNotFound", -32601, &[], || {
        Daemon::start().err("nothing", json!({}))
    });
    check("invalidParams", -32602, &["field", "reason"], || {
        Daemon::start().err("list_sessions", json!({"x": 1}))
    });
    check("batchUnsupported", -32005, &[], || to_nobody(b"[]"));
    check("requestTooLarge", -32007, &[], || {
        let mut d = Daemon::start_with(&["--max-frame-bytes", "65536"], &[]);
        d.err("list_sessions", json!({"query": "q".repeat(70_000)}))
    });
    check("responseTooLarge", -32008, &[], || {
        let mut d = Daemon::quiet();
        d.init(json!({"maxFrameBytes": 65536}));
        d.create();
        d.user("big", &"x".repeat(70_000));
        d.err("get_entry", json!({"entryId": "big"}))
    });
    check("overloaded", -32009, &[], || {
        // A busy machine reads the requests more slowly.
        let refused = [300, 1000, 3000, 9000].into_iter().find_map(overload);
        refused.expect("10 MB do not fit 200 kB")
    });
    check("cancelled", -32800, &[], || {
        let mut d = answering(json!({"session_before_fork": {}}));
        let id = d.send("fork_session", json!({"entryId": "a1"}));
        d.notification("session_before_fork");
        d.notify("$/cancel_request", json!({"requestId": id}));
        let error = d.response(&id).expect_err("a cancelled fork is an error");
        assert_eq!(d.home.session_files().len(), 1, "nothing was made");
        error
    });
}

#[test]
fn daemon_errors() {
    check("shuttingDown", 1004, &[], || {
        let mut d = answering(json!({"session_before_tree": {}}));
        let navigation = d.send("navigate_tree", json!({"targetId": "a1"}));
        let late = json!("late");
        // The requests are one write, so that the daemon has both at once.
        d.send_together(&[
            (json!("end"), "shutdown", json!({})),
            (late.clone(), "get_leaf", json!({})),
        ]);
        assert_eq!(
            d.response(&json!("end")).expect("shutdown answers"),
            json!({})
        );
        assert_eq!(
            d.response(&navigation).expect("aborted")["reason"],
            "aborted"
        );
        let error = d.response(&late).expect_err("too late");
        assert_eq!(d.exited(), Some(0));
        error
    });
}

#[test]
fn session_errors() {
    check("sessionNotFound", 1100, &[], || {
        Daemon::start().err("get_leaf", json!({"sessionId": "nobody"}))
    });
    check("sessionBusy", 1101, &["by", "navigationId"], || {
        let mut d = answering(json!({"session_before_tree": {}}));
        let first = d.send(
            "navigate_tree",
            json!({"targetId": "a1", "navigationId": "n1"}),
        );
        let event = d.notification("session_before_tree");
        let error = d.err("navigate_tree", json!({"targetId": "u1"}));
        d.answer(&event, json!({"cancel": true}));
        d.response(&first).expect("cancelled");
        error
    });
    check("headerMissing", 1104, &[], || {
        let (mut d, params) = opening("", json!({}));
        d.err("open_session", params)
    });
    check("versionUnsupported", 1105, &[], || {
        let header = r#"{"type":"session","version":4,"id":"s1","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#;
        let (mut d, params) = opening(&format!("{header}\n"), json!({}));
        d.ok("open_session", params);
        d.err("append_message", json!({"message": user("x")}))
    });
    check("readOnly", 1106, &[], || {
        let (mut d, params) = opening(
            &Log::new("s1").user("u1", "", "x").text(),
            json!({"mode": "read"}),
        );
        d.ok("open_session", params);
        d.err("append_message", json!({"message": user("x")}))
    });
    check("sessionExists", 1109, &[], || {
        let (mut d, params) = opening(&Log::new("s1").user("u1", "", "x").text(), json!({}));
        let other = d.home.file(
            "other.jsonl",
            Log::new("s1").user("u1", "", "y").text().as_bytes(),
        );
        d.ok("open_session", params);
        d.err("open_session", json!({"path": other}))
    });
    check("pathDenied", 1602, &[], || {
        Daemon::start().err("open_session", json!({"path": "/dev/null"}))
    });
}

#[test]
fn entry_errors() {
    check("entryNotFound", 1200, &["entryId"], || {
        begun().err("get_entry", json!({"entryId": "nobody"}))
    });
    check(
        "leafMoved",
        1201,
        &["expectedLeafId", "leafId", "entries"],
        || {
            begun().err(
                "append_message",
                json!({"message": user("x"), "expectedLeafId": "u1"}),
            )
        },
    );
    check("entryInvalid", 1202, &["index", "field"], || {
        begun().err(
            "append_entries",
            json!({"entries": [{"type": "custom", "customType": "treelined.x"}]}),
        )
    });
    check("treeChanged", 1203, &["revision"], || {
        let mut d = begun();
        let page = d.ok("get_tree", json!({"limit": 1}));
        d.chain(&["a2"]);
        d.err(
            "get_tree",
            json!({"limit": 1, "cursor": page["nextCursor"]}),
        )
    });
    check("nestingTooDeep", 1204, &[], || {
        let mut log = Log::new("s1").user("n0", "", "x");
        for n in 1..300 {
            log = log.user(&format!("n{n}"), &format!("n{}", n - 1), "x");
        }
        let (mut d, params) = opening(&log.text(), json!({}));
        d.ok("open_session", params);
        d.err("get_tree", json!({"format": "nested"}))
    });
    check("duplicateEntryId", 1205, &[], || {
        begun().err(
            "append_message",
            json!({"message": user("other"), "entryId": "u1"}),
        )
    });
    check("notAUserMessage", 1206, &[], || {
        begun().err(
            "fork_session",
            json!({"entryId": "a1", "position": "before"}),
        )
    });
    check("nothingToUndo", 1207, &[], || {
        begun().err("undo_navigation", json!({}))
    });
    check("nothingToUndo", 1207, &[], || {
        begun().err("redo_navigation", json!({}))
    });
    check("unansweredToolCalls", 1208, &[], || {
        let mut d = begun();
        let call = assistant_with(json!([tool_call("k", "read", json!({}))]));
        d.ok("append_message", json!({"message": call, "entryId": "c1"}));
        d.err("fork_session", json!({"entryId": "c1"}))
    });
    check("nothingToExport", 1209, &[], || {
        begun().err("export_session", json!({"format": "dpo"}))
    });
}

#[test]
fn navigation_errors() {
    check("summarizerUnavailable", 1300, &[], || {
        let mut d = Daemon::start_with(&["--summarizer", "none"], &[]);
        d.ignore_bookkeeping();
        d.create();
        d.chain(&["u1", "a1"]);
        d.err(
            "navigate_tree",
            json!({"targetId": "u1", "summarize": true}),
        )
    });
    check("eventNotPending", 1400, &[], || {
        Daemon::start().err("answer_event", json!({"eventId": "nobody", "result": {}}))
    });
}

/// A client requests 10 MB and reads nothing for a while, and the daemon may keep only 200 kB. Meanwhile the daemon
/// still accepts an answer to a question. Returns the error with which the daemon refuses a request, or `None` if the
/// daemon has not read this request yet.
fn overload(pause_ms: u64) -> Option<RpcError> {
    let mut d = Daemon::start_with(&["--max-queued-bytes", "200000"], &[]);
    d.ignore_bookkeeping();
    for name in ["event_resolved", "events_lost"] {
        d.ignore(name);
    }
    d.init(json!({"answers": {"session_before_tree": {}}}));
    d.create();
    d.user("big", &"x".repeat(50_000));
    d.chain(&["a1"]);
    let navigation = d.send("navigate_tree", json!({"targetId": "big"}));
    let event = d.notification("session_before_tree");
    d.stop_reading();
    let asked: Vec<_> = (0..200)
        .map(|_| d.send("get_entry", json!({"entryId": "big"})))
        .collect();
    let answer = d.send(
        "answer_event",
        json!({"eventId": event["eventId"], "result": {}}),
    );
    std::thread::sleep(std::time::Duration::from_millis(pause_ms));
    d.read_on();
    let mut refused = None;
    for id in &asked {
        refused = d.response(id).err().or(refused);
    }
    d.response(&answer).expect("accepted");
    d.response(&navigation).expect("proceeds");
    refused
}
