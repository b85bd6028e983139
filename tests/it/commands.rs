//! Commands that one client offers and another runs. protocol.md §12.

use crate::harness::*;

fn offer(owner: &mut Daemon, name: &str) {
    let offered = owner.ok("register_command", json!({"name": name}));
    assert_eq!(offered, json!({}));
}

/// A daemon with a client that offers the command `todo`, and one that does not.
fn owner_and_caller() -> (SharedDaemon, Daemon, Daemon) {
    let shared = SharedDaemon::start();
    let mut owner = shared.client("todo-list", json!({}));
    let caller = shared.client("editor", json!({}));
    offer(&mut owner, "todo");
    (shared, owner, caller)
}

/// Runs `todo`. Returns the id of the request and the event that the owner gets.
fn run(caller: &mut Daemon, owner: &mut Daemon) -> (Json, Json) {
    let id = caller.send("run_command", json!({"name": "todo"}));
    (id, owner.notification("command_invoked"))
}

#[test]
fn a_command_runs_in_the_client_that_offers_it() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let id = caller.send("run_command", json!({"name": "todo", "args": "Ship it"}));
    let invoked = owner.notification("command_invoked");
    assert_eq!(
        invoked,
        json!({
            "eventId": invoked["eventId"], "name": "todo", "args": "Ship it", "by": "editor",
            "timeoutMs": 30_000,
        })
    );
    caller.still_waits(&id);
    let result = json!({"output": "Added", "prompt": "What is next?"});
    assert_eq!(
        owner.answer(&invoked, result.clone()),
        json!({"accepted": true})
    );
    assert_eq!(caller.response(&id).unwrap(), result);
    // A repeated answer is acknowledged again.
    owner.answer(&invoked, result);
    let (id, invoked) = run(&mut caller, &mut owner);
    assert_eq!(invoked["args"], "");
    owner.answer(&invoked, json!({}));
    assert_eq!(caller.response(&id).unwrap(), json!({}));
}

#[test]
fn commands_are_listed_by_name_with_their_clients() {
    let shared = SharedDaemon::start();
    let mut first = shared.client("first", json!({}));
    let mut nameless = shared.connect();
    nameless.initialize(json!({"protocolVersion": 1}));
    first.ok(
        "register_command",
        json!({"name": "zap", "description": "Removes all", "argumentHint": "WHAT"}),
    );
    offer(&mut first, "b");
    offer(&mut nameless, "a1");
    let listed = first.ok("list_commands", json!({}));
    let by = listed["commands"][0]["by"].as_str().unwrap();
    assert!(by.starts_with("client-"), "{by}");
    assert_eq!(
        listed,
        json!({"commands": [
            {"name": "a1", "by": by},
            {"name": "b", "by": "first"},
            {"name": "zap", "description": "Removes all", "argumentHint": "WHAT", "by": "first"},
        ]})
    );
    first.ok("unregister_command", json!({"name": "zap"}));
    first.err_kind(
        "unregister_command",
        json!({"name": "a1"}),
        "commandNotFound",
    );
    drop(nameless);
    let left = json!([{"name": "b", "by": "first"}]);
    assert_eq!(first.ok("list_commands", json!({}))["commands"], left);
}

#[test]
fn a_name_is_taken_by_another_connection_or_built_in() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let error = caller.err_kind("register_command", json!({"name": "todo"}), "commandExists");
    assert_eq!((error.code, error.details("name")), (1410, &json!("todo")));
    // The commands of the terminal client are compared with the same list.
    let built_in = include_str!("../../schema/commands.txt").lines();
    for name in built_in {
        caller.err_kind("register_command", json!({"name": name}), "commandExists");
    }
    for name in ["", "Todo", "1", "a b", &"a".repeat(65)] {
        let error = caller.err_kind("register_command", json!({"name": name}), "invalidParams");
        assert_eq!(error.details("field"), "name");
    }
    owner.ok(
        "register_command",
        json!({"name": "todo", "description": "again"}),
    );
    let listed = caller.ok("list_commands", json!({}));
    assert_eq!(listed["commands"][0]["description"], "again");
    let error = caller.err_kind("run_command", json!({"name": "nothing"}), "commandNotFound");
    assert_eq!(
        (error.code, error.details("name")),
        (1411, &json!("nothing"))
    );
}

#[test]
fn offering_and_listing_commands_needs_a_handshake() {
    let mut d = Daemon::start();
    for (method, params) in [
        ("register_command", json!({"name": "todo"})),
        ("unregister_command", json!({"name": "todo"})),
        ("list_commands", json!({})),
    ] {
        let error = d.err_kind(method, params, "invalidRequest");
        assert_eq!(error.code, -32600, "{method}");
    }
    d.err_kind("run_command", json!({"name": "todo"}), "commandNotFound");
}

