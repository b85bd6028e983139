//! `treelined tree`.

use super::*;

/// If the preview of a row does not show the match, the row shows the part of the text that does.
#[test]
fn a_query_shows_the_part_of_the_text_that_matches() {
    let home = Home::new();
    let far = format!("beginning {} a needle here", "hay ".repeat(100));
    let path = Log::new("s1")
        .user("u1", "", &far)
        .assistant("a1", "u1", "Needle found")
        .save(&home);
    let drawn = |query: &str| {
        let args = ["tree", path.to_str().unwrap(), "--query", query];
        home.run(&args, &[("COLUMNS", "120")], "").clean().text()
    };
    let needle = drawn("needle");
    assert!(
        needle.contains("hay a needle here") && needle.contains("Needle found"),
        "{needle}"
    );
    let user = drawn("user");
    assert!(user.contains("beginning hay hay"), "{user}");
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
        // The first message occurs once more as the title of a session without a name.
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
        Some(3)
    );
}

#[test]
fn tree_prints_no_control_character() {
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
fn tree_prints_a_title_rows_and_a_hint() {
    let home = Home::new();
    branched(&home);
    assert_eq!(
        drawn(&home, &["s1"], "48"),
        "\
the first question, which goes on for quite a w…
/project · 5 entries

• user       the first question, which goes on…
• assistant  an answer
  └─ ⊞ [the left one] 1 entry · go left
• user       go right ← active

1 branch folded with 1 entry; --all shows them,
--expand ENTRY opens one
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
u2   `- + [the left one] 1 entry - go left
u3 * user       go right <- active

1 branch folded with 1 entry; --all shows them,
--expand ENTRY opens one
2 entries not shown;
--filter all shows everything
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
    assert_eq!(output.code, Some(3));
    assert!(output.stderr.contains("sessionNotFound"), "{output:?}");
}

/// The hint once said that `--filter all` shows everything, although a query still hid rows.
#[test]
fn the_hints_of_tree_name_options_that_show_more() {
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
            Some("4 entries not shown; without --query all are shown"),
        ),
        (vec!["--filter", "all"], None),
    ] {
        assert_eq!(note(&args).as_deref(), hint, "{args:?}");
    }
    let damaged = home.file("torn.jsonl", include_bytes!("../../data/torn-tail.jsonl"));
    let damaged = damaged.to_str().unwrap();
    let drawn = drawn(&home, &[damaged], "100");
    let hint = format!("1 diagnostic: see treelined doctor {damaged}");
    assert_eq!(drawn.lines().last(), Some(hint.as_str()));
    assert_eq!(home.run(&["doctor", damaged], &[], "").code, Some(1));
}

#[test]
fn tree_is_not_wider_than_the_terminal() {
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

/// Tags, separators, annotations and old marks of direction once reached the terminal, each by other commands.
#[test]
fn names_and_labels_are_printed_without_control_characters() {
    let home = Home::new();
    let evil = "\u{1b}]52;c;aGk=\u{7}\u{202e}evil\u{85}\u{e0041}\u{e007f}\u{2028}\u{2029}\u{206a}\u{fff9}\u{fffb}";
    let path = Log::with_header(json!({
        "type": "session", "version": 3, "id": "s1", "timestamp": evil, "cwd": evil, "parentSession": evil,
    }))
    .entry("message", "u1", "", json!({"message": {"role": evil, "content": evil}}))
    .entry(evil, "u2", "u1", json!({}))
    .label("l1", "u2", "u1", json!(evil))
    .entry("session_info", "i1", "l1", json!({"name": evil}))
    .store(&home, "s1.jsonl");
    let path = path.to_str().unwrap();
    for args in [
        &["tree", path, "--filter", "all", "--ids"][..],
        &["doctor", path],
        &["show", path],
        &["list", "--all", "--json"],
        &["call", "get_tree", "{}", "--open", path],
        &["export", path, "--text"],
    ] {
        let text = home.run(args, &[], "").clean().text();
        assert!(text.contains("evil"), "{text}");
        assert!(no_controls(&text), "{text:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
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
    assert_eq!(wait(&mut child, DEADLINE), Some(0));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(said, "");
}
