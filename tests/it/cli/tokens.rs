//! `treelined usage`.

use super::*;

/// A home with a session of two answers, one of them with a cost, and a fork of the session.
fn home_with_fork() -> std::sync::Arc<Home> {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("session_before_fork");
    d.ignore("session_fork");
    let created = d.ok("create_session", json!({"name": "the original"}));
    let id = created["session"]["sessionId"].clone();
    let answer = |entry_id: &str, at: u64, model: &str, cost: f64| {
        let usage = json!({"input": 1000, "output": 10, "cacheRead": 7, "cost": {"total": cost}});
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": "yes"}],
            "provider": "p", "model": model, "usage": usage, "timestamp": at});
        json!({"sessionId": id, "entryId": entry_id, "message": message})
    };
    d.ok("append_message", answer("a1", 1_764_320_400_000, "m", 1.25));
    d.ok("append_message", answer("a2", 1_764_460_800_000, "n", 0.0));
    d.ok("fork_session", json!({"sessionId": id}));
    drop(d);
    home
}

fn counted(home: &Home, args: &[&str]) -> Json {
    let args = [args, &["usage", "--json"]].concat();
    let output = home.run(&args, &[], "").clean();
    serde_json::from_str(&output.text()).unwrap()
}

/// A fork has the answers of its source in its file. The usage of these answers must count once.
#[test]
fn usage_of_a_fork_counts_once() {
    let home = home_with_fork();
    assert_eq!(home.session_files().len(), 2);
    let days = counted(&home, &[]);
    let expected = json!({
        "answers": 2, "answersWithoutTokens": 0,
        "tokens": {"input": 2000, "output": 20, "cacheRead": 14, "cacheWrite": 0},
        "costs": {"recorded": 1.25, "estimated": null, "unknownAnswers": 1},
    });
    assert_eq!(days["total"], expected);
    assert_eq!(days["rows"][0]["day"], "2025-11-28");
    assert_eq!(days["rows"][1]["day"], "2025-11-30");
    assert_eq!(days["rows"][1]["costs"]["recorded"], Json::Null);

    let env = [("COLUMNS", "80")];
    let shown = home.run(&["usage", "--by", "session"], &env, "").clean();
    let shown = shown.text();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].contains("the original"), "{shown}");
    assert!(lines[1].ends_with("1.25 + ?"), "{shown}");
    assert!(lines[2].starts_with("total "), "{shown}");
    assert!(shown.contains("? 1 answer of unknown cost"), "{shown}");
    for columns in ["40", "80", "200"] {
        let env = [("COLUMNS", columns)];
        let shown = home.run(&["usage"], &env, "").clean().text();
        let table = shown.lines().take(4);
        let widest = table.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{shown}");
    }
}

/// A conversation whose branch `e1` was left after an answer for 1.40, and whose branch `f1` has an answer of unknown cost.
#[test]
fn a_dead_end_shows_its_cost() {
    let home = Home::new();
    let answer = |at: u64, cost: f64| {
        json!({
            "role": "assistant", "content": [{"type": "text", "text": "yes"}], "provider": "p", "model": "m",
            "usage": {"input": 1000, "output": 10, "cost": {"total": cost}}, "timestamp": at,
        })
    };
    Log::new("s1")
        .user("u1", "", "begin")
        .message("r1", "u1", answer(1, 0.25))
        .user("u2", "r1", "clear the cache")
        .message("e1", "u2", answer(2, 1.4))
        .user("u3", "r1", "clear the table")
        .message("f1", "u3", answer(3, 0.0))
        .user("u4", "r1", "not the cache")
        .message("x1", "u4", answer(4, 0.5))
        .store(&home, "x_s1.jsonl");
    let total = &counted(&home, &[])["total"];
    assert_eq!(total["costs"]["recorded"], 2.15);
    let run = |args: &[&str], columns: &str| {
        let env = [("COLUMNS", columns)];
        home.run(args, &env, "").clean().text()
    };
    let usage = ["usage", "--by", "branch", "--session", "s1"];
    let shown = run(&usage, "80");
    let lines: Vec<&str> = shown.lines().collect();
    for (line, start, end) in [
        (1, "  e1 clear the cache ", " 1.40"),
        (2, "• x1 not the cache ", " 0.75"),
        (3, "  f1 clear the table ", " unknown"),
    ] {
        assert!(
            lines[line].starts_with(start) && lines[line].ends_with(end),
            "{shown}"
        );
    }
    assert!(shown.contains("• the active branch"), "{shown}");
    let shown = home.run(&["usage", "--session", "none"], &[], "");
    assert_eq!(shown.code, Some(3), "{}", shown.stderr);

    let shown = run(&["branches", "s1"], "80");
    let line = |name: &str| shown.lines().find(|line| line.ends_with(name)).unwrap();
    assert!(line("clear the cache").contains(" cost 1.40  "), "{shown}");
    assert!(
        line("clear the table").contains(" cost unknown  "),
        "{shown}"
    );
    assert!(!line("not the cache").contains("cost"), "{shown}");
    let narrow = run(&["branches", "s1"], "40");
    assert!(!narrow.contains("cost 1.40"), "{narrow}");
}

