//! Sessions of the team that are deleted and restored, by one machine and by several.

use crate::daemon::{Daemon, message};
use crate::proxy::Proxy;
use crate::single::Single;
use crate::support::{Fleet, Machine, lines};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(60);

/// A session with two messages of one machine, in the stream of the team.
fn shared(account: usize) -> Option<(Fleet, Machine, Daemon, String)> {
    let fleet = Fleet::get(account)?.with_stream();
    let machine = Machine::new(&fleet);
    let mut daemon = Daemon::start(&machine);
    let made = daemon.done("create_session", json!({ "cwd": "/c", "name": "Shared" }));
    let session = made["session"]["sessionId"].as_str().unwrap().to_owned();
    daemon.say(&session, "one");
    daemon.say(&session, "two");
    Some((fleet, machine, daemon, session))
}

/// The files of a session in the trash of a machine.
fn trashed(machine: &Machine, session: &str) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(machine.sessions().join(".trash")) else {
        return Vec::new();
    };
    let paths = files.map(|entry| entry.unwrap().path());
    let is_of = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.contains(session) && !name.ends_with(".replica")
    };
    paths.filter(is_of).collect()
}

/// Waits until a condition holds.
#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIME, "it does not come true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn by_id(session: &str) -> Value {
    json!({ "sessionId": session })
}

/// The custom types of the last lines of a file, the last one first.
fn last_types(text: &[u8], count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(text).into_owned();
    let last = text.lines().rev().take(count);
    let read = |line| serde_json::from_str::<Value>(line).unwrap();
    last.map(|line| read(line)["customType"].as_str().unwrap_or("").to_owned())
        .collect()
}

/// The next `pull --all`, or a `pull` of its id, once brought a deleted session back.
#[test]
fn a_deleted_session_is_in_no_list_and_cannot_be_opened_or_pulled() {
    let Some((fleet, here, mut daemon, session)) = shared(38) else {
        return;
    };
    let deleted = daemon.done("delete_session", by_id(&session));
    let path = PathBuf::from(deleted["trashedPath"].as_str().unwrap());
    let text = fs::read(&path).unwrap();
    assert_eq!(last_types(&text, 1), ["treelined.trashed"]);
    assert_eq!(
        daemon.kind("open_session", by_id(&session)),
        "sessionDeleted"
    );
    assert_eq!(
        daemon.kind("append_message", message(&session, "late")),
        "sessionNotFound"
    );
    let other = Machine::new(&fleet);
    let mut there = Daemon::start(&other);
    assert_eq!(
        there.kind("open_session", by_id(&session)),
        "sessionDeleted"
    );
    until(|| there.done("list_sessions", json!({}))["team"] == json!([]));
    // The row of the session is written in the background.
    until(|| other.done(&["pull", "--list", "--json"]).is_empty());
    let listed = other.done(&["pull", "--list", "--deleted", "--json"]);
    assert_eq!(listed[0]["sessionId"], session);
    assert_eq!(listed[0]["trashed"], true);
    assert_eq!(
        other.done(&["pull", "--all", "--json"]),
        [json!({ "session": session, "skipped": "deleted" })]
    );
    assert_eq!(other.kind(&["pull", &session, "--json"]), "sessionDeleted");
    let said = String::from_utf8(other.run(&["pull", &session]).stdout).unwrap();
    assert!(
        said.contains(&format!("treelined restore {session}")),
        "{said}"
    );
    assert!(!other.sessions().join("--c--").exists());
    // Nothing of the session is lost: the stream has the same bytes.
    daemon.end();
    there.end();
    here.run(&["restore", &session]);
    other.done(&["pull", &session, "--json"]);
    assert!(other.text(&session).starts_with(&text));
}

