use super::Gemini;
use crate::member::{Member, NodeKind, Place};
use crate::tests::testing::{
    bytes, check_calls, entry, outline, read_records, real_files, records, shape,
};
use treelined_core::json;

fn read(path: &str, source: &[u8]) -> Vec<Member> {
    let whole = json::value_span(source).ok();
    let whole = whole.map(|span| Place {
        at: span.start as u64,
        len: span.len() as u64,
    });
    let places = whole.map_or_else(|| records(source).0, |whole| vec![whole]);
    read_records(&Gemini, path, source, &places)
}

#[track_caller]
fn one(source: &str) -> Member {
    let mut members = read("p/chats/s.jsonl", source.as_bytes());
    assert_eq!(members.len(), 1);
    check_calls(&Gemini, source.as_bytes(), &members[0]);
    members.remove(0)
}

fn user(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:00.000Z","type":"user","content":[{{"text":"{text}"}}]}}"#
    )
}

fn model(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01.000Z","type":"gemini","content":"{text}","model":"m"}}"#
    )
}

#[test]
fn messages_cut_off_by_a_rewind_stay_as_a_branch() {
    let (a, b, c, d) = (
        user("a", "1"),
        model("b", "2"),
        user("c", "3"),
        user("d", "4"),
    );
    let source = format!(
        "{a}\n{b}\n{c}\n{{\"$rewindTo\":\"c\"}}\n{{\"$set\":{{\"messages\":[{a},{b}]}}}}\n{d}\n"
    );
    let member = one(&source);
    assert_eq!(shape(&member), ["- a", "a b", "b c", "b d"]);
    assert_eq!(member.leaf, Some(3));
    assert_eq!(member.origin_only.get("$rewindTo"), Some(&1));
    // An unknown id empties the list, and a checkpoint restores it.
    let source =
        format!("{a}\n{b}\n{{\"$rewindTo\":\"x\"}}\n{{\"$set\":{{\"messages\":[{a}]}}}}\n{d}\n");
    assert_eq!(shape(&one(&source)), ["- a", "a b", "a d"]);
    let source = format!("{a}\n{b}\n{{\"$rewindTo\":\"x\"}}\n{d}\n");
    assert_eq!(shape(&one(&source)), ["- a", "a b", "- d"]);
}

