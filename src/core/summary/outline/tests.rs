use super::*;
use crate::summary::{FileLists, PREAMBLE};
use proptest::prelude::*;
use serde_json::{Value, json};

fn message(message: Value) -> Vec<u8> {
    json!({"type": "message", "id": "x", "message": message})
        .to_string()
        .into_bytes()
}

fn user(text: &str) -> Vec<u8> {
    message(json!({"role": "user", "content": text}))
}

fn assistant(text: &str, tools: &[&str]) -> Vec<u8> {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(
        tools
            .iter()
            .map(|tool| json!({"type": "toolCall", "name": tool})),
    );
    message(json!({"role": "assistant", "content": content}))
}

fn failed(tool: &str, text: &str) -> Vec<u8> {
    message(
        json!({"role": "toolResult", "toolName": tool, "isError": true, "content": [{"type": "text", "text": text}]}),
    )
}

fn outline(request: &SummaryRequest) -> String {
    super::outline(request).unwrap()
}

fn of(entries: Vec<Vec<u8>>) -> SummaryRequest {
    SummaryRequest {
        entries: entries.into(),
        ..SummaryRequest::default()
    }
}

#[test]
fn the_structure_is_filled_from_the_entries() {
    let mut request = of(vec![
        user("Fix the\n  parser"),
        assistant("I look.", &["read", "bash", "read"]),
        failed("bash", "error[E0277]:\tno"),
        failed("bash", "error[E0277]:\tno"),
        user("also the lexer"),
        message(json!({"role": "bashExecution", "command": "make", "exitCode": 2})),
        assistant("Done with both.", &[]),
        json!({"type": "branch_summary", "id": "b", "summary": format!("{PREAMBLE}\n\nTried regexes.")})
            .to_string()
            .into_bytes(),
    ]);
    request.files = FileLists {
        read_files: vec!["a.rs".into()],
        modified_files: vec!["b.rs".into(), "c.rs".into()],
    };
    request.custom_instructions = Some("the errors".into());
    assert_eq!(
        outline(&request),
        "Tried \u{201c}Fix the parser\u{201d}; ended with \u{201c}Done with both.\u{201d}\n\
         \n\
         ## Goal\n\
         Fix the parser\n\
         \n\
         Asked since:\n\
         - also the lexer\n\
         \n\
         Last answer:\n\
         - Done with both.\n\
         \n\
         ## Constraints & Preferences\n\
         - Focus: the errors\n\
         \n\
         ## Progress\n\
         ### Done\n\
         - Modified: b.rs, c.rs\n\
         - Read: a.rs\n\
         - Tools run: read ×2, bash ×1\n\
         - Commands run by the user: 1\n\
         - Summarized earlier: Tried regexes.\n\
         \n\
         ### Blocked\n\
         - Error seen: bash: error[E0277]: no\n\
         - Error seen: exit code 2: make\n"
    );
}

/// The summary of a branch that was left once asked the agent to continue from the last answer of this branch.
#[test]
fn only_what_goes_on_has_next_steps() {
    let next = "\n## Next Steps\n1. Go on from the last answer: Done.\n";
    for (subject, goes_on) in [
        (SummarySubject::Branch, false),
        (SummarySubject::Merge, true),
        (SummarySubject::Context, true),
        (SummarySubject::TurnPrefix, true),
    ] {
        let mut request = of(vec![user("Fix it"), assistant("Done.", &[])]);
        request.subject = subject;
        let outline = outline(&request);
        assert_eq!(outline.ends_with(next), goes_on, "{outline}");
        assert!(outline.contains("Done."), "{outline}");
    }
}

#[test]
fn empty_lists_are_left_out() {
    let mut request = SummaryRequest::default();
    let goal = "## Goal\n(no request recorded)\n";
    assert_eq!(
        outline(&request),
        format!("No request recorded; ended without an answer\n\n{goal}")
    );
    request.subject = SummarySubject::Context;
    assert_eq!(outline(&request), goal, "a context has no ending");
}

/// A reader of many summaries once had to read each summary to the end to learn the outcome.
#[test]
fn the_first_line_says_what_was_tried_and_how_it_ended() {
    let aborted = message(json!({"role": "assistant", "content": [], "stopReason": "aborted"}));
    for (entries, expect) in [
        (
            vec![user("a"), assistant("A.", &[])],
            "with \u{201c}A.\u{201d}",
        ),
        (vec![user("a")], "without an answer"),
        (
            vec![
                user("a"),
                assistant("A", &[]),
                user("b"),
                assistant("", &["read"]),
            ],
            "without an answer to \u{201c}b\u{201d}",
        ),
        (
            vec![user("a"), assistant("A", &[]), aborted],
            "with an aborted answer",
        ),
        (
            vec![user("a"), assistant("A", &["t"]), failed("t", "no")],
            "with the error \u{201c}t: no\u{201d}",
        ),
        (
            vec![user("a"), failed("t", "no"), assistant("A", &[])],
            "with \u{201c}A\u{201d}",
        ),
    ] {
        let outline = outline(&of(entries));
        let first = outline.lines().next().unwrap();
        assert_eq!(first, format!("Tried \u{201c}a\u{201d}; ended {expect}"));
    }
}

#[test]
fn a_goal_from_elsewhere_comes_before_the_requests() {
    let mut request = of(vec![user("b"), assistant("B", &[])]);
    request.goal = Some("the\nwhole".into());
    let text = outline(&request);
    assert!(
        text.starts_with("Tried \u{201c}the whole\u{201d}; "),
        "{text}"
    );
    assert!(
        text.contains("## Goal\nthe whole\n\nAsked since:\n- b\n"),
        "{text}"
    );
    request.goal = Some("b".into());
    let text = outline(&request);
    assert!(
        text.contains("## Goal\nb\n") && !text.contains("Asked"),
        "{text}"
    );
}

