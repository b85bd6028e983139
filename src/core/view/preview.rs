//! The facts of an entry's body that a row shows: preview, tool calls, tokens.
//!
//! A stored line is read only as far as needed, so the head of a body of 20 MB is enough. If the head is
//! not enough, the caller reads the whole line. Text after the point where reading stops has no effect,
//! for instance a second member of the same name. Damaged lines show the part before the damage.

use super::call::RESULT_CHARS;
pub(super) use super::facts::RowFacts;
use super::facts::ToolCall;
use super::line::PreviewLine;
use super::result::{self, TestCounts, Which};
use super::snapshot::Entry;
use super::speech::Speech;
use super::subject::Subject;
use crate::entry::{Kind, Role};
use crate::json::{self, Elements, Malformed, Members, Span};
use crate::summary::{MERGE_PREAMBLE, PREAMBLE};
use crate::tools::{self, Saying};
use crate::tree::Flags;
use std::borrow::Cow;

/// The number of bytes of a stored line to read first.
pub const FIRST_READ: usize = 4096;

/// The lines with which Codex and Claude Code begin the summary of a compaction.
pub(super) const COMPACTED: [&str; 3] = [
    "Another language model started to solve this problem and produced a summary of its thinking process. You also have \
     access to the state of the tools that were used by that language model. Use this to build on the work that has \
     already been done and avoid duplicating work. Here is the summary produced by the other language model, use the \
     information in this summary to assist with your own analysis:",
    "This session is being continued from a previous conversation that ran out of context. The conversation is summarized \
     below:",
    "This session is being continued from a previous conversation that ran out of context. The summary below covers the \
     earlier portion of the conversation.",
];

impl Entry<'_> {
    /// The subject for a row of this entry.
    pub fn subject(&self) -> Subject {
        Subject {
            kind: self.kind,
            role: self.role,
            flags: self.flags,
            calls: false,
        }
    }
}

impl<'a> RowFacts<'a> {
    /// Reads the head of a stored line; `None` if the head is not enough.
    pub fn of_head(head: &'a [u8], subject: Subject) -> Option<Self> {
        let mut walk = PreviewWalk::new(head, subject, true);
        match walk.entry() {
            Ok(()) | Err(PreviewStop::Settled) => Some(walk.into_facts()),
            Err(PreviewStop::Malformed) => None,
        }
    }

    /// Reads a whole stored line.
    pub fn of_line(line: &'a [u8], subject: Subject) -> Self {
        let mut walk = PreviewWalk::new(line, subject, false);
        // A damaged line shows the text before the damage.
        let (Ok(()) | Err(PreviewStop::Settled | PreviewStop::Malformed)) = walk.entry();
        walk.into_facts()
    }
}

impl RowFacts<'_> {
    /// Returns the words of a person in this message; `None` if a tool wrote it, or it has images only.
    pub fn prompt(&self) -> Option<&str> {
        let said = self
            .preview
            .split(IMAGE)
            .any(|text| !text.trim().is_empty());
        (said && !self.is_aside).then_some(&self.preview)
    }

    pub fn into_owned(self) -> RowFacts<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        RowFacts {
            preview: owned(self.preview),
            is_aside: self.is_aside,
            lines: self.lines,
            tool_name: self.tool_name.map(owned),
            tool_call_id: self.tool_call_id.map(owned),
            calls: self.calls.into_iter().map(ToolCall::into_owned).collect(),
            tokens: self.tokens,
            kind: self.kind.map(owned),
            role: self.role.map(owned),
            timestamp: self.timestamp.map(owned),
        }
    }
}

/// The reason why a walk stops before the end of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PreviewStop {
    /// All requested facts are known.
    Settled,
    /// The text at this point is not JSON, or ends.
    Malformed,
}

impl From<Malformed> for PreviewStop {
    fn from(_: Malformed) -> Self {
        PreviewStop::Malformed
    }
}

