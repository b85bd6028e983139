//! Sessions as traces, trajectories and graphs (protocol.md §16, "Data").

use super::*;
use boon::{Compiler, SchemaIndex, Schemas};

/// The JSON Schema of a package that reads the lines.
struct Reader {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Reader {
    fn of(format: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exports");
        let text = std::fs::read_to_string(folder.join(format!("{format}.schema.json"))).unwrap();
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        let document = serde_json::from_str(&text).unwrap();
        compiler.add_resource("urn:schema", document).unwrap();
        let index = compiler.compile("urn:schema", &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// The lines of an export, which must be valid.
    #[track_caller]
    fn lines(&self, text: &str) -> Vec<Json> {
        let lines: Vec<Json> = text.lines().map(|line| parse(line).unwrap()).collect();
        for line in &lines {
            let valid = self.schemas.validate(line, self.index);
            assert!(valid.is_ok(), "{line}: {:#}", valid.unwrap_err());
        }
        lines
    }
}

/// A call with a secret, its result and an answer, then another answer. The leaf is `a2`.
fn called() -> Log {
    let call = assistant_with(json!([
        {"type": "thinking", "thinking": "Look first."},
        tool_call("t1", "bash", json!({"command": format!("login {}", token())})),
    ]));
    let system = json!({"role": "system", "content": "Be short.",
        "toolsAdded": [{"name": "bash", "description": "Runs it.", "parameters": {"type": "object"}, "label": "Bash"}]});
    Log::new("s1")
        .message("s0", "", system)
        .user("u1", "s0", "Look at it.")
        .message("a1", "u1", call)
        .message("r1", "a1", tool_result("t1", "bash", "3 failed", true))
        .assistant("a2", "r1", "An import is missing.")
        .assistant("a3", "u1", "No.")
        .record("x1", "a2", "a3")
}

#[test]
fn a_trace_is_the_session_file_of_a_branch_without_secrets() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &called());
    let result = d.ok("export_session", json!({"format": "trace"}));
    assert_eq!(
        result["redactions"],
        json!([{"kind": "github-token", "count": 1, "entryIds": ["a1"]}])
    );
    let text = result["content"].as_str().unwrap();
    let lines: Vec<Json> = text.lines().map(|line| parse(line).unwrap()).collect();
    assert_eq!(result["items"], lines.len());
    assert_eq!(
        (&lines[0]["type"], &lines[0]["version"]),
        (&json!("session"), &json!(3))
    );
    assert!(
        lines[0]["parentSession"]
            .as_str()
            .unwrap()
            .ends_with("s.jsonl")
    );
    let steps = lines.iter().filter(|line| line["type"] == "message");
    let steps: Vec<_> = steps.cloned().collect();
    assert_eq!(ids(&json!(steps)), ["s0", "u1", "a1", "r1", "a2"]);
    assert!(text.contains("[redacted:github-token]") && !text.contains(&token()));
    let plain = content(&mut d, json!({"format": "trace", "redact": false}));
    assert!(plain.contains(&token()), "{plain}");
    let other = content(&mut d, json!({"format": "trace", "entryId": "a3"}));
    assert!(
        other.contains("No.") && !other.contains("failed"),
        "{other}"
    );
    for scope in ["tree", "subtree"] {
        let params = json!({"format": "trace", "scope": scope, "entryId": "u1"});
        let error = d.err("export_session", params);
        assert_eq!(
            (error.kind.as_str(), error.details("field")),
            ("invalidParams", &json!("scope"))
        );
    }
    let (mut d, _) = opened(&Home::new(), &Log::new("s2"));
    for format in ["trace", "atif", "verifiers"] {
        let error = d.err("export_session", json!({"format": format}));
        assert_eq!(error.kind, "nothingToExport", "{format}");
    }
}

#[test]
fn a_branch_is_a_trajectory_with_results_beside_their_calls() {
    let home = Home::new();
    let reader = Reader::of("atif");
    let orphan = tool_result("t9", "bash", "late", false);
    let log = called().message("r2", "a2", orphan);
    let (mut d, _) = opened(&home, &log);
    let found = reader.lines(&content(&mut d, json!({"format": "atif"})));
    let [line] = &*found else { panic!("{found:?}") };
    let arguments = json!({"command": "login [redacted:github-token]"});
    let metrics =
        json!({"prompt_tokens": 8, "completion_tokens": 2, "cached_tokens": 3, "cost_usd": 0.5});
    let expected = json!({
        "schema_version": "ATIF-v1.7",
        "session_id": "s1",
        "steps": [
            {"step_id": 1, "timestamp": "2025-01-01T00:00:01.000Z", "source": "system", "message": "Be short.",
                "extra": {"entry_id": "s0"}},
            {"step_id": 2, "timestamp": "2025-01-01T00:00:02.000Z", "source": "user", "message": "Look at it.",
                "extra": {"entry_id": "u1"}},
            {"step_id": 3, "timestamp": "2025-01-01T00:00:03.000Z", "source": "agent", "message": "",
                "model_name": "mod", "reasoning_content": "Look first.",
                "tool_calls": [{"tool_call_id": "t1", "function_name": "bash", "arguments": arguments}],
                "metrics": metrics,
                "observation": {"results": [{"source_call_id": "t1", "content": "3 failed",
                    "extra": {"entry_id": "r1", "is_error": true}}]},
                "extra": {"entry_id": "a1"}},
            {"step_id": 4, "timestamp": "2025-01-01T00:00:05.000Z", "source": "agent", "message": "An import is missing.",
                "model_name": "mod", "metrics": metrics, "extra": {"entry_id": "a2"}},
            {"step_id": 5, "timestamp": "2025-01-01T00:00:08.000Z", "source": "system", "message": "",
                "observation": {"results": [{"content": "late", "extra": {"entry_id": "r2"}}]},
                "extra": {"entry_id": "r2"}},
        ],
        "trajectory_id": "s1/r2",
        "agent": {"name": "unknown", "version": "unknown", "model_name": "mod", "tool_definitions": [
            {"type": "function", "function": {"name": "bash", "description": "Runs it.", "parameters": {"type": "object"}}},
        ]},
        "final_metrics": {"total_prompt_tokens": 16, "total_completion_tokens": 4, "total_cached_tokens": 6,
            "total_cost_usd": 1, "total_steps": 5},
    });
    assert_eq!(*line, expected, "{line:#}");
    let tree = json!({"format": "atif", "scope": "tree"});
    let tree = reader.lines(&content(&mut d, tree));
    let names: Vec<_> = tree.iter().map(|line| &line["trajectory_id"]).collect();
    assert_eq!(names, ["s1/a3", "s1/r2"]);
}

/// The session of a subagent.
fn subagent(home: &Home, id: &str, spawned_by: Json, said: &str) {
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2025-01-01T00:00:00.000Z",
        "cwd": "/project", "spawnedBy": spawned_by});
    let mut log = Log::with_header(header);
    if !said.is_empty() {
        log = log.user("u1", "", said).assistant("a1", "u1", "Done.");
    }
    log.store(home, &format!("2025-01-01_{id}.jsonl"));
}

