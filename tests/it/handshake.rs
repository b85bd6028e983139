//! `initialize`: its result, the params it accepts, and its effects. protocol.md §2.

use std::process::{Command, Stdio};

use crate::harness::*;

#[test]
fn the_daemon_introduces_itself() {
    let mut d = Daemon::start();
    let found =
        d.initialize(json!({"protocolVersion": 1, "clientInfo": {"name": "it", "version": "1"}}));
    assert_eq!(found["protocolVersion"], 1);
    assert_eq!(found["serverInfo"]["name"], "treelined");
    assert!(
        found["serverInfo"]["version"]
            .as_str()
            .is_some_and(|v| !v.is_empty()),
        "{found}"
    );
    assert!(
        found["instanceId"].as_str().is_some_and(|v| !v.is_empty()),
        "{found}"
    );
    let hash = found["schemaHash"].as_str().expect("schemaHash");
    let digits = hash.strip_prefix("sha256:").expect("names its algorithm");
    assert!(
        digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()),
        "{hash}"
    );
    assert_eq!(found["limits"]["maxFrameBytes"], 64 << 20);
    assert_eq!(found["limits"]["maxAnswerMs"], 600_000);
    assert!(
        found["limits"]["maxQueuedBytes"].as_u64() > Some(0),
        "{found}"
    );
}

// Once no summary could be written without an option, although the outline needs neither a model nor a network.
#[test]
fn the_outline_is_the_summarizer_by_default() {
    let told = |args: &[&str]| {
        let mut d = Daemon::start_with(args, &[]);
        d.initialize(json!({"protocolVersion": 1}))["capabilities"].clone()
    };
    assert_eq!(told(&[])["summarizer"], "outline");
    let none = told(&["--summarizer", "none"]);
    assert_eq!(none.get("summarizer"), Some(&Json::Null));
}

#[test]
fn instance_ids_differ_and_schema_hashes_do_not() {
    let tell = || Daemon::start().initialize(json!({"protocolVersion": 1}));
    let (one, two) = (tell(), tell());
    assert_ne!(one["instanceId"], two["instanceId"]);
    assert_eq!(one["schemaHash"], two["schemaHash"]);
}

#[test]
fn options_show_in_limits_and_capabilities() {
    let args = [
        "--max-frame-bytes",
        "70000",
        "--max-queued-bytes",
        "80000",
        "--summarizer",
        "none",
    ];
    let mut d = Daemon::start_with(&args, &[]);
    let found = d.initialize(json!({"protocolVersion": 1}));
    assert_eq!(found["limits"]["maxFrameBytes"], 70_000);
    assert_eq!(found["limits"]["maxQueuedBytes"], 80_000);
    assert_eq!(found["capabilities"]["summarizer"], Json::Null);
}

#[test]
fn an_unsupported_version_is_answered_with_the_daemons_own() {
    for version in [json!(0), json!(2), json!(99)] {
        let mut d = Daemon::start();
        assert_eq!(
            d.initialize(json!({"protocolVersion": version}))["protocolVersion"],
            1
        );
    }
}

#[test]
fn unknown_members_and_capabilities_are_ignored() {
    let mut d = Daemon::start();
    let found = d.initialize(json!({
        "protocolVersion": 1, "rootUri": "file:///x", "trace": "off",
        "clientInfo": {"name": "it", "version": "1", "title": "It"},
        "capabilities": {"telepathy": {"range": 5}, "answers": {"session_before_sunrise": {}}},
    }));
    assert_eq!(found["protocolVersion"], 1);
}

