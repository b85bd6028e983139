//! Reads the records of a goose session.

use super::super::member::Record;
use super::super::value::{self, Value, literal, mixed, number, text, text_hash};
use std::borrow::Cow;
use treelined_core::json::{self, Elements};
use treelined_core::timestamp::{self, Millis};

/// A time below this number is in seconds; any other time is in milliseconds.
const FIRST_MILLIS: u64 = 100_000_000_000;

/// The content of a record.
#[derive(Debug)]
pub(super) enum Item<'a> {
    Session(Value<'a>),
    Message(Message<'a>),
    /// A row of a table that is not read, with the name of the table.
    Other(Cow<'a, str>),
}

/// A message.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) is_user: bool,
    pub(super) created: Option<Millis>,
    /// The content: an array of blocks.
    pub(super) content: Value<'a>,
    pub(super) metadata: Option<Value<'a>>,
}

/// Reads a record; `None` if it is not a record of goose.
pub(super) fn read(record: &[u8]) -> Option<Item<'_>> {
    let [table, row] = json::get_each(record, ["table", "row"]);
    let Some((table, row)) = text(table).zip(row) else {
        return of_line(record);
    };
    match &*table {
        "sessions" => Some(Item::Session(Value::of_raw(row, &[])?)),
        "messages" => Some(Item::Message(of_row(row)?)),
        _ => Some(Item::Other(table)),
    }
}

fn of_row(row: &[u8]) -> Option<Message<'_>> {
    let [id, role, created, content, metadata] = json::get_each(
        row,
        [
            "message_id",
            "role",
            "created_timestamp",
            "content_json",
            "metadata_json",
        ],
    );
    Some(Message {
        id: text(id),
        is_user: is_user(role)?,
        created: time(created),
        content: Value::of_literal(content?, &[])?,
        metadata: metadata.and_then(|metadata| Value::of_literal(metadata, &[])),
    })
}

/// Reads a line of a file.
fn of_line(line: &[u8]) -> Option<Item<'_>> {
    let [id, role, created, content, metadata, directory] = json::get_each(
        line,
        [
            "id",
            "role",
            "created",
            "content",
            "metadata",
            "working_dir",
        ],
    );
    let Some(role) = role else {
        return directory.and(Value::of_raw(line, &[])).map(Item::Session);
    };
    Some(Item::Message(Message {
        id: text(id),
        is_user: is_user(Some(role))?,
        created: time(created),
        content: Value::of_raw(content?, &[])?,
        metadata: metadata.and_then(|metadata| Value::of_raw(metadata, &[])),
    }))
}

fn is_user(role: Option<&[u8]>) -> Option<bool> {
    match &*text(role)? {
        "user" => Some(true),
        "assistant" => Some(false),
        _ => None,
    }
}

/// Reads a time. It is a number of seconds, or in some versions of milliseconds, or the text of a date and time in
/// UTC.
pub(super) fn time(raw: Option<&[u8]>) -> Option<Millis> {
    if let Some(date) = text(raw) {
        return timestamp::parse(&format!(
            "{}Z",
            date.trim_end_matches('Z')
                .trim_end_matches(" UTC")
                .replacen(' ', "T", 1)
        ));
    }
    let count = number(raw)
        .filter(|count| *count >= 0.0)
        .map(json::saturated)?;
    let millis = if count < FIRST_MILLIS {
        count * 1_000
    } else {
        count
    };
    value::millis(Some(millis.to_string().as_bytes()))
}

impl Message<'_> {
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let array = self.content.raw();
        let mut elements = Elements::open(array, 0).ok();
        std::iter::from_fn(move || {
            Some(Block::new(
                array.get(elements.as_mut()?.next_value().ok()??)?,
            ))
        })
    }

    /// The value of a flag in the metadata.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        let flag = self.metadata.as_ref()?.get(name)?;
        Some(flag == b"true")
    }

    /// Whether the metadata has this member.
    pub(super) fn has_metadata(&self, name: &str) -> bool {
        let value = self.metadata.as_ref().and_then(|it| it.get(name));
        value.is_some_and(|value| value != b"null")
    }

    /// The hash of role, time, texts and tools.
    pub(super) fn fingerprint(&self) -> u64 {
        let time = self.created.unwrap_or_default().cast_unsigned();
        let hashes = self.blocks().map(|block| match block {
            Block::Text(text) => text_hash(text),
            Block::Call {
                value: Some(value), ..
            } => literal(json::get(value, "name")).map_or(0, text_hash),
            _ => 0,
        });
        let start = mixed(time, if self.is_user { 1 } else { 2 });
        hashes.filter(|hash| *hash != 0).fold(start, mixed).max(1)
    }

    /// An id made from the content, for a message that has none.
    pub(super) fn derived_id(&self) -> String {
        let time = self.created.unwrap_or_default().cast_unsigned();
        let role = if self.is_user { 1 } else { 2 };
        format!("~{:016x}", mixed(mixed(time, role), self.content.hash))
    }
}

/// A block of content. All values are raw JSON.
#[derive(Debug, Clone, Copy)]
pub(super) enum Block<'a> {
    Text(&'a [u8]),
    Thinking {
        text: &'a [u8],
        signature: Option<&'a [u8]>,
    },
    Image {
        data: &'a [u8],
        mime: &'a [u8],
    },
    /// A call. It has a name and arguments, or the reason why goose could not read the model's call.
    Call {
        id: &'a [u8],
        value: Option<&'a [u8]>,
        error: Option<&'a [u8]>,
    },
    Result {
        id: &'a [u8],
        value: Option<&'a [u8]>,
        error: Option<&'a [u8]>,
    },
    /// A notice for the user.
    Notice,
    Other,
}

impl<'a> Block<'a> {
    fn new(raw: &'a [u8]) -> Self {
        Self::known(raw).unwrap_or(Self::Other)
    }

    fn known(raw: &'a [u8]) -> Option<Self> {
        let [kind, body] = json::get_each(raw, ["type", "text"]);
        let kind = text(kind)?;
        let member = |name| literal(json::get(raw, name));
        Some(match &*kind {
            "text" => Self::Text(literal(body)?),
            "thinking" => Self::Thinking {
                text: member("thinking")?,
                signature: member("signature"),
            },
            "reasoning" => Self::Thinking {
                text: literal(body)?,
                signature: None,
            },
            "image" => Self::Image {
                data: member("data")?,
                mime: member("mimeType")?,
            },
            "toolRequest" | "frontendToolRequest" => {
                let [value, error] = outcome(json::get(raw, "toolCall")?);
                Self::Call {
                    id: member("id")?,
                    value,
                    error,
                }
            }
            "toolResponse" => {
                let [value, error] = outcome(json::get(raw, "toolResult")?);
                Self::Result {
                    id: member("id")?,
                    value,
                    error,
                }
            }
            "systemNotification"
            | "conversationCompacted"
            | "summarizationRequested"
            | "contextLengthExceeded" => Self::Notice,
            _ => return None,
        })
    }
}

/// The value and the error of a result, which Rust stores as `{"status":…,"value":…}`.
fn outcome(raw: &[u8]) -> [Option<&[u8]>; 2] {
    let [status, value, error] = json::get_each(raw, ["status", "value", "error"]);
    match text(status).as_deref() {
        Some("error") => [None, error],
        _ => [value, None],
    }
}

pub(super) fn place(record: &Record<'_>) -> super::super::member::Place {
    super::super::member::Place {
        at: record.at,
        len: u64::try_from(record.bytes.len()).unwrap_or(u64::MAX),
    }
}
