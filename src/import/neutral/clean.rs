//! Makes a neutral path from the messages of a context.

use super::blocks::{Block, blocks, described};
use super::loss::{Loss, Losses};
use super::path::{
    Call, CallResult, Message, Model, ModelMessage, ModelPart, NeutralPath, Options, Part,
    UserMessage,
};
use super::tools::rename;
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet, VecDeque};
use treelined_core::context::for_model;
use treelined_core::context::handed::PathMessage;
use treelined_core::entry::Role;
use treelined_core::json;

/// The text of the result for a call that has no result.
const NOT_RUN: &str = "Not run: the branch ends here.";
/// The text of the first message, if a path does not begin with the user.
const BEGINNING: &str = "(The beginning of this conversation is not part of this session.)";
/// The longest id of a call, in characters.
const MAX_CALL_ID: usize = 64;

impl NeutralPath {
    /// Makes a neutral path from the messages of a context.
    pub fn of(path: impl IntoIterator<Item: Borrow<PathMessage>>, options: Options<'_>) -> Self {
        let mut cleaner = Cleaner::new(options);
        if let Some(summary) = options.summary {
            cleaner.summary(summary);
        }
        for message in path {
            cleaner.push(message.borrow());
        }
        cleaner.finish()
    }
}

struct Cleaner<'a> {
    options: Options<'a>,
    messages: Vec<Message>,
    losses: Losses,
    /// The ids of all calls so far.
    ids: HashSet<String>,
    /// The first number that is tried for a new id.
    next_id: usize,
    /// The calls in the last message of a model, in order. `None` stands for a call that has its result.
    open: Vec<Option<OpenCall>>,
    /// For each id in the entry, the positions of its calls that have no result.
    waiting: HashMap<String, VecDeque<usize>>,
    /// Whether the last results are in the order of their calls.
    is_sorted: bool,
}

/// A call that has no result yet.
struct OpenCall {
    id: String,
    name: String,
}

impl<'a> Cleaner<'a> {
    fn new(options: Options<'a>) -> Self {
        Self {
            options,
            messages: Vec::new(),
            losses: Losses::default(),
            ids: HashSet::new(),
            next_id: 0,
            open: Vec::new(),
            waiting: HashMap::new(),
            is_sorted: true,
        }
    }

    fn push(&mut self, message: &PathMessage) {
        if message.is_scaffolding {
            return self.losses.add(Loss::Scaffolding, 1);
        }
        let (json, entry) = (&message.json, message.entry_id.clone());
        let role = json::get(json, "role").and_then(json::string);
        match role.map_or(Role::None, |role| Role::of(&role)) {
            Role::System => self.losses.add(Loss::SystemMessages, 1),
            Role::Assistant => self.model(json, entry),
            Role::ToolResult => self.result(json, entry),
            role => {
                if let Some(json) = for_model(json) {
                    self.user(&json, entry, role);
                }
            }
        }
    }

    /// Adds a summary that is not an entry.
    fn summary(&mut self, text: &str) {
        let summary = serde_json::json!({ "role": "compactionSummary", "summary": text });
        if let Some(json) = for_model(summary.to_string().as_bytes()) {
            self.user(&json, String::new(), Role::CompactionSummary);
        }
    }

    fn user(&mut self, json: &[u8], entry: String, role: Role) {
        let (is_summary, is_prompt) = (role == Role::CompactionSummary, role == Role::User);
        let parts = self.parts(json);
        if parts.is_empty() {
            return;
        }
        self.close_calls();
        let entries = Some(entry).filter(|entry| !entry.is_empty());
        if let Some(Message::User(last)) = self.messages.last_mut()
            && !last.is_summary
            && !is_summary
        {
            last.parts.extend(parts);
            last.entries.extend(entries);
            last.is_prompt = is_prompt;
            return;
        }
        self.messages.push(Message::User(UserMessage {
            parts,
            is_summary,
            is_prompt,
            entries: entries.into_iter().collect(),
        }));
    }

    fn parts(&mut self, json: &[u8]) -> Vec<Part> {
        let content = json::get(json, "content").unwrap_or_default();
        let blocks = blocks(content, &mut self.losses).into_iter();
        let parts = blocks.filter_map(|block| match block {
            Block::Part(part) => Some(part),
            Block::Thought(_) | Block::Call { .. } => None,
        });
        match self.options.tool {
            Some(_) => parts.collect(),
            None => parts.map(|part| Part::Text(self.text(part))).collect(),
        }
    }

    /// The text of a part. An image is described.
    fn text(&mut self, part: Part) -> String {
        match part {
            Part::Text(text) => text,
            Part::Image { mime_type, data } => {
                self.losses.add(Loss::Images, 1);
                described(&data, &mime_type)
            }
        }
    }

    fn model(&mut self, json: &[u8], entry: String) {
        let content = json::get(json, "content").unwrap_or_default();
        let found = blocks(content, &mut self.losses);
        // The calls of the previous message must have results even if this message is empty.
        self.close_calls();
        let mut parts = Vec::with_capacity(found.len());
        for block in found {
            match block {
                Block::Part(part) => parts.push(ModelPart::Text(self.text(part))),
                Block::Thought(text) if self.options.keeps_thoughts && !text.trim().is_empty() => {
                    parts.push(ModelPart::Text(text));
                }
                Block::Thought(_) => self.losses.add(Loss::Thoughts, 1),
                Block::Call {
                    id,
                    name,
                    arguments,
                } => {
                    let call = self.call(
                        &id,
                        Call {
                            id: String::new(),
                            name,
                            arguments,
                        },
                    );
                    parts.push(ModelPart::Call(call));
                }
            }
        }
        if parts.is_empty() {
            return;
        }
        if let Some(Message::Model(last)) = self.messages.last_mut() {
            last.parts.extend(parts);
            last.entries.push(entry);
            return;
        }
        let text = |name| Some(json::string(json::get(json, name)?)?.into_owned());
        let model = text("provider").zip(text("model"));
        self.messages.push(Message::Model(ModelMessage {
            parts,
            model: model.map(|(provider, id)| Model { provider, id }),
            entries: vec![entry],
        }));
    }

