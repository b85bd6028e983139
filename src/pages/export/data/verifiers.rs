//! Exports the tree as the graph of verifiers (`verifiers.v1.trace.Trace`, version 1): each message with its
//! predecessor.
//!
//! If a compaction or an edit changes the context, the new context is a new chain of nodes.

use super::super::request::Part;
use super::atif::Take;
use super::chat::{CallForm, Message, Tools};
use super::json::{key, text, text_of};
use super::reading::DataReader;
use super::steps::{Step, Steps, is_setting};
use super::usage::Usage;
use treelined_core::context;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::json;

/// The version of verifiers that defines these records.
const VERSION: &str = "0.4.0";

/// The number of bytes that are repeated in the contexts after compactions and edits.
pub(super) fn repeated_bytes(steps: &Steps) -> u64 {
    let rewrites = steps.in_order().filter(|step| is_rewrite(step));
    rewrites.map(|step| step.path_bytes).sum()
}

fn is_rewrite(step: &Step) -> bool {
    matches!(step.kind, Kind::Compaction | Kind::ContextEdit)
}

/// Writes the graph as one line, and returns the number of its nodes. An archived branch is included only if it is the
/// exported part.
pub(super) fn write(
    reader: &mut DataReader<'_>,
    session_id: &str,
    part: Part,
    take: Take<'_>,
) -> Result<usize> {
    let steps = reader.steps;
    let mut graph = Graph {
        take,
        count: 0,
        calls: Vec::new(),
        entry_ids: Vec::new(),
        system: Vec::new(),
        agent: None,
        started: None,
    };
    graph.begin(session_id)?;
    // The last node of the context at each step, by the number of the step's node.
    let mut last: Vec<Option<usize>> = vec![None; steps.node_count()];
    let is_branch = matches!(part, Part::Branch(_));
    for step in steps
        .in_order()
        .filter(|step| is_branch || !step.is_archived)
    {
        let above = step
            .above
            .and_then(|above| last.get(above.number()).copied());
        let mut at = above.flatten();
        if is_rewrite(step) {
            at = None;
            let context = reader.context(step.node)?;
            for (message, id) in context.messages.iter().zip(&context.entry_ids) {
                let id = id.as_deref().unwrap_or_default();
                at = Some(graph.node(at, message, id, false)?);
            }
        } else if !is_setting(step.kind) {
            let entry = reader.step(step.node)?;
            let id = json::get(&entry, "id").and_then(json::id);
            let tool = json::get_path(&entry, &["origin", "tool"]).and_then(json::string);
            if let (None, Some(tool)) = (&graph.agent, tool) {
                graph.agent = Some(tool.into_owned());
            }
            let is_own = json::get(&entry, "copiedFrom").is_none();
            for message in reader.messages(step.node)? {
                if let Some(message) = context::for_model(&message) {
                    at = Some(graph.node(
                        at,
                        &message,
                        id.as_deref().unwrap_or_default(),
                        is_own,
                    )?);
                }
            }
        }
        if let Some(last) = last.get_mut(step.node.number()) {
            *last = at;
        }
    }
    let count = graph.count;
    graph.end()?;
    Ok(count)
}

struct Graph<'t> {
    take: Take<'t>,
    /// The number of nodes written so far.
    count: usize,
    /// The calls of models as JSON, without the brackets of the array.
    calls: Vec<u8>,
    /// The id of the entry of each node.
    entry_ids: Vec<String>,
    system: Vec<Vec<u8>>,
    agent: Option<String>,
    /// The time, in seconds, of the first message that has a time.
    started: Option<String>,
}

