use super::*;

/// The names of a turn's calls, and the names in their results.
fn names(updates: &[Value]) -> Vec<String> {
    let mut turn = Turn::default();
    updates.iter().for_each(|update| turn.update(update));
    let items = turn.finish(Some("end_turn"), None);
    let mut names = Vec::new();
    for item in &items {
        let Item::Message(message) = item else {
            continue;
        };
        let blocks = message["content"].as_array().into_iter().flatten();
        let calls = blocks.map(|block| &block["name"]);
        let all = calls
            .chain([&message["toolName"]])
            .filter_map(Value::as_str);
        names.extend(all.map(str::to_owned));
    }
    names
}

/// A record had `execute` where the import of the same conversation has `bash`: later titles of a call hid its name.
#[test]
fn a_call_has_the_name_that_the_agent_gives_its_tool() {
    let begun = |id: &str, title: &str, meta: Value| {
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "execute", "status": "pending",
            "_meta": meta})
    };
    let ended = |id: &str, title: &str| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "title": title, "status": "completed",
            "kind": "execute", "_meta": {"terminal": true}})
    };
    let none = Value::Null;
    let cases = [
        // opencode: the first title is the name, the later ones say what the call does.
        (begun("c1", "bash", none.clone()), "Lists files", "bash"),
        (begun("c1", "bash", none.clone()), "ls", "bash"),
        // goose and Claude Code name the tool in `_meta`.
        (
            begun(
                "c1",
                "shell · ls",
                json!({"goose": {"toolCall": {"toolName": "shell"}}}),
            ),
            "shell · ls",
            "shell",
        ),
        (
            begun(
                "toolu_1",
                "`ls`",
                json!({"claudeCode": {"toolName": "Bash"}}),
            ),
            "`ls`",
            "Bash",
        ),
        // Gemini CLI: the id begins with the name. The title of its call may be one word.
        (
            begun(
                "run_shell_command__run_shell_command_1795315873489_0",
                "ls",
                none.clone(),
            ),
            "ls",
            "run_shell_command",
        ),
        (
            begun("run_shell_command-1795315873489-0", "ls -l", none.clone()),
            "ls -l",
            "run_shell_command",
        ),
        // Nothing names it.
        (
            begun("call-1", "List files", none.clone()),
            "List files",
            "execute",
        ),
    ];
    for (begun, title, name) in cases {
        let id = begun["toolCallId"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            names(&[begun.clone(), ended(&id, title)]),
            [name, name],
            "{begun}"
        );
    }
}

/// A record of Gemini CLI 0.61 had `execute` where the import of the same conversation has `run_shell_command`: the id
/// of the model's own was after the name. These are its messages; those without such an id have a time.
#[test]
fn every_tool_of_gemini_cli_has_its_name() {
    let cases = [
        (
            "run_shell_command__call_2",
            "echo hello",
            "execute",
            "run_shell_command",
        ),
        ("read_file__ab12cd34", "a.txt", "read", "read_file"),
        (
            "write_file__adk-1f0c",
            "Writing to b.txt",
            "edit",
            "write_file",
        ),
        (
            "list_directory__list_directory_1795790479892_0",
            ".",
            "search",
            "list_directory",
        ),
        (
            "mcp_a-b_echo__it__zz99",
            "echo__it (a-b MCP Server)",
            "other",
            "mcp_a-b_echo__it",
        ),
        (
            "mcp_a-b_echo__it__mcp_a-b_echo__it_1795790480275_0",
            "echo__it (a-b MCP Server)",
            "other",
            "mcp_a-b_echo__it",
        ),
    ];
    for (id, title, kind, name) in cases {
        let update = |update: &str, status: &str| {
            json!({"sessionUpdate": update, "toolCallId": id, "status": status, "title": title, "content": [],
                "locations": [], "kind": kind})
        };
        let (begun, ended) = (
            update("tool_call", "in_progress"),
            update("tool_call_update", "completed"),
        );
        assert_eq!(names(&[begun, ended.clone()]), [name, name], "{id}");
        // A call for which permission was asked has its end alone.
        assert_eq!(names(&[ended]), [name, name], "{id}");
    }
    // The program makes such ids where no model calls, for files that a prompt names.
    for id in ["mcp_a-b_echo-1795790480275-1", "mcp_a-b_echo-1795790480275"] {
        assert_eq!(name_in_id(id, false), Some("mcp_a-b_echo"));
    }
    for id in [
        "",
        "_",
        "__",
        "___",
        "-1795790480275",
        "call-1",
        "é_1_2",
        "__é__1_2",
    ] {
        assert!(
            name_in_id(id, false).is_none_or(|name| !name.is_empty()),
            "{id}"
        );
    }
}

/// Some providers hide a signature in the id of a call, after `__`.
#[test]
fn an_id_of_another_agent_names_nothing() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "call_1__thought__Zm9v", "title": "bash",
        "kind": "execute", "status": "completed", "rawInput": {}});
    assert_eq!(names(&[call]), ["bash", "bash"]);
}

/// A turn of 8,000 calls took 58 s: each update searched all parts of the turn.
#[test]
fn a_turn_takes_time_linear_in_its_updates() {
    let began = std::time::Instant::now();
    let mut turn = Turn::default();
    let plan = json!({"sessionUpdate": "plan", "entries": []});
    for number in 0..30_000 {
        let id = format!("c{number}");
        turn.update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "t"}));
        turn.update(&plan);
        turn.update(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}),
        );
        turn.permission(&json!({}), &Value::Null);
    }
    for number in 0..30_000 {
        turn.update(
            &json!({"sessionUpdate": "agent_message_chunk", "messageId": format!("m{number}"),
            "content": {"type": "text", "text": "x"}}),
        );
    }
    let items = turn.finish(Some("end_turn"), None);
    let plans = items
        .iter()
        .filter(|item| matches!(item, Item::Custom("acp.plan", _)));
    assert_eq!((items.len(), plans.count()), (60_003, 1));
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
}
