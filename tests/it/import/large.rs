//! Conversations that are imported only if the user asks for them, since they are too large (protocol.md §3.17).

use super::*;

/// The subagents of one file: one more than a source may have.
fn subagents() -> String {
    let root = |number: usize| {
        let message = json!({"role": "user", "content": "do it"});
        let record = record("t", "user", 0, &message);
        let record = record.replace("\"t-0\"", &format!("\"t-x{number}\""));
        record.replacen('{', "{\"isSidechain\":true,", 1)
    };
    (0..=10_000).map(root).collect()
}

#[test]
fn list_names_a_conversation_that_is_too_large() {
    let home = Home::new();
    let path = home.file("t.jsonl", subagents().as_bytes());
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let files = home.files();
    let files = files.to_str().unwrap();
    let output = home.run(&["import", "--final", files], &[], "");
    assert_eq!(output.code, Some(1), "{output:?}");
    let text = output.text();
    assert!(
        text.contains("importTooLarge") && text.contains("1 new session"),
        "{text}"
    );
    let listed = home.run(&["list", "--all"], &[], "").clean().text();
    let mut lines = listed.lines();
    let line = lines.find(|line| line.starts_with("not imported: "));
    let line = line.unwrap_or_else(|| panic!("{listed}"));
    assert!(
        line.contains("t.jsonl") && line.contains("treelined import --large PATH"),
        "{line}"
    );
    let large = ["import", "--final", "--large", "--dry-run", files];
    home.run(&large, &[], "").clean();
    fs::remove_file(path).unwrap();
    let listed = home.run(&["list", "--all"], &[], "").clean().text();
    assert!(!listed.contains("not imported"), "{listed}");
}
