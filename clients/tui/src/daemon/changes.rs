//! The changes that tool calls make, as the daemon renders them (protocol.md §15.2), for the preview.

use super::convert;
use crate::model::document::{Change, SHOWN};
use serde_json::Value;
use treelined_client::{Client, RenderedBlock, RenderedResults, RenderedToolCall};

/// The most entries that are searched upwards from a result for the message with its call. Between the two are only
/// the results of the other calls.
const MOST_STEPS: usize = 32;

/// Returns the changes that the calls in an entry make. If the entry is a result, returns the changes that its call
/// makes. Empty if they cannot be read.
pub(super) async fn of(client: &Client, entry: &Value) -> Vec<Change> {
    let message = entry.get("message").unwrap_or(&Value::Null);
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let found = match text(message, "role").as_deref() {
        Some("assistant") if has_call(message, None) => text(entry, "id").zip(Some(None)),
        Some("toolResult") => match text(message, "toolCallId") {
            Some(call) => message_of(client, entry, &call).await.zip(Some(Some(call))),
            None => None,
        },
        _ => None,
    };
    let Some((id, only)) = found else {
        return Vec::new();
    };
    let call = client
        .render_entries([id])
        .results(RenderedResults::Ids)
        .max_bytes(2 * SHOWN as u64);
    let rendered = call.await.map(|page| page.entries).unwrap_or_default();
    let blocks = rendered.into_iter().flat_map(|entry| entry.blocks);
    let calls = blocks.filter_map(|block| match block {
        RenderedBlock::ToolCall(call) => Some(call),
        _ => None,
    });
    calls
        .filter(|call| only.as_ref().is_none_or(|only| *only == call.id))
        .flat_map(changes)
        .collect()
}

/// Returns whether a message has the call with this id, or any call if `id` is `None`.
fn has_call(message: &Value, id: Option<&str>) -> bool {
    let blocks = message.get("content").and_then(Value::as_array);
    let text = |block: &Value, name: &str| block.get(name).and_then(Value::as_str) == id;
    blocks.is_some_and(|blocks| {
        blocks.iter().any(|block| {
            block.get("type").and_then(Value::as_str) == Some("toolCall")
                && (id.is_none() || text(block, "id"))
        })
    })
}

/// Returns the id of the message with the call of a result. The message is above the result.
async fn message_of(client: &Client, result: &Value, call: &str) -> Option<String> {
    let above = |entry: &Value| entry.get("parentId")?.as_str().map(str::to_owned);
    let mut at = above(result)?;
    for _ in 0..MOST_STEPS {
        let entry = convert::value(&client.get_entry(&at).await.ok()?.entry);
        if has_call(entry.get("message")?, Some(call)) {
            return Some(at);
        }
        at = above(&entry)?;
    }
    None
}

fn changes(call: RenderedToolCall) -> impl Iterator<Item = Change> {
    let RenderedToolCall { id, blocks, .. } = call;
    let blocks = blocks.unwrap_or_default().into_iter();
    blocks.filter_map(move |block| match block {
        RenderedBlock::Diff(diff) => Some(Change {
            call: id.clone(),
            path: diff.path,
            text: diff.text,
            is_diff: true,
        }),
        RenderedBlock::Code(code) => Some(Change {
            call: id.clone(),
            path: None,
            text: code.text,
            is_diff: false,
        }),
        _ => None,
    })
}
