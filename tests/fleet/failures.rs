//! Bad input: each fault has its own kind of error, nothing is lost, and nothing hangs.

use crate::daemon::{Daemon, message};
use crate::single::{Single, free_port};
use crate::support::{Fleet, Machine, append};
use async_nats::jetstream::stream::Config;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn stream(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config {
        name: "treelined".to_owned(),
        subjects: vec!["treelined.s.*".to_owned()],
        num_replicas: 3,
        ..Config::default()
    };
    change(&mut config);
    config
}

#[test]
fn servers_that_are_not_there_or_silent_are_unavailable_in_time() {
    let Some(fleet) = Fleet::get(7) else { return };
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().port();
    for port in [free_port(), silent] {
        let address = format!("127.0.0.1:{port}");
        let machine = Machine::with_log(format!("nats://{address}"));
        machine.make("s", 1, 10);
        let began = Instant::now();
        assert_eq!(
            machine.kind(&["push", "s", "--json"]),
            "logUnavailable",
            "{address}"
        );
        assert!(began.elapsed() < Duration::from_secs(120));
    }
    let wrong = Machine::with_log("nonsense://x y".to_owned());
    wrong.make("s", 1, 10);
    assert_eq!(wrong.kind(&["push", "s"]), "logMisconfigured");
    let wrong = Machine::with_log(fleet.log_of("t7", "wrong"));
    wrong.make("s", 1, 10);
    assert_eq!(wrong.kind(&["push", "s"]), "logDenied");
}

#[test]
fn a_missing_stream_and_one_that_drops_messages_are_refused() {
    let Some(fleet) = Fleet::get(8) else { return };
    let machine = Machine::new(&fleet);
    machine.make("s", 1, 10);
    assert_eq!(machine.kind(&["push", "s"]), "logMisconfigured");
    let dropping = stream(|config| config.max_age = Duration::from_secs(3600));
    fleet.with(async |context| context.create_stream(dropping).await.unwrap());
    assert_eq!(machine.kind(&["push", "s"]), "logMisconfigured");
    let report = machine.run(&["doctor", "--cluster"]);
    assert_eq!(report.status.code(), Some(1));
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(
        report.contains("max_age") && report.contains("deny_delete"),
        "{report}"
    );

    // A full stream refuses new messages, and does not drop old ones.
    let full = stream(|config| {
        config.max_bytes = 2000;
        config.discard = async_nats::jetstream::stream::DiscardPolicy::New;
    });
    fleet.with(async |context| {
        context.delete_stream("treelined").await.unwrap();
        context.create_stream(full).await.unwrap();
    });
    machine.make("s", 10, 1000);
    assert_eq!(machine.kind(&["push", "s", "--json"]), "logMisconfigured");
}

#[test]
fn a_user_without_the_permission_to_write_can_read() {
    let Some(fleet) = Fleet::get(9) else { return };
    let fleet = fleet.with_stream();
    let writer = Machine::new(&fleet);
    let path = writer.make("s", 3, 10);
    writer.done(&["push", "s", "--json"]);
    let reader = Machine::with_log(fleet.reader());
    assert_eq!(reader.done(&["pull", "s", "--json"])[0]["lines"], 4);
    append(&path, 3..4, 10);
    let text = std::fs::read(&path).unwrap();
    std::fs::write(reader.make("s", 4, 10), text).unwrap();
    let denied = Machine::with_log(fleet.reader());
    denied.make("s", 4, 10);
    assert_eq!(denied.kind(&["push", "s", "--json"]), "logDenied");
}

