use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use treelined_files::cancel::Cancel;
use treelined_files::store::Store;

const ANSWER: &str = r#""message":{"role":"assistant","content":[],"provider":"p","model":"m","usage":{"input":10,"output":5,"cost":{"total":0}},"timestamp":1764320400000}"#;

/// Writes a session file with these lines.
fn session(dir: &Path, id: &str, cwd: &str, created: &str, lines: &[String]) {
    let folder = dir.join("--folder--");
    fs::create_dir_all(&folder).unwrap();
    let header = format!(
        r#"{{"type":"session","version":3,"id":"{id}","timestamp":"{created}","cwd":"{cwd}"}}"#
    );
    let text: String = std::iter::once(&header)
        .chain(lines)
        .flat_map(|line| [line.as_str(), "\n"])
        .collect();
    fs::write(folder.join(format!("{id}.jsonl")), text).unwrap();
}

fn entry(id: &str, parent: Option<&str>, rest: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2025-11-28T10:00:00.000Z",{rest}}}"#
    )
}

fn counted(dir: &Path, by: By) -> Usage {
    counted_with(dir, by, None, Prices::default())
}

fn counted_with(dir: &Path, by: By, cwd: Option<&str>, prices: Prices) -> Usage {
    let request = Request {
        by,
        cwd: cwd.map(str::to_owned),
        since: None,
        session: None,
    };
    let store = Store::new(dir.to_owned());
    usage(&store, &request, &prices, &Cancel::default()).unwrap()
}

fn keys(usage: &Usage) -> Vec<(&str, u64)> {
    let row = |row: &'_ Row| (row.sums.answers, row.sums.tokens.input);
    let rows = usage.rows.iter();
    rows.map(|it| (it.key.as_str(), row(it).1)).collect()
}

