//! One line for each branch, with its messages, for supervised fine-tuning.

use super::chat::{CallForm, Message, Tools};
use super::json::{key, text, text_or_null};
use super::reading::DataReader;
use treelined_core::error::Result;
use treelined_core::tree::Node;

/// The line of the branch that ends with the answer `end`.
pub(super) fn line(reader: &mut DataReader<'_>, session_id: &str, end: Node) -> Result<Vec<u8>> {
    let context = reader.context(end)?;
    // If a call of the last answer has no result, the context has an added result. A model must not be trained on added
    // results, so they are left out.
    let real = context.entry_ids.iter().rposition(Option::is_some);
    let messages = context.messages.get(..real.map_or(0, |last| last + 1));
    let messages = messages.unwrap_or_default();
    let mut out = vec![b'{'];
    key(&mut out, "messages");
    push_messages(&mut out, messages);
    push_tools(&mut out, &Tools::of(messages));
    text(&mut out, "session_id", session_id);
    let leaf = context.entry_ids.iter().rev().flatten().next();
    text(&mut out, "entry_id", leaf.map_or("", String::as_str));
    let model = context
        .model
        .map(|(provider, id)| format!("{provider}/{id}"));
    text_or_null(&mut out, "model", model.as_deref());
    out.extend_from_slice(b"}\n");
    Ok(out)
}

pub(super) fn push_messages(out: &mut Vec<u8>, messages: &[Vec<u8>]) {
    out.push(b'[');
    for (number, message) in messages.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        Message::of(message).push(out, CallForm::Function);
    }
    out.push(b']');
}

/// Appends the member `tools`, if the session names the tools of the model.
pub(super) fn push_tools(out: &mut Vec<u8>, tools: &Tools) {
    if !tools.is_empty() {
        key(out, "tools");
        tools.push(out);
    }
}
