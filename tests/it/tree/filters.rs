//! Filters and scope: which rows `get_tree` shows, and where they are among the shown rows.

use super::*;

#[test]
fn each_filter_shows_its_kinds_of_entries() {
    let mut d = opened(&with_bookkeeping());
    for (filter, expected) in [
        (
            "default",
            &["u1", "a1", "u2", "a2", "u3", "t3", "a3", "v1", "k1", "b1"][..],
        ),
        (
            "no-tools",
            &["u1", "a1", "u2", "a2", "u3", "a3", "v1", "k1", "b1"],
        ),
        ("user-only", &["u1", "u2", "u3", "v1"]),
        ("labeled-only", &["u2"]),
        (
            "all",
            &[
                "u1", "a1", "u2", "a2", "u3", "c3", "t3", "a3", "l1", "i1", "h1", "m1", "x1", "e1",
                "g1", "v1", "n1", "k1", "b1",
            ],
        ),
    ] {
        let tree = d.ok("get_tree", json!({"filter": filter}));
        assert_eq!(ids(&tree["nodes"]), expected, "{filter}");
        assert_eq!(tree["total"], expected.len(), "{filter}");
        assert_eq!(tree["hidden"], 19 - expected.len(), "{filter}");
    }
    assert_eq!(
        tree_ids(&mut d, json!({})).len(),
        10,
        "default is the default"
    );
    let tree = d.ok("get_tree", json!({}));
    assert_eq!(row(&tree, "k1")["tokens"], 1234);
    assert_eq!(
        row(&tree, "v1")["parentId"],
        "a3",
        "the nearest visible ancestor"
    );
    assert_eq!(row(&tree, "u2")["label"], "Left turn");
    assert_eq!(row(&tree, "u2")["labelTimestamp"], stamp(9));
}

#[test]
fn depth_and_parent_are_those_of_the_visible_tree() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"filter": "user-only"}));
    assert_eq!(ids(&tree["nodes"]), ["u1", "u2", "u3"]);
    assert_eq!(
        column(&tree, "parentId"),
        [Json::Null, json!("u1"), json!("u1")]
    );
    assert_eq!(column(&tree, "depth"), [0, 1, 1]);
    assert_eq!(column(&tree, "childCount"), [2, 0, 0]);
    assert_eq!(
        column(&tree, "isLeaf"),
        [false, false, true],
        "the nearest visible ancestor of the leaf"
    );
    assert_eq!(column(&tree, "isBranchPoint"), [true, false, false]);

    let tree = d.ok("get_tree", json!({"filter": "labeled-only"}));
    assert_eq!(
        (&tree["nodes"], &tree["rootIds"], &tree["total"]),
        (&json!([]), &json!([]), &json!(0))
    );
}

#[test]
fn a_message_of_tool_calls_only_is_hidden_unless_it_failed_or_is_the_leaf() {
    let mut failed = assistant_with(json!([tool_call("k", "read", json!({}))]));
    failed["stopReason"] = json!("error");
    failed["errorMessage"] = json!("overloaded");
    let log = Log::new("s1")
        .user("u1", "", "x")
        .message(
            "c1",
            "u1",
            assistant_with(json!([tool_call("a", "read", json!({}))])),
        )
        .message("c2", "c1", failed)
        .message(
            "c3",
            "c2",
            assistant_with(json!([tool_call("b", "read", json!({}))])),
        );
    let mut d = opened(&log);
    assert_eq!(tree_ids(&mut d, json!({})), ["u1", "c2", "c3"]);
    d.set_leaf(Some("u1"));
    assert_eq!(tree_ids(&mut d, json!({})), ["u1", "c2"]);
}

