//! Makes the entries of a session's nodes.

use super::invocation;
use super::pieces::Pieces;
use crate::member::{Body, Node, NodeKind};
use crate::message::{self, Blocks, ModelMessage, Usage, elements};
use crate::value::{is_blank, literal, text};
use treelined_core::json::{self, Key, Span, Visitor};

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

/// A message of the model. Its records are a round, or parts of the response. The last record may be an error.
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
    // The name of a model begins with the name of its provider.
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
