//! Reads the lines of a task and makes its nodes.

use super::message::{Block, Listener, Said, block, blocks, environment};
use super::request::{Request, of_answers};
use crate::member::{Member, Node, NodeKind, Parent, Place, Record, Spawner};
use crate::message::elements;
use crate::reader::Reader;
use crate::value::{RecordTypes, boxed, instant, is_blank, literal, millis, text};
use hashbrown::{HashMap, HashSet};
use memchr::memmem;
use treelined_core::json;
use treelined_core::timestamp::Millis;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The longest id that is used unchanged, in bytes. The hash of a longer id is used instead of the id.
const LONGEST_ID: usize = 128;

/// A message without its content.
struct Message {
    place: Place,
    number: u64,
    key: Box<str>,
    time: Option<Millis>,
    is_answer: bool,
    has_metrics: bool,
    /// The kinds of its nodes, without the results.
    kinds: Vec<NodeKind>,
    results: Vec<CallResult>,
    /// The model that the text about the environment names.
    model: Option<Box<str>>,
    /// A hash of the id of the summary, if the message is a summary.
    condense: Option<u64>,
}

/// The result of a call, in a message.
struct CallResult {
    place: Place,
    call: Box<str>,
    tool: Option<Box<str>>,
}

/// Reads the lines of a task.
pub(super) struct TaskReader {
    member: Member,
    /// The id from the path of the source.
    fallback: String,
    messages: Vec<Message>,
    requests: Vec<Request>,
    /// The messages on the screen that report a summary, by a hash of the summary's id.
    condensed: HashMap<u64, Place>,
    /// The models that the task has used, each with the time of its first use.
    models: Vec<(Millis, Box<str>)>,
    /// The model that the facts about the task name.
    model: Option<Box<str>>,
    /// The tool of each call, by its id.
    tools: HashMap<Box<str>, Box<str>>,
    /// The number of messages with each key.
    keys: HashMap<Box<str>, u32>,
    types: RecordTypes,
}

impl TaskReader {
    pub(super) fn new(path: &str) -> Self {
        let mut parts = path.rsplit('/');
        let (name, folder) = (parts.next().unwrap_or(path), parts.next());
        let stem = name.strip_suffix(".messages.json");
        let folder = folder.filter(|folder| !folder.is_empty());
        let fallback = stem.or(folder).unwrap_or(name);
        Self {
            member: Member::default(),
            fallback: fallback.to_owned(),
            messages: Vec::new(),
            requests: Vec::new(),
            condensed: HashMap::new(),
            models: Vec::new(),
            model: None,
            tools: HashMap::new(),
            keys: HashMap::new(),
            types: RecordTypes::default(),
        }
    }

    fn message(&mut self, record: &Record<'_>, message: &[u8]) {
        let names = [
            "id",
            "ts",
            "role",
            "metrics",
            "isSummary",
            "condenseId",
            "isTruncationMarker",
        ];
        let [id, time, role, metrics, is_summary, condense, is_marker] =
            json::get_each(message, names);
        let (role, time) = (text(role).unwrap_or_default(), millis(time));
        self.types.add(record.at, &format!("message/{role}"));
        let is_answer = role == "assistant";
        let place = Place {
            at: record.at,
            len: record.bytes.len() as u64,
        };
        let mut read = Message {
            place,
            number: record.number,
            key: self.key(id, time, &role, message),
            time,
            is_answer,
            has_metrics: metrics.is_some(),
            kinds: Vec::new(),
            results: Vec::new(),
            model: None,
            condense: None,
        };
        if is_summary == Some(b"true") {
            read.condense = text(condense).map(|id| xxh3_64(id.as_bytes()));
            read.kinds = vec![NodeKind::Compaction { first_kept: None }];
        } else if is_marker == Some(b"true") {
            read.kinds = vec![NodeKind::Scaffolding];
        } else if is_answer {
            self.answer(message, &mut read);
        } else if role == "user" {
            let [cwd, model] = environment(message);
            self.member.cwd = self.member.cwd.take().or(cwd);
            read.model = model.map(String::into_boxed_str);
            self.question(record, message, &mut read);
        }
        self.messages.push(read);
    }

