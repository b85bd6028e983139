//! The order of an import and other requests. protocol.md §1.6.

use std::sync::Arc;

use super::{conversation, params};
use crate::harness::*;

const SESSIONS: usize = 30;

/// A daemon, and sources whose import takes much longer than any other request.
fn sources() -> (Arc<Home>, Daemon) {
    let home = Home::new();
    for number in 0..SESSIONS {
        let session = format!("s{number:02}");
        let text = conversation(&session, 200);
        home.file(&format!("{session}.jsonl"), text.as_bytes());
    }
    let d = Daemon::quiet_in(&home);
    (home, d)
}

/// `list_sessions`, `search` and `open_session` after an import in the same write were once answered before the import
/// had ended, so they missed its sessions.
#[test]
fn requests_behind_an_import_see_its_sessions() {
    let (home, mut d) = sources();
    let open = d.create();
    // Ids and names of files are computed from the sources, so a dry run knows them.
    let mut dry = params(&home);
    dry["dryRun"] = json!(true);
    let planned = d.ok("import_sessions", dry);
    let last = &planned["sessions"][SESSIONS - 1];
    let by_id = json!({"sessionId": last["sessionId"]});
    let requests = [
        ("import_sessions", params(&home)),
        ("list_sessions", json!({})),
        ("search", json!({"query": "question", "limit": 1000})),
        ("open_session", json!({"path": last["path"]})),
        ("open_session", by_id.clone()),
        ("get_leaf", by_id),
        ("get_leaf", json!({"sessionId": open})),
    ];
    let requests = requests.map(|(method, params)| (d.fresh_id(), method, params));
    d.forget_order();
    d.send_together(&requests);
    let results: Vec<Json> = requests
        .iter()
        .map(|(id, _, _)| d.response(id).unwrap())
        .collect();
    let [imported, listed, found, by_path, again, leaf, _] = &results[..] else {
        unreachable!()
    };
    assert_eq!(imported["totals"]["created"], SESSIONS);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), SESSIONS);
    assert_eq!(found["hits"].as_array().unwrap().len(), 1000);
    assert_eq!(by_path["session"]["sessionId"], last["sessionId"]);
    assert_eq!(again["session"]["sessionId"], last["sessionId"]);
    assert!(leaf["leafId"].is_string());
    assert_eq!(d.order()[0], "=get_leaf", "open sessions do not wait");
}

#[test]
fn a_cancelled_import_lets_the_requests_behind_it_run() {
    let (home, mut d) = sources();
    let (import, listed) = (d.fresh_id(), d.fresh_id());
    d.send_together(&[
        (import.clone(), "import_sessions", params(&home)),
        (listed.clone(), "list_sessions", json!({})),
    ]);
    d.notify("$/cancel_request", json!({"requestId": import}));
    assert_eq!(d.response(&import).unwrap_err().kind, "cancelled");
    let listed = d.response(&listed).unwrap();
    assert!(listed["sessions"].as_array().unwrap().len() < SESSIONS);
}
