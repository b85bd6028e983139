//! Sessions as data for training (protocol.md §16, "Data").

use super::*;

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| parse(line).unwrap()).collect()
}

#[test]
fn a_branch_is_a_line_of_chat_messages() {
    let home = Home::new();
    let system = json!({"role": "system", "content": "Be short.", "sections": {"cwd": "In /project."},
        "toolsAdded": [{"name": "bash", "description": "Runs it.", "parameters": {"type": "object"}, "label": "Bash"}]});
    let image = json!({"role": "user", "content": [
        {"type": "text", "text": "And this?"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
    ]});
    let call = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Look first."},
        {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": format!("login {}", token())}},
    ], "provider": "p", "model": "m"});
    let result = json!({"role": "toolResult", "toolCallId": "t1", "toolName": "bash", "content": [
        {"type": "text", "text": "done"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
    ]});
    let log = Log::new("s1")
        .message("s0", "", system)
        .message("u1", "s0", image)
        .message("a1", "u1", call)
        .message("r1", "a1", result)
        .assistant("a2", "r1", "A \u{fffd} picture.")
        .user("u2", "a2", "Nobody answers this.");
    let (mut d, _) = opened(&home, &log);
    let result = d.ok("export_session", json!({"format": "sft"}));
    assert_eq!(result["items"], 1);
    assert_eq!(
        result["redactions"],
        json!([{"kind": "github-token", "count": 1, "entryIds": ["a1"]}])
    );
    let line = parse(result["content"].as_str().unwrap()).unwrap();
    let arguments = r#"{"command":"login [redacted:github-token]"}"#;
    let expected = json!({
        "messages": [
            {"role": "system", "content": "Be short.\n\nIn /project."},
            {"role": "user", "content": [
                {"type": "text", "text": "And this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ]},
            {"role": "assistant", "content": "", "reasoning_content": "Look first.", "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "bash", "arguments": arguments}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "name": "bash", "content": "done\n[image: image/png]"},
            {"role": "assistant", "content": "A \u{fffd} picture."},
        ],
        "tools": [{"type": "function", "function": {"name": "bash", "description": "Runs it.", "parameters": {"type": "object"}}}],
        "session_id": "s1",
        "entry_id": "a2",
        "model": line["model"],
    });
    assert_eq!(line, expected);
    let plain = content(&mut d, json!({"format": "sft", "redact": false}));
    assert!(plain.contains(&token()), "{plain}");
    let short = content(&mut d, json!({"format": "sft", "entryId": "r1"}));
    let short = parse(&short).unwrap();
    assert_eq!(short["entry_id"], "a1");
    // A call without a result here does not get an invented one.
    assert_eq!(short["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn a_tree_is_a_line_for_each_branch() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched().assistant("a4", "u1", "Left."));
    d.ignore("branches_changed");
    let ends = |d: &mut Daemon, params: Json| {
        let found = lines(&content(d, params));
        let ids = found
            .iter()
            .map(|line| line["entry_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let tree = json!({"format": "sft", "scope": "tree"});
    assert_eq!(ends(&mut d, tree.clone()), ["a2", "a3", "a4"]);
    assert_eq!(ends(&mut d, json!({"format": "sft"})), ["a4"], "the leaf");
    let subtree = json!({"format": "sft", "scope": "subtree", "entryId": "u2"});
    let text = content(&mut d, subtree);
    assert!(
        text.contains("another <b>way</b>") && !text.contains("Why does it fail"),
        "{text}"
    );
    d.ok("archive_branch", json!({"entryId": "a3"}));
    assert_eq!(ends(&mut d, tree), ["a2", "a4"]);
}

/// Three answers to one question, and one to another.
fn answered() -> Log {
    Log::new("s1")
        .user("u1", "", "Which one?")
        .assistant("a1", "u1", "The first.")
        .assistant("a2", "u1", "The second.")
        .assistant("a3", "u1", "The third.")
        .user("u2", "a3", "Why?")
        .assistant("a4", "u2", "Because.")
        .user("u3", "a3", "How?")
        .assistant("a5", "u3", "So.")
}

#[test]
fn each_pair_says_where_its_judgement_comes_from() {
    let home = Home::new();
    let log = answered()
        .label("l1", "a5", "a1", json!("Dead end"))
        .user("u4", "a5", "Again?");
    let (mut d, _) = opened(&home, &log);
    for name in ["session_tree", "entries_appended", "event_resolved"] {
        d.ignore(name);
    }
    let found = lines(&content(&mut d, json!({"format": "dpo"})));
    assert_eq!(
        found.len(),
        2,
        "questions that differ are not a pair: {found:?}"
    );
    let said = |text: &str, role: &str| json!([{"role": role, "content": text}]);
    let judgement = json!({"origin": "label", "entry_id": "l1", "reason": "Dead end", "by": null});
    let expected = json!({
        "prompt": said("Which one?", "user"),
        "chosen": said("The third.", "assistant"),
        "rejected": said("The first.", "assistant"),
        "judgement": judgement,
        "session_id": "s1", "prompt_id": "u1", "chosen_id": "a3", "rejected_id": "a1",
    });
    assert_eq!(found[0], expected);
    let left = json!({"origin": "left", "entry_id": null, "reason": null, "by": null});
    assert_eq!(
        (&found[1]["rejected_id"], &found[1]["judgement"]),
        (&json!("a2"), &left)
    );
    // Candidates share the question. Until one is chosen they show no preference.
    for ids in [["b1", "b2"], ["c1", "c2"]] {
        let entries = json!([{"type": "message", "message": user("Fast?"), "id": ids[0]},
            {"type": "message", "message": assistant(ids[1]), "id": ids[1]}]);
        d.ok(
            "append_entries",
            json!({"entries": entries, "parentId": "a5", "keepLeaf": true, "group": "fast"}),
        );
    }
    assert_eq!(lines(&content(&mut d, json!({"format": "dpo"}))).len(), 2);
    d.ok("choose", json!({"tipId": "c2", "reason": "it is faster"}));
    let found = lines(&content(&mut d, json!({"format": "dpo"})));
    let choice = found
        .iter()
        .find(|pair| pair["judgement"]["origin"] == "choice");
    let choice = choice.expect("a pair of the choice");
    assert_eq!(
        [
            &choice["chosen_id"],
            &choice["rejected_id"],
            &choice["judgement"]["reason"]
        ],
        [&json!("c2"), &json!("b2"), &json!("it is faster")]
    );
    assert!(
        choice["judgement"]["by"].is_string(),
        "the client: {choice}"
    );
    let subtree = json!({"format": "dpo", "scope": "subtree", "entryId": "a5"});
    let subtree = lines(&content(&mut d, subtree));
    assert_eq!(subtree.len(), 1);
    assert!(!subtree[0].to_string().contains("Which one?"));
}

#[test]
fn nothing_to_pair_says_what_to_do() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &Log::new("s1").user("u1", "", "hello"));
    let error = d.err("export_session", json!({"format": "dpo"}));
    assert_eq!(error.kind, "nothingToExport");
    assert!(error.message.contains("go back to a prompt"), "{error:?}");
    let path = home.cwd().join("out.jsonl");
    let error = d.err("export_session", json!({"format": "sft", "path": path}));
    assert_eq!(error.kind, "nothingToExport");
    assert!(error.message.contains("after an answer"), "{error:?}");
    assert!(names_in(&home.cwd()).is_empty(), "no file is left");
    let error = d.err(
        "export_session",
        json!({"format": "dpo", "scope": "branch"}),
    );
    assert_eq!(
        (error.kind.as_str(), error.details("field")),
        ("invalidParams", &json!("scope"))
    );
}

#[test]
fn the_command_names_the_format_and_counts_the_lines() {
    let home = Home::new();
    answered().store(&home, "2025-01-01_s1.jsonl");
    let run = |args: &[&str]| {
        let output = home.run(&[&["export", "s1", "--format"], args].concat(), &[], "");
        (output.code.unwrap(), output.text(), output.stderr)
    };
    let (code, out, err) = run(&["dpo"]);
    assert_eq!((code, lines(&out).len(), err.as_str()), (0, 2, ""));
    let (code, _, err) = run(&["sft", "--tree", "-o", "lines.jsonl"]);
    assert!(
        code == 0 && err.starts_with("wrote lines.jsonl: 4 lines, "),
        "{err}"
    );
    let (code, out, _) = run(&["text"]);
    assert!(code == 0 && out.starts_with("Which one?"), "{out}");
    let (code, _, err) = run(&["dpo", "--branch", "a1"]);
    assert!(
        code == 2 && err.contains("one branch has no pairs"),
        "{err}"
    );
    let (code, _, err) = run(&["dpo", "--subtree", "u3"]);
    assert!(
        code == 1 && err.contains("nothingToExport") && err.contains("  try: "),
        "{err}"
    );
    assert_eq!(run(&["nothing"]).0, 2);
    assert_eq!(run(&["dpo", "--html"]).0, 2);
}