impl Graph<'_> {
    fn begin(&mut self, session_id: &str) -> Result<()> {
        let mut out = vec![b'{'];
        key(&mut out, "version");
        out.push(b'1');
        text(&mut out, "id", session_id);
        key(&mut out, "verifiers");
        out.push(b'{');
        text(&mut out, "version", VERSION);
        out.push(b'}');
        key(&mut out, "task");
        out.push(b'{');
        text(&mut out, "type", "treelined");
        key(&mut out, "data");
        out.push(b'{');
        text(&mut out, "id", session_id);
        out.extend_from_slice(b"}}");
        key(&mut out, "nodes");
        out.push(b'[');
        (self.take)(&out)
    }

    /// Writes a message as a child of another message, and returns the number of its node.
    fn node(
        &mut self,
        parent: Option<usize>,
        stored: &[u8],
        entry_id: &str,
        is_own: bool,
    ) -> Result<usize> {
        let message = Message::of(stored);
        let is_sampled = is_own && message.role == "assistant";
        let mut out = if self.count > 0 {
            vec![b',']
        } else {
            Vec::new()
        };
        out.push(b'{');
        key(&mut out, "parent");
        let parent = parent.map_or("null".to_owned(), |parent| parent.to_string());
        out.extend_from_slice(parent.as_bytes());
        key(&mut out, "message");
        message.push(&mut out, CallForm::Flat);
        key(&mut out, "sampled");
        out.extend_from_slice(if is_sampled { b"true" } else { b"false" });
        key(&mut out, "timestamp");
        let at = json::get(stored, "timestamp").map(seconds);
        out.extend_from_slice(at.as_deref().unwrap_or("0").as_bytes());
        out.push(b'}');
        if is_sampled && let Some(usage) = Usage::of(stored) {
            self.call(usage, stored);
        }
        if message.role == "system" {
            self.system.push(stored.to_vec());
        }
        self.started = self.started.take().or(at);
        self.entry_ids.push(entry_id.to_owned());
        self.count += 1;
        (self.take)(&out)?;
        Ok(self.count - 1)
    }
}

impl Graph<'_> {
    /// Records the call of a model that made the next node.
    fn call(&mut self, usage: Usage, message: &[u8]) {
        let out = &mut self.calls;
        if !out.is_empty() {
            out.push(b',');
        }
        out.push(b'{');
        let member = |out: &mut Vec<u8>, name: &str, value: String| {
            key(out, name);
            out.extend_from_slice(value.as_bytes());
        };
        member(out, "node", self.count.to_string());
        if let Some(model) = text_of(message, "model") {
            text(out, "model", &model);
        }
        key(out, "usage");
        out.push(b'{');
        member(out, "prompt_tokens", usage.fresh.to_string());
        member(out, "completion_tokens", usage.output.to_string());
        member(out, "cached_input_tokens", usage.cached.to_string());
        if usage.cost > 0.0 {
            member(out, "cost", usage.cost.to_string());
        }
        out.extend_from_slice(b"}}");
    }

    fn end(self) -> Result<()> {
        let mut out = vec![b']'];
        key(&mut out, "calls");
        out.push(b'[');
        out.extend_from_slice(&self.calls);
        out.push(b']');
        let tools = Tools::of(&self.system);
        if !tools.is_empty() {
            key(&mut out, "tools");
            tools.push_flat(&mut out);
        }
        key(&mut out, "agent");
        out.push(b'{');
        text(&mut out, "name", self.agent.as_deref().unwrap_or("agent"));
        key(&mut out, "config");
        out.extend_from_slice(b"{}}");
        // Without a start time a reader would use the time at which it reads the graph.
        key(&mut out, "timing");
        out.push(b'{');
        key(&mut out, "start");
        out.extend_from_slice(self.started.as_deref().unwrap_or("0").as_bytes());
        out.push(b'}');
        // The nodes of the format cannot have ids, so the ids are here.
        key(&mut out, "info");
        out.push(b'{');
        key(&mut out, "entry_ids");
        json::push_strings(&mut out, &self.entry_ids);
        out.extend_from_slice(b"}}\n");
        (self.take)(&out)
    }
}

/// Converts the time of a message from milliseconds to seconds; 0 if `raw` is not such a number.
fn seconds(raw: &[u8]) -> String {
    let number: Option<f64> = std::str::from_utf8(raw)
        .ok()
        .and_then(|raw| raw.parse().ok());
    let number = number
        .filter(|number| number.is_finite())
        .unwrap_or_default();
    (number / 1000.0).to_string()
}
