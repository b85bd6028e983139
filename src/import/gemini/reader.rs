//! Keeps the list of messages that the tool has, and the messages that it has removed from the list.

use super::chat::{Message, MessageCall, MessageKind, count, kind};
use super::emit;
use super::message::{
    Fields, call_key, directory, message_bytes, place_of, response, spans, text_hash,
};
use crate::mapping::Former;
use crate::member::{Member, Place, Record, Spawner};
use crate::message::elements;
use crate::reader::Reader;
use std::collections::{HashMap, HashSet};
use treelined_core::json;
use treelined_core::timestamp::{self};

/// A message in the list.
#[derive(Debug, Clone, Copy)]
struct Item {
    message: usize,
    /// The message that is the parent of the next message in the list.
    end: usize,
}

/// A `$set.messages` that has only the first messages of the list. If a new message follows, the list was compressed.
/// There is one exception: when a chat is resumed, the tool writes such a list after a header, before the whole list.
/// If a new message follows there, the chat was not loaded and begins again.
struct ShorterList {
    number: u64,
    place: Place,
    kept: Vec<usize>,
    /// Whether nodes are made from parts of the record.
    is_used: bool,
    /// The position in the list after the last message that is kept.
    end: usize,
    is_behind_header: bool,
}

pub(super) struct ChatReader {
    member: Member,
    pub(super) messages: Vec<Message>,
    by_id: HashMap<Box<str>, usize>,
    /// For each call, whether it has a result.
    answered: HashMap<Box<str>, bool>,
    list: Vec<Item>,
    shorter: Option<ShorterList>,
    /// Whether a header has followed the last message.
    is_behind_header: bool,
    former: Former,
    /// The indices of the messages that checkpoints repeat.
    in_checkpoints: Vec<usize>,
    /// For each message, its position in the list.
    positions: HashMap<usize, usize>,
    stem: Box<str>,
}

impl ChatReader {
    pub(super) fn new(path: &str) -> Self {
        let mut names = path.rsplit('/');
        let name = names.next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let above: Vec<&str> = names.take(3).collect();
        let mut member = Member::default();
        match *above {
            ["chats", project, ..] => member.project = Some(project.to_owned()),
            [parent, "chats", project] => {
                member.project = Some(project.to_owned());
                member.spawned_by = Some(Spawner {
                    native_id: parent.to_owned(),
                    tool_call_id: None,
                });
            }
            _ => {}
        }
        Self {
            member,
            messages: Vec::new(),
            by_id: HashMap::new(),
            answered: HashMap::new(),
            list: Vec::new(),
            shorter: None,
            is_behind_header: false,
            former: Former::default(),
            in_checkpoints: Vec::new(),
            positions: HashMap::new(),
            stem: stem.into(),
        }
    }

    fn count(&mut self, label: &str) {
        count(&mut self.member.origin_only, label);
    }

    /// Reads the state of the chat in a header, `$set` or document.
    fn state(&mut self, fields: &[u8]) {
        let names = [
            "sessionId",
            "projectHash",
            "startTime",
            "start_time",
            "lastUpdated",
            "summary",
            "directories",
        ];
        let [session, project, start, older, last, summary, directories] =
            json::get_each(fields, names);
        let text = |raw: Option<&[u8]>| raw.and_then(json::string).map(String::from);
        let time = |raw: Option<&[u8]>| {
            raw.and_then(json::string)
                .and_then(|at| timestamp::parse(&at))
        };
        if let Some(session) = text(session).filter(|id| !id.is_empty()) {
            self.member.native_id = session;
        }
        let member = &mut self.member;
        member.project = member.project.take().or_else(|| text(project));
        member.started = member.started.or(time(start)).or(time(older));
        member.ended = time(last).or(member.ended);
        member.title = text(summary).or(member.title.take());
        let directory = directories.and_then(|raw| elements(raw).next());
        member.cwd = member.cwd.take().or_else(|| text(directory));
    }