/// A session could once not be pulled by its name if a deleted session has the same name, since the name was ambiguous.
#[test]
fn a_name_means_the_session_that_is_not_deleted() {
    let Some((fleet, _here, mut daemon, deleted)) = shared(60) else {
        return;
    };
    let made = daemon.done("create_session", json!({ "cwd": "/c", "name": "Shared" }));
    let left = made["session"]["sessionId"].as_str().unwrap().to_owned();
    daemon.say(&left, "three");
    daemon.done("delete_session", by_id(&deleted));
    let other = Machine::new(&fleet);
    // Rows are written in the background.
    until(|| other.done(&["pull", "--list", "--json"]).len() == 1);
    let pulled = other.done(&["pull", "Shared", "--json"]);
    assert_eq!(pulled[0]["sessionId"], left);
    daemon.done("delete_session", by_id(&left));
    until(|| other.done(&["pull", "--list", "--json"]).is_empty());
    assert!(!other.run(&["pull", "Shared", "--json"]).status.success());
    daemon.end();
}

#[test]
fn a_machine_that_follows_a_session_moves_its_file_to_the_trash_when_it_is_deleted_elsewhere() {
    let Some((fleet, here, mut daemon, session)) = shared(44) else {
        return;
    };
    let other = Machine::new(&fleet);
    let mut there = Daemon::start(&other);
    there.done("open_session", by_id(&session));
    let deleted = daemon.done("delete_session", by_id(&session));
    until(|| trashed(&other, &session).len() == 1);
    let kept = fs::read(&trashed(&other, &session)[0]).unwrap();
    assert_eq!(
        kept,
        fs::read(deleted["trashedPath"].as_str().unwrap()).unwrap()
    );
    // As always when the file is deleted, reads succeed and changes fail.
    let refused = message(&session, "late");
    assert_eq!(there.kind("append_message", refused), "sessionDeleted");
    let entries = there.done("get_entries", by_id(&session));
    assert_eq!(entries["entries"].as_array().unwrap().len(), 3);
    assert_eq!(
        there.done("list_sessions", json!({ "local": true }))["sessions"],
        json!([])
    );
    there.done("close_session", by_id(&session));
    assert_eq!(
        there.kind("open_session", by_id(&session)),
        "sessionDeleted"
    );
    daemon.end();
    there.end();
    assert_eq!(trashed(&here, &session).len(), 1);
    assert_eq!(trashed(&other, &session).len(), 1);
}

/// A machine that does not know of the deletion appends. Its append is refused, and its file goes to the trash.
#[test]
fn an_append_to_a_session_that_was_deleted_meanwhile_is_refused() {
    let Some((fleet, _here, mut daemon, session)) = shared(45) else {
        return;
    };
    let other = Machine::new(&fleet);
    let mut there = Daemon::start(&other);
    there.done("open_session", by_id(&session));
    let deleting = daemon.send("delete_session", by_id(&session));
    let mut appended = Vec::new();
    // The append and the deletion run at the same time: the append comes first, or it is refused.
    let kind = loop {
        let number = appended.len();
        assert!(number < 500, "the deletion does not come");
        // Without a pause, the machine that appends is always faster. The necessary length of the pause depends on the
        // machine.
        let pause = 50 + 10 * u64::try_from(number).unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        match there.call("append_message", message(&session, &format!("m{number}"))) {
            Ok(said) => appended.push(said["entryId"].as_str().unwrap().to_owned()),
            Err(error) => break error["data"]["kind"].as_str().unwrap().to_owned(),
        }
    };
    assert_eq!(kind, "sessionDeleted");
    let deleted = daemon.answer(deleting).unwrap();
    until(|| trashed(&other, &session).len() == 1);
    let text = fs::read_to_string(deleted["trashedPath"].as_str().unwrap()).unwrap();
    assert_eq!(
        fs::read_to_string(&trashed(&other, &session)[0]).unwrap(),
        text
    );
    for id in appended {
        assert_eq!(text.matches(&format!("\"id\":\"{id}\"")).count(), 1, "{id}");
    }
    assert_eq!(text.matches("treelined.trashed").count(), 1);
    assert_eq!(last_types(text.as_bytes(), 1), ["treelined.trashed"]);
    daemon.end();
    there.end();
}

