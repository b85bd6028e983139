//! Agents in several daemons write shared sessions while servers die and stop. Every append that was answered as
//! replicated is in the stream of the team once, and all replicas and trees are the same.
//!
//! `TREELINED_FLEET_LOAD=DAEMONS,AGENTS,SESSIONS,APPENDS` sets other numbers: daemons, agents of each daemon, shared
//! sessions, and appends of each agent. With `TREELINED_FLEET_KILLS=all`, a server is killed every five seconds, not
//! only once.

use crate::support::{Fleet, Machine};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use treelined_fleet::backend::LogBackend;
use treelined_fleet::backend::Position;

const ACCOUNT: usize = 26;
const LOAD: [usize; 4] = [2, 4, 4, 25];
/// Within this time every request is answered. An append may take five seconds, and waits for the appends before it.
const ANSWER: Duration = Duration::from_secs(300);
/// When the servers run again, the replicas are equal within this time.
const SETTLED: Duration = Duration::from_secs(180);
/// The errors after which an agent sends the same append again.
const PASSING: [&str; 6] = [
    "logUnavailable",
    "logConflict",
    "durabilityUnknown",
    "sessionLocked",
    "sessionBusy",
    "overloaded",
];

type Waiting = Arc<Mutex<HashMap<u64, mpsc::Sender<Value>>>>;

/// A daemon on stdio.
struct Daemon {
    machine: Machine,
    process: Child,
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    last_id: AtomicU64,
}

