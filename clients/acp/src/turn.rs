//! Makes messages of a session from a turn of the agent, that is from the updates between a prompt and its answer.
//! Pure.

use serde_json::{Map, Value, json};
use std::collections::HashMap;

const GAP: &str = "acp.gap";
const NOTICE: &str = "acp.notice";
/// The members of `_meta` in which agents send pieces of a terminal's output (Zed's convention).
const OUTPUTS: [&str; 2] = ["terminal_output", "terminal_output_delta"];
/// The member of a recorded message with the ids that the editor knows for it.
pub const IDS: &str = "messageIds";
/// The member of a turn's last answer with the id that the agent gave to the prompt.
pub const PROMPT_ID: &str = "userMessageId";
/// The most bytes of an id, and the most ids of a message. Longer ids and further ids are left out.
const MAX_ID: usize = 256;
const MAX_IDS: usize = 64;

/// An entry to record: a message, or another entry of the turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// `message`, with its members.
    Message(Value),
    /// `custom`: its type and data.
    Custom(&'static str, Value),
}

impl Item {
    /// The entry for messages that are missing.
    pub fn gap() -> Item {
        Item::Custom(GAP, Value::Null)
    }

    pub fn is_gap(&self) -> bool {
        matches!(self, Item::Custom(GAP, _))
    }

    /// The number of bytes of its texts.
    pub fn bytes(&self) -> usize {
        match self {
            Item::Message(value) | Item::Custom(_, value) => bytes_of(value),
        }
    }
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(bytes_of).sum(),
        Value::Object(members) => members.values().map(bytes_of).sum(),
        _ => 1,
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}

/// Makes a user message from the blocks of a prompt and the id that the editor gave to the prompt.
pub fn user_message(prompt: &[Value], id: Option<&str>) -> Value {
    let blocks: Vec<Value> = prompt.iter().filter_map(block).collect();
    let message = json!({ "role": "user", "content": blocks });
    with_ids(message, id.map(str::to_owned).into_iter().collect())
}

/// Adds the ids that the editor knows for a message.
fn with_ids(mut message: Value, mut ids: Vec<String>) -> Value {
    ids.retain(|id| id.len() <= MAX_ID);
    ids.dedup();
    ids.truncate(MAX_IDS);
    if let Value::Object(members) = &mut message
        && !ids.is_empty()
    {
        members.insert(IDS.to_owned(), json!(ids));
    }
    message
}

