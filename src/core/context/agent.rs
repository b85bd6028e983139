//! The messages of one entry for a running agent (`format:"agent"`, semantics.md §1).
//!
//! Stored messages keep their bytes; summaries and custom messages are built from the raw values of their
//! entry. The caller decides which entries of a path are in the context.

use crate::entry::{Kind, Role};
use crate::json;
use crate::timestamp::{self, Millis};

/// A message as a running agent sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentMessage {
    pub role: Role,
    /// One JSON object.
    pub json: Vec<u8>,
}

/// The messages of `entry`: none, one, or two for a compaction that has a system message (which comes
/// first). A message entry whose `message` is not an object has none.
pub(crate) fn messages(kind: Kind, role: Role, entry: &[u8]) -> Vec<AgentMessage> {
    match kind {
        Kind::Message => stored(role, entry).into_iter().collect(),
        Kind::CustomMessage => vec![custom(entry)],
        Kind::BranchSummary => branch_summary(entry).into_iter().collect(),
        Kind::Compaction => {
            let system = system_message(entry);
            system
                .into_iter()
                .chain([compaction_summary(entry)])
                .collect()
        }
        _ => Vec::new(),
    }
}

/// `entry` with `content` in place of its content; all other bytes stay. Only the roles user, assistant,
/// toolResult and custom can be edited: other entries are returned unchanged. In the two roles whose
/// content must be blocks, a text becomes a block.
pub(crate) fn with_content(kind: Kind, role: Role, entry: Vec<u8>, content: &[u8]) -> Vec<u8> {
    let block = match (role, content) {
        (Role::Assistant | Role::ToolResult, [b'"', ..]) => Some(text_block(content)),
        _ => None,
    };
    let content = block.as_deref().unwrap_or(content);
    match (kind, role) {
        (Kind::CustomMessage, _) => json::with_member(&entry, "content", content),
        (Kind::Message, Role::User | Role::Assistant | Role::ToolResult | Role::Custom) => {
            let Some(message) = json::get(&entry, "message") else {
                return entry;
            };
            let message = json::with_member(message, "content", content);
            json::with_member(&entry, "message", &message)
        }
        _ => entry,
    }
}

/// A content with one text block; `text` is a raw string literal.
pub(super) fn text_block(text: &[u8]) -> Vec<u8> {
    [br#"[{"type":"text","text":"#, text, b"}]"].concat()
}

fn stored(role: Role, entry: &[u8]) -> Option<AgentMessage> {
    let message = json::get(entry, "message").filter(|raw| raw.starts_with(b"{"))?;
    let empty: &[u8] = match role {
        Role::System => b"\"\"",
        Role::User | Role::Assistant | Role::ToolResult => b"[]",
        _ => {
            return Some(AgentMessage {
                role,
                json: message.to_vec(),
            });
        }
    };
    let json = match json::get(message, "content") {
        None | Some(b"null") => json::with_member(message, "content", empty),
        Some(_) => message.to_vec(),
    };
    Some(AgentMessage { role, json })
}

fn system_message(entry: &[u8]) -> Option<AgentMessage> {
    let message = json::get(entry, "systemMessage").filter(|raw| raw.starts_with(b"{"))?;
    let role = json::get(message, "role").and_then(json::string)?;
    if role != "system" {
        return None;
    }
    let json = match json::get(message, "content") {
        None | Some(b"null") => json::with_member(message, "content", b"\"\""),
        Some(_) => message.to_vec(),
    };
    Some(AgentMessage {
        role: Role::System,
        json,
    })
}

fn custom(entry: &[u8]) -> AgentMessage {
    let content = json::get(entry, "content").filter(|raw| raw != b"null");
    MessageBuilder::new(Role::Custom)
        .copy(entry, "customType")
        .raw("content", content.unwrap_or(b"[]"))
        .copy(entry, "display")
        .copy(entry, "details")
        .finish(entry)
}

/// The message of a branch summary; `None` if the summary is empty or not a text.
fn branch_summary(entry: &[u8]) -> Option<AgentMessage> {
    let summary = json::get(entry, "summary").filter(|raw| raw.starts_with(b"\""))?;
    if summary == b"\"\"" {
        return None;
    }
    let message = MessageBuilder::new(Role::BranchSummary)
        .raw("summary", summary)
        .copy(entry, "fromId")
        .finish(entry);
    Some(message)
}

/// The message of a compaction. An empty summary also makes a message, which shows that something came before.
fn compaction_summary(entry: &[u8]) -> AgentMessage {
    let summary = json::get(entry, "summary").filter(|raw| raw.starts_with(b"\""));
    MessageBuilder::new(Role::CompactionSummary)
        .raw("summary", summary.unwrap_or(b"\"\""))
        .copy(entry, "tokensBefore")
        .finish(entry)
}

/// A message that is being built.
struct MessageBuilder {
    role: Role,
    json: Vec<u8>,
}

impl MessageBuilder {
    fn new(role: Role) -> Self {
        let mut json = b"{\"role\":".to_vec();
        json::push_string(&mut json, role.name().unwrap_or_default());
        Self { role, json }
    }

    fn raw(mut self, name: &str, value: &[u8]) -> Self {
        self.json.push(b',');
        json::push_string(&mut self.json, name);
        self.json.push(b':');
        self.json.extend_from_slice(value);
        self
    }

    /// Copies a member of the entry, if it has one.
    fn copy(self, entry: &[u8], name: &str) -> Self {
        match json::get(entry, name) {
            Some(value) => self.raw(name, value),
            None => self,
        }
    }

    fn finish(self, entry: &[u8]) -> AgentMessage {
        let at = created(entry).to_string();
        let mut message = self.raw("timestamp", at.as_bytes());
        message.json.push(b'}');
        AgentMessage {
            role: message.role,
            json: message.json,
        }
    }
}

/// The time of `entry` in Unix milliseconds. 0 if the stored text is not a time, since clients expect a
/// number.
fn created(entry: &[u8]) -> Millis {
    json::get(entry, "timestamp")
        .and_then(json::string)
        .and_then(|text| timestamp::parse(&text))
        .unwrap_or_default()
}
