//! Qwen Code: `projects/<folder>/chats/<session>.jsonl` below `~/.qwen`.
//!
//! Each line is a record with `uuid` and `parentUuid`, as in Claude Code, and a message with parts, as in Gemini CLI.
//! Records are only added, and a record is complete when it is written.
//!
//! - A record of the type `system` has no entry, unless it is a compression. The records below it become children of
//!   the next entry above it. After a rewind, the parent of the next record is the message to which the conversation
//!   went back. The messages after that message stay as a branch.
//! - The conversation continues at the last record.
//! - `chat_compression` has the history after the compression. The history begins with the summary.
//! - Messages of the types `notification` and `cron` are scaffolding: messages of the program to the model.

mod map;
mod message;
mod reader;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};

pub(crate) struct Qwen;

impl Format for Qwen {
    /// A record in a copied file has the same id as the original record.
    fn has_shared_keys(&self) -> bool {
        true
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::ChatReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}
