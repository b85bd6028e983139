//! The daily work at the shell: going back, naming, counting, comparing, deleting.

use super::entries::tour;
use super::*;
use std::sync::Arc;

fn leaf(home: &Home) -> Json {
    let args = ["call", "get_leaf", "--open", "tour0001"];
    let text = home.run(&args, &[], "").clean().text();
    parse(&text).unwrap()["leafId"].clone()
}

fn home_with_tour() -> Arc<Home> {
    let home = Home::new();
    tour(&home);
    home
}

#[track_caller]
fn said(home: &Home, args: &[&str]) -> String {
    home.run(args, &[], "").clean().text()
}

#[test]
fn going_undoing_and_redoing_say_where_one_is_now() {
    let home = home_with_tour();
    let text = said(&home, &["go", "3333"]);
    let expected = "A tour\nnow at 33335555  assistant  Cleared. It still fails.\ntreelined undo takes it back\n";
    assert_eq!(text, expected);
    assert_eq!(leaf(&home), "33335555");
    let text = said(&home, &["go", "A tour", "3333"]);
    assert!(text.starts_with("already at 33335555"), "{text}");
    let text = said(&home, &["undo", "A tour"]);
    let expected =
        "now at 55557777  assistant  Added. It works.\ntreelined redo \"A tour\" takes it back\n";
    assert_eq!(text, expected);
    let text = said(&home, &["redo"]);
    assert!(text.contains("\nnow at 33335555"), "{text}");
    let text = said(&home, &["go", "tour0001", "22224444"]);
    let expected = "now at 11113333  assistant  [two ideas] A stale cache, or a missing import.\n\
                    before “Clear the cache.”\ntreelined undo tour0001 takes it back\n";
    assert_eq!(text, expected);
    let text = said(&home, &["go", "tour0001", "22224444"]);
    let expected = "already at 11113333  assistant  [two ideas] A stale cache, or a missing import.\n\
                    before “Clear the cache.”\n";
    assert_eq!(text, expected, "nothing is to be taken back");
    let text = said(&home, &["go", "11112222"]);
    assert!(
        text.contains("now at the beginning, before the first entry\nbefore “Why"),
        "{text}"
    );
    assert_eq!(leaf(&home), Json::Null);
}

#[test]
fn a_branch_that_is_left_can_be_summarized() {
    let home = home_with_tour();
    let text = said(&home, &["go", "11113333", "--summary", "--label", "works"]);
    // The summary, at which the leaf is, once had two rows.
    let rows = text.matches("[works] Tried “Add the import.”");
    assert_eq!(rows.count(), 1, "{text}");
    let row = text.lines().find(|line| line.contains("[works]")).unwrap();
    assert!(
        row.starts_with("now at ") && row.contains("  summary  "),
        "{text}"
    );
    let none = home.run(
        &["--summarizer", "none", "go", "33335555", "--summary"],
        &[],
        "",
    );
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.stderr.contains("summarizerUnavailable"), "{none:?}");
    let focus = home.run(&["go", "33335555", "--focus", "x"], &[], "");
    assert_eq!(
        focus.code,
        Some(2),
        "a focus is that of a summary: {focus:?}"
    );
}

#[test]
fn a_json_result_is_that_of_the_method_on_one_line() {
    let home = home_with_tour();
    for (args, member) in [
        (&["go", "33335555"][..], "newLeafId"),
        (&["undo"], "newLeafId"),
        (&["redo"], "oldLeafId"),
        (&["branches"], "branches"),
        (&["compare", "33335555", "55557777"], "ancestorId"),
        (&["stats"], "activeMs"),
        (&["name", "x"], "entryId"),
        (&["label", "33335555", "x"], "entryId"),
        (&["rm", "tour0001"], "trashedPath"),
        (&["restore", "tour0001"], "path"),
        (&["rm", "--latest"], "trashedPath"),
        (&["purge", "tour0001", "--yes"], "purged"),
    ] {
        let text = said(&home, &[args, &["--json"]].concat());
        assert_eq!(text.matches('\n').count(), 1, "{args:?}: {text}");
        assert!(
            parse(&text).unwrap().get(member).is_some(),
            "{args:?}: {text}"
        );
    }
}

/// Once, a veto was printed as JSON, and the exit code said success.
#[test]
fn a_veto_says_who_and_why_and_fails() {
    let home = home_with_tour();
    for (body, says) in [
        (
            "echo '{\"cancel\":true,\"reason\":\"building\"}'",
            "error: cancelled by guard: building\n  try: allow it in that client or hook",
        ),
        (
            "exit 3",
            "error: cancelled, since guard failed: it exited with code 3\n  try: correct what failed",
        ),
    ] {
        let hook = crate::config::script(&home, "guard", body);
        let text = format!("[[hooks]]\nevents = [\"session_before_tree\"]\nargv = [{hook:?}]\n");
        let config = crate::config::file(&home, &text);
        for json in [&[][..], &["--json"]] {
            let args = [&["--config", &config, "go", "33335555"], json].concat();
            let output = home.run(&args, &[], "");
            assert_eq!(output.code, Some(1), "{output:?}");
            assert!(output.stderr.contains(says), "{output:?}");
            let cancelled = output.text().contains("\"cancelled\":true");
            assert_eq!(cancelled, !json.is_empty(), "{output:?}");
        }
    }
    assert_eq!(leaf(&home), "77770000");
}