    /// Reads a message. Returns whether a node is made from it.
    fn message(&mut self, number: u64, place: Place, raw: &[u8], is_listed: bool) -> bool {
        let fields = Fields::read(raw);
        let Some(kind) = kind(&fields) else {
            return false;
        };
        self.member.has_end_mark = false;
        let id = fields.id.and_then(json::id).map(Box::from);
        let hash = xxhash_rust::xxh3::xxh3_64(raw);
        if let Some(known) = id.as_ref().and_then(|id| self.by_id.get(id)).copied() {
            return self.update(known, (number, place), &fields, hash, is_listed);
        }
        let answers = match kind {
            MessageKind::Answers => self.answers(&fields),
            _ => Vec::new(),
        };
        if kind == MessageKind::Answers && answers.is_empty() {
            return false;
        }
        if kind == MessageKind::Scaffolding && self.member.cwd.is_none() {
            self.member.cwd = directory(&fields.text());
        }
        self.compress(number, place.at);
        self.is_behind_header = false;
        let parent = self.list.last().map(|item| item.end);
        let before = self.messages.last().filter(|last| last.number == number);
        let index = before.map_or(0, |before| before.index + 1);
        let label = fields.kind.and_then(json::string).unwrap_or_default();
        let calls = self.calls(&fields, place);
        self.add(Message {
            id,
            number,
            index,
            parent,
            kind,
            time: fields.time(),
            places: vec![place],
            records: vec![number],
            calls,
            answers,
            first_kept: None,
            hash,
            text: text_hash(&fields),
            label: label.into_owned(),
        });
        true
    }

    fn add(&mut self, message: Message) {
        let index = self.messages.len();
        if let Some(id) = &message.id {
            self.by_id.insert(id.clone(), index);
        }
        self.messages.push(message);
        self.append(Item {
            message: index,
            end: index,
        });
    }

    fn append(&mut self, item: Item) {
        if self
            .messages
            .get(item.message)
            .is_some_and(Message::is_in_checkpoints)
        {
            self.in_checkpoints.push(self.list.len());
        }
        self.positions.insert(item.message, self.list.len());
        self.list.push(item);
    }

    /// Reads a further record of a known message. A record in a list counts only if its text differs, because lists
    /// have messages in a reduced form.
    fn update(
        &mut self,
        known: usize,
        (number, place): (u64, Place),
        fields: &Fields<'_>,
        hash: u64,
        is_listed: bool,
    ) -> bool {
        let calls = self.calls(fields, place);
        let text = text_hash(fields);
        let Some(message) = self.messages.get_mut(known) else {
            return false;
        };
        if matches!(
            message.kind,
            MessageKind::Compaction { .. } | MessageKind::Answers
        ) || is_listed && (message.text == text || text == 0)
        {
            return false;
        }
        if message.hash == hash && !is_listed {
            self.member.duplicates += 1;
            return true;
        }
        message.hash = hash;
        message.text = text;
        message.places.push(place);
        message.records.push(number);
        if !calls.is_empty() {
            message.calls = calls;
        }
        if !self.positions.contains_key(&known) {
            self.append(Item {
                message: known,
                end: known,
            });
        }
        true
    }

    fn calls(&mut self, fields: &Fields<'_>, place: Place) -> Vec<MessageCall> {
        let listed = fields.calls.map_or(0, |raw| elements(raw).count());
        let mut named = HashSet::new();
        let calls = fields.calls().enumerate().filter_map(|(index, call)| {
            let id = call_key(call.id, index);
            let has_result = index < listed && call.has_result();
            let is_new = named.insert(id.clone());
            if is_new {
                *self.answered.entry(id.clone()).or_default() |= has_result;
            }
            is_new.then(|| MessageCall {
                id,
                result: has_result.then_some((index, place)),
                agent: call.agent.and_then(json::id).map(Box::from),
            })
        });
        calls.collect()
    }

    /// The parts with results whose calls are not known.
    fn answers(&mut self, fields: &Fields<'_>) -> Vec<(usize, Box<str>)> {
        let mut answers = Vec::new();
        for (index, part) in fields.parts().enumerate() {
            let Some(answer) = response(part) else {
                continue;
            };
            let id = json::get(answer, "id").and_then(json::id);
            let id: Box<str> = id.unwrap_or_default().into();
            if self.answered.insert(id.clone(), true) != Some(true) {
                answers.push((index, id));
            }
        }
        answers
    }

