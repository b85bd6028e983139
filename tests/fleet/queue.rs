//! Changes that no request of a client makes: queued entries that are published later, entries of other programs, and
//! the list of the team.

use crate::daemon::Daemon;
use crate::live::until_equal;
use crate::proxy::Proxy;
use crate::single::Single;
use crate::support::{Fleet, Machine};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `look` returns true.
#[track_caller]
pub(crate) fn until(mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits for the notification that entries are queued, or that no entry is queued any more.
#[track_caller]
fn announced(daemon: &mut Daemon, queued: bool) {
    daemon.notice(|message| {
        message["method"] == "session_log_changed" && message["params"]["queued"] == queued
    });
}

/// The member `queued` of a session's row.
#[track_caller]
pub(crate) fn queued(daemon: &mut Daemon, session: &str) -> Value {
    let list = daemon.done("list_sessions", json!({ "local": true }));
    let rows = list["sessions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["sessionId"] == session);
    row.unwrap()["queued"].clone()
}

/// Waits until an open session has no queued entries, and drops the notifications until then. On a busy machine the servers
/// answer late, so the first entries are queued too: their notifications were once taken for those of later entries.
fn settled(daemon: &mut Daemon, session: &str) {
    let named = json!({ "sessionId": session });
    until(|| {
        let opened = daemon.done("open_session", named.clone());
        daemon.done("close_session", named.clone());
        opened["session"]["queued"].is_null()
    });
    daemon.forget();
}

/// The number of entries of a session in the team's list.
fn listed(machine: &Machine, session: &str) -> Option<u64> {
    let rows = machine.done(&["pull", "--list", "--json"]);
    let row = rows.into_iter().find(|row| row["sessionId"] == session);
    row?["entries"].as_u64()
}

/// Clients once got no notification when queued entries were published. If a session was closed meanwhile, its queued
/// entries were not published until it was opened again.
#[test]
fn a_queue_is_announced_when_it_begins_and_when_it_is_published() {
    let Some(mut server) = Single::start(|_| String::new()) else {
        return;
    };
    let here = server.machine("offline = \"queue\"");
    let there = server.machine("");
    here.until_sound(&["doctor", "--cluster", "--create"]);
    let mut daemon = Daemon::start(&here);
    daemon.done(
        "initialize",
        json!({ "client": { "name": "test", "version": "1" }, "protocolVersion": 1 }),
    );
    let create = json!({ "cwd": "/c", "write": "now", "sessionId": "s" });
    daemon.done("create_session", create);
    daemon.say("s", "one");
    settled(&mut daemon, "s");

    server.kill();
    assert_eq!(daemon.say("s", "two")["durability"], "queued");
    announced(&mut daemon, true);
    assert_eq!(daemon.say("s", "three")["durability"], "queued");
    assert_eq!(queued(&mut daemon, "s"), true);
    let opened = daemon.done("open_session", json!({ "sessionId": "s" }));
    assert_eq!(opened["session"]["queued"], true);

    server.restart();
    announced(&mut daemon, false);
    until(|| queued(&mut daemon, "s").is_null());
    let opened = daemon.done("open_session", json!({ "sessionId": "s" }));
    assert_eq!(opened["session"]["queued"], Value::Null);
    there.done(&["pull", "s", "--json"]);
    assert_eq!(there.text("s"), here.text("s"));
    until(|| listed(&there, "s") == Some(3));

    // Before the servers are back, the session is closed three times, as often as it was opened.
    server.kill();
    assert_eq!(daemon.say("s", "four")["durability"], "queued");
    announced(&mut daemon, true);
    for _ in 0..3 {
        daemon.done("close_session", json!({ "sessionId": "s" }));
    }
    assert_eq!(queued(&mut daemon, "s"), true);
    server.restart();
    until(|| queued(&mut daemon, "s").is_null());
    there.done(&["pull", "s", "--json"]);
    assert_eq!(there.text("s"), here.text("s"));

    // When the session is opened again, the daemon follows it again.
    daemon.done("open_session", json!({ "sessionId": "s" }));
    daemon.say("s", "five");
    until(|| listed(&there, "s") == Some(5));
    daemon.end();
}

/// A session with a name was once queued although the servers were sound, since a new daemon had not connected yet.
#[test]
fn a_new_session_waits_for_the_first_connection() {
    let Some(mut server) = Single::start(|_| String::new()) else {
        return;
    };
    let machine = server.machine("offline = \"queue\"");
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    let git = json!({ "branch": "main" });
    let kinds = [
        json!({ "cwd": "/c", "write": "now" }),
        json!({ "cwd": "/c", "name": "A name" }),
        json!({ "cwd": "/c", "name": "A name", "git": git }),
    ];
    for params in &kinds {
        let mut daemon = Daemon::start(&machine);
        let made = daemon.done("create_session", params.clone());
        assert_ne!(made["durability"], "queued", "{params}");
        assert_eq!(made["session"]["queued"], Value::Null);
        daemon.end();
    }
    server.kill();
    for params in &kinds {
        let mut daemon = Daemon::start(&machine);
        let began = Instant::now();
        let made = daemon.done("create_session", params.clone());
        assert_eq!(made["durability"], "queued", "{params}");
        assert!(began.elapsed() < Duration::from_secs(30));
        daemon.end();
    }
}

/// A daemon finds entries in the file that an earlier daemon could not publish.
#[test]
fn a_session_that_is_opened_without_servers_says_that_entries_wait() {
    let Some(mut server) = Single::start(|_| String::new()) else {
        return;
    };
    let machine = server.machine("offline = \"queue\"");
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    machine.make("s", 3, 10);
    machine.done(&["push", "s", "--json"]);
    server.kill();
    let mut daemon = Daemon::start(&machine);
    let opened = daemon.done("open_session", json!({ "sessionId": "s" }));
    assert_eq!(
        opened["session"]["queued"],
        Value::Null,
        "the file is as it was pushed"
    );
    daemon.say("s", "waits");
    announced(&mut daemon, true);
    daemon.end();
    let mut daemon = Daemon::start(&machine);
    let opened = daemon.done("open_session", json!({ "sessionId": "s" }));
    assert_eq!(opened["session"]["queued"], true);
    server.restart();
    announced(&mut daemon, false);
    daemon.end();
}

/// The list of the team once had the number of entries after the last append of a daemon, without later entries of
/// other programs.
#[test]
fn entries_of_other_programs_reach_the_list_of_the_team() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let (here, there) = (server.machine(""), server.machine(""));
    here.until_sound(&["doctor", "--cluster", "--create"]);
    here.make("s", 3, 10);
    here.done(&["push", "s", "--json"]);
    let mut daemon = Daemon::start(&here);
    daemon.done("open_session", json!({ "sessionId": "s" }));
    assert_eq!(listed(&there, "s"), Some(3));
    let line = json!({
        "type": "message", "id": "foreign1", "parentId": "e2", "timestamp": "2026-01-02T03:04:05.000Z",
        "message": { "role": "user", "content": "by another program" },
    });
    here.append_text("s", &format!("{line}\n"));
    until(|| listed(&there, "s") == Some(4));
    daemon.end();
}

/// A client that watches the list of sessions once got notifications about files only.
#[test]
fn changes_of_the_list_of_the_team_are_announced_to_watchers() {
    let Some(fleet) = Fleet::get(39) else { return };
    let fleet = fleet.with_stream();
    let (here, there) = (Machine::new(&fleet), Machine::new(&fleet));
    let mut daemon = Daemon::start(&here);
    daemon.done("watch_sessions", json!({}));
    let mut announced = |session: &str, fits: &dyn Fn(&Value) -> bool| {
        let began = Instant::now();
        loop {
            daemon.notice(|message| message["params"]["team"] == true);
            let list = daemon.done("list_sessions", json!({}));
            let team = list["team"].as_array().unwrap();
            if team
                .iter()
                .any(|row| row["sessionId"] == session && fits(row))
            {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{list}");
        }
    };
    there.make("s", 2, 10);
    there.done(&["push", "s", "--json"]);
    announced("s", &|row| row["entries"] == 2);
    let mut other = Daemon::start(&there);
    other.done("open_session", json!({ "sessionId": "s" }));
    announced("s", &|row| row["openOn"] != json!([]));
    other.say("s", "more");
    announced("s", &|row| row["entries"] == 3);
    other.end();
    daemon.end();
}

/// When entries of others were published before the queued ones, the replica was made again. Clients were then once
/// notified of their own entries a second time, and never of the entries of others.
#[test]
fn a_queue_behind_entries_of_others_announces_theirs_alone() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let proxy = Proxy::start(server.port);
    let queues = "offline = \"queue\"";
    let machines = [
        server.machine(queues),
        Single::machine_at(proxy.port, queues),
    ];
    machines[0].until_sound(&["doctor", "--cluster", "--create"]);
    let (mut here, mut there) = (Daemon::start(&machines[0]), Daemon::start(&machines[1]));
    here.done("create_session", json!({ "cwd": "/c", "sessionId": "s" }));
    let first = here.say("s", "first")["entryId"].clone();
    until(|| {
        there
            .call("open_session", json!({ "sessionId": "s" }))
            .is_ok()
    });
    proxy.cut();
    let own: Vec<String> = (0..4)
        .map(|number| {
            let said = there.say("s", &format!("b{number}"));
            assert_eq!(said["durability"], "queued");
            said["entryId"].as_str().unwrap().to_owned()
        })
        .collect();
    let others: Vec<String> = (0..3)
        .map(|number| {
            let said = here.say("s", &format!("a{number}"));
            said["entryId"].as_str().unwrap().to_owned()
        })
        .collect();
    until(|| queued(&mut here, "s").is_null());
    proxy.mend();
    let list = json!({ "local": true });
    until(|| {
        there.done("list_sessions", list.clone());
        there.heard().len() >= others.len()
    });
    until_equal(&machines, "s");
    there.done("list_sessions", list);
    assert_eq!(there.heard(), others);
    let reordered = there.notice(|message| message["method"] == "session_reordered");
    assert_eq!(reordered["params"]["since"], first);
    // A client that has the first entry and its own entries asks for the rest, and gets an error.
    let last = json!({ "sessionId": "s", "since": own.last(), "known": 1 + own.len() });
    assert_eq!(there.kind("get_entries", last), "treeChanged");

    // All new entries are after the position that the notification names.
    let read = there.done("get_entries", json!({ "sessionId": "s", "since": first }));
    let read = read["entries"].as_array().unwrap();
    let read: Vec<&str> = read.iter().filter_map(|one| one["id"].as_str()).collect();
    let expected: Vec<&String> = others.iter().chain(&own).collect();
    assert_eq!(read, expected);
    until(|| {
        here.done("list_sessions", json!({ "local": true }));
        here.heard().len() >= own.len()
    });
    assert_eq!(here.heard(), own);
    here.end();
    there.end();
}

/// Appends messages until one of them is in the stream at once.
fn say_until_replicated(daemon: &mut Daemon, text: &str) {
    until(|| daemon.say("s", text)["durability"] != "queued");
}

/// While the servers did not answer, an append once waited 5 s for its publish, and later appends waited for the lock
/// that the follower held.
#[test]
fn an_append_is_answered_at_once_while_the_servers_are_silent() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let proxy = Proxy::start(server.port);
    let queues = "offline = \"queue\"";
    let machines = [
        server.machine(queues),
        Single::machine_at(proxy.port, queues),
    ];
    machines[0].until_sound(&["doctor", "--cluster", "--create"]);
    let (mut here, mut there) = (Daemon::start(&machines[0]), Daemon::start(&machines[1]));
    there.done("create_session", json!({ "cwd": "/c", "sessionId": "s" }));
    say_until_replicated(&mut there, "first");
    until(|| {
        here.call("open_session", json!({ "sessionId": "s" }))
            .is_ok()
    });
    proxy.hold();
    // This takes longer than the time limit of a publish, so that the follower also waits for the servers.
    let (mut times, mut waiting) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(8) {
        let asked = Instant::now();
        let said = there.say("s", "waits");
        times.push(asked.elapsed());
        assert_eq!(said["durability"], "queued");
        waiting.push(said["entryId"].as_str().unwrap().to_owned());
        std::thread::sleep(Duration::from_millis(100));
    }
    say_until_replicated(&mut here, "other");
    times.sort_unstable();
    // The shortest time that the daemon waits for an answer is 1.5 s. A busy machine delays some.
    let most = times[times.len() * 3 / 4];
    assert!(most <= Duration::from_millis(750), "{times:?}");

    proxy.mend();
    let list = json!({ "local": true });
    until(|| {
        there.done("list_sessions", list.clone());
        queued(&mut there, "s").is_null()
    });
    until_equal(&machines, "s");
    let text = String::from_utf8(machines[1].text("s")).unwrap();
    for id in &waiting {
        let own = format!("\"id\":\"{id}\"");
        assert_eq!(text.matches(&own).count(), 1, "{text}");
    }
    assert!(text.find("other").unwrap() < text.find("waits").unwrap());
    here.end();
    there.end();
}
