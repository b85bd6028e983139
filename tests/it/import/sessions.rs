//! Imported sessions are ordinary sessions. They can be forked and compacted, and they have totals and subagents.
//! Options decide where their files are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{conversation, imported, params, record};
use crate::harness::*;
use boon::{Compiler, Schemas};

fn data(path: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import");
    data.join(path)
}

fn path_of(row: &Json) -> PathBuf {
    PathBuf::from(row["path"].as_str().unwrap())
}

fn lines_of(row: &Json) -> Vec<Json> {
    let text = fs::read_to_string(path_of(row)).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn a_fork_of_an_imported_session_keeps_the_origins_of_its_entries() {
    let home = Home::new();
    let (mut d, result) = imported(&home);
    d.ignore("session_fork");
    d.ignore("session_before_fork");
    let row = &result["sessions"][0];
    d.open(&path_of(row));
    let ids = d.ids();
    let fork = d.ok("fork_session", json!({"entryId": ids[1], "position": "at"}));
    let fork = PathBuf::from(fork["session"]["path"].as_str().unwrap());
    let fork = lines_of(&json!({"path": fork}));
    let source = lines_of(row);
    for number in 1..=2 {
        assert!(source[number]["origin"]["ranges"].is_array());
        assert_eq!(fork[number]["origin"], source[number]["origin"]);
    }
}

#[test]
fn split_makes_each_fork_a_session_with_the_copied_prefix() {
    let home = Home::new();
    let folder = data("codex/0.169-paginated");
    let folder = folder.to_str().unwrap();
    let args = ["import", "--from", "codex", "--final", "--json", folder];
    let run = |more: &[&str], dir: &str| {
        let sessions = home.files().join(dir);
        let place = ["--session-dir", sessions.to_str().unwrap()];
        let output = home
            .run(&[&place[..], &args, more].concat(), &[], "")
            .clean();
        serde_json::from_str::<Json>(&output.text()).unwrap()
    };
    let (joined, split) = (run(&[], "joined"), run(&["--split"], "split"));
    assert_eq!(joined["sessions"].as_array().unwrap().len(), 1);
    let rows = split["sessions"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let find = |is_fork: bool| {
        let mut rows = rows.iter().map(lines_of);
        let found = rows.find(|lines| lines[0].get("parentSession").is_some() == is_fork);
        found.unwrap()
    };
    let (root, fork) = (find(false), find(true));
    let copies: Vec<&Json> = fork
        .iter()
        .filter(|line| line.get("copiedFrom").is_some())
        .collect();
    assert!(!copies.is_empty());
    for copy in copies {
        let original = root.iter().find(|line| line["id"] == copy["id"]);
        assert_eq!(original.expect("the same id")["message"], copy["message"]);
    }
    // A second import with the other option does not move the files.
    let again = run(&[], "split");
    assert_eq!(again["totals"]["entriesAdded"], 0);
    assert_eq!(again["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn forget_deletes_the_kept_bytes_and_nothing_else() {
    let home = Home::new();
    let (mut d, result) = imported(&home);
    let row = &result["sessions"][0];
    let origins = home.sessions().join(".origins");
    assert_eq!(fs::read_dir(&origins).unwrap().count(), 1);
    let id = row["sessionId"].as_str().unwrap();
    let before = fs::read(path_of(row)).unwrap();
    let forget = |said: &str| {
        let output = home.run(&["import", "--forget", id], &[], "").clean();
        assert_eq!(output.text(), format!("deleted the kept bytes of {said}\n"));
    };
    forget("1 source");
    forget("0 sources");
    assert_eq!(fs::read_dir(&origins).unwrap().count(), 0);
    assert_eq!(fs::read(path_of(row)).unwrap(), before);
    // The source is still imported when it grows.
    home.file("s.jsonl", conversation("s", 3).as_bytes());
    let more = d.ok("import_sessions", params(&home));
    assert_eq!(more["totals"]["entriesAdded"], 2);
    let output = home.run(
        &["doctor", "--origin", row["path"].as_str().unwrap()],
        &[],
        "",
    );
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn a_subagent_names_the_call_that_spawned_it() {
    let home = Home::new();
    let call = json!({"type": "tool_use", "id": "c1", "name": "Task", "input": {"prompt": "look"}});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]});
    let result = record("s", "user", 2, &result);
    let text = [
        record("s", "user", 0, &json!({"role": "user", "content": "go"})),
        record(
            "s",
            "assistant",
            1,
            &json!({"id": "m", "role": "assistant", "model": "x", "content": [call]}),
        ),
        result.replacen('{', "{\"toolUseResult\":{\"agentId\":\"a1\"},", 1),
    ];
    home.file("s.jsonl", text.concat().as_bytes());
    fs::create_dir_all(home.files().join("s/subagents")).unwrap();
    let own = conversation("s", 2).replace("\"uuid\":\"s-", "\"uuid\":\"a-");
    let own = own.replace("\"parentUuid\":\"s-", "\"parentUuid\":\"a-");
    let own = own.replace(
        "{\"type\"",
        "{\"isSidechain\":true,\"agentId\":\"a1\",\"type\"",
    );
    home.file("s/subagents/agent-a1.jsonl", own.as_bytes());
    home.file(
        "s/subagents/agent-a1.meta.json",
        br#"{"agentType":"general","toolUseId":"c1"}"#,
    );
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("import_sessions", params(&home));
    let rows = result["sessions"].as_array().unwrap();
    let is_subagent = |row: &&Json| lines_of(row)[0].get("spawnedBy").is_some();
    let subagent = rows.iter().find(is_subagent).unwrap();
    let parent = rows.iter().find(|row| !is_subagent(row)).unwrap();
    assert_eq!((&parent["subagents"], rows.len()), (&json!(1), 2));
    let header = &lines_of(subagent)[0];
    let spawn = &header["spawnedBy"];
    assert_eq!(spawn["sessionId"], parent["sessionId"]);
    assert_eq!(header["parentSession"], parent["sessionId"]);
    let call = spawn["toolCallId"].as_str().unwrap();
    let parent_lines = lines_of(parent);
    let caller = parent_lines
        .iter()
        .find(|line| line["id"] == spawn["entryId"]);
    let content = caller.expect("the call's entry")["message"]["content"]
        .as_array()
        .unwrap();
    assert!(content.iter().any(|block| block["id"] == call));
    let list = json!({"spawnedBy": parent["sessionId"]});
    let listed = d.ok("list_sessions", list);
    let listed = listed["sessions"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["sessionId"], subagent["sessionId"]);
}

/// Each record of a message of Claude Code has the usage of the whole message, and a fork repeats all records.
#[test]
fn usage_counts_once() {
    let home = Home::new();
    let usage = json!({"input_tokens": 100, "output_tokens": 20});
    let part = |number: usize, block: Json| {
        let message = json!({"id": "m", "role": "assistant", "model": "x", "content": [block], "usage": usage});
        record("s", "assistant", number, &message)
    };
    let text = [
        record("s", "user", 0, &json!({"role": "user", "content": "go"})),
        part(1, json!({"type": "text", "text": "one"})),
        part(2, json!({"type": "text", "text": "two"})),
        record("s", "user", 3, &json!({"role": "user", "content": "on"})),
    ]
    .concat();
    home.file("s.jsonl", text.as_bytes());
    let fork = text
        .replace("\"sessionId\":\"s\"", "\"sessionId\":\"f\"")
        .replace("\"on\"", "\"off\"");
    let fork = fork
        .replace("s-3", "f-3")
        .replace("00:00.001Z", "00:30.001Z");
    home.file("f.jsonl", fork.as_bytes());
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("import_sessions", params(&home));
    let rows = result["sessions"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &rows[0]["branches"]),
        (1, &json!(1)),
        "{result}"
    );
    d.open(&path_of(&rows[0]));
    let tokens = d.ok("get_stats", json!({}))["tokens"].clone();
    assert_eq!(
        (&tokens["input"], &tokens["output"]),
        (&json!(100), &json!(20))
    );
}

/// For one tool: its name, the calls in its source, and a function that writes the source. There is a call that changes
/// a file, and a call that reads one if the tool has such a call.
type Calls = (&'static str, Vec<&'static str>, fn(&Home));

/// The rows of the calls show the paths, and a compaction lists the files.
#[test]
fn calls_of_every_tool_are_shown_by_their_path_and_listed_by_compactions() {
    let both = || vec!["src/read.rs"];
    let tools: [Calls; 6] = [
        ("claude-code", both(), claude_code_calls),
        ("codex", Vec::new(), codex_calls),
        ("gemini", both(), gemini_calls),
        ("opencode", both(), opencode_calls),
        ("goose", Vec::new(), goose_calls),
        ("pi", both(), pi_calls),
    ];
    for (tool, read, write) in tools {
        let home = Home::new();
        write(&home);
        let mut d = Daemon::quiet_in(&home);
        let wanted = json!({"from": tool, "paths": [home.files()], "final": true});
        let result = d.ok("import_sessions", wanted);
        assert_eq!(result["totals"]["failed"], 0, "{tool}: {result}");
        d.open(&path_of(&result["sessions"][0]));
        let rows = d.ok("get_tree", json!({"filter": "all"}))["nodes"].clone();
        for path in read.iter().chain(&["src/changed.rs"]) {
            let shows = |row: &Json| row["toolCall"]["summary"] == *path;
            let is_shown = rows.as_array().unwrap().iter().any(shows);
            assert!(is_shown, "{tool}: {path} in {rows}");
        }
        let prepared = d.ok("prepare_compaction", json!({"keepRecentTokens": 1}));
        let files = &prepared["preparation"]["fileOps"];
        assert_eq!(files["modifiedFiles"], json!(["src/changed.rs"]), "{tool}");
        assert_eq!(files["readFiles"], json!(read), "{tool}");
    }
}

fn claude_code_calls(home: &Home) {
    let call = |id: &str, name: &str, path: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"file_path": path}});
    let calls = json!({"id": "m", "role": "assistant", "model": "x", "content": [
        call("c1", "Read", "src/read.rs"), call("c2", "Edit", "src/changed.rs")]});
    let result = |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]});
    let text = [
        record("s", "user", 0, &json!({"role": "user", "content": "go"})),
        record("s", "assistant", 1, &calls),
        record("s", "user", 2, &result("c1")),
        record("s", "user", 3, &result("c2")),
        record(
            "s",
            "user",
            4,
            &json!({"role": "user", "content": "and then"}),
        ),
        record(
            "s",
            "assistant",
            5,
            &json!({"id": "n", "role": "assistant", "model": "x", "content": [{"type": "text", "text": "x".repeat(400)}]}),
        ),
    ];
    home.file("s.jsonl", text.concat().as_bytes());
}

