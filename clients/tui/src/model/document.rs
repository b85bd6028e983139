//! A whole entry in the preview: parsed once from its JSON, and laid out for a width.
//!
//! Text is wrapped between words, and its Markdown is rendered. Fenced code, tool calls and the output of tools keep
//! their columns. Images are shown as their names. At most [`SHOWN`] bytes of an entry are shown, since reading a tool
//! result of 20 MB in a preview makes no sense. The whole entry can still be copied.

mod layout;
#[cfg(test)]
mod tests;

use super::prose::{self, LineStyle, SourceLine};
use crate::markdown::Prose;
use crate::text;
use serde_json::Value;

/// The most bytes of text that are shown.
pub const SHOWN: usize = 256 * 1024;

/// The shown parts of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// The line above the text: type or role, time, model.
    pub title: String,
    parts: Vec<Part>,
}

/// A part of the document in one style. Its lines are sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    style: LineStyle,
    content: Content,
    /// The index of the block to which the part belongs.
    block: usize,
    lines: Vec<SourceLine>,
}

/// The kind of content to which a part belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Content {
    #[default]
    Said,
    /// A tool call or its result.
    Tool,
    Thinking,
}

/// Which kinds of parts are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Closed {
    pub tools: bool,
    pub thinking: bool,
}

impl Closed {
    const fn has(self, content: Content) -> bool {
        match content {
            Content::Said => false,
            Content::Tool => self.tools,
            Content::Thinking => self.thinking,
        }
    }
}

/// A change that a tool call makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The id of the call.
    pub call: String,
    /// The file, if the change names it.
    pub path: Option<String>,
    /// The whole text of a file that is written, or the lines of a diff, which begin with a space, `+`, `-` or `@`.
    pub text: String,
    pub is_diff: bool,
}

/// The calls of a message, or the call of a result.
#[derive(Debug, Default)]
pub struct Calls {
    pub changes: Vec<Change>,
    /// For a result: the block with its call.
    pub answered: Option<Value>,
}

/// The tokens that an answer of a model used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The tokens that were sent, received, and written to the cache.
    pub tokens: u64,
    /// The tokens that were read from the cache.
    pub cached: u64,
}

/// A line of the preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub style: LineStyle,
    pub prose: Prose,
}

impl Document {
    /// Parses an entry from the daemon.
    pub fn of(entry: &Value) -> Self {
        Self::with_calls(entry, &Calls::default())
    }

    /// Parses an entry. Also shows the changes that its calls make. For a result, shows its call.
    pub fn with_calls(entry: &Value, calls: &Calls) -> Self {
        let mut document = Writer {
            changes: &calls.changes,
            call: calls.answered.as_ref(),
            ..Writer::default()
        };
        let kind = str_of(entry, "type");
        document.entry(entry, kind);
        let mut title = vec![title(entry, kind)];
        if let Some(model) = entry.pointer("/message/model").and_then(Value::as_str) {
            title.push(text::line(model));
        }
        if let Some(Used { tokens, cached }) = used(entry) {
            title.push(format!("{} tokens", crate::time::tokens(tokens)));
            if cached > 0 {
                title.push(format!("{} from the cache", crate::time::tokens(cached)));
            }
        }
        if let Some(time) = entry.get("timestamp").and_then(Value::as_str) {
            title.push(crate::time::local(time));
        }
        if let Some(id) = entry.get("id").and_then(Value::as_str) {
            title.push(text::line(id));
        }
        Self {
            title: title.join(" · "),
            parts: document.parts,
        }
    }
}

/// Returns the tokens that an answer of a model used; `None` if the entry is not such an answer.
pub fn used(entry: &Value) -> Option<Used> {
    let usage = entry.pointer("/message/usage")?;
    let of = |member: &str| usage.get(member).and_then(Value::as_u64).unwrap_or(0);
    let members = ["input", "output", "cacheWrite"];
    let tokens = members.iter().map(|member| of(member));
    Some(Used {
        tokens: tokens.fold(0, u64::saturating_add),
        cached: of("cacheRead"),
    })
}

