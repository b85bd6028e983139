//! Writes content blocks, usage and messages, for the mappers.
//!
//! All values are raw JSON from the records, so that numbers and lone surrogates keep their bytes.

use treelined_core::json;
use treelined_core::timestamp::Millis;

/// The deepest nesting of a value that is copied unchanged. The entry around the value adds some levels.
const DEEPEST: usize = 200;

/// Content blocks, in the order in which they are added.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    raw: Vec<u8>,
}

impl Blocks {
    /// Adds a `text` block. `text` is a raw string.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.block("text", &[("text", text)]);
    }

    /// Adds a `thinking` block. `thinking` and `signature` are raw strings.
    pub(crate) fn thinking(&mut self, thinking: &[u8], signature: Option<&[u8]>) {
        match signature {
            Some(signature) => self.block(
                "thinking",
                &[("thinking", thinking), ("thinkingSignature", signature)],
            ),
            None => self.block("thinking", &[("thinking", thinking)]),
        }
    }

    /// Adds a `thinking` block that has only an encrypted text. `encrypted` is a raw string.
    pub(crate) fn hidden_thinking(&mut self, encrypted: &[u8]) {
        self.block(
            "thinking",
            &[
                ("thinking", b"\"\""),
                ("thinkingSignature", encrypted),
                ("redacted", b"true"),
            ],
        );
    }

    /// Adds an `image` block. `data` and `mime_type` are raw strings.
    pub(crate) fn image(&mut self, data: &[u8], mime_type: &[u8]) {
        self.block("image", &[("data", data), ("mimeType", mime_type)]);
    }

    /// Adds a `toolCall` block. `id` and `name` are raw strings, and `arguments` is any JSON. If `arguments` is not
    /// an object, or has more than [`DEEPEST`] levels, its text is written into `_raw`.
    pub(crate) fn call(&mut self, id: &[u8], name: &[u8], arguments: Option<&[u8]>) {
        let arguments = match arguments {
            None => b"{}".to_vec(),
            Some(raw) if raw.starts_with(b"{") && json::depth(raw) <= DEEPEST => raw.to_vec(),
            Some(raw) if raw.starts_with(b"\"") => [b"{\"_raw\":", raw, b"}"].concat(),
            Some(raw) => {
                let text = json::quoted(&String::from_utf8_lossy(raw));
                [b"{\"_raw\":", &*text, b"}"].concat()
            }
        };
        self.block(
            "toolCall",
            &[("id", id), ("name", name), ("arguments", &arguments)],
        );
    }

    /// Copies a block of a type that sessions do not know.
    pub(crate) fn other(&mut self, block: &[u8]) {
        if json::depth(block) <= DEEPEST {
            self.separate();
            json::push_raw(&mut self.raw, block);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The blocks as a raw array.
    pub(crate) fn array(&self) -> Vec<u8> {
        [b"[", &*self.raw, b"]"].concat()
    }

    fn block(&mut self, kind: &str, members: &[(&str, &[u8])]) {
        self.separate();
        self.raw.push(b'{');
        let mut object = Object::new(&mut self.raw);
        object.text("type", kind);
        for (name, value) in members {
            object.raw(name, value);
        }
        self.raw.push(b'}');
    }

    fn separate(&mut self) {
        if !self.raw.is_empty() {
            self.raw.push(b',');
        }
    }
}

/// Writes the members of an object. The caller writes the braces.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            is_first: true,
        }
    }

    /// Begins after members that were already written.
    pub(crate) fn after(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            is_first: false,
        }
    }

    /// Writes a member. `value` is raw JSON.
    pub(crate) fn raw(&mut self, name: &str, value: &[u8]) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        json::push_string(self.out, name);
        self.out.push(b':');
        json::push_raw(self.out, value);
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.raw(name, &json::quoted(value));
    }

    pub(crate) fn number(&mut self, name: &str, value: i64) {
        self.raw(name, value.to_string().as_bytes());
    }
}

/// The tokens of a model's message.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The tokens that were sent, without the tokens from the cache.
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
}

