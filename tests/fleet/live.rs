//! Daemons in a team: appends, followers, sessions of other machines, and times without servers.

use crate::daemon::{Daemon, message};
use crate::queue::{queued, until};
use crate::single::Single;
use crate::support::{Fleet, Machine};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

/// Two machines, and a session that both have open.
fn two(account: usize) -> Option<([Machine; 2], [Daemon; 2], String)> {
    let fleet = Fleet::get(account)?.with_stream();
    let machines = [Machine::new(&fleet), Machine::new(&fleet)];
    let mut daemons = [Daemon::start(&machines[0]), Daemon::start(&machines[1])];
    let made = daemons[0].done("create_session", json!({ "cwd": "/c", "name": "Shared" }));
    assert_eq!(made["durability"], "replicated");
    let session = made["session"]["sessionId"].as_str().unwrap().to_owned();
    let opened = daemons[1].done("open_session", json!({ "sessionId": session }));
    assert_eq!(opened["session"]["name"], "Shared");
    Some((machines, daemons, session))
}

/// Waits until the files of all machines have the same bytes.
#[track_caller]
pub(crate) fn until_equal(machines: &[Machine], session: &str) -> Vec<u8> {
    let began = Instant::now();
    loop {
        let first = machines[0].text(session);
        if machines.iter().all(|one| one.text(session) == first) {
            return first;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "still different");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_entry_of_one_machine_is_announced_on_the_others() {
    let Some((machines, [mut here, mut there], session)) = two(51) else {
        return;
    };
    let said = here.say(&session, "from here");
    assert_eq!(said["durability"], "replicated");
    let id = said["entryId"].as_str().unwrap();
    assert_eq!(id.len(), 16, "ids of machines must differ by chance");
    there.hears_of(id);
    let answer = there.say(&session, "from there");
    here.hears_of(answer["entryId"].as_str().unwrap());
    until_equal(&machines, &session);
    here.end();
    there.end();
}

/// Two daemons append at the same time. Each entry is there once, in one order, and a client that expects another leaf
/// gets an error.
#[test]
fn appends_of_two_machines_at_once_are_all_kept_or_refused() {
    let Some((machines, [mut here, mut there], session)) = two(52) else {
        return;
    };
    let mut ids = Vec::new();
    let ours: Vec<u64> = (0..40)
        .map(|number| here.send("append_message", message(&session, &format!("a{number}"))))
        .collect();
    let theirs: Vec<u64> = (0..40)
        .map(|number| there.send("append_message", message(&session, &format!("b{number}"))))
        .collect();
    for request in ours {
        ids.push(here.answer(request).unwrap()["entryId"].clone());
    }
    for request in theirs {
        ids.push(there.answer(request).unwrap()["entryId"].clone());
    }
    let text = String::from_utf8(until_equal(&machines, &session)).unwrap();
    for id in ids {
        let id = format!("\"id\":{id}");
        assert_eq!(text.matches(&id).count(), 1, "{id}");
    }
    // Both expect the same leaf, so only one append succeeds.
    let leaf = here.say(&session, "the leaf of both")["leafId"].clone();
    there.hears_of(leaf.as_str().unwrap());
    let moved = there.done("set_leaf", json!({ "sessionId": session, "leafId": leaf }));
    assert_eq!(moved["newLeafId"], leaf);
    let expecting = |text: &str| {
        let mut params = message(&session, text);
        params["expectedLeafId"] = leaf.clone();
        params
    };
    let ours = here.send("append_message", expecting("first"));
    let theirs = there.send("append_message", expecting("second"));
    let outcomes = [here.answer(ours), there.answer(theirs)];
    let refused: Vec<_> = outcomes
        .iter()
        .filter_map(|one| one.as_ref().err())
        .collect();
    assert_eq!(refused.len(), 1, "{outcomes:?}");
    assert_eq!(refused[0]["data"]["kind"], "leafMoved");
    assert!(
        !refused[0]["data"]["details"]["entries"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    here.end();
    there.end();
}

#[test]
fn a_daemon_moves_the_leaf_while_another_appends() {
    let Some((machines, [mut here, mut there], session)) = two(53) else {
        return;
    };
    let first = here.say(&session, "first")["entryId"].clone();
    here.say(&session, "second");
    there.hears_of(first.as_str().unwrap());
    let navigated = here.send(
        "navigate_tree",
        json!({ "sessionId": session, "targetId": first, "summarize": false }),
    );
    let said = there.send("append_message", message(&session, "meanwhile"));
    let navigated = here.answer(navigated).unwrap();
    assert_eq!(navigated["cancelled"], false);
    let said = there.answer(said).unwrap();
    here.hears_of(said["entryId"].as_str().unwrap());
    until_equal(&machines, &session);
    here.end();
    there.end();
}

/// The id of a session on another machine is taken, like the id of a file on this machine.
#[test]
fn an_id_of_another_machine_is_taken() {
    let Some((machines, [mut here, mut there], session)) = two(43) else {
        return;
    };
    here.say(&session, "mine");
    let text = until_equal(&machines, &session);
    there.done("close_session", json!({ "sessionId": session }));
    fs::remove_file(machines[1].path(&session)).unwrap();
    for more in [json!({ "write": "now" }), json!({ "name": "Taken" })] {
        let mut params = json!({ "sessionId": session, "cwd": "/c" });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        assert_eq!(there.kind("create_session", params), "sessionExists");
    }
    let opened = there.done("open_session", json!({ "sessionId": session }));
    assert_eq!(opened["session"]["entryCount"], 2);
    assert_eq!(until_equal(&machines, &session), text);
    here.end();
    there.end();
}

/// The file is a replica, so it can be made again, byte for byte.
#[test]
fn a_replica_that_was_deleted_is_copied_from_the_log_again() {
    let Some((machines, [mut here, there], session)) = two(54) else {
        return;
    };
    for number in 0..30 {
        here.say(&session, &format!("line {number}"));
    }
    let text = until_equal(&machines, &session);
    there.end();
    let path = machines[1].path(&session);
    fs::remove_file(&path).unwrap();
    let mut again = Daemon::start(&machines[1]);
    let opened = again.done("open_session", json!({ "sessionId": session }));
    assert_eq!(opened["session"]["entryCount"], 31);
    assert_eq!(machines[1].text(&session), text);
    assert_eq!(
        again.kind("open_session", json!({ "sessionId": "nowhere" })),
        "sessionNotFound"
    );
    here.end();
    again.end();
}

/// The daemon dies at random moments between the acknowledgement of the servers and the write to the file.
#[test]
fn every_answered_entry_is_there_after_the_daemon_was_killed() {
    let Some((machines, [mut here, there], session)) = two(55) else {
        return;
    };
    there.end();
    let mut answered = Vec::new();
    for round in 0..4 {
        for number in 0..10 {
            let said = here.say(&session, &format!("{round}.{number}"));
            answered.push(said["entryId"].as_str().unwrap().to_owned());
        }
        for number in 0..5 {
            here.send(
                "append_message",
                message(&session, &format!("unanswered {number}")),
            );
        }
        here.kill();
        here = Daemon::start(&machines[0]);
        here.done("open_session", json!({ "sessionId": session }));
    }
    let mut there = Daemon::start(&machines[1]);
    there.done("open_session", json!({ "sessionId": session }));
    let text = String::from_utf8(until_equal(&machines, &session)).unwrap();
    for id in answered {
        let id = format!("\"id\":\"{id}\"");
        assert_eq!(text.matches(&id).count(), 1, "{id}");
    }
    here.end();
    there.end();
}

/// A program that does not know of the team appends to the file. Its entries reach the other machines.
#[test]
fn entries_of_programs_that_know_no_log_are_published() {
    let Some((machines, [mut here, mut there], session)) = two(56) else {
        return;
    };
    here.say(&session, "before");
    let line = json!({
        "type": "message", "id": "foreign1", "parentId": null, "timestamp": "2026-01-02T03:04:05.000Z",
        "message": { "role": "user", "content": "by another program" },
    });
    machines[0].append_text(&session, &format!("{line}\n"));
    there.hears_of("foreign1");
    until_equal(&machines, &session);
    here.end();
    there.end();
}

/// Forks, names, and files from the time before the machine joined the team.
#[test]
fn forks_and_local_sessions_reach_the_log_when_they_are_open() {
    let Some((machines, [mut here, mut there], session)) = two(57) else {
        return;
    };
    let said = here.say(&session, "to fork")["entryId"].clone();
    here.say(&session, "more");
    let fork = here.done(
        "fork_session",
        json!({ "sessionId": session, "entryId": said, "position": "at" }),
    );
    assert_eq!(fork["durability"], "replicated");
    let fork = fork["session"]["sessionId"].as_str().unwrap().to_owned();
    there.done("open_session", json!({ "sessionId": fork }));
    until_equal(&machines, &fork);
    machines[0].make("local", 20, 100);
    here.done("open_session", json!({ "sessionId": "local" }));
    let opened = there.done("open_session", json!({ "sessionId": "local" }));
    assert_eq!(opened["session"]["entryCount"], 20);
    until_equal(&machines, "local");
    here.end();
    there.end();
}

/// Without servers, reads work. Writes fail, or wait in the file if the configuration says so.
#[test]
fn without_servers_reads_work_and_writes_fail_or_wait() {
    let Some(fleet) = Fleet::get(58) else { return };
    let fleet = fleet.with_stream();
    let config = |log: &str, offline: &str| fleet.section(log, offline);
    let machine = Machine::configured(&config(fleet.nowhere(), "refuse"));
    machine.make("trip", 5, 100);
    let mut daemon = Daemon::start(&machine);
    let opened = daemon.done("open_session", json!({ "sessionId": "trip" }));
    assert_eq!(opened["session"]["entryCount"], 5);
    let kind = daemon.kind("append_message", message("trip", "refused"));
    assert_eq!(kind, "logUnavailable");
    daemon.end();
    machine.configure(&config(fleet.nowhere(), "queue"));
    let mut daemon = Daemon::start(&machine);
    daemon.done("open_session", json!({ "sessionId": "trip" }));
    let said = daemon.say("trip", "on the way");
    assert_eq!(said["durability"], "queued");
    daemon.end();
    machine.configure(&config(&fleet.log(), "queue"));
    let mut daemon = Daemon::start(&machine);
    daemon.done("open_session", json!({ "sessionId": "trip" }));
    daemon.say("trip", "home again");
    until(|| queued(&mut daemon, "trip").is_null());
    let other = Machine::new(&fleet);
    let mut elsewhere = Daemon::start(&other);
    let opened = elsewhere.done("open_session", json!({ "sessionId": "trip" }));
    assert_eq!(opened["session"]["entryCount"], 7);
    assert_eq!(machine.text("trip"), other.text("trip"));
    daemon.end();
    elsewhere.end();
}

/// The leaf when a session is opened, and the tip of newer work beside it.
fn opened(daemon: &mut Daemon, session: &str) -> (String, Option<String>, Option<u64>) {
    let opened = daemon.done("open_session", json!({ "sessionId": session }));
    let found = opened["diagnostics"].as_array().into_iter().flatten();
    let beside: Vec<_> = found
        .filter(|it| it["kind"] == "leafBesideNewest")
        .collect();
    let tip = beside
        .first()
        .map(|it| it["newestTipId"].as_str().unwrap().to_owned());
    let turns = beside.first().and_then(|it| it["newerTurns"].as_u64());
    let leaf = opened["session"]["leafId"].as_str().unwrap();
    (leaf.to_owned(), tip, turns)
}

/// The next opening was at the entries of the other machine, and nothing said that one's own work was a branch.
#[test]
fn work_that_became_a_branch_is_opened_again() {
    let Some((machines, [mut here, mut there], session)) = two(96) else {
        return;
    };
    let id = |said: serde_json::Value| said["entryId"].as_str().unwrap().to_owned();
    let shared = id(here.say(&session, "shared"));
    there.hears_of(&shared);
    there.done(
        "set_leaf",
        json!({ "sessionId": session, "leafId": shared }),
    );
    let ours = id(here.say(&session, "ours"));
    there.hears_of(&ours);
    let theirs = id(there.say(&session, "theirs"));
    here.hears_of(&theirs);
    // The record is saved when the other machine has written. It was also saved when that machine had moved its leaf.
    until(|| {
        let path = machines[0].path(&session);
        let record = fs::read(format!("{}.replica", path.display())).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
        let (own, offset) = (record["own"].as_u64(), record["offset"].as_u64());
        own.is_some() && own < offset && offset == Some(fs::metadata(path).unwrap().len())
    });
    here.kill();
    let mut here = Daemon::start(&machines[0]);
    let (leaf, tip, turns) = opened(&mut here, &session);
    assert_eq!(
        (&leaf, tip.as_ref(), turns),
        (&ours, Some(&theirs), Some(1))
    );
    let leaf = here.done("get_leaf", json!({ "sessionId": session }));
    assert_eq!(leaf["diagnostics"][0]["newestTipId"], theirs);
    // To the machine that wrote last, and to a machine that has written nothing, the last line is the place.
    there.end();
    let third = Machine::with_log(machines[1].servers());
    let mut there = Daemon::start(&machines[1]);
    let mut third = Daemon::start(&third);
    for daemon in [&mut there, &mut third] {
        assert_eq!(opened(daemon, &session), (theirs.clone(), None, None));
    }
    third.end();
    // Whoever goes on below the place of another machine takes it along.
    here.done(
        "set_leaf",
        json!({ "sessionId": session, "leafId": theirs }),
    );
    let leaf = here.done("get_leaf", json!({ "sessionId": session }));
    assert!(leaf["diagnostics"].is_null(), "{leaf}");
    until_equal(&machines, &session);
    let below = id(there.say(&session, "below"));
    here.hears_of(&below);
    here.end();
    let mut here = Daemon::start(&machines[0]);
    assert_eq!(opened(&mut here, &session), (below, None, None));
    here.end();
    there.end();
}

/// Such a list was once empty without a reason.
#[test]
fn a_list_names_the_params_that_rows_of_the_team_cannot_answer() {
    let Some(fleet) = Fleet::get(103) else {
        return;
    };
    let fleet = fleet.with_stream();
    let [here, there] = [Machine::new(&fleet), Machine::new(&fleet)];
    let mut writer = Daemon::start(&here);
    let made = writer.done("create_session", json!({ "cwd": "/c", "name": "Shared" }));
    // A session is described after a commit.
    writer.say(made["session"]["sessionId"].as_str().unwrap(), "hello");
    let mut reader = Daemon::start(&there);
    until(|| {
        let list = reader.done("list_sessions", json!({}));
        list["team"][0]["name"] == "Shared" && list.get("teamDiagnostic").is_none()
    });
    for (params, name) in [
        (json!({ "tags": ["build"] }), "`tags`"),
        (json!({ "branch": "main" }), "`branch`"),
        (json!({ "source": "codex" }), "`source`"),
        (json!({ "spawnedBy": "s" }), "`spawnedBy`"),
        (json!({ "pinned": true }), "`pinned`"),
    ] {
        let list = reader.done("list_sessions", params);
        assert_eq!((&list["team"], &list["teamCount"]), (&json!([]), &json!(0)));
        let told = &list["teamDiagnostic"];
        assert_eq!(told["kind"], "invalidParams", "{name}");
        assert!(told["message"].as_str().unwrap().contains(name), "{told}");
    }
    writer.end();
    reader.end();
    let shown = there.run(&["list", "--all", "--tag", "build"]);
    let noted = String::from_utf8(shown.stderr).unwrap();
    assert!(noted.contains("the team's list is incomplete"), "{noted}");
    assert!(noted.contains("`tags`"), "{noted}");
    let shown = &there.done(&["list", "--all", "--tag", "build", "--json"])[0];
    assert!(shown["teamDiagnostic"]["message"].is_string(), "{shown}");
}

/// Rows of the team once had no first message, so a session without a name was an id alone.
#[test]
fn a_row_of_the_team_has_the_first_message() {
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let [here, there] = [server.machine(""), server.machine("")];
    here.until_sound(&["doctor", "--cluster", "--create"]);
    let (mut writer, mut reader) = (Daemon::start(&here), Daemon::start(&there));
    let made = writer.done("create_session", json!({ "cwd": "/c" }));
    let session = made["session"]["sessionId"].as_str().unwrap().to_owned();
    let long = format!(
        "Why is the build red? \"100 %\" C:\\x\n{}",
        "x".repeat(5000)
    );
    writer.say(&session, &long);
    writer.say(&session, "Another question");
    let of_file = writer.done("list_sessions", json!({}))["sessions"][0]["firstMessage"].clone();
    let of_file = of_file.as_str().unwrap();
    assert!(of_file.starts_with("Why is the build red?"), "{of_file}");
    until(|| {
        let row = reader.done("list_sessions", json!({}))["team"][0].clone();
        row["firstMessage"] == of_file && row.get("name").is_none()
    });
    for (query, is_found) in [
        ("BUILD red?", true),
        (&format!("Why {session} \"100 %\" C:\\X /c"), true),
        ("build 100_%", false),
        ("build firstmessage", false),
        ("another", false),
    ] {
        let found = reader.done("list_sessions", json!({ "query": query }));
        let team = found["team"].as_array().unwrap();
        assert_eq!(team.len(), usize::from(is_found), "{query}: {found}");
    }
    writer.end();
    reader.end();
    for args in [&["pull", "--list"][..], &["list", "--all"]] {
        let shown = String::from_utf8(there.run(args).stdout).unwrap();
        assert!(shown.contains("  Why is the build red?"), "{shown}");
    }
    let rows = there.done(&["pull", "--list", "--json"]);
    assert_eq!(rows[0]["firstMessage"], of_file);
    // A session without messages has none.
    here.make("empty", 0, 0);
    here.done(&["push", "empty", "--json"]);
    let rows = there.done(&["pull", "--list", "--json"]);
    let empty = rows.iter().find(|row| row["sessionId"] == "empty").unwrap();
    assert_eq!(
        (empty["entries"].clone(), empty.get("firstMessage")),
        (json!(0), None)
    );
}
