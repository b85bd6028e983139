//! Messages of other programs in the subject of a session. After one such message, `push`, `pull` and the daemons once
//! always failed with `logForeign`.

use crate::daemon::Daemon;
use crate::support::{Fleet, Machine, append};
use async_nats::HeaderMap;
use serde_json::json;

/// Publishes messages that this program does not write, one of each kind, to the subject of a session. `last` is the
/// last message of the session.
fn publish_foreign(fleet: &Fleet, session: &str) -> usize {
    let subject = format!("treelined.s.{session}");
    fleet.with(async |context| {
        let last = async || {
            let stream = context.get_stream("treelined").await.unwrap();
            let last = stream.get_last_raw_message_by_subject(&subject).await;
            last.map_or(0, |last| last.sequence).to_string()
        };
        let headers = |pairs: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, *value);
            }
            headers
        };
        let expected = "Nats-Expected-Last-Subject-Sequence";
        let other = "Nats-Expected-Last-Subject-Sequence-Subject";
        let hash = "0".repeat(64);
        let mut kinds = 0;
        for (with, lines) in [
            (vec![], "not a line"),
            // This line looks right, but it was not published with compare and set.
            (vec![("Treelined-Lines", "1")], "{}\n"),
            (vec![("Treelined-Lines", "2"), (expected, "last")], "{}\n"),
            (vec![("Treelined-Lines", "1"), (expected, "last")], "{}"),
            (vec![("Treelined-Lines", "x"), (expected, "last")], "{}\n"),
            (
                vec![
                    ("Treelined-Lines", "1"),
                    (expected, "0"),
                    (other, "treelined.s.nobody"),
                ],
                "{}\n",
            ),
            (
                vec![
                    ("Treelined-Lines", "1"),
                    (expected, "last"),
                    ("Treelined-Object", &hash),
                ],
                "{}\n",
            ),
        ] {
            let last = last().await;
            let with: Vec<(&str, &str)> = with
                .iter()
                .map(|(name, value)| (*name, if *value == "last" { &*last } else { *value }))
                .collect();
            let publish =
                context.publish_with_headers(subject.clone(), headers(&with), lines.into());
            publish.await.unwrap().await.unwrap();
            kinds += 1;
        }
        kinds
    })
}

#[test]
fn daemons_go_on_behind_messages_of_other_programs() {
    let Some(fleet) = Fleet::get(61) else { return };
    let fleet = fleet.with_stream();
    let machines = [Machine::new(&fleet), Machine::new(&fleet)];
    let [mut here, mut there] = [Daemon::start(&machines[0]), Daemon::start(&machines[1])];
    let made = here.done("create_session", json!({ "cwd": "/c", "name": "Shared" }));
    let session = made["session"]["sessionId"].as_str().unwrap().to_owned();
    there.done("open_session", json!({ "sessionId": session }));
    for round in 0..2 {
        publish_foreign(&fleet, &session);
        let said = here.say(&session, &format!("from here {round}"));
        assert_eq!(said["durability"], "replicated");
        there.hears_of(said["entryId"].as_str().unwrap());
        publish_foreign(&fleet, &session);
        let said = there.say(&session, &format!("from there {round}"));
        assert_eq!(said["durability"], "replicated");
        here.hears_of(said["entryId"].as_str().unwrap());
    }
    // The messages are after the last line. A new machine can append after them, and so can a machine that already has
    // a replica.
    publish_foreign(&fleet, &session);
    let third = Machine::new(&fleet);
    let mut late = Daemon::start(&third);
    late.done("open_session", json!({ "sessionId": session }));
    let said = late.say(&session, "from a third");
    here.hears_of(said["entryId"].as_str().unwrap());
    late.end();
    let text = crate::live::until_equal(&machines, &session);
    assert_eq!(text, third.text(&session));
    publish_foreign(&fleet, &session);
    let mut again = Daemon::start(&third);
    again.done("open_session", json!({ "sessionId": session }));
    assert_eq!(again.say(&session, "again")["durability"], "replicated");
    again.end();
    // With such messages after its last line, a deleted session stays deleted and can be restored.
    here.done("delete_session", json!({ "sessionId": session }));
    publish_foreign(&fleet, &session);
    let machine = Machine::new(&fleet);
    let mut newcomer = Daemon::start(&machine);
    let by_id = json!({ "sessionId": session });
    assert_eq!(
        newcomer.kind("open_session", by_id.clone()),
        "sessionDeleted"
    );
    here.done("restore_session", by_id.clone());
    here.done("open_session", by_id.clone());
    assert_eq!(here.say(&session, "back")["durability"], "replicated");
    newcomer.done("open_session", by_id);
    for daemon in [here, there, newcomer] {
        daemon.end();
    }
}

#[test]
fn push_and_pull_skip_messages_of_other_programs() {
    let Some(fleet) = Fleet::get(10) else { return };
    let fleet = fleet.with_stream();
    let (from, to) = (Machine::new(&fleet), Machine::new(&fleet));
    // In the subject of `s` these messages come before the header. The subject of `nothing` has only such messages.
    let kinds = publish_foreign(&fleet, "s");
    publish_foreign(&fleet, "nothing");
    let output = to.run(&["pull", "nothing"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("sessionNotFound"), "{said}");

    let path = from.make("s", 2, 10);
    for entries in 2..4 {
        from.done(&["push", "s", "--json"]);
        publish_foreign(&fleet, "s");
        to.done(&["pull", "s", "--json"]);
        assert_eq!(to.text("s"), from.text("s"));
        append(&path, entries..entries + 1, 10);
    }
    // Nothing is new, and the record beside the file names a position before or after these messages.
    for machine in [&from, &to] {
        publish_foreign(&fleet, "s");
        machine.done(&["push", "s", "--json"]);
        machine.done(&["pull", "s", "--json"]);
    }
    let newcomer = Machine::new(&fleet);
    newcomer.done(&["pull", "s", "--json"]);
    assert_eq!(newcomer.text("s"), from.text("s"));

    // Two of the kinds are not in the report: their lines are incomplete, but their headers are correct.
    let shown = from.run(&["doctor", "--cluster"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let expected = format!("{} messages of other programs", 6 * (kinds - 2));
    assert!(shown.contains(&expected), "{expected} is not in {shown}");
    assert!(
        shown.contains("of treelined.s.s: it has no number of lines"),
        "{shown}"
    );
}
