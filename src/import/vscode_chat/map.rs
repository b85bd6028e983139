//! Makes the entries of a session's nodes.

use super::invocation::{self, markdown};
use super::request::short;
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Usage, elements};
use crate::value::{is_blank, joined, literal, text};
use treelined_core::json::{self, Key, Span, Visitor};

/// The deepest nesting of arguments that are read.
const DEEPEST: usize = 200;

/// The entry of a node.
pub(super) fn body(node: &Node, records: &[&[u8]]) -> Body {
    let members = match &node.kind {
        NodeKind::User => user(node, records),
        NodeKind::Assistant => answer(node, records),
        _ => result(node, records),
    };
    Body {
        kind: "message",
        members,
    }
}

/// The message of the user, and the names of its files.
fn user(node: &Node, records: &[&[u8]]) -> Vec<u8> {
    let message = records.first().copied().unwrap_or_default();
    let mut blocks = Blocks::default();
    let said = literal(Some(message)).or_else(|| literal(json::get(message, "text")));
    if let Some(said) = said.filter(|said| !is_blank(said)) {
        blocks.text(said);
    }
    let files = records.get(1).and_then(|data| json::get(data, "variables"));
    for file in files.into_iter().flat_map(elements) {
        let [kind, name, is_file] = json::get_each(file, ["kind", "name", "isFile"]);
        let kind = text(kind);
        let is_named = matches!(
            kind.as_deref(),
            Some("file" | "directory" | "image" | "symbol" | "paste")
        );
        if let (true, Some(name)) = (is_named || is_file == Some(b"true"), text(name)) {
            blocks.text(&json::quoted(&format!("[file: {name}]")));
        }
    }
    message::user(&blocks.array(), node.time)
}

/// A message of the model. Its records are a round, or parts of the response. An error may be the last one.
fn answer(node: &Node, records: &[&[u8]]) -> Vec<u8> {
    let note = node.note.as_deref().unwrap_or_default();
    let (stop, model) = note.split_once('\n').unwrap_or_default();
    let mut blocks = Pieces::default();
    let mut records = records;
    let mut error = None;
    if let ("error", Some((last, rest))) = (stop, records.split_last()) {
        error = literal(json::get(last, "message"));
        records = rest;
    }
    for record in records {
        match is_round(record) {
            true => blocks.round(record),
            false => blocks.part(record, &node.key),
        }
    }
    let has_calls = blocks.has_calls;
    // The name of a model has the name of its provider before it.
    let model = model.rsplit_once('/').map_or(model, |(_, model)| model);
    let model = (!model.is_empty()).then(|| json::quoted(model));
    ModelMessage {
        api: "openai-completions",
        provider: "github-copilot",
        model: model.as_deref(),
        content: blocks.end(),
        usage: Usage::default(),
        stop_reason: match stop {
            "error" => "error",
            "aborted" => "aborted",
            _ if has_calls => "toolUse",
            _ => "stop",
        },
        error,
        time: node.time,
    }
    .member()
}

fn is_round(record: &[u8]) -> bool {
    let [kind, calls, said] = json::get_each(record, ["kind", "toolCalls", "response"]);
    kind.is_none() && (calls.is_some() || said.is_some())
}

/// The result of the call whose id and tool are in the note.
fn result(node: &Node, records: &[&[u8]]) -> Vec<u8> {
    let record = records.first().copied().unwrap_or_default();
    let note = node.note.as_deref().unwrap_or_default();
    let (id, name) = note.split_once('\n').unwrap_or((note, ""));
    let (content, is_error) = match invocation::head(record) {
        Some(_) => invocation::output(record),
        None => (output(record), false),
    };
    message::tool_result(&json::quoted(id), name, &content, is_error, node.time)
}

/// The output of a tool, as the model got it.
fn output(result: &[u8]) -> Blocks {
    let mut blocks = Blocks::default();
    let parts = json::get(result, "content");
    for part in parts.into_iter().flat_map(elements) {
        let value = json::get(part, "value");
        if let Some(said) = literal(value) {
            blocks.text(said);
        } else if let Some(rendered) = value.filter(|value| value.starts_with(b"{")) {
            let mut texts = Texts::default();
            if json::walk(rendered, 0, &mut texts).is_ok() {
                blocks.text(&json::quoted(&texts.out));
            }
        } else if let Some(mime) = text(json::get(part, "mimeType")) {
            blocks.text(&json::quoted(&format!("[{mime}]")));
        }
    }
    blocks
}

/// Whether an entry can show a part of a response.
pub(super) fn is_said(part: &[u8]) -> bool {
    let mut pieces = Pieces::default();
    pieces.part(part, "");
    !pieces.end().is_empty()
}

/// Blocks. Texts that follow each other become one block.
#[derive(Default)]
struct Pieces {
    blocks: Blocks,
    text: Vec<u8>,
    has_calls: bool,
}

impl Pieces {
    /// Adds the words, the thoughts and the calls of a message of the model.
    fn round(&mut self, round: &[u8]) {
        let [said, thought, calls] = json::get_each(round, ["response", "thinking", "toolCalls"]);
        self.think(thought.and_then(|thought| json::get(thought, "text")));
        self.say(literal(said));
        self.flush();
        for call in calls.into_iter().flat_map(elements) {
            let [id, name, arguments] = json::get_each(call, ["id", "name", "arguments"]);
            let id = json::quoted(&short(&text(id).unwrap_or_default()));
            let name = literal(name).unwrap_or(b"\"unknown\"");
            self.call(&id, name, arguments);
        }
    }

