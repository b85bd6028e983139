//! `--help`, `--version`, completions, and `treelined demo`.

use super::*;

#[test]
fn help_version_and_completions_are_printed() {
    let home = Home::new();
    let help = home.run(&["--help"], &[], "").clean().text();
    for word in [
        "serve",
        "call",
        "tree",
        "doctor",
        "completions",
        "--session-dir",
        "--summarizer",
        "--max-frame-bytes",
        "--durability",
    ] {
        assert!(help.contains(word), "{word} in {help}");
    }
    assert!(
        home.run(&["--version"], &[], "")
            .clean()
            .text()
            .contains("treelined")
    );
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell], &[], "").clean().text();
        assert!(
            script.contains("treelined") && script.contains("doctor"),
            "{shell}: {script}"
        );
    }
    let output = home.run(&["--no-such-option"], &[], "");
    assert!(output.code.is_some_and(|c| c != 0), "{output:?}");
    assert!(
        output.stdout.is_empty(),
        "complaints go to stderr: {output:?}"
    );
}

/// The demo once ended with the error, after everything was shown.
#[test]
fn a_demo_makes_the_folder_for_its_page_first() {
    let home = Home::new();
    let folder = home.files().join("new/pages");
    let args = ["demo", folder.to_str().unwrap()];
    home.run(&args, &[], "").clean();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let file = home.file("file", b"");
    let args = ["demo", file.to_str().unwrap()];
    let refused = home.run(&args, &[], "");
    assert_ne!(refused.code, Some(0));
    assert_eq!(refused.text(), "");
    assert!(refused.stderr.contains(args[1]), "{refused:?}");
}

#[test]
fn the_demo_ends_by_naming_the_file_with_its_page_and_leaves_nothing_else() {
    let home = Home::new();
    let folder = home.files();
    let output = home
        .run(
            &["demo"],
            &[("TMPDIR", folder.to_str().unwrap()), ("COLUMNS", "200")],
            "",
        )
        .clean();
    let text = output.text();
    for said in [
        "→ navigate_tree       {\"targetId\":\"e4\",\"summarize\":true}",
        "← session_before_tree may I go from e10 to e4",
        "→ answer_event ",
        "← session_tree        cause navigate_tree, oldLeafId e10",
        "│ This is a summary of a branch",
        "└─ summary    [COPY: fails] ",
        "← session_tree        cause undo, oldLeafId e12, newLeafId e10",
        "treelined --help",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(text.matches("← active").count(), 3, "{text}");
    assert!(
        text.lines()
            .all(|line| line.chars().count() <= 80 || line.ends_with(".html")),
        "{text}"
    );
    let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
    assert_eq!(left.len(), 1, "its folder is gone");
    let page = left[0].as_ref().unwrap().path();
    assert_eq!(text.lines().last().unwrap().trim(), page.to_str().unwrap());
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("Content-Security-Policy")
    );
    assert!(
        home.session_files().is_empty(),
        "it leaves the user's sessions alone"
    );
}

/// The terminal once broke lines of 118 columns in the middle of words.
#[test]
fn help_fits_the_width_of_the_screen() {
    let home = Home::new();
    for columns in [40, 80, 200] {
        for args in [
            &["--help"][..],
            &["-h"],
            &["undo", "-h"],
            &["purge", "--help"],
        ] {
            let width = columns.to_string();
            let help = home.run(args, &[("COLUMNS", &width)], "").clean().text();
            let long = help.lines().find(|line| line.chars().count() > columns);
            assert_eq!(long, None, "{args:?}");
            assert!(help.contains("Usage: treelined"), "{help}");
        }
    }
}
