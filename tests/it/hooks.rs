//! Hooks: programs that answer before events, and get events afterwards. A client can answer the same events.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{file, script, with_child};
use crate::harness::*;

/// A daemon with these hooks, each given by its events and its script.
fn hooked(home: &Arc<Home>, hooks: &[(&str, &str)], args: &[&str]) -> Daemon {
    let mut text = String::new();
    for (number, (events, body)) in hooks.iter().enumerate() {
        let hook = script(home, &format!("hook{number}"), body);
        text.push_str(&format!(
            "[[hooks]]\nevents = [{events}]\nargv = [{hook:?}]\ntimeout_ms = 20000\n"
        ));
    }
    let path = file(home, &text);
    let mut d = Daemon::start_in(home, &[&["--config", &path], args].concat(), &[]);
    d.ignore_bookkeeping();
    d
}

const BEFORE_TREE: &str = "\"session_before_tree\"";

fn talk(d: &mut Daemon) {
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
}

#[test]
fn a_hook_cancels_and_is_named() {
    let home = Home::new();
    let hooks = [(BEFORE_TREE, "echo '{\"cancel\":true}'")];
    let mut d = hooked(&home, &hooks, &[]);
    d.init(json!({}));
    talk(&mut d);
    let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(result["reason"], "cancelledByClient");
    let resolved = d.notification("event_resolved");
    assert_eq!(
        (&resolved["outcome"], &resolved["by"]),
        (&json!("cancelled"), &json!("hook0"))
    );
    assert_eq!(d.leaf(), "a2");
}

#[test]
fn a_hook_gives_the_summary_where_no_client_and_no_summarizer_does() {
    let home = Home::new();
    let heard = home.files().join("heard.json");
    let body = format!(
        "cat > {}; echo '{{\"summary\":{{\"summary\":\"from the hook\",\"details\":{{\"n\":1.0}}}}}}'",
        heard.display()
    );
    let none = ["--summarizer", "none"];
    let mut d = hooked(&home, &[(BEFORE_TREE, &body)], &none);
    d.init(json!({}));
    talk(&mut d);
    let result = d.ok(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true, "navigationId": "n1"}),
    );
    let entry = &result["summaryEntry"];
    assert_eq!(entry["summary"], "from the hook");
    assert_eq!(entry["fromHook"], true);
    d.notification("event_resolved");
    let heard: Json = serde_json::from_slice(&fs::read(heard).unwrap()).unwrap();
    assert_eq!(heard["method"], "session_before_tree");
    assert_eq!(heard["params"]["navigationId"], "n1");
    assert_eq!(heard["params"]["timeoutMs"], 20_000);
    assert_eq!(
        ids(&heard["params"]["preparation"]["entriesToSummarize"]),
        ["u2", "a2"]
    );
}

#[test]
fn hooks_are_asked_without_a_handshake_too() {
    let home = Home::new();
    let body = "sleep 0.2; echo '{\"cancel\":true}'";
    let path = {
        let hook = script(&home, "hook", body);
        file(
            &home,
            &format!("[[hooks]]\nevents = [{BEFORE_TREE}]\nargv = [{hook:?}]\n"),
        )
    };
    let lines = [
        request(&json!(1), "create_session", &json!({})),
        request(
            &json!(2),
            "append_message",
            &json!({"message": user("x"), "entryId": "u1"}),
        ),
        request(
            &json!(3),
            "append_message",
            &json!({"message": user("x"), "entryId": "u2"}),
        ),
        request(&json!(4), "navigate_tree", &json!({"targetId": "u1"})),
    ];
    let said = script_in(&home, &["--config", &path], &lines);
    let answer = said.iter().find(|line| line["id"] == 4).unwrap();
    assert_eq!(
        answer["result"]["reason"], "cancelledByClient",
        "though stdin has ended"
    );
}

#[test]
fn a_cancel_of_one_hook_wins_without_waiting_for_the_client() {
    let home = Home::new();
    let hooks = [
        (BEFORE_TREE, "echo '{}'"),
        (BEFORE_TREE, "sleep 0.2; echo '{\"cancel\":true}'"),
    ];
    let mut d = hooked(&home, &hooks, &[]);
    d.init(json!({"answers": {"session_before_tree": {}}}));
    talk(&mut d);
    let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(result["reason"], "cancelledByClient");
    let event = d.notification("session_before_tree");
    assert_eq!(d.notification("event_resolved")["by"], "hook1");
    let late = json!({"eventId": event["eventId"], "result": {}});
    d.err_kind("answer_event", late, "eventNotPending");
}