#[test]
fn subagents_are_nested_where_their_call_is() {
    let home = Home::new();
    let reader = Reader::of("atif");
    called().store(&home, "2025-01-01_s1.jsonl");
    let of = |more: Json| {
        let mut by = json!({"sessionId": "s1"});
        by.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        by
    };
    subagent(
        &home,
        "g1",
        of(json!({"entryId": "a1", "toolCallId": "t1"})),
        &format!("by call {}", token()),
    );
    subagent(&home, "g2", of(json!({"entryId": "a2"})), "by entry");
    subagent(
        &home,
        "g3",
        of(json!({"entryId": "a3"})),
        "of another branch",
    );
    subagent(&home, "g4", of(json!({})), "loose");
    subagent(&home, "g5", of(json!({"entryId": "a1"})), "");
    subagent(
        &home,
        "g6",
        json!({"sessionId": "g1", "entryId": "a1", "toolCallId": "nowhere"}),
        "of a subagent",
    );
    // Two subagents that name each other as parents.
    subagent(&home, "g7", json!({"sessionId": "g8"}), "round");
    subagent(&home, "g8", json!({"sessionId": "g7"}), "about");
    let mut d = daemon(&home);
    d.ok("open_session", json!({"sessionId": "s1"}));
    let result = d.ok("export_session", json!({"format": "atif"}));
    let found = reader.lines(result["content"].as_str().unwrap());
    let line = &found[0];
    let nested = line["subagent_trajectories"].as_array().unwrap();
    let names: Vec<_> = nested.iter().map(|line| &line["trajectory_id"]).collect();
    assert_eq!(names, ["g1", "g2", "g4"], "{line:#}");
    let reference = |id: &str| json!([{"trajectory_id": id, "session_id": id}]);
    let results = |step: usize| line["steps"][step]["observation"]["results"].clone();
    assert_eq!(results(2)[0]["source_call_id"], "t1");
    assert_eq!(results(2)[0]["subagent_trajectory_ref"], reference("g1"));
    assert_eq!(results(2).as_array().unwrap().len(), 1);
    assert_eq!(
        results(3),
        json!([{"subagent_trajectory_ref": reference("g2")}])
    );
    let inner = &nested[0]["subagent_trajectories"];
    assert_eq!(inner[0]["trajectory_id"], "g6");
    assert_eq!(
        nested[0]["steps"][0]["message"],
        "by call [redacted:github-token]"
    );
    assert_eq!(
        nested[0]["steps"][1]["observation"]["results"],
        json!([{"subagent_trajectory_ref": reference("g6")}])
    );
    // Two answers of this session, and one of each subagent.
    assert_eq!(line["final_metrics"]["total_cost_usd"], 3.0);
    assert_eq!(line["final_metrics"]["total_completion_tokens"], 4);
    assert_eq!(nested[0]["final_metrics"]["total_cost_usd"], 1.0);
    assert_eq!(
        result["redactions"],
        json!([{"kind": "github-token", "count": 2, "entryIds": ["a1", "u1"]}])
    );
    d.ok("open_session", json!({"sessionId": "g7"}));
    let round = content(&mut d, json!({"format": "atif", "sessionId": "g7"}));
    let round = reader.lines(&round);
    let inner = &round[0]["subagent_trajectories"];
    assert_eq!(inner[0]["trajectory_id"], "g8");
    assert_eq!(inner[0]["subagent_trajectories"], Json::Null);
}