fn title(entry: &Value, kind: &str) -> String {
    let message = entry.get("message").unwrap_or(&Value::Null);
    let name = match (kind, str_of(message, "role")) {
        ("message", "toolResult") => format!("tool {}", str_of(message, "toolName")),
        ("message", "bashExecution") => "shell".to_owned(),
        ("message", role) => role.to_owned(),
        ("branch_summary", _) => "branch summary".to_owned(),
        ("compaction", _) => "compaction".to_owned(),
        ("custom_message", _) => str_of(entry, "customType").to_owned(),
        (kind, _) => kind.replace('_', " "),
    };
    text::line(&name)
}

/// Returns the whole text of an entry as stored, for copying.
pub fn plain_text(entry: &Value) -> String {
    let message = entry.get("message").unwrap_or(entry);
    if let Some(summary) = entry.get("summary").and_then(Value::as_str) {
        return summary.to_owned();
    }
    if str_of(message, "role") == "bashExecution" {
        return format!(
            "$ {}\n{}",
            str_of(message, "command"),
            str_of(message, "output")
        );
    }
    let parts = match message.get("content") {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(blocks)) => {
            let texts = blocks
                .iter()
                .filter(|block| str_of(block, "type") == "text");
            let texts: Vec<String> = texts
                .map(|block| str_of(block, "text").to_owned())
                .collect();
            let calls = blocks
                .iter()
                .filter(|block| str_of(block, "type") == "toolCall");
            if texts.is_empty() {
                calls.map(call).collect()
            } else {
                texts
            }
        }
        _ => vec![pretty(entry)],
    };
    parts.join("\n")
}

/// Formats a tool call as `name(argument: value, …)`.
pub fn call(block: &Value) -> String {
    let arguments = match block.get("arguments") {
        Some(Value::Object(members)) => members
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                value => format!("{name}: {value}"),
            })
            .collect::<Vec<_>>()
            .join(", "),
        _ => String::new(),
    };
    format!("{}({arguments})", str_of(block, "name"))
}

fn str_of<'a>(value: &'a Value, member: &str) -> &'a str {
    value
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[derive(Default)]
struct Writer<'a> {
    changes: &'a [Change],
    call: Option<&'a Value>,
    content: Content,
    block: usize,
    parts: Vec<Part>,
    bytes: usize,
    is_cut: bool,
}