impl Usage {
    /// The usage as raw JSON. The cost is not known. It is written as zero, because pi reads it from every message.
    fn raw(self) -> Vec<u8> {
        let total = self.input.saturating_add(self.output);
        let total = total.saturating_add(self.cache_read);
        let Self {
            input,
            output,
            cache_read,
            cache_write,
        } = self;
        let total = total.saturating_add(cache_write);
        format!(
            r#"{{"input":{input},"output":{output},"cacheRead":{cache_read},"cacheWrite":{cache_write},"totalTokens":{total},"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}}"#
        )
        .into_bytes()
    }
}

/// A message of the model. `model` and `error` are raw strings.
#[derive(Debug)]
pub(crate) struct ModelMessage<'a> {
    pub(crate) api: &'static str,
    pub(crate) provider: &'static str,
    pub(crate) model: Option<&'a [u8]>,
    pub(crate) content: Blocks,
    pub(crate) usage: Usage,
    pub(crate) stop_reason: &'static str,
    pub(crate) error: Option<&'a [u8]>,
    pub(crate) time: Option<Millis>,
}

impl ModelMessage<'_> {
    /// The member `message` of an entry, with a comma before it.
    pub(crate) fn member(&self) -> Vec<u8> {
        message("assistant", self.time, |object| {
            object.raw("content", &self.content.array());
            object.text("api", self.api);
            object.text("provider", self.provider);
            object.raw("model", self.model.unwrap_or(b"\"unknown\""));
            object.raw("usage", &self.usage.raw());
            object.text("stopReason", self.stop_reason);
            if let Some(error) = self.error {
                object.raw("errorMessage", error);
            }
        })
    }
}

/// The member `message` of an entry with a message of the user. `content` is raw: a string or blocks.
pub(crate) fn user(content: &[u8], time: Option<Millis>) -> Vec<u8> {
    message("user", time, |object| object.raw("content", content))
}

/// The member `message` of an entry with the result of a tool. `id` is a raw string.
pub(crate) fn tool_result(
    id: &[u8],
    name: &str,
    content: &Blocks,
    is_error: bool,
    time: Option<Millis>,
) -> Vec<u8> {
    message("toolResult", time, |object| {
        object.raw("toolCallId", id);
        object.text("toolName", name);
        object.raw("content", &content.array());
        object.raw("isError", if is_error { b"true" } else { b"false" });
    })
}

/// The members of a `custom_message`, for a message of the program to the model. `content` is raw: a string or
/// blocks.
pub(crate) fn scaffolding(custom_type: &str, content: &[u8], is_shown: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 64);
    let mut object = Object::after(&mut out);
    object.text("customType", custom_type);
    object.raw("content", content);
    object.raw("display", if is_shown { b"true" } else { b"false" });
    out
}

/// The members of the `custom` entry for a record that has the same id as an earlier record.
pub(crate) fn duplicate(record: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(record.len());
    match json::depth(record) <= DEEPEST {
        true => json::push_one_line(&mut data, record),
        false => data.extend_from_slice(b"{}"),
    }
    let mut out = Vec::with_capacity(data.len() + 64);
    let mut object = Object::after(&mut out);
    object.text("customType", "import.duplicate");
    object.raw("data", &data);
    out
}

fn message(role: &str, time: Option<Millis>, members: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = b",\"message\":{".to_vec();
    let mut object = Object::new(&mut out);
    object.text("role", role);
    members(&mut object);
    if let Some(time) = time {
        object.number("timestamp", time);
    }
    out.push(b'}');
    out
}

/// The value of a raw whole number; 0 for any other value.
pub(crate) fn whole(raw: Option<&[u8]>) -> u64 {
    let text = raw.and_then(|raw| std::str::from_utf8(raw).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The raw value, if it is a string.
pub(crate) fn literal(raw: Option<&[u8]>) -> Option<&[u8]> {
    raw.filter(|raw| raw.starts_with(b"\""))
}

/// The elements of a raw array, in order. Any other value has none.
pub(crate) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut elements = json::Elements::open(array, 0).ok();
    std::iter::from_fn(move || array.get(elements.as_mut()?.next_value().ok()??))
}
