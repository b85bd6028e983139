//! `watch_sessions`: changes of the list of sessions.

use crate::harness::*;

fn watcher(shared: &SharedDaemon, params: Json) -> Daemon {
    let mut client = shared.client("watcher", json!({}));
    client.ok("watch_sessions", params);
    client
}

/// Waits for a notification with a row of this session for which `holds` returns true.
#[track_caller]
fn changed(client: &mut Daemon, id: &Json, holds: impl Fn(&Json) -> bool) {
    loop {
        let told = client.notification("sessions_changed");
        let rows = told["changed"].as_array().unwrap();
        if rows.iter().any(|row| row["sessionId"] == *id && holds(row)) {
            return;
        }
    }
}

#[test]
fn changes_of_this_daemon_are_announced() {
    let shared = SharedDaemon::start();
    let mut client = watcher(&shared, json!({}));
    let mut writer = shared.client("writer", json!({}));
    let id = json!(writer.create());
    writer.user("u1", "hello");
    changed(&mut client, &id, |row| row["firstMessage"] == "hello");
    writer.ok("set_session_name", json!({"name": "tour"}));
    changed(&mut client, &id, |row| row["name"] == "tour");
    writer.ok("delete_session", json!({"sessionId": id}));
    loop {
        let told = client.notification("sessions_changed");
        if told["removed"] == json!([id]) {
            break;
        }
    }
    client.ignore("sessions_changed");
}

#[test]
fn changes_of_other_writers_are_announced() {
    let shared = SharedDaemon::start();
    let mut client = watcher(&shared, json!({}));
    let mut other = Daemon::quiet_in(&shared.home);
    let id = json!(other.create());
    other.user("u1", "from another process");
    changed(&mut client, &id, |row| row["messageCount"] == 1);
    other.user("u2", "more");
    changed(&mut client, &id, |row| row["messageCount"] == 2);
    client.ignore("sessions_changed");
}

#[test]
fn a_watch_can_be_limited_to_a_directory_replaced_and_ended() {
    let shared = SharedDaemon::start();
    let mut client = watcher(&shared, json!({"cwd": "/elsewhere"}));
    let mut all = watcher(&shared, json!({}));
    let mut writer = shared.client("writer", json!({}));
    let create = |writer: &mut Daemon, cwd: &str| {
        let made = writer.ok("create_session", json!({"cwd": cwd, "write": "now"}));
        made["session"]["sessionId"].clone()
    };
    let here = create(&mut writer, "/here");
    let elsewhere = create(&mut writer, "/elsewhere/");
    changed(&mut all, &elsewhere, |_| true);
    let told = client.notification("sessions_changed");
    assert_eq!(told["changed"].as_array().unwrap().len(), 1);
    assert_eq!(told["changed"][0]["sessionId"], elsewhere);
    client.ok("watch_sessions", json!({"cwd": "/here"}));
    writer.ok("delete_session", json!({"sessionId": here}));
    loop {
        let told = client.notification("sessions_changed");
        if told["removed"] == json!([here]) {
            break;
        }
    }
    client.ok("unwatch_sessions", json!({}));
    let last = create(&mut writer, "/here");
    changed(&mut all, &last, |_| true);
    client.no_notification("sessions_changed");
    all.ignore("sessions_changed");
}

/// Once, only the client that navigated got the text of the summary, although all clients saw the question and the
/// move.
#[test]
fn all_who_have_a_session_open_receive_a_summary_while_it_is_written() {
    let shared = SharedDaemon::start_with(&["--summarizer", "outline"], &[]);
    let mut mover = shared.client("mover", json!({}));
    let id = mover.create();
    mover.chain(&["u1", "a1", "u2", "a2"]);
    let mut reader = shared.client("reader", json!({"summaryDeltas": {}}));
    let mut counter = shared.client("counter", json!({"progress": {}}));
    let mut elsewhere = shared.client("elsewhere", json!({"summaryDeltas": {}, "progress": {}}));
    for client in [&mut reader, &mut counter] {
        client.ok("open_session", json!({"sessionId": id}));
    }
    let params = json!({"targetId": "a1", "summarize": true, "navigationId": "n1"});
    let summary = mover.ok("navigate_tree", params)["summaryEntry"]["summary"].clone();
    let summary = summary.as_str().unwrap();
    let mut text = String::new();
    while text.len() < summary.len() {
        let piece = reader.notification("summary_delta");
        assert_eq!(piece["navigationId"], "n1");
        text.push_str(piece["delta"].as_str().unwrap());
    }
    assert_eq!(text, summary);
    let characters = summary.chars().count() as f64;
    loop {
        let told = counter.notification("progress");
        assert_eq!(told["token"], "n1");
        if told["progress"].as_f64() == Some(characters) {
            break;
        }
    }
    elsewhere.ok("list_sessions", json!({}));
}
