//! Qwen Code: `projects/<folder>/chats/<session>.jsonl` below `~/.qwen`.
//!
//! Each line is a record with `uuid` and `parentUuid`, as Claude Code writes them, and a message of Gemini's parts. Records are
//! only added, and each is whole when it is written.
//!
//! - A record of the type `system` has no entry, except for a compression; what is below it hangs at the next entry above. A
//!   rewind makes the next record hang where the conversation went back to, so that what was left stays as a branch.
//! - The conversation goes on at the last record.
//! - `chat_compression` has the history after it, which begins with the summary.
//! - Messages of the types `notification` and `cron` are scaffolding.

mod map;
mod message;
mod reader;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};

pub(crate) struct Qwen;

impl Format for Qwen {
    /// A record keeps its id in a file that was copied.
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
