//! Sessions without activity are closed and erased (schema/fleet.md "Retention").

use crate::daemon::Daemon;
use crate::queue::until;
use crate::support::{Fleet, Machine, author, postgres};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::Duration;
use treelined_core::error::{Kind, Result};
use treelined_fleet::backend::AppendOutcome;
use treelined_fleet::engine::Engine;
use treelined_fleet::retention::{QuietSession, Retained, Round};
use treelined_fleet::settings::Retention;

const HOUR: Duration = Duration::from_secs(3600);

fn round(machine: &Machine, keep: Duration, is_dry: bool) -> (std::path::PathBuf, Retention, bool) {
    (machine.sessions(), Retention { keep, erase: None }, is_dry)
}

/// Runs a round. Returns the ids of the sessions, with what became of them.
fn run(
    log: &dyn Engine,
    (sessions, retention, is_dry): (std::path::PathBuf, Retention, bool),
    meanwhile: &mut dyn FnMut(&QuietSession),
) -> Result<Vec<(String, String)>> {
    let mut told = Vec::new();
    let round = Round {
        retention,
        session_dir: Path::new(&sessions),
        author: &author(),
        is_dry,
    };
    round.run(log, &mut |of: &QuietSession, retained: Retained| {
        told.push((of.session.clone(), format!("{retained:?}")));
        meanwhile(of);
        io::Result::Ok(())
    })?;
    told.sort();
    Ok(told)
}