fn codex_calls(home: &Home) {
    let at = "2026-01-01T00:00:00.000Z";
    let line = |number: usize, kind: &str, payload: Json| {
        format!(
            "{}\n",
            json!({"timestamp": at, "ordinal": number, "type": kind, "payload": payload})
        )
    };
    let user = |text: &str| {
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}],
        "internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text"]}})
    };
    let patch = "*** Begin Patch\n*** Update File: src/changed.rs\n@@\n-a\n+b\n*** End Patch\n";
    let answer = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x".repeat(400)}]});
    let id = "01a20124-4777-7de2-915b-ef7ddcee9bbf";
    let meta = json!({"id": id, "session_id": id, "timestamp": at, "cwd": "/w", "cli_version": "0.169.0", "history_mode": "paginated"});
    let text = [
        line(0, "session_meta", meta),
        line(1, "response_item", user("go")),
        line(
            2,
            "response_item",
            json!({"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": patch}),
        ),
        line(
            3,
            "response_item",
            json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}),
        ),
        line(4, "response_item", user("and then")),
        line(5, "response_item", answer),
    ];
    home.file(
        "rollout-2026-01-01T00-00-00-01a20124-4777-7de2-915b-ef7ddcee9bbf.jsonl",
        text.concat().as_bytes(),
    );
}

