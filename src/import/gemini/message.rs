//! Reads one message of a chat. All values are raw.

use crate::member::{Place, Record};
use crate::message::{elements, literal};
use treelined_core::json;
use treelined_core::timestamp::{self, Millis};

/// The members of a message. The names in older versions are in parentheses.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) id: Option<&'a [u8]>,
    /// `type` (`role`).
    pub(super) kind: Option<&'a [u8]>,
    /// `timestamp` (`ts`, in seconds).
    timestamp: Option<&'a [u8]>,
    seconds: Option<&'a [u8]>,
    /// `content` (`parts`): a text, or parts.
    pub(super) content: Option<&'a [u8]>,
    pub(super) thoughts: Option<&'a [u8]>,
    pub(super) tokens: Option<&'a [u8]>,
    pub(super) model: Option<&'a [u8]>,
    pub(super) calls: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    pub(super) fn read(message: &'a [u8]) -> Self {
        let names = [
            "id",
            "type",
            "role",
            "timestamp",
            "ts",
            "content",
            "parts",
            "thoughts",
            "tokens",
            "model",
            "toolCalls",
        ];
        let [
            id,
            kind,
            role,
            timestamp,
            seconds,
            content,
            parts,
            thoughts,
            tokens,
            model,
            calls,
        ] = json::get_each(message, names);
        Self {
            id: literal(id),
            kind: literal(kind).or(literal(role)),
            timestamp,
            seconds,
            content: content.or(parts),
            thoughts,
            tokens,
            model: literal(model),
            calls,
        }
    }

    pub(super) fn time(&self) -> Option<Millis> {
        let named = self.timestamp.and_then(json::string);
        let seconds = || std::str::from_utf8(self.seconds?).ok()?.parse::<i64>().ok();
        let named = named.and_then(|text| timestamp::parse(&text));
        named.or_else(|| seconds()?.checked_mul(1000))
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.content.into_iter().flat_map(elements)
    }

    /// The texts of all parts, joined.
    pub(super) fn text(&self) -> String {
        match self.content.and_then(json::string) {
            Some(text) => text.into_owned(),
            None => {
                let texts = self.parts().filter_map(|part| json::get(part, "text"));
                texts.filter_map(json::string).collect()
            }
        }
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = Call<'a>> + use<'a> {
        let listed = self.calls.into_iter().flat_map(elements).map(Call::listed);
        let parts = self.parts().filter_map(Call::of_part);
        listed.chain(parts)
    }
}

/// The call of a tool. All values are raw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) id: Option<&'a [u8]>,
    pub(super) name: Option<&'a [u8]>,
    pub(super) arguments: Option<&'a [u8]>,
    pub(super) result: Option<&'a [u8]>,
    pub(super) status: Option<&'a [u8]>,
    pub(super) display: Option<&'a [u8]>,
    pub(super) agent: Option<&'a [u8]>,
}

impl<'a> Call<'a> {
    pub(super) fn listed(call: &'a [u8]) -> Self {
        let names = [
            "id",
            "name",
            "args",
            "result",
            "status",
            "resultDisplay",
            "agentId",
        ];
        let [id, name, arguments, result, status, display, agent] = json::get_each(call, names);
        Self {
            id: literal(id),
            name: literal(name),
            arguments,
            result: result.filter(|raw| *raw != b"null"),
            status: literal(status),
            display: literal(display),
            agent: literal(agent),
        }
    }

    /// The call in a `functionCall` part.
    fn of_part(part: &'a [u8]) -> Option<Self> {
        let call = json::get(part, "functionCall")?;
        let [id, name, arguments] = json::get_each(call, ["id", "name", "args"]);
        Some(Self {
            id: literal(id),
            name: literal(name),
            arguments,
            result: None,
            status: None,
            display: None,
            agent: None,
        })
    }

    pub(super) fn has_result(&self) -> bool {
        self.result.is_some() || self.has_failed() || self.status == Some(b"\"success\"")
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.status, Some(b"\"error\"" | b"\"cancelled\""))
    }
}

/// The key of a call: its id, or its index if it has no id.
pub(super) fn call_key(id: Option<&[u8]>, index: usize) -> Box<str> {
    let id = id.and_then(json::id);
    id.map_or_else(|| format!("#{index}").into(), Into::into)
}

/// The `functionResponse` of a part: the result of a call.
pub(super) fn response(part: &[u8]) -> Option<&[u8]> {
    json::get(part, "functionResponse").filter(|raw| raw.starts_with(b"{"))
}

/// Whether the program itself has written a text that has the role of the user.
pub(super) fn is_scaffolding(text: &str) -> bool {
    const BEGINNINGS: [&str; 4] = [
        "<session_context>",
        "<hook_context>",
        "This is the Gemini CLI. We are setting up the context",
        "System: Please continue.",
    ];
    let text = text.trim_start();
    BEGINNINGS
        .iter()
        .any(|beginning| text.starts_with(beginning))
}

/// The first workspace directory in the text with which a session begins.
pub(super) fn directory(text: &str) -> Option<String> {
    let (_, listed) = text.split_once("**Workspace Directories:**\n")?;
    let (_, first) = listed.lines().next()?.split_once("- ")?;
    (!first.is_empty()).then(|| first.to_owned())
}

/// The hash of the text; 0 without a text.
pub(super) fn text_hash(fields: &Fields<'_>) -> u64 {
    let text = fields.text();
    match text.is_empty() {
        true => 0,
        false => xxhash_rust::xxh3::xxh3_64(text.as_bytes()),
    }
}

pub(super) fn place_of(record: &Record<'_>) -> Place {
    Place {
        at: record.at,
        len: record.bytes.len() as u64,
    }
}

/// The ranges of an array's elements.
pub(super) fn spans(array: &[u8]) -> impl Iterator<Item = json::Span> + '_ {
    let mut elements = json::Elements::open(array, 0).ok();
    std::iter::from_fn(move || elements.as_mut()?.next_value().ok()?)
}

pub(super) fn message_bytes<'a>(record: &Record<'a>, place: Place) -> &'a [u8] {
    let start = usize::try_from(place.at.saturating_sub(record.at)).unwrap_or(usize::MAX);
    let len = usize::try_from(place.len).unwrap_or(usize::MAX);
    let bytes = record.bytes.get(start..).unwrap_or_default();
    bytes.get(..len).unwrap_or_default()
}
