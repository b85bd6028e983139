//! Reads the records of an opencode session.

use super::super::member::{Place, Record};
use super::super::value::{self, Value, boxed, literal, millis, text, text_hash};
use std::borrow::Cow;
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// The names that are columns of a table but members of an event.
const COLUMNS: &[&str] = &["id", "sessionID", "messageID"];

/// The content of a record.
#[derive(Debug)]
pub(super) enum Item<'a> {
    Session(Value<'a>),
    Message {
        id: Box<str>,
        created: Option<Millis>,
        data: Value<'a>,
    },
    Part {
        /// The sort key among the parts of the message.
        order: Box<str>,
        id: Box<str>,
        message: Box<str>,
        data: Value<'a>,
    },
    Removed {
        message: Box<str>,
    },
    RemovedPart {
        message: Box<str>,
        part: Box<str>,
    },
}

/// A record: its content, and the kind of source that it is from.
#[derive(Debug)]
pub(super) struct SourceItem<'a> {
    /// The type under which the record is counted.
    pub(super) name: Cow<'a, str>,
    /// The number of the event. `None` for rows and files, which have the present state.
    pub(super) seq: Option<u64>,
    pub(super) item: Option<Item<'a>>,
}

/// Reads a record; `None` if it is not a record of opencode.
pub(super) fn read(record: &[u8]) -> Option<SourceItem<'_>> {
    let [table, file, row] = json::get_each(record, ["table", "file", "row"]);
    let row = row.filter(|row| row.first() == Some(&b'{'))?;
    if let Some(file) = text(file) {
        return Some(of_file(&file, row));
    }
    let table = text(table)?;
    match &*table {
        "event" => Some(of_event(row)),
        _ => Some(of_row(table, row)),
    }
}

fn of_row<'a>(table: Cow<'a, str>, row: &'a [u8]) -> SourceItem<'a> {
    let [id, message, data, created] =
        json::get_each(row, ["id", "message_id", "data", "time_created"]);
    let data = || Value::of_literal(data?, COLUMNS);
    let item = match &*table {
        "session" => Value::of_raw(row, &[]).map(Item::Session),
        "message" => (|| {
            let created = millis(created);
            Some(Item::Message {
                id: boxed(id)?,
                created,
                data: data()?,
            })
        })(),
        "part" => (|| {
            let id = boxed(id)?;
            Some(Item::Part {
                order: id.clone(),
                id,
                message: boxed(message)?,
                data: data()?,
            })
        })(),
        _ => None,
    };
    let name = match (&item, &*table) {
        (Some(Item::Part { data, .. }), _) => Cow::Owned(format!("part {}", kind(data))),
        _ => table,
    };
    SourceItem {
        name,
        seq: None,
        item,
    }
}

fn of_event(row: &[u8]) -> SourceItem<'_> {
    let [seq, kind, data] = json::get_each(row, ["seq", "type", "data"]);
    let kind = text(kind).unwrap_or_default();
    let data = || Value::of_literal(data?, &[]);
    let member = |name| data()?.into_member(name, COLUMNS);
    let item = match &*kind {
        "message.updated.1" => member("info").and_then(message),
        "message.part.updated.1" => member("part").and_then(|part| self::part(None, part)),
        "message.removed.1" => (|| {
            Some(Item::Removed {
                message: boxed(data()?.get("messageID"))?,
            })
        })(),
        "message.part.removed.1" => (|| {
            let data = data()?;
            let [message, part] = data.each(["messageID", "partID"]);
            Some(Item::RemovedPart {
                message: boxed(message)?,
                part: boxed(part)?,
            })
        })(),
        _ => None,
    };
    let name = Cow::Owned(format!("event {kind}"));
    SourceItem {
        name,
        seq: Some(value::count(seq).unwrap_or(u64::MAX)),
        item,
    }
}

fn of_file<'a>(file: &str, row: &'a [u8]) -> SourceItem<'a> {
    let folder = file.split('/').next().unwrap_or_default();
    let data = Value::of_raw(row, COLUMNS);
    let item = match folder {
        "session" => data.map(Item::Session),
        "message" => data.and_then(message),
        "part" => data.and_then(|data| part(Some(file), data)),
        _ => None,
    };
    let name = match &item {
        Some(Item::Part { data, .. }) => Cow::Owned(format!("part {}", kind(data))),
        _ => Cow::Owned(folder.to_owned()),
    };
    SourceItem {
        name,
        seq: None,
        item,
    }
}

fn message(info: Value<'_>) -> Option<Item<'_>> {
    let id = boxed(info.get("id"))?;
    let created = millis(info.get("time").and_then(|time| json::get(time, "created")));
    Some(Item::Message {
        id,
        created,
        data: info,
    })
}

/// `file` is the name of a part's file. It orders the parts, because ids of older versions do not sort in the order
/// of parts.
fn part<'a>(file: Option<&str>, part: Value<'a>) -> Option<Item<'a>> {
    let [id, message] = part.each(["id", "messageID"]);
    let (id, message) = (boxed(id), boxed(message));
    let named = |from_end: usize| file?.trim_end_matches(".json").rsplit('/').nth(from_end);
    let id = id.or_else(|| named(0).map(Box::from))?;
    let message = message.or_else(|| named(1).map(Box::from))?;
    let order = file.map_or_else(|| id.clone(), Box::from);
    Some(Item::Part {
        order,
        id,
        message,
        data: part,
    })
}

fn kind<'v>(part: &'v Value<'_>) -> Cow<'v, str> {
    text(part.get("type")).unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    Other,
}

