//! Sessions are erased for the whole team (schema/fleet.md "Erasure").

use crate::daemon::{Daemon, message};
use crate::live::until_equal;
use crate::queue::until;
use crate::support::{Fleet, Machine, postgres};
use serde_json::json;
use std::process::Command;
use std::thread;

/// The numbers of lines, rows and tombstones of a session.
fn held(fleet: &Fleet, session: &str) -> String {
    let count = |table: &str| {
        format!("(SELECT count(*) FROM treelined.{table} WHERE session = '{session}')")
    };
    let [entries, rows, erased] = ["entries", "rows", "erased"].map(count);
    fleet.sql(&[&format!("SELECT {entries}, {rows}, {erased}")])
}

/// The files of a session, in any folder of the session directory.
fn files(machine: &Machine, session: &str) -> Vec<String> {
    let named = |folder: &str| {
        std::fs::read_dir(machine.sessions().join(folder))
            .into_iter()
            .flatten()
    };
    let names = ["--c--", ".trash"].into_iter().flat_map(named);
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(session)).collect()
}

#[test]
fn an_erased_session_is_gone_for_all() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(80) else { return };
    let fleet = fleet.with_stream();
    let machines = [(); 4].map(|()| Machine::new(&fleet));
    let [laptop, office, closed, bin] = &machines;
    let mut here = Daemon::start(laptop);
    here.done(
        "create_session",
        json!({ "cwd": "/c", "sessionId": "secret" }),
    );
    here.say("secret", "first");
    let mut there = Daemon::start(office);
    there.done("open_session", json!({ "sessionId": "secret" }));
    there.say("secret", "second");
    until_equal(&machines[..2], "secret");
    closed.done(&["pull", "secret", "--json"]);
    bin.done(&["pull", "secret", "--json"]);
    bin.done(&["rm", "secret", "--json", "--log", "files"]);
    assert!(!files(bin, "secret").is_empty());

    let erased = here.done("erase_session", json!({ "sessionId": "secret" }));
    assert!(erased["remains"][0].as_str().unwrap().contains("backups"));
    assert_eq!(held(&fleet, "secret"), "0|0|1");
    assert_eq!(files(laptop, "secret"), [""; 0]);
    until(|| files(office, "secret").is_empty());
    let late = there.kind("append_message", message("secret", "late"));
    assert_eq!(late, "sessionDeleted");
    // Again, nothing happens.
    here.done("erase_session", json!({ "sessionId": "secret" }));

    for what in ["secret", "--all"] {
        let skipped = closed.done(&["push", what, "--json"]);
        assert_eq!(skipped[0]["skipped"], "erased");
    }
    assert_eq!(laptop.kind(&["pull", "secret", "--json"]), "sessionErased");
    for (machine, method) in [(closed, "open_session"), (bin, "restore_session")] {
        let mut daemon = Daemon::start(machine);
        let refused = daemon.kind(method, json!({ "sessionId": "secret" }));
        assert_eq!(refused, "sessionErased", "{method}");
        assert_eq!(files(machine, "secret"), [""; 0], "{method}");
        daemon.end();
    }
    here.end();
    there.end();
    assert_eq!(held(&fleet, "secret"), "0|0|1");
}

/// A daemon that has the session neither open nor opened again removes its file, and the one in its trash, in a list.
#[test]
fn an_erased_session_leaves_by_a_list() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(81) else { return };
    let fleet = fleet.with_stream();
    let machines = [(); 2].map(|()| Machine::new(&fleet));
    let [laptop, office] = &machines;
    for session in ["kept", "open", "trashed"] {
        laptop.make(session, 2, 10);
    }
    laptop.done(&["push", "--all", "--json"]);
    office.done(&["pull", "--all", "--json"]);
    office.done(&["rm", "trashed", "--json", "--log", "files"]);
    laptop.done(&["erase", "open", "trashed", "--yes", "--json"]);
    let mut there = Daemon::start(office);
    until(|| {
        let listed = there.done("list_sessions", json!({}));
        listed["sessions"].as_array().unwrap().len() == 1
            && ["open", "trashed"]
                .iter()
                .all(|session| files(office, session).is_empty())
    });
    assert_eq!(office.text("kept"), laptop.text("kept"));
    there.end();
}

#[test]
fn only_the_author_and_administrators_erase() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(82) else { return };
    let fleet = fleet.with_stream();
    fleet.sql(&[
        "CREATE ROLE other82 LOGIN PASSWORD 'secret'",
        "GRANT t82_member TO other82",
    ]);
    let laptop = Machine::new(&fleet);
    for session in ["one", "two"] {
        laptop.make(session, 2, 10);
    }
    laptop.done(&["push", "--all", "--json"]);
    let erase = |log: String, session: &str| {
        Machine::with_log(log).run(&["erase", session, "--yes", "--json"])
    };
    for user in ["other82", "reader82"] {
        let refused = erase(fleet.log_of(user, "secret"), "one");
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains("logDenied"), "{user}: {text}");
    }
    assert_eq!(held(&fleet, "one").split('|').next(), Some("3"));
    assert!(erase(fleet.log(), "one").status.success());
    assert!(
        erase(fleet.log_of("admin", "secret"), "two")
            .status
            .success()
    );
    for session in ["one", "two"] {
        assert_eq!(held(&fleet, session), "0|0|1");
    }
}

