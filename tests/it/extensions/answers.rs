//! The answers of extensions to before events, and the answers that count if an extension cannot answer.

use super::*;

const ANSWERS: &str =
    "sessions = \"all\"\nanswers = [\"session_before_tree\", \"session_before_fork\"]";
const CAPABLE: &str =
    r#"introduce '{"answers":{"session_before_tree":{},"session_before_fork":{}}}'"#;

/// The body of a script that writes the lines that it reads to the file `heard`, and runs `act` at each question.
fn guard(heard: &Path, act: &str) -> String {
    format!(
        r#"{CAPABLE}
        while read -r line; do
          printf '%s\n' "$line" >> {}
          case $line in *'"session_before_'*) {act};; esac
        done"#,
        heard.display()
    )
}

/// A daemon with such an extension, and a session with a branch to leave. The extension has the session open.
fn guarded(home: &Arc<Home>, settings: &str, act: &str) -> (Daemon, PathBuf) {
    let heard = home.files().join("heard");
    let mut d = started(home, settings, &guard(&heard, act));
    talk(&mut d);
    eventually("it is ready", || has(&heard, "session_opened"));
    (d, heard)
}

fn talk(d: &mut Daemon) {
    d.ignore("session_before_fork");
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
}

#[track_caller]
fn check_refused(d: &mut Daemon) {
    let params = json!({"targetId": "a1", "onNoAnswer": "proceed"});
    let result = d.ok("navigate_tree", params);
    assert_eq!(result["cancelled"], true, "{result}");
    assert_eq!(
        (&result["reason"], &result["by"]),
        (&json!("hookFailed"), &json!("todo"))
    );
    let resolved = d.notification("event_resolved");
    assert_eq!(
        (&resolved["outcome"], &resolved["by"]),
        (&json!("cancelled"), &json!("todo"))
    );
    assert_eq!(d.leaf(), "a2");
}

#[track_caller]
fn check_allowed(d: &mut Daemon) {
    let params = json!({"targetId": "a1", "onNoAnswer": "cancel"});
    let result = d.ok("navigate_tree", params);
    assert_eq!(result["cancelled"], false, "{result}");
    assert_eq!(d.notification("event_resolved")["outcome"], "proceed");
    assert_eq!(d.leaf(), "a1");
}

#[test]
fn a_veto_of_an_extension_is_by_its_configured_name() {
    let home = Home::new();
    let (mut d, _) = guarded(&home, ANSWERS, "answer \"$line\" '{\"cancel\":true}'");
    let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(result["reason"], "cancelledByClient");
    assert_eq!(d.notification("event_resolved")["by"], "todo");
    let result = d.ok("fork_session", json!({"entryId": "u2"}));
    assert_eq!(result["cancelled"], true);
    d.notification("event_resolved");
}

#[test]
fn on_failure_answers_while_an_extension_is_not_ready() {
    let home = Home::new();
    for (on_failure, refused) in [("", true), ("on_failure = \"proceed\"", false)] {
        let settings = format!("{ANSWERS}\n{on_failure}");
        let mut d = started(&home, &settings, "exec cat > /dev/null");
        talk(&mut d);
        match refused {
            true => check_refused(&mut d),
            false => check_allowed(&mut d),
        }
        d.allow_stderr();
        let log = d.end_and_stderr();
        assert!(
            log.contains("an extension did not answer extension=\"todo\""),
            "{log}"
        );
    }
}

#[test]
fn on_failure_answers_if_an_extension_dies_with_the_question_open() {
    let home = Home::new();
    for (on_failure, refused) in [("", true), ("on_failure = \"proceed\"", false)] {
        let (mut d, heard) = guarded(&home, &format!("{ANSWERS}\n{on_failure}"), "kill -9 $$");
        match refused {
            true => check_refused(&mut d),
            false => check_allowed(&mut d),
        }
        assert!(has(&heard, "session_before_tree"));
        fs::remove_file(&heard).unwrap();
        d.allow_stderr();
    }
}

#[test]
fn on_failure_answers_once_an_extension_has_died() {
    let home = Home::new();
    let mut d = started(&home, ANSWERS, "exit 1");
    talk(&mut d);
    let params = json!({"entryId": "u2"});
    let result = d.ok("fork_session", params);
    assert_eq!(
        (&result["reason"], &result["by"]),
        (&json!("hookFailed"), &json!("todo"))
    );
    d.notification("event_resolved");
    check_refused(&mut d);
    let undone = d.ok("set_leaf", json!({"leafId": "a1"}));
    assert_eq!(undone["newLeafId"], "a1", "it asks nobody");
    d.allow_stderr();
}