impl Daemon {
    fn start(fleet: &Fleet) -> Self {
        let machine = Machine::new(fleet);
        let mut process = machine
            .command(&["serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let waiting = Waiting::default();
        let output = BufReader::new(process.stdout.take().unwrap());
        let answered = Arc::clone(&waiting);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap();
                let id = message["id"].as_u64();
                let waiter = id.and_then(|id| answered.lock().unwrap().remove(&id));
                if let Some(waiter) = waiter {
                    // If the waiter has given up, its test has failed already.
                    let _sent = waiter.send(message);
                }
            }
        });
        Self {
            machine,
            input: Mutex::new(process.stdin.take().unwrap()),
            process,
            waiting,
            last_id: AtomicU64::new(0),
        }
    }

    /// The result of a request, or the kind of its error.
    fn ask(&self, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = mpsc::channel();
        self.waiting.lock().unwrap().insert(id, sender);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input.lock().unwrap(), "{request}").unwrap();
        let answer = answer.recv_timeout(ANSWER);
        let mut answer = answer.unwrap_or_else(|_| panic!("no answer to {request}"));
        match answer["error"].is_null() {
            true => Ok(answer["result"].take()),
            false => {
                let kind = answer["error"]["data"]["kind"].as_str();
                Err(kind.unwrap_or_else(|| panic!("{answer}")).to_owned())
            }
        }
    }

    /// Sends the request again after each of these errors. Returns the result and the errors.
    fn ask_until_done(&self, method: &str, params: &Value) -> (Value, Vec<String>) {
        let mut refusals = Vec::new();
        loop {
            match self.ask(method, params) {
                Ok(result) => return (result, refusals),
                Err(kind) => {
                    assert!(PASSING.contains(&&*kind), "{method} {params}: {kind}");
                    refusals.push(kind);
                    thread::sleep(Duration::from_millis(200));
                }
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn load() -> [usize; 4] {
    let Ok(given) = std::env::var("TREELINED_FLEET_LOAD") else {
        return LOAD;
    };
    let numbers: Vec<usize> = given
        .split(',')
        .map(|number| number.parse().unwrap())
        .collect();
    numbers.try_into().unwrap()
}

fn session(number: usize) -> String {
    format!("shared-{number}")
}

/// Disturbs the servers for one round, or as long as the agents append. Returns the number of rounds.
fn disturb(fleet: &Fleet, is_over: &AtomicBool) -> usize {
    let all = std::env::var("TREELINED_FLEET_KILLS").is_ok_and(|kills| kills == "all");
    thread::sleep(Duration::from_secs(1));
    fleet.disturb(|rounds| !is_over.load(Ordering::Relaxed) && (all || rounds == 0))
}

/// Makes the appends of one agent. Returns the sessions and ids that were answered as replicated, and the kinds of all
/// errors.
fn agent(daemon: &Daemon, name: &str, number: usize) -> (Vec<(String, String)>, Vec<String>) {
    let [_, _, sessions, appends] = load();
    let (mut replicated, mut refusals) = (Vec::new(), Vec::new());
    for count in 0..appends {
        let (session, id) = (
            session((number + count) % sessions),
            format!("{name}-{count}"),
        );
        let params = json!({
            "sessionId": session, "entryId": id, "message": { "role": "user", "content": format!("{name} says {count}") },
        });
        let (result, refused) = daemon.ask_until_done("append_message", &params);
        assert_eq!(result["durability"], "replicated", "{result}");
        replicated.push((session, id));
        refusals.extend(refused);
    }
    (replicated, refusals)
}

/// The lines of a session in the stream of the team.
fn log_of(log: &dyn LogBackend, session: &str) -> Vec<u8> {
    let began = Instant::now();
    loop {
        let parts = log.read(session, Position::START);
        let parts = parts.and_then(|parts| parts.collect::<Result<Vec<_>, _>>());
        match parts {
            Ok(parts) => return parts.into_iter().flat_map(|part| part.lines).collect(),
            Err(error) => assert!(began.elapsed() < SETTLED, "{error}"),
        }
    }
}

fn ids(lines: &[u8]) -> Vec<String> {
    let lines = lines.split(|byte| *byte == b'\n').skip(1);
    let lines = lines.filter(|line| !line.is_empty());
    let id = |line: &[u8]| {
        let line: Value = serde_json::from_slice(line).unwrap();
        line["id"].as_str().unwrap().to_owned()
    };
    lines.map(id).collect()
}

/// The entries of a session's tree by id. Each daemon has its own leaf, which decides the order of its rows.
fn tree(daemon: &Daemon, session: &str) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    loop {
        let page =
            json!({ "sessionId": session, "filter": "all", "limit": 1000, "offset": rows.len() });
        let page = daemon.ask("get_tree", &page).unwrap();
        for row in page["nodes"].as_array().unwrap() {
            let shape = json!([
                row["parentId"],
                row["childCount"],
                row["depth"],
                row["type"],
                row["preview"]
            ]);
            rows.insert(row["id"].as_str().unwrap().to_owned(), shape);
        }
        if page["nextCursor"].is_null() {
            return rows;
        }
    }
}

/// Compares each session in the stream with every file, and with what every daemon shows.
fn check(daemons: &[Daemon], log: &dyn LogBackend, replicated: &HashSet<(String, String)>) {
    let mut found = HashSet::new();
    for session in (0..load()[2]).map(session) {
        let text = log_of(log, &session);
        for id in ids(&text) {
            assert!(
                found.insert((session.clone(), id.clone())),
                "{session} has {id} twice"
            );
        }
        let entries = ids(&text).len();
        let trees = daemons.iter().map(|daemon| {
            let began = Instant::now();
            loop {
                let tree = tree(daemon, &session);
                if daemon.machine.text(&session) == text && tree.len() == entries {
                    return tree;
                }
                assert!(
                    began.elapsed() < SETTLED,
                    "the replica of {session} differs"
                );
                thread::sleep(Duration::from_millis(100));
            }
        });
        let trees: Vec<_> = trees.collect();
        for tree in &trees {
            assert_eq!(tree, &trees[0], "the trees of {session} differ");
        }
    }
    let lost: Vec<_> = replicated.difference(&found).take(5).collect();
    assert!(
        lost.is_empty(),
        "answered as replicated, and not in the log: {lost:?}"
    );
}

#[test]
fn agents_in_several_daemons_lose_nothing_while_servers_die_and_stop() {
    let Some(fleet) = Fleet::get(ACCOUNT) else {
        return;
    };
    let fleet = fleet.with_stream();
    let [daemons, agents, sessions, appends] = load();
    let daemons: Vec<Daemon> = (0..daemons).map(|_| Daemon::start(&fleet)).collect();
    for session in (0..sessions).map(session) {
        let new = json!({ "sessionId": session, "cwd": "/c", "write": "now" });
        daemons[0].ask_until_done("create_session", &new);
        for daemon in &daemons[1..] {
            daemon.ask_until_done("open_session", &json!({ "sessionId": session }));
        }
    }
    let is_over = AtomicBool::new(false);
    let (fleet, daemons, is_over) = (&fleet, &daemons, &is_over);
    let (outcomes, rounds) = thread::scope(|scope| {
        let disturbing = scope.spawn(|| disturb(fleet, is_over));
        let running: Vec<_> = (0..daemons.len() * agents)
            .map(|number| {
                let daemon = &daemons[number / agents];
                let name = format!("{}-{}", number / agents, number % agents);
                scope.spawn(move || agent(daemon, &name, number))
            })
            .collect();
        let outcomes: Vec<_> = running.into_iter().map(|agent| agent.join()).collect();
        // This is set before a failed agent ends the test, since the scope waits for the thread that disturbs the
        // servers.
        is_over.store(true, Ordering::Relaxed);
        (outcomes, disturbing.join().unwrap())
    });
    let (mut replicated, mut refusals) = (HashSet::new(), BTreeMap::<String, usize>::new());
    for outcome in outcomes {
        let (ids, refused) = outcome.unwrap();
        replicated.extend(ids);
        for kind in refused {
            *refusals.entry(kind).or_default() += 1;
        }
    }
    assert_eq!(replicated.len(), daemons.len() * agents * appends);
    check(daemons, &*fleet.engine(), &replicated);
    // `--nocapture` shows this output.
    eprintln!(
        "{} appends, {rounds} disturbances, refused: {refusals:?}",
        replicated.len()
    );
}
