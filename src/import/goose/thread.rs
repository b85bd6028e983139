//! Reads a session and makes its nodes.

use super::super::member::{Base, Member, Node, NodeKind, Parent, Place, Record, Spawner};
use super::super::value::{RecordTypes, Value, boxed, literal, mixed, text};
use super::record::{self, Block, Item, Message, time};
use crate::reader::Reader;
use hashbrown::{HashMap, HashSet};
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// The most results of one message that become entries. The limit is needed because each entry is made from the whole
/// message.
const MOST_RESULTS: usize = 256;

/// The facts of a message, without its content.
#[derive(Debug)]
struct Line {
    key: Box<str>,
    is_user: bool,
    time: Option<Millis>,
    number: u64,
    /// The places of its records. There are several if goose has stored an answer in pieces.
    places: Vec<Place>,
    fingerprint: u64,
    is_user_visible: bool,
    is_agent_visible: bool,
    is_turn_context: bool,
    has_text: bool,
    /// Whether its first text begins with a slash.
    begins_with_slash: bool,
    has_notice: bool,
    has_model: bool,
    /// Whether the message has a count of tokens. goose writes the count into the last row of an answer.
    has_usage: bool,
    /// Whether the message has content other than results.
    has_content: bool,
    /// For each call, its id and the name of its tool.
    calls: Vec<(Box<str>, Box<str>)>,
    /// The ids of the calls whose results the message has.
    results: Vec<Box<str>>,
}

impl Line {
    fn new(message: &Message<'_>, key: Box<str>, record: &Record<'_>) -> Self {
        let mut line = Self {
            key,
            is_user: message.is_user,
            time: message.created,
            number: record.number,
            places: vec![record::place(record)],
            fingerprint: message.fingerprint(),
            is_user_visible: message.flag("userVisible").unwrap_or(true),
            is_agent_visible: message.flag("agentVisible").unwrap_or(true),
            is_turn_context: message.flag("turnContext").unwrap_or(false),
            has_text: false,
            begins_with_slash: false,
            has_notice: false,
            has_model: message.has_metadata("inference"),
            has_usage: message.has_metadata("usage"),
            has_content: false,
            calls: Vec::new(),
            results: Vec::new(),
        };
        for block in message.blocks() {
            match block {
                Block::Result { id, .. } if line.results.len() < MOST_RESULTS => {
                    line.results.extend(boxed(Some(id)));
                }
                Block::Result { .. } => {}
                Block::Call { id, value, .. } => {
                    let name = boxed(value.and_then(|value| json::get(value, "name")));
                    line.calls
                        .extend(boxed(Some(id)).map(|id| (id, name.unwrap_or_default())));
                }
                Block::Text(text) => {
                    line.begins_with_slash |= !line.has_text && text.starts_with(b"\"/");
                    line.has_text = true;
                }
                Block::Notice => line.has_notice = true,
                Block::Thinking { .. } | Block::Image { .. } | Block::Other => {}
            }
            line.has_content |= !matches!(block, Block::Result { .. });
        }
        line
    }

    /// Whether only the model gets the message: it is a summary, or the answer after a summary.
    fn is_hidden(&self) -> bool {
        !self.is_user_visible && !self.is_turn_context
    }

    /// Whether only the user sees the message. Messages before a compaction are hidden from the model too.
    fn is_for_user(&self) -> bool {
        self.is_user_visible && !self.is_agent_visible
    }

    /// Whether the message may be a command to goose, such as `/compact`. The message after it decides.
    fn is_command(&self) -> bool {
        self.is_user && self.is_for_user() && self.begins_with_slash && self.results.is_empty()
    }

    /// Whether goose itself may have written the message, as the reply to a command. Such a message does not name a
    /// model.
    fn is_reply(&self) -> bool {
        !self.is_user && self.is_for_user() && !self.has_model && self.calls.is_empty()
    }

    fn may_be_summary(&self) -> bool {
        self.is_hidden() && self.has_text && self.calls.is_empty() && self.results.is_empty()
    }
}

/// Reads one session.
#[derive(Debug)]
pub(super) struct ThreadReader {
    /// The name of the file. It is the id of a session that has no record.
    stem: String,
    session: Option<SessionInfo>,
    lines: Vec<Line>,
    /// For each id that was made from content, how often it occurred.
    derived: HashMap<String, u64>,
    types: RecordTypes,
}

/// The facts in the session's own record.
#[derive(Debug)]
struct SessionInfo {
    id: Option<String>,
    title: Option<String>,
    directory: Option<String>,
    parent: Option<String>,
    is_subagent: bool,
    started: Option<Millis>,
    updated: Option<Millis>,
    /// The provider and model for messages that do not name them, as raw JSON.
    model: Option<Box<str>>,
}