    /// The key of a message. If an earlier message has the same key, a number is added.
    fn key(
        &mut self,
        id: Option<&[u8]>,
        time: Option<Millis>,
        role: &str,
        message: &[u8],
    ) -> Box<str> {
        let id = text(id).filter(|id| !id.is_empty());
        let key = match (id, time) {
            (Some(id), _) if id.len() <= LONGEST_ID => id.into_owned(),
            (Some(id), _) => format!("#{:016x}", xxh3_64(id.as_bytes())),
            (None, Some(time)) => format!("{}{time}", role.get(..1).unwrap_or_default()),
            (None, None) => {
                let content = json::get(message, "content").unwrap_or_default();
                format!(
                    "#{:016x}",
                    xxh3_64_with_seed(content, xxh3_64(role.as_bytes()))
                )
            }
        };
        let count = self.keys.entry(key.as_str().into()).or_insert(0);
        *count += 1;
        match *count {
            1 => key.into(),
            count => format!("{key}/again{count}").into(),
        }
    }

    fn answer(&mut self, message: &[u8], read: &mut Message) {
        let (mut has_content, mut calls) = (false, 0);
        for block in blocks(message) {
            has_content |= !matches!(block, Block::Result | Block::Plain(_));
            if let Block::Call { id, name, .. } = block {
                let id = boxed(id).filter(|id| !id.is_empty());
                let id = id.unwrap_or_else(|| format!("#{calls}").into());
                calls += 1;
                if let Some(name) = boxed(name).filter(|name| !name.contains('\n')) {
                    self.tools.insert(id, name);
                }
            }
        }
        if has_content {
            read.kinds = vec![NodeKind::Assistant];
        }
    }

    fn question(&self, record: &Record<'_>, message: &[u8], read: &mut Message) {
        let content = json::get(message, "content").unwrap_or_default();
        for result in elements(content) {
            if !matches!(block(result), Some(Block::Result)) {
                continue;
            }
            let [call, name] = json::get_each(result, ["tool_use_id", "name"]);
            let call = boxed(call).filter(|call| !call.is_empty());
            let call = call.unwrap_or_else(|| format!("#{}", read.results.len()).into());
            let at = result.as_ptr() as usize - record.bytes.as_ptr() as usize;
            let name = boxed(name).filter(|name| !name.contains('\n'));
            read.results.push(CallResult {
                place: Place {
                    at: record.at + at as u64,
                    len: result.len() as u64,
                },
                tool: name.or_else(|| self.tools.get(&call).cloned()),
                call,
            });
        }
        let (mut has_words, mut is_of_program) = (false, false);
        let mut listener = Listener::default();
        for block in blocks(message) {
            match block {
                Block::Text(literal) => {
                    for said in listener.hear(literal).into_iter().flatten() {
                        match said {
                            Said::User(_) => has_words = true,
                            Said::Program(_) => is_of_program = true,
                        }
                    }
                }
                Block::Image { .. } | Block::Other(_) => has_words = true,
                _ => {}
            }
        }
        let program = is_of_program.then_some(NodeKind::Scaffolding);
        let words = has_words.then_some(NodeKind::User);
        read.kinds = program.into_iter().chain(words).collect();
    }

    /// A message on the screen.
    fn ui(&mut self, record: &Record<'_>, ui: &[u8]) {
        let names = [
            "ts",
            "say",
            "text",
            "conversationHistoryIndex",
            "contextCondense",
        ];
        let [time, say, said, index, condense] = json::get_each(ui, names);
        let (say, time) = (text(say), millis(time));
        self.types.add(
            record.at,
            &format!("ui/{}", say.as_deref().unwrap_or("ask")),
        );
        self.times(time);
        let place = Place {
            at: record.at,
            len: record.bytes.len() as u64,
        };
        if say.as_deref() == Some("api_req_started") {
            self.requests.push(Request::of(place, time, index, said));
        }
        if let Some(id) = text(condense.and_then(|it| json::get(it, "condenseId"))) {
            self.condensed.insert(xxh3_64(id.as_bytes()), place);
        }
    }