/// Names of models were cut at 80 columns, although the numbers left their columns half empty.
#[test]
fn names_have_the_room_that_the_numbers_leave() {
    let home = Home::new();
    let model = "claude-sonnet-4-5-20250929";
    let message = json!({
        "role": "assistant", "content": [], "provider": "anthropic", "model": model, "timestamp": 1,
        "usage": {"input": 1000, "output": 10, "cost": {"total": 0.5}},
    });
    Log::new("s1")
        .message("a1", "", message)
        .store(&home, "x_s1.jsonl");
    for (columns, name) in [
        ("80", format!("anthropic/{model} ")),
        ("40", "anthropic/claude-".to_owned()),
    ] {
        let env = [("COLUMNS", columns)];
        let shown = home
            .run(&["usage", "--by", "model"], &env, "")
            .clean()
            .text();
        assert!(shown.contains(&name), "{shown}");
        let widest = shown.lines().take(3).map(|line| line.chars().count()).max();
        assert!(widest <= columns.parse().ok(), "{shown}");
    }
}

#[test]
fn prices_of_the_configuration_come_first() {
    let home = home_with_fork();
    let config = |text: &str| crate::config::file(&home, text);
    let path = config("[prices.\"p/n\"]\ninput = 1000.0\noutput = 0\ncache_read = 0\n");
    let total = counted(&home, &["--config", &path])["total"].clone();
    let expected = json!({"recorded": 1.25, "estimated": 1.0, "unknownAnswers": 0});
    assert_eq!(total["costs"], expected);
    let path = config("[prices.n]\ninput = 1000.0\noutput = 0\n");
    let total = counted(&home, &["--config", &path])["total"].clone();
    assert_eq!(
        total["costs"]["unknownAnswers"], 1,
        "no price for the cache"
    );
    let path = config("[prices.n]\ninput = -1.0\n");
    let output = home.run(&["--config", &path, "usage"], &[], "");
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("prices.n.input"),
        "{}",
        output.stderr
    );
}

#[test]
fn without_answers_usage_says_so() {
    let home = Home::new();
    let shown = home.run(&["usage"], &[], "").clean();
    assert_eq!(shown.text(), "no answers\n");
    assert_eq!(counted(&home, &[])["rows"], json!([]));
    let wrong = home.run(&["usage", "--since", "soon"], &[], "");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("is not a time"), "{}", wrong.stderr);
}

/// The tokens that `ccusage daily --json --offline --timezone UTC` (npm, 17.2.1) prints for the same files of Claude
/// Code. In these files several records have the same answer.
#[test]
fn tokens_of_claude_code_are_those_of_ccusage() {
    let home = Home::new();
    let files = crate::readme::root("tests/data/import/claude-code");
    let import = ["import", "--final", files.to_str().unwrap()];
    home.run(&import, &[], "");
    let days = counted(&home, &[]);
    let day = |day: &str| {
        let rows = days["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["day"] == day);
        row.map(|row| row["tokens"].clone())
    };
    let tokens = |input: u64, output: u64, read: u64, written: u64| {
        Some(json!({"input": input, "output": output, "cacheRead": read, "cacheWrite": written}))
    };
    assert_eq!(day("2024-01-01"), tokens(360, 180, 800, 200));
    assert_eq!(day("2026-01-28"), tokens(42, 6, 175_563, 46_460));
}

#[test]
fn du_counts_each_file_in_one_part() {
    let home = home_with_fork();
    let sessions = home.sessions();
    let bytes: u64 = home
        .session_files()
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    let trash = sessions.join(".trash");
    fs::create_dir(&trash).unwrap();
    fs::write(trash.join("old.jsonl"), "12345").unwrap();
    fs::write(sessions.join("notes"), "123").unwrap();
    let measured = home.run(&["du", "--json"], &[], "").clean();
    let measured: Json = serde_json::from_str(&measured.text()).unwrap();
    let parts = measured["parts"].as_object().unwrap();
    assert_eq!(parts["sessions"], json!({"files": 2, "bytes": bytes}));
    assert_eq!(parts["trash"], json!({"files": 1, "bytes": 5}));
    let sum: u64 = parts
        .values()
        .map(|part| part["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(measured["total"]["bytes"], sum);
    assert!(parts["other"]["bytes"].as_u64() >= Some(3), "{measured}");

    let shown = home.run(&["du"], &[("COLUMNS", "80")], "").clean().text();
    assert!(
        shown.contains("\ntrash             5 B       1 file"),
        "{shown}"
    );
    let nothing = home.run(
        &["--session-dir", "/nowhere/at/all", "du", "--json"],
        &[],
        "",
    );
    let nothing: Json = serde_json::from_str(&nothing.text()).unwrap();
    assert_eq!(nothing["total"], json!({"files": 0, "bytes": 0}));
}