fn gemini_calls(home: &Home) {
    let at = "2026-01-01T00:00:00.000Z";
    let call = |id: &str, name: &str, path: &str| {
        json!({"id": id, "name": name, "args": {"file_path": path}, "status": "success",
        "result": [{"functionResponse": {"id": id, "name": name, "response": {"output": "ok"}}}]})
    };
    let records = [
        json!({"sessionId": "s", "projectHash": "h", "startTime": at, "lastUpdated": at, "kind": "main"}),
        json!({"id": "u1", "timestamp": at, "type": "user", "content": [{"text": "go"}]}),
        json!({"id": "a1", "timestamp": at, "type": "gemini", "content": "", "model": "g", "toolCalls": [
            call("c1", "read_file", "src/read.rs"), call("c2", "write_file", "src/changed.rs")]}),
        json!({"id": "u2", "timestamp": at, "type": "user", "content": [{"text": "and then"}]}),
        json!({"id": "a2", "timestamp": at, "type": "gemini", "content": "x".repeat(400), "model": "g"}),
    ];
    let lines = records.iter().map(|record| format!("{record}\n"));
    fs::create_dir(home.files().join("chats")).unwrap();
    home.file(
        "chats/session-x.jsonl",
        lines.collect::<String>().as_bytes(),
    );
}

