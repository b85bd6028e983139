//! Many writers append to shared sessions while servers die and stop. Every acknowledged line is in the stream once,
//! and all readers see one order.

use crate::support::{self, Fleet, Machine};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::error::Kind;
use treelined_fleet::backend::AppendOutcome;
use treelined_fleet::backend::LogBackend;
use treelined_fleet::backend::Position;

const ACCOUNT: usize = 13;
const WRITERS: usize = 8;
const SESSIONS: usize = 4;
/// The number of acknowledged appends of each writer. `TREELINED_FLEET_APPENDS` sets another number.
const APPENDS: usize = 60;

/// The end of each session as a writer knows it.
type Ends = HashMap<String, Position>;

/// Reads until the end of the session is known. If the cluster has no leader, it tries again.
fn refresh(log: &dyn LogBackend, session: &str, from: Position) -> Position {
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

/// Appends a line that no other writer has, and tries again after each conflict. Returns the number of conflicts.
fn append(log: &dyn LogBackend, ends: &mut Ends, session: &str, line: &str) -> usize {
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
            // The outcome is unknown: the line may be in the stream. If it is, the next attempt at the same position
            // finds it.
            Err(error) => assert!(is_passing(error.kind), "{error}"),
        }
    }
}

/// Whether a later attempt may have another result.
fn is_passing(kind: Kind) -> bool {
    matches!(kind, Kind::LogUnavailable | Kind::DurabilityUnknown)
}