struct PreviewWalk<'a> {
    text: &'a [u8],
    /// Whether the line is longer than `text`.
    is_head: bool,
    subject: Subject,
    facts: RowFacts<'a>,
    /// The main text of a message, a summary, a command or a name.
    said: PreviewLine,
    /// How `said` is made from the texts of a message.
    speech: Speech,
    /// The second and the third text of entries that show several members.
    more: [PreviewLine; 2],
    /// The calls of an assistant message. They are shown if the message has no text.
    calls: PreviewLine,
    /// The error of a failed assistant message. It is shown if the message has no text.
    error: PreviewLine,
    content_passed: bool,
    error_passed: bool,
    /// Whether a tool result has an image.
    has_image: bool,
    /// The tests that a command ran, as its output counts them.
    tests: TestCounts,
    /// Whether all members that make up the preview were read.
    preview_passed: bool,
}

/// One block of a content.
#[derive(Default)]
struct PreviewBlock<'a> {
    kind: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    /// Raw JSON, whose end may be missing.
    arguments: &'a [u8],
}

/// The number of bytes in which the end of a string is searched before the string is decoded.
const NEAR: usize = 256;
const IMAGE: &str = "[image]";
/// The preview of a `context_edit` that removes its target.
const LEFT_OUT: &str = "[left out]";

/// The members that make up the preview of an entry.
const fn shown(kind: Kind) -> &'static [&'static [u8]] {
    match kind {
        Kind::Message => &[b"message"],
        Kind::CustomMessage => &[b"content"],
        Kind::ContextEdit => &[b"replacement"],
        Kind::Compaction | Kind::BranchSummary => &[b"summary"],
        Kind::ThinkingLevelChange => &[b"thinkingLevel"],
        Kind::ModelChange => &[b"provider", b"modelId"],
        Kind::ModeChange => &[b"mode"],
        Kind::Custom | Kind::LeafRecord | Kind::Note => &[b"customType"],
        Kind::Label => &[b"label"],
        Kind::SessionInfo => &[b"name"],
        Kind::Usage => &[b"kind", b"provider", b"model"],
        Kind::Unknown => &[b"type"],
    }
}

impl<'a> PreviewWalk<'a> {
    fn new(text: &'a [u8], subject: Subject, is_head: bool) -> Self {
        Self {
            text,
            is_head,
            subject,
            facts: RowFacts::default(),
            said: match subject.role {
                Role::ToolResult => PreviewLine::of(RESULT_CHARS),
                _ => PreviewLine::default(),
            },
            speech: Speech::of(subject),
            more: Default::default(),
            calls: PreviewLine::default(),
            error: PreviewLine::default(),
            content_passed: false,
            error_passed: false,
            has_image: false,
            tests: TestCounts::default(),
            preview_passed: false,
        }
    }

