//! The tests for PostgreSQL only: the durability of answers, permissions, lost answers, large lines, failures.
//! `tests/fleet/run postgres` starts the server. Without the server each test is skipped.

use crate::daemon::Daemon;
use crate::first_steps::block;
use crate::security::certificates;
use crate::single::{Single, free_port};
use crate::support::{Fleet, Machine, append, postgres, script, sql};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use treelined_fleet::backend::{AppendOutcome, Position};

/// The database of a test; `None` if the tests run without PostgreSQL.
#[track_caller]
fn database(account: usize) -> Option<Fleet> {
    match postgres() {
        Some(_) => Fleet::get(account),
        None => {
            let test = thread::current().name().unwrap_or("a test").to_owned();
            let why = "no PostgreSQL; tests/fleet/run postgres starts one";
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
            None
        }
    }
}

/// The output of a command.
fn shown(machine: &Machine, args: &[&str]) -> (bool, String) {
    let output = machine.run(args);
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// The durability was once `replicated` for lines that were only on the disk of one server, and a database that can
/// lose acknowledged lines was accepted.
#[test]
fn an_acknowledgement_says_what_it_is_worth() {
    if postgres().is_none() {
        return;
    }
    let server = Single::postgres("");
    let machine = server.machine("");
    assert_eq!(machine.kind(&["push", "--all"]), "logMisconfigured");
    let (_, without) = shown(&machine, &["doctor", "--cluster"]);
    assert!(without.contains("--cluster --create"), "{without}");
    machine.done(&["doctor", "--cluster", "--create"]);
    machine.done(&["doctor", "--cluster", "--create"]);
    let (is_sound, text) = shown(&machine, &["doctor", "--cluster"]);
    assert!(
        is_sound && text.contains("always: a line is on the disk of one server"),
        "{text}"
    );
    let mut daemon = Daemon::start(&machine);
    let made = daemon.done(
        "create_session",
        json!({ "cwd": "/c", "sessionId": "s", "write": "now" }),
    );
    assert_eq!(made["durability"], "always");
    assert_eq!(daemon.say("s", "one")["durability"], "always");
    daemon.end();

    let address = format!("127.0.0.1:{}", server.port);
    let set = |value: &str| {
        let statement = format!("ALTER DATABASE team SET synchronous_commit = {value}");
        sql(&address, "postgres", &[&statement]);
    };
    set("off");
    let (is_sound, text) = shown(&machine, &["doctor", "--cluster"]);
    assert!(
        !is_sound && text.contains("synchronous_commit is off"),
        "{text}"
    );
    machine.make("more", 1, 10);
    assert_eq!(
        machine.kind(&["push", "more", "--json"]),
        "logMisconfigured"
    );
    set("local");
    machine.done(&["push", "more", "--json"]);
    sql(
        &address,
        "postgres",
        &[
            "ALTER SYSTEM SET full_page_writes = off",
            "SELECT pg_reload_conf()",
        ],
    );
    let began = Instant::now();
    while shown(&machine, &["doctor", "--cluster"]).0 {
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn a_database_that_does_not_sync_is_refused() {
    if postgres().is_none() {
        return;
    }
    let server = Single::postgres("fsync = off\n");
    let machine = server.machine("");
    let (is_sound, text) = shown(&machine, &["doctor", "--cluster", "--create"]);
    assert!(!is_sound && text.contains("fsync is off"), "{text}");
    machine.make("s", 1, 10);
    assert_eq!(machine.kind(&["push", "s", "--json"]), "logMisconfigured");
}

/// A member may read the tables, and can change them only by functions.
#[test]
fn a_member_can_neither_remove_nor_change_what_is_there() {
    let Some(fleet) = database(71) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    let (is_sound, text) = shown(&machine, &["doctor", "--cluster"]);
    assert!(
        is_sound && text.contains("member: it appends and reads"),
        "{text}"
    );
    assert!(text.contains("replicated: a line is on the disk"), "{text}");
    machine.make("s", 3, 10);
    machine.done(&["push", "s", "--json"]);
    let before = fleet.sql(&["SELECT * FROM treelined.entries, treelined.sessions ORDER BY seq"]);
    for statement in [
        "DELETE FROM treelined.entries",
        "UPDATE treelined.entries SET line = ''",
        "INSERT INTO treelined.entries SELECT session, seq + 1, batch, line, author, at FROM treelined.entries",
        "UPDATE treelined.sessions SET last = 1",
        "INSERT INTO treelined.sessions (id, last, batch) VALUES ('x', 1, gen_random_uuid())",
        "DELETE FROM treelined.rows",
        "INSERT INTO treelined.presence VALUES ('x', 'x', now())",
        "UPDATE treelined.team SET version = 2",
        "TRUNCATE treelined.entries",
        "DROP TABLE treelined.entries",
        "DROP SCHEMA treelined CASCADE",
        "CREATE TABLE treelined.x ()",
    ] {
        let asked = Command::new("psql")
            .arg(fleet.log())
            .args(["-qAtXc", statement])
            .output();
        let asked = asked.unwrap();
        let why = String::from_utf8_lossy(&asked.stderr);
        let is_denied = why.contains("permission denied") || why.contains("must be owner");
        assert!(!asked.status.success() && is_denied, "{statement}: {why}");
    }
    let after = fleet.sql(&["SELECT * FROM treelined.entries, treelined.sessions ORDER BY seq"]);
    assert_eq!(after, before);
    let authors = fleet.sql(&["SELECT DISTINCT author FROM treelined.entries"]);
    assert_eq!(authors, "t71");

    let reader = Machine::with_log(fleet.reader());
    reader.done(&["pull", "s", "--json"]);
    append(&reader.path("s"), 3..4, 10);
    assert_eq!(reader.kind(&["push", "s", "--json"]), "logDenied");
    let (is_sound, text) = shown(&reader, &["doctor", "--cluster"]);
    assert!(
        !is_sound && text.contains("GRANT t71_member TO reader71"),
        "{text}"
    );
}

/// The connections are ended at random moments between a commit and its answer.
#[test]
fn an_append_whose_answer_is_lost_is_there_once() {
    const APPENDS: usize = 60;
    let Some(fleet) = database(72) else { return };
    let fleet = fleet.with_stream();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = 't72' AND application_name = 'treelined' AND state <> 'idle'";
            while !is_over.load(Ordering::Relaxed) {
                fleet.sql(&[end]);
            }
        });
        let log = fleet.engine();
        let mut at = Position::START;
        for number in 0..APPENDS {
            let line = format!("{{\"id\":\"{number}\"}}\n");
            at = loop {
                match log.append("s", at, line.as_bytes()) {
                    Ok(AppendOutcome::Appended(end)) => break end,
                    // The same append again finds it.
                    Err(error) => eprintln!("{error}"),
                    Ok(AppendOutcome::Conflict) => panic!("nobody else writes"),
                }
            };
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(at, Position(APPENDS as u64));
    });
    let log = fleet.engine();
    let parts = log.read("s", Position::START).unwrap();
    let text: Vec<u8> = parts.flat_map(|part| part.unwrap().lines).collect();
    let expected: Vec<String> = (0..APPENDS)
        .map(|number| format!("{{\"id\":\"{number}\"}}\n"))
        .collect();
    assert_eq!(String::from_utf8(text).unwrap(), expected.concat());
}