/// The command once started its own daemon, which asked no client, while an editor that guards the session was
/// connected to the shared daemon.
#[test]
fn the_clients_of_the_shared_daemon_are_asked_and_told() {
    let home = home_with_tour();
    let shared = SharedDaemon::start_in(&home, &[], &[]);
    let mut editor = shared.client("editor", json!({"answers": {"session_before_tree": {}}}));
    editor.ignore("event_resolved");
    editor.ok("open_session", json!({"sessionId": "tour0001"}));
    let socket = shared.socket.to_str().unwrap();
    let run = |args: &[&str]| {
        let mut command = home.command(args, &[("TREELINED_SOCKET", socket)]);
        command.stdin(std::process::Stdio::null()).spawn().unwrap()
    };
    let output = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, _, stderr) = output(run(&["--summarizer", "none", "go", "33335555"]));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("has --summarizer outline") && stderr.contains("TREELINED_SOCKET"),
        "{stderr}"
    );
    let going = run(&["go", "33335555"]);
    let event = editor.notification("session_before_tree");
    editor.answer(&event, json!({"cancel": true, "reason": "a test runs"}));
    let (code, _, stderr) = output(going);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.starts_with("error: cancelled by editor: a test runs\n"),
        "{stderr}"
    );
    let going = run(&["go", "33335555"]);
    let event = editor.notification("session_before_tree");
    editor.answer(&event, json!({}));
    assert_eq!(output(going).0, Some(0));
    editor.notification("session_tree");
    let (code, stdout, stderr) = output(run(&["undo"]));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(editor.notification("session_tree")["cause"], "undo");
    assert_eq!(output(run(&["rm", "tour0001"])).0, Some(0));
    editor.notification("session_closed");
    drop(editor);
}

#[test]
fn nothing_to_undo_says_where_to_look() {
    let home = home_with_tour();
    for (verb, says) in [
        (
            "undo",
            "error: there is no move to undo in \"A tour\" (nothingToUndo)\n",
        ),
        (
            "redo",
            "error: there is no undone move in \"A tour\" (nothingToUndo)\n",
        ),
    ] {
        let output = home.run(&[verb], &[], "");
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.starts_with(says), "{output:?}");
        assert!(
            output
                .stderr
                .ends_with("try: treelined tree tour0001, which shows the leaf\n")
        );
    }
}

#[test]
fn a_session_is_named_and_its_name_removed_from_the_shell() {
    let home = home_with_tour();
    assert_eq!(
        said(&home, &["name", "A tour", " The build "]),
        "\"A tour\" is now \"The build\"\n"
    );
    assert!(said(&home, &["list"]).contains("The build"));
    assert_eq!(
        said(&home, &["name", "The build", "--remove"]),
        "\"The build\" has no name now\n"
    );
    assert!(said(&home, &["list"]).contains("Why does the build fail?"));
    for wrong in [
        &["name"][..],
        &["name", " "],
        &["name", "tour0001", "x", "--remove"],
    ] {
        assert_eq!(home.run(wrong, &[], "").code, Some(2), "{wrong:?}");
    }
}

#[test]
fn branches_are_counted_and_compared_in_text() {
    let home = home_with_tour();
    let text = said(&home, &["branches"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], ["A tour", "2 branches", ""]);
    assert!(
        lines[3].starts_with("  33335555  ")
            && lines[3].ends_with("  2 messages  cost 0.50  Clear the cache."),
        "{text}"
    );
    assert!(
        lines[4].starts_with("• 55557777  ") && lines[4].ends_with("  Add the import."),
        "{text}"
    );
    let compare = |columns: &str| {
        let args = ["compare", "33335555", "55557777"];
        home.run(&args, &[("COLUMNS", columns)], "").clean().text()
    };
    let narrow = "both from 11113333  assistant  [two ide…\n\n\
                  33335555  assistant  Cleared. It still …\n2 entries since then, cost 0.50\n\
                  user: Clear the cache.\nassistant: Cleared. It still fails.\n\n\
                  55557777  assistant  Added. It works.\n2 entries since then, cost 0.50\n\
                  user: Add the import.\nassistant: Added. It works.\n\n";
    assert_eq!(compare("40"), narrow.replace("still …", "still…"));
    let wide = compare("120");
    assert!(
        wide.contains("user: Clear the cache. ") && wide.contains(" │ user: Add the import.\n"),
        "{wide}"
    );
    let text = said(&home, &["stats"]);
    assert!(
        text.starts_with("A tour\nmessages    6 (3 assistant, 3 user)\n"),
        "{text}"
    );
    let text = said(&home, &["stats", "--branch", "22224444"]);
    assert!(
        text.contains("messages    3 (1 assistant, 2 user)\n"),
        "{text}"
    );
    assert!(text.contains("\ncost        0.50\n"), "{text}");
}