/// An assistant message without text, or with thoughts only, was once a row without text. Like pi, the daemon now hides
/// it, unless the message ended early or is the leaf.
#[test]
fn an_assistant_message_without_text_is_hidden_unless_it_ended_early_or_is_the_leaf() {
    let stopped = |content: Json, stop_reason: &str| {
        let mut message = assistant_with(content);
        message["stopReason"] = json!(stop_reason);
        message
    };
    let thought = || json!([{"type": "thinking", "thinking": "hm"}]);
    let log = Log::new("s1")
        .user("u1", "", "x")
        .message("thinks", "u1", stopped(thought(), "stop"))
        .message("empty", "thinks", stopped(json!([]), "stop"))
        .message(
            "blank",
            "empty",
            stopped(json!([{"type": "text", "text": " \n"}]), "toolUse"),
        )
        .message("cut", "blank", stopped(thought(), "length"))
        .message("aborted", "cut", stopped(json!([]), "aborted"))
        .message("failed", "aborted", stopped(thought(), "error"))
        .message("leaf", "failed", stopped(thought(), "stop"));
    let mut d = opened(&log);
    let shown = ["u1", "cut", "aborted", "failed", "leaf"];
    for filter in ["default", "no-tools"] {
        assert_eq!(tree_ids(&mut d, json!({"filter": filter})), shown);
    }
    assert_eq!(tree_ids(&mut d, json!({"filter": "all"})).len(), 8);
    d.set_leaf(Some("blank"));
    let shown = ["u1", "blank", "cut", "aborted", "failed"];
    assert_eq!(tree_ids(&mut d, json!({})), shown);
}

#[test]
fn root_id_limits_the_tree_to_one_subtree() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"rootId": "u3", "filter": "all"}));
    assert_eq!(ids(&tree["nodes"]), ["u3", "c3", "t3", "a3"]);
    assert_eq!(tree["total"], 4);
    assert_eq!(tree["hidden"], 0, "entries out of scope are not hidden");
    d.err_kind("get_tree", json!({"rootId": "nobody"}), "entryNotFound");
}

#[test]
fn max_depth_leaves_deeper_rows_out() {
    let mut d = opened(&two_branches());
    let whole = d.ok("get_tree", json!({"filter": "all"}));
    for max in 0..7_u64 {
        let tree = d.ok("get_tree", json!({"filter": "all", "maxDepth": max}));
        let expected: Vec<_> = whole["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|n| n["depth"].as_u64().unwrap() <= max)
            .map(|n| n["id"].clone())
            .collect();
        assert_eq!(
            json!(ids(&tree["nodes"])),
            json!(expected),
            "maxDepth {max}"
        );
        assert_eq!(tree["total"], expected.len(), "maxDepth {max}");
        assert_eq!(
            tree["hidden"], 0,
            "`hidden` does not count rows below the depth"
        );
    }
}

#[test]
fn folded_rows_keep_their_count_and_lose_their_children() {
    let mut d = opened(&two_branches());
    let tree = d.ok("get_tree", json!({"filter": "all", "fold": ["u3"]}));
    assert_eq!(ids(&tree["nodes"]), ["u1", "a1", "u2", "a2", "u3"]);
    assert_eq!(tree["total"], 5);
    assert_eq!(row(&tree, "u3")["childCount"], 1, "as if unfolded");
    let tree = d.ok("get_tree", json!({"filter": "all", "fold": ["a1", "u3"]}));
    assert_eq!(ids(&tree["nodes"]), ["u1", "a1"]);
    assert_eq!(row(&tree, "a1")["childCount"], 2);
}

#[test]
fn the_default_filter_hides_settings_bookkeeping_labels_and_custom_entries() {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    d.ok(
        "append_entries",
        json!({"entries": [
            {"type": "thinking_level_change", "thinkingLevel": "high"},
            {"type": "model_change", "provider": "p", "modelId": "m"},
            {"type": "mode_change", "id": "mode", "mode": "plan"},
            {"type": "session_info", "name": "n"},
            {"type": "usage", "kind": "k", "provider": "p", "model": "m", "usage": {}},
            {"type": "context_edit", "targetId": "u1", "replacement": null},
            {"type": "custom", "customType": "c"},
            {"type": "label", "targetId": "u1", "label": "l"},
            {"type": "message", "id": "u3", "message": user("x")},
        ]}),
    );
    let rows = d.ok("get_tree", json!({}));
    assert_eq!(ids(&rows["nodes"]), ["u1", "a1", "u2", "a2", "u3"]);
    assert_eq!(rows["hidden"], 8);
    let all = d.ok("get_tree", json!({"filter": "all"}));
    assert_eq!(all["total"], 13);
    // A `mode` entry of oh-my-pi once had a row in every list, but the row did not show the mode.
    assert_eq!(row(&all, "mode")["preview"], "plan");
}
