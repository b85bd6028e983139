//! The embedded summarizer: it fills the usual structure from the entries (semantics.md §3.2). It is
//! deterministic and works offline. It reports facts and draws no conclusions.

use super::{SummaryRequest, SummarySubject, without_preamble};
use crate::context::content::{self, ContentBlock};
use crate::context::{agent, kind_and_role};
use crate::entry::{Kind, Role};
use crate::error::Result;
use crate::json;
use crate::terminal::is_control;
use std::collections::{BTreeMap, HashSet};

#[cfg(test)]
mod tests;

/// The longest outline, in characters. A section that cannot be made shorter may exceed it.
const WHOLE: usize = 2500;
/// The fewest characters reserved for the previous summary.
const PREVIOUS_AT_LEAST: usize = 300;
const GOAL: usize = 200;
/// The longest quotation in the first line, in characters.
const TRIED: usize = 100;
const REQUEST: usize = 90;
const REQUESTS: usize = 4;
const FOCUS: usize = 140;
/// The most texts of clients that are shown.
const CONTEXTS: usize = 3;
const FILES: usize = 120;
const TOOLS: usize = 120;
const ERROR: usize = 90;
const ERRORS: usize = 3;
const BRANCH: usize = 100;
const BRANCHES: usize = 2;
const ANSWER: usize = 240;

/// The outline of a request, in Markdown: at most about 2,500 characters, without control characters other
/// than line feeds. Fails with the errors of the entries.
pub fn outline(request: &SummaryRequest) -> Result<String> {
    let record = BranchRecord::read(request)?;
    let mut out = String::new();
    record.push_goal(&mut out, request.subject);
    push_focus(&mut out, request);
    record.push_progress(&mut out, request);
    record.push_next(&mut out, request.subject);
    let first = match request.subject {
        SummarySubject::Branch | SummarySubject::Merge => record.first_line(),
        SummarySubject::Context | SummarySubject::TurnPrefix => String::new(),
    };
    let earlier = request.previous_summary.as_ref().map(|previous| {
        let taken = first.chars().count() + out.chars().count();
        quoted(previous, WHOLE.saturating_sub(taken).max(PREVIOUS_AT_LEAST))
    });
    Ok(first + &earlier.unwrap_or_default() + &out)
}

/// The facts of the entries, in order.
#[derive(Default)]
struct BranchRecord {
    /// The goal of the request, else the first user message.
    goal: Option<String>,
    /// Texts of user messages, without the goal.
    requests: Vec<String>,
    /// The last answer with text.
    answer: Option<String>,
    /// The last request, until an answer follows.
    unanswered: Option<String>,
    end: BranchEnd,
    /// The number of calls of each tool.
    tools: BTreeMap<String, usize>,
    /// The number of commands that the user ran.
    commands: usize,
    /// Different errors, in the order of the entries.
    errors: Vec<String>,
    seen_errors: HashSet<String>,
    /// The texts of earlier summaries.
    branches: Vec<String>,
}

/// How the branch ends after the last user message.
#[derive(Default)]
enum BranchEnd {
    #[default]
    Nothing,
    Answer,
    Aborted,
    /// The error message of the last answer.
    Error(String),
}

impl BranchRecord {
    fn read(request: &SummaryRequest) -> Result<Self> {
        let mut record = Self::default();
        request.entries.each(|entry| record.take_entry(entry))?;
        let goal = request.goal.as_ref().map(|goal| one_line(goal, GOAL));
        record.goal = goal.or_else(|| record.requests.first().cloned());
        if record.goal.as_ref() == record.requests.first() && !record.requests.is_empty() {
            record.requests.remove(0);
        }
        Ok(record)
    }

    fn take_entry(&mut self, entry: &[u8]) {
        let Some((kind, role)) = kind_and_role(entry) else {
            return;
        };
        let Some(message) = agent::messages(kind, role, entry).pop() else {
            return;
        };
        match kind {
            Kind::Message => self.take(message.role, &message.json),
            Kind::BranchSummary | Kind::Compaction => {
                let summary = text_member(&message.json, "summary");
                let line = one_line(without_preamble(&summary), BRANCH);
                self.branches.push(line);
            }
            _ => {}
        }
    }