fn told(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(session, done): &(&str, &str)| ((*session).to_owned(), (*done).to_owned());
    expected.iter().map(pair).collect()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    let mut ids: Vec<_> = rows
        .iter()
        .map(|row| row["sessionId"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn an_old_session_is_closed_and_can_be_restored() {
    let Some(fleet) = Fleet::get(91) else { return };
    let fleet = fleet.with_stream();
    let [here, there] = [(); 2].map(|()| Machine::new(&fleet));
    for session in ["gone", "old", "open"] {
        here.make(session, 3, 10);
    }
    here.done(&["push", "--all", "--json"]);
    let mut daemon = Daemon::start(&there);
    daemon.done("open_session", json!({ "sessionId": "open" }));
    daemon.done("open_session", json!({ "sessionId": "gone" }));
    daemon.done("delete_session", json!({ "sessionId": "gone" }));
    let log = fleet.engine();
    let wait = |log: &dyn Engine| log.runtime().block_on(log.open_sessions()).unwrap();
    until(|| wait(&*log).into_iter().eq(["open".to_owned()]));

    let ran = |keep, is_dry| run(&*log, round(&here, keep, is_dry), &mut |_| {}).unwrap();
    let due = told(&[("old", "Done"), ("open", "Open")]);
    assert_eq!(ran(HOUR, false), []);
    assert_eq!(ran(Duration::ZERO, true), due);
    assert_eq!(
        ids(&here.done(&["pull", "--list", "--json"])),
        ["old", "open"]
    );
    assert_eq!(ran(Duration::ZERO, false), due);
    assert_eq!(ran(Duration::ZERO, false), told(&[("open", "Open")]));

    assert_eq!(ids(&here.done(&["pull", "--list", "--json"])), ["open"]);
    let deleted = here.done(&["pull", "--list", "--deleted", "--json"]);
    assert_eq!(ids(&deleted), ["gone", "old"]);
    assert_eq!(here.kind(&["pull", "old", "--json"]), "sessionDeleted");
    daemon.say("open", "goes on");
    daemon.done("restore_session", json!({ "sessionId": "old" }));
    let opened = daemon.done("open_session", json!({ "sessionId": "old" }));
    assert_eq!(opened["session"]["leafId"], "e2");
    assert_eq!(ran(HOUR, false), []);
    daemon.end();
}

/// The column `at` is the server's, so only the administrator can make a session old.
fn age(fleet: &Fleet, session: &str, days: u32) {
    fleet.sql(&[&format!(
        "UPDATE treelined.entries SET at = at - interval '{days} days' WHERE session = '{session}'"
    )]);
}

/// The configuration of a machine with these settings besides the address.
fn configured(fleet: &Fleet, log: &str, settings: &str) -> Machine {
    Machine::configured(&format!("{}{settings}", fleet.section(log, "refuse")))
}

#[test]
fn a_session_that_was_deleted_long_ago_is_erased() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(92) else { return };
    let fleet = fleet.with_stream();
    let machine = configured(&fleet, &fleet.log(), "keep = \"30d\"\nerase = \"60d\"\n");
    let admin = Machine::with_log(fleet.log_of("admin", "secret"));
    for (owner, session) in [(&machine, "mine"), (&admin, "theirs"), (&machine, "new")] {
        owner.make(session, 2, 10);
        owner.done(&["push", session, "--json"]);
    }
    let retain = |more: &[&str]| {
        let output = machine.run(&[&["doctor", "--cluster", "--retain"], more].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(retain(&[]).contains("closed 0 sessions, erased 0 sessions"));
    for session in ["mine", "theirs"] {
        age(&fleet, session, 31);
    }
    let shown = retain(&["--dry-run"]);
    assert!(
        shown.contains("mine") && shown.contains("after 31 days"),
        "{shown}"
    );
    assert!(
        shown.contains("closed 2 sessions, erased 0 sessions (--dry-run"),
        "{shown}"
    );
    assert!(retain(&[]).contains("closed 2 sessions, erased 0 sessions\n"));
    assert!(retain(&[]).contains("closed 0 sessions, erased 0 sessions\n"));
    for session in ["mine", "theirs"] {
        age(&fleet, session, 61);
    }
    assert!(retain(&[]).contains("closed 0 sessions, erased 1 session\n"));
    let left = fleet.sql(&["SELECT string_agg(id, ',' ORDER BY id) FROM treelined.sessions"]);
    assert_eq!(left, "new,theirs");
    assert_eq!(fleet.sql(&["SELECT session FROM treelined.erased"]), "mine");

    // A reader changes nothing, and a configuration without `keep` says what is missing.
    age(&fleet, "new", 31);
    let reader = configured(&fleet, &fleet.reader(), "keep = \"30d\"\n");
    assert_eq!(
        reader.kind(&["doctor", "--cluster", "--retain"]),
        "logDenied"
    );
    let without = configured(&fleet, &fleet.log(), "");
    let output = without.run(&["doctor", "--cluster", "--retain"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn an_append_beside_it_wins() {
    let Some(fleet) = Fleet::get(93) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    for session in ["a", "b"] {
        machine.make(session, 2, 10);
        machine.done(&["push", session, "--json"]);
    }
    let log = fleet.engine();
    let mut append = |of: &QuietSession| {
        if of.session == "a" {
            let last = log.last("b").unwrap().unwrap();
            let line =
                b"{\"type\":\"custom\",\"customType\":\"t\",\"id\":\"late\",\"parentId\":\"e1\"}\n";
            let appended = log.append("b", last.end, line).unwrap();
            assert!(matches!(appended, AppendOutcome::Appended(_)));
        }
    };
    let ran = run(&*log, round(&machine, Duration::ZERO, false), &mut append).unwrap();
    assert_eq!(ran, told(&[("a", "Done"), ("b", "Active")]));
    let closed = |session: &str| machine.run(&["pull", session, "--json"]).status.success();
    assert_eq!([closed("a"), closed("b")], [false, true]);
}

/// A member can write any presence, so a presence that says nothing keeps all sessions.
#[test]
fn a_damaged_presence_keeps_all_sessions() {
    let Some(fleet) = Fleet::get(94) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    machine.make("s", 2, 10);
    machine.done(&["push", "s", "--json"]);
    match postgres() {
        Some(_) => {
            let insert = "INSERT INTO treelined.presence VALUES ('x', '{', clock_timestamp())";
            fleet.sql(&[insert]);
        }
        None => fleet.with(async |context| {
            let sent = context.publish("$KV.treelined-presence.x", "{".into());
            sent.await.unwrap().await.unwrap();
        }),
    }
    let log = fleet.engine();
    let failed = run(&*log, round(&machine, Duration::ZERO, false), &mut |_| {}).unwrap_err();
    assert_eq!(failed.kind, Kind::LogForeign, "{failed}");
    machine.done(&["pull", "s", "--json"]);
}

#[test]
fn a_daemon_closes_old_sessions() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(95) else { return };
    let fleet = fleet.with_stream();
    let machine = configured(&fleet, &fleet.log(), "keep = \"1d\"\n");
    machine.make("s", 2, 10);
    machine.done(&["push", "s", "--json"]);
    age(&fleet, "s", 2);
    let mut daemon = Daemon::start(&machine);
    let last = "SELECT position('treelined.trashed' IN encode(line, 'escape')) > 0 \
                FROM treelined.entries ORDER BY seq DESC LIMIT 1";
    until(|| fleet.sql(&[last]) == "t");
    let turn = machine.sessions().join(".cache/retained");
    until(|| std::fs::read(&turn).is_ok_and(|text| text == b"\n"));
    // The file of this machine goes to the trash like that of any deleted session.
    until(|| {
        daemon.done("list_sessions", json!({}));
        machine.find("s").is_none()
    });
    daemon.end();
}
