//! The embedded summarizer: the usual structure, filled from the entries themselves (semantics.md
//! §3.2). Deterministic and offline; it reports what is there and draws no conclusions.

use super::{MERGE_PREAMBLE, PREAMBLE, Request};
use crate::context::content::{self, Block};
use crate::context::{agent, kind_and_role};
use crate::json;
use crate::log::scan::{Kind, Role};
use std::collections::BTreeMap;

/// Longest outline, in characters, but for what no section can do without.
const WHOLE: usize = 2500;
/// What the previous summary gets in any case.
const PREVIOUS_AT_LEAST: usize = 300;
const GOAL: usize = 200;
const REQUEST: usize = 90;
const REQUESTS: usize = 4;
const FOCUS: usize = 140;
/// Pieces of what clients have added.
const CONTEXTS: usize = 3;
const FILES: usize = 120;
const TOOLS: usize = 120;
const ERROR: usize = 90;
const ERRORS: usize = 3;
const BRANCH: usize = 100;
const BRANCHES: usize = 2;
const ANSWER: usize = 240;

const NOTHING: &str = "- (none recorded)\n";

/// The outline of a request, in Markdown: at most some 2,500 characters, without control characters
/// other than line feeds.
pub fn outline(request: &Request) -> String {
    let record = Record::read(&request.entries);
    let mut out = String::new();
    record.push_goal(&mut out);
    push_focus(&mut out, request);
    record.push_progress(&mut out, request);
    out.push_str("\n## Key Decisions\n");
    out.push_str(NOTHING);
    record.push_next(&mut out);
    match &request.previous_summary {
        Some(previous) => {
            let room = WHOLE.saturating_sub(out.chars().count());
            quoted(previous, room.max(PREVIOUS_AT_LEAST)) + &out
        }
        None => out,
    }
}

/// What the entries say, in order.
#[derive(Default)]
struct Record {
    /// Texts of user messages.
    requests: Vec<String>,
    /// The last answer with text.
    answer: Option<String>,
    /// Whether an answer followed the last request.
    answered: bool,
    /// Whether the last answer was aborted.
    aborted: bool,
    /// Calls by tool.
    tools: BTreeMap<String, usize>,
    /// Commands the user ran.
    commands: usize,
    errors: Vec<String>,
    /// Texts of earlier summaries.
    branches: Vec<String>,
}

impl Record {
    fn read(entries: &[Vec<u8>]) -> Self {
        let mut record = Self::default();
        for entry in entries {
            let Some((kind, role)) = kind_and_role(entry) else {
                continue;
            };
            let Some(message) = agent::messages(kind, role, entry).pop() else {
                continue;
            };
            match kind {
                Kind::Message => record.take(message.role, &message.json),
                Kind::BranchSummary | Kind::Compaction => {
                    let summary = text_member(&message.json, "summary");
                    let summary = [PREAMBLE, MERGE_PREAMBLE]
                        .iter()
                        .find_map(|preamble| summary.strip_prefix(preamble))
                        .unwrap_or(&summary);
                    record.branches.push(one_line(summary, BRANCH));
                }
                _ => {}
            }
        }
        record
    }

    fn take(&mut self, role: Role, message: &[u8]) {
        match role {
            Role::User => {
                let text = content::text(content::of(message), " ");
                let request = one_line(&text, GOAL);
                if !request.is_empty() {
                    self.requests.push(request);
                    self.answered = false;
                }
            }
            Role::Assistant => self.take_answer(message),
            Role::ToolResult if json::get(message, "isError") == Some(b"true") => {
                let text = content::text(content::of(message), " ");
                self.note_error(&text_member(message, "toolName"), &text);
            }
            Role::BashExecution => {
                self.commands += 1;
                let code = json::get(message, "exitCode").and_then(|raw| str::from_utf8(raw).ok());
                let failed = code.filter(|code| code.parse::<i64>().is_ok_and(|code| code != 0));
                if let Some(code) = failed {
                    let command = text_member(message, "command");
                    self.note_error(&format!("exit code {code}"), &command);
                }
            }
            _ => {}
        }
    }

    fn take_answer(&mut self, message: &[u8]) {
        let mut text = String::new();
        for block in content::blocks(content::of(message)) {
            match block {
                Block::Text(literal) => {
                    text.push_str(&json::string(literal).unwrap_or_default());
                    text.push(' ');
                }
                Block::Call(call) => {
                    *self.tools.entry(one_line(&call.name, REQUEST)).or_default() += 1;
                }
                Block::Thinking(_) | Block::Image => {}
            }
        }
        let answer = sentences(&text, ANSWER);
        if !answer.is_empty() {
            self.answer = Some(answer);
            self.answered = true;
        }
        let stop_reason = text_member(message, "stopReason");
        self.aborted = stop_reason == "aborted";
        if stop_reason == "error" {
            self.note_error("model", &text_member(message, "errorMessage"));
        }
    }