/// All lines of an append are stored, or none. A read returns them as one part.
#[test]
fn appends_are_the_parts_of_a_read_also_over_its_pages() {
    let Some(fleet) = database(73) else { return };
    let log = fleet.with_stream().engine();
    let mut at = Position::START;
    let mut expected = Vec::new();
    for (number, lines) in [1_usize, 3000, 1, 1, 5, 1999].into_iter().enumerate() {
        let text = format!("{{\"id\":\"{number}\"}}\n")
            .repeat(lines)
            .into_bytes();
        assert_eq!(
            log.append("s", Position(at.0 + 1), &text).unwrap(),
            AppendOutcome::Conflict
        );
        let AppendOutcome::Appended(end) = log.append("s", at, &text).unwrap() else {
            panic!("nobody else writes")
        };
        assert_eq!(end.0, at.0 + lines as u64);
        at = end;
        expected.push((text, end));
    }
    let read = |from: Position| -> Vec<(Vec<u8>, Position)> {
        let parts = log.read("s", from).unwrap().map(Result::unwrap);
        parts.map(|part| (part.lines, part.end)).collect()
    };
    assert_eq!(read(Position::START), expected);
    assert_eq!(read(expected[1].1), expected[2..]);
    assert_eq!(read(at), []);
    assert_eq!(log.read("nowhere", Position::START).unwrap().count(), 0);
    assert_eq!(log.last("nowhere").unwrap(), None);
    assert_eq!(log.last("s").unwrap().unwrap().end, at);
    assert_eq!(log.list_after(None).unwrap(), ["s"]);
    assert_eq!(log.list_after(Some("s")).unwrap(), [""; 0]);
}