/// A stream that was restored from a backup, or made anew, has fewer messages than the files that were copied from it.
#[test]
fn a_stream_that_went_backwards_is_noticed_and_filled_again_by_a_push() {
    let Some(fleet) = Fleet::get(11) else { return };
    let machine = Machine::new(&fleet);
    // A message that comes again within this time is taken for the deleted one.
    let window = Duration::from_millis(100);
    let deletable = || stream(|config| config.duplicate_window = window);
    fleet.with(async |context| context.create_stream(deletable()).await.unwrap());
    let path = machine.make("s", 2, 10);
    machine.done(&["push", "s", "--json"]);
    append(&path, 2..3, 10);
    machine.done(&["push", "s", "--json"]);
    fleet.with(async |context| {
        let stream = context.get_stream("treelined").await.unwrap();
        stream.delete_message(2).await.unwrap();
    });
    assert_eq!(machine.kind(&["pull", "s", "--json"]), "logRewound");
    let filled = &machine.done(&["push", "s", "--json"])[0];
    assert_eq!(
        (&filled["lines"], &filled["refilled"]),
        (&json!(1), &json!(true))
    );
    let elsewhere = Machine::new(&fleet);
    elsewhere.make("elsewhere", 1, 10);
    elsewhere.done(&["push", "elsewhere", "--json"]);
    fleet.with(async |context| {
        context.delete_stream("treelined").await.unwrap();
        context.create_stream(deletable()).await.unwrap();
    });
    assert_eq!(machine.kind(&["pull", "s", "--json"]), "logRewound");
    let listed = machine.run(&["pull", "--list"]);
    assert!(listed.stdout.is_empty(), "{listed:?}");
    // The list still knows a session that this machine does not have.
    let pushed = machine.run(&["push", "--all"]);
    let [said, noted] = [&pushed.stdout, &pushed.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(said.contains("1 session: 1 filled again"), "{said}");
    assert!(
        noted.contains("lost 1 session ") && noted.contains("  elsewhere  "),
        "{noted}"
    );
    elsewhere.done(&["push", "--all", "--json"]);
    let noted = machine.run(&["push", "--all"]).stderr;
    assert!(!String::from_utf8_lossy(&noted).contains("has lost"));
    assert_eq!(machine.done(&["push", "s", "--json"])[0]["lines"], 0);
}

/// A session belongs to one stream. A file that came from one stream is not mixed with a stream of another name.
#[test]
fn a_session_of_another_stream_is_refused() {
    let (Some(fleet), Some(other)) = (Fleet::get(20), Fleet::get(21)) else {
        return;
    };
    let (fleet, other) = (fleet.with_stream(), other.with_stream());
    let machine = Machine::new(&fleet);
    machine.make("s", 2, 10);
    machine.done(&["push", "s", "--json"]);
    let before = machine.text("s");
    // This stream has the same name, on another server.
    let elsewhere = machine.elsewhere(other.log());
    assert_eq!(elsewhere.kind(&["pull", "s", "--json"]), "logRewound");
    // This stream has another name, on another server.
    other.with(async |context| {
        context.delete_stream("treelined").await.unwrap();
        let second = stream(|config| "second".clone_into(&mut config.name));
        context.create_stream(second).await.unwrap();
    });
    elsewhere.configure("[log.nats]\nservers = [\"nats://unused\"]\nstream = \"second\"\n");
    assert_eq!(elsewhere.kind(&["push", "s", "--json"]), "logDiverged");
    assert_eq!(elsewhere.kind(&["pull", "s", "--json"]), "logDiverged");
    assert_eq!(elsewhere.text("s"), before);
    // This is a second stream on the same server.
    let beside = Machine::new(&fleet);
    beside.configure("[log.nats]\nservers = [\"nats://unused\"]\nstream = \"second\"\n");
    assert_eq!(
        beside.kind(&["doctor", "--cluster", "--create"]),
        "logMisconfigured"
    );
}

/// The stream decides the order, and the clocks of the machines do not matter.
#[test]
fn entries_of_machines_with_wrong_clocks_keep_the_order_of_the_stream() {
    let Some(fleet) = Fleet::get(22) else { return };
    let fleet = fleet.with_stream();
    let machines: Vec<Machine> = (0..3).map(|_| Machine::new(&fleet)).collect();
    let mut path = machines[0].make("s", 1, 10);
    let mut expected = std::fs::read_to_string(&path).unwrap();
    for (round, year) in ["2099", "1970", "2026", "1999"].iter().enumerate() {
        let machine = &machines[round % 3];
        if round > 0 {
            machine.done(&["pull", "s", "--json"]);
            path = machine.path("s");
        }
        let line = format!(
            "{{\"type\":\"custom\",\"id\":\"y{year}\",\"parentId\":\"e0\",\"timestamp\":\"{year}-01-02T03:04:05.000Z\",\"customType\":\"t\"}}\n"
        );
        expected += &line;
        let text = std::fs::read_to_string(&path).unwrap() + &line;
        std::fs::write(&path, text).unwrap();
        machine.done(&["push", "s", "--json"]);
    }
    let reader = Machine::new(&fleet);
    reader.done(&["pull", "s", "--json"]);
    assert_eq!(reader.text("s"), expected.as_bytes());
}

/// The output of a command that must fail. The command must also end in time.
#[track_caller]
fn read_by_a_person(machine: &Machine, args: &[&str]) -> String {
    let began = Instant::now();
    let output = machine.run(args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(began.elapsed() < Duration::from_secs(120));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.contains("\n  try: ") && !said.contains("secret"),
        "{said}"
    );
    said
}

/// Failures of single sessions once had no remedy, and two remedies did not work.
#[test]
fn what_a_person_reads_about_a_failure_leads_out_of_it() {
    let Some(fleet) = Fleet::get(40) else { return };
    let away = Machine::with_log("nats://me:secret@127.0.0.1:1".to_owned());
    away.make("s", 1, 10);
    for command in [&["push", "s"][..], &["pull", "s"], &["doctor", "--cluster"]] {
        let said = read_by_a_person(&away, command);
        assert!(
            said.contains("logUnavailable") && said.contains("127.0.0.1:1"),
            "{said}"
        );
    }
    let machine = Machine::new(&fleet);
    machine.make("s", 2, 10);
    let said = read_by_a_person(&machine, &["push", "s"]);
    assert!(said.contains("doctor --cluster --create"), "{said}");
    let fleet = fleet.with_stream();
    machine.done(&["push", "s", "--json"]);

    let refused = Machine::with_log(fleet.log_of("t13", "wrong-secret"));
    refused.make("s", 1, 10);
    let said = read_by_a_person(&refused, &["push", "s"]);
    assert!(said.contains("refuse the credentials"), "{said}");

    // These are two sessions with the same id.
    let other = Machine::new(&fleet);
    let path = other.make("s", 5, 20);
    for command in ["push", "pull"] {
        let said = read_by_a_person(&other, &[command, "s"]);
        assert!(
            said.contains("logDiverged")
                && said.contains("move the file")
                && said.contains("push --branch"),
            "{said}"
        );
    }
    std::fs::rename(&path, other.sessions().with_file_name("s.jsonl")).unwrap();
    other.done(&["pull", "s", "--json"]);
    assert_eq!(other.text("s"), machine.text("s"));

    // The stream is made anew.
    fleet.with(async |context| context.delete_stream("treelined").await.unwrap());
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    let said = read_by_a_person(&machine, &["pull", "s"]);
    assert!(
        said.contains("logRewound") && said.contains("`treelined push` fills"),
        "{said}"
    );
    assert_eq!(machine.done(&["push", "s", "--json"])[0]["lines"], 3);
}

/// When the servers were gone, a push of all sessions once waited 25 s for each session.
#[test]
fn a_push_of_many_sessions_ends_when_the_servers_are_gone() {
    let Some(mut server) = Single::start(|_| String::new()) else {
        return;
    };
    let machine = server.machine("");
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    for number in 0..300 {
        machine.make(&format!("many{number:03}"), 20, 5000);
    }
    let mut command = machine.command(&["push", "--all", "--json"]);
    let mut pushing = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(pushing.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    server.kill();
    let began = Instant::now();
    let rest: Vec<String> = lines.map(|line| line.unwrap()).collect();
    let output = pushing.wait_with_output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(120));
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("not tried"), "{said}");
    let failed = rest.iter().filter(|line| line.contains("\"error\""));
    assert_eq!(failed.count(), 1, "{rest:?}");
    server.restart();
    machine.until_sound(&["push", "--all", "--json"]);
}