    fn note_error(&mut self, source: &str, text: &str) {
        let error = one_line(&format!("{source}: {text}"), ERROR);
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn push_goal(&self, out: &mut String) {
        out.push_str("## Goal\n");
        let Some((first, since)) = self.requests.split_first() else {
            out.push_str("(no request recorded)\n");
            return;
        };
        out.push_str(first);
        out.push('\n');
        if since.is_empty() {
            return;
        }
        out.push_str("\nAsked since:\n");
        let earlier = since.len().saturating_sub(REQUESTS);
        if earlier > 0 {
            out.push_str(&format!("- ({earlier} earlier requests)\n"));
        }
        for request in since.iter().skip(earlier) {
            out.push_str(&format!("- {}\n", one_line(request, REQUEST)));
        }
    }

    fn push_progress(&self, out: &mut String, request: &Request) {
        out.push_str("\n## Progress\n### Done\n");
        let before = out.len();
        push_list(out, "Modified", &request.files.modified_files, FILES);
        push_list(out, "Read", &request.files.read_files, FILES);
        let mut tools: Vec<(&String, &usize)> = self.tools.iter().collect();
        tools.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let tools: Vec<String> = tools
            .into_iter()
            .map(|(name, count)| format!("{name} ×{count}"))
            .collect();
        push_list(out, "Tools run", &tools, TOOLS);
        if self.commands > 0 {
            out.push_str(&format!("- Commands run by the user: {}\n", self.commands));
        }
        for summary in self.branches.iter().rev().take(BRANCHES).rev() {
            out.push_str(&format!("- Summarized earlier: {summary}\n"));
        }
        if out.len() == before {
            out.push_str(NOTHING);
        }
        out.push_str("\n### In Progress\n");
        match self.requests.last() {
            Some(request) if !self.answered => {
                out.push_str(&format!(
                    "- [ ] Not answered: {}\n",
                    one_line(request, REQUEST)
                ));
            }
            _ if self.aborted => out.push_str("- [ ] The last answer was aborted\n"),
            _ => out.push_str(NOTHING),
        }
        out.push_str("\n### Blocked\n");
        if self.errors.is_empty() {
            out.push_str(NOTHING);
        }
        let earlier = self.errors.len().saturating_sub(ERRORS);
        if earlier > 0 {
            out.push_str(&format!("- ({earlier} earlier errors)\n"));
        }
        for error in self.errors.iter().skip(earlier) {
            out.push_str(&format!("- Error seen: {error}\n"));
        }
    }

    fn push_next(&self, out: &mut String) {
        out.push_str("\n## Next Steps\n");
        match &self.answer {
            Some(answer) => out.push_str(&format!("1. Go on from the last answer: {answer}\n")),
            None => out.push_str("(no answer recorded)\n"),
        }
    }
}

fn push_focus(out: &mut String, request: &Request) {
    out.push_str("\n## Constraints & Preferences\n");
    match &request.custom_instructions {
        None if !request.context.is_empty() => {}
        None => out.push_str(NOTHING),
        Some(focus) if request.replace_instructions => {
            let focus = one_line(focus, FOCUS);
            out.push_str(&format!(
                "- Focus, asked for instead of this outline: {focus}\n"
            ));
        }
        Some(focus) => out.push_str(&format!("- Focus: {}\n", one_line(focus, FOCUS))),
    }
    for context in request.context.iter().take(CONTEXTS) {
        out.push_str(&format!("- Context: {}\n", one_line(context, FOCUS)));
    }
}

/// The previous summary as a section of its own, quoted, so that its headings are not taken for
/// ours.
fn quoted(previous: &str, mut room: usize) -> String {
    let mut out = "## Earlier Context\n".to_owned();
    room = room.saturating_sub(out.len() + 1);
    for line in previous.lines() {
        // What a line needs besides itself, and room for the mark that something is missing.
        let Some(left) = room.checked_sub(3 + 4).filter(|left| *left > 0) else {
            out.push_str("> …\n");
            break;
        };
        let line = one_line(line, left);
        room -= 3 + line.chars().count();
        out.push_str(format!("> {line}").trim_end());
        out.push('\n');
    }
    out.push('\n');
    out
}

/// One line of names, as many as fit into `room` characters, and how many more there are.
fn push_list(out: &mut String, title: &str, names: &[String], room: usize) {
    if names.is_empty() {
        return;
    }
    out.push_str(&format!("- {title}: "));
    let mut taken = 0;
    for (at, name) in names.iter().enumerate() {
        let name = one_line(name, room / 2);
        taken += name.chars().count() + 2;
        if taken > room {
            out.push_str(&format!(" and {} more", names.len() - at));
            break;
        }
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(&name);
    }
    out.push('\n');
}

fn text_member(message: &[u8], name: &str) -> String {
    let text = json::get(message, name).and_then(json::string);
    text.unwrap_or_default().into_owned()
}

/// The beginning of `text` on one line: white space as single spaces, control characters left out,
/// at most `room` characters, the last of them `…` if something is missing.
fn one_line(text: &str, room: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut space = false;
    for char in text.chars() {
        if char.is_whitespace() {
            space = length > 0;
            continue;
        }
        if is_control(char) {
            continue;
        }
        if length + usize::from(space) >= room {
            if length >= room {
                line.pop();
            }
            line.push('…');
            return line;
        }
        if space {
            line.push(' ');
            length += 1;
            space = false;
        }
        line.push(char);
        length += 1;
    }
    line
}

/// As [`one_line`], but cut behind a sentence if one ends in time.
fn sentences(text: &str, room: usize) -> String {
    let line = one_line(text, room);
    if !line.ends_with('…') {
        return line;
    }
    let ends = [". ", "! ", "? "];
    match ends.iter().filter_map(|end| line.rfind(end)).max() {
        Some(at) => line.get(..=at).unwrap_or(&line).to_owned(),
        None => line,
    }
}

/// What must not reach a terminal, and what turns the direction of text around.
fn is_control(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarizer::FileLists;
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

    fn of(entries: Vec<Vec<u8>>) -> Request {
        Request {
            entries,
            ..Request::default()
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
            "## Goal\n\
             Fix the parser\n\
             \n\
             Asked since:\n\
             - also the lexer\n\
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
             ### In Progress\n\
             - (none recorded)\n\
             \n\
             ### Blocked\n\
             - Error seen: bash: error[E0277]: no\n\
             - Error seen: exit code 2: make\n\
             \n\
             ## Key Decisions\n\
             - (none recorded)\n\
             \n\
             ## Next Steps\n\
             1. Go on from the last answer: Done with both.\n"
        );
    }

    #[test]
    fn nothing_recorded_is_said_so() {
        let outline = outline(&Request::default());
        assert_eq!(
            outline,
            "## Goal\n(no request recorded)\n\n\
             ## Constraints & Preferences\n- (none recorded)\n\n\
             ## Progress\n### Done\n- (none recorded)\n\n\
             ### In Progress\n- (none recorded)\n\n\
             ### Blocked\n- (none recorded)\n\n\
             ## Key Decisions\n- (none recorded)\n\n\
             ## Next Steps\n(no answer recorded)\n"
        );
    }

    #[test]
    fn what_was_not_answered_is_in_progress() {
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
            outline.starts_with("## Earlier Context\n> ## Goal\n> old\n>\n> end\n\n## Goal\na\n"),
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
            assert!(outline.ends_with("(no answer recorded)\n"), "{outline}");
        }
    }

