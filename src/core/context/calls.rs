//! Pairs tool calls with their results, as the providers of models require (semantics.md §1).
//!
//! A conversation that was stopped, imported or forked may hold calls without results, and results whose call is
//! not in the context. Providers refuse both.

use crate::entry::Role;
use crate::json::{self, Elements};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The text of the result that is added for a call without one.
const NO_RESULT: &str = "No result was recorded.";

/// A call that has no result so far. Its values are raw JSON.
struct Call {
    id: Vec<u8>,
    name: Option<Vec<u8>>,
    timestamp: Option<Vec<u8>>,
}

/// The open calls of the last assistant message, while the messages of a context are added in order.
#[derive(Default)]
pub(super) struct OpenCalls {
    /// In the order of the message; `None` for a call that has its result.
    calls: Vec<Option<Call>>,
    /// The index of each call by its id. If several calls have the same id, only the first one counts.
    indexes: HashMap<String, usize>,
}

impl OpenCalls {
    /// Adds the calls of an assistant message. The calls of the previous assistant message must be closed already.
    pub(super) fn open(&mut self, message: &[u8]) {
        let content = json::get(message, "content").unwrap_or_default();
        let Ok(mut blocks) = Elements::open(content, 0) else {
            return;
        };
        while let Ok(Some(span)) = blocks.next_value() {
            let block = content.get(span).unwrap_or_default();
            let text = |name| json::get(block, name).and_then(json::string);
            if text("type").as_deref() != Some("toolCall") {
                continue;
            }
            let (Some(id), Some(raw)) = (text("id"), json::get(block, "id")) else {
                continue;
            };
            if let Entry::Vacant(vacant) = self.indexes.entry(id.into_owned()) {
                vacant.insert(self.calls.len());
                self.calls.push(Some(Call {
                    id: raw.to_vec(),
                    name: json::get(block, "name").map(<[u8]>::to_vec),
                    timestamp: json::get(message, "timestamp").map(<[u8]>::to_vec),
                }));
            }
        }
    }

    /// Whether the tool result answers an open call. If so, the call is no longer open.
    pub(super) fn answer(&mut self, result: &[u8]) -> bool {
        let id = json::get(result, "toolCallId").and_then(json::string);
        let index = id.and_then(|id| self.indexes.get(&*id));
        let call = index.and_then(|index| self.calls.get_mut(*index));
        call.and_then(Option::take).is_some()
    }

    /// Closes all open calls; returns an error result for each, in their order.
    pub(super) fn close(&mut self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.indexes.clear();
        self.calls.drain(..).flatten().map(|call| {
            let mut result = br#"{"role":"toolResult","toolCallId":"#.to_vec();
            result.extend_from_slice(&call.id);
            result.extend_from_slice(b",\"toolName\":");
            result.extend_from_slice(call.name.as_deref().unwrap_or(b"\"\""));
            result.extend_from_slice(br#","content":[{"type":"text","text":"#);
            json::push_string(&mut result, NO_RESULT);
            result.extend_from_slice(br#"}],"isError":true"#);
            if let Some(timestamp) = call.timestamp {
                result.extend_from_slice(b",\"timestamp\":");
                result.extend_from_slice(&timestamp);
            }
            result.push(b'}');
            result
        })
    }
}

/// Whether the earlier calls must have their results before a message of this role.
pub(super) fn ends_calls(role: Role) -> bool {
    matches!(role, Role::User | Role::Assistant)
}
