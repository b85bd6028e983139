//! The path of a branch as one trajectory of ATIF, the format of harbor (`harbor.models.trajectories`, version 1.7).
//!
//! A step is a message. The result of a call is in the step of the message that made the call.

use super::chat::{Message, Tools, is_result};
use super::json::{key, text, text_of};
use super::reading::DataReader;
use super::subagents::{At, Nesting, Subagent};
use super::usage::Usage;
use std::borrow::Cow;
use std::collections::HashSet;
use treelined_core::context;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::timestamp;
use treelined_core::tree::Node;

/// Receives the parts of a line, in order.
pub(super) type Take<'t> = &'t mut dyn FnMut(&[u8]) -> Result<()>;

/// Writes the trajectory that ends with a step, without a line break. Returns its cost, including its subagents.
/// Returns `None`, and writes nothing, if no message is on the path.
pub(super) fn write(
    reader: &mut DataReader<'_>,
    nesting: &mut Nesting<'_>,
    session_id: &str,
    trajectory_id: &str,
    end: Node,
    take: Take<'_>,
) -> Result<Option<f64>> {
    let mut trajectory = Trajectory::new(take, nesting, session_id);
    for at in reader.steps.path(end) {
        if at.kind == Kind::ThinkingLevelChange {
            let entry = reader.step(at.node)?;
            trajectory.effort = text_of(&entry, "thinkingLevel").map(Cow::into_owned);
            continue;
        }
        let messages = reader.messages(at.node)?;
        if messages.is_empty() {
            continue;
        }
        let entry = reader.step(at.node)?;
        for message in messages {
            trajectory.message(&entry, &message)?;
        }
    }
    trajectory.end(trajectory_id)
}

struct Trajectory<'t, 's> {
    take: Take<'t>,
    nesting: &'t mut Nesting<'s>,
    session_id: &'t str,
    /// The step that is not finished yet, and the results of its calls.
    step: Option<OpenStep>,
    steps: u64,
    tools: Vec<Vec<u8>>,
    agent: Option<String>,
    model: Option<String>,
    effort: Option<String>,
    total: Usage,
    /// The subagents that the steps name.
    subagents: Vec<Subagent>,
}

struct OpenStep {
    json: Vec<u8>,
    results: Vec<StepResult>,
    /// The ids of the calls of the step.
    calls: Vec<String>,
    /// The ids of the calls that have no result yet.
    open_calls: HashSet<String>,
    /// The entry of the step, and the entries of its results.
    entry_ids: Vec<String>,
}

/// A result that is not finished yet: its JSON has no end.
struct StepResult {
    call: Option<String>,
    json: Vec<u8>,
}

impl OpenStep {
    /// Adds references to subagents to the result of a call. If the call has no result, makes a result for these
    /// references.
    fn refer(&mut self, call: Option<&str>, subagents: &[Subagent]) {
        if subagents.is_empty() {
            return;
        }
        let mut of_call = self.results.iter().rev();
        let at = of_call.position(|result| call.is_some() && result.call.as_deref() == call);
        let at = at.map(|from_end| self.results.len() - 1 - from_end);
        let at = at.unwrap_or_else(|| {
            let mut json = vec![b'{'];
            if let Some(call) = call {
                text(&mut json, "source_call_id", call);
            }
            let call = call.map(str::to_owned);
            self.results.push(StepResult { call, json });
            self.results.len() - 1
        });
        let Some(result) = self.results.get_mut(at) else {
            return;
        };
        key(&mut result.json, "subagent_trajectory_ref");
        result.json.push(b'[');
        for (number, subagent) in subagents.iter().enumerate() {
            if number > 0 {
                result.json.push(b',');
            }
            result.json.push(b'{');
            text(&mut result.json, "trajectory_id", &subagent.session_id);
            text(&mut result.json, "session_id", &subagent.session_id);
            result.json.push(b'}');
        }
        result.json.push(b']');
    }
}

