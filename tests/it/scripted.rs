//! Use from shells: piped scripts without a handshake, the subcommands, `--help`, and what README.md
//! says of them. protocol.md §1, §2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::*;

fn step(id: u32, method: &str, params: Json) -> String {
    request(&json!(id), method, &params)
}

fn by_id(lines: &[Json], id: u32) -> &Json {
    let found = lines
        .iter()
        .find(|m| m["id"] == id)
        .unwrap_or_else(|| panic!("no answer to {id}"));
    found
        .get("result")
        .unwrap_or_else(|| panic!("{id} failed: {found}"))
}

/// The second of two navigations was told now and then that the first one was running still: that one
/// had given up its turn and went on being told of.
#[test]
fn piped_navigations_wait_for_each_other() {
    let home = Home::new();
    let mut steps = vec![
        step(1, "create_session", json!({"sessionId": "demo"})),
        step(
            2,
            "append_message",
            json!({"message": assistant("a"), "entryId": "a"}),
        ),
        step(
            3,
            "append_message",
            json!({"message": assistant("b"), "entryId": "b"}),
        ),
    ];
    for id in 4..400 {
        let target = ["a", "b"][id as usize % 2];
        steps.push(step(id, "navigate_tree", json!({"targetId": target})));
    }
    let lines = script_in(&home, &[], &steps);
    for id in 4..400 {
        by_id(&lines, id);
    }
}

#[test]
fn a_piped_script_means_what_it_says() {
    let home = Home::new();
    let lines = script_in(
        &home,
        &["--summarizer", "outline"],
        &[
            step(1, "create_session", json!({"sessionId": "demo"})),
            step(
                2,
                "append_message",
                json!({"message": user("one"), "entryId": "u1"}),
            ),
            step(
                3,
                "append_message",
                json!({"message": assistant("two"), "entryId": "a1"}),
            ),
            step(
                4,
                "append_message",
                json!({"message": user("three"), "entryId": "u2"}),
            ),
            step(
                5,
                "append_message",
                json!({"message": assistant("four"), "entryId": "a2"}),
            ),
            step(
                6,
                "navigate_tree",
                json!({"targetId": "a1", "summarize": true, "label": "tried"}),
            ),
            step(7, "get_leaf", json!({})),
            step(
                8,
                "append_message",
                json!({"message": user("five"), "entryId": "u3"}),
            ),
            step(9, "get_tree", json!({"render": "unicode"})),
            step(10, "undo_navigation", json!({})),
            step(11, "get_leaf", json!({})),
        ],
    );
    let navigated = by_id(&lines, 6);
    assert_eq!(navigated["cancelled"], false);
    assert_eq!(navigated["summaryEntry"]["parentId"], "a1");
    assert_eq!(
        by_id(&lines, 7)["leafId"],
        navigated["newLeafId"],
        "later requests wait for the navigation here"
    );
    assert_eq!(by_id(&lines, 8)["leafId"], "u3");
    let tree = by_id(&lines, 9);
    assert_eq!(ids(&tree["nodes"])[..4], ["u1", "a1", "u2", "a2"]);
    assert_eq!(by_id(&lines, 11)["leafId"], "a2");
    let names: Vec<_> = lines.iter().filter_map(|m| m["method"].as_str()).collect();
    for name in ["entries_appended", "session_before_tree", "session_tree"] {
        assert!(
            names.contains(&name),
            "notifications are streamed: {names:?}"
        );
    }
    assert!(
        !names
            .iter()
            .any(|n| ["summary_delta", "progress", "event_resolved"].contains(n)),
        "{names:?}"
    );
}

