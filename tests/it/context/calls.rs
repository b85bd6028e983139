//! Calls and results in the context for a model.

use super::*;
use crate::fixture::{assistant_with, tool_result};

#[test]
fn every_call_has_its_result_in_the_llm_format() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}});
    let log = Log::new("s1")
        .user("u1", "", "build it")
        .message("a1", "u1", assistant_with(json!([call("c1"), call("c2")])))
        .message("r2", "a1", tool_result("c2", "bash", "done", false))
        .message(
            "r9",
            "r2",
            tool_result("c9", "bash", "of another branch", false),
        )
        .user("u2", "r9", "go on");
    let mut d = opened(&log);
    let context = d.ok("get_context", json!({"format": "llm"}));
    assert_eq!(context["entryIds"], json!(["u1", "a1", "r2", null, "u2"]));
    let messages = context["messages"].as_array().unwrap();
    let added = &messages[3];
    assert_eq!(added["role"], "toolResult");
    assert_eq!(added["toolCallId"], "c1");
    assert_eq!(added["toolName"], "bash");
    assert_eq!(added["isError"], true);
    assert_eq!(
        added["content"],
        json!([{"type": "text", "text": "No result was recorded."}])
    );
    let stored = d.ok("get_context", json!({}));
    assert_eq!(ids(&stored["entryIds"]), ["u1", "a1", "r2", "r9", "u2"]);
}