#[test]
fn two_machines_that_delete_a_session_at_once_both_succeed() {
    let Some((fleet, here, mut daemon, session)) = shared(46) else {
        return;
    };
    let other = Machine::new(&fleet);
    let mut there = Daemon::start(&other);
    there.done("open_session", by_id(&session));
    let deleting = [
        daemon.send("delete_session", by_id(&session)),
        there.send("delete_session", by_id(&session)),
    ];
    let paths = [daemon.answer(deleting[0]), there.answer(deleting[1])];
    for (machine, deleted) in [&here, &other].into_iter().zip(paths) {
        let path = deleted.unwrap()["trashedPath"].clone();
        let files = trashed(machine, &session);
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(files[0].to_str(), path.as_str());
        let text = fs::read_to_string(&files[0]).unwrap();
        assert_eq!(text.matches("treelined.trashed").count(), 1);
    }
    daemon.end();
    there.end();
}

/// Clients once got no notification about such entries after `queued`.
#[test]
fn entries_that_waited_at_a_deletion_are_told_and_published_after_the_return() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let proxy = Proxy::start(server.port);
    let queues = "offline = \"queue\"";
    let here = server.machine(queues);
    let other = Single::machine_at(proxy.port, queues);
    here.until_sound(&["doctor", "--cluster", "--create"]);
    let (mut daemon, mut there) = (Daemon::start(&here), Daemon::start(&other));
    daemon.done(
        "create_session",
        json!({ "cwd": "/c", "sessionId": "s", "write": "now" }),
    );
    until(|| daemon.say("s", "first")["durability"] != "queued");
    until(|| there.call("open_session", by_id("s")).is_ok());
    proxy.cut();
    let waiting: Vec<Value> = ["one", "two"]
        .iter()
        .map(|text| {
            let said = there.say("s", text);
            assert_eq!(said["durability"], "queued");
            said["entryId"].clone()
        })
        .collect();
    // The servers are available here, so nothing waits.
    until(|| daemon.call("delete_session", by_id("s")).is_ok());
    proxy.mend();
    let told = there.notice(|message| message["params"]["lost"].is_array());
    assert_eq!(told["method"], "session_log_changed");
    assert_eq!(told["params"]["lost"], json!(waiting));
    assert_eq!(told["params"]["queued"], false);
    let trash = there.done("list_trash", json!({}));
    assert_eq!(trash["sessions"][0]["lost"], 2, "{trash}");
    assert_eq!(
        there.kind("append_message", message("s", "late")),
        "sessionDeleted"
    );
    let shown = String::from_utf8(other.run(&["restore"]).stdout).unwrap();
    assert!(
        shown.contains("2 entries are only on this machine"),
        "{shown}"
    );

    daemon.done("restore_session", by_id("s"));
    daemon.done("open_session", by_id("s"));
    until(|| {
        let read = daemon.done("get_entries", by_id("s"));
        let read = read["entries"].as_array().unwrap();
        waiting
            .iter()
            .all(|id| read.iter().any(|one| one["id"] == *id))
    });
    let trash = there.done("list_trash", json!({}));
    assert_eq!(trash["sessions"], json!([]));
    daemon.end();
    there.end();
}

/// Requests for the open session once failed with `sessionDeleted` until it was closed and opened again.
#[test]
fn an_open_session_goes_on_after_another_machine_has_restored_it() {
    let Some((fleet, here, mut daemon, session)) = shared(63) else {
        return;
    };
    let other = Machine::new(&fleet);
    let mut there = Daemon::start(&other);
    there.done("open_session", by_id(&session));
    daemon.done("delete_session", by_id(&session));
    until(|| trashed(&other, &session).len() == 1);
    assert_eq!(
        there.kind("append_message", message(&session, "late")),
        "sessionDeleted"
    );
    daemon.done("restore_session", by_id(&session));
    daemon.done("open_session", by_id(&session));
    until(|| {
        there
            .call("append_message", message(&session, "back"))
            .is_ok()
    });
    assert!(trashed(&other, &session).is_empty());
    let said = daemon.say(&session, "here too");
    there.hears_of(said["entryId"].as_str().unwrap());
    until(|| here.text(&session) == other.text(&session));
    daemon.end();
    there.end();
}