#[test]
fn a_script_gives_the_same_file_each_time() {
    let run = || {
        let home = Home::new();
        script_in(
            &home,
            &["--summarizer", "outline"],
            &[
                step(1, "create_session", json!({"sessionId": "demo"})),
                step(
                    2,
                    "append_message",
                    json!({"message": user("one"), "entryId": "u1"}),
                ),
                step(
                    3,
                    "append_message",
                    json!({"message": assistant("two"), "entryId": "a1"}),
                ),
                step(4, "branch", json!({"entryId": "u1"})),
                step(
                    5,
                    "append_message",
                    json!({"message": assistant("other"), "entryId": "a2"}),
                ),
            ],
        );
        let told = file_lines(&home.only_file());
        told.iter()
            .map(|l| {
                (
                    l["type"].clone(),
                    l["parentId"].clone(),
                    l["message"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn serve_is_the_default_and_can_be_said() {
    let line = format!("{}\n", step(1, "list_sessions", json!({})));
    let said = Home::new().run(&["serve"], &[], line).clean();
    assert_eq!(said.responses()["1"]["result"]["sessions"], json!([]));
}

#[test]
fn the_session_directory_comes_from_the_environment_too() {
    let home = Home::new();
    let elsewhere = home.files().join("elsewhere");
    let line = format!("{}\n", step(1, "create_session", json!({"name": "x"})));
    home.run(
        &[],
        &[("TREELINED_SESSION_DIR", elsewhere.to_str().unwrap())],
        line,
    )
    .clean();
    assert!(home.session_files().is_empty());
    assert!(elsewhere.is_dir());
}

#[test]
fn call_makes_one_call() {
    let home = Home::new();
    let output = home.run(&["call", "list_sessions"], &[], "").clean();
    let printed: Json = serde_json::from_str(&output.text()).expect("the result as JSON");
    assert!(printed.to_string().contains("\"sessions\":[]"), "{printed}");
    let output = home
        .run(
            &[
                "call",
                "create_session",
                r#"{"sessionId":"made","name":"by call"}"#,
            ],
            &[],
            "",
        )
        .clean();
    assert!(output.text().contains("by call"), "{output:?}");
    assert_eq!(file_lines(&home.only_file())[1]["name"], "by call");
}

#[test]
fn call_fails_with_the_error() {
    let home = Home::new();
    for args in [
        &["call", "no_such_method"][..],
        &["call", "open_session", r#"{"sessionId":"nobody"}"#],
        &["call", "list_sessions", "{"],
    ] {
        let output = home.run(args, &[], "");
        assert!(output.code.is_some_and(|c| c != 0), "{args:?}: {output:?}");
    }
    let output = home.run(
        &["call", "open_session", r#"{"sessionId":"nobody"}"#],
        &[],
        "",
    );
    let said = format!("{}{}", output.text(), output.stderr);
    assert!(
        said.contains("sessionNotFound") || said.contains("nobody"),
        "{said}"
    );
}

#[test]
fn tree_draws_a_session_file() {
    let home = Home::new();
    let path = Log::new("s1")
        .user("u1", "", "the first question")
        .assistant("a1", "u1", "an answer")
        .user("u2", "a1", "go left")
        .user("u3", "a1", "go right")
        .save(&home);
    let before = fs::read(&path).unwrap();
    let output = home.run(&["tree", path.to_str().unwrap()], &[], "").clean();
    let text = output.text();
    for said in ["the first question", "an answer", "go left", "go right"] {
        // A session without a name is called by its first message.
        let times = 1 + usize::from(said == "the first question");
        assert_eq!(text.matches(said).count(), times, "{said}: {text}");
    }
    let row = |said: &str| {
        text.lines()
            .collect::<Vec<_>>()
            .iter()
            .rposition(|l| l.contains(said))
            .unwrap()
    };
    assert!(
        row("the first question") < row("an answer") && row("go left") < row("go right"),
        "{text}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(
        home.run(&["tree", "/no/such/file.jsonl"], &[], "").code,
        Some(1)
    );
}

#[test]
fn tree_lets_no_control_character_through() {
    let home = Home::new();
    let path = Log::new("s1")
        .user("u1", "", "red \u{1b}[31malert\u{7}\u{9b}2J")
        .save(&home);
    let output = home
        .run(&["tree", path.to_str().unwrap()], &[("NO_COLOR", "1")], "")
        .clean();
    let text = output.text();
    assert!(text.contains("alert"), "{text:?}");
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "{text:?}"
    );
}

#[test]
fn doctor_tells_sound_files_from_others() {
    let home = Home::new();
    let sound = home.file("sound.jsonl", include_bytes!("../data/v3.jsonl"));
    let output = home
        .run(&["doctor", sound.to_str().unwrap()], &[], "")
        .clean();
    assert!(!output.text().is_empty(), "a summary");

    for (bytes, kind) in [
        (&include_bytes!("../data/torn-tail.jsonl")[..], "tornTail"),
        (include_bytes!("../data/invalid-json.jsonl"), "invalidJson"),
        (
            include_bytes!("../data/orphan-parent.jsonl"),
            "orphanParent",
        ),
        (include_bytes!("../data/cycle.jsonl"), "cycle"),
    ] {
        let path = home.file("sick.jsonl", bytes);
        let output = home.run(&["doctor", path.to_str().unwrap()], &[], "");
        assert_eq!(output.code, Some(1), "{kind}: {output:?}");
        assert!(output.text().contains(kind), "{kind}: {output:?}");
        assert_eq!(
            fs::read(&path).unwrap(),
            bytes,
            "doctor looks and does not touch"
        );
    }
    let path = home.file("empty.jsonl", b"");
    assert_eq!(
        home.run(&["doctor", path.to_str().unwrap()], &[], "").code,
        Some(1)
    );
}

#[test]
fn help_and_version_and_completions() {
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

// ---------------------------------------------------------------------------------------------
// `call`

#[test]
fn call_opens_a_session_first() {
    let home = Home::new();
    let log = Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two");
    let path = log.save(&home);
    log.store(&home, "x_s1.jsonl");
    for session in [path.to_str().unwrap(), "s1"] {
        let output = home
            .run(&["call", "get_leaf", "--open", session], &[], "")
            .clean();
        let leaf: Json = serde_json::from_str(&output.text()).unwrap();
        assert_eq!(leaf["leafId"], "a1");
        assert_eq!(output.text().lines().count(), 1, "compact");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), log.text(), "only read");
    let output = home
        .run(
            &["call", "append_message", "-", "--open", path.to_str().unwrap()],
            &[],
            "{\n  \"entryId\": \"u2\",\n  \"message\": {\"role\": \"user\", \"content\": \"three\"}\n}\n",
        )
        .clean();
    assert!(output.text().contains("\"leafId\":\"u2\""), "{output:?}");
    assert_eq!(file_lines(&path)[3]["parentId"], "a1");
}

#[test]
fn call_gives_the_error_object() {
    let home = Home::new();
    for (args, kind) in [
        (&["call", "no_such_method"][..], "methodNotFound"),
        (&["call", "get_leaf"], "invalidParams"),
        (&["call", "get_leaf", "--open", "nobody"], "sessionNotFound"),
    ] {
        let output = home.run(args, &[], "");
        assert_eq!(output.code, Some(1), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
        let error: Json = serde_json::from_str(&output.stderr).expect("an error object");
        assert_eq!(error["data"]["kind"], kind, "{args:?}");
    }
}

#[test]
fn pretty_is_the_same_json_and_harmless() {
    let home = Home::new();
    let said = "\u{1b}]0;title\u{7} \u{9b}2J \u{202e}gpj.exe \u{7f} ä 🌳";
    let path = Log::new("s1").user("u1", "", said).save(&home);
    let call = |extra: &[&str]| {
        let args = [
            &[
                "call",
                "get_entry",
                r#"{"entryId":"u1"}"#,
                "--open",
                path.to_str().unwrap(),
            ],
            extra,
        ];
        home.run(&args.concat(), &[], "").clean().text()
    };
    let (compact, pretty) = (call(&[]), call(&["--pretty"]));
    assert!(
        pretty.contains("\n  \"entry\": {\n    \"type\": \"message\","),
        "{pretty}"
    );
    for text in [&compact, &pretty] {
        assert!(no_controls(text), "{text:?}");
        let result: Json = serde_json::from_str(text).unwrap();
        assert_eq!(result["entry"]["message"]["content"], said);
    }
}

fn no_controls(text: &str) -> bool {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text
        .chars()
        .any(|c| turns(c) || c.is_control() && c != '\n')
}

// ---------------------------------------------------------------------------------------------
// `tree`

fn branched(home: &Home) -> PathBuf {
    Log::new("s1")
        .user(
            "u1",
            "",
            "the first question, which goes on for quite a while and then some more",
        )
        .assistant("a1", "u1", "an answer")
        .user("u2", "a1", "go left")
        .user("u3", "a1", "go right")
        .label("l1", "u3", "u2", json!("the left one"))
        .store(home, "x_s1.jsonl")
}

#[track_caller]
fn drawn(home: &Home, args: &[&str], columns: &str) -> String {
    let args = [&["tree"], args].concat();
    let output = home.run(&args, &[("COLUMNS", columns)], "").clean();
    output.text()
}

#[test]
fn tree_looks_like_this() {
    let home = Home::new();
    branched(&home);
    assert_eq!(
        drawn(&home, &["s1"], "48"),
        "\
the first question, which goes on for quite a w…
/project · 5 entries

• user       the first question, which goes on…
• assistant  an answer
  ├─ user       [the left one] go left
• └─ user       go right ← active

1 entry not shown; --filter all shows everything
"
    );
    assert_eq!(
        drawn(
            &home,
            &["s1", "--ascii", "--ids", "--filter", "user-only"],
            "48"
        ),
        "\
the first question, which goes on for quite a...
s1 - /project - 5 entries

u1 * user       the first question, which goe...
u2   |- user       [the left one] go left
u3 * `- user       go right <- active

2 entries not shown; --filter all shows everything
"
    );
}

#[test]
fn tree_takes_filters_and_queries() {
    let home = Home::new();
    let path = branched(&home);
    let path = path.to_str().unwrap();
    let labeled = drawn(&home, &[path, "--filter", "labeled-only"], "100");
    assert!(
        labeled.contains("go left") && !labeled.contains("go right"),
        "{labeled}"
    );
    let found = drawn(&home, &[path, "--query", "RIGHT go"], "100");
    assert!(
        found.contains("go right") && !found.contains("go left"),
        "{found}"
    );
    let all = drawn(&home, &[path, "--filter", "all"], "100");
    assert!(all.contains("label") && !all.contains("not shown"), "{all}");
    let output = home.run(&["tree", "nobody"], &[], "");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("sessionNotFound"), "{output:?}");
}

/// `--filter all` was named as what shows everything, where it still hid what a query left out.
#[test]
fn the_hints_of_tree_do_what_they_say() {
    let home = Home::new();
    let path = branched(&home);
    let path = path.to_str().unwrap();
    let note = |args: &[&str]| {
        let drawn = drawn(&home, &[&[path], args].concat(), "100");
        let last = drawn.lines().last().unwrap_or_default().to_owned();
        last.contains("not shown").then_some(last)
    };
    let query = ["--query", "right"];
    for (args, hint) in [
        (
            vec![],
            Some("1 entry not shown; --filter all shows everything"),
        ),
        (
            query.to_vec(),
            Some("4 entries not shown; --filter all without --query shows everything"),
        ),
        (
            [&query[..], &["--filter", "all"]].concat(),
            Some("4 entries not shown; without --query all are"),
        ),
        (vec!["--filter", "all"], None),
    ] {
        assert_eq!(note(&args).as_deref(), hint, "{args:?}");
    }
    let damaged = home.file("torn.jsonl", include_bytes!("../data/torn-tail.jsonl"));
    let damaged = damaged.to_str().unwrap();
    let drawn = drawn(&home, &[damaged], "100");
    let hint = format!("1 diagnostic: see treelined doctor {damaged}");
    assert_eq!(drawn.lines().last(), Some(hint.as_str()));
    assert_eq!(home.run(&["doctor", damaged], &[], "").code, Some(1));
}

#[test]
fn tree_is_no_wider_than_the_terminal() {
    let home = Home::new();
    let mut log = Log::new("s1").user(
        "n0",
        "",
        "漢字の長い質問がここにあります、とても長いです、本当に",
    );
    for depth in 0..40 {
        let parent = format!("n{depth}");
        log = log
            .user(&format!("n{}", depth + 1), &parent, &"word ".repeat(50))
            .user(&format!("o{depth}"), &parent, "other");
    }
    let long = "l".repeat(300);
    let path = log.label("l1", "n1", "n40", json!(long)).save(&home);
    for columns in [40, 80, 120] {
        let text = drawn(&home, &[path.to_str().unwrap()], &columns.to_string());
        for line in text.lines().skip(3).take_while(|line| !line.is_empty()) {
            let wide = line
                .chars()
                .filter(|c| ('\u{3000}'..'\u{a000}').contains(c))
                .count();
            assert!(line.chars().count() + wide <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn names_and_labels_are_harmless_too() {
    let home = Home::new();
    let evil = "\u{1b}]52;c;aGk=\u{7}\u{202e}evil\u{85}";
    let path = Log::with_header(json!({
        "type": "session", "version": 3, "id": "s1", "timestamp": evil, "cwd": evil, "parentSession": evil,
    }))
    .entry("message", "u1", "", json!({"message": {"role": evil, "content": evil}}))
    .entry(evil, "u2", "u1", json!({}))
    .label("l1", "u2", "u1", json!(evil))
    .entry("session_info", "i1", "l1", json!({"name": evil}))
    .save(&home);
    let path = path.to_str().unwrap();
    for args in [
        &["tree", path, "--filter", "all", "--ids"][..],
        &["doctor", path],
    ] {
        let text = home.run(args, &[], "").clean().text();
        assert!(text.contains("evil"), "{text}");
        assert!(no_controls(&text), "{text:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let home = Home::new();
    let mut log = Log::new("s1").user("n0", "", "first");
    for number in 0..5000 {
        log = log.user(
            &format!("n{}", number + 1),
            &format!("n{number}"),
            "a line that fills the pipe",
        );
    }
    let path = log.save(&home);
    let mut child = home
        .command(&["tree", path.to_str().unwrap()], &[])
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(
        wait(&mut child, std::time::Duration::from_secs(20)),
        Some(0)
    );
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(said, "");
}

// ---------------------------------------------------------------------------------------------
// `doctor` and `migrate`

#[test]
fn doctor_explains_every_kind_of_damage() {
    let home = Home::new();
    for file in fs::read_dir(root("tests/data")).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let output = home.run(&["doctor", path.to_str().unwrap()], &[], "");
        let name = path.file_stem().unwrap().to_str().unwrap();
        let sound = name.starts_with('v');
        assert_eq!(output.code, Some(i32::from(!sound)), "{name}: {output:?}");
        let text = output.text();
        assert_eq!(text.contains("1 file: 1 sound"), sound, "{name}: {text}");
        assert_eq!(text.contains(": line "), !sound, "{name}: {text}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{name}");
    }
    let several = [
        root("tests/data/v1.jsonl"),
        root("tests/data/torn-tail.jsonl"),
        home.file("e.jsonl", b""),
    ];
    let several = several.each_ref().map(|path| path.to_str().unwrap());
    let text = home
        .run(&[&["doctor"][..], &several].concat(), &[], "")
        .text();
    for said in [
        "version  1 (read as 3",
        "entries  10: 9 message (6 user, 2 assistant, 1 custom), 1 compaction",
        "tornTail: line 4, offset 646, 60 bytes",
        "headerMissing",
        "3 files: 1 sound, 1 with 1 diagnostic, 1 not readable",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn migrate_rewrites_and_keeps_the_original() {
    let home = Home::new();
    for (name, bytes) in [
        ("v1.jsonl", &include_bytes!("../data/v1.jsonl")[..]),
        ("v2.jsonl", include_bytes!("../data/v2.jsonl")),
    ] {
        let path = home.file(name, bytes);
        let kept = path.with_file_name(format!("{name}.{}.bak", &name[..2]));
        let drawn = |home: &Home| {
            drawn(
                home,
                &[path.to_str().unwrap(), "--ids", "--filter", "all"],
                "200",
            )
        };
        let before = drawn(&home);
        let text = home
            .run(&["migrate", path.to_str().unwrap()], &[], "")
            .clean()
            .text();
        assert!(text.contains(kept.to_str().unwrap()), "{text}");
        assert_eq!(fs::read(&kept).unwrap(), bytes);
        assert_eq!(file_lines(&path)[0]["version"], 3);
        assert_eq!(drawn(&home), before, "the same tree, the same ids");
        let rewritten = fs::read(&path).unwrap();
        let again = home
            .run(&["migrate", path.to_str().unwrap()], &[], "")
            .clean()
            .text();
        assert!(again.contains("already"), "{again}");
        assert_eq!(fs::read(&path).unwrap(), rewritten);
    }
    let newer = Log::with_header(
        json!({"type": "session", "version": 4, "id": "s", "timestamp": "", "cwd": "/"}),
    );
    let path = newer.save(&home);
    let output = home.run(&["migrate", path.to_str().unwrap()], &[], "");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("versionUnsupported"), "{output:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), newer.text());
}

// ---------------------------------------------------------------------------------------------
// `demo`, `schema/`, README.md

#[test]
fn the_demo_is_whole_and_leaves_nothing() {
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
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        0,
        "its folder is gone"
    );
    assert!(
        home.session_files().is_empty(),
        "it leaves the user's sessions alone"
    );
}

/// A file of the package.
fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_schema_folder_is_what_the_program_writes() {
    let home = Home::new();
    let out = home.files().join("new/schema");
    home.run(&["schema", "--out", out.to_str().unwrap()], &[], "")
        .clean();
    let texts = |folder: &Path| {
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path());
        // The other files are written by hand.
        let mut texts: Vec<_> = files
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .map(|path| {
                (
                    path.file_name().unwrap().to_owned(),
                    fs::read_to_string(&path).unwrap(),
                )
            })
            .collect();
        texts.sort();
        texts
    };
    let (written, kept) = (texts(&out), texts(&root("schema")));
    assert_eq!(written.len(), 4);
    assert!(written == kept, "stale: cargo run -- schema --out schema");
}

fn readme() -> String {
    fs::read_to_string(root("README.md")).unwrap()
}

/// The list of methods in README.md as `schema/methods.json` has it.
fn method_list() -> String {
    let text = fs::read_to_string(root("schema/methods.json")).unwrap();
    let document: Json = serde_json::from_str(&text).unwrap();
    let mut list = String::from("| method | |\n|---|---|\n");
    for group in document["groups"].as_array().unwrap() {
        let (name, summary) = (&group["name"], group["summary"].as_str().unwrap());
        list += &format!("| **{}** | *{summary}* |\n", name.as_str().unwrap());
        for method in document["methods"].as_array().unwrap() {
            if method["group"] == *name {
                let (name, summary) = (&method["name"], &method["summary"]);
                let (name, summary) = (name.as_str().unwrap(), summary.as_str().unwrap());
                list += &format!("| `{name}` | {summary} |\n");
            }
        }
    }
    list
}

/// With `TREELINED_UPDATE=1` the test writes the list instead.
#[test]
fn the_readme_lists_every_method_with_its_summary() {
    const MARKS: [&str; 2] = ["<!-- methods -->\n", "<!-- /methods -->"];
    let readme = readme();
    let start = readme.find(MARKS[0]).expect(MARKS[0]) + MARKS[0].len();
    let end = readme.find(MARKS[1]).expect(MARKS[1]);
    let list = method_list();
    if std::env::var_os("TREELINED_UPDATE").is_some() {
        let updated = [&readme[..start], &list, &readme[end..]].concat();
        fs::write(root("README.md"), updated).unwrap();
        return;
    }
    assert!(
        readme[start..end] == list,
        "stale: TREELINED_UPDATE=1 cargo test --test it the_readme_lists"
    );
}

#[test]
fn the_readme_s_map_is_that_of_the_source() {
    let words = |text: &str| -> String {
        let start = text.find("- **The words.**").expect("the map");
        let end = start + text[start..].find("then answers.").expect("its end");
        let plain = text[start..end]
            .replace("[`", "`")
            .replace("`]", "`")
            .replace("//!", "");
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let source = fs::read_to_string(root("src/lib.rs")).unwrap();
    assert_eq!(words(&readme()), words(&source));
    for module in source
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "))
    {
        let module = module.trim_end_matches(';');
        assert!(
            source.contains(&format!("[`{module}`]:")),
            "{module} is not on the map"
        );
    }
}

/// Pasted into a shell as it stands.
#[test]
fn the_readme_s_conversation_works() {
    let readme = readme();
    let start = readme
        .find("export TREELINED_SESSION_DIR")
        .expect("the script");
    let script = &readme[start..start + readme[start..].find("```").unwrap()];
    let home = Home::new();
    let shell = home.command(&[], &[]);
    let program = Path::new(shell.get_program());
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let output = Command::new("bash")
        .args(["-euc", script])
        .env("PATH", path)
        .env("TMPDIR", home.files())
        .env("HOME", home.files())
        .env("COLUMNS", "84")
        .current_dir(home.cwd())
        .output()
        .unwrap();
    let (said, complaints) = (String::from_utf8(output.stdout).unwrap(), output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{}",
        String::from_utf8_lossy(&complaints)
    );
    let messages: Vec<Json> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    for id in 1..=7 {
        by_id(&messages, id);
    }
    let drawn = said.split_once("A tour\n").expect("the tree").1;
    let shown = readme
        .split_once("\nA tour\n")
        .expect("the tree")
        .1
        .split_once("```")
        .unwrap()
        .0;
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().skip(2).take_while(|line| !line.is_empty());
        rows.map(str::to_owned).collect()
    };
    assert_eq!(rows(drawn), rows(shown), "what it draws is what is shown");
}
