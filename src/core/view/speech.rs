//! Extracts the words of a person from the text of a message. Text that a tool put around or into these words is left
//! out.
//!
//! Agents write their own text into user messages: reminders, slash commands and their output, the environment. A
//! message that has only such text is an aside: the preview is one word that says what the text is.

use super::line::PreviewLine;
use super::plain::{LOOK, PlainText};
use super::subject::Subject;
use crate::entry::{Kind, Role};
use crate::json;
use memchr::memmem;

/// The number of bytes of decoded text that are handled at a time.
const WINDOW: usize = 512;
/// The number of bytes of a text in which marks are searched: enough to fill a line.
const UNMARKED: usize = 4 * PreviewLine::LIMIT;
/// The most characters of an aside.
const ASIDE: usize = 80;

/// The meaning of an element that a tool puts into a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    /// The text of the element is the name of a slash command.
    Command,
    /// The text of the element is the arguments of the slash command.
    Arguments,
    /// The text of the element is a command for a shell.
    Shell,
    Word(&'static str),
}

/// The elements of Claude Code, Codex and Gemini CLI, by their tags.
const ELEMENTS: &[(&str, Says)] = &[
    ("system-reminder", Says::Word("reminder")),
    ("command-name", Says::Command),
    ("command-message", Says::Nothing),
    ("command-contents", Says::Nothing),
    ("command-args", Says::Arguments),
    ("local-command-caveat", Says::Word("caveat")),
    ("local-command-stdout", Says::Word("output")),
    ("local-command-stderr", Says::Word("output")),
    ("bash-input", Says::Shell),
    ("bash-stdout", Says::Word("output")),
    ("bash-stderr", Says::Word("output")),
    ("task-notification", Says::Word("notification")),
    ("subagent_notification", Says::Word("notification")),
    ("ide_opened_file", Says::Word("editor")),
    ("ide_selection", Says::Word("editor")),
    ("ide_diagnostics", Says::Word("editor")),
    ("user-prompt-submit-hook", Says::Word("hook")),
    ("environment_context", Says::Word("environment")),
    ("environment_details", Says::Word("environment")),
    ("session_context", Says::Word("environment")),
    ("user_instructions", Says::Word("instructions")),
    ("INSTRUCTIONS", Says::Word("instructions")),
    ("permissions instructions", Says::Word("instructions")),
    ("collaboration_mode", Says::Word("instructions")),
    ("skills_instructions", Says::Word("instructions")),
    ("turn_aborted", Says::Word("interrupted")),
];

/// The beginnings of texts that a tool has written as a whole.
const WHOLE: &[(&str, &str)] = &[
    ("Caveat: The messages below were generated", "caveat"),
    ("# AGENTS.md instructions for ", "instructions"),
    (
        "This is the Gemini CLI. We are setting up the context",
        "environment",
    ),
];

/// The texts of one message.
#[derive(Debug, Clone, Default)]
pub(super) struct Speech {
    plain: PlainText,
    /// Whether the text is Markdown.
    is_markdown: bool,
    /// Whether tools may have put elements into the text.
    has_elements: bool,
    /// The most informative meaning of the elements so far.
    aside: Option<Says>,
    command: PreviewLine,
    arguments: PreviewLine,
}

impl Speech {
    pub(super) fn of(subject: Subject) -> Self {
        let is_markdown = match subject.kind {
            Kind::Message => subject.role != Role::BashExecution,
            Kind::CustomMessage | Kind::ContextEdit | Kind::Compaction | Kind::BranchSummary => {
                true
            }
            _ => false,
        };
        let is_users = subject.kind == Kind::Message && subject.role == Role::User;
        Self {
            is_markdown,
            has_elements: is_users || (subject.is_custom() && subject.kind != Kind::Custom),
            ..Self::default()
        }
    }

    /// The aside; `None` unless the message has elements and no other text.
    pub(super) fn aside(&self) -> Option<PreviewLine> {
        let mut line = PreviewLine::of(ASIDE);
        match self.aside? {
            Says::Nothing => return None,
            Says::Word(word) => line.push_str(word),
            Says::Command | Says::Arguments => line = self.command.clone(),
            Says::Shell => {
                line.push_str("$ ");
                line.append(&self.command);
            }
        }
        line.gap();
        line.append(&self.arguments);
        Some(line)
    }

