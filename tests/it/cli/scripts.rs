//! Scripts piped into the daemon without a handshake.

use super::*;

/// The second of two navigations once sometimes failed with `sessionBusy`: the first one had released the session but
/// was still being announced.
#[test]
fn piped_navigations_wait_for_each_other() {
    let home = Home::new();
    let mut steps = vec![
        step(1, "create_session", json!({"sessionId": "demo"})),
        step(
            2,
            "append_message",
            json!({"message": assistant("a"), "entryId": "a"}),
        ),
        step(
            3,
            "append_message",
            json!({"message": assistant("b"), "entryId": "b"}),
        ),
    ];
    for id in 4..400 {
        let target = ["a", "b"][id as usize % 2];
        steps.push(step(id, "navigate_tree", json!({"targetId": target})));
    }
    let lines = script_in(&home, &[], &steps);
    for id in 4..400 {
        by_id(&lines, id);
    }
}

#[test]
fn the_requests_of_a_piped_script_run_one_after_the_other() {
    let home = Home::new();
    let lines = script_in(
        &home,
        &["--summarizer", "outline"],
        &[
            step(1, "create_session", json!({"sessionId": "demo"})),
            step(
                2,
                "append_message",
                json!({"message": user("one"), "entryId": "u1"}),
            ),
            step(
                3,
                "append_message",
                json!({"message": assistant("two"), "entryId": "a1"}),
            ),
            step(
                4,
                "append_message",
                json!({"message": user("three"), "entryId": "u2"}),
            ),
            step(
                5,
                "append_message",
                json!({"message": assistant("four"), "entryId": "a2"}),
            ),
            step(
                6,
                "navigate_tree",
                json!({"targetId": "a1", "summarize": true, "label": "tried"}),
            ),
            step(7, "get_leaf", json!({})),
            step(
                8,
                "append_message",
                json!({"message": user("five"), "entryId": "u3"}),
            ),
            step(9, "get_tree", json!({"render": "unicode"})),
            step(10, "undo_navigation", json!({})),
            step(11, "get_leaf", json!({})),
        ],
    );
    let navigated = by_id(&lines, 6);
    assert_eq!(navigated["cancelled"], false);
    assert_eq!(navigated["summaryEntry"]["parentId"], "a1");
    assert_eq!(
        by_id(&lines, 7)["leafId"],
        navigated["newLeafId"],
        "later requests wait for the navigation here"
    );
    assert_eq!(by_id(&lines, 8)["leafId"], "u3");
    let tree = by_id(&lines, 9);
    assert_eq!(ids(&tree["nodes"])[..4], ["u1", "a1", "u2", "a2"]);
    assert_eq!(by_id(&lines, 11)["leafId"], "a2");
    let names: Vec<_> = lines.iter().filter_map(|m| m["method"].as_str()).collect();
    for name in ["entries_appended", "session_before_tree", "session_tree"] {
        assert!(
            names.contains(&name),
            "notifications are streamed: {names:?}"
        );
    }
    assert!(
        !names
            .iter()
            .any(|n| ["summary_delta", "progress", "event_resolved"].contains(n)),
        "{names:?}"
    );
}

#[test]
fn a_script_writes_the_same_entries_each_time() {
    let run = || {
        let home = Home::new();
        script_in(
            &home,
            &["--summarizer", "outline"],
            &[
                step(1, "create_session", json!({"sessionId": "demo"})),
                step(
                    2,
                    "append_message",
                    json!({"message": user("one"), "entryId": "u1"}),
                ),
                step(
                    3,
                    "append_message",
                    json!({"message": assistant("two"), "entryId": "a1"}),
                ),
                step(4, "branch", json!({"entryId": "u1"})),
                step(
                    5,
                    "append_message",
                    json!({"message": assistant("other"), "entryId": "a2"}),
                ),
            ],
        );
        let found = file_lines(&home.only_file());
        found
            .iter()
            .map(|l| {
                (
                    l["type"].clone(),
                    l["parentId"].clone(),
                    l["message"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    let first = run();
    assert_eq!(first.len(), 5, "header, three messages and a leaf record");
    assert_eq!(first, run());
}

#[test]
fn serve_is_the_default_command() {
    let line = format!("{}\n", step(1, "list_sessions", json!({})));
    let said = Home::new().run(&["serve"], &[], line).clean();
    assert_eq!(said.responses()["1"]["result"]["sessions"], json!([]));
}

#[test]
fn the_session_directory_can_come_from_the_environment() {
    let home = Home::new();
    let elsewhere = home.files().join("elsewhere");
    let line = format!("{}\n", step(1, "create_session", json!({"name": "x"})));
    home.run(
        &[],
        &[("TREELINED_SESSION_DIR", elsewhere.to_str().unwrap())],
        line,
    )
    .clean();
    assert!(home.session_files().is_empty());
    assert!(elsewhere.is_dir());
}
