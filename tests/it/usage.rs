//! `get_usage`, and the cost in `get_stats`, `compare_branches` and pages (protocol.md §15, usage.md). A cost that no
//! tool had recorded was once 0 in all of them.

use crate::harness::*;
use std::sync::Arc;

fn answer(model: &str, at: u64, cost: f64) -> Json {
    json!({
        "role": "assistant", "content": [{"type": "text", "text": "yes"}], "provider": "p", "model": model,
        "stopReason": "stop", "timestamp": at,
        "usage": {"input": 1000, "output": 10, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": cost}},
    })
}

const NOVEMBER_28: u64 = 1_764_320_400_000;
const NOVEMBER_30: u64 = 1_764_460_800_000;

/// A home with `u1 → r1` and below it the branches `e1` and `x1 → x2`, and a session in another directory.
fn home() -> Arc<Home> {
    let home = Home::new();
    Log::new("s1")
        .user("u1", "", "one")
        .message("r1", "u1", answer("recorded", NOVEMBER_28, 1.25))
        .message("e1", "r1", answer("priced", NOVEMBER_28, 0.0))
        .message("x1", "r1", answer("strange", NOVEMBER_30, 0.0))
        .message("x2", "x1", answer("priced", NOVEMBER_30, 0.5))
        .store(&home, "x_s1.jsonl");
    Log::with_header(json!({
        "type": "session", "version": 3, "id": "s2", "timestamp": "2025-01-02T00:00:00.000Z", "cwd": "/elsewhere/below",
    }))
    .user("u1", "", "two")
    .message("a1", "u1", answer("strange", NOVEMBER_30 + 1, 0.0))
    .store(&home, "x_s2.jsonl");
    home
}

fn daemon(home: &Arc<Home>) -> Daemon {
    let prices = "[prices.priced]\ninput = 100.0\noutput = 0\n";
    let config = crate::config::file(home, prices);
    let mut d = Daemon::start_in(home, &["--config", &config], &[]);
    d.ignore_bookkeeping();
    d
}

fn costs(recorded: impl Into<Json>, estimated: impl Into<Json>, unknown: u64) -> Json {
    json!({"recorded": recorded.into(), "estimated": estimated.into(), "unknownAnswers": unknown})
}

#[test]
fn a_cost_is_recorded_estimated_or_unknown() {
    let home = home();
    let mut d = daemon(&home);
    d.open(&home.sessions().join("--project--/x_s1.jsonl"));
    let null = Json::Null;
    let stats = d.ok("get_stats", json!({}));
    assert_eq!(stats["costs"], costs(1.75, 0.1, 1));
    assert_eq!(stats["cost"], 1.75);
    let of = |model: &str| {
        let models = stats["models"].as_array().unwrap();
        let found = models.iter().find(|row| row["modelId"] == model);
        found.unwrap()["costs"].clone()
    };
    assert_eq!(of("recorded"), costs(1.25, null.clone(), 0));
    assert_eq!(of("priced"), costs(0.5, 0.1, 0));
    assert_eq!(of("strange"), costs(null.clone(), null.clone(), 1));
    let mut path = |params: Json| d.ok("get_stats", params)["costs"].clone();
    assert_eq!(path(json!({"leafId": "e1"})), costs(1.25, 0.1, 0));
    let part = json!({"leafId": "x1", "since": "r1"});
    assert_eq!(path(part), costs(null.clone(), null.clone(), 1));
    assert_eq!(
        path(json!({"leafId": null})),
        costs(null.clone(), null.clone(), 0)
    );
    let compared = d.ok("compare_branches", json!({"a": "e1", "b": "x2"}));
    assert_eq!(compared["a"]["stats"]["costs"], costs(null, 0.1, 0));
    assert_eq!(compared["b"]["stats"]["costs"], costs(0.5, Json::Null, 1));

    let page = d.ok("export_session", json!({"format": "html"}));
    let page = page["content"].as_str().unwrap();
    let stats = &crate::export::chunks(page)["stats"];
    assert_eq!(stats["total"]["costs"], costs(1.75, 0.1, 1));
    let usage = &stats["usage"];
    assert_eq!(usage["cost"], json!([1.25, 0.0, 0.5, 0.0]));
    assert_eq!(usage["estimated"], json!([null, null, null, 0.1]));
}

#[test]
fn usage_over_the_wire_is_that_of_the_shell() {
    let home = home();
    let mut d = daemon(&home);
    let config = home.files().join("config.toml");
    let config = config.to_str().unwrap();
    let ways = [
        ("day", "day"),
        ("model", "model"),
        ("tool", "tool"),
        ("session", "sessionId"),
        ("branch", "tipId"),
        ("directory", "cwd"),
    ];
    for (by, name) in ways {
        let said = home.run(
            &["--config", config, "usage", "--json", "--by", by],
            &[],
            "",
        );
        let shell: Json = serde_json::from_str(&said.clean().text()).unwrap();
        let mut wire = d.ok("get_usage", json!({ "by": by }));
        for row in wire["rows"].as_array_mut().unwrap() {
            let row = row.as_object_mut().unwrap();
            let key = row.remove("key").unwrap();
            row.insert(name.to_owned(), key);
        }
        assert_eq!(wire, shell, "{by}");
        assert_eq!(wire["total"]["costs"], costs(1.75, 0.1, 2), "{by}");
    }
    let by = |by: &str| {
        let args = ["--config", config, "usage", "--json", "--by", by];
        home.run(&args, &[], "").clean().text()
    };
    assert_eq!(by("project"), by("directory"));
    let below = d.ok("get_usage", json!({"cwd": "/elsewhere"}));
    assert_eq!(below["total"]["answers"], 1);
    let since = d.ok("get_usage", json!({"since": "2025-11-29"}));
    assert_eq!(since["total"]["answers"], 3);
    let since = d.ok("get_usage", json!({"since": "100y"}));
    assert_eq!(since["total"], d.ok("get_usage", json!({}))["total"]);
    d.err_kind("get_usage", json!({"since": "last week"}), "invalidParams");
    d.err_kind("get_usage", json!({"by": "week"}), "invalidParams");
    d.err_kind("get_usage", json!({"limit": 10_001}), "invalidParams");
}

#[test]
fn a_count_keeps_the_newest_days_and_the_dearest_rows() {
    let home = home();
    let mut d = daemon(&home);
    for (by, key) in [("day", "2025-11-30"), ("model", "p/recorded")] {
        let found = d.ok("get_usage", json!({"by": by, "limit": 1}));
        let rows = found["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["key"]), (1, &json!(key)), "{found}");
        let more = if by == "day" { 1 } else { 2 };
        assert_eq!(found["moreRows"], more, "{found}");
        assert_eq!(found["total"]["answers"], 5);
    }
    let none = d.ok("get_usage", json!({"limit": 0}));
    assert_eq!(none["rows"], json!([]));
    assert_eq!(none["moreRows"], 2);
}

#[test]
fn the_branches_of_a_session_share_its_cost() {
    let home = home();
    let mut d = daemon(&home);
    let found = d.ok("get_usage", json!({"by": "branch", "sessionId": "s1"}));
    let rows: Vec<Json> = found["rows"].as_array().unwrap().clone();
    let row = |row: &Json| {
        let member = |name: &str| row[name].clone();
        ["key", "title", "sessionId", "isActive", "costs"].map(member)
    };
    let expected = [
        [
            json!("x2"),
            json!("yes"),
            json!("s1"),
            json!(true),
            costs(1.75, Json::Null, 1),
        ],
        [
            json!("e1"),
            json!("yes"),
            json!("s1"),
            json!(false),
            costs(Json::Null, 0.1, 0),
        ],
    ];
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), expected);
    assert_eq!(found["total"]["answers"], 4);
    d.err_kind("get_usage", json!({"sessionId": "s3"}), "sessionNotFound");
}
