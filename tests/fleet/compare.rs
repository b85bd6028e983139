//! Compare and set: of two writers that expect the same end of a session, only one appends. NATS 2.9.10 of Debian fails
//! this test in 10 to 50 % of the rounds; `TREELINED_NATS_SERVER=PATH FLEET_SYNC=none tests/fleet/run compare::` shows
//! it.

use crate::single::program;
use crate::support::{Fleet, Machine};
use async_nats::HeaderMap;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Context};
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use treelined_fleet::backend::AppendOutcome;
use treelined_fleet::backend::LogBackend;
use treelined_fleet::backend::Position;

const ROUNDS: usize = 200;

/// The position of the line, or why it was refused.
async fn append(context: &Context, expected: u64, line: String) -> Result<u64, String> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string());
    headers.insert("Nats-Msg-Id", line.trim());
    let sent = context.publish_with_headers("treelined.s.s", headers, line.into());
    let acknowledged = sent.await.unwrap().await;
    match acknowledged {
        Ok(acknowledged) => Ok(acknowledged.sequence),
        Err(error) => Err(format!("{error:?}")),
    }
}

/// This test does not use `treelined`, which refuses servers that fail it.
#[test]
fn of_two_writers_at_one_place_one_appends() {
    let Some(fleet) = Fleet::get(24) else { return };
    let (both, neither, last) = fleet.with(async |context| {
        let config = Config {
            name: "treelined".to_owned(),
            subjects: vec!["treelined.s.*".to_owned()],
            num_replicas: 3,
            ..Config::default()
        };
        context.create_stream(config).await.unwrap();
        let other = jetstream::new(fleet.connect(1).await);
        let (mut end, mut both, mut neither, mut last) = (0, 0, 0, String::new());
        for round in 0..ROUNDS {
            let (one, two) = tokio::join!(
                append(&context, end, format!("1-{round}\n")),
                append(&other, end, format!("2-{round}\n"))
            );
            match (one, two) {
                (Ok(one), Ok(two)) => {
                    both += 1;
                    end = one.max(two);
                }
                (Ok(at), Err(_)) | (Err(_), Ok(at)) => end = at,
                (Err(why), Err(_)) => {
                    neither += 1;
                    last = why;
                }
            }
        }
        (both, neither, last)
    });
    assert_eq!(both, 0, "rounds of {ROUNDS} in which both appended");
    assert!(neither < ROUNDS / 2, "refused {neither} times: {last}");
}

/// Like the test above, with `treelined`, which waits until the line of the other writer is stored.
#[test]
fn two_writers_of_one_session_both_go_on() {
    let Some(fleet) = Fleet::get(27) else { return };
    let fleet = fleet.with_stream();
    let logs = [fleet.open(), fleet.open()];
    let mut end = Position::START;
    for round in 0..ROUNDS {
        let start = Barrier::new(logs.len());
        let append = |writer: usize| {
            let line = format!("{{\"id\":\"{writer}-{round}\"}}\n");
            start.wait();
            logs[writer].append("s", end, line.as_bytes()).unwrap()
        };
        let outcomes = thread::scope(|scope| {
            let other = scope.spawn(|| append(1));
            [append(0), other.join().unwrap()]
        });
        let ends = outcomes.iter().filter_map(|outcome| match outcome {
            AppendOutcome::Appended(end) => Some(*end),
            AppendOutcome::Conflict => None,
        });
        let ends: Vec<Position> = ends.collect();
        assert_eq!(ends.len(), 1, "{outcomes:?}");
        end = ends[0];
    }
    let parts = logs[0].read("s", Position::START).unwrap();
    assert_eq!(parts.map(Result::unwrap).count(), ROUNDS);
}

/// A server that appends for both writers mixes up sessions.
#[test]
fn a_server_that_is_too_old_is_refused() {
    let Some(fleet) = Fleet::get(25) else { return };
    let version = Command::new(program()).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    if !version.contains("v2.9.") {
        return;
    }
    let machine = Machine::new(&fleet);
    machine.run(&["doctor", "--cluster", "--create"]);
    let report = machine.run(&["doctor", "--cluster"]);
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("too old"), "{report}");
    machine.make("s", 1, 10);
    assert_eq!(machine.kind(&["push", "s"]), "logMisconfigured");
}
