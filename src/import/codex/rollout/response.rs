//! Collects one message of the model: the items of a response, and the results of its calls.

use super::answer::Response;
use super::state::{Item, RolloutReader};
use crate::codex::record::{self, hash};
use crate::codex::usage::Tokens;
use crate::member::{Node, NodeKind, Parent, Place};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use treelined_core::json;

impl RolloutReader {
    pub(super) fn response_item(&mut self, item: &Item<'_>) {
        let payload = item.line.payload;
        let kind = item.line.payload_kind();
        match &*kind {
            "message" => match record::text(payload, "role").as_deref() {
                Some("assistant") if is_summary(item.line.metadata) => {
                    self.summary.push(item.place);
                }
                Some("assistant") => self.model_item(&kind, item),
                role => self.message(item, role.unwrap_or_default()),
            },
            "agent_message" => {
                self.close_response();
                self.push(NodeKind::Scaffolding, item);
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output(&kind, item);
            }
            "reasoning" => self.model_item(&kind, item),
            call if record::tool_name(call, b"").is_some() => self.model_item(&kind, item),
            kind => self.count("response_item", kind),
        }
    }

    fn model_item(&mut self, kind: &str, item: &Item<'_>) {
        let node = match &self.response {
            Some(response) if !response.is_ended => response.node,
            _ => self.begin(item),
        };
        let payload = item.line.payload;
        if let Some(node) = self.node(node)
            && node.places.last() != Some(&item.place)
        {
            let both = [node.fingerprint, hash(payload)].map(u64::to_le_bytes);
            node.fingerprint = hash(both.as_flattened());
            node.places.push(item.place);
        }
        let Some(name) = record::tool_name(kind, payload) else {
            return;
        };
        let image = (kind == "image_generation_call").then(|| self.image(item, &name));
        let id = record::call_id(payload).and_then(json::string);
        let call = id.map(|id| hash(id.as_bytes()));
        let Some(response) = &mut self.response else {
            return;
        };
        response.has_calls = true;
        response.images.extend(image.flatten());
        let Some(call) = call else { return };
        if record::awaits_output(kind) {
            response.unanswered.insert(call);
        } else {
            response.searches.push(call);
        }
        self.calls.insert(call, name.into_boxed_str());
    }

    fn begin(&mut self, item: &Item<'_>) -> u32 {
        self.close_response();
        let node = self.push(NodeKind::Assistant, item);
        self.response = Some(Response {
            node,
            is_ended: false,
            has_calls: false,
            unanswered: HashSet::new(),
            results: HashMap::new(),
            searches: Vec::new(),
            images: Vec::new(),
            usage: None,
        });
        node
    }

    /// The result of a call for an image. It is in the record of the call itself.
    fn image(&self, item: &Item<'_>, name: &str) -> Option<Node> {
        record::text(item.line.payload, "result")?;
        Some(Node {
            key: format!("{}#{}/1", self.member.part_id, item.order).into(),
            parent: Parent::Base,
            kind: NodeKind::ToolResult,
            time: item.line.time,
            order: item.order,
            places: vec![item.place],
            fingerprint: hash(item.line.payload),
            note: Some(name.into()),
            is_open: false,
        })
    }

    fn output(&mut self, kind: &str, item: &Item<'_>) {
        let id = record::call_id(item.line.payload).and_then(json::string);
        let Some(call) = id.map(|id| hash(id.as_bytes())) else {
            return self.count("response_item", kind);
        };
        self.end_response();
        let index = self.push(NodeKind::ToolResult, item);
        let events = self.events.remove(&call).unwrap_or_default();
        let name = self.calls.get(&call).cloned();
        if let Some(node) = self.node(index) {
            node.places.extend(events.iter().map(|event| event.place));
            node.note = name;
        }
        if let Some(response) = &mut self.response
            && response.unanswered.remove(&call)
        {
            response.results.insert(call, index);
        }
    }

    /// Completes the latest message. The nodes of the provider's results follow it.
    pub(super) fn end_response(&mut self) {
        let Some(response) = &mut self.response else {
            return;
        };
        if std::mem::replace(&mut response.is_ended, true) {
            return;
        }
        let images = std::mem::take(&mut response.images);
        let searches = std::mem::take(&mut response.searches);
        let message = self.node(self.response.as_ref().map_or(0, Response::node));
        let first = message.map_or(0, |node| node.order);
        for image in images {
            self.append(image);
        }
        for call in searches {
            let events = self.events.remove(&call).unwrap_or_default();
            let Some(event) = events.first() else {
                continue;
            };
            let node = Node {
                key: format!("{}#{}", self.member.part_id, event.order).into(),
                parent: Parent::Base,
                kind: NodeKind::ToolResult,
                time: event.time,
                order: event.order.max(first),
                places: events
                    .iter()
                    .map(|event| event.place)
                    .collect::<Vec<Place>>(),
                fingerprint: event.fingerprint,
                note: self.calls.get(&call).cloned(),
                is_open: false,
            };
            self.append(node);
        }
    }

    fn append(&mut self, mut node: Node) {
        node.parent = self.tip.map_or(Parent::Base, Parent::Node);
        self.push_node(node);
    }

    /// Adds the tokens of a response to the latest message. `None` is a record that only repeats a total.
    pub(super) fn use_tokens(&mut self, tokens: Option<Tokens>) {
        if tokens.is_some() {
            self.end_response();
        }
        let Some(response) = &mut self.response else {
            self.loose_usage = tokens.or(self.loose_usage);
            return;
        };
        match tokens {
            Some(tokens) if response.usage.is_none() => response.usage = Some(tokens),
            Some(tokens) => self.loose_usage = Some(tokens),
            None => {}
        }
        if response.usage.is_some() && response.is_answered() {
            let response = self.response.take();
            response
                .into_iter()
                .for_each(|response| self.close(response));
        }
    }

    /// Closes the message. From now on it does not change.
    pub(super) fn close(&mut self, response: Response) {
        self.response = Some(response);
        self.end_response();
        if let Some(response) = self.response.take() {
            self.write_note(&response);
        }
    }

    /// Appends the members `provider` and `model`, each only if it is known.
    pub(super) fn push_model(&self, note: &mut String) {
        for (name, value) in [("provider", &self.provider), ("model", &self.model)] {
            if let Some(value) = value {
                let quoted = json::quoted(value);
                let _ = write!(note, ",\"{name}\":{}", String::from_utf8_lossy(&quoted));
            }
        }
    }

    /// Writes the note of the message: the members that its items do not have.
    pub(super) fn write_note(&mut self, response: &Response) {
        let mut note = String::from(",\"api\":\"openai-responses\"");
        self.push_model(&mut note);
        if let Some(usage) = response.usage {
            usage.push(&mut note);
        }
        let reason = match response.has_calls {
            true => "toolUse",
            false => "stop",
        };
        let _ = write!(note, ",\"stopReason\":\"{reason}\"");
        if let Some(node) = self.node(response.node) {
            node.note = Some(note.into_boxed_str());
        }
    }
}

/// Whether the message is the model's summary for a compaction.
fn is_summary(metadata: &[u8]) -> bool {
    json::get(metadata, "compaction_output") == Some(b"true")
}
