//! "Did you mean", positions in bad JSON, the style of errors, and the words that completions offer.

use super::*;

#[test]
fn a_wrong_name_is_answered_with_the_nearest_one() {
    let home = home_with_name("A tour");
    for (args, meant) in [
        (&["call", "get_tre"][..], "did you mean \\\"get_tree\\\"?"),
        (
            &["call", "list_sessions", r#"{"cdw":"/"}"#],
            "did you mean \\\"cwd\\\"?",
        ),
        (&["tree", "A tuor"], "did you mean \"A tour\"?"),
        (&["lst"], "'list'"),
    ] {
        let output = home.run(args, &[], "");
        assert!(output.stderr.contains(meant), "{args:?}: {}", output.stderr);
    }
    let mut d = Daemon::quiet_in(&home);
    d.ok("initialize", json!({"protocolVersion": 1}));
    d.ok("register_command", json!({"name": "review"}));
    let error = d.err("run_command", json!({"name": "reveiw"}));
    assert!(
        error.message.contains("did you mean \"review\"?"),
        "{}",
        error.message
    );
}

fn home_with_name(name: &str) -> std::sync::Arc<Home> {
    let home = Home::new();
    Log::new("s1")
        .user("u1", "", "x")
        .entry("session_info", "n1", "u1", json!({"name": name}))
        .store(&home, "x_s1.jsonl");
    home
}

#[test]
fn bad_json_is_refused_with_its_position() {
    let home = Home::new();
    let argument = home.run(&["call", "get_tree", "{\"a\":1,}"], &[], "");
    let stdin = home.run(&["call", "get_tree", "-"], &[], "{\"a\":\n1,}");
    assert_eq!((argument.code, stdin.code), (Some(2), Some(2)));
    assert!(
        argument.stderr.contains("line 1 column 8"),
        "{}",
        argument.stderr
    );
    assert!(
        stdin.stderr.contains("line 2 column 3") && stdin.stderr.contains("\n  try: "),
        "{}",
        stdin.stderr
    );
}

#[test]
fn a_shell_gets_the_words_that_may_follow() {
    let home = home_with_name("A tour");
    let words = |shell: &str, words: &[&str]| {
        let index = (words.len() - 1).to_string();
        let env = [
            ("TREELINED_COMPLETE", shell),
            ("_CLAP_COMPLETE_INDEX", &index),
            ("_CLAP_IFS", "\n"),
        ];
        home.run(&[&["--"], words].concat(), &env, "")
            .clean()
            .text()
    };
    let first = |text: String| {
        text.lines()
            .map(|line| line.split(':').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        first(words("bash", &["treelined", "call", "get_tr"])),
        ["get_tree"]
    );
    assert!(first(words("bash", &["treelined", "tree", "s"])).contains(&"s1".to_owned()));
    for shell in ["fish", "zsh"] {
        for typed in ["A", "A\\ t", "\"A t", "'A "] {
            let found = first(words(shell, &["treelined", "show", typed]));
            assert_eq!(found, ["A tour"], "{shell} {typed}");
        }
    }
    for command in ["ask", "search"] {
        let filters = words("bash", &["treelined", command, "role:us"]);
        assert_eq!(filters, "role:user", "{command}");
    }
    let addresses = words("bash", &["treelined", "serve", "--listen", "uni"]);
    assert_eq!(addresses, "unix\nunix:");
    assert!(first(words("zsh", &["treelined", "do"])).contains(&"doctor".to_owned()));
    let script = home.run(&["completions", "zsh"], &[], "").clean().text();
    assert!(script.contains("treelined-tui"), "{script}");
}

/// bash inserts a candidate without quoting it, so names with blanks were once not offered.
#[test]
fn bash_quotes_the_words_that_it_would_split() {
    let home = home_with_name("A tour's *");
    let script = home.run(&["completions", "bash"], &[], "").clean().text();
    let script = home.file("complete.bash", script.as_bytes());
    let completed = |words: &str, word: &str| {
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=2; _clap_complete_treelined treelined {word} show; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let folder = binary().parent().unwrap().display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        let mut bash = std::process::Command::new("bash");
        let inherited = home.command(&[], &[]);
        for (name, value) in inherited.get_envs() {
            match value {
                Some(value) => bash.env(name, value),
                None => bash.env_remove(name),
            };
        }
        bash.args(["--norc", "-c", &line])
            .env("PATH", path)
            .current_dir(home.cwd());
        String::from_utf8(bash.output().unwrap().stdout).unwrap()
    };
    let quoted = r"A\ tour\'s\ \*";
    assert_eq!(completed("treelined show A", "A").trim_end(), quoted);
    assert_eq!(
        completed(r"treelined show 'A\ t'", r"'A\ t'").trim_end(),
        quoted
    );
    // bash closes an open quotation mark itself.
    let open = completed(r#"treelined show '"A '"#, "'A '");
    assert_eq!(open.trim_end(), "A tour's *");
}

#[test]
fn the_ids_of_an_import_are_completed() {
    let home = home_with_name("A tour");
    home.run(
        &["call", "delete_session", r#"{"sessionId":"s1"}"#],
        &[],
        "",
    )
    .clean();
    let env = [("TREELINED_COMPLETE", "fish")];
    for option in ["--again", "--forget"] {
        let words = ["--", "treelined", "import", option, "s"];
        let found = home.run(&words, &env, "").clean().text();
        assert_eq!(found, "s1\tA tour\n", "{option}");
    }
}

#[test]
fn wrong_arguments_are_errors_with_a_remedy() {
    let home = Home::new();
    let output = home.run(&["list", "--jsn"], &[], "");
    assert_eq!(output.code, Some(2));
    assert_eq!(
        output.stderr,
        "error: unexpected argument '--jsn' found; did you mean '--json'?\n  \
         try: treelined list --json [WORDS]..., or treelined list --help\n"
    );
    let hostile = home.run(&["list", "--a\u{1b}[2J"], &[], "");
    assert!(
        hostile.code == Some(2) && no_controls(&hostile.stderr),
        "{hostile:?}"
    );
}

#[test]
fn man_pages_are_written_for_every_command() {
    let home = Home::new();
    let out = home.files().join("man");
    home.run(&["man", "--out", out.to_str().unwrap()], &[], "")
        .clean();
    let help = home.run(&["--help"], &[], "").clean().text();
    for name in ["list", "show", "export", "doctor"] {
        assert!(help.contains(name));
        let page = fs::read_to_string(out.join(format!("treelined-{name}.1"))).unwrap();
        assert!(
            page.contains(".SH OPTIONS") && page.contains("Examples"),
            "{page}"
        );
    }
    assert!(out.join("treelined.1").is_file());
}