#[test]
fn lines_of_many_megabytes_are_rows_and_larger_ones_are_refused() {
    let Some(fleet) = database(74) else { return };
    let fleet = fleet.with_stream();
    let (laptop, server) = (Machine::new(&fleet), Machine::new(&fleet));
    laptop.make("large", 2, 5 << 20);
    laptop.done(&["push", "large", "--json"]);
    server.done(&["pull", "large", "--json"]);
    assert!(server.text("large") == laptop.text("large"));
    laptop.make("huge", 1, 65 << 20);
    assert_eq!(laptop.kind(&["push", "huge", "--json"]), "payloadTooLarge");
}

/// Only a push fills a database that has lost lines. Until then the database refuses a line whose predecessor it does
/// not have.
#[test]
fn a_database_that_lost_lines_is_noticed() {
    let Some(fleet) = database(75) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    for session in ["restored", "other", "made-anew"] {
        machine.make(session, 5, 10);
        machine.done(&["push", session, "--json"]);
    }
    // The first case is like a restore to an earlier time, the second one like a failover without a synchronous
    // standby.
    fleet.sql(&[
        "DELETE FROM treelined.entries WHERE session = 'restored' AND seq > 3",
        "UPDATE treelined.sessions SET last = 3 WHERE id = 'restored'",
        "DELETE FROM treelined.entries WHERE session = 'other' AND seq = 4",
    ]);
    append(&machine.path("restored"), 5..6, 10);
    assert_eq!(machine.kind(&["pull", "restored", "--json"]), "logRewound");
    let elsewhere = Machine::new(&fleet);
    assert_eq!(elsewhere.kind(&["pull", "other", "--json"]), "logRewound");
    let pushed = &machine.done(&["push", "restored", "--json"])[0];
    assert_eq!(pushed["refilled"], true);
    // The database still had the header and two entries, and one entry is new.
    assert_eq!(pushed["lines"], 4);
    elsewhere.done(&["pull", "restored", "--json"]);
    assert_eq!(elsewhere.text("restored"), machine.text("restored"));
    // A line that is missing in the middle cannot be put back.
    assert_eq!(machine.kind(&["push", "other", "--json"]), "logRewound");
    fleet.sql(&["DROP SCHEMA treelined CASCADE"]);
    assert_eq!(
        machine.kind(&["push", "made-anew", "--json"]),
        "logMisconfigured"
    );
    let _fleet = fleet.with_stream();
    assert_eq!(machine.kind(&["pull", "made-anew", "--json"]), "logRewound");
    // The third session is the session of which a line was missing.
    let pushed = machine.done(&["push", "--all", "--json"]);
    assert_eq!(pushed.len(), 3);
    assert!(
        pushed.iter().all(|one| one["refilled"] == true),
        "{pushed:?}"
    );
}

/// Two daemons expect the same end of a session, but one of them means the end of an append that the database has lost.
#[test]
fn an_append_behind_a_line_of_another_history_is_a_conflict() {
    let Some(fleet) = database(76) else { return };
    let fleet = fleet.with_stream();
    let log = fleet.engine();
    let AppendOutcome::Appended(end) = log.append("s", Position::START, b"{}\n").unwrap() else {
        panic!("nobody else writes")
    };
    fleet.sql(&["UPDATE treelined.sessions SET batch = gen_random_uuid()"]);
    assert_eq!(
        log.append("s", end, b"{}\n").unwrap(),
        AppendOutcome::Conflict
    );
    let new = fleet.engine();
    assert!(matches!(
        new.append("s", end, b"{}\n").unwrap(),
        AppendOutcome::Appended(_)
    ));
}

/// Other daemons get a notification about an append. It is sent after the commit, and not by the append itself.
#[test]
fn an_append_is_notified_after_its_commit() {
    let Some(fleet) = database(77) else { return };
    let fleet = fleet.with_stream();
    let log = fleet.engine();
    let is_heard = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            while !is_heard.load(Ordering::Relaxed) {
                assert!(began.elapsed() < Duration::from_secs(60));
                // psql shows notifications after each statement.
                let shown = fleet.sql(&["LISTEN treelined", "SELECT pg_sleep(1)", "SELECT 1"]);
                is_heard.store(
                    shown.contains("\"treelined\" with payload"),
                    Ordering::Relaxed,
                );
            }
        });
        let mut at = Position::START;
        while !is_heard.load(Ordering::Relaxed) {
            if let AppendOutcome::Appended(end) = log.append("s", at, b"{}\n").unwrap() {
                at = end;
            }
        }
    });
}