    /// Appends the words of a text. `inside` has the line from the beginning of a string literal on; it may have more
    /// bytes after the closing quote. `cut` says that the end of the literal is missing; `is_head` says that the line
    /// is longer than the part that was read.
    pub(super) fn push(&mut self, line: &mut PreviewLine, inside: &[u8], cut: bool, is_head: bool) {
        if self.has_elements
            && let Some((_, word)) = WHOLE
                .iter()
                .find(|(start, _)| inside.starts_with(start.as_bytes()))
        {
            return self.say(Says::Word(word));
        }
        if !self.is_markdown || is_unmarked(inside.get(..UNMARKED).unwrap_or(inside)) {
            return line.push_inside(inside, cut);
        }
        self.plain = PlainText::default();
        let mut rest = inside;
        let mut window = String::with_capacity(WINDOW + 16);
        while !line.is_full() && !rest.is_empty() {
            window.clear();
            let Some(after) = self.decode(rest, &mut window, cut, is_head) else {
                // The text that was read may end within an element.
                return;
            };
            let is_last = window.len() < WINDOW;
            // A literal that has no closing quote continues after the head.
            let is_cut = cut && is_head && is_last && after.first() != Some(&b'"');
            let held = if is_cut { LOOK } else { 0 };
            rest = if is_last { b"" } else { after };
            self.plain.push(line, &window, held);
        }
    }

    /// Decodes up to [`WINDOW`] bytes, without elements. Returns the rest. The rest begins with a quote if the literal
    /// ends there. Returns `None` if an element continues after the end of the text that was read.
    fn decode<'a>(
        &mut self,
        mut rest: &'a [u8],
        window: &mut String,
        cut: bool,
        is_head: bool,
    ) -> Option<&'a [u8]> {
        while window.len() < WINDOW {
            let plain = plain(rest, WINDOW - window.len());
            window.push_str(plain);
            rest = rest.get(plain.len()..).unwrap_or_default();
            if window.len() == WINDOW {
                break;
            }
            if rest.first() == Some(&b'<') && self.has_elements {
                match self.element(rest, is_head) {
                    Element::None => {}
                    Element::Unfinished => return None,
                    Element::Until(after) => {
                        window.push(' ');
                        rest = after;
                        continue;
                    }
                }
            }
            let Some((char, length)) = json::first_char(rest) else {
                break;
            };
            let in_pieces =
                rest.len() < json::LONGEST_CHAR && matches!(rest.first(), Some(b'\\' | 0x80..));
            if cut && in_pieces {
                return Some(b"");
            }
            match char {
                '\r' => window.push('\n'),
                char => window.push(char),
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        Some(rest)
    }

    /// Reads the element at the beginning of a text.
    fn element<'a>(&mut self, text: &'a [u8], is_head: bool) -> Element<'a> {
        let after = text.get(1..).unwrap_or_default();
        let opens = |name: &str| {
            let rest = after.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| matches!(rest.first(), Some(b'>' | b' ')))
        };
        // This is the end of a reminder whose beginning is missing.
        if after.starts_with(b"/system-reminder>") {
            return Element::Until(text.get(b"</system-reminder>".len()..).unwrap_or_default());
        }
        let Some((name, says)) = ELEMENTS.iter().find(|(name, _)| opens(name)) else {
            return Element::None;
        };
        let end = format!("</{name}>");
        let Some(found) = memmem::find(after, end.as_bytes()) else {
            return if is_head {
                Element::Unfinished
            } else {
                Element::None
            };
        };
        let inner = after.get(name.len()..found).unwrap_or_default();
        if has_quote(inner) {
            // The literal ends before the end of the element.
            return Element::None;
        }
        let start = inner
            .iter()
            .position(|byte| *byte == b'>')
            .map_or(0, |at| at + 1);
        let inner = inner.get(start..).unwrap_or_default();
        match says {
            Says::Command | Says::Shell => self.command = said(inner),
            Says::Arguments => self.arguments = said(inner),
            Says::Nothing | Says::Word(_) => {}
        }
        self.say(*says);
        Element::Until(after.get(found + end.len()..).unwrap_or_default())
    }

    /// Keeps the most informative meaning: a command is more informative than the elements around it.
    fn say(&mut self, says: Says) {
        let counts = |says| matches!(says, Some(Says::Command | Says::Shell));
        if self.aside.is_none_or(|said| said == Says::Nothing)
            || (counts(Some(says)) && !counts(self.aside))
        {
            self.aside = Some(says);
        }
    }
}

enum Element<'a> {
    None,
    /// The element may end after the text that was read.
    Unfinished,
    /// The text after the element.
    Until(&'a [u8]),
}

