//! `treelined archive`, `treelined unarchive` and `treelined name-branch`.

use super::*;

fn run(home: &Home, args: &[&str]) -> Output {
    home.run(args, &[], "")
}

#[test]
fn a_branch_is_named_archived_and_brought_back_from_the_shell() {
    let home = Home::new();
    branched(&home);
    let said = run(&home, &["name-branch", "s1", "u2", "the\tleft"])
        .clean()
        .text();
    assert!(said.starts_with("named u2  user"), "{said}");
    let tree = run(&home, &["tree", "s1", "--all"]).clean().text();
    assert!(tree.contains("the left · [the left one] go left"), "{tree}");
    let listed = || run(&home, &["branches", "s1"]).clean().text();
    assert!(listed().contains("the left"), "{}", listed());
    let said = run(&home, &["archive", "s1", "the left one"])
        .clean()
        .text();
    assert!(said.starts_with("archived u2  user"), "{said}");
    assert!(!listed().contains("the left"), "{}", listed());
    assert!(listed().contains("1 branch, 1 archived"), "{}", listed());
    let all = run(&home, &["branches", "s1", "--archived"]).clean().text();
    assert!(all.contains("the left (archived)"), "{all}");
    let tree = run(&home, &["tree", "s1", "--all"]).clean().text();
    assert!(
        tree.contains("1 archived branch; --archived shows them"),
        "{tree}"
    );
    assert!(!tree.contains("go left"), "{tree}");
    let tree = run(&home, &["tree", "s1", "--all", "--archived"])
        .clean()
        .text();
    assert!(tree.contains("go left"), "{tree}");
    let said = run(&home, &["unarchive", "s1", "u2"]).clean().text();
    assert!(said.starts_with("brought back u2  user"), "{said}");
    let again = run(&home, &["unarchive", "s1", "u2"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(again.stderr.contains("try:"), "{again:?}");
    run(&home, &["name-branch", "s1", "u2", "--remove"]).clean();
    assert!(!listed().contains("the left\n"), "{}", listed());
    for wrong in [
        &["name-branch", "s1", "u2", " "][..],
        &["name-branch", "s1", "u2", "x", "--remove"],
        &["archive", "s1"],
    ] {
        let output = run(&home, wrong);
        assert!(output.code != Some(0), "{wrong:?}: {output:?}");
    }
}

/// The command once said only that the branch was archived, and not that the next message goes to another position.
#[test]
fn an_archive_of_the_active_branch_says_where_the_session_is_now() {
    let home = Home::new();
    branched(&home);
    let said = run(&home, &["archive", "s1", "u3"]).clean().text();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("archived u3  user"), "{said}");
    assert!(lines[1].starts_with("now at a1  assistant"), "{said}");
    assert!(
        lines[2].contains("treelined undo s1 takes it back"),
        "{said}"
    );
    let said = run(&home, &["archive", "s1", "u2"]).clean().text();
    assert_eq!(said.lines().count(), 1, "{said}");
    let said = run(&home, &["archive", "s1", "u1"]).clean().text();
    assert!(said.contains("before the first entry"), "{said}");
}

/// The list once counted archived branches like other branches.
#[test]
fn a_list_counts_no_archived_branches() {
    let home = Home::new();
    branched(&home);
    let branches = || {
        let listed = run(&home, &["list", "--all", "--json"]).clean().text();
        let row = parse(&listed).unwrap()["sessions"][0].clone();
        let table = run(&home, &["list", "--all"]).clean().text();
        let shown = table.lines().nth(1).unwrap().to_owned();
        let count = row["branches"].as_u64().unwrap();
        assert!(shown.contains(&format!("  {count}  ")), "{count}: {shown}");
        count
    };
    assert_eq!(branches(), 2);
    run(&home, &["archive", "s1", "u2"]).clean();
    assert_eq!(branches(), 1);
    run(&home, &["unarchive", "s1", "u2"]).clean();
    assert_eq!(branches(), 2);
}

/// Archived branches once looked like all others when they were shown.
#[test]
fn a_tree_marks_archived_branches() {
    let home = Home::new();
    branched(&home);
    run(&home, &["archive", "s1", "u2"]).clean();
    run(&home, &["name-branch", "s1", "u3", "the other"]).clean();
    let tree = run(&home, &["tree", "s1", "--all", "--archived"])
        .clean()
        .text();
    let line = |text: &str| tree.lines().find(|line| line.contains(text)).unwrap();
    assert!(line("go left").contains("(archived)"), "{tree}");
    assert!(!line("go right").contains("archived"), "{tree}");
    assert_eq!(tree.matches("(archived)").count(), 1, "{tree}");
}

/// The list once said that there was no session at all, and suggested other directories.
#[test]
fn an_empty_list_says_which_option_leaves_sessions_out() {
    let home = Home::new();
    branched(&home);
    let listed = |args: &[&str]| run(&home, &[&["list", "--all"], args].concat()).stderr;
    let none = listed(&["--branch", "nosuch"]);
    assert!(
        none.starts_with("no session on the git branch nosuch"),
        "{none}"
    );
    let none = listed(&["--tag", "nosuch", "--from", "codex", "cellar"]);
    assert!(
        none.starts_with(
            "no session imported from codex with the tag #nosuch and with these words"
        ),
        "{none}"
    );
    let none = listed(&["--pinned"]);
    assert!(none.starts_with("no pinned session"), "{none}");
    run(
        &home,
        &[
            "call",
            "mark_session",
            r#"{"sessionId":"s1","archived":true}"#,
        ],
    )
    .clean();
    let none = listed(&[]);
    assert_eq!(
        none,
        "only archived sessions: 1 archived session; --archived shows them\n"
    );
    let all = run(&home, &["list", "--all", "--archived"]).clean().text();
    assert!(all.contains("the first question"), "{all}");
}