impl SessionInfo {
    fn new(data: &Value<'_>) -> Self {
        let owned = |name: &str| {
            let found = text(data.get(name)).map(|text| text.into_owned());
            found.filter(|text| !text.trim().is_empty())
        };
        let [created, updated, provider, config] = data.each([
            "created_at",
            "updated_at",
            "provider_name",
            "model_config_json",
        ]);
        let config = config.and_then(|config| Value::of_literal(config, &[]));
        let model = config
            .as_ref()
            .and_then(|config| literal(config.get("model_name")));
        let model = literal(provider).zip(model).map(|(provider, model)| {
            let both = [b"[", provider, b",", model, b"]"].concat();
            String::from_utf8_lossy(&both).into_owned().into_boxed_str()
        });
        Self {
            id: owned("id"),
            title: owned("name").or_else(|| owned("description")),
            directory: owned("working_dir"),
            parent: owned("parent_session_id"),
            is_subagent: owned("session_type").as_deref() == Some("sub_agent"),
            started: time(created),
            updated: time(updated),
            model,
        }
    }
}

impl ThreadReader {
    pub(super) fn new(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        Self {
            stem: name.strip_suffix(".jsonl").unwrap_or(name).to_owned(),
            session: None,
            lines: Vec::new(),
            derived: HashMap::new(),
            types: RecordTypes::default(),
        }
    }

    fn message(&mut self, message: &Message<'_>, record: &Record<'_>) {
        let key: Box<str> = match &message.id {
            Some(id) => Box::from(&**id),
            None => {
                let id = message.derived_id();
                let count = self.derived.entry(id.clone()).or_default();
                *count += 1;
                match count {
                    1 => id.into_boxed_str(),
                    count => format!("{id}.{count}").into_boxed_str(),
                }
            }
        };
        let line = Line::new(message, key, record);
        match self.lines.last_mut() {
            // An answer may be stored in several rows.
            Some(last) if !line.is_user && !last.is_user && last.key == line.key => {
                last.places.extend(line.places);
                last.calls.extend(line.calls);
                last.has_text |= line.has_text;
                last.has_content |= line.has_content;
                last.has_usage = line.has_usage;
                last.fingerprint = mixed(last.fingerprint, line.fingerprint);
            }
            _ => self.lines.push(line),
        }
    }
}

impl Reader for ThreadReader {
    fn record(&mut self, record: Record<'_>) {
        let item = record::read(record.bytes);
        let name = match &item {
            Some(Item::Session(_)) => "session",
            Some(Item::Message(_)) => "message",
            Some(Item::Other(table)) => table,
            None => "unknown",
        };
        self.types.add(record.at, name);
        match item {
            Some(Item::Session(data)) => self.session = Some(SessionInfo::new(&data)),
            Some(Item::Message(message)) => self.message(&message, &record),
            Some(Item::Other(_)) | None => {}
        }
    }

    fn finish(self: Box<Self>) -> Vec<Member> {
        if self.session.is_none() && self.lines.is_empty() {
            return Vec::new();
        }
        let session = self.session.as_ref();
        let id = session
            .and_then(|session| session.id.clone())
            .unwrap_or(self.stem);
        let model = session.and_then(|session| session.model.as_deref());
        let nodes = nodes(&self.lines, model);
        let used = nodes.iter().flat_map(|node| &node.places);
        let mut member = Member {
            native_id: id.clone(),
            part_id: id,
            origin_only: self.types.unused(used.map(|place| place.at).collect()),
            leaf: u32::try_from(nodes.len())
                .ok()
                .and_then(|count| count.checked_sub(1)),
            has_end_mark: has_end_mark(&self.lines),
            started: nodes.iter().find_map(|node| node.time),
            ended: nodes.iter().filter_map(|node| node.time).max(),
            nodes,
            ..Member::default()
        };
        if let Some(session) = self.session {
            member.cwd = session.directory.clone();
            member.project = session.directory;
            member.title = session.title;
            member.started = session.started.or(member.started);
            member.ended = session.updated.max(member.ended);
            match session.parent {
                Some(native_id) if session.is_subagent => {
                    member.spawned_by = Some(Spawner {
                        native_id,
                        tool_call_id: None,
                    });
                }
                Some(native_id) => member.base = Base::CopyOf { native_id },
                None => {}
            }
        }
        vec![member]
    }
}