    /// A file with facts about the task.
    fn facts(&mut self, row: &[u8]) {
        let names = [
            "workspace",
            "cwdOnTaskInitialization",
            "cwd",
            "parentTaskId",
            "modelId",
            "model",
            "model_usage",
            "started_at",
            "prompt",
            "metadata",
        ];
        let [
            workspace,
            first,
            cwd,
            parent,
            model,
            other,
            models,
            started,
            prompt,
            metadata,
        ] = json::get_each(row, names);
        let mut folders = [cwd, first, workspace].into_iter();
        let folder = folders.find_map(|raw| text(raw).filter(|it| !it.is_empty()));
        if let Some(folder) = folder {
            self.member.cwd = Some(folder.into_owned());
        }
        if let Some(parent) = text(parent).filter(|parent| !parent.is_empty()) {
            self.member.spawned_by = Some(Spawner {
                native_id: parent.into_owned(),
                tool_call_id: None,
            });
        }
        self.model = boxed(model).or(boxed(other)).or(self.model.take());
        self.times(instant(started));
        for used in models.into_iter().flat_map(elements) {
            let [time, model] = json::get_each(used, ["ts", "model_id"]);
            if let (Some(time), Some(model)) = (millis(time), boxed(model)) {
                self.models.push((time, model));
            }
        }
        // The title is the prompt until someone changes it.
        let title = metadata.and_then(|metadata| json::get(metadata, "title"));
        let is_own = |title: &&[u8]| !prompt.is_some_and(|prompt| has_text(prompt, title));
        let title = literal(title)
            .filter(|title| !is_blank(title))
            .filter(is_own);
        if let Some(title) = text(title) {
            self.member.title = Some(title.into_owned());
        }
    }

    /// Reads the members of Cline's file other than the messages.
    fn session(&mut self, session: &[u8]) {
        let Some(id) = text(json::get(session, "sessionId")).filter(|id| !id.is_empty()) else {
            return;
        };
        // The id of a subagent's session is made from the id of its parent and its own id.
        if let Some((parent, _)) = id.split_once("__") {
            self.member.spawned_by = Some(Spawner {
                native_id: parent.to_owned(),
                tool_call_id: None,
            });
        }
        self.member.native_id = id.into_owned();
    }

    fn times(&mut self, time: Option<Millis>) {
        let first = [self.member.started, time].into_iter().flatten().min();
        self.member.started = first;
        self.member.ended = self.member.ended.max(time);
    }

    /// Adds a node below the previous node.
    fn node(
        &mut self,
        key: String,
        kind: NodeKind,
        message: &Message,
        places: Vec<Place>,
        note: Option<Box<str>>,
    ) {
        let last = self.member.nodes.len().checked_sub(1);
        let last = last.and_then(|last| u32::try_from(last).ok());
        self.member.nodes.push(Node {
            key: key.into(),
            parent: last.map_or(Parent::Base, Parent::Node),
            kind,
            time: message.time,
            order: message.number,
            places,
            fingerprint: 0,
            note,
            is_open: false,
        });
    }

    /// Adds the nodes of a message. `ui` is the message on the screen that belongs to it.
    fn emit(&mut self, message: &Message, ui: Option<Place>, model: Option<&str>) {
        let mut seen = HashSet::new();
        for (number, result) in message.results.iter().enumerate() {
            let key = match seen.insert(&result.call) {
                true => format!("{}/r:{}", message.key, result.call),
                false => format!("{}/r:{}/{number}", message.key, result.call),
            };
            let tool = result.tool.as_deref().unwrap_or_default();
            let note = format!("{tool}\n{}", result.call);
            self.node(
                key,
                NodeKind::ToolResult,
                message,
                vec![result.place],
                Some(note.into()),
            );
        }
        for kind in &message.kinds {
            let key = match kind {
                NodeKind::Scaffolding => format!("{}/p", message.key),
                _ => message.key.to_string(),
            };
            let places = [message.place].into_iter().chain(ui).collect();
            let note = model
                .filter(|_| *kind == NodeKind::Assistant)
                .map(Into::into);
            self.node(key, kind.clone(), message, places, note);
        }
    }

