//! The counts of terms that the cache keeps. protocol.md §3.16.

use super::{ask, store};
use crate::harness::*;
use std::fs;

fn terms_files(home: &Home) -> Vec<std::path::PathBuf> {
    let folder = home.sessions().join(".cache");
    let files = fs::read_dir(folder).map(|all| all.flatten().map(|one| one.path()).collect());
    let mut files: Vec<std::path::PathBuf> = files.unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|it| it == "terms"));
    files
}

fn wait_for_terms(home: &Home, count: usize) {
    eventually("counts of terms", || terms_files(home).len() >= count);
}

#[test]
fn an_append_is_found_at_once_and_scored_as_a_kept_one() {
    let home = Home::new();
    store(
        &home,
        Log::new("s").user("u1", "", "Where is the parser?"),
        "s",
    );
    store(
        &home,
        Log::new("t")
            .user("u1", "", "Elsewhere")
            .user("u2", "u1", "The parser"),
        "t",
    );
    let mut d = Daemon::quiet_in(&home);
    ask(&mut d, "parser");
    wait_for_terms(&home, 2);
    let entry = json!({"type": "message", "id": "u9", "parentId": "u1", "timestamp": "2025-01-01T00:00:09.000Z", "message": {"role": "user", "content": "The lexer of the parser", "timestamp": 1}});
    let file = home
        .session_files()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("_s."))
        .unwrap();
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str(&format!("{entry}\n"));
    fs::write(&file, text).unwrap();
    let scores = |result: &Json| -> Vec<(String, f64)> {
        let hits = result["hits"].as_array().unwrap().iter();
        hits.map(|hit| {
            (
                hit["entryId"].as_str().unwrap().to_owned(),
                hit["score"].as_f64().unwrap(),
            )
        })
        .collect()
    };
    let with_tail = scores(&ask(&mut d, "lexer parser"));
    assert_eq!(with_tail[0].0, "u9");
    for file in terms_files(&home) {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(scores(&ask(&mut d, "lexer parser")), with_tail);
}

#[test]
fn damaged_counts_change_no_answer() {
    let home = Home::new();
    store(
        &home,
        Log::new("s").user("u1", "", "Where is the parser?"),
        "s",
    );
    let mut d = Daemon::quiet_in(&home);
    let whole = ask(&mut d, "parser");
    wait_for_terms(&home, 1);
    for file in terms_files(&home) {
        let mut bytes = fs::read(&file).unwrap();
        bytes.iter_mut().take(64).for_each(|byte| *byte ^= 0x55);
        fs::write(&file, bytes).unwrap();
    }
    assert_eq!(ask(&mut d, "parser")["hits"], whole["hits"]);
}
