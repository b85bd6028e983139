//! Servers that lost lines get them back from the machines (schema/fleet.md "After a loss").

use crate::daemon::{Daemon, message};
use crate::live::until_equal;
use crate::queue::until;
use crate::single::Single;
use crate::support::{Fleet, Machine, append, postgres, script};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const CREATE: [&str; 3] = ["doctor", "--cluster", "--create"];

/// Each session once failed with `logRewound` on each machine, until its `.replica` was removed by hand.
#[test]
fn a_server_that_lost_everything_gets_all_back_by_pushes() {
    let Some(mut server) = Single::start(|_| String::new()) else {
        return;
    };
    let machines = [server.machine(""), server.machine("")];
    let [laptop, office] = &machines;
    laptop.until_sound(&CREATE);
    let mut here = Daemon::start(laptop);
    here.done(
        "create_session",
        json!({ "cwd": "/c", "sessionId": "shared" }),
    );
    here.say("shared", "first");
    let mut there = Daemon::start(office);
    there.done("open_session", json!({ "sessionId": "shared" }));
    there.say("shared", "second");
    until_equal(&machines, "shared");
    here.end();
    laptop.make("alone", 3, 10);
    laptop.done(&["push", "alone", "--json"]);
    let before = laptop.text("shared");

    server.lose_all();
    laptop.until_sound(&CREATE);
    assert_eq!(laptop.kind(&["pull", "shared", "--json"]), "logRewound");
    // A daemon does not append after lines that the server lacks.
    until(|| there.kind("append_message", message("shared", "too early")) == "logRewound");

    let pushed = laptop.done(&["push", "--all", "--json"]);
    assert_eq!(pushed.len(), 2);
    assert!(
        pushed.iter().all(|one| one["refilled"] == true),
        "{pushed:?}"
    );
    assert_eq!(laptop.text("shared"), before);
    until(|| {
        there
            .call("append_message", message("shared", "third"))
            .is_ok()
    });
    there.end();
    laptop.done(&["pull", "shared", "--json"]);
    until_equal(&machines, "shared");
    assert!(laptop.text("shared").starts_with(&before));
    let new = server.machine("");
    new.done(&["pull", "--all", "--json"]);
    for session in ["shared", "alone"] {
        assert_eq!(new.text(session), laptop.text(session));
    }
    // Nothing is left to do on the other machine.
    assert_eq!(
        office.done(&["push", "--all", "--json"])[0]["refilled"],
        false
    );
}