/// A message without its parts.
#[derive(Debug)]
pub(super) struct Info {
    pub(super) role: Role,
    pub(super) created: Option<Millis>,
    pub(super) is_completed: bool,
    /// The hash of the reason why the answer ended.
    pub(super) finish: u64,
    /// Whether the answer is the summary of a compaction.
    pub(super) is_summary: bool,
    /// The hash of the message as it is stored.
    pub(super) hash: u64,
    pub(super) place: Place,
    /// The number of its record.
    pub(super) number: u64,
}

impl Info {
    pub(super) fn new(data: &Value<'_>, created: Option<Millis>, record: &Record<'_>) -> Self {
        let [role, time, summary, finish] = data.each(["role", "time", "summary", "finish"]);
        let role = match text(role).as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => Role::Other,
        };
        let completed = time.and_then(|time| json::get(time, "completed"));
        Self {
            role,
            created,
            is_completed: millis(completed).is_some(),
            finish: hash_of(finish),
            is_summary: role == Role::Assistant && summary == Some(b"true"),
            hash: data.hash,
            place: place(record),
            number: record.number,
        }
    }
}

#[derive(Debug)]
pub(super) enum PartKind {
    Text {
        is_synthetic: bool,
    },
    Reasoning,
    Tool(ToolPart),
    Image,
    Compaction {
        first_kept: Option<Box<str>>,
    },
    StepStart,
    /// The end of a step of the model, with the hash of its reason.
    StepFinish(u64),
    Subtask,
    Retry,
    /// A part that has no content for an entry, such as a snapshot.
    Other,
}

/// A call, with its result if it has one.
#[derive(Debug)]
pub(super) struct ToolPart {
    pub(super) call_id: Box<str>,
    pub(super) has_result: bool,
    pub(super) ended: Option<Millis>,
    /// The session that the call has spawned.
    pub(super) spawned: Option<Box<str>>,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) id: Box<str>,
    pub(super) kind: PartKind,
    /// The hash of the part as it is stored.
    pub(super) hash: u64,
    /// The hash of the text, or of the tool's name; 0 for a part that has neither.
    pub(super) content: u64,
    pub(super) place: Place,
}

impl Part {
    pub(super) fn new(id: Box<str>, data: &Value<'_>, record: &Record<'_>) -> Self {
        let [kind, body, synthetic, ignored] = data.each(["type", "text", "synthetic", "ignored"]);
        let has_text =
            literal(body).is_some_and(|body| !value::is_blank(body)) && ignored != Some(b"true");
        let mut content = 0;
        let kind = match text(kind).as_deref() {
            Some("text") if has_text => {
                content = literal(body).map_or(0, text_hash);
                PartKind::Text {
                    is_synthetic: synthetic == Some(b"true"),
                }
            }
            Some("reasoning") if has_text => PartKind::Reasoning,
            Some("tool") => {
                content = literal(data.get("tool")).map_or(0, text_hash);
                PartKind::Tool(ToolPart::new(&id, data))
            }
            Some("file") if image(data).is_some() => PartKind::Image,
            Some("compaction") => PartKind::Compaction {
                first_kept: boxed(data.get("tail_start_id")),
            },
            Some("step-start") => PartKind::StepStart,
            Some("step-finish") => PartKind::StepFinish(hash_of(data.get("reason"))),
            Some("subtask") => PartKind::Subtask,
            Some("retry") => PartKind::Retry,
            _ => PartKind::Other,
        };
        Self {
            id,
            kind,
            hash: data.hash,
            content,
            place: place(record),
        }
    }

    pub(super) fn tool(&self) -> Option<&ToolPart> {
        match &self.kind {
            PartKind::Tool(tool) => Some(tool),
            _ => None,
        }
    }
}

impl ToolPart {
    fn new(id: &str, data: &Value<'_>) -> Self {
        let [call, state] = data.each(["callID", "state"]);
        let [status, time, metadata] =
            json::get_each(state.unwrap_or_default(), ["status", "time", "metadata"]);
        let spawned = metadata.and_then(|metadata| json::get(metadata, "sessionId"));
        Self {
            call_id: boxed(call).unwrap_or_else(|| id.into()),
            has_result: matches!(
                text(status).as_deref(),
                Some("completed" | "success" | "error")
            ),
            ended: millis(time.and_then(|time| json::get(time, "end"))),
            spawned: boxed(spawned),
        }
    }
}

/// The hash of a text; 0 without a text.
fn hash_of(raw: Option<&[u8]>) -> u64 {
    literal(raw).map_or(0, text_hash)
}

/// The Base64 text and the media type of an image that a part contains.
pub(super) fn image<'v>(part: &'v Value<'_>) -> Option<(Cow<'v, str>, Cow<'v, str>)> {
    let [url, mime] = part.each(["url", "mime"]);
    image_of(url, mime)
}

/// Like [`image`], for the two members of a part.
pub(super) fn image_of<'v>(
    url: Option<&'v [u8]>,
    mime: Option<&'v [u8]>,
) -> Option<(Cow<'v, str>, Cow<'v, str>)> {
    let mime = text(mime).filter(|mime| mime.starts_with("image/"))?;
    let data = match text(url)? {
        Cow::Borrowed(url) => Cow::Borrowed(base64_of(url)?),
        Cow::Owned(url) => Cow::Owned(base64_of(&url)?.to_owned()),
    };
    Some((data, mime))
}

fn base64_of(url: &str) -> Option<&str> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    kind.ends_with(";base64").then_some(data)
}

fn place(record: &Record<'_>) -> Place {
    Place {
        at: record.at,
        len: u64::try_from(record.bytes.len()).unwrap_or(u64::MAX),
    }
}
