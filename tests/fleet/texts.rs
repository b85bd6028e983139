//! The search of all sessions of a team (schema/fleet.md "Search").

use crate::daemon::Daemon;
use crate::queue::until;
use crate::support::{Fleet, Machine, postgres};
use serde_json::{Value, json};

/// The answer to a question to the team.
fn ask(daemon: &mut Daemon, query: &str, cwd: Option<&str>) -> Value {
    daemon.done(
        "search",
        json!({ "query": query, "mode": "ask", "team": true, "cwd": cwd }),
    )
}

/// The sessions of the hits.
fn found(daemon: &mut Daemon, query: &str) -> Vec<String> {
    let answer = ask(daemon, query, None);
    let hits = answer["hits"].as_array().unwrap().iter();
    hits.map(|hit| hit["sessionId"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_question_finds_the_sessions_of_all_machines() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(97) else { return };
    let fleet = fleet.with_stream();
    let [laptop, office] = [(); 2].map(|()| Machine::new(&fleet));
    let mut here = Daemon::start(&laptop);
    for (session, cwd, text) in [
        (
            "cache",
            "/srv/build",
            "The build cache failed since its key lacks the target",
        ),
        (
            "limit",
            "/srv/web",
            "The rate limit of the server counts each request",
        ),
    ] {
        here.done(
            "create_session",
            json!({ "cwd": cwd, "sessionId": session }),
        );
        here.say(session, text);
    }
    let mut there = Daemon::start(&office);
    until(|| {
        let answer = ask(&mut there, "why did the build caches fail", None);
        answer["totals"]["unread"].is_null() && answer["hits"] != json!([])
    });
    let answer = ask(&mut there, "why did the build caches fail", None);
    let hit = &answer["hits"][0];
    assert_eq!(
        (&hit["sessionId"], &hit["author"]),
        (&json!("cache"), &json!("t97"))
    );
    assert!(hit["snippet"].as_str().unwrap().contains("build cache"));
    // The sessions have no names. Their title was once empty, which the command showed as "(no messages)".
    let said = "The build cache failed since its key lacks the target";
    until(|| {
        let answer = ask(&mut there, "why did the build caches fail", None);
        answer["hits"][0]["sessionName"] == said
    });
    let shown = office.run(&["ask", "--team", "build caches"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(
        shown.contains(said) && !shown.contains("no messages"),
        "{shown}"
    );
    // This machine has no file of them, but the team has sessions.
    let listed = office.run(&["list", "--all"]);
    let note = String::from_utf8(listed.stderr).unwrap();
    assert!(note.contains("no sessions on this machine"), "{note}");
    assert!(!note.contains("treelined import"), "{note}");
    assert!(String::from_utf8(listed.stdout).unwrap().contains("limit"));
    assert_eq!(answer["totals"]["sessions"], 1);
    // A hit is in a session that can be opened, although no file of it is here.
    there.done("open_session", json!({ "sessionId": "cache" }));
    let entry = there.done(
        "get_entry",
        json!({ "sessionId": "cache", "entryId": hit["entryId"] }),
    );
    assert_eq!(entry["entry"]["id"], hit["entryId"]);

    // Not all words are in one entry.
    let mut both = found(&mut there, "cache limit");
    both.sort();
    assert_eq!(both, ["cache", "limit"]);
    assert_eq!(found(&mut there, "elephant"), [""; 0]);
    let of = |daemon: &mut Daemon, cwd| ask(daemon, "rate limit", Some(cwd))["hits"].clone();
    // The directory is in the row of the list, which follows the append.
    until(|| of(&mut there, "/srv")[0]["sessionId"] == "limit");
    assert_eq!(of(&mut there, "/srv/build"), json!([]));
    let words = json!({ "query": "cache", "team": true });
    assert_eq!(there.kind("search", words), "invalidParams");
    let hits = office.done(&["ask", "--team", "--json", "rate limit"]);
    assert_eq!(hits[0]["sessionId"], "limit");

    here.done("delete_session", json!({ "sessionId": "cache" }));
    until(|| found(&mut there, "build cache").is_empty());
    here.done("restore_session", json!({ "sessionId": "cache" }));
    until(|| found(&mut there, "build cache") == ["cache"]);
    here.done("open_session", json!({ "sessionId": "cache" }));
    here.say("cache", "A longer key of the build cache");
    until(|| found(&mut there, "longer key") == ["cache"]);
    here.done("erase_session", json!({ "sessionId": "limit" }));
    assert_eq!(found(&mut there, "rate limit"), [""; 0]);
    let left = "SELECT count(*) FROM treelined.texts WHERE session = 'limit'";
    assert_eq!(fleet.sql(&[left]), "0");
}

const PANGOLIN: &str = r#"{"type":"message","id":"last","parentId":null,"timestamp":"2026-11-22T08:16:21.595Z","message":{"role":"user","content":"the last word is pangolin"}}"#;

/// Many lines, so that they are added and found in several parts.
#[test]
fn a_session_that_was_pushed_is_searched_too() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(98) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    machine.make("long", 1200, 10);
    machine.append_text("long", &format!("{PANGOLIN}\n"));
    machine.done(&["push", "long", "--json"]);
    let reader = Machine::with_log(fleet.reader());
    let mut daemon = Daemon::start(&reader);
    let answer = ask(&mut daemon, "pangolin", None);
    assert_eq!(
        (&answer["hits"], &answer["totals"]["unread"]),
        (&json!([]), &json!(1))
    );
    let mut member = Daemon::start(&machine);
    member.done("list_sessions", json!({}));
    until(|| found(&mut daemon, "pangolin") == ["long"]);
    let count = "SELECT count(*) FROM treelined.texts WHERE session = 'long'";
    let last = "SELECT last FROM treelined.sessions";
    assert_eq!(fleet.sql(&[count]), fleet.sql(&[last]));
}

#[test]
fn streams_are_not_searched() {
    if postgres().is_some() {
        return;
    }
    let Some(fleet) = Fleet::get(26) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    let mut daemon = Daemon::start(&machine);
    // Until the daemon is connected, it does not know whether the servers can search.
    let mut ask = || {
        let params = json!({ "query": "cache", "mode": "ask", "team": true });
        let id = daemon.send("search", params);
        daemon.answer(id).unwrap_err()
    };
    let mut error = Value::Null;
    until(|| {
        error = ask();
        error["data"]["kind"] != "logUnavailable"
    });
    assert_eq!(error["data"]["kind"], "invalidParams");
    assert!(
        error["message"].as_str().unwrap().contains("pull"),
        "{error}"
    );
}