/// The machine that deleted the session has its file. Another machine reads it from the stream.
#[test]
fn a_deleted_session_is_restored_by_any_machine() {
    let Some((fleet, here, mut daemon, session)) = shared(47) else {
        return;
    };
    let other = Machine::new(&fleet);
    let mut there = Daemon::start(&other);
    // In the second round, the machine that deletes the session has no file of it.
    for round in 0..2 {
        let (deleting, restoring) = match round {
            0 => (&mut daemon, &mut there),
            _ => (&mut there, &mut daemon),
        };
        deleting.done("delete_session", by_id(&session));
        let restored = restoring.done("restore_session", by_id(&session));
        assert_eq!(restored["sessionId"], session);
        let path = PathBuf::from(restored["path"].as_str().unwrap());
        let records = last_types(&fs::read(path).unwrap(), 2);
        assert_eq!(records, ["treelined.restored", "treelined.trashed"]);
        let opened = restoring.done("open_session", by_id(&session));
        assert_eq!(opened["session"]["name"], "Shared");
        assert_eq!(opened["session"]["entryCount"], 3 + round);
        let said = restoring.say(&session, "goes on");
        assert_eq!(said["durability"], "replicated");
        restoring.done("close_session", by_id(&session));
    }
    assert_eq!(
        there.kind("restore_session", by_id("nowhere")),
        "sessionNotFound"
    );
    daemon.end();
    there.end();
    until(|| {
        let listed = here.done(&["pull", "--list", "--json"]);
        listed.len() == 1 && listed[0]["trashed"].is_null() && listed[0]["entries"] == 5
    });
}

/// The commands start their own daemon, which is in the same team.
#[test]
fn the_commands_delete_and_restore_in_the_log() {
    let Some((fleet, here, daemon, session)) = shared(48) else {
        return;
    };
    daemon.end();
    let params = by_id(&session).to_string();
    let deleted = here.done(&["call", "delete_session", &params]);
    assert!(deleted[0]["trashedPath"].is_string(), "{deleted:?}");
    let other = Machine::new(&fleet);
    assert_eq!(other.kind(&["pull", &session, "--json"]), "sessionDeleted");
    let restored = other.done(&["restore", &session, "--json"]);
    assert_eq!(restored[0]["sessionId"], session);
    let pulled = here.done(&["pull", "--all", "--json"]);
    assert_eq!(pulled[0]["sessionId"], session);
    assert_eq!(here.text(&session), other.text(&session));
    // A file from before the deletion stays until the session is opened, and it is not pushed.
    let params = by_id(&session).to_string();
    other.done(&["call", "delete_session", &params]);
    let pushed = here.run(&["push", "--all", "--json"]);
    assert!(pushed.status.success(), "{pushed:?}");
    assert_eq!(lines(&pushed)[0]["skipped"], "deleted");
    let mut again = Daemon::start(&here);
    assert_eq!(
        again.kind("open_session", by_id(&session)),
        "sessionDeleted"
    );
    again.end();
    // One of the two files is from the first deletion.
    assert_eq!(trashed(&here, &session).len(), 2);
}

