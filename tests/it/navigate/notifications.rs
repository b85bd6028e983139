//! The notifications of a navigation have a fixed order and come after the write.

use std::fs;

use super::*;

#[test]
fn notifications_come_in_the_documented_order() {
    let mut d = Daemon::start_with(&["--summarizer", "outline"], &[]);
    d.ignore("session_opened");
    d.ignore("session_closed");
    d.ignore("summary_delta");
    d.ignore("progress");
    d.init(json!({"answers": {"session_before_tree": {}}, "summaryDeltas": {}, "progress": {}}));
    d.create();
    d.chain(&CONVERSATION);
    for _ in CONVERSATION {
        d.notification("entries_appended");
    }
    d.forget_order();
    let (id, event) = ask(
        &mut d,
        json!({"targetId": "a1", "summarize": true, "label": "x", "navigationId": "n1"}),
    );
    d.answer(&event, json!({}));
    let result = d.response(&id).unwrap();
    assert_eq!(d.notification("event_resolved")["navigationId"], "n1");
    let appended = d.notification("entries_appended");
    assert_eq!(
        appended["entryIds"],
        json!([result["summaryEntry"]["id"], result["labelEntry"]["id"]]),
        "both in one announcement, as in one write"
    );
    let announced = d.notification("session_tree");
    assert_eq!(
        (&announced["navigationId"], &announced["cause"]),
        (&json!("n1"), &json!("navigate_tree"))
    );
    let order: Vec<_> = d
        .order()
        .iter()
        .map(String::as_str)
        .filter(|name| !["=answer_event", "summary_delta", "progress"].contains(name))
        .collect();
    assert_eq!(
        order,
        [
            "session_before_tree",
            "event_resolved",
            "entries_appended",
            "session_tree",
            "=navigate_tree"
        ]
    );
}

#[test]
fn a_move_is_in_the_file_before_it_is_announced() {
    let mut d = unasked();
    d.forget_order();
    let path = d.home.only_file();
    d.send_as(json!("n"), "navigate_tree", json!({"targetId": "a1"}));
    d.notification("session_tree");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("treelined.leaf"), "persist, then notify");
    d.response(&json!("n")).unwrap();
}
