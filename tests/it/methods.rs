//! The daemon answers exactly the methods of `schema/methods.json`, with the declared results.

use std::collections::BTreeSet;

use boon::{Compiler, Schemas};

use crate::harness::*;
use crate::readme::root;

/// `schema/methods.json` and the definitions that it refers to.
struct Table {
    methods: Vec<Json>,
    compiler: Compiler,
    schemas: Schemas,
}

impl Table {
    fn read() -> Table {
        let wire: Json =
            serde_json::from_str(include_str!("../../schema/treelined.v1.json")).unwrap();
        let list: Json = serde_json::from_str(include_str!("../../schema/methods.json")).unwrap();
        let mut compiler = Compiler::new();
        compiler
            .add_resource("urn:it:treelined.v1.json", wire)
            .unwrap();
        Table {
            methods: list["methods"].as_array().unwrap().clone(),
            compiler,
            schemas: Schemas::new(),
        }
    }

    fn names(&self) -> BTreeSet<&str> {
        self.methods
            .iter()
            .map(|method| method["name"].as_str().unwrap())
            .collect()
    }

    #[track_caller]
    fn row(&self, name: &str) -> &Json {
        let row = self.methods.iter().find(|method| method["name"] == name);
        row.unwrap_or_else(|| panic!("{name} is not in the table"))
    }

    #[track_caller]
    fn check_result(&mut self, name: &str, result: &Json) {
        let reference = self.row(name)["result"]["$ref"].as_str().unwrap();
        let url = format!("urn:it:{reference}");
        let schema = self.compiler.compile(&url, &mut self.schemas).unwrap();
        if let Err(error) = self.schemas.validate(result, schema) {
            panic!("{name}: {error:#}: {}", shorten(&result.to_string()));
        }
    }

    #[track_caller]
    fn check_error(&self, name: &str, kind: &str) {
        let row = self.row(name);
        let is_declared = row["errors"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one == kind);
        assert!(is_declared, "{name} does not declare {kind}");
    }
}

fn message(id: &str, role: &str) -> Json {
    let text = "The build fails, and nobody knows why. ".repeat(20);
    let content = match role {
        "user" => json!(text),
        _ => json!([{ "type": "text", "text": text }]),
    };
    json!({ "sessionId": "s", "entryId": id, "message": { "role": role, "content": content } })
}

/// One successful call of each method that has no other test here. The calls succeed in this order.
fn calls() -> Vec<(&'static str, Json)> {
    let on = |params: Json| {
        let mut params = params;
        params["sessionId"] = json!("s");
        params
    };
    vec![
        (
            "initialize",
            json!({"protocolVersion": 1, "capabilities": {"answers": {"session_before_fork": {}}}}),
        ),
        ("rpc.discover", json!({})),
        ("$/cancel_request", json!({"requestId": 987654})),
        ("$/cancelRequest", json!({"id": 987654})),
        ("create_session", json!({"sessionId": "s"})),
        ("list_sessions", json!({})),
        ("set_session_name", on(json!({"name": "The build"}))),
        ("append_message", message("u1", "user")),
        ("append_message", message("a1", "assistant")),
        ("append_message", message("u2", "user")),
        ("append_message", message("a2", "assistant")),
        ("search", json!({"query": "user"})),
        ("complete_query", json!({"query": "ro"})),
        (
            "append_entries",
            on(json!({"entries": [{"type": "custom", "customType": "it", "id": "c1"}]})),
        ),
        (
            "append_label",
            on(json!({"targetId": "a1", "label": "two ideas"})),
        ),
        ("get_leaf", on(json!({}))),
        ("get_tree", on(json!({}))),
        ("list_branches", on(json!({}))),
        ("get_entries", on(json!({}))),
        ("get_entry", on(json!({"entryId": "u1"}))),
        ("get_children", on(json!({"entryId": "u1"}))),
        ("get_path", on(json!({}))),
        ("get_label", on(json!({"entryId": "a1"}))),
        ("get_context", on(json!({}))),
        ("get_stats", on(json!({}))),
        ("compare_branches", on(json!({"a": "a1", "b": "a2"}))),
        ("render_entries", on(json!({"entryIds": ["u1", "a1"]}))),
        ("get_fork_messages", on(json!({}))),
        ("export_session", on(json!({"format": "markdown"}))),
        ("set_leaf", on(json!({"leafId": "a1"}))),
        ("undo_navigation", on(json!({}))),
        ("redo_navigation", on(json!({}))),
        ("get_navigation_log", on(json!({}))),
        ("cherry_pick", on(json!({"entryIds": ["u2"]}))),
        ("branch", on(json!({"entryId": "a1"}))),
        ("merge_branch", on(json!({"tipId": "a2"}))),
        (
            "navigate_tree",
            on(json!({"targetId": "a2", "summarize": true})),
        ),
        ("abort_navigation", on(json!({}))),
        ("prepare_compaction", on(json!({"keepRecentTokens": 1}))),
        ("compact", on(json!({"keepRecentTokens": 1}))),
        ("pop", on(json!({"summarize": false}))),
        ("begin_turn", on(json!({}))),
        (
            "send_message",
            on(json!({"customType": "it", "content": "The build is green.", "display": true})),
        ),
        ("end_turn", on(json!({}))),
        (
            "register_renderer",
            json!({"customType": "it", "preview": "{content}"}),
        ),
        ("register_command", json!({"name": "it"})),
        ("list_commands", json!({})),
        ("open_web", json!({})),
        (
            "notify_user",
            json!({"message": "The build is green.", "level": "info"}),
        ),
    ]
}