/// For each message, the kind of its node. The nodes of its results are not included. The kind stays the same when a
/// later compaction hides the message from the model.
fn kinds(lines: &[Line]) -> Vec<NodeKind> {
    let mut kinds = Vec::with_capacity(lines.len());
    // Whether all messages so far are hidden from the model, as they are after a compaction.
    let mut are_compacted = true;
    for (index, line) in lines.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| lines.get(before));
        let next = lines.get(index + 1);
        let is_followed = next.is_some_and(|next| !next.is_user && next.is_hidden());
        // If a later compaction has hidden a summary, it is recognized by the answer after it.
        let is_summary = index > 0
            && are_compacted
            && line.may_be_summary()
            && (line.is_agent_visible || is_followed)
            && !matches!(kinds.last(), Some(NodeKind::Compaction { .. }));
        let is_command = next.is_some_and(|next| line.is_command() && next.is_reply());
        let is_reply = before.is_some_and(|before| before.is_command() && line.is_reply());
        kinds.push(match line {
            _ if is_summary => NodeKind::Compaction { first_kept: None },
            line if line.is_turn_context || line.is_hidden() => NodeKind::Scaffolding,
            line if line.has_notice && !line.has_text => NodeKind::Custom,
            _ if is_command || is_reply => NodeKind::Custom,
            line if line.is_user => NodeKind::User,
            _ => NodeKind::Assistant,
        });
        are_compacted &= !line.is_agent_visible;
    }
    kinds
}

fn nodes(lines: &[Line], model: Option<&str>) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut keys: HashSet<Box<str>> = HashSet::new();
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut last_answer = None;
    for (line, kind) in lines.iter().zip(kinds(lines)) {
        names.extend(line.calls.iter().map(|(id, name)| (&**id, &**name)));
        let mut push = |key: String, kind: NodeKind, note: Option<Box<str>>, part: u64| {
            let mut key = key.into_boxed_str();
            if !keys.insert(key.clone()) {
                key = format!("{key}#{}.{part}", line.number).into_boxed_str();
                keys.insert(key.clone());
            }
            let last = u32::try_from(nodes.len())
                .ok()
                .and_then(|count| count.checked_sub(1));
            nodes.push(Node {
                key,
                parent: last.map_or(Parent::Base, Parent::Node),
                kind,
                time: line.time,
                order: line.number,
                places: line.places.clone(),
                fingerprint: mixed(line.fingerprint, part),
                note,
                is_open: false,
            });
        };
        for (part, call) in (1..).zip(&line.results) {
            let name = names.get(&**call).copied().unwrap_or_default();
            let note = [call.to_string(), name.to_owned()];
            let mut both = Vec::new();
            json::push_strings(&mut both, &note);
            let note = String::from_utf8_lossy(&both).into_owned().into_boxed_str();
            push(
                format!("{}/r:{call}", line.key),
                NodeKind::ToolResult,
                Some(note),
                part,
            );
        }
        if line.has_content || line.results.is_empty() {
            let is_answer = kind == NodeKind::Assistant;
            let note = model.filter(|_| is_answer && !line.has_model);
            push(line.key.to_string(), kind, note.map(Box::from), 0);
            if is_answer {
                last_answer = nodes.len().checked_sub(1);
            }
        }
    }
    hold_back(&mut nodes, last_answer);
    // A command is held back until its reply was read.
    if lines.last().is_some_and(Line::is_command) {
        nodes
            .iter_mut()
            .next_back()
            .into_iter()
            .for_each(|node| node.is_open = true);
    }
    nodes
}

/// Whether the last answer has ended: only its results follow, and none is missing.
fn has_end_mark(lines: &[Line]) -> bool {
    let is_result = |line: &&Line| line.is_user && !line.has_content;
    let results = lines.iter().rev().take_while(is_result);
    let answered: HashSet<&str> = results
        .flat_map(|line| line.results.iter().map(|call| &**call))
        .collect();
    let answer = lines.iter().rev().find(|line| !is_result(line));
    answer.is_some_and(|answer| {
        let mut calls = answer.calls.iter();
        !answer.is_user && answer.has_usage && calls.all(|(id, _)| answered.contains(&**id))
    })
}

/// Marks the last answer and its results as open if no other message follows, because they may still grow.
fn hold_back(nodes: &mut [Node], last_answer: Option<usize>) {
    let Some(group) = last_answer.and_then(|answer| nodes.get_mut(answer..)) else {
        return;
    };
    let is_last = group
        .iter()
        .skip(1)
        .all(|node| node.kind == NodeKind::ToolResult);
    group.iter_mut().for_each(|node| node.is_open = is_last);
}
