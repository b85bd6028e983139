//! Tool calls and the results below them.

use super::*;

fn called(calls: Json) -> Json {
    assistant_with(calls)
}

#[test]
fn a_call_has_its_result_from_the_path_below() {
    let calls = json!([
        {"type": "text", "text": "Look."},
        tool_call("k", "read", json!({"path": "a.rs"})),
        tool_call("l", "bash", json!({"command": "ls"})),
        tool_call("m", "bash", json!({"command": "never"})),
    ]);
    let log = Log::new("s1")
        .user("u1", "", "one")
        .message("a1", "u1", called(calls))
        .message("r1", "a1", tool_result("l", "bash", "out", true))
        .label("l1", "r1", "r1", json!("x"))
        // The agent makes another call before it has the first result.
        .message(
            "a2",
            "l1",
            called(json!([tool_call("n", "bash", json!({"command": "pwd"}))])),
        )
        .message("r2", "a2", tool_result("k", "read", "fn a() {}", false))
        .message("r3", "r2", tool_result("n", "bash", "/", false))
        .user("u2", "r3", "two")
        .message("r4", "u2", tool_result("m", "bash", "late", false));
    let mut d = opened(&log);
    let found = blocks(&mut d, "a1");
    let result = |entry: &str, is_error: bool, block: Json| json!({"entryId": entry, "isError": is_error, "blocks": [block]});
    let code = json!({"kind": "code", "language": "rs", "text": "fn a() {}"});
    assert_eq!(found[1]["result"], result("r2", false, code), "{found}");
    let out = json!({"kind": "code", "text": "out"});
    assert_eq!(found[2]["result"], result("r1", true, out), "{found}");
    assert_eq!(
        found[3].get("result"),
        None,
        "after the next message of the user"
    );
    assert_eq!(blocks(&mut d, "a2")[0]["result"]["entryId"], "r3");
    let ids = d.ok(
        "render_entries",
        json!({"entryIds": ["a1"], "results": "ids"}),
    );
    assert_eq!(
        ids["entries"][0]["blocks"][1]["result"],
        json!({"entryId": "r2", "isError": false})
    );
    let own = d.ok("render_entries", json!({"entryIds": ["r1"]}));
    let own = &own["entries"][0];
    assert_eq!(
        (&own["toolCallId"], &own["isError"]),
        (&json!("l"), &json!(true))
    );
}

#[test]
fn of_several_results_that_on_the_path_counts() {
    let log = Log::new("s1")
        .user("u1", "", "one")
        .message(
            "a1",
            "u1",
            called(json!([tool_call("k", "bash", json!({"command": "ls"}))])),
        )
        .message("r1", "a1", tool_result("k", "bash", "first", false))
        .user("u2", "r1", "two")
        .message("r2", "a1", tool_result("k", "bash", "second", false))
        .user("u3", "r2", "three")
        .user("u4", "", "elsewhere");
    let mut d = opened(&log);
    let mut result = |leaf: Json| {
        let params = json!({"entryIds": ["a1"], "results": "ids", "leafId": leaf});
        let found = d.ok("render_entries", params);
        found["entries"][0]["blocks"][0]["result"]["entryId"].clone()
    };
    assert_eq!(result(json!("u2")), "r1");
    assert_eq!(result(json!("u3")), "r2");
    assert_eq!(result(json!("u4")), "r1", "the oldest");
    assert_eq!(result(Json::Null), "r1");
    assert_eq!(blocks(&mut d, "a1")[0]["result"]["entryId"], "r1");
    d.set_leaf(Some("u3"));
    assert_eq!(blocks(&mut d, "a1")[0]["result"]["entryId"], "r2");
    let unknown = json!({"entryIds": ["a1"], "leafId": "nobody"});
    d.err_kind("render_entries", unknown, "entryNotFound");
}

/// In the file, a result can be far from its call, and its id can come after its content.
#[test]
fn the_result_is_found_wherever_the_line_names_its_call() {
    let content = "x".repeat(100_000);
    let line = format!(
        r#"{{"message":{{"content":[{{"type":"text","text":"{content}"}}],"role":"toolResult","toolCallId":"k"}},"type":"message","id":"r1","parentId":"a1","timestamp":"2026-11-22T05:40:35.831Z"}}"#
    );
    let log = Log::new("s1")
        .message("a1", "", called(json!([tool_call("k", "bash", json!({}))])))
        .user("b1", "", "between")
        .raw(&line);
    let mut d = opened(&log);
    let found = blocks(&mut d, "a1");
    assert_eq!(found[0]["result"]["blocks"][0]["text"], content);
}
