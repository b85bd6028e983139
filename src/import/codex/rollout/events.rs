//! Reads events. They repeat the conversation for the terminal, so only data that items lack is used.

use super::event::Event;
use super::state::{Item, RolloutReader};
use super::users;
use crate::codex::record::{self, hash};
use crate::member::NodeKind;
use std::borrow::Cow;
use treelined_core::json;

/// The types of events that have details of a call's result, and the types of completed items that have such details.
const ABOUT_CALLS: &[&str] = &[
    "exec_command_end",
    "patch_apply_end",
    "mcp_tool_call_end",
    "dynamic_tool_call_response",
    "web_search_end",
    "collab_agent_spawn_end",
    "collab_agent_interaction_end",
    "collab_waiting_end",
    "collab_close_end",
    "CommandExecution",
    "FileChange",
    "McpToolCall",
    "DynamicToolCall",
    "CollabAgentToolCall",
    "Extension",
    "WebSearch",
];

/// The types of events that become entries.
const SHOWN: &[&str] = &[
    "turn_aborted",
    "error",
    "stream_error",
    "entered_review_mode",
    "exited_review_mode",
    "undo_completed",
    "Plan",
];

impl RolloutReader {
    pub(super) fn event(&mut self, item: &Item<'_>) {
        let payload = item.line.payload;
        let event = item.line.payload_kind();
        let completed = (event == "item_completed").then(|| json::get(payload, "item"));
        let subject = completed.flatten().unwrap_or(payload);
        let kind = match completed {
            Some(_) => record::text(subject, "type").unwrap_or_default(),
            None => event,
        };
        match &*kind {
            "user_message" => self.confirm(json::get(payload, "message").and_then(json::string)),
            "UserMessage" => self.confirm(users::first_text(subject)),
            "task_started" | "task_complete" | "turn_started" | "turn_complete" => {
                self.close_response();
            }
            "thread_rolled_back" => {
                self.roll_back(json::get(payload, "num_turns").unwrap_or_default());
            }
            "thread_name_updated" => self.rename(payload),
            "thread_settings_applied" => self.set_provider(payload),
            "token_count" => {
                let usage = self.meter.count(payload);
                self.use_tokens(usage);
            }
            "collab_agent_spawn_end" | "sub_agent_activity" | "SubAgentActivity"
                if self.spawn(item, subject) =>
            {
                return;
            }
            shown if SHOWN.contains(&shown) => {
                if shown == "turn_aborted" {
                    self.close_response();
                }
                self.push(NodeKind::Custom, item);
                return;
            }
            _ if self.about_call(item, &kind, subject) => return,
            _ => {}
        }
        self.count("event_msg", &kind);
    }

    fn rename(&mut self, payload: &[u8]) {
        let thread = record::text(payload, "thread_id");
        if thread.is_none_or(|thread| *thread == *self.member.native_id) {
            let name = record::text(payload, "thread_name").map(Cow::into_owned);
            self.member.title = name.or(self.member.title.take());
        }
    }

    fn set_provider(&mut self, payload: &[u8]) {
        let settings = json::get(payload, "thread_settings").unwrap_or_default();
        let provider = record::text(settings, "model_provider_id").map(Cow::into_owned);
        self.provider = provider.or(self.provider.take());
    }

    /// Adds a node for a subagent, at the first event that names it. False if the event does not name a subagent.
    fn spawn(&mut self, item: &Item<'_>, subject: &[u8]) -> bool {
        let ids = json::get_each(subject, ["agent_thread_id", "new_thread_id"]);
        let id = ids.into_iter().flatten().find_map(json::string);
        let Some(id) = id.filter(|id| self.spawned.insert(hash(id.as_bytes()))) else {
            return false;
        };
        let native_id = id.into();
        self.push(NodeKind::Subagent { native_id }, item);
        true
    }

    /// Adds an event to the result of its call. If the result was not read yet, keeps the event for it. False if the
    /// event has no details of a result.
    fn about_call(&mut self, item: &Item<'_>, kind: &str, subject: &[u8]) -> bool {
        let Some(kind) = ABOUT_CALLS.iter().find(|known| **known == kind) else {
            return false;
        };
        let Some(id) = record::call_id(subject).and_then(json::string) else {
            return false;
        };
        let call = hash(id.as_bytes());
        let result = self.response.as_ref().and_then(|open| open.result(call));
        if let Some(node) = result.and_then(|result| self.node(result)) {
            node.places.push(item.place);
            return true;
        }
        let is_awaited = self.response.as_ref();
        let is_awaited = is_awaited.is_some_and(|open| open.is_unanswered(call));
        let has_results = json::get(subject, "results").is_some_and(|found| found.len() > 2);
        if !is_awaited && !has_results {
            return false;
        }
        self.events.entry(call).or_default().push(Event {
            kind,
            place: item.place,
            order: item.order,
            time: item.line.time,
            fingerprint: hash(item.line.payload),
        });
        true
    }
}
