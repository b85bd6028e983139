use super::*;
use serde_json::json;

fn shown(message: Value, columns: usize) -> Vec<String> {
    changed(message, columns, &[])
}

fn changed(message: Value, columns: usize, changes: &[Change]) -> Vec<String> {
    let entry = json!({"type": "message", "id": "a", "message": message});
    let calls = Calls {
        changes: changes.to_vec(),
        answered: None,
    };
    let lines = Document::with_calls(&entry, &calls).layout(columns);
    let mark = |style| match style {
        LineStyle::Text => ' ',
        LineStyle::Heading => '#',
        LineStyle::Quote => '>',
        LineStyle::Table => 'T',
        LineStyle::Code => '|',
        LineStyle::Added => '+',
        LineStyle::Removed => '<',
        LineStyle::Thinking => '?',
        LineStyle::Note => '-',
        LineStyle::Error => '!',
    };
    lines
        .iter()
        .map(|line| format!("{} {}", mark(line.style), line.prose.text))
        .collect()
}

#[test]
fn prose_headings_and_code_have_different_styles() {
    let text = "# Plan\nFirst read the file.\n```rust\nfn main() {    println!(\"a\") }\n```\nThen run it.";
    assert_eq!(
        shown(
            json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
            20
        ),
        [
            "# Plan",
            "  First read the file.",
            "|   fn main() {    pri",
            "| ntln!(\"a\") }",
            "  Then run it.",
        ]
    );
}

/// An edit was once shown as its arguments, on one long line.
#[test]
fn edits_are_diffs_at_the_call_and_at_its_result() {
    let change = |call: &str, is_diff: bool, text: &str| Change {
        call: call.into(),
        path: is_diff.then(|| "src/a.rs".into()),
        text: text.into(),
        is_diff,
    };
    let changes = [
        change("c1", true, " fn a() {\n-    old\n+    new\n@@\n }"),
        change("c2", false, "a whole file"),
    ];
    let content = json!([
        {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "src/a.rs", "oldText": "old"}},
        {"type": "toolCall", "id": "c2", "name": "write", "arguments": {"path": "b"}},
        {"type": "toolCall", "id": "c3", "name": "bash", "arguments": {"command": "ls"}},
    ]);
    let diff = [
        "- src/a.rs",
        "|  fn a() {",
        "< -    old",
        "+ +    new",
        "- @@",
        "|  }",
    ];
    assert_eq!(
        changed(
            json!({"role": "assistant", "content": content}),
            40,
            &changes
        ),
        [
            &["- → edit"][..],
            &diff,
            &["- → write", "| a whole file", "- → bash(command: ls)"],
        ]
        .concat()
    );
    let result = json!({"role": "toolResult", "toolCallId": "c1", "content": "1 change"});
    assert_eq!(
        changed(result, 40, &changes[..1]),
        [&diff[..], &["| 1 change"]].concat()
    );
}

/// The preview of a result once did not say which command it is the result of.
#[test]
fn a_result_shows_its_call() {
    let call =
        json!({"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}});
    let message = json!({"role": "toolResult", "toolCallId": "c", "content": "a.rs"});
    let calls = Calls {
        changes: Vec::new(),
        answered: Some(call),
    };
    let entry = json!({"type": "message", "message": message});
    let lines = Document::with_calls(&entry, &calls).layout(40);
    let lines: Vec<&str> = lines.iter().map(|line| line.prose.text.as_str()).collect();
    assert_eq!(lines, ["→ bash(command: ls)", "a.rs"]);
}

/// Tokens that are read from the cache were once added to those that were sent.
#[test]
fn tokens_from_the_cache_are_apart() {
    let usage = json!({"input": 1000, "output": 200, "cacheRead": 50_000, "cacheWrite": 60});
    let entry = json!({"type": "message", "message": {"role": "assistant", "usage": usage}});
    let title = Document::of(&entry).title;
    assert_eq!(title, "assistant · 1.3k tokens · 50k from the cache");
}

#[test]
fn calls_images_thinking_and_errors_are_named() {
    let content = json!([
        {"type": "thinking", "thinking": "hm"},
        {"type": "toolCall", "name": "bash", "arguments": {"command": "ls\u{1b}[2J", "n": 1}},
        {"type": "image", "mimeType": "image/png", "data": "A".repeat(4000)},
        {"type": "new", "x": 1},
    ]);
    assert_eq!(
        shown(
            json!({"role": "assistant", "content": content, "errorMessage": "refused"}),
            40
        ),
        [
            "? hm",
            "- → bash(command: ls␛[2J, n: 1)",
            "- [image: image/png, 3 kB]",
            "| {",
            "|   \"type\": \"new\",",
            "|   \"x\": 1",
            "| }",
            "! refused",
        ]
    );
    assert_eq!(
        shown(
            json!({"role": "bashExecution", "command": "make", "output": "a\tb\n", "exitCode": 2}),
            40
        ),
        ["- $ make", "| a   b", "! exit code 2"]
    );
}

#[test]
fn a_large_entry_is_cut_in_the_preview_but_copied_whole() {
    let text = "漢".repeat(SHOWN);
    let entry = json!({"type": "message", "message": {"role": "toolResult", "content": text}});
    let lines = Document::of(&entry).layout(80);
    assert_eq!(
        lines.last().unwrap().prose.text,
        "… 524 kB more; copying takes all of it"
    );
    assert_eq!(plain_text(&entry), text);
}

#[test]
fn entries_without_known_members_are_shown() {
    let odd = json!({"type": "message", "message": {"role": 1, "content": {"a": []}}});
    assert!(!Document::of(&odd).layout(20).is_empty());
    assert!(
        Document::of(&json!(null))
            .layout(20)
            .iter()
            .any(|line| line.prose.text == "null")
    );
}