#[test]
fn a_command_fails_by_its_error_its_time_or_the_end_of_its_client() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let failed = |error: RpcError, reason: &str| {
        assert_eq!((error.code, error.kind.as_str()), (1412, "commandFailed"));
        assert_eq!(
            (error.details("name"), error.details("reason")),
            (&json!("todo"), &json!(reason))
        );
        error
    };
    let (id, invoked) = run(&mut caller, &mut owner);
    owner.ok(
        "answer_event",
        json!({"eventId": invoked["eventId"], "error": "no list"}),
    );
    let error = failed(caller.response(&id).unwrap_err(), "error");
    assert_eq!(error.details("message"), "no list");

    let error = caller.err("run_command", json!({"name": "todo", "timeoutMs": 20}));
    failed(error, "timeout");
    let late = owner.notification("command_invoked");
    assert_eq!(late["timeoutMs"], 20);
    owner.err_kind(
        "answer_event",
        json!({"eventId": late["eventId"], "result": {}}),
        "eventNotPending",
    );

    let (id, _) = run(&mut caller, &mut owner);
    drop(owner);
    failed(caller.response(&id).unwrap_err(), "ownerGone");
    caller.err_kind("run_command", json!({"name": "todo"}), "commandNotFound");
}

#[test]
fn the_owner_can_ask_for_more_time() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let id = caller.send("run_command", json!({"name": "todo", "timeoutMs": 2000}));
    let invoked = owner.notification("command_invoked");
    let more = json!({"eventId": invoked["eventId"], "extendMs": 500_000});
    let extended = owner.ok("answer_event", more);
    assert!(
        extended["timeoutMs"].as_u64().unwrap() > 400_000,
        "{extended}"
    );
    owner.answer(&invoked, json!({"output": "late"}));
    assert_eq!(caller.response(&id).unwrap()["output"], "late");
    let id = caller.send(
        "run_command",
        json!({"name": "todo", "timeoutMs": 10_000_000}),
    );
    let invoked = owner.notification("command_invoked");
    assert_eq!(invoked["timeoutMs"], 600_000);
    owner.answer(&invoked, json!([]));
    caller.response(&id).unwrap();
}

#[test]
fn a_cancelled_command_is_answered_at_once() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let (id, invoked) = run(&mut caller, &mut owner);
    caller.notify("$/cancel_request", json!({"requestId": id}));
    let error = caller.response(&id).unwrap_err();
    assert_eq!(error.code, -32800);
    owner.err_kind(
        "answer_event",
        json!({"eventId": invoked["eventId"], "result": {}}),
        "eventNotPending",
    );
}

#[test]
fn an_answer_of_another_form_leaves_the_command_open() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let (id, invoked) = run(&mut caller, &mut owner);
    let event = &invoked["eventId"];
    for (answer, field) in [
        (json!({"eventId": event}), "result"),
        (
            json!({"eventId": event, "result": {}, "error": "x"}),
            "error",
        ),
        (
            json!({"eventId": event, "error": "x", "extendMs": 5}),
            "extendMs",
        ),
        (
            json!({"eventId": event, "result": {"cancel": true}}),
            "result.cancel",
        ),
        (
            json!({"eventId": event, "result": {"value": "x"}}),
            "result.value",
        ),
        (
            json!({"eventId": event, "result": {"output": 5}}),
            "result.output",
        ),
    ] {
        let error = owner.err_kind("answer_event", answer, "invalidParams");
        assert_eq!(error.details("field"), field);
    }
    let others = json!({"eventId": event, "result": {}});
    caller.err_kind("answer_event", others, "eventNotPending");
    owner.answer(&invoked, json!({"output": "done"}));
    assert_eq!(caller.response(&id).unwrap()["output"], "done");
}

/// A command once held the queue of its session and so could not change the session.
#[test]
fn the_owner_may_navigate_while_its_command_runs() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    owner.create();
    owner.chain(&["u1", "a1", "u2"]);
    let (id, invoked) = run(&mut caller, &mut owner);
    let moved = owner.ok("navigate_tree", json!({"targetId": "a1"}));
    assert_eq!(moved["cancelled"], false);
    owner.answer(&invoked, json!({"output": "moved"}));
    assert_eq!(caller.response(&id).unwrap()["output"], "moved");
}

#[test]
fn a_command_may_be_about_a_session_that_the_caller_has_open() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let session = caller.create();
    let id = caller.send("run_command", json!({"name": "todo", "sessionId": session}));
    let invoked = owner.notification("command_invoked");
    assert_eq!(invoked["sessionId"], json!(session));
    owner.answer(&invoked, json!({}));
    caller.response(&id).unwrap();
    let unknown = json!({"name": "todo", "sessionId": "other"});
    caller.err_kind("run_command", unknown, "sessionNotFound");
}

#[test]
fn open_questions_of_a_connection_and_arguments_are_limited() {
    let (_shared, mut owner, mut caller) = owner_and_caller();
    let ids: Vec<Json> = (0..64)
        .map(|_| caller.send("run_command", json!({"name": "todo"})))
        .collect();
    let events: Vec<Json> = (0..64)
        .map(|_| owner.notification("command_invoked"))
        .collect();
    caller.err_kind("run_command", json!({"name": "todo"}), "overloaded");
    owner.answer(&events[0], json!({}));
    caller.response(&ids[0]).unwrap();
    let (id, event) = run(&mut caller, &mut owner);
    for event in events[1..].iter().chain([&event]) {
        owner.answer(event, json!({}));
    }
    for id in ids[1..].iter().chain([&id]) {
        caller.response(id).unwrap();
    }
    let long = json!({"name": "todo", "args": "x".repeat((1 << 20) + 1)});
    let error = caller.err_kind("run_command", long, "invalidParams");
    assert_eq!(error.details("field"), "args");
}
