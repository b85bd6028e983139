//! The call of a result, and the changes that tool calls make, as the daemon renders them (protocol.md §15.2), for the
//! preview.

use super::convert;
use crate::model::document::{Calls, Change, SHOWN};
use serde_json::Value;
use treelined_client::{Client, RenderedBlock, RenderedResults, RenderedToolCall};

/// The most entries that are searched upwards from a result for the message with its call. Between the message and the
/// result, there are only the results of the other calls.
const MOST_STEPS: usize = 32;

/// Returns the changes that the calls in an entry make. If the entry is a result, returns its call, and the changes that
/// the call makes. Empty if they cannot be read.
pub(super) async fn of(client: &Client, entry: &Value) -> Calls {
    let message = entry.get("message").unwrap_or(&Value::Null);
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let id = match text(message, "role").as_deref() {
        Some("assistant") if call_of(message, None).is_some() => text(entry, "id"),
        Some("toolResult") => match text(message, "toolCallId") {
            Some(call) => return of_result(client, entry, &call).await,
            None => None,
        },
        _ => None,
    };
    let changes = match id {
        Some(id) => changes_of(client, id, None).await,
        None => Vec::new(),
    };
    Calls {
        changes,
        answered: None,
    }
}

async fn of_result(client: &Client, result: &Value, call: &str) -> Calls {
    let Some((id, block)) = message_of(client, result, call).await else {
        return Calls::default();
    };
    Calls {
        changes: changes_of(client, id, Some(call)).await,
        answered: Some(block),
    }
}

/// Returns the changes that the calls of a message make, or only those of one call.
async fn changes_of(client: &Client, id: String, only: Option<&str>) -> Vec<Change> {
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
        .filter(|call| only.is_none_or(|only| only == call.id))
        .flat_map(changes)
        .collect()
}

/// Returns the call with this id in a message, or the first call if `id` is `None`.
fn call_of<'a>(message: &'a Value, id: Option<&str>) -> Option<&'a Value> {
    let blocks = message.get("content").and_then(Value::as_array);
    let text = |block: &'a Value, name: &str| block.get(name).and_then(Value::as_str);
    blocks?.iter().find(|block| {
        text(block, "type") == Some("toolCall") && (id.is_none() || text(block, "id") == id)
    })
}

/// Returns the id of the message with the call of a result, and the call. The message is above the result.
async fn message_of(client: &Client, result: &Value, call: &str) -> Option<(String, Value)> {
    let above = |entry: &Value| entry.get("parentId")?.as_str().map(str::to_owned);
    let mut at = above(result)?;
    for _ in 0..MOST_STEPS {
        let entry = convert::value(&client.get_entry(&at).await.ok()?.entry);
        if let Some(block) = call_of(entry.get("message").unwrap_or(&Value::Null), Some(call)) {
            return Some((at, block.clone()));
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