/// Only the user who had made the tables could once do this, or a superuser.
#[test]
fn an_administrator_erases_any_session_and_changes_the_tables() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(106) else { return };
    let fleet = fleet.with_stream();
    fleet.sql(&[
        "DROP ROLE IF EXISTS boss106",
        "CREATE ROLE boss106 LOGIN PASSWORD 'secret'",
        "GRANT t106_admin TO boss106",
    ]);
    let laptop = Machine::new(&fleet);
    laptop.make("of-a-member", 2, 10);
    laptop.done(&["push", "--all", "--json"]);
    let boss = Machine::with_log(fleet.log_of("boss106", "secret"));
    let report = boss.run(&["doctor", "--cluster", "--create"]).stdout;
    let report = String::from_utf8(report).unwrap();
    assert!(
        report.contains("administrator: it may remove lines"),
        "{report}"
    );
    let asked = |log: String, statement: &str| {
        let asked = Command::new("psql")
            .arg(log)
            .args(["-qAtXc", statement])
            .output();
        asked.unwrap().status.success()
    };
    let change = "ALTER TABLE treelined.presence ADD COLUMN note text";
    assert!(!asked(fleet.log(), change));
    assert!(asked(fleet.log_of("boss106", "secret"), change));
    assert!(!asked(
        fleet.log_of("boss106", "secret"),
        "CREATE ROLE other106"
    ));
    // The functions run with the rights of this role, and members still append.
    let owners = fleet.sql(&["SELECT DISTINCT proowner::regrole FROM pg_proc WHERE pronamespace = 'treelined'::regnamespace"]);
    assert_eq!(owners, "t106_admin");
    laptop.make("later", 2, 10);
    laptop.done(&["push", "later", "--json"]);
    assert!(
        boss.run(&["erase", "of-a-member", "--yes"])
            .status
            .success()
    );
    assert_eq!(held(&fleet, "of-a-member"), "0|0|1");

    // The beginning of the id says so too; it was once a session that does not exist.
    for text in ["of-a-member", "of-a-m"] {
        let elsewhere = Machine::new(&fleet);
        assert_eq!(elsewhere.kind(&["pull", text, "--json"]), "sessionErased");
    }
    let elsewhere = Machine::new(&fleet);
    let other = elsewhere.run(&["pull", "of-b", "--json"]).stdout;
    let other = String::from_utf8(other).unwrap();
    assert!(other.contains("sessionNotFound"), "{other}");
}

/// An append that began before the erasure either goes with the session or fails, and so does one that makes it anew.
#[test]
fn an_append_beside_an_erasure_leaves_no_line() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(83) else { return };
    let fleet = fleet.with_stream();
    let append = |session: &str, expected: usize| {
        format!(
            "SELECT treelined.append('{session}', {expected}, NULL, gen_random_uuid(), ARRAY['x'::bytea])"
        )
    };
    for session in ["a", "b"] {
        fleet.sql(&[&append(session, 0)]);
    }
    for (session, expected) in [("a", 1), ("b", 0)] {
        let erase = format!("BEGIN; SELECT treelined.erase('{session}')");
        let slow = format!("{erase}; SELECT pg_sleep(5); COMMIT");
        let is_erasing = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND starts_with(query, $q${erase}$q$)"
        );
        let failing = append(session, expected);
        let caught = format!(
            "DO $$ BEGIN PERFORM ({failing}); RAISE 'appended';
            EXCEPTION WHEN SQLSTATE 'TE001' THEN NULL; END $$"
        );
        thread::scope(|scope| {
            scope.spawn(|| fleet.sql(&[&slow]));
            until(|| fleet.sql(&[&is_erasing]) == "1");
            fleet.sql(&[&caught]);
        });
    }
    for session in ["a", "b"] {
        assert_eq!(held(&fleet, session), "0|0|1");
        assert_eq!(
            fleet.sql(&[&format!(
                "SELECT count(*) FROM treelined.sessions WHERE id = '{session}'"
            )]),
            "0"
        );
    }
}

#[test]
fn a_stream_keeps_all() {
    if postgres().is_some() {
        return;
    }
    let Some(fleet) = Fleet::get(64) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    laptop.make("s", 2, 10);
    laptop.done(&["push", "s", "--json"]);
    let before = laptop.text("s");
    let mut here = Daemon::start(&laptop);
    let refused = here.kind("erase_session", json!({ "sessionId": "s" }));
    assert_eq!(refused, "erasureUnsupported");
    here.done("open_session", json!({ "sessionId": "s" }));
    here.end();
    assert!(laptop.text("s").starts_with(&before));
}