#[test]
fn each_failure_has_its_kind() {
    let Some(fleet) = database(78) else { return };
    let push = |log: String| {
        let machine = Machine::with_log(log);
        machine.make("s", 1, 10);
        machine.kind(&["push", "s", "--json"])
    };
    assert_eq!(push(fleet.nowhere().to_owned()), "logUnavailable");
    assert_eq!(push(fleet.log()), "logMisconfigured", "without tables");
    assert_eq!(push(fleet.log_of("t78", "wrong")), "logDenied");
    let log = fleet.log();
    let (server, _) = log.rsplit_once('/').unwrap();
    assert_eq!(push(format!("{server}/none")), "logMisconfigured");
    assert_eq!(
        push("postgres://127.0.0.1:x/t78".to_owned()),
        "logMisconfigured"
    );
    assert_eq!(
        push(format!("{}?sslmode=require", fleet.log())),
        "logDenied"
    );
    let (_, text) = shown(
        &Machine::with_log(fleet.log_of("t78", "wrong-secret")),
        &["doctor", "--cluster"],
    );
    assert!(!text.contains("wrong-secret"), "{text}");
}

/// `doctor --cluster` was silent for ten seconds while the server was dead, and did not name it then.
#[test]
fn a_server_that_is_dead_or_frozen_is_named_at_once() {
    if postgres().is_none() {
        return;
    }
    let mut server = Single::postgres("");
    let machine = server.machine("");
    machine.done(&["doctor", "--cluster", "--create"]);
    let (live, dead) = (server.port, free_port());
    let url = format!("postgres://admin:secret@127.0.0.1:{dead},127.0.0.1:{live}/team");
    let (is_sound, text) = shown(&Machine::with_log(url), &["doctor", "--cluster"]);
    let line = format!("127.0.0.1:{dead} does not answer, 127.0.0.1:{live} answers");
    assert!(!is_sound && text.contains(&line), "{text}");
    assert!(text.contains("always: a line is on the disk"), "{text}");
    let named = || {
        let began = Instant::now();
        let (is_sound, text) = shown(&machine, &["doctor", "--cluster"]);
        let line = format!("servers  127.0.0.1:{live} does not answer\n");
        assert!(!is_sound && text.contains(&line), "{text}");
        assert!(text.contains("logUnavailable"), "{text}");
        assert!(began.elapsed() < Duration::from_secs(8), "{text}");
    };
    let servers = server.folder.path().join("server");
    script("postgres", &[Path::new("pause"), &servers]);
    named();
    script("postgres", &[Path::new("resume"), &servers]);
    server.kill();
    named();
}

/// A daemon once said that the servers do not answer, although they refused it.
#[test]
fn a_daemon_says_that_a_database_is_refused_and_not_that_it_is_silent() {
    let Some(fleet) = database(104) else { return };
    let fleet = fleet.with_stream();
    fleet.sql(&["ALTER DATABASE t104 SET synchronous_commit = off"]);
    let machine = Machine::new(&fleet);
    let mut command = machine.command(&[]);
    let log = machine.sessions().join("log");
    fs::create_dir_all(machine.sessions()).unwrap();
    let mut daemon = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut text = String::new();
    crate::queue::until(|| {
        text = fs::read_to_string(&log).unwrap();
        text.contains("synchronous_commit is off")
    });
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert!(text.contains("nothing is appended"), "{text}");
    assert!(!text.contains("do not answer"), "{text}");
}

