//! Single entries, children, paths, branches, labels, and pages of `get_entries`.

use super::*;

#[test]
fn the_last_label_in_the_file_wins_and_null_or_empty_clears() {
    let mut d = opened(
        &two_branches()
            .label("l1", "a3", "u1", json!("one"))
            .label("l2", "a2", "u1", json!("two"))
            .label("l3", "a2", "u2", json!("gone"))
            .label("l4", "a2", "u2", Json::Null)
            .label("l5", "a2", "u3", json!("gone"))
            .label("l6", "a2", "u3", json!("")),
    );
    let label = d.ok("get_label", json!({"entryId": "u1"}));
    assert_eq!(
        (&label["label"], &label["labelTimestamp"]),
        (&json!("two"), &json!(stamp(10)))
    );
    for id in ["u2", "u3", "a1"] {
        let label = d.ok("get_label", json!({"entryId": id}));
        assert!(label.get("label").is_none(), "{id}: {label}");
        assert!(label.get("labelTimestamp").is_none(), "{id}: {label}");
    }
    assert_eq!(
        tree_ids(&mut d, json!({"filter": "labeled-only"})),
        ["u1"],
        "across branches"
    );
    d.ok("append_label", json!({"targetId": "u1", "label": null}));
    assert_eq!(tree_ids(&mut d, json!({"filter": "labeled-only"})), [""; 0]);
    d.ok("append_label", json!({"targetId": "u1", "label": "back"}));
    assert_eq!(d.ok("get_label", json!({"entryId": "u1"}))["label"], "back");
    d.err_kind("get_label", json!({"entryId": "nobody"}), "entryNotFound");
}

#[test]
fn entries_are_found_by_id() {
    let log = two_branches();
    let mut d = opened(&log);
    assert_eq!(d.entry("t3"), parse(log.line(7)).unwrap());
    for method in ["get_entry", "get_children", "get_path", "get_label"] {
        let error = d.err(method, json!({"entryId": "nobody"}));
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1200, "entryNotFound"),
            "{method}"
        );
        assert_eq!(error.details("entryId"), "nobody", "{method}");
    }
    let leaf = d.ok("get_leaf", json!({}));
    assert_eq!(
        (&leaf["leafId"], &leaf["entry"]["id"]),
        (&json!("a3"), &json!("a3"))
    );
    d.set_leaf(None);
    let leaf = d.ok("get_leaf", json!({}));
    assert_eq!(leaf["leafId"], Json::Null);
    assert!(leaf.get("entry").is_none(), "{leaf}");
}

#[test]
fn only_a_team_verifies_entries() {
    let mut d = opened(&two_branches());
    let error = d.err("get_entry", json!({"entryId": "t3", "verify": true}));
    assert_eq!(error.kind, "invalidParams");
    assert!(error.message.contains("no team"), "{}", error.message);
    let found = d.ok("get_entry", json!({"entryId": "t3", "verify": false}));
    assert!(found.get("verified").is_none(), "{found}");
}

#[test]
fn children_and_roots_are_listed_in_order() {
    let mut d = opened(&two_branches().user("r2", "", "another root"));
    let mut children = |id: Json| ids(&d.ok("get_children", json!({"entryId": id}))["entries"]);
    assert_eq!(children(json!("a1")), ["u2", "u3"]);
    assert_eq!(children(json!("a2")), [""; 0]);
    assert_eq!(children(Json::Null), ["u1", "r2"]);
    assert_eq!(d.ok("get_tree", json!({}))["rootIds"], json!(["u1", "r2"]));
}

#[test]
fn a_path_is_read_in_pages() {
    let mut d = opened(&two_branches());
    let whole = d.path_ids(None);
    let mut page = |params: Json| {
        let page = d.ok("get_path", params);
        (ids(&page["entries"]), page.get("nextCursor").cloned())
    };
    let (mut since, mut seen) = (None, Vec::new());
    loop {
        let (entries, next) = page(json!({"since": since, "limit": 4}));
        assert!(entries.len() <= 4, "{entries:?}");
        seen.extend(entries);
        since = next;
        if since.is_none() {
            break;
        }
        assert_eq!(since, seen.last().map(|id| json!(id)));
    }
    assert_eq!(seen, whole);
    assert_eq!(
        page(json!({"entryId": "a2", "since": "a1", "maxBytes": 1})),
        (vec!["u2".to_owned()], Some(json!("u2")))
    );
    assert_eq!(
        page(json!({"entryId": "a2", "since": "a1"})),
        (vec!["u2".to_owned(), "a2".to_owned()], None)
    );
    assert_eq!(page(json!({"since": "a3", "limit": 1})), (vec![], None));
    let off_path = json!({"entryId": "a2", "since": "u3"});
    d.err_kind("get_path", off_path, "invalidParams");
}

#[test]
fn paths_run_from_the_root_to_the_entry() {
    let mut d = opened(&two_branches());
    assert_eq!(d.path_ids(None), ["u1", "a1", "u3", "c3", "t3", "a3"]);
    assert_eq!(d.path_ids(Some("a2")), ["u1", "a1", "u2", "a2"]);
    assert_eq!(d.path_ids(Some("u1")), ["u1"]);
    d.set_leaf(None);
    assert_eq!(d.path_ids(None), [""; 0]);
}