#[test]
fn the_first_summary_counts_and_overrides_apply_field_by_field() {
    let home = Home::new();
    let hooks = [
        (
            BEFORE_TREE,
            "echo '{\"label\":\"of the hook\",\"summary\":{\"summary\":\"hook\"}}'",
        ),
        (
            BEFORE_TREE,
            "sleep 0.3; echo '{\"summary\":{\"summary\":\"late hook\"}}'",
        ),
    ];
    let mut d = hooked(&home, &hooks, &[]);
    d.init(json!({"answers": {"session_before_tree": {}}}));
    talk(&mut d);
    let params = json!({"targetId": "a1", "summarize": true});
    let id = d.send("navigate_tree", params);
    let event = d.notification("session_before_tree");
    d.answer(&event, json!({"summary": {"summary": "client"}}));
    let result = d.response(&id).unwrap();
    let resolved = d.notification("event_resolved");
    assert_eq!(resolved["outcome"], "summary");
    // Either the hook or the client may answer first.
    let first = match resolved["by"].as_str().unwrap() {
        "it" => "client",
        "hook0" => "hook",
        other => panic!("{other}"),
    };
    assert_eq!(result["summaryEntry"]["summary"], first);
    assert_eq!(result["labelEntry"]["label"], "of the hook");
}

/// For each way in which a hook can fail: its script, and the reason that the daemon reports.
const FAILURES: [(&str, &str); 9] = [
    ("exit 3", "it exited with code 3"),
    ("echo '{}'; exit 1", "it exited with code 1"),
    ("kill -9 $$", "it was ended by a signal"),
    ("echo '{\"cancle\":true}'", "its output is not an answer"),
    ("echo sure", "its output is not an answer"),
    (
        "echo '{\"compaction\":{\"summary\":\"S\"}}'",
        "result.compaction: does not answer session_before_tree",
    ),
    ("sleep 60", "it took longer than 1s"),
    (
        "head -c 2000000 /dev/zero",
        "it wrote more than 1048576 bytes",
    ),
    ("chmod go+w \"$0\"; exit 1", "it exited with code 1"),
];

/// A daemon with one hook that fails. `more` is added to the configuration of the hook.
fn failing(home: &Arc<Home>, events: &str, body: &str, more: &str) -> Daemon {
    let hook = script(home, "guard", body);
    let timeout_ms = if body == "sleep 60" { 1000 } else { 20_000 };
    let text = format!(
        "[[hooks]]\nevents = [{events}]\nargv = [{hook:?}]\ntimeout_ms = {timeout_ms}\n{more}\n"
    );
    let mut d = Daemon::start_in(home, &["--config", &file(home, &text)], &[]);
    d.ignore_bookkeeping();
    d.allow_stderr();
    d
}

/// A hook that crashed once let every navigation proceed, even if the caller had set `onNoAnswer` to `cancel`. Now a
/// failed hook cancels, whatever the caller's options are. Methods that ask no question still work.
#[test]
fn a_failed_hook_cancels_whatever_on_no_answer_says() {
    for (body, why) in FAILURES {
        let home = Home::new();
        let mut d = failing(&home, BEFORE_TREE, body, "");
        d.init(json!({}));
        talk(&mut d);
        for on_no_answer in ["proceed", "cancel"] {
            let params = json!({"targetId": "a1", "onNoAnswer": on_no_answer});
            let result = d.ok("navigate_tree", params);
            let message = result["message"].clone();
            let said = message.as_str().unwrap();
            // The last body makes its program writable for other users. So its second run is refused for another
            // reason.
            let is_first = on_no_answer == "proceed";
            assert!(!is_first || said.contains(why), "{body}: {said}");
            let expect = json!({
                "cancelled": true, "reason": "hookFailed", "by": "guard", "message": message,
                "oldLeafId": "a2", "newLeafId": "a2", "durability": "none",
            });
            assert_eq!(result, expect, "{body}");
            let resolved = d.notification("event_resolved");
            assert_eq!(resolved["message"], message, "{body}");
            assert_eq!(resolved["outcome"], "cancelled", "{body}");
            assert_eq!(resolved["by"], "guard", "{body}");
        }
        d.ok("set_leaf", json!({"leafId": "a1"}));
        d.ok("branch", json!({"entryId": "u1"}));
        d.ok("undo_navigation", json!({}));
        assert_eq!(d.leaf(), "a1", "{body}");
        let said = d.end_and_stderr();
        assert!(
            said.contains(why) && said.contains("guard"),
            "{body}: {said}"
        );
        assert!(
            said.contains("config.toml"),
            "the file that names it: {said}"
        );
    }
}