/// A server with TLS is always checked.
#[test]
fn a_database_whose_certificate_is_not_trusted_gets_nothing() {
    if postgres().is_none() {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    certificates(made.path());
    let path = |name: &str| made.path().join(name);
    // The server runs as another user.
    let readable = Command::new("bash")
        .args([
            "-c",
            "chmod 755 . && { [ $(id -u) != 0 ] || chown postgres server.key; }",
        ])
        .current_dir(made.path())
        .status();
    assert!(readable.unwrap().success());
    let server = Single::postgres(&format!(
        "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
        path("server.pem").display(),
        path("server.key").display()
    ));
    let trusting = server.machine(&format!("ca = {:?}", path("ca.pem")));
    trusting.done(&["doctor", "--cluster", "--create"]);
    trusting.make("s", 1, 10);
    trusting.done(&["push", "s", "--json"]);
    let address = format!("127.0.0.1:{}", server.port);
    assert_eq!(sql(&address, "team", &["SHOW ssl"]), "on");
    for lines in [
        "".to_owned(),
        format!("ca = {:?}", path("other.pem")),
        format!("ca = {:?}", path("none")),
    ] {
        let doubting = server.machine(&lines);
        doubting.make("t", 1, 10);
        assert_eq!(
            doubting.kind(&["push", "t", "--json"]),
            "logDenied",
            "{lines}"
        );
    }
}

/// The first server and its disk are lost. All lines that were answered as replicated are on the standby.
#[test]
fn a_standby_that_takes_over_has_every_replicated_line() {
    let Some(folder) = postgres() else { return };
    let own = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    let permitted = Command::new("chmod").arg("755").arg(own.path()).status();
    assert!(permitted.unwrap().success());
    let servers = own.path().join("servers");
    let first = script("postgres", &[Path::new("start"), &servers]);
    let standby = fs::read_to_string(servers.join("other")).unwrap();
    sql(&first, "postgres", &["CREATE DATABASE team"]);
    let log = format!("postgres://admin:secret@{first},{}/team", standby.trim());
    let machine = Machine::with_log(log.clone());
    machine.done(&["doctor", "--cluster", "--create"]);
    let mut daemon = Daemon::start(&machine);
    daemon.done(
        "create_session",
        json!({ "cwd": "/c", "sessionId": "s", "write": "now" }),
    );
    let mut replicated = Vec::new();
    for number in 0..20 {
        let said = daemon.say("s", &format!("entry {number}"));
        assert_eq!(said["durability"], "replicated");
        replicated.push(said["entryId"].as_str().unwrap().to_owned());
    }
    script("postgres", &[Path::new("kill"), &servers]);
    fs::remove_dir_all(servers.join("first")).unwrap();
    script("postgres", &[Path::new("promote"), &servers]);
    let began = Instant::now();
    let said = loop {
        match daemon.call("append_message", crate::daemon::message("s", "after it")) {
            Ok(said) => break said,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(60), "{error}"),
        }
    };
    assert_eq!(said["durability"], "always", "there is no standby any more");
    let elsewhere = Machine::with_log(log);
    elsewhere.done(&["pull", "s", "--json"]);
    assert_eq!(elsewhere.text("s"), machine.text("s"));
    let text = String::from_utf8(elsewhere.text("s")).unwrap();
    for id in replicated {
        assert_eq!(text.matches(&format!("\"id\":\"{id}\"")).count(), 1);
    }
    daemon.end();
    script("postgres", &[Path::new("stop"), &servers]);
}

/// The first steps of schema/fleet.md "PostgreSQL", as they are written. Only the addresses and the passwords differ,
/// and the server has no TLS.
#[test]
fn the_first_steps_of_the_document_work() {
    let Some(folder) = postgres() else { return };
    let server = fs::read_to_string(folder.join("server")).unwrap();
    let (host, port) = server.trim().split_once(':').unwrap();
    let run = |script: &str, machine: &Machine| {
        let program = Path::new(env!("CARGO_BIN_EXE_treelined")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let home = machine.sessions();
        let mut command = Command::new("bash");
        command
            .args([
                "-euc",
                &script
                    .replace("db.example", server.trim())
                    .replace("'PASSWORD'", "'x0'"),
            ])
            .env("PATH", path)
            .env("HOME", home.parent().unwrap())
            .env("TREELINED_SESSION_DIR", &home)
            .env_remove("XDG_CONFIG_HOME")
            .envs([
                ("PGHOST", host),
                ("PGPORT", port),
                ("PGUSER", "admin"),
                ("PGPASSWORD", "secret"),
            ])
            .env("ADMIN", "admin:secret");
        command.output().unwrap()
    };
    let database = block("createdb treelined");
    let config = |name: &str| {
        let config = block("[team]\n    engine = \"postgres\"");
        let config = config
            .replace("db.example", server.trim())
            .replace(":PASSWORD@", ":x0@");
        config
            .replace("?sslmode=require", "")
            .replace("alice", name)
    };
    let alice = Machine::configured(&config("alice"));
    let made = run(&database, &alice);
    assert!(made.status.success(), "{made:?}");
    alice.make("a-tour", 3, 10);
    let first = block("treelined doctor --cluster             # checks the database");
    let commands: Vec<&str> = first
        .lines()
        .filter(|line| !line.contains("--follow"))
        .collect();
    let commands = commands.join("\n").replace("ID", "a-tour");
    let done = run(&commands, &alice);
    assert!(done.status.success(), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("member") && text.contains("a-tour"), "{text}");
    let bob = Machine::configured(&config("bob"));
    bob.done(&["pull", "a-tour", "--json"]);
    assert_eq!(bob.text("a-tour"), alice.text("a-tour"));
}
