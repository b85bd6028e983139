//! Rows of tool calls and tool results.

use super::*;

/// Rows of tool results once showed the first line of the result, which is the same in many rows, and not the call.
/// Rows of calls showed all arguments as they were stored.
#[test]
fn a_tool_results_row_shows_the_call_then_the_result() {
    let mut d = opened(&with_tools());
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let preview = |tree: &Json, id: &str| row(tree, id)["preview"].as_str().unwrap().to_owned();
    for (id, expected) in [
        ("calls", "bash cargo test, Edit src/lib.rs, weather Ulm"),
        ("failed", "cargo test → ✗ 3 failed"),
        ("edited", "Edit src/lib.rs −1"),
        ("other", "weather Ulm → Rain"),
        ("lost", "grep → a.rs:1"),
        ("bare", "cargo test"),
    ] {
        assert_eq!(preview(&tree, id), expected);
    }
    let ascii = d.ok("get_tree", json!({"render": "ascii"}));
    assert_eq!(preview(&ascii, "failed"), "cargo test -> x 3 failed");
    assert_eq!(preview(&ascii, "other"), "weather Ulm -> Rain");
    let call = |id: &str| row(&tree, id)["toolCall"].clone();
    assert_eq!(
        call("failed"),
        json!({"name": "bash", "summary": "cargo test"})
    );
    assert_eq!(call("lost"), json!({"name": "grep"}));
    assert_eq!(call("calls"), Json::Null);
    // Another page, and a tree with another root, show the same text.
    let page = d.ok("get_tree", json!({"around": "edited", "limit": 1}));
    assert_eq!(page["nodes"][0]["preview"], preview(&tree, "edited"));
    let below = d.ok("get_tree", json!({"rootId": "edited"}));
    assert_eq!(preview(&below, "edited"), preview(&tree, "edited"));
}

/// If call and result do not both fit, the end of the call is cut rather than the result.
#[test]
fn a_long_command_does_not_hide_its_result() {
    let command = "very long ".repeat(50);
    let log = Log::new("s1")
        .message(
            "c",
            "",
            assistant_with(json!([
                tool_call("c", &"n".repeat(70), json!({"x": "y"})),
                tool_call("d", "bash", json!({"command": command}))
            ])),
        )
        .message("r", "c", tool_result("d", "bash", &"z".repeat(500), true));
    let mut d = opened(&log);
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let shown = row(&tree, "r");
    let preview = shown["preview"].as_str().unwrap();
    assert!(
        preview.chars().count() <= 200 && preview.starts_with("very long"),
        "{preview}"
    );
    assert!(
        preview.ends_with(&format!(" → ✗ {}", "z".repeat(80))),
        "{preview}"
    );
    assert!(
        shown["toolCall"]["summary"]
            .as_str()
            .unwrap()
            .chars()
            .count()
            <= 120
    );
}

/// Rows of calls of `Read` once had the whole path, and rows of results ended in `</system-reminder>`.
#[test]
fn rows_of_tools_say_what_a_person_would() {
    let calls = json!([
        tool_call("r", "Read", json!({"file_path": "/project/CLAUDE.md"})),
        tool_call(
            "e",
            "Edit",
            json!({"file_path": "/project/a_test.go", "old_string": "a\nb", "new_string": "c\nd\nb"})
        ),
        tool_call("t", "Bash", json!({"command": "cd /project && cargo test"})),
    ]);
    let read = "1→a\n2→b\n\n<system-reminder>\nIs it malware?\n</system-reminder>\n";
    let tests =
        "running 3 tests\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n\nerror: test failed";
    let log = Log::new("s1")
        .message("c", "", assistant_with(calls))
        .message("read", "c", tool_result("r", "Read", read, false))
        .message("edit", "read", tool_result("e", "Edit", "ok", false))
        .message("test", "edit", tool_result("t", "Bash", tests, false));
    let mut d = opened(&log);
    let tree = d.ok("get_tree", json!({"render": "unicode"}));
    for (id, expected) in [
        ("read", "Read CLAUDE.md → 2 lines"),
        ("edit", "Edit a_test.go +2 −1"),
        ("test", "cargo test → 2 failed"),
    ] {
        assert_eq!(row(&tree, id)["preview"], expected);
    }
    let ascii = d.ok("get_tree", json!({"render": "ascii"}));
    assert_eq!(row(&ascii, "edit")["preview"], "Edit a_test.go +2 -1");
    assert_eq!(row(&tree, "test")["toolCall"]["summary"], "cargo test");
}

#[test]
fn a_branch_whose_tip_is_a_tool_result_has_the_preview_of_its_row() {
    let log = Log::new("s1")
        .message(
            "c",
            "",
            assistant_with(json!([tool_call("c", "ls", json!({"path": "src"}))])),
        )
        .message("r", "c", tool_result("c", "ls", "a\nb", false));
    let mut d = opened(&log);
    let branches = d.ok("list_branches", json!({}));
    assert_eq!(branches["branches"][0]["preview"], "ls src → 2 lines");
}

/// Appended entries extend a view. The rows of results must find their calls in this view.
#[test]
fn tool_results_appended_after_a_get_tree_are_shown_as_in_a_new_one() {
    let mut d = opened(&with_tools());
    let all = json!({"filter": "all"});
    d.ok("get_tree", all.clone());
    let message = |message: Json| json!({ "message": message });
    let calls = assistant_with(json!([tool_call("c9", "read", json!({"path": "late.rs"}))]));
    d.ok("append_message", message(calls));
    d.ok("get_tree", all.clone());
    d.ok(
        "append_message",
        message(tool_result("c9", "read", "fn late() {}", false)),
    );
    d.ok(
        "append_message",
        message(tool_result("c2", "Edit", "ok", false)),
    );
    let extended = d.ok("get_tree", all.clone());
    let last: Vec<_> = column(&extended, "preview")
        .into_iter()
        .rev()
        .take(2)
        .collect();
    assert_eq!(last, ["Edit src/lib.rs −1", "read late.rs → fn late() {}"]);
    d.ok("get_tree", json!({"filter": "user-only"}));
    assert_eq!(d.ok("get_tree", all)["nodes"], extended["nodes"]);
}
