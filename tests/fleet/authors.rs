//! The writers that entries of a team name: by their own word, and by the word of the servers.

use crate::daemon::{Daemon, message};
use crate::live::until_equal;
use crate::support::{Fleet, Machine, postgres};
use serde_json::{Value, json};

/// The writer of an entry or record of this daemon.
fn by(daemon: &mut Daemon, name: &str, host: &str) -> Value {
    let client = json!({ "protocolVersion": 1, "clientInfo": { "name": "test", "version": "1" } });
    let id = daemon.done("initialize", client)["instanceId"].clone();
    json!({ "name": name, "host": host, "daemon": id })
}

fn parsed(text: &[u8]) -> Vec<Value> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[track_caller]
fn entry(text: &[u8], id: &Value) -> Value {
    let mut lines = parsed(text).into_iter();
    lines.find(|line| line["id"] == *id).unwrap()
}

/// The server's word about an entry, apart from the word of its writer.
#[test]
fn entries_are_verified() {
    let Some(fleet) = Fleet::get(102) else {
        return;
    };
    let fleet = fleet.with_stream();
    let of = |name: &str| {
        let team = fleet.section(&fleet.log(), "refuse");
        Machine::configured(&format!("{team}[author]\nname = {name:?}\n"))
    };
    // The account of all machines is `t102`, so one of them names its account, and one another user.
    let machines = [of("t102"), of("bea")];
    let mut daemons = machines.each_ref().map(Daemon::start);
    let made = daemons[0].done("create_session", json!({ "cwd": "/c" }));
    let session = made["session"]["sessionId"].as_str().unwrap().to_owned();
    let first = daemons[0].say(&session, "from here")["entryId"].clone();
    daemons[1].done("open_session", json!({ "sessionId": session }));
    let second = daemons[1].say(&session, "from there")["entryId"].clone();
    daemons[0].hears_of(second.as_str().unwrap());
    until_equal(&machines, &session);
    let wanted = |id: &Value| json!({ "sessionId": session, "entryId": id, "verify": true });
    let is_database = postgres().is_some();
    for daemon in &mut daemons {
        for (id, agrees) in [(&first, true), (&second, false)] {
            let verified = daemon.done("get_entry", wanted(id))["verified"].clone();
            let mut expected = json!({ "line": "equal", "account": null });
            if is_database {
                expected["account"] = json!("t102");
                expected["agrees"] = json!(agrees);
            }
            expected["stream"] = verified["stream"].clone();
            assert!(verified["stream"].is_string());
            assert_eq!(verified, expected, "{id}");
        }
    }
    // Only the file of one machine is changed; the servers still have the bytes of its writer.
    daemons[1].done("close_session", json!({ "sessionId": session }));
    let path = machines[1].path(&session);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("from here", "from HERE")).unwrap();
    daemons[1].done(
        "open_session",
        json!({ "sessionId": session, "mode": "read" }),
    );
    let found = daemons[1].done("get_entry", wanted(&first));
    assert!(found["entry"].to_string().contains("from HERE"));
    let mut expected = json!({ "line": "differs", "account": null });
    if is_database {
        expected["account"] = json!("t102");
    }
    expected["stream"] = found["verified"]["stream"].clone();
    assert_eq!(found["verified"], expected);
    for daemon in daemons {
        daemon.end();
    }

    // A daemon that uses no team says so, though the file is a replica.
    let mut alone = Daemon::without_team(&machines[0]);
    alone.done("open_session", json!({ "sessionId": session }));
    assert_eq!(alone.kind("get_entry", wanted(&first)), "invalidParams");
    alone.end();
}