    /// Removes this message and all later messages from the list. If the message is unknown, removes all messages.
    fn rewind(&mut self, id: &str) {
        self.forget_shorter();
        let message = self.by_id.get(id);
        let position = message.and_then(|message| self.positions.get(message));
        self.cut(position.copied().unwrap_or(0));
    }

    fn cut(&mut self, position: usize) {
        for item in self.list.split_off(position.min(self.list.len())) {
            self.positions.remove(&item.message);
        }
        while self.in_checkpoints.pop_if(|at| *at >= position).is_some() {}
    }

    /// Reads `$set.messages`. `raw` is the array, which begins at the position `at`.
    fn whole(&mut self, record: &Record<'_>, at: usize, raw: &[u8]) -> bool {
        self.forget_shorter();
        let (mut new, mut kept) = (Vec::new(), Vec::new());
        let mut is_used = false;
        for span in spans(raw) {
            let message = raw.get(span.clone()).unwrap_or_default();
            let fields = Fields::read(message);
            let place = Place {
                at: record.at + (at + span.start) as u64,
                len: span.len() as u64,
            };
            let id = fields.id.and_then(json::id);
            match id.and_then(|id| self.by_id.get(&*id)).copied() {
                Some(known) => {
                    kept.push(known);
                    is_used |= self.update(known, (record.number, place), &fields, 0, true);
                }
                None => new.push(place),
            }
        }
        let is_kept: HashSet<usize> = kept.iter().copied().collect();
        let mut repeated = self.in_checkpoints.iter();
        let lost = repeated.find(|position| {
            let item = self.list.get(**position);
            item.is_some_and(|item| !is_kept.contains(&item.message))
        });
        let lost = lost.copied();
        let bytes = |place: &Place| message_bytes(record, *place);
        let summary = new
            .iter()
            .position(|place| kind(&Fields::read(bytes(place))) == Some(MessageKind::User));
        match (lost, summary) {
            (None, _) => self.restore(&kept),
            (Some(_), Some(summary)) => {
                let place = new.remove(summary);
                self.compact(record, Some(place), &kept);
                is_used = true;
            }
            (Some(lost), None) if self.is_head(lost, &is_kept) => {
                let is_kept = |item: &Item| is_kept.contains(&item.message);
                let last = self.list.iter().rposition(is_kept);
                self.shorter = Some(ShorterList {
                    number: record.number,
                    place: place_of(record),
                    kept,
                    is_used,
                    end: last.map_or(0, |last| last + 1),
                    is_behind_header: self.is_behind_header,
                });
                is_used = true;
            }
            (Some(_), None) => {
                let place = place_of(record);
                self.compact(record, None, &kept);
                is_used |= self.place_last(place);
            }
        }
        for place in new {
            is_used |= self.message(record.number, place, bytes(&place), true);
        }
        is_used
    }

    /// Whether no message is kept from this position on.
    fn is_head(&self, lost: usize, is_kept: &HashSet<usize>) -> bool {
        let mut after = self.list.iter().skip(lost);
        !after.any(|item| is_kept.contains(&item.message))
    }

    /// Handles a new message that follows the shorter list, in the record of this number or in the list itself. `at`
    /// is the position of the message in the source.
    fn compress(&mut self, number: u64, at: u64) {
        let is_former = self.former.version_at(at) < 2;
        let again = self
            .shorter
            .as_mut()
            .filter(|shorter| shorter.is_behind_header && !is_former);
        if let Some(shorter) = again {
            shorter.is_used |= shorter.number == number;
            let end = shorter.end;
            self.forget_shorter();
            self.cut(end);
        } else if let Some(shorter) = self.shorter.take() {
            let record = Record {
                at: shorter.place.at,
                number: shorter.number,
                bytes: b"",
            };
            self.compact(&record, None, &shorter.kept);
            self.place_last(shorter.place);
        }
    }

    /// Notes that no new message follows the shorter list.
    fn forget_shorter(&mut self) {
        if self.shorter.take().is_some_and(|shorter| !shorter.is_used) {
            self.count("$set/messages");
        }
    }

