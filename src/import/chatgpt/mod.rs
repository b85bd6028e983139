//! ChatGPT: the export of an account, `conversations.json`.
//!
//! A source is one conversation, and one record. `mapping` has its nodes by their ids, each with its message, its parent and its
//! children; a regenerated answer and an edited question are siblings. `current_node` is the leaf.
//!
//! - A node without a message, and a message without words, have no entry; what is below them hangs at the next entry above.
//! - A message of the assistant to a tool (`recipient`) is a call; the next message of a tool below it is its result, and
//!   further ones are shown as messages of the tool.
//! - Messages of the system, custom instructions, and hidden messages of the user are scaffolding.
//! - `thoughts` are thinking. Files are named, since an export has them elsewhere or not at all.

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