impl<'t, 's> Trajectory<'t, 's> {
    fn new(take: Take<'t>, nesting: &'t mut Nesting<'s>, session_id: &'t str) -> Self {
        Self {
            take,
            nesting,
            session_id,
            step: None,
            steps: 0,
            tools: Vec::new(),
            agent: None,
            model: None,
            effort: None,
            total: Usage::default(),
            subagents: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<()> {
        let mut out = vec![b'{'];
        text(&mut out, "schema_version", "ATIF-v1.7");
        text(&mut out, "session_id", self.session_id);
        key(&mut out, "steps");
        out.push(b'[');
        (self.take)(&out)
    }

    /// Adds a message of the context (`format: "agent"`) with its entry.
    fn message(&mut self, entry: &[u8], stored: &[u8]) -> Result<()> {
        let role = text_of(stored, "role").unwrap_or_default();
        if let Some(tool) = json::get_path(entry, &["origin", "tool"]).and_then(json::string) {
            self.agent.get_or_insert_with(|| tool.into_owned());
        }
        if is_result(stored) {
            return self.result(entry, stored);
        }
        let Some(seen) = context::for_model(stored) else {
            return Ok(());
        };
        let message = Message::of(&seen);
        let source = match &*role {
            "assistant" => "agent",
            "user" | "bashExecution" => "user",
            _ => "system",
        };
        self.open(entry, source)?;
        let Some(step) = &mut self.step else {
            return Ok(());
        };
        let said = match &*role {
            "system" => message.prompt(),
            _ => message.text_with_images_named(),
        };
        text(&mut step.json, "message", &said);
        if role == "system" {
            self.tools.push(seen);
        } else if role == "assistant" {
            self.answer(&message);
        }
        Ok(())
    }

    /// Adds the members that a step has only if an agent made it.
    fn answer(&mut self, message: &Message<'_>) {
        let Some(step) = &mut self.step else { return };
        if let Some(model) = text_of(message.json, "model") {
            text(&mut step.json, "model_name", &model);
            self.model = Some(model.into_owned());
        }
        if let Some(effort) = self.effort.as_deref().filter(|effort| *effort != "off") {
            text(&mut step.json, "reasoning_effort", effort);
        }
        let thinking = message.thinking();
        if !thinking.is_empty() {
            text(&mut step.json, "reasoning_content", &thinking);
        }
        if message.calls().next().is_some() {
            key(&mut step.json, "tool_calls");
            step.json.push(b'[');
            for call in message.calls() {
                if step.json.last() != Some(&b'[') {
                    step.json.push(b',');
                }
                step.calls.push(call.id.clone().into_owned());
                step.open_calls.insert(call.id.clone().into_owned());
                step.json.push(b'{');
                text(&mut step.json, "tool_call_id", &call.id);
                text(&mut step.json, "function_name", &call.name);
                key(&mut step.json, "arguments");
                // The format requires an object here, but custom tools take any text.
                match call.arguments.starts_with(b"{") {
                    true => step.json.extend_from_slice(&call.arguments),
                    false => {
                        step.json.push(b'{');
                        key(&mut step.json, "input");
                        step.json.extend_from_slice(&call.arguments);
                        step.json.push(b'}');
                    }
                }
                step.json.push(b'}');
            }
            step.json.push(b']');
        }
        if let Some(usage) = Usage::of(message.json) {
            key(&mut step.json, "metrics");
            step.json.push(b'{');
            push_usage(&mut step.json, "", usage);
            step.json.push(b'}');
            self.total.add(usage);
        }
    }

    fn result(&mut self, entry: &[u8], stored: &[u8]) -> Result<()> {
        let message = Message::of(stored);
        let call = text_of(stored, "toolCallId").unwrap_or_default();
        let mut result = vec![b'{'];
        let is_answer = self
            .step
            .as_mut()
            .is_some_and(|step| step.open_calls.remove(&*call));
        if is_answer {
            text(&mut result, "source_call_id", &call);
        }
        text(&mut result, "content", &message.text_with_images_named());
        key(&mut result, "extra");
        result.push(b'{');
        let id = json::get(entry, "id").and_then(json::id);
        if let Some(id) = &id {
            text(&mut result, "entry_id", id);
        }
        if let Some(error) = json::get(stored, "isError").filter(|raw| *raw == b"true") {
            key(&mut result, "is_error");
            result.extend_from_slice(error);
        }
        result.push(b'}');
        if !is_answer {
            // The call of this result is not in the step before. In this format, such a result can only be in its own
            // step.
            self.open(entry, "system")?;
            if let Some(step) = &mut self.step {
                text(&mut step.json, "message", "");
            }
        }
        if let Some(step) = &mut self.step {
            step.results.push(StepResult {
                call: is_answer.then(|| call.into_owned()),
                json: result,
            });
            step.entry_ids.extend(id.map(Cow::into_owned));
        }
        Ok(())
    }

    fn open(&mut self, entry: &[u8], source: &str) -> Result<()> {
        self.close()?;
        if self.steps == 0 {
            self.begin()?;
        }
        self.steps += 1;
        let mut out = vec![b'{'];
        key(&mut out, "step_id");
        out.extend_from_slice(self.steps.to_string().as_bytes());
        let at = text_of(entry, "timestamp").and_then(|text| timestamp::parse(&text));
        if let Some(at) = at {
            text(&mut out, "timestamp", &timestamp::format(at));
        }
        text(&mut out, "source", source);
        if json::get(entry, "copiedFrom").is_some() {
            key(&mut out, "is_copied_context");
            out.extend_from_slice(b"true");
        }
        let id = json::get(entry, "id")
            .and_then(json::id)
            .unwrap_or_default();
        self.step = Some(OpenStep {
            json: out,
            results: Vec::new(),
            calls: Vec::new(),
            open_calls: HashSet::new(),
            entry_ids: vec![id.into_owned()],
        });
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some(mut step) = self.step.take() else {
            return Ok(());
        };
        for call in std::mem::take(&mut step.calls) {
            let spawned = self.nesting.take(self.session_id, At::Call(&call))?;
            step.refer(Some(&call), &spawned);
            self.subagents.extend(spawned);
        }
        for id in step.entry_ids.clone() {
            let spawned = self.nesting.take(self.session_id, At::Entry(&id))?;
            step.refer(None, &spawned);
            self.subagents.extend(spawned);
        }
        if !step.results.is_empty() {
            key(&mut step.json, "observation");
            step.json.push(b'{');
            key(&mut step.json, "results");
            step.json.push(b'[');
            for (number, result) in step.results.iter().enumerate() {
                if number > 0 {
                    step.json.push(b',');
                }
                step.json.extend_from_slice(&result.json);
                step.json.push(b'}');
            }
            step.json.extend_from_slice(b"]}");
        }
        key(&mut step.json, "extra");
        step.json.push(b'{');
        let entry_id = step.entry_ids.first().map_or("", String::as_str);
        text(&mut step.json, "entry_id", entry_id);
        step.json.extend_from_slice(b"}}");
        if self.steps > 1 {
            (self.take)(b",")?;
        }
        (self.take)(&step.json)
    }

    fn end(mut self, trajectory_id: &str) -> Result<Option<f64>> {
        self.close()?;
        if self.steps == 0 {
            return Ok(None);
        }
        let mut out = vec![b']'];
        text(&mut out, "trajectory_id", trajectory_id);
        key(&mut out, "agent");
        out.push(b'{');
        text(&mut out, "name", self.agent.as_deref().unwrap_or("unknown"));
        text(&mut out, "version", "unknown");
        if let Some(model) = &self.model {
            text(&mut out, "model_name", model);
        }
        let tools = Tools::of(&self.tools);
        if !tools.is_empty() {
            key(&mut out, "tool_definitions");
            tools.push(&mut out);
        }
        out.push(b'}');
        (self.take)(&out)?;
        self.total.cost += self.nest()?;
        let mut out = Vec::new();
        out.push(b',');
        json::push_string(&mut out, "final_metrics");
        out.extend_from_slice(b":{");
        push_usage(&mut out, "total_", self.total);
        key(&mut out, "total_steps");
        out.extend_from_slice(self.steps.to_string().as_bytes());
        out.extend_from_slice(b"}}");
        (self.take)(&out)?;
        Ok(Some(self.total.cost))
    }

    /// Writes the subagents, and returns their cost.
    fn nest(&mut self) -> Result<f64> {
        let mut subagents = std::mem::take(&mut self.subagents);
        subagents.extend(self.nesting.take(self.session_id, At::Nowhere)?);
        if subagents.is_empty() {
            return Ok(0.0);
        }
        let mut cost = 0.0;
        for (number, subagent) in subagents.iter().enumerate() {
            (self.take)(match number {
                0 => b",\"subagent_trajectories\":[",
                _ => b",",
            })?;
            let id = &*subagent.session_id;
            let take = &mut *self.take;
            let written = self.nesting.nest(subagent, |nesting, reader, end| {
                write(reader, nesting, id, id, end, take)
            })?;
            cost += written.flatten().unwrap_or_default();
        }
        (self.take)(b"]")?;
        Ok(cost)
    }
}

/// Appends the members of a usage. `prefix` comes before their names.
fn push_usage(out: &mut Vec<u8>, prefix: &str, usage: Usage) {
    let mut member = |name: &str, value: String| {
        key(out, &format!("{prefix}{name}"));
        out.extend_from_slice(value.as_bytes());
    };
    member("prompt_tokens", (usage.fresh + usage.cached).to_string());
    member("completion_tokens", usage.output.to_string());
    member("cached_tokens", usage.cached.to_string());
    if usage.cost > 0.0 {
        member("cost_usd", usage.cost.to_string());
    }
}