fn pi_calls(home: &Home) {
    let at = "2026-01-01T00:00:00.000Z";
    let entry = |id: &str, parent: Json, message: Json| json!({"type": "message", "id": id, "parentId": parent, "timestamp": at, "message": message});
    let call = |id: &str, name: &str, path: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {"path": path}});
    let assistant = |content: Json| {
        json!({"role": "assistant", "content": content, "provider": "p", "model": "m", "api": "a", "timestamp": 1,
        "stopReason": "stop", "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}})
    };
    let result = |id: &str, name: &str| json!({"role": "toolResult", "toolCallId": id, "toolName": name, "content": [{"type": "text", "text": "ok"}], "isError": false, "timestamp": 1});
    let text = |text: &str| json!({"role": "user", "content": text, "timestamp": 1});
    let records = [
        json!({"type": "session", "version": 3, "id": "p", "timestamp": at, "cwd": "/w"}),
        entry("e1", json!(null), text("go")),
        entry(
            "e2",
            json!("e1"),
            assistant(json!([
                call("c1", "read", "src/read.rs"),
                call("c2", "edit", "src/changed.rs")
            ])),
        ),
        entry("e3", json!("e2"), result("c1", "read")),
        entry("e4", json!("e3"), result("c2", "edit")),
        entry("e5", json!("e4"), text("and then")),
        entry(
            "e6",
            json!("e5"),
            assistant(json!([{"type": "text", "text": "x".repeat(400)}])),
        ),
    ];
    let lines = records.iter().map(|record| format!("{record}\n"));
    home.file("p.jsonl", lines.collect::<String>().as_bytes());
}

/// Writes files as opencode did before it used a database.
fn opencode_calls(home: &Home) {
    let write = |path: &str, value: Json| {
        let path = home.files().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    };
    let tool = |id: &str, name: &str, path: &str| {
        let state = json!({"status": "completed", "input": {"filePath": path}, "output": "ok", "time": {"start": 2, "end": 3}});
        json!({"id": id, "messageID": "m2", "type": "tool", "callID": id, "tool": name, "state": state})
    };
    write(
        "session/p/s.json",
        json!({"id": "s", "directory": "/w", "title": "x", "time": {"created": 1, "updated": 9}}),
    );
    for (id, role, at) in [
        ("m1", "user", 1),
        ("m2", "assistant", 2),
        ("m3", "user", 4),
        ("m4", "assistant", 5),
    ] {
        let time = json!({"created": at, "completed": at});
        write(
            &format!("message/s/{id}.json"),
            json!({"id": id, "sessionID": "s", "role": role, "time": time}),
        );
    }
    write(
        "part/m1/p1.json",
        json!({"id": "p1", "messageID": "m1", "type": "text", "text": "go"}),
    );
    write("part/m2/p2.json", tool("p2", "read", "src/read.rs"));
    write("part/m2/p3.json", tool("p3", "edit", "src/changed.rs"));
    write(
        "part/m3/p4.json",
        json!({"id": "p4", "messageID": "m3", "type": "text", "text": "and then"}),
    );
    write(
        "part/m4/p5.json",
        json!({"id": "p5", "messageID": "m4", "type": "text", "text": "x".repeat(400)}),
    );
}

fn goose_calls(home: &Home) {
    let path = home.file("sessions.db", &fs::read(data("goose/sessions.db")).unwrap());
    let database = rusqlite::Connection::open(path).unwrap();
    let call = json!([{"type": "toolRequest", "id": "call_1", "toolCall": {"status": "success",
        "value": {"name": "developer__edit", "arguments": {"path": "src/changed.rs"}}}}]);
    let row = "UPDATE messages SET content_json = ?1 WHERE content_json LIKE '%\"call_1\"%' AND role = 'assistant'";
    assert!(database.execute(row, [call.to_string()]).unwrap() > 0);
}

/// An appended record of more than 48 MiB is cut in the same way as in a new session, and a later import recognizes it.
#[test]
fn a_very_long_record_that_is_added_later_has_its_text_cut() {
    let home = Home::in_memory();
    let (mut d, _) = imported(&home);
    let long = conversation("s", 3).replacen("answer 2", &"x".repeat(50 << 20), 1);
    home.file("s.jsonl", long.as_bytes());
    let result = d.ok("import_sessions", params(&home));
    assert_eq!(result["totals"]["entriesAdded"], 2);
    let lines = lines_of(&result["sessions"][0]);
    let is_long = |line: &&Json| {
        line["message"]["content"][0]["text"]
            .as_str()
            .is_some_and(|it| it.len() > 1 << 20)
    };
    let long_entry = lines.iter().find(is_long).unwrap();
    let text = long_entry["message"]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert!(text.len() <= 48 << 20 && text.ends_with("x…"));
    let more = long + &record("s", "user", 6, &json!({"role": "user", "content": "on"}));
    home.file("s.jsonl", more.as_bytes());
    let result = d.ok("import_sessions", params(&home));
    assert_eq!(
        (
            &result["totals"]["entriesAdded"],
            &result["totals"]["revised"]
        ),
        (&json!(1), &json!(0))
    );
}

/// The schema once had no leaf record of an import, so that every imported session was invalid.
#[test]
fn every_line_of_an_imported_session_is_valid_by_the_schema() {
    let home = Home::new();
    let schemas = home.files().join("schema");
    home.run(&["schema", "--out", schemas.to_str().unwrap()], &[], "")
        .clean();
    let text = fs::read_to_string(schemas.join("session-file.v3.json")).unwrap();
    let (mut compiler, mut compiled) = (Compiler::new(), Schemas::new());
    let document = serde_json::from_str(&text).unwrap();
    compiler.add_resource("urn:file", document).unwrap();
    let schema = compiler.compile("urn:file", &mut compiled).unwrap();
    let sources = [
        "claude-code",
        "codex",
        "gemini",
        "goose",
        "opencode",
        "pi",
        "qwen-code",
        "cline",
        "roo-code",
        "kilo-code",
        "copilot-cli",
        "vscode-chat",
        "chatgpt",
        "claude-ai",
    ]
    .map(data);
    let sources = sources.iter().map(|source| source.to_str().unwrap());
    let args: Vec<&str> = ["import", "--final", "--json"]
        .into_iter()
        .chain(sources)
        .collect();
    let result: Json = serde_json::from_str(&home.run(&args, &[], "").text()).unwrap();
    let rows = result["sessions"].as_array().unwrap();
    assert!(rows.len() > 10, "{}", rows.len());
    for line in rows.iter().flat_map(lines_of) {
        let valid = compiled.validate(&line, schema);
        assert!(valid.is_ok(), "{line}: {:#}", valid.unwrap_err());
    }
}

/// A message below another one, in a session of Claude Code.
fn said(kind: &str, number: usize, parent: &str, text: &str) -> String {
    let message = match kind {
        "user" => json!({"role": kind, "content": text}),
        _ => json!({"id": format!("msg_{text}"), "role": kind, "model": "m",
                    "content": [{"type": "text", "text": text}]}),
    };
    let mut record: Json = parse(&record("s", kind, number, &message)).unwrap();
    record["parentUuid"] = json!(parent);
    format!("{record}\n")
}

/// Shed entries are not in the session file, and an import once would have added them again. Later it moved all shed
/// branches back for each new turn, wherever the turn was.
#[test]
fn an_import_brings_back_only_the_shed_branches_that_grow() {
    let home = Home::new();
    // The second question was asked in three ways, so the first two are branches.
    let mut text = conversation("s", 2);
    for (number, way) in [(8, "again"), (12, "once more")] {
        text += &said("user", number, "s-1", way);
        text += &said(
            "assistant",
            number + 1,
            &format!("s-{number}"),
            &format!("answered {way}"),
        );
    }
    let source = home.file("s.jsonl", text.as_bytes());
    let mut d = Daemon::quiet_in(&home);
    d.ignore_bookkeeping();
    for name in ["session_reordered", "branches_changed"] {
        d.ignore(name);
    }
    let result = d.ok("import_sessions", params(&home));
    let path = PathBuf::from(result["sessions"][0]["path"].as_str().unwrap());
    d.open(&path);
    let ids = |d: &mut Daemon| -> BTreeSet<String> {
        let rows = d.ok("get_tree", json!({"archived": true}))["nodes"].clone();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["id"].to_string()).collect()
    };
    let before = ids(&mut d);
    let listed = d.ok("list_branches", json!({}));
    let branches = listed["branches"].as_array().unwrap().clone();
    assert_eq!(branches.len(), 3, "{listed}");
    for branch in branches.iter().filter(|row| row["isActive"] != true) {
        d.ok("archive_branch", json!({"entryId": branch["tipId"]}));
    }
    let shed = d.ok("shed_branches", json!({}));
    assert_eq!(shed["shed"].as_array().unwrap().len(), 2, "{shed}");
    let again = |row: &&Json| row["firstPrompt"] == "again";
    let again = shed["shed"].as_array().unwrap().iter().find(again).unwrap();
    let bytes = fs::read(&path).unwrap();
    let mut dry = params(&home);
    dry["dryRun"] = json!(true);
    for params in [params(&home), dry] {
        let result = d.ok("import_sessions", params);
        assert_eq!(result["totals"]["failed"], 0, "{result}");
        let now = fs::read(&path).unwrap();
        assert_eq!(now, bytes, "nothing is new, and the branches stay shed");
    }
    let shed_now =
        |d: &mut Daemon| d.ok("list_branches", json!({"archived": true}))["shed"].clone();
    for (record, stay) in [
        (said("user", 20, "s-13", "and now?"), 2),
        (said("user", 21, "s-9", "and here?"), 1),
    ] {
        text += &record;
        fs::write(&source, &text).unwrap();
        let result = d.ok("import_sessions", params(&home));
        assert_eq!(result["sessions"][0]["entriesAdded"], 1, "{result}");
        let shed = shed_now(&mut d);
        assert_eq!(shed.as_array().unwrap().len(), stay, "{shed}");
        assert!(
            (stay == 2)
                == shed
                    .to_string()
                    .contains(again["entryId"].as_str().unwrap())
        );
    }
    d.ok("unshed_branches", json!({}));
    let all = ids(&mut d);
    let is_once = all.len() == before.len() + 2 && before.is_subset(&all);
    assert!(is_once, "each entry is there once: {all:?}");
}