#[test]
fn a_failed_hook_proceeds_if_on_failure_is_proceed() {
    for (body, why) in FAILURES {
        let home = Home::new();
        let mut d = failing(&home, BEFORE_TREE, body, "on_failure = \"proceed\"");
        d.init(json!({}));
        talk(&mut d);
        let params = json!({"targetId": "a1", "onNoAnswer": "cancel"});
        let result = d.ok("navigate_tree", params);
        assert_eq!(result["cancelled"], false, "{body}: {result}");
        assert!(result.get("by").is_none(), "{result}");
        let resolved = d.notification("event_resolved");
        assert_eq!(resolved["outcome"], "proceed", "{body}");
        assert_eq!(resolved["by"], "guard", "{body}");
        assert_eq!(d.leaf(), "a1");
        let said = d.end_and_stderr();
        assert!(said.contains(why), "{body}: {said}");
    }
}

#[test]
fn a_hook_says_why_it_cancels() {
    let home = Home::new();
    let long = "x".repeat(600);
    let body = format!("echo '{{\"cancel\":true,\"reason\":\"{long}\"}}'");
    let mut d = hooked(&home, &[(BEFORE_TREE, &body)], &[]);
    d.init(json!({}));
    talk(&mut d);
    let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(
        (&result["reason"], &result["by"], &result["message"]),
        (
            &json!("cancelledByClient"),
            &json!("hook0"),
            &json!(long[..500])
        )
    );
    assert_eq!(d.notification("event_resolved")["message"], long[..500]);
}

/// A hook that answered `cancel` with one member too many once counted as failed, and with `on_failure = "proceed"` the
/// move happened. The same was true for a hook that then exited with 1, wrote a line before its answer, or did not end.
#[test]
fn a_cancel_of_a_hook_stays_one_whatever_is_wrong_beside_it() {
    let cancel = r#"echo '{"cancel":true,"reason":"building"}'"#;
    for (body, timeout_ms) in [
        (
            r#"echo '{"cancel":true,"reason":"building","because":"so"}'"#.to_owned(),
            None,
        ),
        (format!("{cancel}; exit 1"), None),
        (format!("echo checking; {cancel}"), None),
        (format!("{cancel}; kill -9 $$"), None),
        (format!("{cancel}; sleep 60"), Some(5_000)),
        (format!("{cancel}; yes"), None),
    ] {
        let home = Home::new();
        let mut d = failing(&home, BEFORE_TREE, &body, "on_failure = \"proceed\"");
        d.init(json!({}));
        talk(&mut d);
        let mut params = json!({"targetId": "a1"});
        if let Some(timeout) = timeout_ms {
            params["answerTimeoutMs"] = json!(timeout);
        }
        let result = d.ok("navigate_tree", params);
        assert_eq!(
            why_cancelled(&result),
            ["hookFailed", "guard", "building"],
            "{body}"
        );
        assert_eq!(d.notification("event_resolved")["outcome"], "cancelled");
    }
}

/// A hook that had not answered by the caller's deadline was once ignored, so a caller with a short timeout passed
/// every hook.
#[test]
fn a_short_answer_timeout_does_not_bypass_a_hook() {
    let home = Home::new();
    let mut d = failing(&home, BEFORE_TREE, "sleep 30", "");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    talk(&mut d);
    let params = json!({"targetId": "a1", "answerTimeoutMs": 6000, "onNoAnswer": "proceed"});
    let id = d.send("navigate_tree", params);
    let event = d.notification("session_before_tree");
    d.answer(&event, json!({}));
    let result = d.response(&id).unwrap();
    assert_eq!(
        (&result["reason"], &result["by"]),
        (&json!("hookFailed"), &json!("guard"))
    );
    assert_eq!(d.notification("event_resolved")["outcome"], "cancelled");
}