/// Without servers a session of the team is not deleted, whether or not appends are queued. A local session is deleted.
#[test]
fn without_servers_a_session_of_the_log_is_not_deleted() {
    let Some(fleet) = Fleet::get(49) else { return };
    let fleet = fleet.with_stream();
    let config = |log: &str, offline: &str| fleet.section(log, offline);
    let machine = Machine::configured(&config(&fleet.log(), "refuse"));
    machine.make("trip", 5, 100);
    machine.done(&["push", "trip", "--json"]);
    machine.make("local", 5, 100);
    for offline in ["refuse", "queue"] {
        machine.configure(&config(fleet.nowhere(), offline));
        let mut daemon = Daemon::start(&machine);
        assert_eq!(
            daemon.kind("delete_session", by_id("trip")),
            "logUnavailable"
        );
        daemon.done("open_session", by_id("trip"));
        assert_eq!(
            daemon.kind("delete_session", by_id("trip")),
            "logUnavailable"
        );
        assert_eq!(daemon.done("get_leaf", by_id("trip"))["leafId"], "e4");
        daemon.end();
        assert_eq!(trashed(&machine, "trip").len(), 0);
        assert!(machine.path("trip").exists());
    }
    let mut daemon = Daemon::start(&machine);
    daemon.done("delete_session", by_id("local"));
    daemon.done("restore_session", by_id("local"));
    daemon.done("delete_session", by_id("local"));
    daemon.end();
    assert_eq!(trashed(&machine, "local").len(), 1);
    // The servers are away again, so a session that was deleted in the stream cannot be restored.
    machine.configure(&config(&fleet.log(), "refuse"));
    let mut daemon = Daemon::start(&machine);
    daemon.done("delete_session", by_id("trip"));
    daemon.end();
    machine.configure(&config(fleet.nowhere(), "queue"));
    let mut daemon = Daemon::start(&machine);
    assert_eq!(
        daemon.kind("restore_session", by_id("trip")),
        "logUnavailable"
    );
    daemon.end();
    assert_eq!(trashed(&machine, "trip").len(), 1);
}

/// A row in the list is only a hint, since any member of the team can write it.
#[test]
fn a_list_leaves_out_files_of_sessions_that_the_log_has_as_deleted() {
    let Some((fleet, here, mut daemon, session)) = shared(50) else {
        return;
    };
    let other = Machine::new(&fleet);
    other.done(&["pull", "--all", "--json"]);
    other.make("alive", 2, 10);
    other.done(&["push", "alive", "--json"]);
    daemon.done("delete_session", by_id(&session));
    // This row says that a session is deleted, but the session is not deleted.
    fleet.with(async |context| {
        let subject = "treelined.r.alive";
        let rows = context.get_stream("treelined-rows").await.unwrap();
        let stored = rows.get_last_raw_message_by_subject(subject).await;
        let mut row: Value = serde_json::from_slice(&stored.unwrap().payload).unwrap();
        row["trashed"] = json!(true);
        let sent = context.publish(subject, row.to_string().into());
        sent.await.unwrap().await.unwrap();
    });
    let mut there = Daemon::start(&other);
    until(|| {
        let listed = there.done("list_sessions", json!({}));
        let rows = listed["sessions"].as_array().unwrap();
        rows.len() == 1 && rows[0]["sessionId"] == "alive"
    });
    assert_eq!(trashed(&other, &session).len(), 1);
    assert_eq!(trashed(&other, "alive").len(), 0);
    assert!(other.path("alive").exists());
    daemon.end();
    there.end();
    assert_eq!(trashed(&here, &session).len(), 1);
}

/// The session was once marked as deleted in the stream although its file stayed, and nothing could be appended to it.
#[test]
fn a_deletion_whose_file_cannot_be_moved_is_taken_back_in_the_log() {
    let Some((fleet, here, mut daemon, session)) = shared(30) else {
        return;
    };
    let trash = here.sessions().join(".trash");
    std::os::unix::fs::symlink(here.sessions(), &trash).unwrap();
    assert!(daemon.call("delete_session", by_id(&session)).is_err());
    let text = here.text(&session);
    assert_eq!(
        last_types(&text, 2),
        ["treelined.restored", "treelined.trashed"]
    );
    let said = daemon.say(&session, "goes on");
    assert_eq!(said["durability"], "replicated");
    let other = Machine::new(&fleet);
    other.done(&["pull", &session, "--json"]);
    assert_eq!(other.text(&session), here.text(&session));
    fs::remove_file(&trash).unwrap();
    daemon.done("delete_session", by_id(&session));
    assert_eq!(trashed(&here, &session).len(), 1);
    daemon.end();
}
