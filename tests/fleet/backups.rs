//! What a team with PostgreSQL has besides the server: dumps, base backups with an archive, and poolers. The tests run the
//! commands of schema/fleet.md "Backup" and "Poolers". Only names, addresses and folders differ.

use crate::daemon::Daemon;
use crate::first_steps::block;
use crate::queue::until;
use crate::single::{Single, free_port};
use crate::support::{Fleet, Machine, append, postgres, sql};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Runs commands as the superuser of a server, in a folder.
#[track_caller]
fn run(script: &str, folder: &Path, port: u16) {
    let output = Command::new("bash")
        .args(["-euc", script])
        .current_dir(folder)
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port.to_string())
        .env("PGUSER", "admin")
        .env("PGPASSWORD", "secret")
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

/// Runs commands as the user of the server, with the programs of the server.
#[track_caller]
fn run_as_server(script: &str, folder: &Path, port: u16) {
    fs::write(folder.join("script"), script).unwrap();
    let search = "PATH=$(dirname \"$(find /usr/lib/postgresql -path '*/bin/initdb' | sort -V | tail -n 1)\"):$PATH";
    let user = "[ \"$(id -u)\" = 0 ] && as=(runuser -u postgres --) || as=()";
    run(
        &format!(
            "{search}; {user}; cat script | \"${{as[@]}}\" env PATH=\"$PATH\" bash -eu >script.log 2>&1 || {{ cat script.log >&2; exit 1; }}"
        ),
        folder,
        port,
    );
}

/// Both machines have sessions that the restored database lacks, in part or as a whole. Until a push gives them back, they
/// say so.
fn fills_again(here: &Machine, there: &Machine) {
    for session in ["grown", "new"] {
        assert_eq!(here.kind(&["pull", session, "--json"]), "logRewound");
    }
    assert!(there.run(&["pull", "old", "--json"]).status.success());
    let pushed = here.done(&["push", "--all", "--json"]);
    let refilled: Vec<bool> = pushed.iter().map(|one| one["refilled"] == true).collect();
    assert_eq!(refilled.iter().filter(|is| **is).count(), 2, "{pushed:?}");
    for session in ["old", "grown", "new"] {
        there.done(&["pull", session, "--json"]);
        assert_eq!(there.text(session), here.text(session));
    }
}

#[test]
fn a_dump_is_restored_and_filled_again() {
    if postgres().is_none() {
        return;
    }
    let server = Single::postgres("");
    let [here, there] = [server.machine(""), server.machine("")];
    here.done(&["doctor", "--cluster", "--create"]);
    for session in ["old", "grown"] {
        here.make(session, 3, 10);
    }
    here.done(&["push", "--all", "--json"]);
    let folder = tempfile::tempdir().unwrap();
    let run = |start: &str| {
        let commands = block(start).replace("treelined", "team");
        run(&commands, folder.path(), server.port);
    };
    run("pg_dump --format");
    append(&here.path("grown"), 3..5, 10);
    here.make("new", 2, 10);
    here.done(&["push", "--all", "--json"]);
    run("psql postgres -c \"SELECT pg_terminate");
    let rights = "SELECT proowner::regrole FROM pg_proc WHERE proname = 'append' AND pronamespace = 'treelined'::regnamespace";
    let address = format!("127.0.0.1:{}", server.port);
    assert_eq!(sql(&address, "team", &[rights]), "team_admin");
    here.done(&["doctor", "--cluster"]);
    fills_again(&here, &there);
}