/// A running daemon once answered `replicated` although the stream had been changed to drop its messages after an hour.
#[test]
fn a_stream_that_is_changed_is_noticed_while_the_daemon_runs() {
    let Some(fleet) = Fleet::get(59) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    let mut daemon = Daemon::start(&machine);
    machine.make("s", 2, 10);
    daemon.done("open_session", json!({ "sessionId": "s" }));
    assert_eq!(daemon.say("s", "kept")["durability"], "replicated");
    let keep_for = |time: Duration| {
        fleet.with(async |context| {
            let stream = context.get_stream("treelined").await.unwrap();
            let mut config = stream.cached_info().config.clone();
            config.max_age = time;
            context.update_stream(config).await.unwrap();
        });
    };
    let mut until = |is_kept: bool| {
        let began = Instant::now();
        loop {
            match daemon.call("append_message", message("s", "again")) {
                Ok(_) if is_kept => return,
                Err(error) if !is_kept => {
                    assert_eq!(error["data"]["kind"], "logMisconfigured", "{error}");
                    return;
                }
                _ => {}
            }
            assert!(began.elapsed() < Duration::from_secs(120));
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    keep_for(Duration::from_secs(3600));
    until(false);
    keep_for(Duration::ZERO);
    until(true);
    daemon.end();
}