    /// The model of an answer that does not name its model: the model of the task at this time, or the model that was
    /// named last.
    fn model_at(&self, time: Option<Millis>, named: Option<&str>) -> Option<Box<str>> {
        let end = self
            .models
            .partition_point(|(since, _)| Some(*since) <= time);
        let used = end.checked_sub(1).and_then(|last| self.models.get(last));
        let used = used.or(self.models.first()).map(|(_, model)| model.clone());
        used.or_else(|| named.map(Into::into))
            .or_else(|| self.model.clone())
    }
}

/// Whether `all` contains the text of `literal`.
fn has_text(all: &[u8], literal: &[u8]) -> bool {
    let inner = literal.get(1..literal.len().saturating_sub(1));
    memmem::find(all, inner.unwrap_or_default()).is_some()
}

impl Reader for TaskReader {
    fn record(&mut self, record: Record<'_>) {
        let names = ["message", "ui", "session", "row", "file"];
        let [message, ui, session, row, file] = json::get_each(record.bytes, names);
        match (message, ui) {
            (Some(message), _) => self.message(&record, message),
            (None, Some(ui)) => self.ui(&record, ui),
            (None, None) => {
                let file = text(file);
                let name = file.as_deref().unwrap_or("session");
                let kind = if name.ends_with(".json") {
                    "facts"
                } else {
                    name
                };
                self.types.add(record.at, kind);
                if let Some(row) = row {
                    self.facts(row);
                }
                if let Some(session) = session {
                    self.session(session);
                }
            }
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        let mut messages = std::mem::take(&mut self.messages);
        self.models.sort_by_key(|(since, _)| *since);
        let answers = messages.iter().enumerate();
        let answers = answers.filter(|(_, message)| message.is_answer);
        let answers: Vec<_> = answers.map(|(at, message)| (at, message.time)).collect();
        let requests = of_answers(&self.requests, &answers);
        let is_counting = requests
            .last()
            .copied()
            .flatten()
            .is_some_and(|it| !it.is_done);
        let mut uis: Vec<Option<Place>> = vec![None; messages.len()];
        for ((at, _), request) in answers.iter().zip(requests) {
            let Some(request) = request else { continue };
            if let Some(slot) = uis.get_mut(*at) {
                *slot = Some(request.place);
            }
            // The messages of older versions have no times. The question was asked when the request began.
            let both = messages
                .get_mut(at.saturating_sub(1)..=*at)
                .unwrap_or_default();
            for message in both {
                message.time = message.time.or(request.time);
            }
        }
        let (mut named, mut used): (Option<Box<str>>, Vec<u64>) = (None, Vec::new());
        for (message, mut ui) in messages.iter().zip(uis) {
            named = message.model.clone().or(named);
            if let Some(condense) = message.condense {
                ui = self.condensed.get(&condense).copied();
            }
            let before = self.member.nodes.len();
            let model = self.model_at(message.time, named.as_deref());
            self.times(message.time);
            self.emit(message, ui, model.as_deref());
            if self.member.nodes.len() > before {
                used.push(message.place.at);
                used.extend(ui.filter(|_| !message.kinds.is_empty()).map(|ui| ui.at));
            }
        }
        // The tokens of the last answer may be written later.
        let last = messages.last().filter(|it| it.is_answer && !it.has_metrics);
        if let (true, Some(_), Some(node)) = (is_counting, last, self.member.nodes.last_mut()) {
            node.is_open = true;
        }
        self.member.origin_only = self.types.unused(used);
        self.member.leaf = u32::try_from(self.member.nodes.len())
            .ok()
            .and_then(|len| len.checked_sub(1));
        if self.member.native_id.is_empty() {
            self.member.native_id = std::mem::take(&mut self.fallback);
        }
        self.member.part_id.clone_from(&self.member.native_id);
        vec![self.member]
    }
}