#[test]
fn branches_are_listed_with_tip_and_fork() {
    let mut d = opened(&two_branches());
    let branches = d.ok("list_branches", json!({}))["branches"].clone();
    let branches = branches.as_array().unwrap();
    assert_eq!(branches.len(), 2, "{branches:?}");
    for (tip, active) in [("a2", false), ("a3", true)] {
        let branch = branches
            .iter()
            .find(|b| b["tipId"] == tip)
            .unwrap_or_else(|| panic!("{tip} in {branches:?}"));
        assert_eq!(branch["forkId"], "a1", "{branch}");
        assert_eq!(branch["isActive"], active, "{branch}");
        assert!(branch["messageCount"].as_u64() > Some(0), "{branch}");
        assert!(
            branch["preview"].as_str().is_some_and(|p| !p.is_empty()),
            "{branch}"
        );
        assert!(branch["lastActivity"].is_string(), "{branch}");
    }
}

#[test]
fn since_continues_get_entries_after_an_entry() {
    let mut d = opened(&two_branches());
    let all = d.ok("get_entries", json!({}));
    assert_eq!(
        ids(&all["entries"]),
        ["u1", "a1", "u2", "a2", "u3", "c3", "t3", "a3"]
    );
    assert_eq!(all["leafId"], "a3");
    assert!(all.get("nextCursor").is_none(), "{all}");
    let page = d.ok("get_entries", json!({"limit": 3}));
    assert_eq!(ids(&page["entries"]), ["u1", "a1", "u2"]);
    let page = d.ok(
        "get_entries",
        json!({"limit": 3, "since": page["nextCursor"]}),
    );
    assert_eq!(ids(&page["entries"]), ["a2", "u3", "c3"]);
    let page = d.ok("get_entries", json!({"since": "c3"}));
    assert_eq!(ids(&page["entries"]), ["t3", "a3"], "exclusive");
    let page = d.ok("get_entries", json!({"since": "a3"}));
    assert_eq!(page["entries"], json!([]));
    d.err_kind("get_entries", json!({"since": "nobody"}), "entryNotFound");
}

/// A plugin that searched for its own state once had to read the whole session.
#[test]
fn entries_are_read_by_type_and_custom_type() {
    let custom = |name: &str| json!({"customType": name});
    let message = json!({"customType": "todo", "content": "x", "display": true});
    let log = Log::new("s")
        .user("u1", "", "x")
        .entry("custom", "c1", "u1", custom("todo"))
        .entry("custom", "c2", "c1", custom("other"))
        .entry("custom_message", "m1", "c2", message)
        .entry("org.example.x", "x1", "m1", json!({"customType": "todo"}))
        .entry("org.example.y", "y1", "x1", json!({}))
        .entry(
            "custom",
            "n1",
            "y1",
            json!({"customType": "note", "data": {"targetId": "u1"}}),
        )
        .record("r1", "n1", "u1")
        .label("l1", "n1", "u1", json!("x"));
    let mut d = opened(&log);
    let all = json!(["custom", "label", "message", "org.example.x"]);
    for (params, wanted) in [
        (json!({"types": ["custom"]}), vec!["c1", "c2", "n1"]),
        (
            json!({"types": ["custom"], "customType": "todo"}),
            vec!["c1"],
        ),
        (json!({"customType": "todo"}), vec!["c1", "m1"]),
        (
            json!({"types": ["custom"], "customType": "note"}),
            vec!["n1"],
        ),
        (json!({"types": ["org.example.x"]}), vec!["x1"]),
        (
            json!({"types": all}),
            vec!["u1", "c1", "c2", "x1", "n1", "l1"],
        ),
        (json!({"types": ["label"], "customType": "todo"}), vec![]),
        (json!({"types": ["nothing"]}), vec![]),
        (
            json!({"types": ["custom"], "since": "c1"}),
            vec!["c2", "n1"],
        ),
        (
            json!({"types": ["custom"], "customType": "treelined.leaf"}),
            vec![],
        ),
    ] {
        let page = d.ok("get_entries", params.clone());
        assert_eq!(ids(&page["entries"]), wanted, "{params}");
        assert_eq!(
            (&page["leafId"], page.get("nextCursor")),
            (&json!("l1"), None)
        );
        // Reading page by page gives the same entries.
        let (mut since, mut found) = (params["since"].clone(), Vec::new());
        loop {
            let mut params = params.clone();
            (params["since"], params["limit"]) = (since.clone(), json!(1));
            let page = d.ok("get_entries", params);
            found.extend(ids(&page["entries"]));
            match page.get("nextCursor") {
                Some(next) => since = next.clone(),
                None => break,
            }
        }
        assert_eq!(found, wanted, "{params}");
    }
    let params = json!({"types": ["custom"], "maxBytes": 1});
    assert_eq!(ids(&d.ok("get_entries", params)["entries"]), ["c1"]);
    let error = d.err_kind("get_entries", json!({"types": []}), "invalidParams");
    assert_eq!(error.details("field"), "types");
}

/// After a label was cleared, the tree and `get_label` once still returned its timestamp.
#[test]
fn a_cleared_label_has_no_timestamp() {
    let (mut d, path) = Daemon::opened(
        Log::new("s1")
            .user("u1", "", "one")
            .label("l1", "u1", "u1", json!("mark"))
            .text()
            .as_bytes(),
    );
    let leaks = |d: &mut Daemon| {
        let label = d.ok("get_label", json!({"entryId": "u1"}));
        let row = d.ok("get_tree", json!({}))["nodes"][0].clone();
        [label, row]
            .iter()
            .any(|v| v.get("labelTimestamp").is_some())
    };
    assert!(leaks(&mut d), "while there is a label");
    d.ok("append_label", json!({"targetId": "u1", "label": null}));
    assert!(!leaks(&mut d));
    let home = d.stop();
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    assert!(!leaks(&mut d));
}
