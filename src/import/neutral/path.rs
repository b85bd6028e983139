//! The path that is handed over, as data.

use super::loss::Losses;
use serde_json::{Map, Value};
use treelined_core::agent::Tool;

/// The options of a handoff.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The agent that gets the path; `None` for any agent.
    pub tool: Option<Tool>,
    /// The number of turns at the end of the path that are handed over; `None` for all.
    pub last: Option<usize>,
    /// Whether thoughts are written into the text.
    pub keeps_thoughts: bool,
    /// A text that is handed over in place of the messages before the path.
    pub summary: Option<&'a str>,
}

/// A path that any agent accepts. It begins with the user, the roles alternate, and each call has one result after
/// it. If its last message is the user's, that message is the prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NeutralPath {
    pub messages: Vec<Message>,
    /// The last message of the user, if no model has answered it.
    pub prompt: Option<String>,
    pub losses: Losses,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    User(UserMessage),
    Model(ModelMessage),
    /// The results of the calls in the previous message, one for each call.
    Results(Vec<CallResult>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    pub parts: Vec<Part>,
    /// Whether the message replaces earlier messages.
    pub is_summary: bool,
    /// Whether its last part is what the user said, and not a summary or the output of a command.
    pub is_prompt: bool,
    /// The entries from which the message is made; none if it was added.
    pub entries: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelMessage {
    pub parts: Vec<ModelPart>,
    /// The model that wrote the first of the joined messages.
    pub model: Option<Model>,
    pub entries: Vec<String>,
}

/// The model that an entry names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub provider: String,
    pub id: String,
}

/// A part of a user's message, or of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Image {
        mime_type: String,
        /// The image in Base64.
        data: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum ModelPart {
    Text(String),
    Call(Call),
}

/// The call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// 1 to 64 characters of `A`–`Z`, `a`–`z`, `0`–`9`, `_`, `-`. It is unique on the path.
    pub id: String,
    /// The agent's name for the tool. If the agent does not have the tool, the name in the entry.
    pub name: String,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    pub call_id: String,
    /// The name of the tool that was called.
    pub name: String,
    pub parts: Vec<Part>,
    pub is_error: bool,
    /// The entry of the result; `None` if the call had no result, so that one was added.
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

    /// Whether the path begins with a text that replaces earlier messages (`summary` of [`Options`]).
    pub fn begins_with_summary(&self) -> bool {
        let first = self.messages.first();
        matches!(first, Some(Message::User(said)) if said.is_summary && said.entries.is_empty())
    }

    /// The estimated size of messages and prompt, in tokens (semantics.md §2).
    pub fn tokens(&self) -> u64 {
        let messages: u64 = self.messages.iter().map(Message::tokens).sum();
        messages + self.prompt.as_deref().map_or(0, tokens_of)
    }
}

impl Message {
    /// The entries from which the message is made.
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

/// The estimated number of tokens in a text.
pub fn tokens_of(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// The number of tokens that an image counts as (semantics.md §2).
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

/// The texts of the parts, each on new lines.
pub fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