/// Converts a content block of ACP to a block of a session. `None` for an empty block.
fn block(content: &Value) -> Option<Value> {
    let member = |name: &str| {
        content
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let text = match member("type") {
        "text" => member("text").to_owned(),
        "image" => {
            return Some(json!({
                "type": "image",
                "data": member("data"),
                "mimeType": member("mimeType"),
            }));
        }
        "resource_link" => format!("[{}]({})", member("name"), member("uri")),
        "resource" => {
            let resource = content.get("resource")?;
            let uri = resource
                .get("uri")
                .and_then(Value::as_str)
                .unwrap_or_default();
            match resource.get("text").and_then(Value::as_str) {
                Some(text) => format!("{uri}\n{text}"),
                None => uri.to_owned(),
            }
        }
        other => format!("[{other}]"),
    };
    (!text.is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// The source of a text that comes in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Speaker {
    User,
    Agent,
    Thought,
}

/// A part of the turn. Parts are in the order in which they began.
#[derive(Debug)]
enum Part {
    Text {
        speaker: Speaker,
        /// The id that the agent gave to the message.
        id: Option<String>,
        blocks: Vec<Value>,
    },
    Call(Call),
    Custom(&'static str, Value),
    /// A plan or a mode that a later one replaces.
    Replaced,
}

/// A call of a tool.
#[derive(Debug, Default)]
struct Call {
    /// The members of `tool_call` and all its updates, merged.
    members: Map<String, Value>,
    /// The name of the tool, if the agent has sent it.
    name: Option<String>,
    /// The first title of the call. Later titles describe the arguments.
    title: Option<String>,
}

impl Call {
    /// Adds the members of a `tool_call` or `tool_call_update`. Other members keep their values.
    fn update(&mut self, update: &Map<String, Value>) {
        let given = update.iter().filter(|(_, value)| !value.is_null());
        let given = given.map(|(name, value)| (name.clone(), value.clone()));
        self.members.extend(given);
        self.name = self.name.take().or_else(|| given_name(update));
        let title = || self.members.get("title").and_then(Value::as_str);
        self.title = self.title.take().or_else(|| title().map(str::to_owned));
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// The name of the tool: the name that the agent sends, else the name in the id, else the first title if it is one
    /// word, else the kind.
    fn tool(&self) -> &str {
        let text = |name: &str| self.get(name).and_then(Value::as_str);
        let is_word = |title: &&str| !title.is_empty() && !title.contains(char::is_whitespace);
        let title = self.title.as_deref().filter(is_word);
        let has_input = self.get("rawInput").is_some();
        let in_id = || name_in_id(text("toolCallId")?, has_input);
        let name = self.name.as_deref().or_else(in_id).or(title);
        name.or_else(|| text("kind")).unwrap_or("tool")
    }
}

/// The name of the tool that the agent sends in `name`, or in its own member of `_meta`.
fn given_name(update: &Map<String, Value>) -> Option<String> {
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let vendors = update.get("_meta").and_then(Value::as_object);
    let of_vendor = |vendor: &Value| {
        let of_call = || vendor.get("toolCall").and_then(|call| call.get("toolName"));
        text(vendor.get("toolName").or_else(of_call))
    };
    text(update.get("name")).or_else(|| vendors?.values().find_map(of_vendor))
}

/// The name in an id that Gemini CLI gives to a call. The forms are `NAME-TIME`, which may have a number after it,
/// `NAME__ID` with the model's id, and `NAME__NAME_TIME_NUMBER` without such an id. Other agents also have `__` in ids,
/// but their calls have an input.
fn name_in_id(id: &str, has_input: bool) -> Option<&str> {
    let is_time = |text: &str| text.len() >= 13 && text.bytes().all(|byte| byte.is_ascii_digit());
    let before_time = |id: &str| {
        id.rsplit_once('-')
            .filter(|(_, time)| is_time(time))
            .map(|(name, _)| name.len())
    };
    let timed = before_time(id).or_else(|| before_time(id.rsplit_once('-')?.0));
    // The name of an MCP server's tool may itself have `__`.
    let twice = || {
        let both = id.rsplit_once('_')?.0.rsplit_once('_')?.0;
        let length = both.len().checked_sub(2)? / 2;
        let (name, again) = (both.get(..length)?, both.get(length..)?);
        (again.strip_prefix("__") == Some(name)).then_some(length)
    };
    let once = || id.rfind("__");
    let length = timed.or_else(|| {
        if has_input {
            None
        } else {
            twice().or_else(once)
        }
    })?;
    id.get(..length).filter(|name| !name.is_empty())
}

/// Collects the updates of a turn. An update takes time linear in its bytes, whatever the number of parts.
#[derive(Debug, Default)]
pub struct Turn {
    parts: Vec<Part>,
    /// The index of each call's part, by the id of the call as JSON.
    calls: HashMap<String, usize>,
    /// The index of the newest text of each speaker and message id.
    texts: HashMap<(Speaker, Option<String>), usize>,
    /// The index of the latest plan and of the latest mode.
    states: HashMap<&'static str, usize>,
    /// The output of each terminal, by its id.
    terminals: HashMap<String, String>,
    /// Whether the messages of the agent have ids.
    has_ids: bool,
    /// The speaker of the newest part, and whether that part has an id. `None` if it is a call. Plans, modes,
    /// questions and gaps do not count.
    last_speaker: Option<(Speaker, bool)>,
}

impl Turn {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the agent has given an id to one of its messages so far.
    pub fn has_ids(&self) -> bool {
        self.has_ids
    }

    /// Notes that the agent's messages have ids. A text without an id is then not from the model.
    pub fn set_has_ids(&mut self) {
        self.has_ids = true;
    }

    /// Sets the whole output of a terminal of the editor.
    pub fn shows(&mut self, terminal: &str, output: &str) {
        self.terminals
            .insert(terminal.to_owned(), output.to_owned());
    }

    /// Adds the `update` of a `session/update`.
    pub fn update(&mut self, update: &Value) {
        let kind = update.get("sessionUpdate").and_then(Value::as_str);
        match kind.unwrap_or_default() {
            "user_message_chunk" => self.chunk(Speaker::User, update),
            "agent_message_chunk" => self.chunk(Speaker::Agent, update),
            "agent_thought_chunk" => self.chunk(Speaker::Thought, update),
            "tool_call" | "tool_call_update" => self.call(update),
            "plan" => self.state("acp.plan", update.get("entries")),
            "current_mode_update" => self.state("acp.mode", update.get("currentModeId")),
            _ => {}
        }
    }

    /// Adds a request for permission and its answer.
    pub fn permission(&mut self, request: &Value, outcome: &Value) {
        let call = request.get("toolCall");
        let member = |name: &str| call.and_then(|call| call.get(name)).cloned();
        let data = json!({
            "toolCallId": member("toolCallId"),
            "title": member("title"),
            "options": request.get("options"),
            "outcome": outcome,
        });
        self.parts.push(Part::Custom("acp.permission", data));
    }

    /// Notes that a part of the turn was not recorded.
    pub fn gap(&mut self) {
        if !matches!(self.parts.last(), Some(Part::Custom(GAP, _))) {
            self.parts.push(Part::Custom(GAP, Value::Null));
        }
    }

    /// Adds a plan or a mode. It replaces the plan or mode before it.
    fn state(&mut self, custom_type: &'static str, data: Option<&Value>) {
        let before = self.states.insert(custom_type, self.parts.len());
        if let Some(part) = before.and_then(|number| self.parts.get_mut(number)) {
            *part = Part::Replaced;
        }
        let data = data.cloned().unwrap_or_default();
        self.parts.push(Part::Custom(custom_type, data));
    }

    fn chunk(&mut self, new: Speaker, update: &Value) {
        let id = update
            .get("messageId")
            .and_then(Value::as_str)
            .map(str::to_owned);
        self.has_ids |= new == Speaker::Agent && id.is_some();
        let Some(content) = update.get("content").and_then(block) else {
            return;
        };
        // A text without an id continues until another part comes. A plan does not count, because the agent does not
        // replay plans.
        let goes_on = id.is_some() || self.last_speaker == Some((new, false));
        let key = (new, id.clone());
        let known = self.texts.get(&key).filter(|_| goes_on);
        match known.and_then(|number| self.parts.get_mut(*number)) {
            Some(Part::Text { blocks, .. }) => join(blocks, content),
            _ => {
                self.texts.insert(key, self.parts.len());
                self.last_speaker = Some((new, id.is_some()));
                self.parts.push(Part::Text {
                    speaker: new,
                    id,
                    blocks: vec![content],
                });
            }
        }
    }

    fn call(&mut self, update: &Value) {
        let Value::Object(update) = update else {
            return;
        };
        self.output(update);
        let id = update.get("toolCallId").map(Value::to_string);
        let id = id.unwrap_or_default();
        let known = self.calls.get(&id);
        match known.and_then(|number| self.parts.get_mut(*number)) {
            Some(Part::Call(call)) => call.update(update),
            _ => {
                let mut call = Call::default();
                call.update(update);
                self.calls.insert(id, self.parts.len());
                self.last_speaker = None;
                self.parts.push(Part::Call(call));
            }
        }
    }

    /// Adds the output of a terminal of the agent itself.
    fn output(&mut self, update: &Map<String, Value>) {
        let meta = update.get("_meta");
        for told in OUTPUTS.iter().filter_map(|name| meta?.get(name)) {
            let text = |name: &str| told.get(name).and_then(Value::as_str);
            if let (Some(terminal), Some(data)) = (text("terminal_id"), text("data")) {
                let output = self.terminals.entry(terminal.to_owned()).or_default();
                output.push_str(data);
            }
        }
    }

    /// Ends the turn and returns its entries. `stop` is the stop reason of ACP; `None` if the turn did not end.
    /// `result` is the result of the prompt.
    pub fn finish(self, stop: Option<&str>, result: Option<&Value>) -> Vec<Item> {
        let mut messages = Messages {
            terminals: self.terminals,
            has_ids: self.has_ids,
            ..Messages::default()
        };
        for part in self.parts {
            messages.add(part);
        }
        messages.close();
        messages.end(stop, result.unwrap_or(&Value::Null));
        messages.items
    }
}

/// Appends a block. Text is appended to a text block before it.
fn join(blocks: &mut Vec<Value>, block: Value) {
    if let (Some(Value::String(text)), Some(Value::String(more))) = (
        blocks.last_mut().and_then(|last| last.get_mut("text")),
        block.get("text"),
    ) {
        text.push_str(more);
    } else {
        blocks.push(block);
    }
}

/// Builds the messages of a turn: each assistant message with its calls, then the results of these calls.
#[derive(Default)]
struct Messages {
    items: Vec<Item>,
    /// The blocks of the assistant message that is being built.
    content: Vec<Value>,
    /// The ids that the agent gave to that message.
    ids: Vec<String>,
    /// The entries that follow that message.
    results: Vec<Item>,
    /// Whether one of `results` is a message.
    has_result: bool,
    /// The output of each terminal, by its id.
    terminals: HashMap<String, String>,
    has_ids: bool,
}

impl Messages {
    fn add(&mut self, part: Part) {
        match part {
            Part::Text {
                speaker: Speaker::User,
                id,
                blocks,
            } => {
                self.close();
                let message = json!({ "role": "user", "content": blocks });
                self.items
                    .push(Item::Message(with_ids(message, id.into_iter().collect())));
            }
            // Text without an id comes from the agent's adapter: a warning, or the answer to a command of the
            // adapter.
            Part::Text {
                speaker: Speaker::Agent,
                id: None,
                blocks,
            } if self.has_ids => {
                let text = text_of(&Value::Array(blocks));
                let notice = Item::Custom(NOTICE, json!({ "text": text }));
                self.results.push(notice);
            }
            Part::Text {
                speaker,
                id,
                blocks,
            } => {
                // A plan between two texts does not separate them, because the agent does not replay plans.
                if self.has_result {
                    self.close();
                }
                self.ids.extend(id);
                match speaker {
                    Speaker::Thought => {
                        let text = text_of(&Value::Array(blocks));
                        self.content
                            .push(json!({ "type": "thinking", "thinking": text }));
                    }
                    _ => self.content.extend(blocks),
                }
            }
            Part::Call(call) => {
                self.content.push(call_block(&call));
                let result = result(&call, &self.terminals);
                self.has_result |= result.is_some();
                self.results.extend(result);
            }
            Part::Custom(custom_type, data) => self.results.push(Item::Custom(custom_type, data)),
            Part::Replaced => {}
        }
    }

    fn close(&mut self) {
        if !self.content.is_empty() {
            let content = std::mem::take(&mut self.content);
            let message = json!({ "role": "assistant", "content": content });
            let ids = std::mem::take(&mut self.ids);
            self.items.push(Item::Message(with_ids(message, ids)));
        }
        self.items.append(&mut self.results);
        self.has_result = false;
    }

    /// Adds to the last assistant message how the turn ended.
    fn end(&mut self, stop: Option<&str>, result: &Value) {
        let reason = match stop {
            Some("end_turn") => "stop",
            Some("max_tokens" | "max_turn_requests") => "length",
            Some("refusal") => "error",
            _ => "aborted",
        };
        let is_assistant = |item: &&mut Item| matches!(item, Item::Message(message) if message.get("role") == Some(&json!("assistant")));
        let last = self.items.iter_mut().rev().find(is_assistant);
        if let Some(Item::Message(Value::Object(message))) = last {
            message.insert("stopReason".to_owned(), json!(reason));
            if let Some(usage) = result.get("usage").filter(|usage| usage.is_object()) {
                message.insert("usage".to_owned(), usage_of(usage));
            }
            let id = result.get(PROMPT_ID).and_then(Value::as_str);
            if let Some(id) = id.filter(|id| id.len() <= MAX_ID) {
                message.insert(PROMPT_ID.to_owned(), json!(id));
            }
        }
    }
}

fn usage_of(usage: &Value) -> Value {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    json!({
        "input": count("inputTokens"),
        "output": count("outputTokens"),
        "cacheRead": count("cachedReadTokens"),
        "cacheWrite": count("cachedWriteTokens"),
        "totalTokens": count("totalTokens"),
    })
}

fn call_block(call: &Call) -> Value {
    let arguments = match call.get("rawInput") {
        Some(Value::Object(arguments)) => Value::Object(arguments.clone()),
        Some(Value::Null) | None => json!({ "title": call.get("title") }),
        Some(other) => json!({ "_raw": other.to_string() }),
    };
    json!({
        "type": "toolCall",
        "id": call.get("toolCallId"),
        "name": call.tool(),
        "arguments": arguments,
    })
}

/// The result of a call; `None` while the call has not ended. `terminals` has the output of each terminal, by its id.
fn result(call: &Call, terminals: &HashMap<String, String>) -> Option<Item> {
    let is_error = match call.get("status").and_then(Value::as_str) {
        Some("completed") => false,
        Some("failed") => true,
        _ => return None,
    };
    let content = call.get("content").and_then(Value::as_array);
    let shown = content.into_iter().flatten();
    let shown = shown.filter_map(|content| result_block(content, terminals));
    let mut blocks: Vec<Value> = shown.collect();
    if blocks.is_empty() {
        let text = match call.get("rawOutput") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(output)) => match output.get("output").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => Value::Object(output.clone()).to_string(),
            },
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        blocks.push(json!({ "type": "text", "text": text }));
    }
    let message = json!({
        "role": "toolResult",
        "toolCallId": call.get("toolCallId"),
        "toolName": call.tool(),
        "content": blocks,
        "isError": is_error,
    });
    Some(Item::Message(message))
}

fn result_block(content: &Value, terminals: &HashMap<String, String>) -> Option<Value> {
    let member = |name: &str| {
        content
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match member("type") {
        "content" => block(content.get("content")?),
        "diff" => {
            let lines = |sign: char, name: &str| -> String {
                let lines = member(name).lines();
                lines.map(|line| format!("{sign}{line}\n")).collect()
            };
            let (old, new) = (lines('-', "oldText"), lines('+', "newText"));
            let text = format!("{}\n{old}{new}", member("path"));
            Some(json!({ "type": "text", "text": text }))
        }
        "terminal" => {
            let id = member("terminalId");
            let shown = terminals.get(id).cloned();
            let text = shown.unwrap_or_else(|| format!("[terminal {id}]"));
            (!text.is_empty()).then(|| json!({ "type": "text", "text": text }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
