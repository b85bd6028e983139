//! Conversations that are too large to be imported unasked (protocol.md §3.17).

use super::*;
use std::io::Write as _;

const ROLLOUT: &str = "rollout-2026-11-22T02-44-44-01a20124-4777-7de2-915b-000000000000.jsonl.zst";

/// A compressed file of Codex of less than 64 KiB with one message of a person and 70 MB of other records.
fn bomb() -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let meta = json!({"timestamp": "2026-11-22T02:44:44.000Z", "type": "session_meta",
        "payload": {"id": "01a20124-4777-7de2-915b-000000000000", "cwd": "/w", "timestamp": "2026-11-22T02:44:44.000Z"}});
    let content = json!([{"type": "input_text", "text": "hello"}]);
    let asked = json!({"timestamp": "2026-11-22T02:44:45.000Z", "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": content}});
    let filler = [b"{}".as_slice(), &vec![b' '; (1 << 20) - 3], b"\n"].concat();
    writeln!(encoder, "{meta}\n{asked}").unwrap();
    for _ in 0..70 {
        encoder.write_all(&filler).unwrap();
    }
    let bytes = encoder.finish().unwrap();
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    bytes
}

#[test]
fn list_names_a_conversation_that_is_too_large() {
    let home = Home::new();
    let path = home.file(ROLLOUT, &bomb());
    let path = path.to_str().unwrap();
    home.file("s.jsonl", conversation("s", 2).as_bytes());
    let files = home.files();
    let all = ["import", "--final", files.to_str().unwrap()];
    let output = home.run(&all, &[], "");
    assert_eq!(output.code, Some(1), "{output:?}");
    let text = output.text();
    assert!(
        text.contains("importTooLarge") && text.contains("1 new session"),
        "{text}"
    );
    let listed = home.run(&["list", "--all"], &[], "").clean().text();
    let line = listed
        .lines()
        .find(|line| line.starts_with("not imported: "));
    let line = line.unwrap_or_else(|| panic!("{listed}"));
    assert!(
        line.contains(ROLLOUT) && line.contains("treelined import --large PATH"),
        "{line}"
    );
    let large = home.run(&["import", "--from", "codex", "--large", path], &[], "");
    assert!(large.clean().text().contains("1 new session"));
    let listed = home.run(&["list", "--all"], &[], "").clean().text();
    assert!(!listed.contains("not imported"), "{listed}");
}