    fn take(&mut self, role: Role, message: &[u8]) {
        match role {
            Role::User => {
                let text = content::text(content::of(message), " ");
                let request = one_line(&text, GOAL);
                if !request.is_empty() {
                    self.unanswered = Some(request.clone());
                    self.end = BranchEnd::Nothing;
                    self.requests.push(request);
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
                ContentBlock::Text(literal) => {
                    text.push_str(&json::string(literal).unwrap_or_default());
                    text.push(' ');
                }
                ContentBlock::Call(call) => {
                    *self.tools.entry(one_line(&call.name, REQUEST)).or_default() += 1;
                }
                ContentBlock::Thinking(_) | ContentBlock::Image => {}
            }
        }
        let answer = sentences(&text, ANSWER);
        if !answer.is_empty() {
            self.answer = Some(answer);
            self.unanswered = None;
            self.end = BranchEnd::Answer;
        }
        match text_member(message, "stopReason").as_str() {
            "aborted" => self.end = BranchEnd::Aborted,
            "error" => self.note_error("model", &text_member(message, "errorMessage")),
            _ => {}
        }
    }

    fn note_error(&mut self, source: &str, text: &str) {
        let error = one_line(&format!("{source}: {text}"), ERROR);
        self.end = BranchEnd::Error(error.clone());
        if self.seen_errors.insert(error.clone()) {
            self.errors.push(error);
        }
    }

    /// The first line: the goal and how the branch ended.
    fn first_line(&self) -> String {
        let quoted = |text: &str| format!("\u{201c}{}\u{201d}", one_line(text, TRIED));
        let tried = match &self.goal {
            Some(goal) => format!("Tried {}", quoted(goal)),
            None => "No request recorded".to_owned(),
        };
        let since = self.unanswered.as_ref();
        let ended = match (&self.end, &self.answer) {
            (BranchEnd::Error(error), _) => format!("with the error {}", quoted(error)),
            (BranchEnd::Aborted, _) => "with an aborted answer".to_owned(),
            (BranchEnd::Answer, Some(answer)) => format!("with {}", quoted(answer)),
            _ => match since.filter(|request| self.goal.as_ref() != Some(request)) {
                Some(request) => format!("without an answer to {}", quoted(request)),
                None => "without an answer".to_owned(),
            },
        };
        format!("{tried}; ended {ended}\n\n")
    }

    fn push_goal(&self, out: &mut String, subject: SummarySubject) {
        out.push_str("## Goal\n");
        out.push_str(self.goal.as_deref().unwrap_or("(no request recorded)"));
        out.push('\n');
        self.push_requests(out);
        if let Some(answer) = self.answer.as_ref().filter(|_| is_left(subject)) {
            out.push_str(&format!("\nLast answer:\n- {answer}\n"));
        }
    }

    fn push_requests(&self, out: &mut String) {
        if self.requests.is_empty() {
            return;
        }
        out.push_str("\nAsked since:\n");
        let earlier = self.requests.len().saturating_sub(REQUESTS);
        if earlier > 0 {
            out.push_str(&format!("- ({earlier} earlier requests)\n"));
        }
        for request in self.requests.iter().skip(earlier) {
            out.push_str(&format!("- {}\n", one_line(request, REQUEST)));
        }
    }

    fn push_progress(&self, out: &mut String, request: &SummaryRequest) {
        let parts = [
            ("### Done\n", self.done(request)),
            ("### In Progress\n", self.in_progress()),
            ("### Blocked\n", self.blocked()),
        ];
        let mut heading = "## Progress\n";
        for (title, list) in parts.iter().filter(|(_, list)| !list.is_empty()) {
            out.push('\n');
            out.push_str(std::mem::take(&mut heading));
            out.push_str(title);
            out.push_str(list);
        }
    }

    fn done(&self, request: &SummaryRequest) -> String {
        let mut out = String::new();
        push_list(&mut out, "Modified", &request.files.modified_files, FILES);
        push_list(&mut out, "Read", &request.files.read_files, FILES);
        let mut tools: Vec<(&String, &usize)> = self.tools.iter().collect();
        tools.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let tools: Vec<String> = tools
            .into_iter()
            .map(|(name, count)| format!("{name} ×{count}"))
            .collect();
        push_list(&mut out, "Tools run", &tools, TOOLS);
        if self.commands > 0 {
            out.push_str(&format!("- Commands run by the user: {}\n", self.commands));
        }
        for summary in self.branches.iter().rev().take(BRANCHES).rev() {
            out.push_str(&format!("- Summarized earlier: {summary}\n"));
        }
        out
    }

    fn in_progress(&self) -> String {
        match &self.unanswered {
            Some(request) => format!("- [ ] Not answered: {}\n", one_line(request, REQUEST)),
            None if matches!(self.end, BranchEnd::Aborted) => {
                "- [ ] The last answer was aborted\n".to_owned()
            }
            None => String::new(),
        }
    }

    fn blocked(&self) -> String {
        let mut out = String::new();
        let earlier = self.errors.len().saturating_sub(ERRORS);
        if earlier > 0 {
            out.push_str(&format!("- ({earlier} earlier errors)\n"));
        }
        for error in self.errors.iter().skip(earlier) {
            out.push_str(&format!("- Error seen: {error}\n"));
        }
        out
    }

    fn push_next(&self, out: &mut String, subject: SummarySubject) {
        if let Some(answer) = self.answer.as_ref().filter(|_| !is_left(subject)) {
            out.push_str("\n## Next Steps\n");
            out.push_str(&format!("1. Go on from the last answer: {answer}\n"));
        }
    }
}

/// Whether the summary is about a branch that the leaf has left. The conversation does not continue in this branch.
fn is_left(subject: SummarySubject) -> bool {
    subject == SummarySubject::Branch
}

fn push_focus(out: &mut String, request: &SummaryRequest) {
    if request.custom_instructions.is_none() && request.context.is_empty() {
        return;
    }
    out.push_str("\n## Constraints & Preferences\n");
    if let Some(focus) = &request.custom_instructions {
        let title = match request.replace_instructions {
            true => "Focus, asked for instead of this outline",
            false => "Focus",
        };
        out.push_str(&format!("- {title}: {}\n", one_line(focus, FOCUS)));
    }
    for context in request.context.iter().take(CONTEXTS) {
        out.push_str(&format!("- Context: {}\n", one_line(context, FOCUS)));
    }
}

/// The previous summary as a section. It is quoted, so that its headings differ from the headings of the
/// outline.
fn quoted(previous: &str, mut room: usize) -> String {
    let mut out = "## Earlier Context\n".to_owned();
    room = room.saturating_sub(out.len() + 1);
    for line in previous.lines() {
        // The section needs room for the line break and the quotation mark (3), and for the mark of missing
        // text (4).
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

/// Appends a line of names: as many names as fit into `room` characters, and the number of the other names.
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

/// The beginning of `text` on one line: white space becomes single spaces, control characters are left out.
/// It has at most `room` characters; the last one is `…` if text is missing.
fn one_line(text: &str, room: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut space = false;
    for char in text.chars() {
        if char.is_whitespace() {
            space = length > 0;
            continue;
        }
        if is_control(char) || char == '\u{feff}' {
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

/// Like [`one_line`], but cuts after a sentence if a sentence ends before the limit.
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