impl Writer<'_> {
    fn entry(&mut self, entry: &Value, kind: &str) {
        match kind {
            "message" => self.message(entry.get("message").unwrap_or(&Value::Null)),
            "custom_message" => self.content(entry.get("content"), LineStyle::Text),
            "compaction" => {
                if let Some(tokens) = entry.get("tokensBefore").and_then(Value::as_u64) {
                    self.push(LineStyle::Note, &format!("{tokens} tokens before"));
                }
                self.prose(str_of(entry, "summary"));
            }
            "branch_summary" => {
                self.push(
                    LineStyle::Note,
                    &format!("of the branch that ended at {}", str_of(entry, "fromId")),
                );
                self.prose(str_of(entry, "summary"));
            }
            _ => self.push(LineStyle::Code, &pretty(entry)),
        }
    }

    fn message(&mut self, message: &Value) {
        match str_of(message, "role") {
            "bashExecution" => {
                self.content = Content::Tool;
                self.push(
                    LineStyle::Note,
                    &format!("$ {}", str_of(message, "command")),
                );
                self.push(LineStyle::Code, str_of(message, "output"));
                if let Some(code) = message
                    .get("exitCode")
                    .and_then(Value::as_i64)
                    .filter(|code| *code != 0)
                {
                    self.push(LineStyle::Error, &format!("exit code {code}"));
                }
            }
            "toolResult" => {
                let failed = message.get("isError").and_then(Value::as_bool) == Some(true);
                if failed {
                    self.push(LineStyle::Error, "failed");
                }
                self.content = Content::Tool;
                match self.call {
                    Some(call) => self.put_block(call, LineStyle::Note),
                    None => self.push_changes(str_of(message, "toolCallId")),
                }
                self.content(message.get("content"), LineStyle::Code);
            }
            _ => self.content(message.get("content"), LineStyle::Text),
        }
        self.content = Content::Said;
        let error = str_of(message, "errorMessage");
        if !error.is_empty() {
            self.push(LineStyle::Error, error);
        }
    }

    fn content(&mut self, content: Option<&Value>, style: LineStyle) {
        let mut text = |text: &str| match style {
            LineStyle::Text => self.prose(text),
            style => self.push(style, text),
        };
        match content {
            Some(Value::String(content)) => text(content),
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    self.block(block, style);
                }
            }
            None | Some(Value::Null) => {}
            Some(other) => self.push(LineStyle::Code, &pretty(other)),
        }
    }

    fn block(&mut self, block: &Value, style: LineStyle) {
        let around = self.content;
        self.block += 1;
        self.content = match str_of(block, "type") {
            "thinking" => Content::Thinking,
            "toolCall" => Content::Tool,
            _ => around,
        };
        self.put_block(block, style);
        self.content = around;
    }

    fn put_block(&mut self, block: &Value, style: LineStyle) {
        match str_of(block, "type") {
            "text" if style == LineStyle::Text => self.prose(str_of(block, "text")),
            "text" => self.push(style, str_of(block, "text")),
            "thinking" => self.push(LineStyle::Thinking, str_of(block, "thinking")),
            "toolCall" if self.has_changes(str_of(block, "id")) => {
                self.push(LineStyle::Note, &format!("→ {}", str_of(block, "name")));
                self.push_changes(str_of(block, "id"));
            }
            "toolCall" => self.push(LineStyle::Note, &format!("→ {}", call(block))),
            "image" => {
                // In Base64, four characters stand for three bytes.
                let bytes = str_of(block, "data").len() / 4 * 3;
                let mime = str_of(block, "mimeType");
                self.push(
                    LineStyle::Note,
                    &format!("[image: {mime}, {}]", crate::time::bytes(bytes)),
                );
            }
            _ => self.push(LineStyle::Code, &pretty(block)),
        }
    }

    fn has_changes(&self, call: &str) -> bool {
        self.changes.iter().any(|change| change.call == call)
    }

    /// Adds the changes that a call makes.
    fn push_changes(&mut self, call: &str) {
        let changes = self.changes;
        for change in changes.iter().filter(|change| change.call == call) {
            if let Some(path) = &change.path {
                self.push(LineStyle::Note, path);
            }
            if !change.is_diff {
                self.push(LineStyle::Code, &change.text);
                continue;
            }
            let style = |line: &str| match line.as_bytes().first() {
                Some(b'+') => LineStyle::Added,
                Some(b'-') => LineStyle::Removed,
                Some(b'@') => LineStyle::Note,
                _ => LineStyle::Code,
            };
            for line in change.text.lines() {
                self.push(style(line), line);
            }
        }
    }

    /// Adds Markdown that people or models wrote.
    fn prose(&mut self, text: &str) {
        let Some(shown) = self.take(text) else {
            return;
        };
        let lines: Vec<String> = text::lines(shown).collect();
        for (style, line) in prose::lines(&lines) {
            match self.parts.last_mut().filter(|part| part.style == style) {
                Some(part) => part.lines.push(line),
                None => self.part(style, vec![line]),
            }
        }
        self.note_the_rest(text, shown);
    }

    fn push(&mut self, style: LineStyle, text: &str) {
        let Some(shown) = self.take(text) else {
            return;
        };
        let lines = text::lines(shown).map(SourceLine::plain).collect();
        self.part(style, lines);
        self.note_the_rest(text, shown);
    }

    /// Returns the beginning of the text for which there is room; `None` if nothing can be added.
    fn take<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if text.is_empty() || self.is_cut {
            return None;
        }
        let room = SHOWN - self.bytes;
        let shown = match text.char_indices().find(|(at, _)| *at >= room) {
            Some((at, _)) => text.get(..at).unwrap_or_default(),
            None => text,
        };
        self.bytes += shown.len();
        Some(shown)
    }

    fn note_the_rest(&mut self, text: &str, shown: &str) {
        if shown.len() < text.len() {
            self.is_cut = true;
            let more = crate::time::bytes(text.len() - shown.len());
            let note = format!("… {more} more; copying takes all of it");
            self.part(LineStyle::Note, vec![SourceLine::plain(note)]);
        }
    }

    fn part(&mut self, style: LineStyle, lines: Vec<SourceLine>) {
        self.parts.push(Part {
            style,
            content: self.content,
            block: self.block,
            lines,
        });
    }
}
