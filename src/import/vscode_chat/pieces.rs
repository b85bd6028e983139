//! Collects the blocks of a message of the model.

use super::invocation::{self, markdown, short};
use crate::message::{Blocks, elements};
use crate::value::{is_blank, joined, literal, text};
use treelined_core::json;

/// The deepest nesting of arguments that are read.
const DEEPEST: usize = 200;

/// Whether an entry can show a part of a response.
pub(super) fn is_said(part: &[u8]) -> bool {
    let mut pieces = Pieces::default();
    pieces.part(part, "");
    !pieces.end().is_empty()
}

/// Blocks. Texts that follow each other become one block.
#[derive(Default)]
pub(super) struct Pieces {
    blocks: Blocks,
    text: Vec<u8>,
    pub(super) has_calls: bool,
}

impl Pieces {
    /// Adds the words, the thoughts and the calls of a message of the model.
    pub(super) fn round(&mut self, round: &[u8]) {
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

    /// Adds a part of a response. `key` is the id for a call that has no id.
    pub(super) fn part(&mut self, part: &[u8], key: &str) {
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

    /// Adds a text to the last text.
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

    pub(super) fn end(mut self) -> Blocks {
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
