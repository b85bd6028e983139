//! Machines whose clocks are wrong.

use crate::daemon::Daemon;
use crate::live::until_equal;
use crate::support::{Fleet, Machine};
use serde_json::json;
use std::io::Write;
use std::process::Command;

/// Whether `faketime` is here. `TREELINED_FAKETIME=required` fails without it.
fn has_faketime() -> bool {
    let found = Command::new("faketime").arg("--version").output().is_ok();
    let is_required = std::env::var("TREELINED_FAKETIME").is_ok_and(|it| it == "required");
    assert!(found || !is_required, "faketime is missing");
    if !found {
        let why = "SKIPPED machines with wrong clocks: faketime is missing";
        let _ = writeln!(std::io::stderr(), "{why}");
    }
    found
}

/// The stream decides the order, and the clocks of the machines do not matter.
#[test]
fn machines_with_wrong_clocks_have_the_same_tree() {
    let Some(fleet) = Fleet::get(28).filter(|_| has_faketime()) else {
        return;
    };
    let fleet = fleet.with_stream();
    let machines = [Machine::new(&fleet), Machine::new(&fleet)];
    let mut late = Daemon::start_at(&machines[0], "-3y");
    let mut early = Daemon::start_at(&machines[1], "+3y");
    let made = late.done("create_session", json!({ "cwd": "/c" }));
    let session = made["session"]["sessionId"].as_str().unwrap().to_owned();
    early.done("open_session", json!({ "sessionId": session }));
    let mut said = Vec::new();
    for number in 0..4 {
        let (speaker, listener) = match number % 2 {
            0 => (&mut early, &mut late),
            _ => (&mut late, &mut early),
        };
        let answer = speaker.say(&session, &format!("entry {number}"));
        assert_eq!(answer["durability"], "replicated");
        let id = answer["entryId"].as_str().unwrap().to_owned();
        listener.hears_of(&id);
        said.push(id);
    }
    let text = String::from_utf8(until_equal(&machines, &session)).unwrap();
    let places: Vec<_> = said.iter().map(|id| text.find(id).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
    let entries = json!({ "sessionId": session });
    let [here, there] = [&mut late, &mut early].map(|one| one.done("get_entries", entries.clone()));
    assert_eq!(here["entries"], there["entries"]);
    let times: Vec<_> = here["entries"].as_array().unwrap().iter().collect();
    let years = times
        .iter()
        .map(|it| &it["timestamp"].as_str().unwrap()[..4]);
    let years: std::collections::HashSet<_> = years.collect();
    assert_eq!(years.len(), 2, "entries keep the times that they have");
    // The clock of the servers, not the clock of a machine, decides whether the other daemon still runs.
    let began = std::time::Instant::now();
    loop {
        let listed = late.done("list_sessions", json!({}));
        let log = &listed["sessions"][0]["log"];
        if log["openOn"].as_array().is_some_and(|open| open.len() == 1) {
            break;
        }
        assert!(began.elapsed().as_secs() < 60, "{listed}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    late.end();
    early.end();
}
