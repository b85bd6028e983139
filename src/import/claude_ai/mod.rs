//! Claude.ai: the export of an account, `conversations.json`.
//!
//! A source is one conversation, and one record. `chat_messages` has its messages in their order, each with `parent_message_uuid`
//! where the export says it; without it each message hangs at the one before.
//!
//! - An answer has its calls and results among its `content`: each result ends an entry of the assistant, and what follows is
//!   the next one. Calls of older exports have no ids, and get theirs from the message.
//! - The extracted text of attachments is part of the message; other files are named.
//! - A message without words has no entry.

mod map;
mod reader;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Head, Reader};
use super::value::{instant, text};
use treelined_core::json;

pub(crate) struct ClaudeAi;

impl Format for ClaudeAi {
    fn has_shared_keys(&self) -> bool {
        false
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::ConversationReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }

    fn head(&self, object: &[u8]) -> Option<Head> {
        let names = ["chat_messages", "uuid", "created_at", "updated_at"];
        let [messages, id, created, updated] = json::get_each(object, names);
        messages.filter(|messages| messages.starts_with(b"["))?;
        Some(Head {
            id: text(id).filter(|id| !id.is_empty())?.into_owned(),
            changed: instant(updated).or(instant(created)),
        })
    }
}
