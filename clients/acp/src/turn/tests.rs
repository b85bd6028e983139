use super::*;

/// The name in each call of a turn, and the name in each result.
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

/// Once a record had `execute` where the import of the same conversation has `bash`, because later titles of a call
/// hid its name.
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
        // In opencode the first title is the name. Later titles describe the call.
        (begun("c1", "bash", none.clone()), "Lists files", "bash"),
        (begun("c1", "bash", none.clone()), "ls", "bash"),
        // goose and Claude Code have the name of the tool in `_meta`.
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
        // In Gemini CLI the id begins with the name. The title of a call may be one word.
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
        // Nothing in this call is a name.
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

/// Once a record of Gemini CLI 0.61 had `execute` where the import of the same conversation has `run_shell_command`,
/// because the model's own id came after the name. These are its messages. Ids without the model's have a time.
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
        // A call that needed permission has only its last update.
        assert_eq!(names(&[ended]), [name, name], "{id}");
    }
    // Gemini CLI itself makes such ids for files that a prompt names: the model calls nothing then.
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

/// Some providers put a signature into the id of a call, after `__`.
#[test]
fn an_id_of_another_agent_names_nothing() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "call_1__thought__Zm9v", "title": "bash",
        "kind": "execute", "status": "completed", "rawInput": {}});
    assert_eq!(names(&[call]), ["bash", "bash"]);
}

/// The time in which a processor has run this thread, in nanoseconds. Other programs do not count.
fn processor_time() -> u64 {
    // Only then Linux brings the number up to date.
    std::thread::yield_now();
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    spent.split(' ').next().unwrap().parse().unwrap()
}

/// Makes a turn with calls and messages, and returns the processor time that it took.
fn long_turn(count: usize) -> u64 {
    let began = processor_time();
    let mut turn = Turn::default();
    let plan = json!({"sessionUpdate": "plan", "entries": []});
    for number in 0..count {
        let id = format!("c{number}");
        turn.update(&json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "t"}));
        turn.update(&plan);
        turn.update(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}),
        );
        turn.permission(&json!({}), &Value::Null);
    }
    for number in 0..count {
        turn.update(
            &json!({"sessionUpdate": "agent_message_chunk", "messageId": format!("m{number}"),
            "content": {"type": "text", "text": "x"}}),
        );
    }
    let items = turn.finish(Some("end_turn"), None);
    let plans = items
        .iter()
        .filter(|item| matches!(item, Item::Custom("acp.plan", _)));
    assert_eq!((items.len(), plans.count()), (2 * count + 3, 1));
    processor_time() - began
}

/// Once a turn of 8,000 calls took 58 s, because each update searched all parts of the turn. With such a search,
/// sixteen times as many updates take 256 times as long.
#[test]
fn a_turn_takes_time_linear_in_its_updates() {
    let mut fastest = [u64::MAX; 2];
    let is_linear = (0..10).any(|number| {
        // Other programs make a processor slower for a while.
        std::thread::sleep(std::time::Duration::from_millis(50 * number));
        for (count, fastest) in [500, 8_000].into_iter().zip(&mut fastest) {
            *fastest = long_turn(count).min(*fastest);
        }
        fastest[1] < 64 * fastest[0]
    });
    assert!(is_linear, "{fastest:?}");
}

/// The texts of each message of a turn, and the types of its other entries.
fn told(turn: Turn) -> Vec<(String, String)> {
    let items = turn.finish(Some("end_turn"), None).into_iter();
    let row = items.map(|item| match item {
        Item::Message(message) => {
            let role = message["role"].as_str().unwrap().to_owned();
            (role, text_of(&message["content"]))
        }
        Item::Custom(kind, data) => (
            kind.to_owned(),
            data["text"].as_str().unwrap_or_default().to_owned(),
        ),
    });
    row.collect()
}

/// In Codex and Claude Code, a command shows its output in a terminal, beside the content of its call. Once a record
/// had the id of the terminal in place of the output, and the model got this id after a move.
#[test]
fn what_a_terminal_shows_is_the_result_of_its_call() {
    let mut turn = Turn::default();
    let call = |kind: &str, id: &str, members: Value| {
        let mut update = json!({"sessionUpdate": kind, "toolCallId": id});
        update
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        update
    };
    let shows =
        |id: &str| json!({"title": "ls", "content": [{"type": "terminal", "terminalId": id}]});
    for id in ["c1", "c2", "c3", "c4"] {
        turn.update(&call("tool_call", id, shows(id)));
    }
    let piece = |name: &str, id: &str, data: &str| json!({"_meta": {name: {"terminal_id": id, "data": data}}});
    turn.update(&call(
        "tool_call_update",
        "c1",
        piece("terminal_output", "c1", "one\n"),
    ));
    turn.update(&call(
        "tool_call_update",
        "c1",
        piece("terminal_output", "c1", "two\n"),
    ));
    turn.update(&call(
        "tool_call_update",
        "c2",
        piece("terminal_output_delta", "c2", "three"),
    ));
    turn.shows("c3", "f");
    turn.shows("c3", "four");
    for id in ["c1", "c2", "c3", "c4"] {
        turn.update(&call(
            "tool_call_update",
            id,
            json!({"status": "completed"}),
        ));
    }
    let told = told(turn);
    let results: Vec<&str> = told[1..].iter().map(|(_, text)| &**text).collect();
    assert_eq!(results, ["one\ntwo\n", "three", "four", "[terminal c4]"]);
}

/// Codex and Claude Code for ACP send their own warnings as messages of the agent without an id. Once such warnings
/// were recorded as texts of the model, which got them back after a move.
#[test]
fn a_text_without_an_id_is_a_notice_where_messages_have_ids() {
    let chunk = |id: Option<&str>, text: &str| {
        let content = json!({"type": "text", "text": text});
        json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": content})
    };
    let row = |kind: &str, text: &str| (kind.to_owned(), text.to_owned());
    let mut turn = Turn::default();
    for (id, text) in [
        (None, "Warning: "),
        (None, "slow"),
        (Some("m1"), "a"),
        (None, "!"),
        (Some("m1"), "b"),
    ] {
        turn.update(&chunk(id, text));
    }
    assert!(turn.has_ids());
    let notices = [row("acp.notice", "Warning: slow"), row("acp.notice", "!")];
    assert_eq!(
        told(turn),
        [&[row("assistant", "ab")], &notices[..]].concat()
    );
    // Ids of earlier chunks count.
    let mut turn = Turn::default();
    turn.set_has_ids();
    turn.update(&chunk(None, "Done."));
    assert_eq!(told(turn), [row("acp.notice", "Done.")]);
    // If an agent has no ids, all its texts are the model's.
    let mut turn = Turn::default();
    turn.update(&chunk(None, "Warning"));
    assert_eq!(told(turn), [row("assistant", "Warning")]);
}