#[test]
fn a_removed_session_is_in_the_trash_until_it_is_purged() {
    let home = home_with_tour();
    let text = said(&home, &["rm", "A tour"]);
    let expected = "moved to the trash: A tour\ntreelined restore tour0001 brings it back\n";
    assert_eq!(text, expected);
    said(&home, &["restore", "A tour"]);
    let there = home.run(&["purge", "A tour", "--yes"], &[], "");
    assert_eq!(
        there.code,
        Some(3),
        "only what is deleted is purged: {there:?}"
    );
    // Two files of one session. One of them has a quarantine file and an original file beside it.
    said(&home, &["rm", "A tour"]);
    let trash = home.sessions().join(".trash");
    fs::create_dir(trash.join("x_tour0001.jsonl.quarantine")).unwrap();
    fs::write(trash.join("x_tour0001.jsonl.quarantine/1.damaged"), "x").unwrap();
    fs::write(trash.join("x_tour0001.jsonl.v1.bak"), "x").unwrap();
    tour(&home);
    said(&home, &["rm", "A tour"]);
    Log::new("kept0001")
        .user("u1", "", "kept")
        .store(&home, "y_kept0001.jsonl");
    said(&home, &["rm", "kept0001"]);
    let asked = home.run(&["purge", "tour0001"], &[], "y\n");
    assert_eq!(asked.code, Some(2), "it asks at a terminal only: {asked:?}");
    assert!(
        asked.stderr.ends_with("try: --yes, which answers it\n"),
        "{asked:?}"
    );
    assert_eq!(fs::read_dir(&trash).unwrap().count(), 5);
    let text = said(&home, &["purge", "tour0001", "--yes"]);
    assert!(text.starts_with("removed 2 sessions, "), "{text}");
    let left: Vec<_> = fs::read_dir(&trash).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    said(&home, &["purge", "--all", "--yes"]);
    assert_eq!(said(&home, &["purge", "--all"]), "the trash is empty\n");
    assert_eq!(fs::read_dir(&trash).unwrap().count(), 0);
}

/// A timer that empties the trash once let the next import write each session anew, since only the trash said that the user
/// had deleted it.
#[test]
fn imports_skip_a_session_after_its_purge() {
    let home = Home::new();
    let log = r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"Find the race"},"uuid":"u1","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/home/ada/p","sessionId":"s1","version":"2.1.0"}
"#;
    let path = home.file("s1.jsonl", log.as_bytes());
    let import = [
        "import",
        "--from",
        "claude-code",
        "--final",
        path.to_str().unwrap(),
    ];
    let text = said(&home, &import);
    assert!(text.contains("1 new session"), "{text}");
    let listed = || parse(&said(&home, &["list", "--all", "--json"])).unwrap();
    let id = listed()["sessions"][0]["sessionId"].clone();
    said(&home, &["rm", id.as_str().unwrap()]);
    said(&home, &["purge", "--all", "--yes"]);
    said(&home, &import);
    assert_eq!(listed()["sessions"], json!([]));
    let again = ["import", "--again", id.as_str().unwrap()];
    said(&home, &[&again[..], &import[1..]].concat());
    assert_eq!(listed()["sessions"][0]["sessionId"], id);
}

/// To remove old sessions, a user once had to name each of them or to empty the whole trash.
#[test]
fn purge_removes_what_was_deleted_long_ago() {
    let home = home_with_tour();
    said(&home, &["rm", "A tour"]);
    let keep = crate::config::file(&home, "[trash]\nkeep = \"30d\"\n");
    for args in [
        &["purge", "--older-than", "1h", "--yes"][..],
        &["--config", &keep, "purge", "--expired", "--yes"],
    ] {
        assert_eq!(said(&home, args), "no session in the trash is that old\n");
    }
    assert!(said(&home, &["restore"]).contains("A tour"));
    let config = home.run(&["--config", &keep, "config"], &[], "").clean();
    assert!(
        config.text().contains("keep = \"30d\""),
        "{}",
        config.text()
    );
    for (args, says) in [
        (
            &["purge", "--expired"][..],
            "keep = \"30d\" in its section [trash]",
        ),
        (&["purge", "--older-than", "30"], "such as 12h, 30d or 8w"),
        (
            &["purge", "--older-than", "30d", "--all"],
            "cannot be used with",
        ),
    ] {
        let refused = home.run(args, &[], "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
}
