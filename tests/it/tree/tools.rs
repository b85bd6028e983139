//! Rows of tool calls and tool results.

use super::*;

/// Rows of tool results showed the first line of the result, often the same in many rows, and not the call.
/// Rows of calls showed all arguments as stored.
#[test]
fn a_tool_results_row_shows_the_call_then_the_result() {
    let mut d = opened(&with_tools());
    let tree = d.ok("get_tree", json!({"filter": "all"}));
    let preview = |tree: &Json, id: &str| row(tree, id)["preview"].as_str().unwrap().to_owned();
    for (id, expected) in [
        ("calls", "bash cargo test, Edit src/lib.rs, weather Ulm"),
        ("failed", "bash cargo test → ✗ 3 failed"),
        ("edited", "Edit src/lib.rs → 1 file changed"),
        ("other", "weather Ulm → Rain"),
        ("lost", "grep → a.rs:1"),
        ("bare", "bash cargo test"),
    ] {
        assert_eq!(preview(&tree, id), expected);
    }
    let ascii = d.ok("get_tree", json!({"render": "ascii"}));
    assert_eq!(preview(&ascii, "failed"), "bash cargo test -> x 3 failed");
    assert_eq!(preview(&ascii, "other"), "weather Ulm -> Rain");
    let call = |id: &str| row(&tree, id)["toolCall"].clone();
    assert_eq!(
        call("failed"),
        json!({"name": "bash", "summary": "cargo test"})
    );
    assert_eq!(call("lost"), json!({"name": "grep"}));
    assert_eq!(call("calls"), Json::Null);
    // Another page, and a tree with another root, show the same.
    let page = d.ok("get_tree", json!({"around": "edited", "limit": 1}));
    assert_eq!(page["nodes"][0]["preview"], preview(&tree, "edited"));
    let below = d.ok("get_tree", json!({"rootId": "edited"}));
    assert_eq!(preview(&below, "edited"), preview(&tree, "edited"));
}

/// If the whole does not fit, the result is shown rather than the end of the call.
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
        preview.chars().count() <= 200 && preview.starts_with("bash very long"),
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
    assert_eq!(branches["branches"][0]["preview"], "ls src → b");
}

/// A view is extended by appended entries: rows of results must find their calls in it.
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
    assert_eq!(
        last,
        [
            "Edit src/lib.rs → 1 file changed",
            "read late.rs → fn late() {}"
        ]
    );
    d.ok("get_tree", json!({"filter": "user-only"}));
    assert_eq!(d.ok("get_tree", all)["nodes"], extended["nodes"]);
}
