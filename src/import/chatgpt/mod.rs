//! ChatGPT: the export of an account, `conversations.json`.
//!
//! A source is one conversation in one record. `mapping` has its nodes by their ids. Each node has its message, its
//! parent and its children. A regenerated answer is a sibling of the first answer, and an edited question is a sibling
//! of the first question. `current_node` is the leaf.
//!
//! - A node without a message, or whose message has no text, has no entry. The nodes below it become children of the
//!   next entry above it.
//! - A message of the assistant to a tool (`recipient`) is a call. The first message of a tool below the call is the
//!   result. Further messages of tools become custom messages `chatgpt.tool`.
//! - Messages of the system, custom instructions, and hidden messages of the user are scaffolding: messages of the
//!   program to the model.
//! - `thoughts` become thinking. Files are only named, because an export has them in other files or not at all.

mod map;
mod message;
mod reader;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Head, Reader};
use super::value::{millis_of_seconds, text};
use treelined_core::json;

pub(crate) struct ChatGpt;

impl Format for ChatGpt {
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
        let names = [
            "mapping",
            "conversation_id",
            "id",
            "create_time",
            "update_time",
        ];
        let [mapping, conversation, id, created, updated] = json::get_each(object, names);
        mapping.filter(|mapping| mapping.starts_with(b"{"))?;
        let id = text(conversation)
            .or(text(id))
            .filter(|id| !id.is_empty())?;
        Some(Head {
            id: id.into_owned(),
            changed: millis_of_seconds(updated).or(millis_of_seconds(created)),
        })
    }
}