/// Whether a text, as written in a literal, has none of the characters with which marks, elements and lines begin.
fn is_unmarked(inside: &[u8]) -> bool {
    let is_item = matches!(inside, [b'-' | b'+', b' ', ..]);
    !is_item && json::first_of(inside, br"*_`~[!<#>|\") == inside.len()
}

/// The plain characters at the start of a literal, in its first `most` bytes. The first character that may begin an
/// escape, an element or a line break, or that may end the literal, is not included.
fn plain(inside: &[u8], most: usize) -> &str {
    let inside = inside.get(..most).unwrap_or(inside);
    let end = json::first_of(inside, b"\"\\<\r");
    let plain = inside.get(..end).unwrap_or(inside);
    let valid = std::str::from_utf8(plain).or_else(|error| {
        let plain = plain.get(..error.valid_up_to()).unwrap_or_default();
        std::str::from_utf8(plain)
    });
    valid.unwrap_or_default()
}

/// Whether the literal ends within `inside`: at a quote without a backslash before it.
fn has_quote(mut inside: &[u8]) -> bool {
    while let Some(found) = memchr::memchr2(b'"', b'\\', inside) {
        if inside.get(found) == Some(&b'"') {
            return true;
        }
        inside = inside.get(found + 2..).unwrap_or_default();
    }
    false
}

fn said(inside: &[u8]) -> PreviewLine {
    let mut line = PreviewLine::of(ASIDE);
    line.push_inside(inside, false);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Flags;
    use crate::view::RowFacts;

    fn read(content: &str, cut: usize) -> RowFacts<'static> {
        let subject = Subject {
            kind: Kind::Message,
            role: Role::User,
            flags: Flags::default(),
            calls: false,
        };
        let content = serde_json::to_string(content).unwrap();
        let line =
            format!(r#"{{"type":"message","message":{{"role":"user","content":{content}}}}}"#);
        let head = line.get(..cut).unwrap_or(&line);
        match RowFacts::of_head(head.as_bytes(), subject) {
            Some(facts) => facts.into_owned(),
            None => RowFacts::of_line(line.as_bytes(), subject).into_owned(),
        }
    }

    /// Sessions were once named `<command-name>/exit</command-name> <command-message>exit…`.
    #[test]
    fn what_a_tool_wrote_into_a_message_is_one_word() {
        for (content, word) in [
            (
                "<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>",
                "/exit",
            ),
            (
                "<command-message>review is running…</command-message>\n<command-name>/review</command-name>\n<command-args>#12 now</command-args>",
                "/review #12 now",
            ),
            (
                "<local-command-stdout>Goodbye!</local-command-stdout>",
                "output",
            ),
            (
                "<local-command-caveat>Caveat: …</local-command-caveat>",
                "caveat",
            ),
            (
                "Caveat: The messages below were generated by the user while running local commands.",
                "caveat",
            ),
            ("<bash-input>ls -l</bash-input>", "$ ls -l"),
            (
                "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
                "environment",
            ),
            (
                "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe kind\n</INSTRUCTIONS>",
                "instructions",
            ),
            ("<system-reminder>\nIs it?\n</system-reminder>", "reminder"),
            (
                "<task-notification>\n<task-id>a</task-id>\n</task-notification>",
                "notification",
            ),
        ] {
            let facts = read(content, usize::MAX);
            assert_eq!((&*facts.preview, facts.is_aside), (word, true), "{content}");
        }
    }

    #[test]
    fn what_a_person_said_besides_is_the_text() {
        for (content, said) in [
            (
                "<ide_opened_file>The user opened a.rs</ide_opened_file>\nFix **it**",
                "Fix it",
            ),
            (
                "Fix it<system-reminder>no</system-reminder> now",
                "Fix it now",
            ),
            ("Fix it\n</system-reminder>", "Fix it"),
            (
                "why is <command-name> shown?",
                "why is <command-name> shown?",
            ),
            (
                "<command-names>a</command-names>",
                "<command-names>a</command-names>",
            ),
        ] {
            let facts = read(content, usize::MAX);
            assert_eq!(
                (&*facts.preview, facts.is_aside),
                (said, false),
                "{content}"
            );
        }
    }

    /// A head of 4 KiB once had only the beginning of a long reminder, and not the prompt after it.
    #[test]
    fn a_head_gives_the_same_line_as_the_whole_text() {
        let reminder = format!("<system-reminder>{}</system-reminder>", "x\n".repeat(300));
        let long = "**bold** `code` [a](b) *it* word ".repeat(20);
        for content in [
            format!("{reminder}\nFix **it** now. {long}"),
            format!("Fix {reminder}it"),
            format!("<command-name>/x</command-name>{reminder}"),
            format!("é{long}"),
            reminder,
        ] {
            let whole = read(&content, usize::MAX);
            for cut in 60..content.len() + 80 {
                assert_eq!(read(&content, cut), whole, "{cut} bytes of {content}");
            }
        }
    }

    /// For each opening of an element, its end was once searched in the whole rest of the text.
    #[test]
    fn elements_without_an_end_are_read_in_linear_time() {
        let content = "<ide_selection>".repeat(1 << 16);
        assert!(
            read(&content, usize::MAX)
                .preview
                .starts_with("<ide_selection><ide")
        );
    }
}