/// The calls that end a session or the daemon.
fn last_calls() -> Vec<(&'static str, Json)> {
    vec![
        ("import_report", json!({"sessionId": "s"})),
        (
            "import_sessions",
            json!({"from": "pi", "paths": [root("tests/data/import/pi")], "dryRun": true}),
        ),
        ("shed_branches", json!({"sessionId": "s"})),
        ("unshed_branches", json!({"sessionId": "s"})),
        ("tag_session", json!({"sessionId": "s", "add": ["build"]})),
        ("mark_session", json!({"sessionId": "s", "pinned": true})),
        ("get_family", json!({"sessionId": "s"})),
        ("close_session", json!({"sessionId": "s"})),
        ("delete_session", json!({"sessionId": "s"})),
        ("list_trash", json!({})),
        ("get_usage", json!({})),
        ("watch_sessions", json!({})),
        ("unwatch_sessions", json!({})),
        ("restore_session", json!({"sessionId": "s"})),
        ("open_session", json!({"sessionId": "s"})),
        ("shutdown", json!({})),
    ]
}

/// The methods that this daemon must refuse.
fn refuse(d: &mut Daemon) {
    // A client cannot ask a question to itself.
    let asked = json!({"kind": "confirm", "title": "Sure?"});
    d.err_kind("ask_user", asked, "noUser");
    // A daemon without a team has no session to erase.
    let erased = json!({"sessionId": "s"});
    d.err_kind("erase_session", erased, "erasureUnsupported");
}

#[test]
fn every_method_of_the_table_answers_with_a_result_of_its_type() {
    let mut table = Table::read();
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    for name in [
        "branches_changed",
        "event_resolved",
        "session_fork",
        "session_before_compact",
        "session_compact",
    ] {
        d.ignore(name);
    }
    let mut called = BTreeSet::new();
    let mut play = |d: &mut Daemon, calls: Vec<(&'static str, Json)>| {
        for (name, params) in calls {
            let result = d.ok(name, params);
            table.check_result(name, &result);
            called.insert(name);
        }
    };
    play(&mut d, calls());
    for name in ["name_branch", "archive_branch", "unarchive_branch"] {
        let of = json!({"sessionId": "s", "entryId": "u2"});
        play(&mut d, vec![(name, of)]);
    }
    play(
        &mut d,
        vec![
            (
                "append_message",
                json!({"sessionId": "s", "message": user("x"), "entryId": "g1", "parentId": "u2", "keepLeaf": true, "group": "g"}),
            ),
            ("keep_branch", json!({"sessionId": "s", "entryId": "g1"})),
            ("choose", json!({"sessionId": "s", "tipId": "g1"})),
        ],
    );
    let fork = d.send("fork_session", json!({"sessionId": "s"}));
    let event = d.notification("session_before_fork");
    play(
        &mut d,
        vec![(
            "answer_event",
            json!({"eventId": event["eventId"], "result": {}}),
        )],
    );
    let forked = d.response(&fork).unwrap();
    let ran = d.send("run_command", json!({"name": "it"}));
    let event = d.notification("command_invoked");
    d.answer(&event, json!({"output": "done", "prompt": "next"}));
    let ran = d.response(&ran).unwrap();
    play(&mut d, vec![("unregister_command", json!({"name": "it"}))]);
    let continued = d.ok(
        "continue_session",
        json!({"sessionId": "s", "tool": "goose"}),
    );
    let started = json!({"sessionId": "s", "continuationId": continued["continuationId"], "nativeId": "20261124_1"});
    let started = d.ok("continuation_started", started);
    refuse(&mut d);
    play(&mut d, last_calls());
    assert_eq!(d.exited(), Some(0));
    for (name, result) in [
        ("fork_session", &forked),
        ("run_command", &ran),
        ("continue_session", &continued),
        ("continuation_started", &started),
        (
            "erase_session",
            &json!({"sessionId": "s", "remains": ["backups of the database, with its archive"]}),
        ),
        ("ask_user", &json!({"value": true})),
        ("ask_user", &json!({"dismissed": true, "reason": "timeout"})),
    ] {
        table.check_result(name, result);
        called.insert(name);
    }
    assert_eq!(called, table.names());
}

#[test]
fn the_openrpc_document_of_the_daemon_has_the_methods_of_the_table() {
    let table = Table::read();
    let mut d = Daemon::start();
    let document = d.ok("rpc.discover", json!({}));
    let methods = document["methods"].as_array().unwrap();
    let names: BTreeSet<&str> = methods
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, table.names());
    d.err_kind("get_leaves", json!({}), "methodNotFound");
}

#[test]
fn every_method_declares_the_errors_of_its_params_and_its_session() {
    let table = Table::read();
    let mut d = Daemon::start();
    for name in table.names() {
        let error = d.err(
            name,
            json!({"thereIsNoSuchMember": true, "protocolVersion": "one"}),
        );
        assert_eq!(error.kind, "invalidParams", "{name}");
        table.check_error(name, &error.kind);
    }
    for name in [
        "get_leaf",
        "get_tree",
        "begin_turn",
        "set_session_name",
        "abort_navigation",
    ] {
        let mut params = json!({"sessionId": "not-open"});
        if name == "set_session_name" {
            params["name"] = json!("x");
        }
        let error = d.err(name, params);
        table.check_error(name, &error.kind);
    }
}
