//! Reads the records of a session.

use super::super::member::{Member, Record, Spawner};
use super::super::value::{RecordTypes, Value, boxed, millis, text};
use super::nodes::{Steps, Thread};
use super::record::{self, Info, Item, Part, SourceItem};
use super::replay::{Change, Message, Messages, Replay};
use crate::reader::Reader;
use hashbrown::HashMap;
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// The beginnings of titles that opencode makes itself.
const UNNAMED: &[&str] = &["New session - ", "Child session - "];

/// The facts in the session's own record.
#[derive(Debug, Default)]
struct SessionInfo {
    id: Option<String>,
    parent_id: Option<String>,
    directory: Option<String>,
    project: Option<String>,
    title: Option<String>,
    created: Option<Millis>,
    updated: Option<Millis>,
    /// A pending revert: the message at which it begins, and whether a part of this message is kept.
    revert: Option<(Box<str>, bool)>,
}

impl SessionInfo {
    /// `data` has the columns of a row, or the members of a file.
    fn new(data: &Value<'_>) -> Self {
        let owned = |names: [&str; 2]| {
            let values = data.each(names);
            let found = values.into_iter().find_map(|value| text(value));
            found.map(|text| text.into_owned())
        };
        let [created, updated, time] = data.each(["time_created", "time_updated", "time"]);
        let [first, last] = json::get_each(time.unwrap_or_default(), ["created", "updated"]);
        let title = owned(["title", "title"]).filter(|title| {
            let is_unnamed = UNNAMED.iter().any(|unnamed| title.starts_with(unnamed));
            !is_unnamed && !title.trim().is_empty()
        });
        Self {
            id: owned(["id", "id"]),
            parent_id: owned(["parent_id", "parentID"]),
            directory: owned(["directory", "directory"]),
            project: owned(["project_id", "projectID"]),
            title,
            created: millis(created.or(first)),
            updated: millis(updated.or(last)),
            revert: data.get("revert").and_then(revert),
        }
    }
}

/// Reads `revert`: an object, or a text that has the JSON of one.
fn revert(raw: &[u8]) -> Option<(Box<str>, bool)> {
    let revert = Value::of_literal(raw, &[]).or_else(|| Value::of_raw(raw, &[]))?;
    let [message, part] = revert.each(["messageID", "partID"]);
    Some((boxed(message)?, text(part).is_some()))
}

/// Reads one session.
#[derive(Debug, Default)]
pub(super) struct ThreadReader {
    session: SessionInfo,
    messages: Messages,
    changes: Vec<(u64, Change)>,
    types: RecordTypes,
}

impl Reader for ThreadReader {
    fn record(&mut self, record: Record<'_>) {
        let Some(SourceItem { name, seq, item }) = record::read(record.bytes) else {
            self.types.add(record.at, "unknown");
            return;
        };
        self.types.add(record.at, &name);
        match item {
            None => {}
            Some(Item::Session(data)) => self.session = SessionInfo::new(&data),
            Some(Item::Message { id, created, data }) => {
                let created = created.or_else(|| {
                    millis(data.get("time").and_then(|time| json::get(time, "created")))
                });
                let info = Info::new(&data, created, &record);
                match seq {
                    Some(seq) => self.changes.push((seq, Change::Message { id, info })),
                    None => drop(self.messages.set_info(&id, info)),
                }
            }
            Some(Item::Part {
                order,
                id,
                message,
                data,
            }) => {
                let part = Part::new(id, &data, &record);
                match seq {
                    Some(seq) => self.changes.push((seq, Change::Part { message, part })),
                    None => self.messages.set_part(&message, order, part),
                }
            }
            Some(Item::Removed { message }) => {
                self.changes
                    .extend(seq.map(|seq| (seq, Change::Removed { message })));
            }
            Some(Item::RemovedPart { message, part }) => {
                self.changes
                    .extend(seq.map(|seq| (seq, Change::RemovedPart { message, part })));
            }
        }
    }

    fn finish(self: Box<Self>) -> Vec<Member> {
        let Self {
            session,
            messages,
            changes,
            types,
        } = *self;
        let reverted = session.revert.as_ref().map(|(message, _)| &**message);
        let replay = Replay::of(changes, reverted);
        let mut member = Member {
            disagreements: disagreements(&messages, &replay),
            ..Member::default()
        };
        let steps = Steps::new(&messages, &replay, reverted);
        let mut thread = Thread::new(&steps, session.revert.is_none());
        thread.emit();
        member.has_end_mark = thread.has_end_mark();
        member.leaf = match &session.revert {
            Some((message, keeps_part)) => thread.leaf_of_revert(message, *keeps_part),
            None => thread.end(),
        };
        member.nodes = thread.nodes;
        if session.id.is_none() && member.nodes.is_empty() {
            return Vec::new();
        }
        let used = member.nodes.iter().flat_map(|node| &node.places);
        member.origin_only = types.unused(used.map(|place| place.at).collect());
        member.native_id = session.id.unwrap_or_default();
        member.part_id = member.native_id.clone();
        member.spawned_by = session.parent_id.map(|native_id| Spawner {
            native_id,
            tool_call_id: None,
        });
        member.cwd = session.directory;
        member.project = session.project;
        member.title = session.title;
        member.started = session.created;
        let last = member.nodes.iter().filter_map(|node| node.time).max();
        member.ended = session.updated.max(last);
        vec![member]
    }
}

/// The number of messages and parts that differ between the tables and the result of the events.
fn disagreements(tables: &Messages, replay: &Replay) -> u64 {
    if replay.is_empty() {
        return 0;
    }
    let mut count = 0;
    let listed: HashMap<&str, &Message> = replay
        .listed()
        .map(|message| (&*message.id, message))
        .collect();
    for message in tables.all.iter().filter(|message| message.info.is_some()) {
        let Some(replayed) = listed.get(&*message.id) else {
            count += 1;
            continue;
        };
        let hash = |message: &Message| message.info.as_ref().map(|info| info.hash);
        count += u64::from(hash(message) != hash(replayed));
        let parts = |message: &Message| -> HashMap<Box<str>, u64> {
            let parts = message.parts.values();
            parts.map(|part| (part.id.clone(), part.hash)).collect()
        };
        count += u64::from(parts(message) != parts(replayed));
    }
    let is_stored = |id: &str| tables.get(id).is_some_and(|message| message.info.is_some());
    count
        + listed
            .keys()
            .map(|id| u64::from(!is_stored(id)))
            .sum::<u64>()
}