/// A command that starts its own daemon does not start extensions, and a missing guard does not consent.
#[test]
fn on_failure_answers_in_commands_that_start_no_extension() {
    let home = Home::new();
    let path = configured(&home, ANSWERS, CAPABLE);
    let mut d = Daemon::quiet_in(&home);
    talk(&mut d);
    d.stop();
    let session = home.only_file();
    let args = [
        "--config",
        &path,
        "call",
        "navigate_tree",
        "{\"targetId\":\"a1\"}",
        "--open",
    ];
    let output = home.run(&[&args[..], &[session.to_str().unwrap()]].concat(), &[], "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("hookFailed"), "{said} {}", output.stderr);
}

#[test]
fn an_extension_that_does_not_answer_in_time_has_failed() {
    let home = Home::new();
    let (mut d, _) = guarded(&home, ANSWERS, "true");
    let params = json!({"targetId": "a1", "answerTimeoutMs": 50, "onNoAnswer": "proceed"});
    let result = d.ok("navigate_tree", params);
    assert_eq!(
        (&result["reason"], &result["by"]),
        (&json!("hookFailed"), &json!("todo"))
    );
    d.notification("event_resolved");
    d.allow_stderr();
}

/// A client gets only the events that it has declared, so its missing answer counts as a failure.
#[test]
fn an_extension_that_does_not_declare_its_events_has_failed() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let mut d = started(&home, ANSWERS, &listener(&heard));
    talk(&mut d);
    eventually("it is ready", || has(&heard, "session_opened"));
    check_refused(&mut d);
    d.allow_stderr();
}

/// Without `answers` an extension is a client like any other: its `initialize` declares the events.
#[test]
fn an_extension_that_need_not_answer_fails_as_any_client_when_it_dies() {
    let home = Home::new();
    let (mut d, _) = guarded(&home, "sessions = \"all\"", "kill -9 $$");
    let result = d.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(
        (&result["cancelled"], &result["by"]),
        (&json!(true), &json!("todo"))
    );
    d.notification("event_resolved");
    d.allow_stderr();
}

/// An extension that navigates was once asked about its own move, and vetoed it.
#[test]
fn an_extension_is_not_asked_about_its_own_moves() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let body = format!(
        r#"{CAPABLE}
        while read -r line; do
          printf '%s\n' "$line" >> {}
          case $line in
            *'"session_before_'*'"timeoutMs":0,'*) ;;
            *'"session_before_'*) answer "$line" '{{"cancel":true}}';;
            *'"session_info_changed"'*)
              printf '%s\n' '{{"jsonrpc":"2.0","id":"n","method":"navigate_tree","params":{{"targetId":"a1"}}}}';;
          esac
        done"#,
        heard.display()
    );
    let settings = format!("{ANSWERS}\nmay = \"append\"");
    let mut d = started(&home, &settings, &body);
    talk(&mut d);
    eventually("it is ready", || has(&heard, "session_opened"));
    d.ok("set_session_name", json!({"name": "x"}));
    eventually("it has its answer", || has(&heard, "\"id\":\"n\""));
    assert_eq!(d.leaf(), "a1");
    assert!(has(&heard, "\"timeoutMs\":0,"), "it hears of its move");
    let refused = d.ok("navigate_tree", json!({"targetId": "a2"}));
    assert_eq!(
        (&refused["reason"], &refused["by"]),
        (&json!("cancelledByClient"), &json!("todo"))
    );
    d.notification("event_resolved");
}

#[test]
fn an_extension_gets_no_more_time_than_the_caller_gave() {
    let home = Home::new();
    let extend = r#"
        id=$(printf '%s\n' "$line" | sed 's/.*"eventId":"\([^"]*\)".*/\1/')
        printf '%s\n' '{"jsonrpc":"2.0","id":"e","method":"answer_event","params":{"eventId":"'"$id"'","extendMs":60000}}'"#;
    let (mut d, heard) = guarded(&home, ANSWERS, extend);
    let given = |heard: &Path| -> Vec<u64> {
        let lines = lines(&heard.to_path_buf());
        let answers = lines.iter().filter(|line| line.contains("\"id\":\"e\""));
        let answers = answers.map(|line| serde_json::from_str::<Json>(line).unwrap());
        answers
            .filter_map(|answer| answer["result"]["timeoutMs"].as_u64())
            .collect()
    };
    let params = json!({"targetId": "a1", "answerTimeoutMs": 5000});
    let result = d.ok("navigate_tree", params);
    assert_eq!(
        (&result["reason"], &result["by"]),
        (&json!("hookFailed"), &json!("todo"))
    );
    d.notification("event_resolved");
    let times = given(&heard);
    assert!(times.len() == 1 && times[0] <= 5000, "{times:?}");

    // If the caller gives no time limit, the limit of the daemon counts.
    let id = d.send("navigate_tree", json!({"targetId": "a1"}));
    eventually("it has more time", || {
        given(&heard).get(1).is_some_and(|time| *time > 50_000)
    });
    d.ok("abort_navigation", json!({}));
    assert_eq!(d.response(&id).unwrap()["reason"], "aborted");
    d.notification("event_resolved");
    d.allow_stderr();
}