#[test]
fn a_database_is_restored_to_a_moment() {
    if postgres().is_none() {
        return;
    }
    // Stands for /srv. The user of the server writes to it.
    let folder = tempfile::tempdir().unwrap();
    let srv = folder.path().join("srv");
    fs::create_dir_all(srv.join("archive")).unwrap();
    for path in [folder.path(), &srv, &srv.join("archive")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let here_not_srv = |text: String| text.replace("/srv", srv.to_str().unwrap());
    let server = Single::postgres(&here_not_srv(block("archive_mode")));
    let data = server.folder.path().join("server/first");
    let [here, there] = [server.machine(""), server.machine("")];
    here.done(&["doctor", "--cluster", "--create"]);
    for session in ["old", "grown"] {
        here.make(session, 3, 10);
    }
    here.done(&["push", "old", "--json"]);
    run_as_server(
        &here_not_srv(block("pg_basebackup")),
        folder.path(),
        server.port,
    );
    here.done(&["push", "grown", "--json"]);
    let address = format!("127.0.0.1:{}", server.port);
    let moment = sql(
        &address,
        "postgres",
        &["SELECT pg_sleep(0.1)", "SELECT clock_timestamp()"],
    );
    let moment = moment.trim();
    append(&here.path("grown"), 3..5, 10);
    here.make("new", 2, 10);
    here.done(&["push", "--all", "--json"]);
    let switch = "SELECT pg_walfile_name(pg_switch_wal())";
    let last = sql(&address, "postgres", &[switch]);
    until(|| srv.join("archive").join(&last).exists());
    let commands = here_not_srv(block("pg_ctl --pgdata=/srv/data stop"));
    let own = srv.join("data");
    assert!(commands.contains("2026-11-22 08:00:00+00"));
    let commands = commands
        .replace("2026-11-22 08:00:00+00", moment)
        .replace(own.to_str().unwrap(), data.to_str().unwrap())
        .replace("--wait start", "--wait --log=server.log start");
    let commands = format!("cd {}\n{commands}", srv.display());
    run_as_server(&commands, folder.path(), server.port);
    until(|| sql(&address, "postgres", &["SELECT pg_is_in_recovery()"]) == "f");
    fills_again(&here, &there);
}

/// A running pooler, ended when dropped.
struct Pooler(Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        // It ends at once after SIGTERM; `runuser` passes the signal on.
        let _ended = Command::new("kill").arg(self.0.id().to_string()).status();
        let _waited = self.0.wait();
    }
}

#[test]
fn a_pooler_of_transactions_stands_between() {
    let Some(servers) = postgres() else { return };
    let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
    let version = Command::new("pgbouncer")
        .arg("--version")
        .env("PATH", &path)
        .output();
    if version.is_err() {
        let why = "no pgbouncer; apt-get install pgbouncer";
        let _ = writeln!(std::io::stderr(), "SKIPPED a pooler: {why}");
        return;
    }
    let Some(fleet) = Fleet::get(107) else { return };
    let fleet = fleet.with_stream();
    let server = fs::read_to_string(servers.join("server")).unwrap();
    let (host, server_port) = server.trim().split_once(':').unwrap();
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let parts = [block("[databases]"), block("[pgbouncer]")].concat();
    let mut config = parts;
    for (old, new) in [
        (
            "treelined = host=db.example",
            format!("t107 = host={host} port={server_port}"),
        ),
        ("0.0.0.0", "127.0.0.1".to_owned()),
        ("6432", port.to_string()),
        // A hash takes long in a program that is not optimized.
        ("scram-sha-256", "plain".to_owned()),
    ] {
        assert!(config.contains(old), "{config}");
        config = config.replace(old, &new);
    }
    // The package's socket folder belongs to another user.
    config += "unix_socket_dir =\n";
    fs::write(folder.path().join("pgbouncer.ini"), config).unwrap();
    let users = ["t107", "admin"].map(|user| format!("\"{user}\" \"secret\"\n"));
    fs::write(folder.path().join("userlist.txt"), users.concat()).unwrap();
    let start = "[ \"$(id -u)\" = 0 ] && as=(runuser -u postgres --) || as=(); exec \"${as[@]}\" pgbouncer --quiet pgbouncer.ini";
    let _pooler = Pooler(
        Command::new("bash")
            .args(["-c", start])
            .env("PATH", &path)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let through = |user: &str| format!("postgres://{user}:secret@127.0.0.1:{port}/t107");
    let administrator = Machine::with_log(through("admin"));
    let made = administrator.run(&["doctor", "--cluster", "--create"]);
    assert!(made.status.success(), "{made:?}");
    let machines = [(); 2].map(|()| Machine::with_log(through("t107")));
    let report = machines[0].run(&["doctor", "--cluster"]);
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(
        report.status.success() && text.contains("member: it appends"),
        "{text}"
    );
    let [mut here, mut there] = machines.each_ref().map(Daemon::start);
    let made = here.done(
        "create_session",
        json!({ "cwd": "/c", "sessionId": "s", "write": "now" }),
    );
    assert_eq!(made["durability"], "replicated");
    there.done("open_session", json!({ "sessionId": "s" }));
    for number in 0..3 {
        let said = here.say("s", &format!("entry {number}"));
        there.hears_of(said["entryId"].as_str().unwrap());
        let said = there.say("s", &format!("answer {number}"));
        here.hears_of(said["entryId"].as_str().unwrap());
    }
    until(|| machines[0].text("s") == machines[1].text("s"));
    let authors = fleet.sql(&["SELECT DISTINCT author FROM treelined.entries"]);
    assert_eq!(authors, "t107");
    here.end();
    there.end();
}
