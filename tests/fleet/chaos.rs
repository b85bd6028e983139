//! Many writers on shared sessions while nodes die and stop: every acknowledged line is there once, in one order.

use crate::support::{Fleet, Machine};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use treelined::internals::fleet::{AppendOutcome, LogBackend, NatsLog, Position};
use treelined::internals::{Kind, NatsSettings};

const ACCOUNT: usize = 13;
const WRITERS: usize = 8;
const SESSIONS: usize = 4;
/// Acknowledged appends of each writer; `TREELINED_FLEET_APPENDS` sets another number.
const APPENDS: usize = 60;

/// The end of each session as a writer knows it.
type Ends = HashMap<String, Position>;

fn open(fleet: &Fleet) -> NatsLog {
    let servers = fleet.log().split(',').map(str::to_owned).collect();
    let settings = NatsSettings::of_servers(servers);
    loop {
        match NatsLog::open(settings.clone()) {
            Ok(log) => return log,
            Err(error) => assert_eq!(error.kind, Kind::LogUnavailable, "{error}"),
        }
    }
}

/// Reads on until the end is known; a cluster without a leader is asked again.
fn refresh(log: &NatsLog, session: &str, from: Position) -> Position {
    let mut end = from;
    loop {
        let read = log.read(session, end).and_then(|parts| {
            for part in parts {
                end = part?.end;
            }
            Ok(())
        });
        match read {
            Ok(()) => return end,
            Err(error) => assert_eq!(error.kind, Kind::LogUnavailable, "{error}"),
        }
    }
}

/// Appends a line that nobody else writes, after as many conflicts as it takes. Returns the number of conflicts.
fn append(log: &NatsLog, ends: &mut Ends, session: &str, line: &str) -> usize {
    let mut conflicts = 0;
    let end = ends.entry(session.to_owned()).or_insert(Position::START);
    loop {
        match log.append(session, *end, line.as_bytes()) {
            Ok(AppendOutcome::Appended(at)) => {
                *end = at;
                return conflicts;
            }
            Ok(AppendOutcome::Conflict) => {
                conflicts += 1;
                *end = refresh(log, session, *end);
            }
            // The outcome is unknown: the line may be there. The next attempt at the same place finds it.
            Err(error) => assert_eq!(error.kind, Kind::LogUnavailable, "{error}"),
        }
    }
}

/// Kills one node, stops another, and lets both go on, again and again.
fn disturb(fleet: &Fleet, is_over: &AtomicBool) -> usize {
    let mut rounds = 0;
    while !is_over.load(Ordering::Relaxed) {
        let node = rounds % 3 + 1;
        let (stop, go_on) = match rounds % 2 {
            0 => ("kill", "restart"),
            _ => ("pause", "resume"),
        };
        fleet.node(stop, node);
        thread::sleep(Duration::from_secs(2));
        fleet.node(go_on, node);
        thread::sleep(Duration::from_secs(3));
        rounds += 1;
    }
    rounds
}

fn lines(log: &NatsLog, session: &str) -> Vec<String> {
    let parts = log.read(session, Position::START).unwrap();
    let parts = parts.map(|part| String::from_utf8(part.unwrap().lines).unwrap());
    parts
        .flat_map(|part| part.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn every_acknowledged_line_is_there_once_and_in_one_order_while_nodes_die_and_stop() {
    let Some(fleet) = Fleet::get(ACCOUNT) else {
        return;
    };
    let fleet = fleet.with_stream();
    let appends = std::env::var("TREELINED_FLEET_APPENDS").ok();
    let appends = appends.map_or(APPENDS, |number| number.parse().unwrap());
    let acknowledged: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let is_over = AtomicBool::new(false);
    let (conflicts, rounds) = thread::scope(|scope| {
        let disturbing = scope.spawn(|| disturb(&fleet, &is_over));
        let writers = (0..WRITERS).map(|writer| {
            let (fleet, acknowledged) = (&fleet, Arc::clone(&acknowledged));
            scope.spawn(move || {
                let log = open(fleet);
                let (mut ends, mut conflicts) = (Ends::new(), 0);
                for number in 0..appends {
                    let session = format!("shared-{}", (writer + number) % SESSIONS);
                    let line = format!("{{\"id\":\"{writer}-{number}\"}}");
                    conflicts += append(&log, &mut ends, &session, &format!("{line}\n"));
                    acknowledged.lock().unwrap().push((session, line));
                }
                conflicts
            })
        });
        let writers: Vec<_> = writers.collect();
        let joined: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // Before a failed writer ends the test: the scope waits for the disturbance.
        is_over.store(true, Ordering::Relaxed);
        let rounds = disturbing.join().unwrap();
        let conflicts = joined.into_iter().map(Result::unwrap).sum::<usize>();
        (conflicts, rounds)
    });
    let readers = [open(&fleet), open(&fleet)];
    let mut found = HashSet::new();
    for session in (0..SESSIONS).map(|number| format!("shared-{number}")) {
        let of = lines(&readers[0], &session);
        assert_eq!(of, lines(&readers[1], &session), "one order for all");
        for line in of {
            assert!(
                found.insert((session.clone(), line.clone())),
                "{session} has {line} twice"
            );
        }
    }
    let acknowledged: HashSet<(String, String)> = acknowledged.lock().unwrap().drain(..).collect();
    assert_eq!(acknowledged.len(), WRITERS * appends);
    assert_eq!(
        found, acknowledged,
        "rounds {rounds}, conflicts {conflicts}"
    );
    assert!(
        conflicts > 0 && rounds > 0,
        "rounds {rounds}, conflicts {conflicts}"
    );
}

/// The leader is killed while lines are on their way to it.
#[test]
fn a_push_outlives_the_leader_of_the_stream() {
    let Some(fleet) = Fleet::get(5) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    laptop.make("steady", 600, 100_000);
    let leader = fleet.leader();
    thread::scope(|scope| {
        let pushing = scope.spawn(|| laptop.done(&["push", "--all", "--json"]));
        thread::sleep(Duration::from_millis(100));
        fleet.node("kill", leader);
        let pushed = pushing.join();
        fleet.node("restart", leader);
        assert_eq!(pushed.unwrap()[0]["lines"], 601);
    });
    let server = Machine::new(&fleet);
    assert_eq!(server.done(&["pull", "steady", "--json"])[0]["lines"], 601);
    assert_eq!(server.text("steady"), laptop.text("steady"));
}