/// If a failed hook lets an event proceed, `onNoAnswer` still decides about an unanswered question.
#[test]
fn an_unanswered_question_counts_beside_a_failed_hook() {
    let home = Home::new();
    let mut d = failing(&home, BEFORE_TREE, "exit 1", "on_failure = \"proceed\"");
    d.init(json!({"answers": {"session_before_tree": {}}}));
    talk(&mut d);
    let params = json!({"targetId": "a1", "answerTimeoutMs": 300, "onNoAnswer": "cancel"});
    assert_eq!(d.ok("navigate_tree", params)["reason"], "noAnswer");
    assert_eq!(d.notification("event_resolved")["outcome"], "timeout");
}

#[test]
fn a_failed_hook_cancels_forks_and_compactions() {
    let home = Home::new();
    let events = "\"session_before_fork\", \"session_before_compact\"";
    let mut d = failing(&home, events, "exit 1", "");
    d.ignore("session_before_fork");
    d.ignore("session_before_compact");
    d.init(json!({}));
    talk(&mut d);
    let params = [
        ("fork_session", json!({})),
        ("compact", json!({"keepRecentTokens": 1})),
    ];
    for (method, params) in params {
        let result = d.ok(method, params);
        let expect = json!({
            "cancelled": true, "reason": "hookFailed", "by": "guard", "message": "it exited with code 1", "durability": "none",
        });
        assert_eq!(result, expect, "{method}");
        let resolved = d.notification("event_resolved");
        assert_eq!(
            (&resolved["outcome"], &resolved["by"]),
            (&json!("cancelled"), &json!("guard"))
        );
    }
    assert_eq!(d.leaf(), "a2");
}

/// A hook that could not be started, or that other users could change, once kept the daemon and every command from
/// starting.
#[test]
fn a_hook_that_cannot_run_stops_neither_the_daemon_nor_a_command() {
    let home = Home::new();
    let text = |argv: &str| format!("[[hooks]]\nevents = [{BEFORE_TREE}]\nargv = [{argv:?}]\n");
    let not_executable = home.file("text", b"no program");
    let open_to_all = script(&home, "open", "exit 0");
    fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o722)).unwrap();
    for (argv, why) in [
        ("/nowhere/guard", "could not be started"),
        (not_executable.to_str().unwrap(), "could not be started"),
        ("/usr", "could not be started"),
        ("guard", "is not an absolute path"),
        ("./guard", "is not an absolute path"),
        (open_to_all.as_str(), "can be written by others"),
    ] {
        let path = file(&home, &text(argv));
        let mut d = Daemon::start_in(&home, &["--config", &path], &[]);
        d.ignore_bookkeeping();
        d.allow_stderr();
        d.init(json!({}));
        talk(&mut d);
        let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
        assert_eq!(result["reason"], "hookFailed", "{argv}");
        d.notification("event_resolved");
        let said = d.end_and_stderr();
        assert!(said.contains(why), "{argv}: {said}");

        let listed = home.run(&["--config", &path, "call", "list_sessions"], &[], "");
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        let described = home.run(&["--config", &path, "config"], &[], "").clean();
        let described = described.text();
        assert!(described.contains(why), "{described}");
        let session = home.session_files().remove(0);
        let session = session.to_str().unwrap();
        let doctor = home.run(&["--config", &path, "doctor", session], &[], "");
        assert_eq!(doctor.code, Some(1), "{}", doctor.stderr);
        let doctor = doctor.text();
        assert!(doctor.contains(why) && doctor.contains(&path), "{doctor}");
    }
}

