//! Copilot CLI: `session-state/<session>/events.jsonl` below `~/.copilot`. In older versions:
//! `session-state/<session>.jsonl`.
//!
//! Each line is an event with `type`, `data`, `id` and `timestamp`. `parentId` is the id of the previous event.
//!
//! - Messages of the user and the model, results, compactions, changes of the model, errors and aborted turns have
//!   entries. Other events have none; the events below them become children of the next entry above.
//! - A rewind removes events from the file. If an earlier import has written their entries, these entries stay as a
//!   branch. A fork is a file that begins with the same events.
//! - The events of a subagent have its `agentId`, and are between the events of the session. They become a separate
//!   conversation, in the order of the file.
//! - If a message of the user has `source`, the program has written it, and it is scaffolding.
//! - After `session.context_cleared` the conversation begins again at the root.
//! - `session.usage_record` has the tokens of the model's message with the same `apiCallId`. The message comes after
//!   this record.

mod map;
mod reader;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::reader::{Format, Reader};
use treelined_core::json;

pub(crate) struct CopilotCli;

impl Format for CopilotCli {
    /// An event in a fork has the same id as the original event.
    fn has_shared_keys(&self) -> bool {
        true
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::EventReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        map::body(node, records)
    }
}

/// The name of a session and its directory, from a `workspace.yaml`. Each is the value of a member in one line.
pub(crate) fn workspace(file: &[u8]) -> (Option<String>, Option<String>) {
    let (mut name, mut summary, mut cwd) = (None, None, None);
    for line in String::from_utf8_lossy(file).lines() {
        match line.split_once(':') {
            Some(("name", value)) => name = scalar(value),
            Some(("summary", value)) => summary = scalar(value),
            Some(("cwd", value)) => cwd = scalar(value),
            _ => {}
        }
    }
    (name.or(summary), cwd)
}

/// The text of a plain or quoted scalar in one line. `None` if it is empty, or a block over several lines.
fn scalar(value: &str) -> Option<String> {
    let value = value.trim();
    let text = match value.as_bytes().first()? {
        b'"' => json::string(value.as_bytes())?.into_owned(),
        b'\'' => {
            let inner = value.strip_prefix('\'')?.strip_suffix('\'')?;
            inner.replace("''", "'")
        }
        b'|' | b'>' => return None,
        _ => value.to_owned(),
    };
    Some(text).filter(|text| !matches!(&**text, "" | "null" | "~"))
}
