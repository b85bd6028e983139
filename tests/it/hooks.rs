//! Programs that answer before events and hear of what has happened, next to a client that answers.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{file, script, with_child};
use crate::harness::*;

/// A daemon with these hooks: events, script.
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
    let mut d = hooked(&home, &[(BEFORE_TREE, &body)], &[]);
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
fn without_a_handshake_hooks_are_asked_all_the_same() {
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
fn any_cancel_wins_and_the_client_is_not_waited_for() {
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
    // Whoever was first.
    let first = match resolved["by"].as_str().unwrap() {
        "it" => "client",
        "hook0" => "hook",
        other => panic!("{other}"),
    };
    assert_eq!(result["summaryEntry"]["summary"], first);
    assert_eq!(result["labelEntry"]["label"], "of the hook");
}

#[test]
fn a_hook_that_fails_has_no_opinion_and_says_why_on_stderr() {
    for (body, why) in [
        ("exit 3", "it exited with code 3"),
        ("echo '{\"cancle\":true}'", "a hook's answer is not one"),
        ("sleep 60", "it took longer than 2s"),
        (
            "head -c 2000000 /dev/zero",
            "it wrote more than 1048576 bytes",
        ),
    ] {
        let home = Home::new();
        let hook = script(&home, "hook", body);
        let timeout_ms = if body == "sleep 60" { 2000 } else { 20_000 };
        let path = file(
            &home,
            &format!(
                "[[hooks]]\nevents = [{BEFORE_TREE}]\nargv = [{hook:?}]\ntimeout_ms = {timeout_ms}\n"
            ),
        );
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
        let input = lines.join("\n");
        let output = home.run(&["--config", &path], &[], input);
        assert_eq!(output.code, Some(0), "{body}");
        let answer = output.responses()["4"].clone();
        assert_eq!(answer["result"]["cancelled"], false, "{body}: {answer}");
        assert!(output.stderr.contains(why), "{body}: {}", output.stderr);
    }
}

#[test]
fn a_hook_that_lets_its_time_pass_is_silent_and_one_that_says_nothing_is_not() {
    for (body, reason, outcome) in [
        ("sleep 60", json!("noAnswer"), "timeout"),
        ("echo null", Json::Null, "proceed"),
        ("echo '[]'", Json::Null, "proceed"),
    ] {
        let home = Home::new();
        let hook = script(&home, "hook", body);
        let timeout_ms = if outcome == "timeout" { 1000 } else { 20_000 };
        let text = format!(
            "[[hooks]]\nevents = [{BEFORE_TREE}]\nargv = [{hook:?}]\ntimeout_ms = {timeout_ms}\n"
        );
        let path = file(&home, &text);
        let mut d = Daemon::start_in(&home, &["--config", &path], &[]);
        d.ignore_bookkeeping();
        if outcome == "timeout" {
            d.let_complain();
        }
        d.init(json!({}));
        talk(&mut d);
        let result = d.ok(
            "navigate_tree",
            json!({"targetId": "a1", "onNoAnswer": "cancel"}),
        );
        assert_eq!(result["reason"], reason, "{body}");
        assert_eq!(d.notification("event_resolved")["outcome"], outcome);
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

#[test]
fn hooks_hear_of_what_has_happened_in_order_and_to_the_last() {
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