    fn into_facts(mut self) -> RowFacts<'a> {
        let [second, third] = self.more;
        match self.subject.kind {
            Kind::ModelChange => self.said.join('/', &second),
            Kind::Usage => {
                self.said.join(' ', &second);
                self.said.join('/', &third);
            }
            _ => {}
        }
        if self.has_image && self.said.is_empty() {
            self.said.push_str(IMAGE);
        }
        for instead in [self.error, self.calls] {
            if self.said.is_empty() {
                self.said = instead;
            }
        }
        if self.said.is_empty()
            && let Some(aside) = self.speech.aside()
        {
            self.said = aside;
            self.facts.is_aside = true;
        }
        if let Some(tests) = self.tests.told() {
            self.said = PreviewLine::of(RESULT_CHARS);
            self.said.push_str(&tests);
        }
        self.facts.preview = self.said.into_text().into();
        self.facts
    }

    /// Stops the walk if no later text could change the requested facts.
    fn settle(&self) -> Result<(), PreviewStop> {
        let Subject {
            kind,
            role,
            flags,
            calls,
        } = self.subject;
        let only_calls = flags.has(Flags::SILENT);
        // A later line of a tool result may be more informative.
        let is_said = self.said.is_full() && role != Role::ToolResult;
        let preview = self.preview_passed || is_said || (only_calls && self.calls.is_full());
        let timestamp = !flags.has(Flags::ODD_TIMESTAMP) || self.facts.timestamp.is_some();
        let rest = match (kind, role) {
            (Kind::Message, Role::Assistant) => !calls || self.content_passed,
            (Kind::Message, Role::ToolResult) => {
                self.facts.tool_name.is_some() && self.facts.tool_call_id.is_some()
            }
            (Kind::Message, Role::Other) => self.facts.role.is_some(),
            (Kind::Compaction, _) => self.facts.tokens.is_some(),
            (Kind::Unknown, _) => self.facts.kind.is_some(),
            _ => true,
        };
        if preview && timestamp && rest {
            Err(PreviewStop::Settled)
        } else {
            Ok(())
        }
    }

    fn entry(&mut self) -> Result<(), PreviewStop> {
        let shown = shown(self.subject.kind);
        let mut passed = 0;
        let mut members = Members::open(self.text, json::skip_space(self.text, 0))?;
        while let Some(key) = members.next_key()? {
            let (name, at) = (key.name(self.text), key.value_at);
            match (&*name, self.subject.kind) {
                (b"timestamp", _) if self.subject.flags.has(Flags::ODD_TIMESTAMP) => {
                    self.facts.timestamp = self.string(at)?;
                }
                (b"tokensBefore", Kind::Compaction) => {
                    let end = json::skip_value(self.text, at)?;
                    if end == self.text.len() {
                        // More digits may follow.
                        return Err(PreviewStop::Malformed);
                    }
                    self.facts.tokens = whole(self.raw(at..end));
                }
                (b"type", Kind::Unknown) => self.facts.kind = self.string(at)?,
                _ => {}
            }
            let end = match shown.iter().position(|member| **member == *name) {
                Some(part) => {
                    passed |= 1 << part;
                    self.shown_member(part, at)?
                }
                None => json::skip_value(self.text, at)?,
            };
            self.preview_passed |= passed == (1 << shown.len()) - 1;
            self.settle()?;
            members.resume(end);
        }
        Ok(())
    }

    /// Reads a member of the preview; returns the position after it.
    fn shown_member(&mut self, part: usize, at: usize) -> Result<usize, PreviewStop> {
        match (self.subject.kind, part) {
            (Kind::Message, _) => self.message(at),
            (Kind::CustomMessage, _) => self.content(at),
            (Kind::ContextEdit, _) => self.replacement(at),
            (_, 0) => self.say(at),
            _ => {
                let end = json::skip_value(self.text, at)?;
                let raw = self.raw(at..end);
                if let Some(line) = self.more.get_mut(part - 1) {
                    line.push_literal(raw, false);
                }
                Ok(end)
            }
        }
    }

    fn replacement(&mut self, at: usize) -> Result<usize, PreviewStop> {
        if self.text.get(at) != Some(&b'{') {
            self.said.push_str(LEFT_OUT);
            return Ok(json::skip_value(self.text, at)?);
        }
        let mut members = Members::open(self.text, at)?;
        while let Some(key) = members.next_key()? {
            if key.is(self.text, "content") {
                let end = self.content(key.value_at)?;
                members.resume(end);
            } else {
                members.value()?;
            }
        }
        Ok(members.end())
    }

    fn message(&mut self, at: usize) -> Result<usize, PreviewStop> {
        if self.text.get(at) != Some(&b'{') {
            return Ok(json::skip_value(self.text, at)?);
        }
        let role = self.subject.role;
        let saying: &[u8] = match role {
            Role::BashExecution => b"command",
            Role::BranchSummary | Role::CompactionSummary => b"summary",
            _ => b"content",
        };
        let failed = self.subject.flags.has(Flags::ERROR);
        let mut members = Members::open(self.text, at)?;
        while let Some(key) = members.next_key()? {
            let (name, at) = (key.name(self.text), key.value_at);
            match (&*name, role) {
                (b"toolName", Role::ToolResult) => self.facts.tool_name = self.string(at)?,
                (b"toolCallId", Role::ToolResult) => self.facts.tool_call_id = self.string(at)?,
                (b"role", Role::Other) => self.facts.role = self.string(at)?,
                _ => {}
            }
            let end = if *name == *saying {
                if role == Role::BashExecution {
                    self.said.push_str("$ ");
                }
                let end = self.content(at)?;
                self.content_passed = true;
                end
            } else {
                let end = json::skip_value(self.text, at)?;
                if *name == *b"errorMessage" && failed {
                    self.error.push_literal(self.raw(at..end), false);
                    self.error_passed = true;
                }
                end
            };
            let error_counts = role == Role::Assistant && failed && self.said.is_empty();
            self.preview_passed = self.content_passed && (self.error_passed || !error_counts);
            self.settle()?;
            members.resume(end);
        }
        Ok(members.end())
    }

    /// Reads text, or an array of blocks; returns the position after it.
    fn content(&mut self, at: usize) -> Result<usize, PreviewStop> {
        if self.text.get(at) != Some(&b'[') {
            return self.say(at);
        }
        let mut blocks = Elements::open(self.text, at)?;
        while let Some(at) = blocks.next_at()? {
            self.said.gap();
            let end = match self.text.get(at) {
                Some(b'{') => self.block(at)?,
                _ => self.say(at)?,
            };
            blocks.resume(end);
        }
        Ok(blocks.end())
    }

    fn block(&mut self, at: usize) -> Result<usize, PreviewStop> {
        let mut block = PreviewBlock::default();
        let end = self.block_members(at, &mut block);
        if block.kind.as_deref() == Some("toolCall") {
            // A damaged block shows the text before the damage.
            self.call(block);
        }
        let end = end?;
        self.settle()?;
        Ok(end)
    }

    fn block_members(
        &mut self,
        at: usize,
        block: &mut PreviewBlock<'a>,
    ) -> Result<usize, PreviewStop> {
        // The positions of values that come before the member that says what they mean.
        let mut text_at = None;
        let mut members = Members::open(self.text, at)?;
        while let Some(key) = members.next_key()? {
            let at = key.value_at;
            let end = match &*key.name(self.text) {
                b"text" if block.kind.as_deref() == Some("text") => self.say(at)?,
                name => {
                    let end = json::skip_value(self.text, at);
                    let raw = self.raw_or_rest(at, &end);
                    match name {
                        b"type" => block.kind = json::string(raw),
                        b"text" => text_at = Some(at),
                        b"id" => block.id = json::string(raw),
                        b"name" => block.name = json::string(raw),
                        b"arguments" => block.arguments = raw,
                        _ => {}
                    }
                    end?
                }
            };
            members.resume(end);
        }
        match (block.kind.as_deref(), text_at) {
            (Some("text"), Some(text_at)) => drop(self.say(text_at)?),
            (Some("image"), _) if self.subject.role == Role::ToolResult => self.has_image = true,
            (Some("image"), _) => self.said.push_str(IMAGE),
            _ => {}
        }
        Ok(members.end())
    }

    /// Appends a call, such as `read src/lib.rs`, after the calls before it.
    fn call(&mut self, block: PreviewBlock<'a>) {
        let Some(name) = block.name else { return };
        let is_shown = self.said.is_empty() && !self.calls.is_full();
        if !is_shown && !self.subject.calls {
            return;
        }
        let call = ToolCall::new(block.id.unwrap_or_default(), name, block.arguments);
        if !self.calls.is_empty() {
            self.calls.push_str(", ");
        }
        self.calls.push_str(&call.name);
        if !call.summary.is_empty() {
            self.calls.gap();
            self.calls.push_str(&call.summary);
        }
        if self.subject.calls {
            self.facts.calls.push(call);
        }
    }

    /// Reads a part of a tool result, and keeps its most informative line, if it has one.
    fn result_part(&mut self, at: usize) -> Result<usize, PreviewStop> {
        let end = json::skip_value(self.text, at);
        let raw = self.raw_or_rest(at, &end);
        let which = match self.subject.flags.has(Flags::ERROR) {
            true => Which::First,
            false => Which::Last,
        };
        let inside = raw.strip_prefix(b"\"").unwrap_or_default();
        let inside = inside
            .strip_suffix(b"\"")
            .filter(|_| end.is_ok())
            .unwrap_or(inside);
        let name = self.facts.tool_name.as_deref();
        let is_command = name.is_some_and(|name| tools::saying(name) == Saying::Command);
        if self.is_head && (which == Which::Last || is_command) {
            // The part needs all its lines. If its end is missing, the text in the head is not read, since the whole
            // line is read next.
            end?;
        }
        let told = result::told(inside, end.is_err(), which, is_command);
        if which == Which::Last {
            self.facts.lines = self.facts.lines.saturating_add(told.lines);
        }
        self.tests.add(told.tests);
        if let Some(line) = told.line
            && (which == Which::Last || self.said.is_empty())
        {
            self.said = PreviewLine::of(RESULT_CHARS);
            self.said.push_inside(line, false);
            self.preview_passed |= which == Which::First && !is_command;
            self.settle()?;
        }
        if end.is_err() && self.said.is_empty() {
            // A damaged line shows the text before the damage.
            self.said.push_inside(inside, true);
        }
        Ok(end?)
    }

    /// Appends the text of a string; other values add nothing. Returns the position after the value.
    fn say(&mut self, at: usize) -> Result<usize, PreviewStop> {
        if self.subject.role == Role::ToolResult {
            return self.result_part(at);
        }
        // The end of a long string is seldom needed, so the string is decoded from its start first.
        let near = self.text.get(..at + NEAR).unwrap_or(self.text);
        if near.get(at) == Some(&b'"') && json::skip_value(near, at).is_err() {
            let before = (self.said.clone(), self.speech.clone());
            let said = self.inside(self.raw(at..self.text.len()));
            self.speech.push(&mut self.said, said, true, true);
            self.settle()?;
            if self.said.is_full() {
                return Ok(json::skip_value(self.text, at)?);
            }
            (self.said, self.speech) = before;
        }
        let end = json::skip_value(self.text, at);
        let raw = self.inside(self.raw_or_rest(at, &end));
        self.speech.push(
            &mut self.said,
            raw,
            end.is_err(),
            self.is_head && end.is_err(),
        );
        self.settle()?;
        Ok(end?)
    }

    /// The inside of a string literal, without the line that begins every generated summary.
    fn inside(&self, raw: &'a [u8]) -> &'a [u8] {
        let text = raw.strip_prefix(b"\"").unwrap_or_default();
        let known: &[&str] = match self.subject.kind {
            Kind::BranchSummary => &[PREAMBLE, MERGE_PREAMBLE],
            Kind::Compaction => &COMPACTED,
            _ => return text,
        };
        // These lines have no characters that JSON escapes.
        let mut rests = known
            .iter()
            .filter_map(|line| text.strip_prefix(line.as_bytes()));
        rests.next().unwrap_or(text)
    }

    /// A string that is needed as a whole; `None` for any other value.
    fn string(&self, at: usize) -> Result<Option<Cow<'a, str>>, PreviewStop> {
        let end = json::skip_value(self.text, at)?;
        Ok(json::string(self.raw(at..end)))
    }

    /// The raw value at `at`. If the end of the value is missing, this is the part up to the end of the text.
    fn raw_or_rest(&self, at: usize, end: &Result<usize, Malformed>) -> &'a [u8] {
        self.raw(at..*end.as_ref().unwrap_or(&self.text.len()))
    }

    fn raw(&self, span: Span) -> &'a [u8] {
        self.text.get(span).unwrap_or_default()
    }
}

/// A whole number that is not negative, in any notation.
fn whole(raw: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(raw).ok()?;
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        let is_whole = (0.0..=MAX_EXACT).contains(&number) && number.fract() == 0.0;
        is_whole.then(|| json::saturated(number))
    })
}

/// 2^53, up to which all whole numbers are exact.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
