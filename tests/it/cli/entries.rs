//! The ways in which a person can name an entry, in all commands that take one.

use super::*;

/// A session of the working directory, with two branches and labels on them.
pub(super) fn tour(home: &Home) -> PathBuf {
    Log::with_header(json!({
        "type": "session", "version": 3, "id": "tour0001", "timestamp": "2025-01-01T00:00:00.000Z",
        "cwd": home.cwd(),
    }))
    .user("11112222", "", "Why does the build fail?")
    .assistant(
        "11113333",
        "11112222",
        "A stale cache, or a missing import.",
    )
    .user("22224444", "11113333", "Clear the cache.")
    .assistant("33335555", "22224444", "Cleared. It still fails.")
    .user("44446666", "11113333", "Add the import.")
    .assistant("55557777", "44446666", "Added. It works.")
    .label("66668888", "55557777", "11113333", json!("two ideas"))
    .label("66669999", "66668888", "44446666", json!("1111"))
    .entry(
        "session_info",
        "77770000",
        "66669999",
        json!({"name": "A tour"}),
    )
    .store(home, "x_tour0001.jsonl")
}

/// Four commands once found an entry only by its complete id.
#[test]
fn every_command_finds_an_entry_by_id_label_and_beginning() {
    let home = Home::new();
    tour(&home);
    let commands: [&[&str]; 7] = [
        &["tree", "tour0001", "--expand", "ENTRY"],
        &["show", "tour0001", "ENTRY"],
        &["export", "tour0001", "--text", "--branch", "ENTRY"],
        &["export", "tour0001", "--text", "--subtree", "ENTRY"],
        &["stats", "tour0001", "--branch", "ENTRY"],
        &["compare", "tour0001", "ENTRY", "55557777"],
        &["label", "tour0001", "ENTRY", "two ideas"],
    ];
    for command in commands {
        let run = |entry: &str| {
            let args: Vec<&str> = command
                .iter()
                .map(|word| if *word == "ENTRY" { entry } else { word })
                .collect();
            home.run(&args, &[], "")
        };
        let by_id = run("11113333");
        assert_eq!(by_id.code, Some(0), "{command:?}: {by_id:?}");
        for named in ["two ideas", " two ideas ", "11113", "1111333…"] {
            let found = run(named);
            assert_eq!(found.text(), by_id.text(), "{command:?} {named}");
        }
        for (wrong, code, says) in [
            ("2222444", 0, ""),
            ("222", 3, "the beginning of an id has 4 characters or more"),
            ("two idaes", 3, "did you mean \"two ideas\"?"),
            (
                "nothing",
                3,
                "these have a label:\n  11113333  assistant  [two ideas] A stale cache",
            ),
            (
                "still fails",
                3,
                "these say it:\n  33335555  assistant  Cleared. It still fails.",
            ),
            ("", 3, "these have a label:"),
        ] {
            if wrong.is_empty() && command.contains(&"--branch") {
                continue; // This row is the branch of the leaf.
            }
            let output = run(wrong);
            assert_eq!(output.code, Some(code), "{command:?} {wrong}: {output:?}");
            assert!(
                output.stderr.contains(says),
                "{command:?} {wrong}: {output:?}"
            );
            let has_remedy = output.stderr.contains("\n  try: the id, its beginning");
            assert_eq!(has_remedy, code == 3, "{command:?} {wrong}: {output:?}");
        }
    }
}

/// An exact id wins over a label, and a label over the beginning of an id, as with the names of sessions.
#[test]
fn a_label_that_begins_an_id_is_the_label() {
    let home = Home::new();
    tour(&home);
    let label = |entry: &str, text: &str| home.run(&["label", "tour0001", entry, text], &[], "");
    let said = label("1111", "renamed").clean().text();
    assert!(
        said.starts_with("labelled 44446666  user  [renamed]"),
        "{said}"
    );
    let several = label("1111", "x");
    assert_eq!(several.code, Some(2), "{several:?}");
    let expected = "error: 2 entries have ids that begin with \"1111\":\n  \
                    11112222  user  Why does the build fail?\n  \
                    11113333  assistant  [two ideas] A stale cache, or a missing import.\n  \
                    try: the id of one of them\n";
    assert_eq!(several.stderr, expected);
    label("22224444", "11112222").clean();
    let said = label("11112222", "the id").clean().text();
    assert!(
        said.starts_with("labelled 11112222  user  [the id]"),
        "{said}"
    );
    label("33335555", "renamed").clean();
    let several = label("renamed", "x");
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(
        several
            .stderr
            .contains("2 entries have the label \"renamed\":"),
        "{several:?}"
    );
}

#[test]
fn a_session_that_is_left_out_is_the_latest_of_this_directory() {
    let home = Home::new();
    tour(&home);
    Log::new("elsewhere")
        .user("u1", "", "newer")
        .store(&home, "y_elsewhere.jsonl");
    for args in [
        &["tree"][..],
        &["show"],
        &["branches"],
        &["stats"],
        &["export", "--text"],
        &["compare", "33335555", "55557777"],
        &["label", "33335555", "no"],
        &["go", "33335555"],
        &["undo"],
        &["redo"],
        &["name", "A tour again"],
    ] {
        let left_out = home.run(args, &[], "");
        assert_eq!(left_out.code, Some(0), "{args:?}: {left_out:?}");
        let said = left_out.text();
        let names_it = ["A tour", "It still fails."]
            .iter()
            .any(|text| said.contains(text));
        assert!(names_it, "{args:?}: {said}");
    }
    for args in [&["rm"][..], &["purge"], &["migrate"]] {
        let output = home.run(args, &[], "");
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
    }
    let output = home.run(&["show", "--latest", "33335555", "more"], &[], "");
    assert_eq!(output.code, Some(2), "{output:?}");
    let output = home.run(&["go", "tour0001"], &[], "");
    assert_eq!(output.code, Some(3), "{output:?}");
    let says = "; \"tour0001\" is a session, which comes before the entry";
    assert!(output.stderr.contains(says), "{output:?}");
    let empty = Home::new();
    let output = empty.run(&["undo"], &[], "");
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(
        output.stderr.contains("no session of the directory"),
        "{output:?}"
    );
}
