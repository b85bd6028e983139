//! The context of a path that is handed over to another agent (protocol.md §3.18). An import compares the other agent's
//! conversation with this context later, so the handover and the import must compute the same context.

use super::{Format, Kept, PathStep, build_within};
use crate::entry::Kind;
use crate::error::{Error, Kind as ErrorKind};
use crate::json;
use crate::tree::{Node, Tree};
use std::collections::HashSet;

/// The most bytes of messages that are handed over.
pub const MAX_BYTES: usize = 512 << 20;

/// A message of a context as an agent sees it (`format: "agent"`, semantics.md §1).
pub struct PathMessage {
    /// One JSON object.
    pub json: Vec<u8>,
    /// The id of the entry of the message; empty for a tool result that was added for a call without a result.
    pub entry_id: String,
    /// Whether another agent's program wrote the message for its own model, and an import copied it.
    pub is_scaffolding: bool,
}

/// A context that is handed over.
pub struct HandedContext {
    pub messages: Vec<PathMessage>,
    /// Provider and model id, as last used or set on the path.
    pub model: Option<(String, String)>,
}

/// The context at the end of `path`. `body` reads an entry, as in [`build_within`].
/// Fails with the errors of `body`, and with `contextTooLarge` for more than [`MAX_BYTES`].
pub fn context(
    tree: &Tree,
    path: &[PathStep],
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<HandedContext, Error> {
    let kept = Kept::of(path, &mut *body, |id| tree.find(id))?;
    let mut imported = HashSet::new();
    let mut body = |node: Node| {
        let entry = body(node)?;
        if tree.kind(node) == Kind::CustomMessage && json::get(&entry, "origin").is_some() {
            imported.insert(tree.id(node).to_owned());
        }
        Ok(entry)
    };
    let context = build_within(path, kept, Format::Agent, MAX_BYTES, &mut body);
    let context = context.map_err(|error| match error.kind {
        ErrorKind::ResponseTooLarge => {
            let why =
                "the path has more than 512 MiB: compact the session, or name an earlier entry";
            Error::new(ErrorKind::ContextTooLarge, why)
        }
        _ => error,
    })?;
    let ids = context.entry_ids.into_iter();
    let messages = context.messages.into_iter().zip(ids).map(|(json, id)| {
        let entry_id = id.unwrap_or_default();
        PathMessage {
            is_scaffolding: imported.contains(&entry_id),
            json,
            entry_id,
        }
    });
    Ok(HandedContext {
        messages: messages.collect(),
        model: context.model,
    })
}
