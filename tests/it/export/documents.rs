//! Exports as Markdown and as text.

use super::*;

#[test]
fn markdown_has_front_matter_headings_and_folded_output() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let text = content(&mut d, json!({"format": "markdown"}));
    let front = text
        .strip_prefix("---\n")
        .unwrap()
        .split_once("\n---\n")
        .unwrap()
        .0;
    for line in [
        "title: \"Why does it fail?\"",
        "session: \"s1\"",
        "directory: \"/project\"",
        "scope: branch",
        "entries: 4",
        "redacted: true",
    ] {
        assert!(front.lines().any(|found| found == line), "{line}: {front}");
    }
    let headings: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    assert_eq!(
        headings,
        [
            "## 1. User · 2025-01-01 00:00",
            "## 2. Assistant · 2025-01-01 00:00"
        ]
    );
    assert!(text.contains("\nI look at **it**.\n"), "{text}");
    let folded = "<details><summary>failed: <code>bash cargo test</code></summary>\n\n````\n3 failed\n```\n␛[31mred\n````\n\n</details>";
    assert!(text.contains(folded), "{text}");
    assert!(
        text.ends_with("use x;\n```\n\n"),
        "an open fence is closed: {text}"
    );
    assert!(!text.contains("another"), "another branch");
}

#[test]
fn a_tree_as_markdown_has_an_outline_with_links() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let text = content(&mut d, json!({"format": "markdown", "scope": "tree"}));
    let outline = text.split_once("## Outline\n\n").unwrap().1;
    let outline: Vec<_> = outline.lines().take(2).collect();
    let expected = [
        "- **[1. Why does it fail?](#turn-1)**",
        "  - [3. another \\<b\\>way\\</b\\>](#turn-3) · the other",
    ];
    assert_eq!(outline, expected);
    assert!(text.contains("<a id=\"turn-3\"></a>\n\n## 3. User · 2025-01-01 00:00 · the other\n\n*Another branch, after [turn 2](#turn-2).*"), "{text}");
    let subtree = content(
        &mut d,
        json!({"format": "markdown", "scope": "subtree", "entryId": "u2"}),
    );
    assert!(
        subtree.contains("scope: subtree")
            && subtree.contains("Yes.")
            && !subtree.contains("3 failed"),
        "{subtree}"
    );
    let branch = content(
        &mut d,
        json!({"format": "markdown", "scope": "branch", "entryId": "u2"}),
    );
    assert!(
        branch.contains("another <b>way</b>")
            && !branch.contains("Yes.")
            && !branch.contains("3 failed"),
        "{branch}"
    );
}

#[test]
fn text_has_no_control_characters() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let text = content(&mut d, json!({"format": "text"}));
    assert!(
        text.starts_with("Why does it fail?\ns1 · /project\n"),
        "{text}"
    );
    assert!(
        text.contains("── 2. Assistant · 2025-01-01 00:00 ──"),
        "{text}"
    );
    assert!(
        text.contains("[bash cargo test] failed\n    3 failed\n    ```\n    ␛[31mred\n"),
        "{text}"
    );
    assert!(
        !text.contains(|char: char| char.is_control() && char != '\n'),
        "{text}"
    );
}

/// The heading of a call was there twice without a difference, above the call and above its result.
#[test]
fn the_result_of_a_call_is_marked() {
    let home = Home::new();
    let call = json!({"role": "assistant", "content": [
        {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
    ]});
    let result = json!({"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "isError": false, "content": [
        {"type": "text", "text": "a.txt"},
    ]});
    let log = Log::new("s1")
        .user("u1", "", "List them.")
        .message("a1", "u1", call)
        .message("r1", "a1", result);
    let (mut d, _) = opened(&home, &log);
    let text = content(&mut d, json!({"format": "text"}));
    assert!(
        text.contains("[bash ls]\n[bash ls] result\n    a.txt\n"),
        "{text}"
    );
}

#[test]
fn an_empty_session_is_a_document_without_turns() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &Log::new("s1"));
    for format in ["markdown", "text", "html"] {
        let text = content(&mut d, json!({"format": format}));
        assert!(text.contains("(no messages)") || format == "html", "{text}");
    }
    assert_eq!(
        content(&mut d, json!({"format": "jsonl", "scope": "branch"}))
            .lines()
            .count(),
        1
    );
}