#[test]
fn an_unanswered_message_is_in_progress() {
    let unanswered = outline(&of(vec![user("a"), assistant("A", &[]), user("b")]));
    assert!(
        unanswered.contains("- [ ] Not answered: b\n"),
        "{unanswered}"
    );
    let aborted = json!({"role": "assistant", "content": [{"type": "text", "text": "A"}], "stopReason": "aborted"});
    let aborted = outline(&of(vec![user("a"), message(aborted)]));
    assert!(
        aborted.contains("- [ ] The last answer was aborted\n"),
        "{aborted}"
    );
}

#[test]
fn a_model_that_failed_is_an_error_seen() {
    let error = json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "overloaded"});
    let outline = outline(&of(vec![message(error)]));
    assert!(
        outline.contains("- Error seen: model: overloaded\n"),
        "{outline}"
    );
}

#[test]
fn instructions_that_replace_are_noted_as_such() {
    let mut request = of(vec![user("a")]);
    request.custom_instructions = Some("only\nfiles".into());
    request.replace_instructions = true;
    let outline = outline(&request);
    assert!(
        outline.contains("- Focus, asked for instead of this outline: only files\n"),
        "{outline}"
    );
    assert!(outline.contains("## Goal\na\n"), "{outline}");
}

#[test]
fn the_previous_summary_comes_first_quoted() {
    let mut request = of(vec![user("a")]);
    request.previous_summary = Some("## Goal\nold\n\nend".into());
    let outline = outline(&request);
    assert!(
        outline.contains("\n\n## Earlier Context\n> ## Goal\n> old\n>\n> end\n\n## Goal\na\n"),
        "{outline}"
    );
}

#[test]
fn a_long_previous_summary_gets_the_room_that_is_left() {
    for previous in ["word ".repeat(5000), "line\n".repeat(5000)] {
        let mut request = of(vec![user("a")]);
        request.previous_summary = Some(previous);
        let outline = outline(&request);
        let length = outline.chars().count();
        assert!((2400..=WHOLE).contains(&length), "{length}");
        assert!(outline.contains('…'), "{outline}");
        assert!(outline.ends_with("- [ ] Not answered: a\n"), "{outline}");
    }
}

#[test]
fn many_requests_and_errors_show_the_latest() {
    let mut entries: Vec<_> = (0..20).map(|at| user(&format!("r{at}."))).collect();
    entries.extend((0..20).map(|at| failed("t", &format!("x{at}."))));
    let outline = outline(&of(entries));
    let requests =
        "## Goal\nr0.\n\nAsked since:\n- (15 earlier requests)\n- r16.\n- r17.\n- r18.\n- r19.\n";
    assert!(outline.contains(requests), "{outline}");
    let errors = "- (17 earlier errors)\n- Error seen: t: x17.\n- Error seen: t: x18.\n- Error seen: t: x19.\n";
    assert!(outline.contains(errors), "{outline}");
}

#[test]
fn a_long_answer_ends_with_a_sentence() {
    let text = format!("First one. Second two! {}", "x".repeat(500));
    let outline = outline(&of(vec![assistant(&text, &[])]));
    assert!(
        outline.ends_with("Last answer:\n- First one. Second two!\n"),
        "{outline}"
    );
}

#[test]
fn long_lists_say_how_many_more() {
    let mut request = SummaryRequest::default();
    request.files.read_files = (0..500).map(|at| format!("file{at:03}")).collect();
    let outline = outline(&request);
    assert!(outline.contains("file012 and 487 more\n"), "{outline}");
}

#[test]
fn names_and_texts_stay_on_one_line() {
    assert_eq!(
        one_line(" a\n\t b\u{7}\u{1b}[2Jc\u{202e}\u{2028}d ", 99),
        "a b[2Jc d"
    );
    assert_eq!(one_line("abc", 3), "abc");
    assert_eq!(one_line("abcd", 3), "ab…");
    assert_eq!(one_line("ab cd", 3), "ab…");
    assert_eq!(one_line("abc  ", 3), "abc");
    assert_eq!(one_line("a", 0), "…");
    assert_eq!(one_line("", 0), "");
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        "[\\x00-\\x20é.]{0,400}",
        Just("long ".repeat(300))
    ]
}

fn any_entry() -> impl Strategy<Value = Vec<u8>> {
    (any_text(), any_text(), 0..6).prop_map(|(a, b, kind)| match kind {
        0 | 1 => user(&a),
        2 => assistant(&a, &[&b, "read"]),
        3 => failed(&a, &b),
        4 => message(json!({"role": "bashExecution", "command": a, "exitCode": 1})),
        _ => json!({"type": "branch_summary", "id": "b", "summary": a})
            .to_string()
            .into_bytes(),
    })
}

proptest! {
    #[test]
    fn an_outline_is_short_plain_and_deterministic(
        entries in prop::collection::vec(any_entry(), 0..30),
        paths in prop::collection::vec(any_text(), 0..20),
        previous in prop::option::of(any_text()),
        focus in prop::option::of(any_text()),
    ) {
        let request = SummaryRequest {
            entries: entries.into(),
            previous_summary: previous,
            custom_instructions: focus,
            files: FileLists { read_files: paths.clone(), modified_files: paths },
            ..SummaryRequest::default()
        };
        let text = outline(&request);
        prop_assert!(text.chars().count() <= 2800, "{}", text.chars().count());
        prop_assert!(text.chars().all(|char| char == '\n' || !is_control(char)), "{text:?}");
        prop_assert_eq!(text, outline(&request));
    }
}