    /// Adds a part of a response. `key` is the id of a call that has none.
    fn part(&mut self, part: &[u8], key: &str) {
        if let Some((id, name)) = invocation::head(part) {
            self.flush();
            let id = id.map_or_else(|| key.to_owned(), |id| short(&id));
            let arguments = invocation::arguments(part);
            let name = json::quoted(&short(&name));
            self.call(&json::quoted(&id), &name, Some(&arguments));
            return;
        }
        let [kind, value, content] = json::get_each(part, ["kind", "value", "content"]);
        match text(kind).as_deref() {
            Some("thinking") => self.think(value),
            Some("inlineReference") => {
                if let Some(name) = reference(part) {
                    self.say(Some(&json::quoted(&format!("`{name}`"))));
                }
            }
            Some("textEditGroup" | "notebookEditGroup") => {
                let path = json::get_path(part, &["uri", "path"]);
                if let Some(path) = text(path) {
                    self.say(Some(&json::quoted(&format!("\n[edit: {path}]\n"))));
                }
            }
            Some("markdownContent" | "markdownVuln") => self.say(markdown(content)),
            Some(_) => {}
            None => self.say(literal(Some(part)).or(literal(value))),
        }
    }

    fn call(&mut self, id: &[u8], name: &[u8], arguments: Option<&[u8]>) {
        // The arguments are a text with JSON.
        let parsed = literal(arguments).and_then(json::string);
        let parsed = parsed.filter(|text| {
            let is_object = text.trim_start().starts_with('{');
            let text = text.as_bytes();
            is_object && json::value_span(text).is_ok() && json::depth(text.trim_ascii()) <= DEEPEST
        });
        match parsed {
            Some(text) => self.blocks.call(id, name, Some(text.trim().as_bytes())),
            None => self
                .blocks
                .call(id, name, arguments.filter(|it| *it != b"null")),
        }
        self.has_calls = true;
    }

    /// Adds a text to the last one.
    fn say(&mut self, said: Option<&[u8]>) {
        let inner = said.and_then(|said| said.get(1..said.len().saturating_sub(1)));
        self.text.extend_from_slice(inner.unwrap_or_default());
    }

    /// Adds a thought: a text, or a list of texts.
    fn think(&mut self, thought: Option<&[u8]>) {
        let parts = thought.into_iter().flat_map(elements);
        let parts = parts.filter_map(|part| literal(Some(part)));
        let thought = match literal(thought) {
            Some(thought) => thought.to_vec(),
            None => joined(parts),
        };
        if !is_blank(&thought) {
            self.flush();
            self.blocks.thinking(&thought, None);
        }
    }

    fn flush(&mut self) {
        let said = [b"\"", &*std::mem::take(&mut self.text), b"\""].concat();
        if !is_blank(&said) {
            self.blocks.text(&said);
        }
    }

    fn end(mut self) -> Blocks {
        self.flush();
        self.blocks
    }
}

/// The name of a file or symbol to which a response refers.
fn reference(part: &[u8]) -> Option<String> {
    let [name, target] = json::get_each(part, ["name", "inlineReference"]);
    let target = target.unwrap_or(b"{}");
    let [symbol, path] = json::get_each(target, ["name", "path"]);
    let location = json::get_path(target, &["uri", "path"]);
    let path = text(path).or_else(|| text(location));
    let file = || {
        let path = path.as_deref()?;
        Some(path.rsplit('/').next().unwrap_or(path).to_owned())
    };
    let named = text(name)
        .or_else(|| text(symbol))
        .map(|name| name.into_owned());
    named.filter(|name| !name.is_empty()).or_else(file)
}

/// Collects the texts of a rendered prompt.
#[derive(Default)]
struct Texts {
    out: String,
    /// For each open container: its text, and whether a line break comes before it.
    open: Vec<(Option<String>, bool)>,
    key: Option<TextKey>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKey {
    Text,
    LineBreak,
}

impl Visitor for Texts {
    fn open(&mut self, _at: usize, _is_object: bool) {
        self.open.push((None, false));
        self.key = None;
    }

    fn key(&mut self, text: &[u8], key: &Key) {
        self.key = match &*key.name(text) {
            b"text" => Some(TextKey::Text),
            b"lineBreakBefore" => Some(TextKey::LineBreak),
            _ => None,
        };
    }

    fn leaf(&mut self, text: &[u8], value: Span) {
        let raw = text.get(value).unwrap_or_default();
        if let (Some(open), Some(key)) = (self.open.last_mut(), self.key.take()) {
            match key {
                TextKey::Text => open.0 = json::string(raw).map(String::from),
                TextKey::LineBreak => open.1 = !matches!(raw, b"false" | b"0" | b"null"),
            }
        }
    }

    fn close(&mut self, _end: usize, _is_object: bool) {
        if let Some((Some(text), breaks)) = self.open.pop() {
            if breaks && !self.out.is_empty() {
                self.out.push('\n');
            }
            self.out.push_str(&text);
        }
    }
}
