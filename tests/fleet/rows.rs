//! Teams with very many sessions on NATS: pages of the stream of rows. TREELINED_FLEET_SESSIONS is their number.

use crate::daemon::Daemon;
use crate::queue::until;
use crate::single::Single;
use crate::support::{lines, postgres};
use async_nats::jetstream;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SESSIONS: u64 = 300_000;
/// How often the row of one session is written after the others. This leaves as many places without a row.
const BUSY: u64 = 30_000;
/// The number of publishes that wait for their answers at the same time.
const AT_ONCE: usize = 2000;
/// How much more memory a daemon may take for a list.
const MEMORY: u64 = 50 << 20;

fn id(number: u64) -> String {
    format!("s{number:07}")
}

/// The row of a session of another machine. Every tenth is in the directory `/srv/0`.
fn row(number: u64, created: &Value) -> String {
    let modified = format!("2026-01-02T03:04:05.{:03}Z", number % 1000);
    let row = json!({
        "sessionId": id(number), "name": format!("The build of part {number}%"), "cwd": format!("/srv/{}", number % 10),
        "created": modified, "modified": modified, "entries": 3, "host": "build-7", "streamCreated": created, "sequence": 1,
    });
    row.to_string()
}

/// Writes the rows with these numbers, without the program.
async fn publish(
    context: &jetstream::Context,
    numbers: impl Iterator<Item = u64>,
    created: &Value,
) {
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let mut sent = Vec::new();
        for number in numbers.by_ref().take(AT_ONCE) {
            let subject = format!("treelined.r.{}", id(number));
            let row = row(number, created);
            sent.push(
                context
                    .publish(subject, row.into())
                    .await
                    .unwrap()
                    .into_future(),
            );
        }
        try_join_all(sent).await.unwrap();
    }
}

/// The time at which a stream was created, as the servers write it.
async fn created(client: &async_nats::Client) -> Value {
    let info = client.request("$JS.API.STREAM.INFO.treelined", "".into());
    let info: Value = serde_json::from_slice(&info.await.unwrap().payload).unwrap();
    info["created"].clone()
}

fn ids(page: &Value) -> Vec<String> {
    let rows = page["team"].as_array().unwrap().iter();
    rows.map(|row| row["sessionId"].as_str().unwrap().to_owned())
        .collect()
}

/// All pages of a list, and the reasons why pages may lack sessions.
fn pages(daemon: &mut Daemon, params: &Value) -> (Vec<String>, Vec<Value>) {
    let (mut all, mut reasons, mut params) = (Vec::new(), Vec::new(), params.clone());
    loop {
        let page = daemon.done("list_sessions", params.clone());
        // A list waits only 2 s for the servers.
        if page["teamDiagnostic"]["kind"] == "logUnavailable" {
            continue;
        }
        all.extend(ids(&page));
        reasons.extend(page.get("teamDiagnostic").cloned());
        params["teamCursor"] = page["nextTeamCursor"].clone();
        if params["teamCursor"].is_null() {
            return (all, reasons);
        }
    }
}