#[test]
fn a_tree_is_a_graph_of_messages_and_a_compaction_a_chain() {
    let home = Home::new();
    let reader = Reader::of("verifiers");
    let log = called()
        .entry(
            "compaction",
            "c1",
            "a2",
            json!({"summary": "An import.", "firstKeptEntryId": "a2", "tokensBefore": 1}),
        )
        .user("u2", "c1", "Go on.");
    let (mut d, _) = opened(&home, &log);
    let found = reader.lines(&content(&mut d, json!({"format": "verifiers"})));
    let [line] = &*found else { panic!("{found:?}") };
    let nodes = line["nodes"].as_array().unwrap();
    let parents: Vec<_> = nodes.iter().map(|node| node["parent"].as_u64()).collect();
    let entries = line["info"]["entry_ids"].as_array().unwrap();
    let at = |id: &str| entries.iter().position(|entry| entry == id).unwrap();
    let named =
        |index: usize| parents[index].map(|above| entries[above as usize].as_str().unwrap());
    assert_eq!(named(at("s0")), None);
    assert_eq!(named(at("a1")), Some("u1"));
    assert_eq!(named(at("a3")), Some("u1"));
    // Messages after the compaction follow the summary and the messages that it kept, not the old messages.
    let mut chain = vec![at("u2")];
    while let Some(above) = parents[chain[chain.len() - 1]] {
        chain.push(above as usize);
    }
    let chain: Vec<_> = chain
        .iter()
        .rev()
        .map(|node| entries[*node].as_str().unwrap())
        .collect();
    assert_eq!(chain.last(), Some(&"u2"));
    assert!(
        chain.contains(&"c1") && chain.contains(&"a2") && !chain.contains(&"u1"),
        "{chain:?}"
    );
    let call = &nodes[at("a1")];
    assert_eq!(
        call["message"]["tool_calls"],
        json!([{"id": "t1", "type": "function", "name": "bash", "arguments": r#"{"command":"login [redacted:github-token]"}"#}])
    );
    assert_eq!(
        (&call["sampled"], &nodes[at("u1")]["sampled"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(line["calls"][0]["node"], at("a1"));
    assert_eq!(
        line["calls"][0]["usage"],
        json!({"prompt_tokens": 5, "completion_tokens": 2, "cached_input_tokens": 3, "cost": 0.5})
    );
    assert_eq!(line["tools"][0]["name"], "bash");
    assert_eq!((&line["id"], &line["version"]), (&json!("s1"), &json!(1)));
}

#[test]
fn lines_of_imported_sessions_are_valid_for_their_readers() {
    let home = Home::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import");
    let sources = ["claude-code", "codex", "gemini", "goose", "opencode", "pi"];
    let sources = sources.map(|name| data.join(name).to_str().unwrap().to_owned());
    let args = ["import", "--final", "--json"].into_iter();
    let args: Vec<&str> = args.chain(sources.iter().map(String::as_str)).collect();
    let result = parse(&home.run(&args, &[], "").text()).unwrap();
    let mut d = daemon(&home);
    let (mut trajectories, mut graphs, mut nested) = (0, 0, 0);
    for format in ["atif", "verifiers"] {
        let reader = Reader::of(format);
        for row in result["sessions"].as_array().unwrap() {
            let id = &row["sessionId"];
            d.ok("open_session", json!({"sessionId": id}));
            let path = home.cwd().join("lines");
            let params = json!({"sessionId": id, "format": format, "scope": "tree", "path": path, "overwrite": true});
            let answer = d.call("export_session", params);
            d.ok("close_session", json!({"sessionId": id}));
            if let Err(error) = answer {
                assert_eq!(error.kind, "nothingToExport");
                continue;
            }
            let found = reader.lines(&std::fs::read_to_string(path).unwrap());
            match format {
                "atif" => trajectories += found.len(),
                _ => graphs += found.len(),
            }
            nested += found
                .iter()
                .filter(|line| line["subagent_trajectories"].is_array())
                .count();
        }
    }
    assert!(
        trajectories > 10 && graphs > 10 && nested > 0,
        "{trajectories} {graphs} {nested}"
    );
}
