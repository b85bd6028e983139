//! A whole entry in the preview: parsed once from its JSON, and laid out for a width.
//!
//! Text is wrapped between words, and its Markdown is rendered. Fenced code, tool calls and the output of tools keep
//! their columns.
//! Images are shown as their names. At most [`SHOWN`] bytes of an entry are shown, since reading a tool result of 20 MB
//! in a preview makes no sense; copying copies all of it.

mod layout;

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

/// A line of the preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub style: LineStyle,
    pub prose: Prose,
}

impl Document {
    /// Parses an entry from the daemon.
    pub fn of(entry: &Value) -> Self {
        Self::with_changes(entry, &[])
    }

    /// Parses an entry. Also shows the changes that its calls make. For a result, shows the changes that its call made.
    pub fn with_changes(entry: &Value, changes: &[Change]) -> Self {
        let mut document = Writer {
            changes,
            ..Writer::default()
        };
        let kind = str_of(entry, "type");
        document.entry(entry, kind);
        let mut title = vec![title(entry, kind)];
        if let Some(model) = entry.pointer("/message/model").and_then(Value::as_str) {
            title.push(text::line(model));
        }
        title.extend(tokens(entry).map(|count| format!("{} tokens", crate::time::tokens(count))));
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

/// Returns the number of tokens that an answer of a model used: tokens read and tokens written.
pub fn tokens(entry: &Value) -> Option<u64> {
    let usage = entry.pointer("/message/usage")?;
    let of = |member: &str| usage.get(member).and_then(Value::as_u64).unwrap_or(0);
    let members = ["input", "output", "cacheRead", "cacheWrite"];
    Some(
        members
            .iter()
            .map(|member| of(member))
            .fold(0, u64::saturating_add),
    )
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
                self.push_changes(str_of(message, "toolCallId"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(message: Value, columns: usize) -> Vec<String> {
        changed(message, columns, &[])
    }

    fn changed(message: Value, columns: usize, changes: &[Change]) -> Vec<String> {
        let entry = json!({"type": "message", "id": "a", "message": message});
        let lines = Document::with_changes(&entry, changes).layout(columns);
        let mark = |style| match style {
            LineStyle::Text => ' ',
            LineStyle::Heading => '#',
            LineStyle::Quote => '>',
            LineStyle::Table => 'T',
            LineStyle::Code => '|',
            LineStyle::Added => '+',
            LineStyle::Removed => '<',
            LineStyle::Thinking => '?',
            LineStyle::Note => '-',
            LineStyle::Error => '!',
        };
        lines
            .iter()
            .map(|line| format!("{} {}", mark(line.style), line.prose.text))
            .collect()
    }

    #[test]
    fn prose_headings_and_code_have_different_styles() {
        let text = "# Plan\nFirst read the file.\n```rust\nfn main() {    println!(\"a\") }\n```\nThen run it.";
        assert_eq!(
            shown(
                json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
                20
            ),
            [
                "# Plan",
                "  First read the file.",
                "|   fn main() {    pri",
                "| ntln!(\"a\") }",
                "  Then run it.",
            ]
        );
    }

    /// An edit was once shown as its arguments, on one long line.
    #[test]
    fn edits_are_diffs_at_the_call_and_at_its_result() {
        let change = |call: &str, is_diff: bool, text: &str| Change {
            call: call.into(),
            path: is_diff.then(|| "src/a.rs".into()),
            text: text.into(),
            is_diff,
        };
        let changes = [
            change("c1", true, " fn a() {\n-    old\n+    new\n@@\n }"),
            change("c2", false, "a whole file"),
        ];
        let content = json!([
            {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "src/a.rs", "oldText": "old"}},
            {"type": "toolCall", "id": "c2", "name": "write", "arguments": {"path": "b"}},
            {"type": "toolCall", "id": "c3", "name": "bash", "arguments": {"command": "ls"}},
        ]);
        let diff = [
            "- src/a.rs",
            "|  fn a() {",
            "< -    old",
            "+ +    new",
            "- @@",
            "|  }",
        ];
        assert_eq!(
            changed(
                json!({"role": "assistant", "content": content}),
                40,
                &changes
            ),
            [
                &["- → edit"][..],
                &diff,
                &["- → write", "| a whole file", "- → bash(command: ls)"],
            ]
            .concat()
        );
        let result = json!({"role": "toolResult", "toolCallId": "c1", "content": "1 change"});
        assert_eq!(
            changed(result, 40, &changes[..1]),
            [&diff[..], &["| 1 change"]].concat()
        );
    }

    #[test]
    fn calls_images_thinking_and_errors_are_named() {
        let content = json!([
            {"type": "thinking", "thinking": "hm"},
            {"type": "toolCall", "name": "bash", "arguments": {"command": "ls\u{1b}[2J", "n": 1}},
            {"type": "image", "mimeType": "image/png", "data": "A".repeat(4000)},
            {"type": "new", "x": 1},
        ]);
        assert_eq!(
            shown(
                json!({"role": "assistant", "content": content, "errorMessage": "refused"}),
                40
            ),
            [
                "? hm",
                "- → bash(command: ls␛[2J, n: 1)",
                "- [image: image/png, 3 kB]",
                "| {",
                "|   \"type\": \"new\",",
                "|   \"x\": 1",
                "| }",
                "! refused",
            ]
        );
        assert_eq!(
            shown(
                json!({"role": "bashExecution", "command": "make", "output": "a\tb\n", "exitCode": 2}),
                40
            ),
            ["- $ make", "| a   b", "! exit code 2"]
        );
    }

    #[test]
    fn a_large_entry_is_cut_in_the_preview_but_copied_whole() {
        let text = "漢".repeat(SHOWN);
        let entry = json!({"type": "message", "message": {"role": "toolResult", "content": text}});
        let lines = Document::of(&entry).layout(80);
        assert_eq!(
            lines.last().unwrap().prose.text,
            "… 524 kB more; copying takes all of it"
        );
        assert_eq!(plain_text(&entry), text);
    }

    #[test]
    fn entries_without_known_members_are_shown() {
        let odd = json!({"type": "message", "message": {"role": 1, "content": {"a": []}}});
        assert!(!Document::of(&odd).layout(20).is_empty());
        assert!(
            Document::of(&json!(null))
                .layout(20)
                .iter()
                .any(|line| line.prose.text == "null")
        );
    }
}