/// `get_stats` only leaves out copies within one session, so a fork and its source together would count twice.
#[test]
fn an_answer_counts_once_in_all_sessions_and_branches() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let first = entry("a1", None, ANSWER);
    let picked = entry("a2", Some("a1"), &format!(r#""copiedFrom":"a1",{ANSWER}"#));
    session(
        dir,
        "original",
        "/p",
        "2025-11-28T09:00:00.000Z",
        &[first.clone(), picked],
    );
    // The fork has the same line.
    session(dir, "fork", "/p", "2025-11-28T11:00:00.000Z", &[first]);
    // These are an import of a fork in another directory, and a copy that was picked from another session.
    let own = entry("a1", None, &format!(r#""copiedFrom":"a1",{ANSWER}"#));
    let other = format!(r#""copiedFrom":{{"sessionId":"original","entryId":"a1"}},{ANSWER}"#);
    let other = entry("x1", Some("a1"), &other);
    session(
        dir,
        "copies",
        "/q",
        "2025-11-28T12:00:00.000Z",
        &[own, other],
    );
    let usage = counted(dir, By::Session);
    assert_eq!(keys(&usage), [("original", 10)]);
    assert_eq!((usage.total.answers, usage.total.tokens.output), (1, 5));

    // If the original is missing, one of the copies counts.
    fs::remove_file(dir.join("--folder--/original.jsonl")).unwrap();
    fs::remove_file(dir.join("--folder--/fork.jsonl")).unwrap();
    assert_eq!(keys(&counted(dir, By::Session)), [("copies", 10)]);
}

#[test]
fn equal_answers_without_a_time_are_different_ones() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let untimed = ANSWER.replace(r#","timestamp":1764320400000"#, "");
    let lines = [
        entry("a1", None, &untimed),
        entry("a2", Some("a1"), &untimed),
    ];
    session(dir, "one", "/p", "2025-11-28T09:00:00.000Z", &lines);
    let from = r#""copiedFrom":{"sessionId":"one","entryId":"a2"},"#;
    let copy = entry("c1", None, &format!("{from}{untimed}"));
    session(dir, "two", "/p", "2025-11-28T10:00:00.000Z", &[copy]);
    assert_eq!(counted(dir, By::Day).total.answers, 2);
}

/// If the tool has recorded no cost, an import writes a cost of 0, because pi reads a cost from each message.
#[test]
fn a_cost_of_zero_is_estimated_or_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let known = ANSWER
        .replace(r#"{"total":0}"#, r#"{"total":0.25}"#)
        .replace("400000", "400001");
    let silent = r#""message":{"role":"assistant","content":[],"timestamp":1764320400002}"#;
    let lines = [
        entry("a1", None, ANSWER),
        entry("a2", Some("a1"), &known),
        entry("a3", Some("a2"), silent),
        entry(
            "u1",
            Some("a3"),
            r#""message":{"role":"user","content":"usage"}"#,
        ),
    ];
    session(dir, "one", "/p", "2025-11-28T09:00:00.000Z", &lines);
    let total = counted(dir, By::Day).total;
    assert_eq!((total.answers, total.without_tokens), (3, 1));
    let expected = Cost {
        recorded: Some(0.25),
        estimated: None,
        unknown: 1,
    };
    assert_eq!(total.cost, expected);

    let price = Price {
        input: Some(100_000.0),
        output: Some(0.0),
        ..Price::default()
    };
    let prices = Prices::new(BTreeMap::from([("p/m".to_owned(), price)]));
    let total = counted_with(dir, By::Day, None, prices).total;
    assert_eq!(total.cost.known(), Some(1.25));
    assert_eq!((total.cost.estimated, total.cost.unknown), (Some(1.0), 0));
}

#[test]
fn answers_are_grouped_by_day_model_tool_session_and_directory() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let later = ANSWER.replace("1764320400000", "1764460800000");
    let imported = format!(r#""origin":{{"tool":"codex"}},{later}"#);
    let lines = [
        entry("a1", None, ANSWER),
        entry("a2", Some("a1"), &imported),
    ];
    session(dir, "one", "/p/inner", "2025-11-28T09:00:00.000Z", &lines);
    let summary = r#"{"type":"branch_summary","id":"s1","parentId":null,"timestamp":"2025-11-29T10:00:00.000Z","fromId":"root","summary":"S","usage":{"input":3}}"#;
    session(
        dir,
        "two",
        "/q",
        "2025-11-28T10:00:00.000Z",
        &[summary.to_owned()],
    );
    let by = |by| counted(dir, by);
    assert_eq!(
        keys(&by(By::Day)),
        [("2025-11-28", 10), ("2025-11-29", 3), ("2025-11-30", 10)]
    );
    assert_eq!(keys(&by(By::Model)), [("p/m", 20), ("", 3)]);
    assert_eq!(keys(&by(By::Tool)), [("treelined", 13), ("codex", 10)]);
    assert_eq!(keys(&by(By::Session)), [("one", 20), ("two", 3)]);
    assert_eq!(keys(&by(By::Directory)), [("/p/inner", 20), ("/q", 3)]);
    for (cwd, input) in [("/p", 20), ("/p/inner/", 20), ("/p/in", 0), ("/", 23)] {
        let counted = counted_with(dir, By::Day, Some(cwd), Prices::default());
        assert_eq!(counted.total.tokens.input, input, "{cwd}");
    }
    let since = Request {
        by: By::Day,
        cwd: None,
        since: treelined_core::timestamp::parse("2025-11-30T00:00:00.000Z"),
        session: None,
    };
    let store = Store::new(dir.to_owned());
    let since = usage(&store, &since, &Prices::default(), &Cancel::default()).unwrap();
    assert_eq!(keys(&since), [("2025-11-30", 10)]);
}

fn answer(id: &str, parent: &str, at: u64, input: u64) -> String {
    let answer = ANSWER
        .replace("1764320400000", &at.to_string())
        .replace(r#""input":10"#, &format!(r#""input":{input}"#));
    entry(id, Some(parent), &answer)
}

fn user(id: &str, parent: Option<&str>, said: &str) -> String {
    let message = format!(r#""message":{{"role":"user","content":"{said}"}}"#);
    entry(id, parent, &message)
}

fn custom(id: &str, parent: &str, rest: &str) -> String {
    format!(
        r#"{{"type":"custom","id":"{id}","parentId":"{parent}","timestamp":"2025-11-28T10:00:00.000Z",{rest}}}"#
    )
}

/// The key, the title, whether the branch is active, and the tokens of each row.
fn branch_rows(rows: &[Row]) -> Vec<(&str, &str, bool, u64)> {
    rows.iter()
        .map(|row| {
            let is_active = row.branch.as_ref().unwrap().is_active;
            let title = row.title.as_deref().unwrap();
            (row.key.as_str(), title, is_active, row.sums.tokens.input)
        })
        .collect()
}

#[test]
fn a_shared_answer_counts_for_the_active_branch_else_for_the_last_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // `u1 → a1` is above two left branches, which share `u2 → a2`, and above the active branch.
    let mut lines = vec![
        user("u1", None, "begin"),
        answer("a1", "u1", 1, 1),
        user("u2", Some("a1"), "the cache"),
        answer("a2", "u2", 2, 10),
        user("u3", Some("a2"), "clear it"),
        answer("a3", "u3", 3, 100),
        user("u4", Some("a2"), "keep it"),
        answer("a4", "u4", 4, 1000),
        user("u5", Some("a1"), "not the cache"),
        answer("a5", "u5", 5, 10_000),
    ];
    session(dir, "one", "/p", "2025-11-28T09:00:00.000Z", &lines);
    let usage = counted(dir, By::Branch);
    let expected = [
        ("a5", "not the cache", true, 10_001),
        ("a4", "keep it", false, 1010),
        ("a3", "clear it", false, 100),
    ];
    assert_eq!(branch_rows(&usage.rows), expected);
    assert_eq!(usage.total.tokens.input, 11_111);
    let place = usage.rows[0].branch.as_ref().unwrap();
    assert_eq!(place.session_id, "one");

    // The leaf goes back to `a1`, and a note says why. The path to the leaf is a separate branch.
    lines.extend([
        custom(
            "n1",
            "a5",
            r#""customType":"note","data":{"targetId":"a5","reason":"too slow"}"#,
        ),
        custom(
            "l1",
            "a1",
            r#""customType":"treelined.leaf","data":{"from":"a5","cause":"navigate_tree"}"#,
        ),
    ]);
    session(dir, "one", "/p", "2025-11-28T09:00:00.000Z", &lines);
    let path = dir.join("--folder--/one.jsonl");
    let rows = branches(&path, &Prices::default()).unwrap();
    let expected = [
        ("a5", "not the cache", false, 10_000),
        ("a4", "keep it", false, 1010),
        ("a3", "clear it", false, 100),
        ("a1", "", true, 1),
    ];
    assert_eq!(branch_rows(&rows), expected);
    let reason = |row: &Row| row.branch.as_ref().unwrap().reason.clone();
    assert_eq!(reason(&rows[0]).as_deref(), Some("too slow"));
    assert_eq!(reason(&rows[1]), None);
}

/// Ids of entries are unique in a session only.
#[test]
fn equal_branches_of_two_sessions_are_two_rows() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (id, at) in [("one", 1), ("two", 2)] {
        let lines = [user("u1", None, id), answer("a1", "u1", at, at)];
        let created = format!("2025-11-28T09:00:0{at}.000Z");
        session(dir, id, "/p", &created, &lines);
    }
    let usage = counted(dir, By::Branch);
    let expected = [("a1", "two", true, 2), ("a1", "one", true, 1)];
    assert_eq!(branch_rows(&usage.rows), expected);
    let request = Request {
        by: By::Branch,
        cwd: None,
        since: None,
        session: Some("one".to_owned()),
    };
    let store = Store::new(dir.to_owned());
    let one = super::usage(&store, &request, &Prices::default(), &Cancel::default()).unwrap();
    assert_eq!(branch_rows(&one.rows), [("a1", "one", true, 1)]);
}

/// A branch that grows in the background does not get entries of the branch from which it began, although it is written
/// later.
#[test]
fn a_background_branch_counts_from_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let background = |line: String| {
        line.replace(
            r#""type":"message","#,
            r#""type":"message","background":true,"#,
        )
    };
    let lines = [
        user("u1", None, "begin"),
        answer("a1", "u1", 1, 1),
        user("u2", Some("a1"), "left"),
        answer("a2", "u2", 2, 10),
        user("u3", Some("a1"), "active"),
        answer("a3", "u3", 3, 100),
        background(user("b1", Some("a2"), "beside")),
        background(answer("b2", "b1", 4, 1000)),
        custom("l1", "a3", r#""customType":"treelined.leaf","data":{"from":"a3","cause":"keep"}"#),
        r#"{"type":"usage","id":"x1","parentId":"a2","timestamp":"2025-11-28T10:00:00.000Z","kind":"k","provider":"p","model":"m","usage":{"input":5}}"#.to_owned(),
        custom("l2", "a3", r#""customType":"treelined.leaf","data":{"from":"x1","cause":"navigate_tree"}"#),
    ];
    session(dir, "one", "/p", "2025-11-28T09:00:00.000Z", &lines);
    let expected = [
        ("b2", "beside", false, 1000),
        ("a3", "active", true, 101),
        ("a2", "left", false, 15),
    ];
    assert_eq!(branch_rows(&counted(dir, By::Branch).rows), expected);
}

#[test]
fn files_that_are_not_sessions_do_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines = [entry("a1", None, ANSWER)];
    session(dir, "one", "/p", "2025-11-28T09:00:00.000Z", &lines);
    let answer = &lines[0];
    fs::write(
        dir.join("--folder--/other.jsonl"),
        format!("{{}}\n{answer}\n"),
    )
    .unwrap();
    let counted = counted(dir, By::Day);
    assert_eq!((counted.total.answers, counted.unread.len()), (1, 0));
}