#[test]
fn a_list_with_fewer_messages_is_a_compaction() {
    let (a, b, c, d) = (
        user("a", "1"),
        model("b", "2"),
        user("c", "3"),
        model("d", "4"),
    );
    let (s, n) = (user("s", "In short"), model("n", "Got it"));
    let all = format!("{a}\n{b}\n{c}\n{d}\n");
    let source = format!(
        "{all}{{\"$set\":{{\"messages\":[{s},{n},{c},{d}]}}}}\n{}\n",
        user("e", "5")
    );
    let member = one(&source);
    assert_eq!(
        shape(&member),
        ["- a", "a b", "b c", "c d", "d s", "s n", "n e"]
    );
    assert_eq!(
        member.nodes[4].kind,
        NodeKind::Compaction {
            first_kept: Some(2)
        }
    );
    let summary = entry(&Gemini, source.as_bytes(), &member, &member.nodes[4]);
    assert!(summary.contains(r#""summary":"In short""#), "{summary}");
    // Only the oldest messages are left. Once this was taken for a rewind, but the tool records a rewind differently.
    let source = format!(
        "{all}{{\"$set\":{{\"messages\":[{a},{b}]}}}}\n{}\n",
        user("e", "5")
    );
    let member = one(&source);
    assert_eq!(shape(&member), ["- a", "a b", "b c", "c d", "d #4", "#4 e"]);
    assert_eq!(
        member.nodes[4].kind,
        NodeKind::Compaction {
            first_kept: Some(0)
        }
    );
    // Only the newest messages are left.
    let source = format!(
        "{all}{{\"$set\":{{\"messages\":[{c},{d}]}}}}\n{}\n",
        user("e", "5")
    );
    let member = one(&source);
    assert_eq!(shape(&member), ["- a", "a b", "b c", "c d", "d #4", "#4 e"]);
    assert_eq!(
        member.nodes[4].kind,
        NodeKind::Compaction {
            first_kept: Some(2)
        }
    );
}

#[test]
fn updates_of_a_message_are_one_entry_with_its_results() {
    let (a, b) = (user("a", "1"), model("b", ""));
    let call = r#"{"id":"c1","name":"run_shell_command","args":{"command":"ls"},"status":"success","result":[{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"output":"x"}}}]}"#;
    let pending = r#"{"id":"c2","name":"read_file","args":7,"status":"executing"}"#;
    let failed = r#"{"id":"c3","name":"read_file","args":{},"status":"error","resultDisplay":"no such file","agentId":"sub"}"#;
    let update = b.replace(r#""model""#, &format!(r#""toolCalls":[{call},{pending},{failed}],"tokens":{{"input":9,"cached":4,"output":1,"thoughts":2}},"model""#));
    let mirror = r#"{"id":"x","type":"user","content":[{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"output":"x"}}}]}"#;
    let source = format!(
        "{a}\n{b}\n{update}\n{update}\n{mirror}\n{}\n",
        model("d", "done")
    );
    let member = one(&source);
    assert_eq!(
        shape(&member),
        [
            "- a",
            "a b",
            "b b/r:c1",
            "b/r:c1 b/1",
            "b/1 b/r:c3",
            "b/r:c3 d"
        ]
    );
    assert_eq!(member.duplicates, 1);
    assert_eq!(
        member.origin_only.get("user"),
        Some(&1),
        "the repeated result"
    );
    let said = |at: usize| entry(&Gemini, source.as_bytes(), &member, &member.nodes[at]);
    assert!(
        said(1).contains(r#""input":5,"output":3,"cacheRead":4"#),
        "{}",
        said(1)
    );
    assert!(
        said(1).contains(r#""arguments":{"_raw":"7"}"#),
        "{}",
        said(1)
    );
    assert!(said(2).contains(r#""content":[{"type":"text","text":"x"}],"isError":false"#));
    assert!(
        said(4).contains(r#""text":"no such file"}],"isError":true"#),
        "{}",
        said(4)
    );
    let open: Vec<bool> = member.nodes.iter().map(|node| node.is_open).collect();
    assert_eq!(open, [false, false, false, false, false, true]);
}

/// Gemini CLI adds the calls to a message when they have ended. So neither a text nor a count of tokens ends the
/// message.
#[test]
fn a_summary_ends_the_last_message() {
    let begin = format!("{}\n{}\n", user("a", "1"), model("b", "2"));
    let summary = "{\"$set\":{\"summary\":\"About\"}}\n";
    let has_end_mark = |text: &str| one(text).has_end_mark;
    assert!(!has_end_mark(&begin));
    assert!(!has_end_mark(
        &(begin.clone() + "{\"$set\":{\"lastUpdated\":\"2026\"}}\n")
    ));
    assert!(has_end_mark(&(begin.clone() + summary)));
    assert!(!has_end_mark(
        &(begin + summary + &model("b", "2, changed") + "\n")
    ));
}

/// A list repeats the messages with their texts only.
#[test]
fn a_message_in_a_list_changes_the_text_and_nothing_else() {
    let (a, b) = (user("a", "1"), model("b", "2"));
    let in_list = r#"{"id":"b","type":"gemini","content":[{"text":"2"}]}"#;
    let same = format!("{a}\n{b}\n{{\"$set\":{{\"messages\":[{a},{in_list}]}}}}\n");
    let member = one(&same);
    assert_eq!(member.nodes[1].places.len(), 1);
    assert_eq!(member.origin_only.get("$set/messages"), Some(&1));
    let other = same.replace("[{\"text\":\"2\"}]", "[{\"text\":\"two\"}]");
    let member = one(&other);
    assert_eq!(member.nodes.len(), 2);
    let said = entry(&Gemini, other.as_bytes(), &member, &member.nodes[1]);
    assert!(
        said.contains(r#""text":"two""#) && said.contains(r#""model":"m""#),
        "{said}"
    );
    assert!(said.contains("1767225601000"), "the first time: {said}");
}

#[test]
fn events_are_links_and_never_leaves() {
    let info = r#"{"id":"i","type":"warning","content":"careful"}"#;
    let source = format!("{}\n{info}\n{}\n", user("a", "1"), model("b", "2"));
    let member = one(&source);
    assert_eq!(shape(&member), ["- a", "a i", "i b"]);
    let source = format!("{}\n{info}\n", user("a", "1"));
    let member = one(&source);
    assert_eq!(shape(&member), ["- a"]);
    assert_eq!(member.origin_only.get("warning"), Some(&1));
    assert_eq!(member.leaf, Some(0));
    // An error says why the conversation ends there. Once the error left no entry.
    let error = info.replace("warning", "error");
    let source = format!(
        "{}\n{error}\n{{\"$set\":{{\"summary\":\"T\"}}}}\n",
        user("a", "1")
    );
    let member = one(&source);
    assert_eq!(shape(&member), ["- a", "a i"]);
    let kept = entry(&Gemini, source.as_bytes(), &member, &member.nodes[1]);
    assert!(
        kept.contains(r#""customType":"gemini.error","data":{"text":"careful"}"#),
        "{kept}"
    );
    one(&format!("{{\"messages\":[{},{info}]}}", user("a", "1")));
    let member = one(&format!("{{\"messages\":[{info}]}}"));
    assert_eq!(member.origin_only.get("warning"), Some(&1));
}

#[test]
fn a_session_says_where_it_is_from() {
    let context = user(
        "h",
        "<session_context>\\n- **Workspace Directories:**\\n  - /w/p\\n",
    );
    let header = r#"{"sessionId":"S","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z"}"#;
    let source = format!(
        "{header}\n{context}\n{}\n{{\"$set\":{{\"summary\":\"T\"}}}}\n",
        user("a", "1")
    );
    let member = read("proj/chats/P/S.jsonl", source.as_bytes()).remove(0);
    assert_eq!(member.native_id, "S");
    assert_eq!(member.cwd.as_deref(), Some("/w/p"));
    assert_eq!(member.title.as_deref(), Some("T"));
    assert_eq!(member.project.as_deref(), Some("proj"));
    assert_eq!(member.spawned_by.unwrap().native_id, "P");
    assert_eq!(member.nodes[0].kind, NodeKind::Scaffolding);
}

/// An old document is one record, and its messages are places in the record.
#[test]
fn the_messages_of_a_document_have_places_in_it() {
    let source = format!(
        "{{\"sessionId\":\"S\",\"messages\":[ {} , {} ]}}",
        user("a", "1"),
        model("b", "2")
    );
    let member = one(&source);
    assert_eq!(shape(&member), ["- a", "a b"]);
    let place = bytes(source.as_bytes(), member.nodes[1].places[0]);
    assert_eq!(place, model("b", "2").as_bytes());
}

#[test]
fn real_files_are_read_whole() {
    let mut outlines = Vec::new();
    for path in real_files("gemini") {
        let source = std::fs::read(&path).unwrap();
        for member in read(path.to_str().unwrap(), &source) {
            check_calls(&Gemini, &source, &member);
            outlines.push((path.clone(), outline(&member)));
        }
    }
    for (path, outline) in outlines {
        let is_rewound = path.ends_with("session-2026-11-22T02-58-fcde5e20.jsonl");
        assert_eq!(outline.forks, usize::from(is_rewound), "{}", path.display());
        assert!(
            outline.gaps == 0 && outline.roots <= 1,
            "{}",
            path.display()
        );
    }
}

/// Once a chat that Gemini CLI could not load became a `compaction` with 0 tokens. The tool begins the list again after
/// a second header, with a context whose id is different on each day. Nothing was compressed.
#[test]
fn a_chat_that_was_not_loaded_begins_again() {
    let header = r#"{"sessionId":"s","projectHash":"p","startTime":"2026-01-01T00:00:00.000Z"}"#;
    let list = |messages: &[&String]| {
        let messages: Vec<&str> = messages.iter().map(|it| it.as_str()).collect();
        format!("{{\"$set\":{{\"messages\":[{}]}}}}", messages.join(","))
    };
    let context = |id: &str| user(id, "<session_context>\\nThis is the Gemini CLI.");
    let (c, other) = (context("c"), context("c2"));
    let (a, b, d) = (user("a", "1"), model("b", "2"), user("d", "3"));
    let first = format!("{header}\n{}\n{a}\n{b}\n{header}\n", list(&[&c]));
    let same = format!("{first}{}\n{d}\n", list(&[&c]));
    let member = one(&same);
    assert_eq!(shape(&member), ["- c", "c a", "a b", "c d"]);
    let is_compaction = |kind: &NodeKind| matches!(kind, NodeKind::Compaction { .. });
    assert!(!member.nodes.iter().any(|node| is_compaction(&node.kind)));
    let next_day = format!("{first}{}\n{d}\n", list(&[&other]));
    assert_eq!(
        shape(&one(&next_day)),
        ["- c", "c a", "a b", "- c2", "c2 d"]
    );
    // The chat was loaded, because the whole list follows.
    let loaded = format!("{first}{}\n{}\n{d}\n", list(&[&c]), list(&[&c, &a, &b]));
    assert_eq!(shape(&one(&loaded)), ["- c", "c a", "a b", "b d"]);
    // Without a header, the same list is a compression.
    let compressed = format!(
        "{header}\n{}\n{a}\n{b}\n{}\n{d}\n",
        list(&[&c]),
        list(&[&c])
    );
    assert!(
        one(&compressed)
            .nodes
            .iter()
            .any(|node| is_compaction(&node.kind))
    );
}