/// The daemon of the other machine runs all the time, and writes nothing itself.
#[test]
fn a_daemon_that_only_follows_goes_on_after_a_loss() {
    let Some(mut server) = Single::start(|_| String::new()) else {
        return;
    };
    let machines = [server.machine(""), server.machine("")];
    let [laptop, office] = &machines;
    laptop.until_sound(&CREATE);
    let path = laptop.make("s", 3, 10);
    laptop.done(&["push", "s", "--json"]);
    let mut there = Daemon::start(office);
    there.done("open_session", json!({ "sessionId": "s" }));
    server.lose_all();
    laptop.until_sound(&CREATE);
    let is_rewound = |found: &Value| found["kind"] == "logRewound";
    there.notice(|message| {
        message["method"] == "diagnostics" && is_rewound(&message["params"]["diagnostics"][0])
    });
    let rewound = |daemon: &mut Daemon| {
        let opened = daemon.done("open_session", json!({ "sessionId": "s" }));
        opened["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .any(is_rewound)
    };
    assert!(rewound(&mut there));
    let mut new = Daemon::start(laptop);
    assert!(rewound(&mut new));
    new.end();
    append(&path, 3..4, 10);
    laptop.done(&["push", "s", "--json"]);
    until_equal(&machines, "s");
    until(|| !rewound(&mut there));
    there.end();
}

/// After the server has lost lines, two machines have more lines than the server. One of them sends its lines first.
#[test]
fn what_only_one_machine_has_becomes_a_branch() {
    let Some(fleet) = Fleet::get(13) else { return };
    let fleet = fleet.with_stream();
    let (laptop, office) = (Machine::new(&fleet), Machine::new(&fleet));
    let path = laptop.make("s", 3, 10);
    laptop.done(&["push", "s", "--json"]);
    office.done(&["pull", "s", "--json"]);
    append(&path, 3..5, 10);
    laptop.done(&["push", "s", "--json"]);
    let fleet = lose(fleet);
    office.done(&["push", "s", "--json"]);
    let own = json!({
        "type": "message", "id": "own", "parentId": "e2", "timestamp": "2026-01-02T03:04:05.000Z",
        "message": { "role": "user", "content": "after the loss" },
    });
    office.append_text("s", &format!("{own}\n"));
    office.done(&["push", "s", "--json"]);

    assert_eq!(laptop.kind(&["pull", "s", "--json"]), "logRewound");
    assert_eq!(laptop.kind(&["push", "--all", "--json"]), "logDiverged");
    let pushed = &laptop.done(&["push", "--all", "--branch", "--json"])[0];
    assert_eq!(
        (&pushed["lines"], &pushed["branch"]),
        (&json!(2), &json!(true))
    );
    office.done(&["pull", "s", "--json"]);
    assert_eq!(office.text("s"), laptop.text("s"));
    let text = String::from_utf8(office.text("s")).unwrap();
    for id in ["e0", "e1", "e2", "own", "e3", "e4"] {
        assert_eq!(
            text.matches(&format!("\"id\":\"{id}\"")).count(),
            1,
            "{text}"
        );
    }
    assert!(text.find("\"own\"").unwrap() < text.find("\"e3\"").unwrap());
    drop(fleet);
}

/// Loses the sessions, and makes their stream or tables anew.
fn lose(fleet: Fleet) -> Fleet {
    if postgres().is_some() {
        fleet.sql(&["DROP SCHEMA treelined CASCADE"]);
    } else {
        fleet.with(async |context| context.delete_stream("treelined").await.unwrap());
    }
    fleet.with_stream()
}

/// Two of three disks are a majority, so the third node may accept that the stream is empty.
#[test]
fn a_cluster_that_lost_two_disks_of_three_gets_all_back() {
    if std::env::var_os("TREELINED_FLEET").is_none() || postgres().is_some() {
        return;
    }
    let cluster = Cluster::start();
    let laptop = Machine::with_log(cluster.servers.clone());
    laptop.until_sound(&CREATE);
    for session in ["one", "two"] {
        laptop.make(session, 5, 100);
    }
    laptop.done(&["push", "--all", "--json"]);
    for node in ["2", "3"] {
        cluster.node("kill", node);
        let data = cluster
            .folder
            .path()
            .join(format!("servers/node{node}/data"));
        fs::remove_dir_all(data).unwrap();
    }
    for node in ["2", "3"] {
        cluster.node("restart", node);
    }
    let began = Instant::now();
    loop {
        let report = laptop.run(&CREATE);
        if String::from_utf8_lossy(&report.stdout).contains("  holds  ") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{report:?}");
    }
    laptop.until_sound(&["push", "--all", "--json"]);
    let office = Machine::with_log(cluster.servers.clone());
    office.until_sound(&["pull", "--all", "--json"]);
    for session in ["one", "two"] {
        assert_eq!(office.text(session), laptop.text(session));
    }
    replace_the_third(&cluster, &laptop);
    let new = Machine::with_log(cluster.servers.clone());
    new.until_sound(&["pull", "--all", "--json"]);
    for session in ["one", "two"] {
        assert_eq!(new.text(session), laptop.text(session));
    }
}

/// Does as the report says until it has no problem. The third node may have a longer history than the two with empty
/// disks: in one of ten runs it took nothing from them, and the test waited for it without end.
fn replace_the_third(cluster: &Cluster, laptop: &Machine) {
    let began = Instant::now();
    loop {
        let report = laptop.run(&["doctor", "--cluster"]);
        if report.status.success() {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{report:?}");
        let text = String::from_utf8_lossy(&report.stdout);
        if text.contains("stop node1, move its store_dir away, and start it again") {
            cluster.node("kill", "1");
            let node = cluster.folder.path().join("servers/node1");
            fs::rename(node.join("data"), node.join("moved")).unwrap();
            cluster.node("restart", "1");
        }
    }
}

/// Three nodes for one test.
struct Cluster {
    folder: tempfile::TempDir,
    servers: String,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let servers = script(
            "cluster",
            &[Path::new("start"), &folder.path().join("servers")],
        );
        Self { folder, servers }
    }

    fn node(&self, action: &str, number: &str) {
        let folder = self.folder.path().join("servers");
        script("cluster", &[Path::new(action), &folder, Path::new(number)]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        script(
            "cluster",
            &[Path::new("stop"), &self.folder.path().join("servers")],
        );
    }
}
