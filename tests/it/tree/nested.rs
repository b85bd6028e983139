//! `format: "nested"`: trees as nested objects, up to a depth.

use super::*;

#[test]
fn nested_trees_hold_whole_entries() {
    let log = two_branches().label("l1", "a3", "u2", json!("Left"));
    let mut d = opened(&log);
    let tree = d.ok("get_tree", json!({"format": "nested", "filter": "all"}));
    let u1 = &tree["nodes"][0];
    assert_eq!(u1["entry"], parse(log.line(1)).unwrap());
    let a1 = &u1["children"][0];
    assert_eq!(a1["entry"]["id"], "a1");
    let children: Vec<_> = a1["children"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n["entry"]["id"].clone())
        .collect();
    assert_eq!(children, ["u2", "u3"]);
    assert_eq!(a1["children"][0]["label"], "Left");
    assert_eq!(a1["children"][0]["labelTimestamp"], stamp(9));
    assert_eq!(a1["children"][0]["children"][0]["children"], json!([]));
}

#[test]
fn a_deep_nested_tree_is_refused_unless_max_depth_allows_it() {
    on_a_big_stack(|| {
        let chain = |n: usize| {
            let mut log = Log::new("s1").user("n0", "", "x");
            for i in 1..n {
                log = log.user(&format!("n{i}"), &format!("n{}", i - 1), "x");
            }
            log
        };
        let depth = |tree: &Json| {
            let mut level = &tree["nodes"];
            let mut depth = 0;
            while let Some(node) = level.get(0) {
                depth += 1;
                level = &node["children"];
            }
            depth
        };
        let tree = opened(&chain(250)).ok("get_tree", json!({"format": "nested"}));
        assert_eq!(depth(&tree), 250);
        let mut d = opened(&chain(400));
        let error = d.err("get_tree", json!({"format": "nested"}));
        assert_eq!((error.code, error.kind.as_str()), (1204, "nestingTooDeep"));
        assert!(
            error.message.contains("flat"),
            "names the flat form: {}",
            error.message
        );
        let tree = d.ok("get_tree", json!({"format": "nested", "maxDepth": 1000}));
        assert_eq!(depth(&tree), 400);
        assert_eq!(tree_ids(&mut d, json!({"format": "flat"})).len(), 400);
    });
}

/// Trees that were sent as nested objects once overflowed the stack of the serializer or the client at 2,000 levels.
#[test]
fn a_nested_tree_of_2500_levels_is_sent() {
    on_a_big_stack(|| {
        let mut log = Log::new("s1").user("n0", "", "x");
        for n in 1..2_500 {
            log = log.user(&format!("n{n}"), &format!("n{}", n - 1), "x");
        }
        let (mut d, _) = Daemon::opened(log.text().as_bytes());
        d.err_kind("get_tree", json!({"format": "nested"}), "nestingTooDeep");
        let id = d.send("get_tree", json!({"format": "nested", "maxDepth": 10000}));
        assert_eq!(d.response_text(&id).matches("\"children\":").count(), 2_500);
        assert_eq!(d.ok("get_tree", json!({}))["total"], 2_500);
        assert_eq!(d.path_ids(None).len(), 2_500);
    });
}
