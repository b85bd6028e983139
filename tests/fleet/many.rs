//! Teams with very many sessions on PostgreSQL: pages of the list, and tables of an earlier version.

use crate::daemon::Daemon;
use crate::support::{Fleet, Machine, append, postgres};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DESCRIBED: usize = 10_500;
const BARE: usize = 300;

/// Sessions of other machines. Every tenth is in the directory `/srv/0`; the others are in nine other directories.
fn make(fleet: &Fleet) {
    let sessions = format!(
        "INSERT INTO treelined.sessions (id, last, batch)
        SELECT 's' || lpad(number::text, 6, '0'), 3, gen_random_uuid() FROM generate_series(1, {}) AS number",
        DESCRIBED + BARE
    );
    let rows = format!(
        "SELECT count(treelined.describe('s' || lpad(number::text, 6, '0'), 3, json_build_object(
            'sessionId', 's' || lpad(number::text, 6, '0'), 'name', 'The build of part ' || number || '%',
            'cwd', '/srv/' || number % 10, 'created', '2026-01-01T00:00:00.000Z', 'entries', 3, 'host', 'build-7',
            'modified', to_char('2026-01-01'::timestamp + number * interval '7 s', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),
            'streamCreated', (SELECT to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM treelined.team),
            'sequence', 3)::text)) FROM generate_series(1, {DESCRIBED}) AS number"
    );
    fleet.sql(&[&sessions, &rows]);
}

fn ids(page: &Value) -> Vec<String> {
    let rows = page["team"].as_array().unwrap().iter();
    rows.map(|row| row["sessionId"].as_str().unwrap().to_owned())
        .collect()
}

/// The list once kept 12 MiB of rows, and said of the other sessions only that there are more.
#[test]
fn a_list_of_very_many_sessions_has_pages() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(99) else { return };
    let fleet = fleet.with_stream();
    make(&fleet);
    let machine = Machine::new(&fleet);
    machine.make("newest", 3, 10);
    machine.done(&["push", "newest", "--json"]);
    let mut daemon = Daemon::start(&machine);
    let first = daemon.done("list_sessions", json!({ "limit": 3 }));
    let newest: Vec<String> = (DESCRIBED - 2..=DESCRIBED)
        .rev()
        .map(|number| format!("s{number:06}"))
        .collect();
    // The session with a file here is not in `team`.
    assert_eq!(ids(&first), newest);
    assert_eq!(
        (&first["teamCount"], &first["teamAtLeast"]),
        (&json!(10_000), &json!(true))
    );
    assert_eq!(first["sessions"][0]["log"]["stream"], "t99");
    assert_eq!(first["teamDiagnostic"], Value::Null);

    let mut all = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = daemon.done("list_sessions", json!({ "teamCursor": cursor }));
        all.extend(ids(&page));
        assert!(cursor.is_null() || page["sessions"] == json!([]));
        cursor = page["nextTeamCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let unique: BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), unique.len()), (DESCRIBED + BARE, all.len()));
    assert_eq!(all[..3], newest);
    assert_eq!(all.last().unwrap(), &format!("s{:06}", DESCRIBED + BARE));

    for (params, count, found) in [
        (json!({ "cwd": "/srv/0/" }), 1050, "s010500"),
        (json!({ "query": "PART 9999%" }), 1, "s009999"),
        (json!({ "query": "part 99_9" }), 0, ""),
        (json!({ "query": "s010700" }), 1, "s010700"),
        (json!({ "named": false }), 0, ""),
        (json!({ "source": "codex" }), 0, ""),
    ] {
        let page = daemon.done("list_sessions", params.clone());
        assert_eq!(page["teamCount"], count, "{params}");
        let first = ids(&page).into_iter().next();
        assert_eq!(first.unwrap_or_default(), found, "{params}");
    }
    daemon.end();
    let listed = machine.done(&["pull", "--list", "--json"]);
    assert_eq!(listed.len(), DESCRIBED + BARE + 1);
    // The name is found; the session has no lines in this test.
    assert_eq!(
        machine.kind(&["pull", "The build of part 77%", "--json"]),
        "logRewound"
    );
}

/// Tables of an earlier version, as long as nobody brings them to the newest one.
#[test]
fn tables_of_an_earlier_version_take_appends() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(100) else { return };
    let fleet = fleet.with_stream();
    fleet.sql(&[
        "DROP SCHEMA treelined CASCADE",
        include_str!("../../src/fleet/postgres/schema/1.sql"),
        include_str!("../../src/fleet/postgres/schema/2.sql"),
        "GRANT USAGE ON SCHEMA treelined TO t100_member",
        "GRANT SELECT ON ALL TABLES IN SCHEMA treelined TO t100_member",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA treelined TO t100_member",
    ]);
    let machine = Machine::new(&fleet);
    machine.make("s", 3, 10);
    machine.done(&["push", "s", "--json"]);
    append(&machine.path("s"), 3..4, 10);
    machine.done(&["push", "s", "--json"]);
    let mut daemon = Daemon::start(&machine);
    let list = daemon.done("list_sessions", json!({}));
    let why = list["teamDiagnostic"]["message"].as_str().unwrap();
    assert!(why.contains("doctor --cluster --create"), "{why}");
    daemon.end();

    let fleet = fleet.with_stream();
    let elsewhere = Machine::new(&fleet);
    let listed = elsewhere.done(&["pull", "--list", "--json"]);
    assert_eq!(listed[0]["sessionId"], "s");
}

/// Without the tables of the list, `pull --list` has the ids alone.
#[test]
fn a_list_without_its_tables_has_the_ids_of_all_sessions() {
    if postgres().is_none() {
        return;
    }
    let Some(fleet) = Fleet::get(105) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    for session in ["first", "second"] {
        machine.make(session, 1, 10);
        machine.done(&["push", session, "--json"]);
    }
    fleet.sql(&["DROP TABLE treelined.presence"]);
    let rows = machine.done(&["pull", "--list", "--json"]);
    let ids: Vec<_> = rows.iter().map(|row| &row["sessionId"]).collect();
    assert_eq!(ids, ["first", "second"]);
    assert_eq!(
        machine
            .done(&["pull", "--list", "--deleted", "--json"])
            .len(),
        0
    );
}
