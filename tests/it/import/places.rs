//! `treelined import` where there is nothing to import.

use super::*;

/// The tools and the folders of their sources, from the result.
fn places(result: &Json) -> Vec<(String, String, bool)> {
    let places = result["places"].as_array().unwrap().iter();
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    places
        .map(|it| (text(&it["tool"]), text(&it["path"]), it["exists"] == true))
        .collect()
}

/// The command once said "no sessions found", and did not show that CODEX_HOME was another folder.
#[test]
fn an_import_that_finds_nothing_says_where_it_looked() {
    let home = Home::new();
    let user = home.files().join("user");
    fs::create_dir_all(user.join(".codex")).unwrap();
    let claude = user.join("elsewhere").display().to_string();
    let env = [
        ("HOME", user.to_str().unwrap()),
        ("CLAUDE_CONFIG_DIR", &*claude),
        ("CODEX_HOME", ""),
        ("XDG_DATA_HOME", ""),
    ];
    let text = home.run(&["import"], &env, "").clean().text();
    assert!(text.contains("no sessions found"), "{text}");
    let lines = |words: &[&str]| {
        let has = |line: &&str| words.iter().all(|word| line.contains(word));
        text.lines().filter(has).count()
    };
    assert_eq!(
        lines(&["claude-code", &claude, "is not there", "CLAUDE_CONFIG_DIR"]),
        1,
        "{text}"
    );
    assert_eq!(
        lines(&["codex", ".codex has none", "(CODEX_HOME, HOME)"]),
        1,
        "{text}"
    );
    for tool in [
        "opencode",
        "gemini",
        "goose",
        "pi ",
        "qwen-code",
        "roo-code",
        "copilot-cli",
        "vscode-chat",
    ] {
        assert_eq!(lines(&[tool, "is not there", "HOME)"]), 1, "{tool}: {text}");
    }
    let json = home.run(&["import", "--json"], &env, "").clean().text();
    let found = places(&serde_json::from_str(&json).unwrap());
    assert_eq!(found.len(), 13);
    assert_eq!(found[0], ("claude-code".to_owned(), claude.clone(), false));
    assert!(
        found
            .iter()
            .any(|(tool, _, exists)| tool == "codex" && *exists)
    );
    // Only the folders of the requested tool are named, and none if `paths` is given.
    let one = home
        .run(&["import", "--from", "pi", "--json"], &env, "")
        .clean()
        .text();
    assert_eq!(places(&serde_json::from_str(&one).unwrap()).len(), 1);
    let mut d = Daemon::quiet_in(&home);
    let params = json!({"paths": [user]});
    assert_eq!(d.ok("import_sessions", params)["places"], json!(null));
}

#[test]
fn an_export_needs_the_path_of_its_file() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    let error = d.err_kind(
        "import_sessions",
        json!({"from": "chatgpt"}),
        "invalidParams",
    );
    assert_eq!(error.details("field"), "paths");
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/import/chatgpt");
    let zip = data.join("numbered/export.zip");
    let done = d.ok("import_sessions", json!({"paths": [zip]}));
    assert_eq!(done["totals"]["created"], 3);
    assert_eq!(done["sessions"][0]["tool"], "chatgpt");
    let rows = d.ok("list_sessions", json!({"source": "chatgpt"}));
    assert_eq!(rows["sessions"].as_array().unwrap().len(), 3);
}

/// An answer that was held back was once missing without a message.
#[test]
fn an_import_says_what_it_holds_back() {
    let home = Home::new();
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let files = home.files().display().to_string();
    let text = home.run(&["import", &files], &[], "").clean().text();
    let held = text.lines().find(|line| line.starts_with("held "));
    let held = held.unwrap_or_else(|| panic!("{text}"));
    assert!(held.contains("claude-code: 1 entry of ") && held.contains(" minutes at most"));
    assert!(text.contains("--final"), "{text}");
    let text = home
        .run(&["import", &files, "--final"], &[], "")
        .clean()
        .text();
    assert!(!text.contains("held"), "{text}");
}
