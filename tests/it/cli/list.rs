//! `treelined list` and `treelined show`.

use super::*;

/// Two sessions of the working directory, one of another.
fn home_with_three() -> std::sync::Arc<Home> {
    let home = Home::new();
    let session = |id: &str, day: u32, cwd: &str| {
        Log::with_header(json!({"type": "session", "version": 3, "id": id, "timestamp": format!("2025-01-0{day}T00:00:00.000Z"), "cwd": cwd}))
            .user("u1", "", &format!("about {id}"))
            .assistant("a1", "u1", "yes\twith a tab \u{1b}[2J")
    };
    let cwd = home.cwd().display().to_string();
    session("kitchen-0001", 1, &cwd)
        .user("u2", "a1", "left")
        .user("u3", "a1", "right")
        .entry("session_info", "n1", "u3", json!({"name": "The kitchen"}))
        .store(&home, "2025-01-01_kitchen-0001.jsonl");
    session("garden-00002", 2, &cwd).store(&home, "2025-01-02_garden-00002.jsonl");
    session("elsewhere-03", 3, "/far").store(&home, "2025-01-03_elsewhere-03.jsonl");
    home
}

#[test]
fn the_list_has_the_sessions_of_the_directory_or_of_all() {
    let home = home_with_three();
    let listed = |args: &[&str]| {
        let env = [("COLUMNS", "120")];
        let text = home
            .run(&[&["list"], args].concat(), &env, "")
            .clean()
            .text();
        let rows = text.lines().map(|row| {
            row.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect()
        });
        rows.collect::<Vec<Vec<String>>>()
    };
    let here = listed(&[]);
    assert_eq!(
        here[0],
        ["when", "id", "session", "messages", "branches", "directory"]
    );
    assert_eq!(here[1][1..5], ["garden-0", "about garden-00002", "2", "1"]);
    assert_eq!(here[2][1..5], ["kitchen-", "The kitchen", "4", "2"]);
    assert_eq!(here.len(), 3);
    assert!(here[2][0].ends_with('y'), "after a year: {}", here[2][0]);
    let all = listed(&["--all"]);
    assert_eq!(
        (all.len(), all[1][2].as_str(), all[1][5].as_str()),
        (4, "about elsewhere-03", "/far")
    );
    assert_eq!(listed(&["--all", "kitchen"]).len(), 2);
    let limited = home.run(&["ls", "--limit", "1"], &[], "").clean().text();
    assert!(
        limited.ends_with("2 sessions; 1 shown, --limit N shows more\n"),
        "{limited}"
    );
}

/// Each row of a list with long directories was once longer than a line of 80 columns.
#[test]
fn the_list_fits_in_the_screen() {
    let home = Home::new();
    let cwd = "/home/ada/a/directory/whose/path/is/long/enough/to/be/cut";
    Log::with_header(json!({"type": "session", "version": 3, "id": "kitchen-0001", "timestamp": "2025-01-01T00:00:00.000Z",
        "cwd": cwd, "origin": {"tool": "claude-code"}}))
        .user("u1", "", "Why are the rows of a list longer than the screen?")
        .assistant("a1", "u1", "They are not.")
        .store(&home, "2025-01-01_kitchen-0001.jsonl");
    for (columns, shown) in [
        ("40", &["Why are", "kitchen-"][..]),
        ("80", &["Why are", "enough/to/be/cut", "  1"]),
        ("100", &["Why are", "enough/to/be/cut", "  2         1"]),
        (
            "200",
            &["than the screen?", "/path/is/long/enough/to/be/cut"],
        ),
    ] {
        let env = [("COLUMNS", columns)];
        let text = home.run(&["list", "--all"], &env, "").clean().text();
        for line in text.lines() {
            let wide = line.chars().count();
            assert!(wide <= columns.parse().unwrap(), "{wide} columns: {line}");
        }
        for part in shown {
            assert!(text.contains(part), "no {part:?} in {columns}: {text}");
        }
    }
}

#[test]
fn an_empty_list_says_where_sessions_are() {
    let home = Home::new();
    let empty = home.run(&["list"], &[], "");
    assert_eq!((empty.code, empty.text().as_str()), (Some(0), ""));
    assert!(
        empty.stderr.contains("treelined import"),
        "{}",
        empty.stderr
    );
    let home = home_with_three();
    let none = home.run(&["list", "cellar"], &[], "");
    assert!(none.stderr.contains("--all"), "{}", none.stderr);
}

#[test]
fn the_list_as_json_has_rows_with_branches() {
    let home = home_with_three();
    let text = home
        .run(&["list", "--all", "--json"], &[], "")
        .clean()
        .text();
    let listed: Json = serde_json::from_str(&text).unwrap();
    let rows = listed["sessions"].as_array().unwrap();
    let branches: Vec<_> = rows
        .iter()
        .map(|row| (&row["sessionId"], &row["branches"]))
        .collect();
    assert_eq!(
        branches,
        [
            (&json!("elsewhere-03"), &json!(1)),
            (&json!("garden-00002"), &json!(1)),
            (&json!("kitchen-0001"), &json!(2))
        ]
    );
}

#[test]
fn a_branch_is_shown_as_text_up_to_an_entry() {
    let home = home_with_three();
    let shown = |args: &[&str]| {
        home.run(&[&["show"], args].concat(), &[], "")
            .clean()
            .text()
    };
    let whole = shown(&["The kitchen"]);
    assert!(
        whole.contains("right") && !whole.contains("left"),
        "{whole}"
    );
    assert!(no_controls(&whole), "{whole:?}");
    let other = shown(&["kitchen-0001", "u2"]);
    assert!(
        other.contains("left") && !other.contains("right"),
        "{other}"
    );
    let latest = shown(&["--latest"]);
    assert!(latest.contains("about garden-00002"), "{latest}");
    let first = shown(&["--latest", "u1"]);
    assert!(!first.contains("with a tab"), "{first}");
    let missing = home.run(&["show", "--latest", "u9"], &[], "");
    assert_eq!(missing.code, Some(3));
    assert!(
        missing.stderr.starts_with("error: ") && missing.stderr.contains("\n  try: "),
        "{}",
        missing.stderr
    );
}

/// The directory was cut to 32 columns, however wide the screen was.
#[test]
fn a_directory_has_a_quarter_of_a_wide_screen() {
    let home = Home::new();
    let cwd = "/home/ada/projects/a-shop-for-books/the-front";
    Log::with_header(json!({
        "type": "session", "version": 3, "id": "s1", "timestamp": "2025-01-02T00:00:00.000Z", "cwd": cwd,
    }))
    .user("u1", "", "one")
    .store(&home, "x_s1.jsonl");
    let shown = |columns: &str| {
        let env = [("COLUMNS", columns)];
        home.run(&["list", "--all"], &env, "").clean().text()
    };
    assert!(shown("200").contains(cwd), "{}", shown("200"));
    assert!(!shown("80").contains(cwd), "{}", shown("80"));
}