    /// Sets the id and the name of a call, and notes that it has no result yet.
    fn call(&mut self, stored: &str, mut call: Call) -> Call {
        if let Some(tool) = self.options.tool {
            let is_known = rename(&mut call, tool);
            self.losses.add(Loss::ToolNames, u64::from(!is_known));
        }
        call.id = match is_call_id(stored) && !self.ids.contains(stored) {
            true => stored.to_owned(),
            false => {
                self.losses.add(Loss::CallIds, 1);
                self.free_id()
            }
        };
        self.ids.insert(call.id.clone());
        let waiting = self.waiting.entry(stored.to_owned()).or_default();
        waiting.push_back(self.open.len());
        self.open.push(Some(OpenCall {
            id: call.id.clone(),
            name: call.name.clone(),
        }));
        call
    }

    fn free_id(&mut self) -> String {
        self.next_id = self.next_id.max(self.ids.len());
        loop {
            let id = format!("call_{}", self.next_id);
            self.next_id += 1;
            if !self.ids.contains(&id) {
                return id;
            }
        }
    }

    fn result(&mut self, json: &[u8], entry: String) {
        let id = json::get(json, "toolCallId").and_then(json::string);
        let at = id.and_then(|id| self.waiting.get_mut(&*id)?.pop_front());
        let open = at.and_then(|at| self.open.get_mut(at)?.take());
        let Some(open) = open else {
            return self.losses.add(Loss::OrphanResults, 1);
        };
        let parts = self.parts(json);
        self.push_result(CallResult {
            call_id: open.id,
            name: open.name,
            parts,
            is_error: json::get(json, "isError") == Some(b"true"),
            entry: Some(entry),
        });
    }

    fn push_result(&mut self, result: CallResult) {
        self.is_sorted = false;
        match self.messages.last_mut() {
            Some(Message::Results(results)) => results.push(result),
            _ => self.messages.push(Message::Results(vec![result])),
        }
    }

    /// Adds a result to each call that has none, and sorts the results in the order of the calls. Some agents store
    /// each result in its call.
    fn close_calls(&mut self) {
        self.waiting.clear();
        for open in std::mem::take(&mut self.open).into_iter().flatten() {
            self.losses.add(Loss::ClosedCalls, 1);
            self.push_result(CallResult {
                call_id: open.id,
                name: open.name,
                parts: vec![Part::Text(NOT_RUN.to_owned())],
                is_error: true,
                entry: None,
            });
        }
        if std::mem::replace(&mut self.is_sorted, true) {
            return;
        }
        if let [.., Message::Model(said), Message::Results(results)] = &mut *self.messages {
            let calls = said.parts.iter().enumerate();
            let calls = calls.filter_map(|(at, part)| match part {
                ModelPart::Call(call) => Some((call.id.as_str(), at)),
                ModelPart::Text(_) => None,
            });
            let places: HashMap<&str, usize> = calls.collect();
            results.sort_by_key(|result| places.get(result.call_id.as_str()).copied());
        }
    }

    fn finish(mut self) -> NeutralPath {
        self.close_calls();
        let prompt = self.prompt();
        if let Some(last) = self.options.last {
            self.keep_last(last);
        }
        let begins_with_user = matches!(self.messages.first(), None | Some(Message::User(_)));
        if !begins_with_user {
            self.losses.add(Loss::Beginning, 1);
            let beginning = Message::User(UserMessage {
                parts: vec![Part::Text(BEGINNING.to_owned())],
                is_summary: false,
                is_prompt: false,
                entries: Vec::new(),
            });
            self.messages.insert(0, beginning);
        }
        let mut path = NeutralPath {
            messages: self.messages,
            prompt,
            losses: self.losses,
        };
        path.losses
            .add(Loss::Compacted, u64::from(path.begins_with_summary()));
        path
    }

    /// Removes the last message of the user from the end of the path, and returns it as the prompt. A summary or the
    /// output of a command at the end stays in the path, because the agent must not answer it.
    fn prompt(&mut self) -> Option<String> {
        let said = match self.messages.pop()? {
            Message::User(said) if said.is_prompt => said,
            other => {
                self.messages.push(other);
                return None;
            }
        };
        let texts = said.parts.into_iter().map(|part| self.text(part));
        let text = texts.collect::<Vec<_>>().join("\n");
        (!text.trim().is_empty()).then_some(text)
    }

    fn keep_last(&mut self, turns: usize) {
        let starts: Vec<usize> = self
            .messages
            .iter()
            .enumerate()
            .filter(|(_, message)| matches!(message, Message::User(said) if !said.is_summary))
            .map(|(at, _)| at)
            .collect();
        let Some(left_out) = starts
            .len()
            .checked_sub(turns.max(1))
            .filter(|count| *count > 0)
        else {
            return;
        };
        let first = starts.get(left_out).copied().unwrap_or_default();
        self.losses.add(Loss::EarlierTurns, left_out as u64);
        self.messages.drain(..first);
    }
}

fn is_call_id(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_CALL_ID).contains(&id.len()) && id.bytes().all(is_allowed)
}
