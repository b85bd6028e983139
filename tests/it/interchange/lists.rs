//! The daemon and pi list the same last activity, name and number of messages.

use super::*;
use std::collections::BTreeMap;

/// Rows were once ordered by the last entry of any kind, so no real session had the time that pi shows. The cases are
/// all ways in which a message can lack a valid time.
#[test]
fn a_list_has_the_rows_that_pi_lists() {
    let Some(mut pi) = Pi::start() else {
        return;
    };
    let home = Home::new();
    let stamps = [
        json!("2025-03-01T00:00:00.000Z"),
        json!("nonsense"),
        Json::Null,
    ];
    let times = [
        json!(1_735_689_600_123_u64),
        json!(1.5e12),
        json!(-5),
        json!(0),
        json!("2020"),
        Json::Null,
    ];
    let names = ["a ", " ", " b"];
    let mut number = 0;
    for stamp in &stamps {
        for role in ["user", "assistant", "toolResult"] {
            for time in &times {
                for content in [true, false] {
                    number += 1;
                    let mut message = json!({"role": role, "timestamp": time});
                    if content {
                        message["content"] = json!("x");
                    }
                    let id = format!("s{number}");
                    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": stamp, "cwd": "/project"});
                    Log::with_header(header)
                        .raw(&entry_line(
                            7,
                            "message",
                            "m1",
                            "",
                            json!({"message": message}),
                        ))
                        .raw(&entry_line(
                            90,
                            "session_info",
                            "i1",
                            "m1",
                            json!({"name": names[number % 3]}),
                        ))
                        .store(&home, &format!("1_{id}.jsonl"));
                }
            }
        }
    }
    let row = |row: &Json, path: &str| {
        let name = row.get("name").cloned().unwrap_or_default();
        let shown = json!([row["modified"], name, row["messageCount"]]);
        (row[path].as_str().unwrap().to_owned(), shown)
    };
    let there = pi.list("/project", &home.sessions().join("--project--"));
    let there: BTreeMap<_, _> = there
        .as_array()
        .unwrap()
        .iter()
        .map(|r| row(r, "path"))
        .collect();
    let here = daemon(&home).ok("list_sessions", json!({}))["sessions"].clone();
    let here: BTreeMap<_, _> = here
        .as_array()
        .unwrap()
        .iter()
        .map(|r| row(r, "path"))
        .collect();
    assert_eq!(here.len(), number);
    assert_eq!(here, there);
}

/// pi looks for the sessions of a directory in the folder named after it, and continues in the directory that the
/// header names.
#[test]
fn pi_finds_its_sessions_after_their_project_has_moved() {
    let Some(mut pi) = Pi::start() else {
        return;
    };
    let home = Home::new();
    let [old, new] = ["old", "new/place"].map(|name| home.files().join(name).display().to_string());
    let folder = |cwd: &str| {
        let encoded = cwd.trim_start_matches('/').replace('/', "-");
        home.sessions().join(format!("--{encoded}--"))
    };
    std::fs::create_dir_all(folder(&old)).unwrap();
    std::fs::create_dir_all(&new).unwrap();
    let made = pi.make("create", json!([old, folder(&old)]));
    pi.ok(&made, "appendMessage", json!([user("first")]));
    pi.ok(&made, "appendMessage", json!([assistant("second")]));
    let session = made.session.clone();
    pi.forget(made);
    home.run(&["mv", &old, &new], &[], "").clean();
    assert_eq!(pi.list(&old, &folder(&old)), json!([]));
    let listed = pi.list(&new, &folder(&new));
    assert_eq!(listed[0]["id"], session, "{listed}");
    assert_eq!(listed[0]["cwd"], new);
    let path = PathBuf::from(listed[0]["path"].as_str().unwrap());
    let (here, found) = reopened(&mut daemon(&home), &path);
    assert_eq!(found, json!([]));
    pi.view(&path).assert_same(&here, "the moved session");
}
