//! The team's list: the rows of sessions, and the daemons that have them open.

use crate::queue::until;
use crate::support::{Fleet, Machine, append, author};
use async_nats::jetstream::stream::{Config, StorageType};
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::team::TeamList;
use treelined_core::team::TeamQuery;
use treelined_core::team::TeamRow;
use treelined_core::team::TeamView;
use treelined_fleet::settings::NatsSettings;
use treelined_fleet::stream::NatsLog;
use treelined_fleet::team::Team;

const TIME: Duration = Duration::from_secs(60);

/// The part of a daemon that belongs to the team, with its connection.
struct Daemon {
    team: Team,
    log: NatsLog,
}

impl Daemon {
    fn new(fleet: &Fleet) -> Self {
        let servers = fleet.log().split(',').map(str::to_owned).collect();
        let log = NatsLog::open(NatsSettings::of_servers(servers)).unwrap();
        let team = Team::new("treelined", author());
        team.connect(&log);
        Self { team, log }
    }

    /// Waits until `wanted` returns true for the list, and returns the list.
    #[track_caller]
    fn until(&self, wanted: impl Fn(&TeamList) -> bool) -> Arc<TeamList> {
        let began = Instant::now();
        loop {
            let list = self.team.list(&TeamQuery {
                limit: 1000,
                ..TeamQuery::default()
            });
            if wanted(&list) {
                return list;
            }
            assert!(began.elapsed() < TIME, "{list:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn row(session: &str, sequence: u64) -> TeamRow {
    TeamRow {
        session_id: session.to_owned(),
        name: Some(format!("after {sequence}")),
        first_message: String::new(),
        cwd: "/c".to_owned(),
        created: "2026-01-02T03:04:05.000Z".to_owned(),
        modified: "2026-01-02T03:04:05.000Z".to_owned(),
        entries: sequence,
        host: "h".to_owned(),
        sequence,
        is_trashed: false,
    }
}

fn is_open(list: &TeamList, session: &str, daemons: usize) -> bool {
    list.find(session)
        .is_some_and(|of| of.open_on.len() == daemons)
}

#[test]
fn a_pushed_session_is_listed_with_its_name_and_host() {
    let Some(fleet) = Fleet::get(31) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    let path = laptop.make("named", 3, 10);
    let info = json!({
        "type": "session_info", "id": "n1", "parentId": "e2", "timestamp": "2026-01-02T03:04:06.000Z", "name": "The build",
    });
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{info}\n")).unwrap();
    laptop.make("plain", 1, 10);
    laptop.done(&["push", "--all", "--json"]);
    // This session has no row, like a session that an earlier version pushed.
    fleet.with(async |context| {
        let rows = context.get_stream("treelined-rows").await.unwrap();
        assert_eq!(rows.cached_info().config.num_replicas, 3);
        // This is how the tools of NATS remove a key.
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        let subject = "treelined.r.plain";
        let sent = context.publish_with_headers(subject, headers, "".into());
        sent.await.unwrap().await.unwrap();
    });
    let server = Machine::new(&fleet);
    let listed = server.done(&["pull", "--list", "--json"]);
    assert_eq!(listed.len(), 2);
    let named = &listed[0];
    assert_eq!(named["name"], "The build");
    assert_eq!(named["entries"], 4);
    assert_eq!(named["cwd"], "/c");
    assert!(!named["host"].as_str().unwrap().is_empty());
    assert_eq!(named["openOn"], json!([]));
    assert_eq!(listed[1], json!({ "sessionId": "plain", "openOn": [] }));
    let shown = server.run(&["pull", "--list"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.starts_with("named  The build  4 entries  on "),
        "{shown}"
    );

    // The row describes a session that is pushed later.
    append(&path, 4..6, 10);
    laptop.done(&["push", "named", "--json"]);
    assert_eq!(server.done(&["pull", "--list", "--json"])[0]["entries"], 6);

    // The list shows names, but `pull` once took only ids, so a shown name did not find the session.
    let pulled = server.done(&["pull", "The build", "plai", "--json"]);
    assert_eq!(pulled[0]["sessionId"], "named");
    assert_eq!(pulled[1]["sessionId"], "plain");
    let missing = server.run(&["pull", "The bill"]);
    assert_eq!(missing.status.code(), Some(3), "{missing:?}");
    // A complete id wins over the beginning of another id.
    laptop.make("plainer", 1, 10);
    laptop.done(&["push", "plainer", "--json"]);
    let several = server.run(&["pull", "plai"]);
    let said = String::from_utf8(several.stderr).unwrap();
    assert!(said.contains("2 sessions fit \"plai\""), "{said}");
    let pulled = server.done(&["pull", "plain", "--json"]);
    assert_eq!(pulled[0]["sessionId"], "plain");
}

/// Several daemons write the row of one session in any order, and the newest row stays. A daemon took the revision of its
/// last row for that of an older one, and wrote an older row over its own newer one.
#[test]
fn an_older_row_never_replaces_a_newer_one() {
    let Some(fleet) = Fleet::get(32) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    for number in 0..20 {
        laptop.make(&format!("s{number}"), 1, 10);
    }
    laptop.done(&["push", "--all", "--json"]);
    let daemons: Vec<Daemon> = (0..4).map(|_| Daemon::new(&fleet)).collect();
    thread::scope(|scope| {
        for (at, daemon) in daemons.iter().enumerate() {
            scope.spawn(move || {
                for sequence in [20, 3, 17, 5].iter().cycle().skip(at).take(4) {
                    daemon.team.note(row("s0", *sequence));
                    thread::sleep(Duration::from_millis(300));
                }
            });
        }
    });
    let newest = |list: &TeamList| {
        let row = list.find("s0").and_then(|of| of.row.clone());
        row.is_some_and(|row| row.sequence == 20)
    };
    for daemon in &daemons {
        daemon.until(newest);
        daemon.team.end();
    }
    let last = Daemon::new(&fleet);
    last.until(newest);
    let name = |list: &TeamList| list.find("s1")?.row.as_ref()?.name.clone();
    last.team.note(row("s1", 19));
    last.until(|list| name(list).as_deref() == Some("after 19"));
    last.team.note(row("s1", 18));
    last.team.end();
    let list = Daemon::new(&fleet).until(|list| name(list).is_some());
    assert_eq!(name(&list).as_deref(), Some("after 19"));
}

#[test]
fn a_row_that_changes_often_is_written_once_a_second_with_its_last_state() {
    let Some(fleet) = Fleet::get(33) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    laptop.make("busy", 2000, 10);
    let pushed = laptop.done(&["push", "busy", "--json"]);
    let end = pushed[0]["sequence"].as_u64().unwrap();
    let daemon = Daemon::new(&fleet);
    let began = Instant::now();
    for entries in 0..1000 {
        let mut row = row("busy", end + entries);
        row.entries = entries;
        daemon.team.note(row);
        thread::sleep(Duration::from_millis(2));
    }
    daemon.team.end();
    let seconds = began.elapsed().as_secs();
    let written = fleet.with(async |context| {
        let mut rows = context.get_stream("treelined-rows").await.unwrap();
        let written = rows.info().await.unwrap().state.last_sequence;
        let subject = "treelined.r.busy";
        let last = rows.get_last_raw_message_by_subject(subject).await;
        let last: Value = serde_json::from_slice(&last.unwrap().payload).unwrap();
        assert_eq!(last["entries"], 999);
        written
    });
    // One write is made by the push, and one at the end.
    assert!(written <= seconds + 4, "{written} in {seconds} s");
}

/// A daemon has one row for its 1,000 open sessions. Other daemons see them until it ends.
#[test]
fn open_sessions_are_listed_until_their_daemon_closes_them_or_ends() {
    let Some(fleet) = Fleet::get(34) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    laptop.make("shared", 1, 10);
    laptop.make("other", 1, 10);
    laptop.done(&["push", "--all", "--json"]);
    let (one, two) = (Daemon::new(&fleet), Daemon::new(&fleet));
    for number in 0..998 {
        one.team.opened(&format!("many-{number}"));
    }
    one.team.opened("other");
    one.team.opened("shared");
    two.team.opened("shared");
    two.until(|list| is_open(list, "shared", 1) && is_open(list, "other", 1));
    one.until(|list| is_open(list, "shared", 1) && is_open(list, "other", 0));
    let messages = fleet.with(async |context| {
        let mut bucket = context.get_stream("KV_treelined-presence").await.unwrap();
        let info = bucket.info().await.unwrap();
        assert_eq!(info.config.max_age, Duration::from_secs(60));
        assert_eq!(info.config.storage, StorageType::Memory);
        info.state.last_sequence
    });
    assert!(messages < 20, "{messages} messages");
    let listed = laptop.done(&["pull", "--list", "--json"]);
    let shared = listed.iter().find(|row| row["sessionId"] == "shared");
    assert_eq!(shared.unwrap()["openOn"].as_array().unwrap().len(), 2);
    one.team.closed("other");
    two.until(|list| is_open(list, "other", 0) && is_open(list, "shared", 1));
    one.team.end();
    two.until(|list| is_open(list, "shared", 0));
}

/// A dead daemon does not renew its row, so the servers remove the row, by their own clock.
#[test]
fn the_sessions_of_a_dead_daemon_leave_the_list_by_the_age_of_its_row() {
    let Some(fleet) = Fleet::get(35) else { return };
    let fleet = fleet.with_stream();
    // This bucket removes old rows sooner, so that the test need not wait long.
    fleet.with(async |context| {
        let config = Config {
            name: "KV_treelined-presence".to_owned(),
            subjects: vec!["$KV.treelined-presence.>".to_owned()],
            max_age: Duration::from_secs(3),
            duplicate_window: Duration::from_secs(3),
            max_messages_per_subject: 1,
            num_replicas: 3,
            ..Config::default()
        };
        context.delete_stream(&config.name).await.unwrap();
        context.create_stream(config).await.unwrap();
    });
    let laptop = Machine::new(&fleet);
    laptop.make("left", 1, 10);
    laptop.done(&["push", "--all", "--json"]);
    let reader = Daemon::new(&fleet);
    let dying = Daemon::new(&fleet);
    dying.team.opened("left");
    // The daemon renews its row only every 20 s, so the age limit of the bucket removes the row.
    reader.until(|list| is_open(list, "left", 1));
    let Daemon { team, log } = dying;
    drop((team, log));
    reader.until(|list| is_open(list, "left", 0));
}

/// A missing stream, or unreadable rows in it, only make the list incomplete.
#[test]
fn a_list_without_streams_or_with_garbage_says_that_it_is_incomplete() {
    let Some(fleet) = Fleet::get(36) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    laptop.make("kept", 2, 10);
    laptop.done(&["push", "--all", "--json"]);
    fleet.with(async |context| {
        let garbage = [("kept", "{"), ("strange", "null"), ("other", "\u{0}")];
        for (key, value) in garbage {
            let subject = format!("treelined.r.{key}");
            let sent = context.publish(subject, value.into()).await.unwrap();
            sent.await.unwrap();
        }
    });
    let listed = laptop.run(&["pull", "--list", "--json"]);
    assert!(listed.status.success());
    assert_eq!(
        crate::support::lines(&listed),
        [json!({ "sessionId": "kept", "openOn": [] })]
    );
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(
        said.contains("incomplete: logForeign") && said.contains(": 3"),
        "{said}"
    );
    // The next change of the session repairs its row.
    let daemon = Daemon::new(&fleet);
    daemon.team.note(row("kept", 1));
    daemon.until(|list| list.find("kept").is_some_and(|of| of.row.is_some()));

    for stream in ["treelined-rows", "KV_treelined-presence"] {
        fleet.with(async |context| context.delete_stream(stream).await.unwrap());
    }
    let listed = laptop.run(&["pull", "--list", "--json"]);
    assert!(listed.status.success());
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(
        said.contains("logMisconfigured") && said.contains("doctor --cluster --create"),
        "{said}"
    );
    assert_eq!(crate::support::lines(&listed)[0]["sessionId"], "kept");
    laptop.until_sound(&["doctor", "--cluster", "--create"]);
    let listed = laptop.run(&["pull", "--list", "--json"]);
    assert!(listed.stderr.is_empty(), "{listed:?}");
}

/// A daemon in the team, and its client over stdin and stdout.
struct Client {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Client {
    fn new(machine: &Machine) -> Self {
        use std::io::BufRead;
        let mut child = machine
            .command(&[])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        use std::io::Write;
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{request}").unwrap();
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == 1 {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Sends the request until `wanted` returns true for the result, and returns the result.
    #[track_caller]
    fn until(&mut self, params: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let list = self.call("list_sessions", params);
            if wanted(&list) {
                return list;
            }
            assert!(began.elapsed() < TIME, "{list}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the daemon by the end of its input.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// One machine writes a session. Another machine sees it in its list, with the machines that have it open, and opens it
/// by its id.
#[test]
fn a_daemon_lists_the_sessions_of_other_machines_and_opens_them() {
    let Some(fleet) = Fleet::get(37) else { return };
    let fleet = fleet.with_stream();
    let (laptop, server) = (Machine::new(&fleet), Machine::new(&fleet));
    let mut writer = Client::new(&laptop);
    let new = writer.call(
        "create_session",
        &json!({ "sessionId": "shared", "cwd": "/c", "name": "The build" }),
    );
    assert_eq!(new["session"]["sessionId"], "shared");
    let message = json!({ "role": "user", "content": "hello" });
    writer.call(
        "append_message",
        &json!({ "sessionId": "shared", "message": message }),
    );
    let mut reader = Client::new(&server);
    let is_described = |list: &Value| {
        let row = &list["team"][0];
        row["entries"].is_u64() && row["openOn"].as_array().is_some_and(|by| by.len() == 1)
    };
    let list = reader.until(&json!({}), is_described);
    assert_eq!(list["sessions"], json!([]));
    // The command shows the session too, together with local sessions.
    let other = Machine::new(&fleet);
    // A list waits only 2 s for the servers.
    until(|| {
        let shown = other.run(&["list", "--all"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        shown.contains("shared") && shown.contains("The build")
    });
    until(|| {
        let rows = &other.done(&["list", "--all", "--json"])[0];
        rows["team"][0]["sessionId"] == "shared"
    });
    assert!(other.done(&["list", "--all", "--local", "--json"])[0]["team"].is_null());
    // The session is found by its id, by its name, and by the beginning of its id, like a local session.
    for text in ["The build", "shar", "shared"] {
        let other = Machine::new(&fleet);
        let shown = other.run(&["show", text]);
        let text_of = String::from_utf8(shown.stdout.clone()).unwrap();
        assert!(text_of.contains("hello"), "{text}: {shown:?}");
        assert_eq!(other.text("shared"), laptop.text("shared"));
    }
    assert_eq!(other.run(&["show", "nowhere"]).status.code(), Some(3));
    assert_eq!(list["teamCount"], 1);
    assert_eq!(list["team"][0]["sessionId"], "shared");
    assert_eq!(list["team"][0]["cwd"], "/c");
    let local = reader.call("list_sessions", &json!({ "local": true }));
    assert_eq!(local, json!({ "sessions": [] }));

    let opened = reader.call("open_session", &json!({ "sessionId": "shared" }));
    assert_eq!(opened["session"]["cwd"], "/c");
    let list = reader.until(&json!({}), |list| list["sessions"][0]["log"].is_object());
    assert_eq!(list["team"], json!([]));
    assert_eq!(
        list["sessions"][0]["log"]["openOn"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let also_open = |list: &Value| {
        list["sessions"][0]["log"]["openOn"]
            .as_array()
            .is_some_and(|by| by.len() == 1)
    };
    writer.until(&json!({}), also_open);
    reader.end();
    let alone = |list: &Value| list["sessions"][0]["log"]["openOn"] == json!([]);
    writer.until(&json!({}), alone);
    let shown = server.run(&["list", "--all"]);
    assert!(shown.status.success());
    writer.end();
}