fn lines(log: &dyn LogBackend, session: &str) -> Vec<String> {
    let parts = loop {
        match log.read(session, Position::START) {
            Ok(parts) => break parts,
            Err(error) => assert!(is_passing(error.kind), "{error}"),
        }
    };
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
        let disturbing = scope.spawn(|| fleet.disturb(|_| !is_over.load(Ordering::Relaxed)));
        let writers = (0..WRITERS).map(|writer| {
            let (fleet, acknowledged) = (&fleet, Arc::clone(&acknowledged));
            scope.spawn(move || {
                let log = fleet.engine();
                let (mut ends, mut conflicts) = (Ends::new(), 0);
                for number in 0..appends {
                    let session = format!("shared-{}", (writer + number) % SESSIONS);
                    let line = format!("{{\"id\":\"{writer}-{number}\"}}");
                    conflicts += append(&*log, &mut ends, &session, &format!("{line}\n"));
                    acknowledged.lock().unwrap().push((session, line));
                }
                conflicts
            })
        });
        let writers: Vec<_> = writers.collect();
        let joined: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // This is set before a failed writer ends the test, since the scope waits for the thread that disturbs the
        // servers.
        is_over.store(true, Ordering::Relaxed);
        let rounds = disturbing.join().unwrap();
        let conflicts = joined.into_iter().map(Result::unwrap).sum::<usize>();
        (conflicts, rounds)
    });
    let readers = [fleet.engine(), fleet.engine()];
    let mut found = HashSet::new();
    for session in (0..SESSIONS).map(|number| format!("shared-{number}")) {
        let of = lines(&*readers[0], &session);
        assert_eq!(of, lines(&*readers[1], &session), "one order for all");
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

/// The data of all servers is replaced by a copy from some lines before, as when a backup is restored.
#[test]
fn a_stream_that_is_restored_from_an_older_backup_is_noticed_and_filled_again_by_a_push() {
    let Some(fleet) = Fleet::get(23) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    let path = laptop.make("s", 5, 100);
    laptop.done(&["push", "s", "--json"]);
    let all = |action: &str| (1..=3).for_each(|node| fleet.node(action, node));
    let between = |action: &str| {
        all("kill");
        (1..=3).for_each(|node| fleet.data(action, node));
        all("restart");
        // Reading ends only when the servers have a leader.
        assert_eq!(lines(&fleet.open(), "other"), [""; 0]);
    };
    between("save");
    support::append(&path, 5..8, 100);
    laptop.until_sound(&["push", "s", "--json"]);
    let before = laptop.text("s");
    between("restore");
    let began = Instant::now();
    let mut kind = laptop.kind(&["pull", "s", "--json"]);
    while kind == "logUnavailable" {
        assert!(began.elapsed() < Duration::from_secs(120));
        kind = laptop.kind(&["pull", "s", "--json"]);
    }
    assert_eq!(kind, "logRewound");
    assert_eq!(laptop.text("s"), before);
    // This is a daemon that knows a later end of the session.
    let log = fleet.open();
    let end = lines(&log, "s").len() as u64;
    let lost = log.read("s", Position(end + 1000)).err().unwrap();
    assert_eq!(lost.kind, Kind::LogRewound);
    laptop.until_sound(&["push", "s", "--json"]);
    assert_eq!(laptop.text("s"), before);
    let office = Machine::new(&fleet);
    office.until_sound(&["pull", "s", "--json"]);
    assert_eq!(office.text("s"), before);
}

/// Stopped servers do not answer an append, so its outcome is unknown. Nothing is sent to dead servers, so the line
/// cannot be there.
#[test]
fn an_append_without_an_answer_says_whether_its_line_may_be_there() {
    let Some(fleet) = Fleet::get(14) else { return };
    let fleet = fleet.with_stream();
    let log = fleet.open().with_append_time(Duration::from_secs(5));
    let mut ends = Ends::new();
    append(&log, &mut ends, "s", "{\"id\":\"first\"}\n");
    let end = ends["s"];
    let all = |action: &str| (1..=3).for_each(|node| fleet.node(action, node));

    all("pause");
    let began = Instant::now();
    let stopped = log.append("s", end, b"{\"id\":\"stopped\"}\n");
    all("resume");
    assert_eq!(stopped.unwrap_err().kind, Kind::DurabilityUnknown);
    assert!(began.elapsed() < Duration::from_secs(60));
    append(&log, &mut ends, "s", "{\"id\":\"stopped\"}\n");

    all("kill");
    let mut dead = 0;
    loop {
        let line = format!("{{\"id\":\"dead-{dead}\"}}\n");
        let kind = log
            .append("s", ends["s"], line.as_bytes())
            .unwrap_err()
            .kind;
        if kind == Kind::LogUnavailable {
            break;
        }
        // In this case the client had not noticed that the servers are dead.
        assert_eq!(kind, Kind::DurabilityUnknown);
        dead += 1;
    }
    all("restart");
    refresh(&log, "s", ends["s"]);
    let found = lines(&log, "s").concat();
    assert_eq!(found.matches("first").count(), 1);
    assert_eq!(found.matches("stopped").count(), 1);
    assert!(!found.contains(&format!("dead-{dead}")), "{found}");
}

/// `doctor` once printed nothing for ten seconds, and did not name a dead server if the leader of the stream had not
/// noticed its death.
#[test]
fn a_node_that_has_died_is_named_at_once() {
    let Some(fleet) = Fleet::get(62) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    let doctor = |dead: &[usize]| {
        let output = machine.run(&["doctor", "--cluster"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        let first = said.lines().next().unwrap();
        let silent = first.matches(" does not answer").count();
        assert_eq!(silent, dead.len(), "{said}");
        for node in 1..=3 {
            let answers = first.contains(&format!("node{node} answers"));
            assert_eq!(answers, !dead.contains(&node), "{said}");
        }
        (said, String::from_utf8(output.stderr).unwrap())
    };
    // Until there is another leader, no server answers for the stream.
    let leader = fleet.leader();
    fleet.node("kill", leader);
    let (said, error) = doctor(&[leader]);
    for fact in [
        "2 of 3 servers answer: appends fail if one more does not".to_owned(),
        format!("node{leader} does not answer"),
        format!("node{leader} (nats://127.0.0.1"),
    ] {
        assert!(said.contains(&fact), "{fact}: {said}{error}");
    }
    // The last server may still count itself as a part of the majority. If it does not, the first line is printed too.
    let other = leader % 3 + 1;
    fleet.node("kill", other);
    let (said, error) = doctor(&[leader, other]);
    let fails = "appends fail: 1 of 3 servers answer, and 2 must";
    assert!(
        said.contains(fails) || error.contains("logUnavailable"),
        "{said}{error}"
    );
    for node in [leader, other] {
        fleet.node("restart", node);
    }
    machine.until_sound(&["doctor", "--cluster"]);
}

/// Without any server, `doctor` once took ten seconds.
#[test]
fn servers_that_are_away_are_all_named() {
    let machine = Machine::with_log("nats://127.0.0.1:1,nats://127.0.0.1:2".to_owned());
    let output = machine.run(&["doctor", "--cluster"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    for address in ["nats://127.0.0.1:1", "nats://127.0.0.1:2"] {
        assert!(
            said.contains(&format!("{address} does not answer")),
            "{said}"
        );
    }
}
