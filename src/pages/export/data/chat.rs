//! Messages in the form that chat APIs and trainers read: `role`, `content`, `tool_calls`, `tool_call_id`.

use super::json::{self as out_json, key, readable, text, text_of};
use std::borrow::Cow;
use treelined_core::bytes::part;
use treelined_core::json::{self, Elements};

/// A block of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block<'m> {
    Text(Cow<'m, str>),
    Thinking(Cow<'m, str>),
    Image {
        mime_type: Cow<'m, str>,
        /// The bytes of the image in Base64.
        data: Cow<'m, str>,
    },
    Call(Call<'m>),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call<'m> {
    pub id: Cow<'m, str>,
    pub name: Cow<'m, str>,
    /// The arguments as JSON; `{}` if the message has none.
    pub arguments: Cow<'m, [u8]>,
}

/// A message of the context with the roles `system`, `user`, `assistant` and `toolResult` (semantics.md §1.5).
pub(super) struct Message<'m> {
    pub json: &'m [u8],
    pub role: Cow<'m, str>,
    pub blocks: Vec<Block<'m>>,
}

/// How a chat message arranges the name and the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallForm {
    /// `{id, type, function: {name, arguments}}`, the form of OpenAI's chat API.
    Function,
    /// `{id, type, name, arguments}`, the form of verifiers.
    Flat,
}

impl<'m> Message<'m> {
    pub(super) fn of(message: &'m [u8]) -> Self {
        Self {
            json: message,
            role: text_of(message, "role").unwrap_or_default(),
            blocks: blocks(json::get(message, "content").unwrap_or_default()),
        }
    }

    /// The text blocks of the message, joined by line breaks.
    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(&**text),
            _ => None,
        });
        joined(texts)
    }

    /// The text of the message, with a name in place of each image. This is for members that can only be text.
    pub(super) fn text_with_images_named(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.clone()),
            Block::Image { mime_type, .. } => Some(format!("[image: {mime_type}]").into()),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        joined(texts.iter().map(|text| &**text))
    }

    pub(super) fn thinking(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Thinking(text) => Some(&**text),
            _ => None,
        });
        joined(texts)
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call<'m>> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The prompt in a system message: its text and its sections.
    pub(super) fn prompt(&self) -> String {
        let mut prompt = self.text();
        let sections = json::get(self.json, "sections").unwrap_or_default();
        let Ok(mut members) = json::Members::open(sections, 0) else {
            return prompt;
        };
        while let Ok(Some(member)) = members.next_member() {
            if let Some(section) = json::string(part(sections, member.value)) {
                if !prompt.is_empty() {
                    prompt.push_str("\n\n");
                }
                prompt.push_str(&section);
            }
        }
        prompt
    }

    /// Whether the message has text, thinking or a call.
    pub(super) fn says_anything(&self) -> bool {
        self.blocks.iter().any(|block| match block {
            Block::Text(text) | Block::Thinking(text) => !text.trim().is_empty(),
            Block::Image { .. } | Block::Call(_) => true,
        })
    }

    /// Appends the message as a chat message.
    pub(super) fn push(&self, out: &mut Vec<u8>, form: CallForm) {
        out.push(b'{');
        match &*self.role {
            "system" => {
                text(out, "role", "system");
                text(out, "content", &self.prompt());
            }
            "assistant" => self.push_assistant(out, form),
            "toolResult" => {
                let member = |name| text_of(self.json, name).unwrap_or_default();
                text(out, "role", "tool");
                text(out, "tool_call_id", &member("toolCallId"));
                text(out, "name", &member("toolName"));
                text(out, "content", &self.text_with_images_named());
            }
            _ => {
                text(out, "role", "user");
                self.push_parts(out);
            }
        }
        out.push(b'}');
    }

    fn push_assistant(&self, out: &mut Vec<u8>, form: CallForm) {
        text(out, "role", "assistant");
        text(out, "content", &self.text_with_images_named());
        let thinking = self.thinking();
        if !thinking.is_empty() {
            text(out, "reasoning_content", &thinking);
        }
        let mut calls = self.calls().peekable();
        if calls.peek().is_none() {
            return;
        }
        key(out, "tool_calls");
        out.push(b'[');
        for (number, call) in calls.enumerate() {
            if number > 0 {
                out.push(b',');
            }
            call.push(out, form);
        }
        out.push(b']');
    }

    /// Appends the content of a user message: a text, or an array of parts if it has images.
    fn push_parts(&self, out: &mut Vec<u8>) {
        let is_image = |block: &Block<'_>| matches!(block, Block::Image { .. });
        if !self.blocks.iter().any(is_image) {
            text(out, "content", &self.text());
            return;
        }
        key(out, "content");
        out.push(b'[');
        for block in &self.blocks {
            let mut part = vec![b'{'];
            match block {
                Block::Text(said) => {
                    text(&mut part, "type", "text");
                    text(&mut part, "text", said);
                }
                Block::Image { mime_type, data } => {
                    text(&mut part, "type", "image_url");
                    key(&mut part, "image_url");
                    part.push(b'{');
                    text(&mut part, "url", &format!("data:{mime_type};base64,{data}"));
                    part.push(b'}');
                }
                Block::Thinking(_) | Block::Call(_) => continue,
            }
            part.push(b'}');
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            out.extend_from_slice(&part);
        }
        out.push(b']');
    }
}

