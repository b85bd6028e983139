//! Exports of subtrees and branches in every format. They must contain nothing about entries elsewhere.

use super::*;

/// A subtree below `r1`. Parts of its name, title, call and labels belong to entries above it.
fn surrounded() -> Log {
    let call = json!({"role": "assistant", "content": [
        {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "ELSEWHERE command"}},
    ]});
    let result = json!({"role": "toolResult", "toolCallId": "t1", "toolName": "bash", "content": [
        {"type": "text", "text": "the output"},
    ]});
    Log::new("s1")
        .user("u1", "", "ELSEWHERE title")
        .entry(
            "session_info",
            "n1",
            "u1",
            json!({"name": "ELSEWHERE name"}),
        )
        .message("a1", "n1", call)
        .message("r1", "a1", result)
        .user("u2", "r1", "the question")
        .label("l1", "u2", "u1", json!("ELSEWHERE label"))
        .label("l2", "l1", "u2", json!("its own label"))
        .assistant("a2", "l2", "the answer")
        .label("l3", "a2", "u1", json!("ELSEWHERE, labelled again"))
        .user("u3", "u1", "ELSEWHERE, another branch")
        .label("l4", "u3", "a2", json!("labelled from elsewhere"))
        .record("x1", "l3", "l4")
}

/// All text of an export. Most of the text of a page is in packed chunks.
fn all_text(exported: &str) -> String {
    let packed: Vec<String> = { page::chunks(exported) }
        .values()
        .map(Json::to_string)
        .collect();
    // The script has no text of the session, and the text of the packed chunks is already added.
    let parts = exported
        .split("<script")
        .map(|part| part.rsplit("</script>").next());
    let plain: String = parts.flatten().collect();
    format!("{plain}{}", packed.concat())
}

/// The title was once the first message of the whole session, a result had the call from above the subtree, and labels
/// of entries above the subtree were rows.
#[test]
fn a_subtree_has_no_text_of_entries_elsewhere() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &surrounded());
    for format in ["html", "markdown", "text", "jsonl"] {
        let params = json!({"format": format, "scope": "subtree", "entryId": "r1"});
        let text = all_text(&content(&mut d, params));
        assert!(!text.contains("ELSEWHERE"), "{format}: {text}");
        for own in [
            "the output",
            "the question",
            "the answer",
            "labelled from elsewhere",
        ] {
            assert!(
                text.contains(own) || (format == "text" && own == "labelled from elsewhere"),
                "{format} {own}: {text}"
            );
        }
    }
}

#[test]
fn a_subtree_as_a_page_has_its_own_title_and_leaf() {
    let home = Home::new();
    let named = surrounded()
        .entry("session_info", "n2", "u3", json!({"name": "its own name"}))
        .record("x2", "l3", "n2");
    let (mut d, _) = opened(&home, &named);
    let page = content(
        &mut d,
        json!({"format": "html", "scope": "subtree", "entryId": "r1"}),
    );
    assert!(page.contains("<title>the question</title>"));
    let chunks = page::chunks(&page);
    let rows = chunks["rows-0"].as_array().unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["r1", "u2", "l2", "a2"]);
    let meta = &chunks["meta"];
    // The leaf is a label of an entry elsewhere.
    assert_eq!(
        (&meta["leafId"], &meta["selected"]),
        (&json!("a2"), &json!(3))
    );
    assert_eq!(meta["session"]["entryCount"], 4);
    let page = content(
        &mut d,
        json!({"format": "html", "scope": "subtree", "entryId": "u3"}),
    );
    assert!(page.contains("<title>its own name</title>"));
}

#[test]
fn a_branch_without_a_name_has_the_title_of_its_first_message() {
    let home = Home::new();
    let log = Log::new("s1")
        .user("u1", "", "the first conversation")
        .user("v1", "", "the second conversation");
    let (mut d, _) = opened(&home, &log);
    let params = json!({"format": "markdown", "scope": "branch", "entryId": "v1"});
    let text = content(&mut d, params);
    assert!(
        text.contains("title: \"the second conversation\""),
        "{text}"
    );
}

/// The export was once an empty document, or a session file with several roots.
#[test]
fn a_subtree_of_a_label_is_refused_with_the_entry_to_name() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &surrounded());
    for format in ["html", "markdown", "text", "jsonl"] {
        let params = json!({"format": format, "scope": "subtree", "entryId": "l2"});
        let error = d.err_kind("export_session", params, "invalidParams");
        assert_eq!(error.details("field"), "entryId");
        assert!(error.message.contains("\"u2\""), "{}", error.message);
    }
}