#[test]
fn entries_name_their_writer() {
    let Some(fleet) = Fleet::get(101) else {
        return;
    };
    let fleet = fleet.with_stream();
    let of = |name: &str, host: &str| {
        let team = fleet.section(&fleet.log(), "refuse");
        Machine::configured(&format!(
            "{team}[author]\nname = {name:?}\nhost = {host:?}\n"
        ))
    };
    let machines = [of("Ada L.", "desk"), of("bea", "build-7")];
    let (mut here, mut there) = (Daemon::start(&machines[0]), Daemon::start(&machines[1]));
    let (ada, bea) = (
        by(&mut here, "Ada L.", "desk"),
        by(&mut there, "bea", "build-7"),
    );
    assert_ne!(ada["daemon"], bea["daemon"]);
    let made = here.done("create_session", json!({ "cwd": "/c", "name": "Shared" }));
    let session = made["session"]["sessionId"].as_str().unwrap().to_owned();
    let first = here.say(&session, "from here")["entryId"].clone();
    there.done("open_session", json!({ "sessionId": session }));
    let second = there.say(&session, "from there")["entryId"].clone();
    here.hears_of(second.as_str().unwrap());
    let text = until_equal(&machines, &session);
    assert_eq!(entry(&text, &first)["by"], ada);
    assert_eq!(entry(&text, &second)["by"], bea);
    let all_named = parsed(&text)
        .iter()
        .skip(1)
        .all(|line| line["by"].is_object());
    assert!(all_named, "{}", String::from_utf8_lossy(&text));
    let whole = there.done(
        "get_entry",
        json!({ "sessionId": session, "entryId": first }),
    );
    assert_eq!(whole["entry"]["by"], ada);

    // A client that got no answer repeats its append at another machine.
    let mut again = message(&session, "from here");
    again["entryId"] = first.clone();
    assert_eq!(there.done("append_message", again)["entryId"], first);
    assert_eq!(machines[1].text(&session), text);

    // A copy names its own writer.
    let picked = json!({ "sessionId": session, "entryIds": [first] });
    let copy = there.done("cherry_pick", picked)["entryIds"][0].clone();
    let copy = entry(&machines[1].text(&session), &copy);
    assert_eq!((&copy["by"], &copy["copiedFrom"]), (&bea, &first));

    // An export leaves the machine, so it has no names.
    for format in ["jsonl", "trace", "markdown"] {
        let export = json!({ "sessionId": session, "format": format });
        let export = there.done("export_session", export);
        let export = export["content"].as_str().unwrap();
        assert!(export.contains("from here"), "{format}");
        for name in ["Ada L.", "desk", "build-7", "\"by\""] {
            assert!(!export.contains(name), "{format}: {name}");
        }
    }

    // The records of a deletion and a restoration name their writers too.
    let log = fleet.engine();
    let last = || {
        parsed(&log.last(&session).unwrap().unwrap().lines)
            .pop()
            .unwrap()
    };
    there.done("delete_session", json!({ "sessionId": session }));
    assert_eq!(
        (&last()["customType"], &last()["by"]),
        (&json!("treelined.trashed"), &bea)
    );
    there.done("restore_session", json!({ "sessionId": session }));
    assert_eq!(
        (&last()["customType"], &last()["by"]),
        (&json!("treelined.restored"), &bea)
    );
    here.end();
    there.end();
    // A person sees the writer as unverified, also without servers.
    let shown = machines[1]
        .command(&["--log", "files", "show", &session, first.as_str().unwrap()])
        .output()
        .unwrap();
    let why = String::from_utf8(shown.stderr).unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.ends_with("the last entry is by Ada L. on desk (unverified)\n"),
        "{shown}{why}"
    );
    if postgres().is_some() {
        let authors = fleet.sql(&["SELECT DISTINCT author FROM treelined.entries"]);
        assert_eq!(authors, "t101", "the server knows both by one account");
        let of = |machine: &Machine| {
            let report = machine.run(&["doctor", "--cluster"]).stdout;
            let report = String::from_utf8(report).unwrap();
            let mut lines = report.lines();
            lines
                .find(|line| line.contains("name their account"))
                .unwrap()
                .to_owned()
        };
        let lines = parsed(&machines[1].text(&session)).len();
        let others = format!(
            " 0 name their account, {} another user, 1 nobody",
            lines - 1
        );
        assert!(of(&machines[0]).contains(&others), "{}", of(&machines[0]));
    }
}