impl Call<'_> {
    fn push(&self, out: &mut Vec<u8>, form: CallForm) {
        let arguments = String::from_utf8_lossy(&self.arguments);
        out.push(b'{');
        text(out, "id", &self.id);
        text(out, "type", "function");
        if form == CallForm::Function {
            key(out, "function");
            out.push(b'{');
        }
        text(out, "name", &self.name);
        text(out, "arguments", &arguments);
        if form == CallForm::Function {
            out.push(b'}');
        }
        out.push(b'}');
    }
}

fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut joined = String::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(text);
    }
    joined
}

/// The blocks of a content. Blocks of unknown types are left out.
fn blocks(content: &[u8]) -> Vec<Block<'_>> {
    if let Some(text) = json::string(content) {
        return vec![Block::Text(text)];
    }
    let mut blocks = Vec::new();
    let Ok(mut elements) = Elements::open(content, 0) else {
        return blocks;
    };
    while let Ok(Some(span)) = elements.next_value() {
        blocks.extend(block(part(content, span)));
    }
    blocks
}

fn block(raw: &[u8]) -> Option<Block<'_>> {
    let member = |name| text_of(raw, name);
    Some(match &*member("type")? {
        "text" => Block::Text(member("text")?),
        "thinking" => Block::Thinking(member("thinking")?),
        "image" => Block::Image {
            mime_type: member("mimeType").unwrap_or_else(|| "unknown".into()),
            data: member("data")?,
        },
        "toolCall" => Block::Call(Call {
            id: member("id").unwrap_or_default(),
            name: member("name").unwrap_or_default(),
            arguments: match json::get(raw, "arguments") {
                None | Some(b"null") => Cow::Borrowed(b"{}"),
                Some(arguments) => Cow::Owned(readable(arguments)),
            },
        }),
        _ => return None,
    })
}

/// Whether a message is the result of a tool call.
pub(super) fn is_result(message: &[u8]) -> bool {
    text_of(message, "role").as_deref() == Some("toolResult")
}

/// The tools that a model has after a number of messages.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tools(Vec<(String, Vec<u8>)>);

impl Tools {
    pub(super) fn of(messages: &[Vec<u8>]) -> Self {
        let mut tools = Self::default();
        for message in messages {
            if text_of(message, "role").as_deref() == Some("system") {
                tools.take(message);
            }
        }
        tools
    }

    /// Applies a system message, which may add and remove tools.
    fn take(&mut self, message: &[u8]) {
        for (name, _) in named(json::get(message, "toolsRemoved")) {
            self.0.retain(|(known, _)| *known != name);
        }
        for (name, tool) in named(json::get(message, "toolsAdded")) {
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = tool,
                None => self.0.push((name, tool)),
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the tools as an array, in the form of verifiers.
    pub(super) fn push_flat(&self, out: &mut Vec<u8>) {
        let tools: Vec<&[u8]> = self.0.iter().map(|(_, tool)| &**tool).collect();
        out.push(b'[');
        out.extend_from_slice(&tools.join(&b','));
        out.push(b']');
    }

    /// Appends the tools as an array, in the form of OpenAI's chat API.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (number, (_, tool)) in self.0.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            out.push(b'{');
            text(out, "type", "function");
            key(out, "function");
            out.extend_from_slice(tool);
            out.push(b'}');
        }
        out.push(b']');
    }
}

/// The tools of a list by their names. Each has `name`, `description` and `parameters`.
fn named(list: Option<&[u8]>) -> Vec<(String, Vec<u8>)> {
    let list = list.unwrap_or_default();
    let mut found = Vec::new();
    let Ok(mut elements) = Elements::open(list, 0) else {
        return found;
    };
    while let Ok(Some(span)) = elements.next_value() {
        let raw = part(list, span);
        let Some(name) = text_of(raw, "name") else {
            continue;
        };
        let mut tool = vec![b'{'];
        text(&mut tool, "name", &name);
        if let Some(description) = text_of(raw, "description") {
            text(&mut tool, "description", &description);
        }
        if let Some(parameters) = json::get(raw, "parameters").filter(|raw| raw.starts_with(b"{")) {
            key(&mut tool, "parameters");
            tool.extend_from_slice(&out_json::readable(parameters));
        }
        tool.push(b'}');
        found.push((name.into_owned(), tool));
    }
    found
}
