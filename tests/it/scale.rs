//! A very long chain and a very wide node: no code recurses over the tree. The sessions have 50,000 entries, or the
//! number in TREELINED_TEST_SCALE; a recursion of this depth overflows the stack of a thread. protocol.md §6.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::*;

fn scale() -> usize {
    std::env::var("TREELINED_TEST_SCALE").map_or(50_000, |s| {
        s.parse().expect("TREELINED_TEST_SCALE is a number")
    })
}

/// A stored session of `n` entries. `parent` returns the number of an entry's parent.
fn stored(n: usize, parent: impl Fn(usize) -> Option<usize>) -> (Arc<Home>, PathBuf) {
    let mut text = String::with_capacity(n * 170);
    text.push_str("{\"type\":\"session\",\"version\":3,\"id\":\"large\",\"timestamp\":\"2025-01-01T00:00:00.000Z\",\"cwd\":\"/project\"}\n");
    for i in 0..n {
        let parent = parent(i).map_or("null".to_owned(), |p| format!("\"n{p}\""));
        let role = if i % 2 == 0 { "user" } else { "assistant" };
        let stamp = stamp(i / 1000 % 86_400);
        writeln!(
            text,
            "{{\"type\":\"message\",\"id\":\"n{i}\",\"parentId\":{parent},\"timestamp\":\"{stamp}\",\"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"entry {i}\"}}]}}}}"
        )
        .unwrap();
    }
    let home = Home::new();
    let folder = home.sessions().join("--project--");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("2025-01-01T00-00-00-000Z_large.jsonl");
    std::fs::write(&path, text).unwrap();
    (home, path)
}

fn started(home: &Arc<Home>, n: usize) -> Daemon {
    let mut d = Daemon::quiet_in(home);
    // This deadline is not a measurement: a busy machine is many times slower.
    d.deadline = Duration::from_secs(180 + n as u64 / 1_000);
    d
}

/// Prints how long a step took. `--nocapture` shows this output.
fn timed<T>(what: &str, body: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = body();
    println!("scale: {what}: {:?}", began.elapsed());
    result
}

/// The checks that a session of either shape must pass.
fn bear(d: &mut Daemon, path: &Path, n: usize) {
    timed("list", || {
        let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
        assert_eq!(rows[0]["messageCount"], n);
        assert_eq!(rows[0]["firstMessage"], "entry 0");
    });
    timed("open", || {
        let opened = d.open(path);
        assert_eq!(opened["session"]["entryCount"], n);
        assert_eq!(opened["session"]["leafId"], format!("n{}", n - 1));
        assert_eq!(opened["diagnostics"], json!([]));
    });
    timed("first page", || {
        let tree = d.ok("get_tree", json!({"limit": 100, "render": "unicode"}));
        assert_eq!(tree["total"], n);
        assert_eq!(tree["nodes"].as_array().unwrap().len(), 100);
        assert_eq!(tree["nodes"][0]["id"], "n0");
        let next = d.ok(
            "get_tree",
            json!({"limit": 100, "render": "unicode", "cursor": tree["nextCursor"]}),
        );
        assert_eq!(next["offset"], 100);
    });
    timed("middle, end, and around", || {
        let page = d.ok("get_tree", json!({"limit": 10, "offset": n / 2}));
        assert_eq!(page["nodes"][0]["id"], format!("n{}", n / 2));
        let page = d.ok("get_tree", json!({"limit": 10, "offset": n - 1}));
        assert_eq!(page["nodes"].as_array().unwrap().len(), 1);
        let page = d.ok(
            "get_tree",
            json!({"limit": 10, "around": format!("n{}", n - 1)}),
        );
        assert!(ids(&page["nodes"]).contains(&format!("n{}", n - 1)));
    });
    timed("filter and query", || {
        let page = d.ok("get_tree", json!({"limit": 10, "filter": "user-only"}));
        assert_eq!(page["total"], n.div_ceil(2));
        let page = d.ok(
            "get_tree",
            json!({"limit": 10, "query": format!("entry {}", n - 1)}),
        );
        assert_eq!(page["total"], 1);
    });
    timed("entries by page", || {
        let page = d.ok(
            "get_entries",
            json!({"limit": 10, "since": format!("n{}", n - 3)}),
        );
        assert_eq!(page["entries"].as_array().unwrap().len(), 2);
    });
}

#[test]
fn a_long_chain_is_served() {
    let n = scale();
    let (home, path) = stored(n, |i| i.checked_sub(1));
    let mut d = started(&home, n);
    bear(&mut d, &path, n);
    timed("nested is refused", || {
        d.err_kind("get_tree", json!({"format": "nested"}), "nestingTooDeep");
    });
    timed("navigate to the beginning", || {
        let result = d.ok("navigate_tree", json!({"targetId": "n1"}));
        assert_eq!(result["newLeafId"], "n1");
        let event = d.notification("session_before_tree");
        assert_eq!(event["preparation"]["commonAncestorId"], "n1");
    });
    timed("append and navigate back", || {
        d.user("aside", "x");
        let last = format!("n{}", if n.is_multiple_of(2) { n - 1 } else { n - 2 });
        assert_eq!(
            d.ok("navigate_tree", json!({"targetId": last}))["newLeafId"],
            last
        );
    });
    timed("undo", || {
        assert_eq!(d.ok("undo_navigation", json!({}))["newLeafId"], "aside")
    });
    timed("close", || d.ok("close_session", json!({})));
    timed("end", || d.stop());
}

#[test]
fn a_wide_node_is_served() {
    let n = scale();
    let (home, path) = stored(n, |i| (i > 0).then_some(0));
    let mut d = started(&home, n);
    bear(&mut d, &path, n);
    timed("active first", || {
        let page = d.ok("get_tree", json!({"limit": 3, "order": "active-first"}));
        assert_eq!(ids(&page["nodes"])[1], format!("n{}", n - 1));
        assert_eq!(page["nodes"][0]["childCount"], n - 1);
    });
    timed("nested", || {
        let params = json!({"format": "nested", "limit": 100});
        if n > 200_000 {
            // The answer is larger than a frame.
            d.err_kind("get_tree", params, "responseTooLarge");
        } else {
            let id = d.send("get_tree", params);
            assert!(d.response_text(&id).contains("\"n0\""));
        }
    });
    timed("navigate between siblings", || {
        let result = d.ok("navigate_tree", json!({"targetId": "n1"}));
        assert_eq!(result["newLeafId"], "n1");
        assert_eq!(
            d.notification("session_before_tree")["preparation"]["commonAncestorId"],
            "n0"
        );
    });
    timed("close", || d.ok("close_session", json!({})));
    timed("end", || d.stop());
}

/// A node with very many children once overflowed the stack, where siblings were walked recursively or passed as
/// arguments.
#[test]
fn a_node_with_20000_children_is_listed() {
    let mut log = Log::new("s1").user("root", "", "x");
    for n in 0..20_000 {
        log = log.user(&format!("n{n}"), "root", "x");
    }
    let (mut d, _) = Daemon::opened(log.text().as_bytes());
    let tree = d.ok("get_tree", json!({}));
    assert_eq!(
        (&tree["total"], &tree["nodes"][0]["childCount"]),
        (&json!(20_001), &json!(20_000))
    );
    assert_eq!(
        d.ok("list_branches", json!({}))["branches"]
            .as_array()
            .unwrap()
            .len(),
        20_000
    );
}
