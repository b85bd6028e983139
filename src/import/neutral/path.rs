//! The path as data: its messages, and what they have.

use super::loss::Losses;
use crate::tool::Tool;
use serde_json::{Map, Value};

/// The options of a handoff.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The agent; `None` for any.
    pub tool: Option<Tool>,
    /// The number of turns, the last ones; `None` for all.
    pub last: Option<usize>,
    /// Whether thoughts are put into the text.
    pub keeps_thoughts: bool,
    /// The text that stands for what was before the path.
    pub summary: Option<&'a str>,
}

/// A path as any agent takes it: it begins with the user, roles alternate, each call has one result after it, and a
/// question of the user at its end is the prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NeutralPath {
    pub messages: Vec<Message>,
    /// The last words of the user, if no model has answered them.
    pub prompt: Option<String>,
    pub losses: Losses,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    User(UserMessage),
    Model(ModelMessage),
    /// The results of the calls of the message before, one each.
    Results(Vec<CallResult>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    pub parts: Vec<Part>,
    /// Whether it stands for what was said before.
    pub is_summary: bool,
    /// The entries that it is made of; none if it was added.
    pub entries: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelMessage {
    pub parts: Vec<ModelPart>,
    /// The model that said it first.
    pub model: Option<Model>,
    pub entries: Vec<String>,
}

/// A model as an entry names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub provider: String,
    pub id: String,
}

/// A part of what a user said, or of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Image {
        mime_type: String,
        /// Base64.
        data: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModelPart {
    Text(String),
    Call(Call),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// 1 to 64 of `A`–`Z`, `a`–`z`, `0`–`9`, `_`, `-`; unique on the path.
    pub id: String,
    /// The name that the agent has for the tool, if it has one.
    pub name: String,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    pub call_id: String,
    /// The name of the call.
    pub name: String,
    pub parts: Vec<Part>,
    pub is_error: bool,
    /// The entry; `None` for a call that was closed.
    pub entry: Option<String>,
}

impl NeutralPath {
    /// The last entry that is handed over.
    pub fn last_entry(&self) -> Option<&str> {
        let mut entries = self.messages.iter().rev().filter_map(Message::last_entry);
        entries.next()
    }

    /// The first entry that is handed over.
    pub fn first_entry(&self) -> Option<&str> {
        let entries = self.messages.iter().flat_map(Message::entries);
        entries.into_iter().next()
    }

    /// Whether it begins with a text that stands for what was before (`summary` of [`Options`]).
    pub fn begins_with_summary(&self) -> bool {
        let first = self.messages.first();
        matches!(first, Some(Message::User(said)) if said.is_summary && said.entries.is_empty())
    }

    /// The size in tokens of messages and prompt, estimated (semantics.md §2).
    pub fn tokens(&self) -> u64 {
        let messages: u64 = self.messages.iter().map(Message::tokens).sum();
        messages + self.prompt.as_deref().map_or(0, tokens_of)
    }
}

impl Message {
    /// The entries that it is made of.
    pub fn entries(&self) -> Vec<&str> {
        match self {
            Self::User(UserMessage { entries, .. }) | Self::Model(ModelMessage { entries, .. }) => {
                entries.iter().map(String::as_str).collect()
            }
            Self::Results(results) => {
                let entries = results.iter();
                entries
                    .filter_map(|result| result.entry.as_deref())
                    .collect()
            }
        }
    }

    fn last_entry(&self) -> Option<&str> {
        self.entries().last().copied()
    }

    fn tokens(&self) -> u64 {
        let characters: u64 = match self {
            Self::User(said) => said.parts.iter().map(Part::characters).sum(),
            Self::Model(said) => said.parts.iter().map(ModelPart::characters).sum(),
            Self::Results(results) => {
                let parts = results.iter().flat_map(|result| &result.parts);
                parts.map(Part::characters).sum()
            }
        };
        characters.div_ceil(4)
    }
}

/// The tokens of a text, estimated.
pub fn tokens_of(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// The tokens that an image counts (semantics.md §2).
const IMAGE_TOKENS: u64 = 1200;

impl Part {
    fn characters(&self) -> u64 {
        match self {
            Self::Text(text) => text.chars().count() as u64,
            Self::Image { .. } => IMAGE_TOKENS * 4,
        }
    }
}

impl ModelPart {
    fn characters(&self) -> u64 {
        match self {
            Self::Text(text) => text.chars().count() as u64,
            Self::Call(call) => {
                let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
                (call.name.chars().count() + arguments.chars().count()) as u64
            }
        }
    }
}

/// The texts of parts, one below the other.
pub fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
