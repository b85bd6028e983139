//! Pages of `get_tree`: limits, cursors, revisions, offsets.

use std::fs;

use super::*;

#[test]
fn all_pages_together_are_the_whole_tree() {
    let mut d = opened(&two_branches());
    let whole = d.ok("get_tree", json!({"filter": "all"}));
    for limit in [1, 3, 7, 8] {
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let mut params = json!({"filter": "all", "limit": limit});
            if let Some(cursor) = cursor {
                params["cursor"] = cursor;
            }
            let page = d.ok("get_tree", params);
            assert_eq!(page["offset"], seen.len(), "limit {limit}");
            assert_eq!(page["total"], 8, "over all pages");
            assert!(page["nodes"].as_array().unwrap().len() <= limit);
            seen.extend(page["nodes"].as_array().unwrap().clone());
            assert!(seen.len() <= 8, "pages make progress");
            match page.get("nextCursor") {
                Some(next) if !next.is_null() => cursor = Some(next.clone()),
                _ => break,
            }
        }
        assert_eq!(json!(seen), whole["nodes"], "limit {limit}");
    }
}

#[test]
fn max_bytes_ends_a_page() {
    let mut log = Log::new("s1");
    for n in 0..50 {
        log = log.user(&format!("u{n}"), "", &"w".repeat(150));
    }
    let mut d = opened(&log);
    let page = d.ok("get_tree", json!({"maxBytes": 5000}));
    let rows = page["nodes"].as_array().unwrap().len();
    assert!((1..50).contains(&rows), "{rows} rows");
    assert!(page["nodes"].to_string().len() <= 5000);
    let next = d.ok(
        "get_tree",
        json!({"maxBytes": 5000, "cursor": page["nextCursor"]}),
    );
    assert_eq!(next["nodes"][0]["id"], format!("u{rows}"));
}

#[test]
fn a_cursor_is_refused_after_the_tree_changed() {
    let mut d = opened(&two_branches());
    let changes: [(&str, Json); 3] = [
        ("append_message", json!({"message": user("more")})),
        ("append_label", json!({"targetId": "u1", "label": "l"})),
        ("set_leaf", json!({"leafId": "a1"})),
    ];
    for (method, params) in changes {
        let page = d.ok("get_tree", json!({"limit": 2}));
        let again = d.ok("get_tree", json!({"limit": 2}));
        assert_eq!(
            page["revision"], again["revision"],
            "reading changes nothing"
        );
        d.ok(method, params);
        let error = d.err(
            "get_tree",
            json!({"limit": 2, "cursor": page["nextCursor"]}),
        );
        assert_eq!(
            (error.code, error.kind.as_str()),
            (1203, "treeChanged"),
            "{method}"
        );
        let now = d.ok("get_tree", json!({"limit": 2}))["revision"].clone();
        assert_eq!(error.details("revision"), &now, "{method}");
        assert_ne!(now, page["revision"], "{method}");
    }
}

#[test]
fn appends_of_other_programs_change_the_revision() {
    let home = Home::new();
    let path = two_branches().save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.open(&path);
    let before = d.ok("get_tree", json!({}))["revision"].clone();
    foreign_append(
        &path,
        &entry_line(
            40,
            "message",
            "f1",
            "a3",
            json!({"message": user("foreign")}),
        ),
    );
    d.user("u9", "own");
    assert_eq!(d.ids().len(), 10, "the append took notice");
    assert_ne!(d.ok("get_tree", json!({}))["revision"], before);
}

#[test]
fn offset_and_around_need_no_cursor() {
    let mut d = opened(&two_branches());
    let page = d.ok(
        "get_tree",
        json!({"filter": "all", "offset": 3, "limit": 2}),
    );
    assert_eq!(ids(&page["nodes"]), ["a2", "u3"]);
    assert_eq!(page["offset"], 3);
    let page = d.ok(
        "get_tree",
        json!({"filter": "all", "offset": 8, "limit": 2}),
    );
    assert_eq!((&page["nodes"], &page["total"]), (&json!([]), &json!(8)));
    for id in ["u1", "u3", "a3"] {
        let page = d.ok(
            "get_tree",
            json!({"filter": "all", "around": id, "limit": 3}),
        );
        let shown = ids(&page["nodes"]);
        assert!(shown.iter().any(|s| s == id), "{shown:?} around {id}");
        assert!(shown.len() <= 3);
        let whole = tree_ids(&mut d, json!({"filter": "all"}));
        let offset = page["offset"].as_u64().unwrap() as usize;
        assert_eq!(
            shown,
            whole[offset..offset + shown.len()],
            "the offset of the page"
        );
    }
    d.err_kind("get_tree", json!({"around": "nobody"}), "entryNotFound");
}

/// A tree that was read again once restarted its revisions, so a cursor of the old tree was accepted, and pages of two
/// trees were joined.
#[test]
fn a_cursor_is_refused_after_the_file_was_replaced() {
    let home = Home::new();
    let session = |ids: [&str; 3]| {
        let mut log = Log::new("twice");
        for (at, id) in ids.iter().enumerate() {
            log = log.user(id, at.checked_sub(1).map_or("", |above| ids[above]), "x");
        }
        log
    };
    let path = session(["a", "b", "c"]).save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"path": path}));
    let page = d.ok("get_tree", json!({"limit": 1}));
    let next = home.files().join("next");
    fs::write(&next, session(["a", "d", "c"]).text()).unwrap();
    fs::rename(&next, &path).unwrap();
    let next_page = json!({"limit": 1, "cursor": page["nextCursor"]});
    d.err_kind("get_tree", next_page, "treeChanged");
    let all = d.ok("get_tree", json!({}));
    assert_eq!(all["nodes"][1]["id"], "d");
}