/// A list once had the newest 20,000 sessions alone, and no further pages.
#[test]
fn pages_of_a_stream_have_each_session_once() {
    if postgres().is_some() {
        return;
    }
    let Some(server) = Single::unsynced() else {
        return;
    };
    let sessions = std::env::var("TREELINED_FLEET_SESSIONS");
    let sessions = sessions.map_or(SESSIONS, |text| text.parse().unwrap());
    let [machine, other] = [server.machine(""), server.machine("")];
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    machine.make("here", 3, 10);
    machine.done(&["push", "here", "--json"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let began = Instant::now();
    runtime.block_on(async {
        let client = async_nats::connect(format!("127.0.0.1:{}", server.port));
        let client = client.await.unwrap();
        let created = created(&client).await;
        let context = jetstream::new(client);
        publish(&context, 0..sessions, &created).await;
        // The row of a busy session is replaced each time.
        publish(&context, (0..BUSY).map(|_| sessions), &created).await;
    });
    println!("{sessions} rows in {:?}", began.elapsed());

    let mut daemon = Daemon::start(&machine);
    daemon.done("list_sessions", json!({ "local": true }));
    let before = daemon.resident();
    let is_said = |reason: &Value| reason["kind"] == "responseTooLarge";
    let began = Instant::now();
    let mut first = daemon.done("list_sessions", json!({ "limit": 3 }));
    println!("the first page in {:?}", began.elapsed());
    // On a busy machine the time may be over in the places of the busy session.
    while ids(&first).len() < 3 {
        assert!(began.elapsed() < Duration::from_secs(60));
        first = daemon.done("list_sessions", json!({ "limit": 3 }));
    }
    // The session with a file here is not in `team`.
    assert_eq!(
        ids(&first),
        [id(sessions), id(sessions - 1), id(sessions - 2)]
    );
    assert_eq!(first["teamAtLeast"], true);
    // On a busy machine the time is over before 4,000 are counted.
    assert!(first["teamCount"].as_u64().unwrap() >= 1000);
    assert_eq!(first["sessions"][0]["log"]["stream"], "treelined");
    let reason = &first["teamDiagnostic"];
    assert!(reason.is_null() || is_said(reason), "{reason}");

    let began = Instant::now();
    let (all, reasons) = pages(&mut daemon, &json!({}));
    println!("all pages in {:?}", began.elapsed());
    // A page in the places of the busy session may not be full in time.
    assert!(reasons.iter().all(is_said), "{reasons:?}");
    let numbers: Vec<String> = (0..=sessions).rev().map(id).collect();
    assert!(
        all == numbers,
        "{} of {} sessions",
        all.len(),
        numbers.len()
    );
    let taken = daemon.resident().saturating_sub(before);
    println!("{} MiB", taken >> 20);
    assert!(taken <= MEMORY, "{taken} bytes");

    // A filter reads until a page is full, or until its time is over. Then it says so, and the next page goes on.
    let oldest = json!({ "query": "PART 0%" });
    let (found, reasons) = pages(&mut daemon, &oldest);
    assert_eq!(found.last(), Some(&id(0)));
    assert!(found.iter().all(|id| id.ends_with('0')), "{found:?}");
    assert!(reasons.iter().all(is_said), "{reasons:?}");
    let (found, _) = pages(
        &mut daemon,
        &json!({ "query": "/srv/0", "cwd": "/srv/0/", "limit": 1000 }),
    );
    let tens = (0..=sessions).rev().filter(|number| number % 10 == 0);
    assert!(found.iter().eq(tens.map(id).collect::<Vec<_>>().iter()));

    // A new session is at the beginning.
    other.make("new", 3, 10);
    other.done(&["push", "new", "--json"]);
    let began = Instant::now();
    while ids(&daemon.done("list_sessions", json!({ "limit": 2 }))) != ["new", &id(sessions)] {
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    daemon.end();

    let began = Instant::now();
    let listed = machine.done(&["pull", "--list", "--json"]);
    println!("pull --list in {:?}", began.elapsed());
    let listed = listed.iter().map(|row| row["sessionId"].as_str().unwrap());
    let unique: BTreeSet<&str> = listed.clone().collect();
    assert_eq!(
        (listed.count(), unique.len()),
        (all.len() + 2, all.len() + 2)
    );
    // The servers of a busy machine may be late.
    until(|| {
        let shown = machine.done(&["list", "--all", "--json", "--limit", "2500"]);
        shown[0]["team"].as_array().unwrap().len() == 2500
    });
    // The name is found; the session has no lines in this test.
    let pulled = machine.run(&["pull", "The build of part 77%", "--json"]);
    let pulled = &lines(&pulled)[0];
    assert_eq!(
        (&pulled["session"], &pulled["error"]["kind"]),
        (&json!(id(77)), &json!("sessionNotFound"))
    );
}

/// Sessions were pushed in the order of their folders, so the list of a new team had that order.
#[test]
fn a_push_of_all_sessions_lists_the_last_active_one_first() {
    if postgres().is_some() {
        return;
    }
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let machine = server.machine("");
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    let days = [("c", 3), ("a", 1), ("e", 5), ("b", 2), ("d", 4)];
    for (name, day) in days {
        let path = machine.make(name, 1, 10);
        let text = std::fs::read_to_string(&path).unwrap();
        let later = text.replace("2026-01-02", &format!("2026-02-0{day}"));
        std::fs::write(&path, later).unwrap();
    }
    machine.done(&["push", "--all", "--json"]);
    let listed = machine.done(&["pull", "--list", "--json"]);
    let listed = listed.iter().map(|row| row["sessionId"].as_str().unwrap());
    assert!(listed.eq(["e", "d", "c", "b", "a"]));
}

/// Sessions that no row describes come after all others.
#[test]
fn sessions_without_a_row_are_on_the_last_pages() {
    if postgres().is_some() {
        return;
    }
    let Some(server) = Single::start(|_| String::new()) else {
        return;
    };
    let [machine, other] = [server.machine(""), server.machine("")];
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    let names: Vec<String> = (0..7).map(|number| format!("bare{number}")).collect();
    for name in &names {
        other.make(name, 1, 10);
    }
    other.done(&["push", "--all", "--json"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(format!("127.0.0.1:{}", server.port));
        let client = client.await.unwrap();
        let context = jetstream::new(client.clone());
        let rows = context.get_stream("treelined-rows").await.unwrap();
        rows.purge().await.unwrap_err();
        // The streams of a team that has lost its rows.
        context.delete_stream("treelined-rows").await.unwrap();
        machine.until_sound(&["doctor", "--cluster", "--create"]);
        publish(&context, 0..5, &created(&client).await).await;
    });
    let mut daemon = Daemon::start(&machine);
    let mut expected: Vec<String> = (0..5).rev().map(id).collect();
    expected.extend(names.clone());
    for limit in [1, 2, 5, 6, 7, 100] {
        let (all, reasons) = pages(&mut daemon, &json!({ "limit": limit }));
        assert_eq!((all, reasons), (expected.clone(), Vec::new()), "{limit}");
    }
    let page = daemon.done("list_sessions", json!({ "limit": 2 }));
    assert_eq!(page["teamCount"], 12);
    assert_eq!(page.get("teamAtLeast"), None);
    let (found, _) = pages(&mut daemon, &json!({ "query": "bare3", "limit": 1 }));
    assert_eq!(found, ["bare3"]);
    daemon.end();
    let listed = machine.done(&["pull", "--list", "--json"]);
    let listed = listed.iter().map(|row| row["sessionId"].as_str().unwrap());
    assert!(listed.eq(expected.iter()));
}