    #[test]
    fn many_requests_and_errors_show_the_latest() {
        let mut entries: Vec<_> = (0..20).map(|at| user(&format!("r{at}."))).collect();
        entries.extend((0..20).map(|at| failed("t", &format!("x{at}."))));
        let outline = outline(&of(entries));
        let requests = "## Goal\nr0.\n\nAsked since:\n- (15 earlier requests)\n- r16.\n- r17.\n- r18.\n- r19.\n";
        assert!(outline.starts_with(requests), "{outline}");
        let errors = "- (17 earlier errors)\n- Error seen: t: x17.\n- Error seen: t: x18.\n- Error seen: t: x19.\n";
        assert!(outline.contains(errors), "{outline}");
    }

    #[test]
    fn a_long_answer_ends_with_a_sentence() {
        let text = format!("First one. Second two! {}", "x".repeat(500));
        let outline = outline(&of(vec![assistant(&text, &[])]));
        assert!(
            outline.ends_with("last answer: First one. Second two!\n"),
            "{outline}"
        );
    }

    #[test]
    fn long_lists_say_how_many_more() {
        let mut request = Request::default();
        request.files.read_files = (0..500).map(|at| format!("file{at:03}")).collect();
        let outline = outline(&request);
        assert!(outline.contains("file012 and 487 more\n"), "{outline}");
    }

    #[test]
    fn one_line_is_one_line() {
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
        fn it_is_short_plain_and_always_the_same(
            entries in prop::collection::vec(any_entry(), 0..30),
            paths in prop::collection::vec(any_text(), 0..20),
            previous in prop::option::of(any_text()),
            focus in prop::option::of(any_text()),
        ) {
            let request = Request {
                entries,
                previous_summary: previous,
                custom_instructions: focus,
                files: FileLists { read_files: paths.clone(), modified_files: paths },
                ..Request::default()
            };
            let text = outline(&request);
            prop_assert!(text.chars().count() <= 2800, "{}", text.chars().count());
            prop_assert!(text.chars().all(|char| char == '\n' || !is_control(char)), "{text:?}");
            prop_assert_eq!(text, outline(&request));
        }
    }
}
