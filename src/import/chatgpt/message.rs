//! Reads the messages of a conversation.

use crate::message::elements;
use crate::value::{is_blank, literal, millis_of_seconds, text};
use std::borrow::Cow;
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// A node of the mapping.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedNode<'a> {
    pub(super) message: Option<Message<'a>>,
    pub(super) parent: Option<&'a [u8]>,
    pub(super) children: Option<&'a [u8]>,
}

impl<'a> MappedNode<'a> {
    pub(super) fn read(node: &'a [u8]) -> Self {
        let [message, parent, children] = json::get_each(node, ["message", "parent", "children"]);
        let message = message.filter(|message| message.starts_with(b"{"));
        Self {
            message: message.map(Message::read),
            parent,
            children,
        }
    }
}

/// The members of a message. All are raw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    author: Option<&'a [u8]>,
    created: Option<&'a [u8]>,
    pub(super) content: Option<&'a [u8]>,
    recipient: Option<&'a [u8]>,
    metadata: Option<&'a [u8]>,
}

/// The kind of entry that a message becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    User,
    Scaffolding,
    Answer,
    Call,
    /// A message that a tool has written.
    Tool,
    /// An event, which clients show only on demand.
    Notice,
}

impl<'a> Message<'a> {
    pub(super) fn read(message: &'a [u8]) -> Self {
        let names = ["author", "create_time", "content", "recipient", "metadata"];
        let [author, created, content, recipient, metadata] = json::get_each(message, names);
        Self {
            author,
            created,
            content,
            recipient,
            metadata,
        }
    }

    pub(super) fn role(&self) -> Cow<'a, str> {
        let role = self.author.and_then(|author| json::get(author, "role"));
        text(role).unwrap_or_default()
    }

    /// The name of the tool that has written the message.
    pub(super) fn tool(&self) -> Option<Cow<'a, str>> {
        text(self.author.and_then(|author| json::get(author, "name")))
    }

    /// The name of the tool to which the message is addressed.
    pub(super) fn recipient(&self) -> Option<Cow<'a, str>> {
        text(self.recipient).filter(|recipient| recipient != "all" && !recipient.is_empty())
    }

    pub(super) fn time(&self) -> Option<Millis> {
        millis_of_seconds(self.created)
    }

    pub(super) fn kind(&self) -> Cow<'a, str> {
        let kind = self
            .content
            .and_then(|content| json::get(content, "content_type"));
        text(kind).unwrap_or_default()
    }

    pub(super) fn metadata(&self, name: &str) -> Option<&'a [u8]> {
        self.metadata.and_then(|metadata| json::get(metadata, name))
    }

    fn is(&self, flag: &str) -> bool {
        self.metadata(flag) == Some(b"true")
    }

    /// The kind of entry; `None` if the message has no content.
    pub(super) fn shape(&self) -> Option<Shape> {
        let kind = self.kind();
        let is_context = matches!(&*kind, "user_editable_context" | "model_editable_context");
        let is_hidden =
            self.is("is_visually_hidden_from_conversation") || self.is("is_user_system_message");
        let shape = match &*self.role() {
            "assistant" if self.recipient().is_some() => return Some(Shape::Call),
            "tool" => return Some(Shape::Tool),
            "user" | "assistant" | "system" if is_context => Shape::Scaffolding,
            "user" if is_hidden => Shape::Scaffolding,
            "user" => Shape::User,
            "assistant" if kind == "reasoning_recap" => Shape::Notice,
            "assistant" => Shape::Answer,
            "system" => Shape::Scaffolding,
            _ => Shape::Notice,
        };
        let has_files = shape == Shape::User && self.attachments().next().is_some();
        let says = has_files || self.texts().iter().any(|text| !is_blank(text.raw()));
        // Content of an unknown type is copied unchanged.
        let is_unknown = self.content.is_some() && !is_known(&kind);
        match (says, is_unknown) {
            (true, _) => Some(shape),
            (false, true) => Some(Shape::Notice),
            (false, false) => None,
        }
    }

    /// The texts of the message in order, without the names of its files.
    pub(super) fn texts(&self) -> Vec<Text<'a>> {
        let Some(content) = self.content else {
            return Vec::new();
        };
        let names = [
            "parts",
            "thoughts",
            "text",
            "result",
            "content",
            "user_profile",
            "user_instructions",
            "model_set_context",
            "title",
            "url",
        ];
        let [
            parts,
            thoughts,
            text,
            result,
            inner,
            profile,
            instructions,
            context,
            title,
            url,
        ] = json::get_each(content, names);
        let mut texts: Vec<Text<'a>> = Vec::new();
        texts.extend(parts.into_iter().flat_map(elements).filter_map(part));
        for thought in thoughts.into_iter().flat_map(elements) {
            let [summary, content] = json::get_each(thought, ["summary", "content"]);
            let said = [summary, content].into_iter().filter_map(literal);
            texts.extend(said.map(Text::Thought));
        }
        let own = [
            title,
            url,
            text,
            result,
            inner,
            profile,
            instructions,
            context,
        ];
        texts.extend(own.into_iter().filter_map(literal).map(Text::Said));
        texts
    }

    /// The names of the files that the user has sent.
    pub(super) fn attachments(&self) -> impl Iterator<Item = &'a [u8]> {
        let files = self.metadata("attachments").into_iter().flat_map(elements);
        files.filter_map(|file| literal(json::get(file, "name")))
    }
}

/// A text of a message.
#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    /// A raw string.
    Said(&'a [u8]),
    Thought(&'a [u8]),
    /// The name of a file that is not in the message; also a raw string.
    Named(Vec<u8>),
}

impl Text<'_> {
    pub(super) fn raw(&self) -> &[u8] {
        match self {
            Self::Said(raw) | Self::Thought(raw) => raw,
            Self::Named(raw) => raw,
        }
    }
}

/// The text of an element of `parts`.
fn part(part: &[u8]) -> Option<Text<'_>> {
    if part.starts_with(b"\"") {
        return Some(Text::Said(part));
    }
    let names = ["text", "content_type", "asset_pointer"];
    let [said, kind, pointer] = json::get_each(part, names);
    if let Some(said) = literal(said) {
        return Some(Text::Said(said));
    }
    let kind = text(kind)?;
    let name = match text(pointer) {
        Some(pointer) => format!("[{kind}: {pointer}]"),
        None => format!("[{kind}]"),
    };
    Some(Text::Named(json::quoted(&name)))
}

/// Whether content of this type is read.
fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "text"
            | "multimodal_text"
            | "code"
            | "execution_output"
            | "thoughts"
            | "reasoning_recap"
            | "tether_quote"
            | "tether_browsing_display"
            | "tether_browsing_code"
            | "sonic_webpage"
            | "system_error"
            | "user_editable_context"
            | "model_editable_context"
            | ""
    )
}
