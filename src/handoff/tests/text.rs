//! The handoff as text, for agents that have no writer.

use super::*;

#[test]
fn a_text_says_that_it_is_history() {
    let world = World::new();
    let mut path = conversation();
    path.push(json!({ "role": "user", "content": "And now?" }));
    let prepared = world.prepare(None, &path).unwrap();
    let text = prepared.text.unwrap();
    assert!(
        text.starts_with("# A tour\n\nThis is the history"),
        "{text}"
    );
    for part in [
        "do not act on it",
        "session tour",
        "ALPHA",
        "Call of bash",
        "Error of read:\n\n```\nno such file\n```",
        "## Now\n\nAnd now?",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(prepared.files.is_empty() && prepared.steps.is_empty());
}

/// Once all branches of a session without a name had the same title, in every list of an agent.
#[test]
fn a_session_without_a_name_has_its_last_prompt_as_title() {
    let world = World::new();
    let answer = json!({ "role": "assistant", "content": [{ "type": "text", "text": "Yes." }] });
    let long = format!("\n  {} \nand more", "é".repeat(73));
    let ask = |text: &str| json!({ "role": "user", "content": text });
    for (text, title) in [("Second?", "Second?"), (&long, &"é".repeat(72))] {
        let path = [ask("First?"), answer.clone(), ask(text), answer.clone()];
        let prepared = world.prepare_with(None, &path, |request| request.name = None);
        let text = prepared.unwrap().text.unwrap();
        assert!(text.starts_with(&format!("# {title}\n")), "{text}");
    }
}

/// Once a handoff began with the first words of the history, so the agent had to read all of it to know the open
/// work.
#[test]
fn a_text_begins_with_goal_decisions_and_open_work() {
    let world = World::new();
    let tasks = |status: &str| {
        json!({ "role": "assistant", "content": [{ "type": "toolCall", "id": format!("t{status}"), "name": "TodoWrite",
            "arguments": { "todos": [
                { "content": "Write the parser", "status": "completed" },
                { "content": "Test the\nparser", "status": status },
                { "content": "Document\u{202e}it", "status": "pending" } ] } }] })
    };
    let done = json!({ "role": "assistant", "content": [{ "type": "text", "text": "So far." }] });
    let text_of = |messages: &[Value]| world.prepare(None, messages).unwrap().text.unwrap();
    let overview = |text: &str| {
        let (_, after) = text.split_once("Source: treelined").unwrap();
        let (_, after) = after.split_once("\n").unwrap();
        let end = ["\n## Files", "\n## User", "\n## Summary"];
        let end = end.iter().filter_map(|end| after.find(end)).min();
        after[..end.unwrap()].to_owned()
    };

    let asked = json!({ "role": "user", "content": "Add a parser of dates.", "timestamp": 1 });
    let text = text_of(&[
        asked.clone(),
        tasks("pending"),
        tasks("in_progress"),
        done.clone(),
    ]);
    assert_eq!(
        overview(&text),
        "\n## Goal\n\nAdd a parser of dates.\n\n## Open work\n\n- Test the parser (begun)\n- Document it\n"
    );

    let summary =
        "## Goal\nDates in all forms.\n\n## Key Decisions\n- no regex\n\n## Next Steps\n1. Test it";
    let summary = json!({ "role": "compactionSummary", "summary": summary, "tokensBefore": 9, "timestamp": 1 });
    let text = text_of(&[summary, asked, done]);
    assert_eq!(
        overview(&text),
        "\n## Goal\n\nDates in all forms.\n\n## Decisions\n\n- no regex\n\n## Open work\n\n1. Test it\n"
    );
}

/// In a long text, an agent must be able to find the names of the files that matter.
#[test]
fn a_text_names_the_files() {
    let world = World::new();
    let call = |id: usize, name: &str, path: &str| {
        json!({ "role": "assistant", "content": [{ "type": "toolCall", "id": format!("t{id}"), "name": name,
            "arguments": { "path": path, "content": "x" } }] })
    };
    let mut path = conversation();
    path.push(call(0, "write", "src/b.rs"));
    path.push(call(1, "read", "src/b.rs"));
    path.push(call(120, "write", "c\u{202e}\u{2028}\u{200f}\u{e0041}.rs"));
    path.extend((2..120).map(|id| call(id, "read", &format!("docs/{id:03}\n.md"))));
    path.push(json!({ "role": "assistant", "content": [{ "type": "text", "text": "Done." }] }));
    let text = world.prepare(None, &path).unwrap().text.unwrap();
    let of = |heading: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| *line != heading).skip(2);
        lines
            .take_while(|line| line.starts_with("- "))
            .map(str::to_owned)
            .collect()
    };
    // Only C0, DEL and C1 were once replaced.
    assert_eq!(of("## Files changed"), ["- c    .rs", "- src/b.rs"]);
    let read = of("## Files read");
    assert_eq!(read[..2], ["- a.md", "- docs/002 .md"]);
    assert_eq!(read[100..], ["- and 19 more"]);
}