#[test]
fn empty_arrays_stand_for_empty_objects() {
    let mut d = Daemon::start();
    d.initialize(json!({"protocolVersion": 1, "capabilities": []}));
    let mut d = Daemon::start();
    d.initialize(json!({"protocolVersion": 1, "capabilities": {"answers": [], "summaryDeltas": [], "progress": []}}));

    let mut d = Daemon::quiet();
    d.ignore("event_resolved");
    d.init(json!({"answers": {"session_before_tree": []}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let id = d.send("navigate_tree", json!({"targetId": "a1"}));
    let event = d.notification("session_before_tree");
    d.still_waits(&id);
    d.answer(&event, json!([]));
    assert_eq!(
        d.response(&id).unwrap()["newLeafId"],
        "a1",
        "an empty array is not an opinion"
    );
}

#[test]
fn the_death_of_the_parent_ends_the_daemon() {
    let mut parent = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut d = Daemon::start();
    d.initialize(json!({"protocolVersion": 1, "processId": parent.id()}));
    d.ok("list_sessions", json!({}));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(d.exited(), Some(0), "with stdin still open");
}

#[test]
fn a_parent_that_was_dead_already_is_ignored() {
    let mut parent = Command::new("true").spawn().unwrap();
    parent.wait().unwrap();
    let mut d = Daemon::start();
    d.initialize(json!({"protocolVersion": 1, "processId": parent.id()}));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(
        d.ok("list_sessions", json!({}))["sessions"],
        json!([]),
        "still there"
    );
}

#[test]
fn notifications_can_be_opted_out_of() {
    let mut d = Daemon::start();
    d.ignore("session_opened");
    d.ignore("session_closed");
    d.init(json!({"optOut": ["entries_appended", "no_such_notification"]}));
    d.create();
    d.chain(&["u1", "a1"]);
    d.set_leaf(Some("u1"));
    // No `entries_appended` is sent, and no `seq` is missing. The harness fails at an unclaimed notification and at a
    // missing `seq`.
    assert_eq!(d.notification("session_tree")["newLeafId"], "u1");
}

#[test]
fn without_a_handshake_everything_works_and_nothing_waits() {
    let mut d = Daemon::start();
    d.ignore("session_opened");
    d.ignore("session_closed");
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    for id in ["u1", "a1", "u2"] {
        assert_eq!(d.notification("entries_appended")["entryIds"], json!([id]));
    }
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "a1", "onNoAnswer": "cancel"}),
    );
    assert_eq!(
        result["cancelled"], false,
        "nobody was asked, so nobody was silent: {result}"
    );
    assert_eq!(d.notification("session_before_tree")["timeoutMs"], 0);
    assert_eq!(d.notification("session_tree")["newLeafId"], "a1");
    // The leaf record may be announced, but no entry.
    d.ignore("entries_appended");
}

#[test]
fn a_client_without_answers_is_not_waited_for() {
    let mut d = Daemon::quiet();
    d.init(json!({}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(d.notification("session_before_tree")["timeoutMs"], 0);
    // No `event_resolved` is sent. The harness fails at an unclaimed notification.
}

#[test]
fn answers_declared_for_one_event_do_not_count_for_another() {
    let mut d = Daemon::quiet();
    d.init(json!({"answers": {"session_before_fork": {}}}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(d.notification("session_before_tree")["timeoutMs"], 0);
}

#[test]
fn pages_and_answers_fit_the_clients_max_frame_bytes() {
    let mut d = Daemon::quiet();
    d.init(json!({"maxFrameBytes": 65536}));
    d.create();
    for n in 0..60 {
        d.user(&format!("u{n}"), &"z".repeat(3000));
    }
    let mut seen = Vec::new();
    let mut since = None;
    for page in 0.. {
        assert!(page < 60, "pages make progress");
        let params = since.map_or(json!({}), |id: Json| json!({"since": id}));
        let id = d.send("get_entries", params);
        let text = d.response_text(&id);
        assert!(text.len() <= 65536, "{} bytes", text.len());
        let result = parse(&text).unwrap()["result"].clone();
        seen.extend(ids(&result["entries"]));
        match result.get("nextCursor") {
            Some(next) if !next.is_null() => since = Some(next.clone()),
            _ => break,
        }
    }
    assert_eq!(seen, (0..60).map(|n| format!("u{n}")).collect::<Vec<_>>());

    d.user("huge", &"z".repeat(100_000));
    let error = d.err("get_entry", json!({"entryId": "huge"}));
    assert_eq!(
        (error.code, error.kind.as_str()),
        (-32008, "responseTooLarge")
    );
}
