//! `treelined search`.

use super::*;

fn home_with_two() -> std::sync::Arc<Home> {
    let home = Home::new();
    Log::new("kitchen")
        .user("u1", "", "Where are the apples?")
        .assistant("a1", "u1", "In the cellar.")
        .user("u2", "a1", "Bake a cake of\napples")
        .user("u3", "a1", "Peel them\u{1b}[2J")
        .entry("session_info", "i1", "u3", json!({"name": "Kitchen"}))
        .store(&home, "2025-01-01T00-00-00-000Z_kitchen.jsonl");
    Log::new("garden")
        .user("u1", "", "Plant apples")
        .store(&home, "2025-01-02T00-00-00-000Z_garden.jsonl");
    home
}

fn json_lines(output: &Output) -> Vec<Json> {
    let text = output.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn hits_are_grouped_by_session_with_their_branch() {
    let home = home_with_two();
    let found = home.run(&["search", "apples"], &[], "");
    assert_eq!(found.code, Some(0));
    let expected = "\
Kitchen  kitchen
  2025-01-01 00:00  text         u2  Bake a cake of apples ← branch u2, left at a1
• 2025-01-01 00:00  text         u1  Where are the apples?

Plant apples  garden
• 2025-01-01 00:00  text         u1  Plant apples

3 hits in 2 sessions
";
    assert_eq!(found.text(), expected);
    let limited = home
        .run(&["search", "apples", "--limit", "1"], &[], "")
        .text();
    assert!(
        limited.ends_with("3 hits in 2 sessions; 1 shown, --limit N shows more\n"),
        "{limited}"
    );
    // Stored text reaches the terminal without control characters.
    let peel = home
        .run(&["search", "--literal", "Peel them"], &[], "")
        .text();
    assert!(peel.contains("Peel them[2J"), "{peel}");
}

/// `tool:bsh` once found nothing, without a reason.
#[test]
fn a_filter_with_a_value_that_nothing_has_is_named() {
    let home = Home::new();
    Log::new("s")
        .user("u1", "", "apples")
        .message("t1", "u1", tool_result("c1", "bash", "apples", false))
        .store(&home, "2025-01-01T00-00-00-000Z_s.jsonl");
    for command in ["search", "ask"] {
        let found = home.run(&[command, "apples", "tool:bsh"], &[], "");
        let said = "nothing has tool:bsh; did you mean tool:bash?\nnothing found\n";
        assert_eq!((found.code, &*found.text()), (Some(1), said), "{command}");
    }
}

#[test]
fn json_has_a_line_for_each_hit_and_then_the_totals() {
    let home = home_with_two();
    let found = home.run(&["search", "apples", "--json"], &[], "");
    let lines = json_lines(&found);
    assert_eq!(lines.len(), 4);
    assert!(
        lines[..3]
            .iter()
            .all(|hit| hit["snippet"].as_str().unwrap().contains("apples"))
    );
    assert_eq!(lines[3]["totals"]["entries"], 3);
    let regex = home.run(
        &[
            "search",
            "--regex",
            "^Bake .*of$",
            "--in",
            "text,labels",
            "--json",
        ],
        &[],
        "",
    );
    assert_eq!(json_lines(&regex)[0]["entryId"], "u2");
}

#[test]
fn the_exit_code_says_whether_anything_was_found() {
    let home = home_with_two();
    let nothing = home.run(&["search", "plums"], &[], "");
    assert_eq!(
        (nothing.code, nothing.text().as_str()),
        (Some(1), "nothing found\n")
    );
    let nothing = home.run(
        &["search", "apples", "--since", "2999-01-01", "--json"],
        &[],
        "",
    );
    assert_eq!((nothing.code, json_lines(&nothing).len()), (Some(1), 1));
    let elsewhere = home.run(&["search", "apples", "--cwd", "/nowhere"], &[], "");
    assert_eq!(elsewhere.code, Some(1));
    let all = home.run(&["search", "apples", "--all"], &[], "");
    assert_eq!(all.code, Some(0));
    let bad = home.run(&["search", "--regex", "("], &[], "");
    assert_eq!(bad.code, Some(2));
    assert!(bad.stderr.contains("unclosed group"), "{}", bad.stderr);
}

/// The command once had four options for filters, and no other filters of the daemon.
#[test]
fn words_may_be_filters_and_a_fault_is_pointed_at() {
    let home = home_with_two();
    let found = home.run(
        &["search", "apples", "role:user", "-cake", "cwd:/"],
        &[],
        "",
    );
    assert_eq!(
        found.code,
        Some(2),
        "the shell's option -cake: {}",
        found.stderr
    );
    let found = home.run(&["search", "apples role:user -cake cwd:/"], &[], "");
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert!(
        found.text().ends_with("2 hits in 2 sessions\n"),
        "{}",
        found.text()
    );
    let refused = home.run(&["search", "日 apples", "rol:user"], &[], "");
    assert_eq!(refused.code, Some(2));
    let shown = "did you mean `role:`? Quote the word to search for it\n  日 apples rol:user\n            ^\n";
    assert!(refused.stderr.contains(shown), "{}", refused.stderr);
    // A literal text or a pattern has no filters.
    for plain in [["--literal", "tag:x"], ["--regex", "tag:x"]] {
        let none = home.run(&["search", plain[0], plain[1]], &[], "");
        assert_eq!(none.code, Some(1), "{}", none.stderr);
    }
}

/// The failed attempt is shown with the reason why it was left.
#[test]
fn a_question_is_answered_with_what_became_of_its_branches() {
    let home = Home::new();
    crate::search::two(&home);
    let found = home.run(&["ask", "baking cakes with what"], &[], "");
    let text = found.clean().text();
    assert!(text.contains("Bake a cake of apples, then"), "{text}");
    assert!(text.contains("instead: Peel them"), "{text}");
    let lines = json_lines(&home.run(&["ask", "apples", "--json"], &[], ""));
    assert_eq!(lines.last().unwrap()["totals"]["atLeast"], true);
    // It once proposed a larger limit, with which it showed as much.
    let mut log = Log::new("many").user("m0", "", "plums");
    for number in 1..5 {
        let (id, above) = (format!("m{number}"), format!("m{}", number - 1));
        log = log.user(&id, &above, "More plums");
    }
    log.store(&home, "z_many.jsonl");
    let text = home.run(&["ask", "plums"], &[], "").clean().text();
    let lines = json_lines(&home.run(&["ask", "plums", "--json"], &[], ""));
    let more = json!([{"sessionId": "many", "count": 2}]);
    assert_eq!(lines.last().unwrap()["more"], more);
    let says =
        "5 hits in 1 session; 3 shown, the best of each session, treelined search shows all\n";
    assert!(text.ends_with(says), "{text}");
    let wrong = home.run(&["ask", "aplpes", "cake"], &[], "");
    let text = wrong.clean().text();
    assert!(
        text.contains("nothing has aplpes; apples counts instead\n"),
        "{text}"
    );
    let part = home.run(&["ask", "apple"], &[], "");
    assert!(!part.clean().text().contains("part of a word"));
    let part = home.run(&["ask", "ppl"], &[], "");
    let text = part.clean().text();
    assert!(text.contains(" (part of a word: ppl)"), "{text}");
    assert_eq!(home.run(&["ask", "quinces"], &[], "").code, Some(1));
}