#[test]
fn a_failed_hook_after_an_event_is_logged_with_its_configuration_file() {
    let home = Home::new();
    let mut d = failing(&home, "\"session_tree\"", "exit 9", "");
    d.init(json!({}));
    talk(&mut d);
    d.ok("set_leaf", json!({"leafId": "a1"}));
    let said = d.end_and_stderr();
    for part in ["guard", "config.toml", "it exited with code 9"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_hook_without_output_has_no_opinion() {
    for body in ["true", "echo null", "echo '[]'", "echo '{}'"] {
        let home = Home::new();
        let mut d = hooked(&home, &[(BEFORE_TREE, body)], &[]);
        d.init(json!({}));
        talk(&mut d);
        let params = json!({"targetId": "a1", "onNoAnswer": "cancel"});
        let result = d.ok("navigate_tree", params);
        assert_eq!(result["cancelled"], false, "{body}");
        assert_eq!(d.notification("event_resolved")["outcome"], "proceed");
    }
}

#[test]
fn a_hook_is_killed_with_its_children_when_the_question_is_over() {
    takes_at_most(Duration::from_millis(100), || {
        let home = Home::new();
        let child = home.files().join("child");
        let mut d = hooked(&home, &[(BEFORE_TREE, &with_child(&child))], &[]);
        d.init(json!({}));
        talk(&mut d);
        let id = d.send("navigate_tree", json!({"targetId": "a1"}));
        d.notification("session_before_tree");
        eventually("the hook runs", || child.exists());
        assert!(runs(&child));
        let before = Instant::now();
        assert_eq!(d.ok("abort_navigation", json!({}))["aborted"], true);
        assert_eq!(d.response(&id).unwrap()["reason"], "aborted");
        let took = before.elapsed();
        d.notification("event_resolved");
        eventually("its child is dead", || !runs(&child));
        took
    });
}

/// A hook that hung once delayed the end of the daemon by the whole `timeout_ms`.
#[test]
fn a_hook_that_hangs_holds_the_end_of_the_daemon_for_a_few_seconds_only() {
    for event in [BEFORE_TREE, "\"session_tree\""] {
        let home = Home::new();
        let hook = script(&home, "guard", "sleep 100");
        let text =
            format!("[[hooks]]\nevents = [{event}]\nargv = [{hook:?}]\ntimeout_ms = 90000\n");
        let mut d = Daemon::start_in(&home, &["--config", &file(&home, &text)], &[]);
        d.ignore_bookkeeping();
        d.allow_stderr();
        talk(&mut d);
        let navigation = d.send("navigate_tree", json!({"targetId": "a1"}));
        d.close_stdin();
        let result = d.response(&navigation).unwrap();
        // A guard that does not answer in time has failed, and does not consent.
        assert_eq!(result["cancelled"], event == BEFORE_TREE, "{event}");
        d.ignore("session_before_tree");
        d.ignore("session_tree");
        d.ignore("event_resolved");
        assert_eq!(d.exited(), Some(0), "{event}");
    }
}

#[test]
fn hooks_receive_every_event_in_order_until_the_end() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let body = format!("cat >> {}", heard.display());
    let events = "\"session_tree\", \"session_compact\", \"turn_requested\", \"entries_appended\"";
    let mut d = hooked(&home, &[(events, &body)], &["--summarizer", "outline"]);
    d.ignore("turn_requested");
    d.init(json!({"optOut": ["entries_appended"]}));
    talk(&mut d);
    d.ok(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    let message = json!({"customType": "x", "content": "y", "display": true, "triggerTurn": true});
    d.ok("send_message", message);
    d.stop();
    let text = fs::read_to_string(&heard).unwrap();
    let names: Vec<Json> = text
        .lines()
        .map(|line| parse(line).unwrap()["method"].clone())
        .collect();
    let appended = "entries_appended";
    let expect = [
        appended,
        appended,
        appended,
        appended,
        appended,
        "session_tree",
        appended,
        "turn_requested",
    ];
    assert_eq!(names, expect);
}

#[test]
fn forks_and_compactions_ask_hooks_too() {
    let home = Home::new();
    let hooks = [
        ("\"session_before_fork\"", "echo '{\"cancel\":true}'"),
        (
            "\"session_before_compact\"",
            "echo '{\"compaction\":{\"summary\":\"by hook\"}}'",
        ),
    ];
    let mut d = hooked(&home, &hooks, &[]);
    for name in [
        "session_before_fork",
        "session_before_compact",
        "event_resolved",
    ] {
        d.ignore(name);
    }
    d.init(json!({}));
    talk(&mut d);
    assert_eq!(d.ok("fork_session", json!({}))["cancelled"], true);
    let entry = d.ok("compact", json!({"keepRecentTokens": 1}))["compactionEntry"].clone();
    assert_eq!(
        (&entry["summary"], &entry["fromHook"]),
        (&json!("by hook"), &json!(true))
    );
    d.notification("session_compact");
}
