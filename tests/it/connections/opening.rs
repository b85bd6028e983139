//! A session stays open for a connection until the connection has closed it as often as it has opened it.

use crate::harness::*;

fn open_for_reading(client: &mut Daemon, id: &str) -> Json {
    client.ok("open_session", json!({"sessionId": id, "mode": "read"}))
}

#[test]
fn a_session_is_found_only_by_connections_that_have_opened_it() {
    let shared = SharedDaemon::start();
    let mut a = shared.client("a", json!({}));
    let mut b = shared.client("b", json!({}));
    let id = a.create();
    a.user("u1", "hello");
    let named = json!({"sessionId": id});
    for method in [
        "get_leaf",
        "close_session",
        "begin_turn",
        "fork_session",
        "abort_navigation",
    ] {
        b.err_kind(method, named.clone(), "sessionNotFound");
    }
    let append = json!({"sessionId": id, "message": user("no")});
    b.err_kind("append_message", append, "sessionNotFound");
    let error = b.err_kind("get_leaf", json!({}), "invalidParams");
    assert_eq!(error.details("field"), "sessionId");
    b.ok("open_session", named.clone());
    assert_eq!(b.leaf(), "u1");
    b.ok("close_session", named.clone());
    b.err_kind("get_leaf", named, "sessionNotFound");
    assert_eq!(a.leaf(), "u1");
}

#[test]
fn only_sessions_open_for_the_connection_count_for_a_left_out_id() {
    let shared = SharedDaemon::start();
    let mut a = shared.client("a", json!({}));
    let mut b = shared.client("b", json!({}));
    a.create();
    b.create();
    a.user("u1", "of a");
    b.user("u2", "of b");
    assert_eq!((a.leaf(), b.leaf()), (json!("u1"), json!("u2")));
}

#[test]
fn a_session_closes_with_the_last_close_of_the_last_connection() {
    let shared = SharedDaemon::start();
    let mut a = shared.client("a", json!({}));
    let mut b = shared.client("b", json!({}));
    let made = a.ok("create_session", json!({"ephemeral": true}));
    let id = made["session"]["sessionId"].as_str().unwrap().to_owned();
    let named = json!({"sessionId": id});
    a.user("u1", "kept in memory");
    for _ in 0..2 {
        b.ok("open_session", named.clone());
    }
    a.ok("close_session", named.clone());
    b.ok("close_session", named.clone());
    assert_eq!(b.leaf(), "u1", "it was opened twice here");
    b.ok("close_session", named.clone());
    b.err_kind("open_session", named, "sessionNotFound");
}

#[test]
fn a_session_that_only_others_keep_open_is_closed_for_this_connection() {
    let shared = SharedDaemon::start();
    let mut a = shared.connect();
    let mut b = shared.client("b", json!({}));
    let id = b.create();
    a.ok("open_session", json!({"sessionId": id}));
    assert_eq!(a.notification("session_opened")["seq"], 1);
    a.ok("close_session", json!({"sessionId": id}));
    assert_eq!(a.notification("session_closed")["seq"], 2);
    b.user("u1", "after");
    a.ok("list_sessions", json!({}));
    a.ok("open_session", json!({"sessionId": id}));
    assert_eq!(a.notification("session_opened")["seq"], 1);
    a.ok("close_session", json!({}));
    a.notification("session_closed");
}

#[test]
fn the_mode_belongs_to_the_connection() {
    let shared = SharedDaemon::start();
    let mut writer = shared.client("writer", json!({}));
    let mut reader = shared.client("reader", json!({}));
    let id = writer.create();
    writer.user("u1", "x");
    let opened = open_for_reading(&mut reader, &id);
    assert_eq!(opened["session"]["readOnly"], true);
    let refused = [
        ("append_message", json!({"message": user("no")})),
        ("navigate_tree", json!({"targetId": "u1"})),
        ("set_leaf", json!({"leafId": null})),
        ("delete_session", json!({"sessionId": id})),
    ];
    for (method, params) in refused {
        reader.err_kind(method, params, "readOnly");
    }
    writer.user("u2", "y");
    assert_eq!(reader.leaf(), "u2");
    // The same holds if the writer opens the session after the reader.
    let mut late = shared.client("late", json!({}));
    writer.ok("close_session", json!({}));
    let opened = late.ok("open_session", json!({"sessionId": id}));
    assert_eq!(opened["session"]["readOnly"], false);
    late.user("u3", "z");
    late.ok(
        "navigate_tree",
        json!({"targetId": "u2", "summarize": false}),
    );
    assert_eq!(reader.leaf(), late.leaf());
}

#[test]
fn each_connection_numbers_its_own_notifications() {
    let shared = SharedDaemon::start();
    let mut a = shared.connect();
    let mut b = shared.connect();
    let id = a.ok(
        "create_session",
        json!({"cwd": "/", "write": "first-entry"}),
    );
    let id = id["session"]["sessionId"].clone();
    a.user("u1", "one");
    b.ok("open_session", json!({"sessionId": id}));
    a.user("u2", "two");
    let heard = |client: &mut Daemon, count: usize| -> Vec<Json> {
        let mut all = vec![client.notification("session_opened")["seq"].clone()];
        all.extend((0..count).map(|_| client.notification("entries_appended")["seq"].clone()));
        all
    };
    assert_eq!(heard(&mut a, 2), [json!(1), json!(2), json!(3)]);
    assert_eq!(heard(&mut b, 1), [json!(1), json!(2)]);
    assert_eq!(a.ok("get_leaf", json!({}))["seq"], 3);
    assert_eq!(b.ok("get_leaf", json!({}))["seq"], 2);
}

#[test]
fn deleting_a_session_closes_it_for_all() {
    let shared = SharedDaemon::start();
    let mut a = shared.client("a", json!({}));
    let mut b = shared.connect();
    let id = a.create();
    a.user("u1", "x");
    b.ok("open_session", json!({"sessionId": id}));
    b.notification("session_opened");
    a.ok("delete_session", json!({"sessionId": id}));
    assert_eq!(b.notification("session_closed")["sessionId"], json!(id));
    b.err_kind("get_leaf", json!({"sessionId": id}), "sessionNotFound");
}

/// Appends of two connections that arrive together are written as one group. The rights of each connection are checked
/// separately.
#[test]
fn appends_of_several_connections_keep_the_rights_of_each() {
    let shared = SharedDaemon::start();
    let mut a = shared.client("a", json!({}));
    let mut reader = shared.client("reader", json!({}));
    let mut stranger = shared.client("stranger", json!({}));
    let id = a.create();
    open_for_reading(&mut reader, &id);
    let append =
        |n: usize| json!({"sessionId": id, "message": user("x"), "entryId": format!("e{n}")});
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for n in 0..200 {
        good.push(a.send("append_message", append(n)));
        bad.push((reader.send("append_message", append(1000 + n)), "readOnly"));
        bad.push((
            stranger.send("append_message", append(2000 + n)),
            "sessionNotFound",
        ));
    }
    for id in good {
        a.response(&id).unwrap();
    }
    for (id, kind) in bad {
        let client = if kind == "readOnly" {
            &mut reader
        } else {
            &mut stranger
        };
        assert_eq!(client.response(&id).unwrap_err().kind, kind);
    }
    assert_eq!(a.ids().len(), 200);
}
