//! Claude.ai: the export of an account, `conversations.json`.
//!
//! A source is one conversation in one record. `chat_messages` has its messages in order. A message names its parent in
//! `parent_message_uuid`. If an export lacks this member, the parent is the previous message.
//!
//! - The calls and results of an answer are in its `content`. Each result ends an entry of the assistant, and the
//!   blocks after it become the next entry. Calls in older exports have no ids; they get an id made from the message.
//! - The text that was extracted from an attachment becomes part of the message. For other files, the entry has only
//!   the name.
//! - A message without text has no entry.

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