    fn place_last(&mut self, place: Place) -> bool {
        let last = self.messages.last_mut();
        last.map(|message| message.places.push(place)).is_some()
    }

    /// Restores messages that a rewind to an unknown message has removed, because the list has them again.
    fn restore(&mut self, kept: &[usize]) {
        for message in kept {
            if !self.positions.contains_key(message) {
                self.append(Item {
                    message: *message,
                    end: *message,
                });
            }
        }
    }

    /// Replaces the list by a summary and the messages that are kept.
    fn compact(&mut self, record: &Record<'_>, summary: Option<Place>, kept: &[usize]) {
        let parent = self.list.last().map(|item| item.end);
        let first_kept = kept.iter().copied().min();
        self.cut(0);
        let fields = summary.map(|place| Fields::read(message_bytes(record, place)));
        let id = fields.and_then(|fields| fields.id).and_then(json::id);
        self.add(Message {
            id: id.map(Box::from),
            number: record.number,
            index: 0,
            parent,
            kind: MessageKind::Compaction {
                has_summary: summary.is_some(),
            },
            time: fields.and_then(|fields| fields.time()),
            places: summary.into_iter().collect(),
            records: vec![record.number],
            calls: Vec::new(),
            answers: Vec::new(),
            first_kept,
            hash: 0,
            text: 0,
            label: "$set/messages".to_owned(),
        });
        let end = self.messages.len() - 1;
        for message in kept {
            self.append(Item {
                message: *message,
                end,
            });
        }
    }

    /// Reads an object without an id.
    fn update_state(&mut self, record: &Record<'_>) {
        let names = ["$rewindTo", "$set", "messages", "history"];
        let [rewind, set, messages, history] = json::get_each(record.bytes, names);
        if let Some(id) = rewind.and_then(json::id) {
            self.rewind(&id);
            return self.count("$rewindTo");
        }
        let state = set.filter(|raw| raw.starts_with(b"{"));
        self.is_behind_header |= state.is_none() && !self.messages.is_empty();
        self.state(state.unwrap_or(record.bytes));
        // The tool writes a summary when a chat has ended.
        let summary = state.and_then(|state| json::get(state, "summary"));
        self.member.has_end_mark |= summary.is_some();
        let listed = match state {
            Some(state) => json::get(state, "messages"),
            None => messages.or(history),
        };
        let is_used = listed.is_some_and(|list| {
            let at = list.as_ptr() as usize - record.bytes.as_ptr() as usize;
            list.starts_with(b"[") && self.whole(record, at, list)
        });
        if !is_used {
            self.count(match (state, listed) {
                (Some(_), Some(_)) => "$set/messages",
                (Some(_), None) => "$set",
                (None, _) => "header",
            });
        }
    }
}

impl Reader for ChatReader {
    fn formerly(&mut self, former: Former) {
        self.former = former;
    }

    fn record(&mut self, record: Record<'_>) {
        if !record.bytes.starts_with(b"{") {
            return self.count("not an object");
        }
        let [id, kind] = json::get_each(record.bytes, ["id", "type"]);
        if id.is_none() && kind.is_none() {
            return self.update_state(&record);
        }
        let place = Place {
            at: record.at,
            len: record.bytes.len() as u64,
        };
        let known = self.messages.len();
        if !self.message(record.number, place, record.bytes, false) {
            let kind = kind.and_then(json::string).unwrap_or_default();
            let kind: String = kind.chars().take(64).collect();
            self.count(if kind.is_empty() { "no type" } else { &kind });
        } else if let Some(new) = self.messages.get(known) {
            self.member.ended = new.time.max(self.member.ended);
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        self.forget_shorter();
        let Self {
            mut member,
            messages,
            list,
            stem,
            ..
        } = *self;
        if member.native_id.is_empty() {
            member.native_id = stem.to_string();
        }
        member.part_id = member.native_id.clone();
        let first = messages.iter().find_map(|message| message.time);
        member.started = member.started.or(first);
        let leaf = list.last().map(|item| item.end);
        emit::nodes(&mut member, &messages, leaf);
        vec![member]
    }
}
