//! Reads one line of a rollout, with or without its envelope.

use std::borrow::Cow;
use treelined_core::json;
use treelined_core::timestamp::{self, Millis};
use xxhash_rust::xxh3::xxh3_64;

/// A line of a rollout.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) time: Option<Millis>,
    pub(super) ordinal: Option<u64>,
    pub(super) kind: Cow<'a, str>,
    /// The payload; any JSON value.
    pub(super) payload: &'a [u8],
    pub(super) metadata: &'a [u8],
}

/// The largest number that every JSON writer keeps exactly. A larger ordinal is ignored.
const MOST: u64 = 1 << 53;

impl<'a> Line<'a> {
    pub(super) fn parse(record: &'a [u8]) -> Self {
        let names = ["timestamp", "ordinal", "type", "payload", "metadata", "id"];
        let [time, ordinal, kind, payload, metadata, id] = json::get_each(record, names);
        let kind = kind.and_then(json::string);
        let (kind, payload) = match (kind, payload) {
            (kind, Some(payload)) => (kind.unwrap_or_default(), payload),
            (Some(kind), None) if is_item(&kind) => ("response_item".into(), record),
            (None, None) if id.is_some() && time.is_some() => ("session_meta".into(), record),
            (kind, None) => (kind.unwrap_or_default(), &b"null"[..]),
        };
        Self {
            time: time.and_then(instant),
            ordinal: ordinal.and_then(number).filter(|ordinal| *ordinal <= MOST),
            kind,
            payload,
            metadata: metadata.unwrap_or_default(),
        }
    }

    /// The type of the payload. A message may lack `type`: it is then recognized by its role.
    pub(super) fn payload_kind(&self) -> Cow<'a, str> {
        let [kind, role] = json::get_each(self.payload, ["type", "role"]);
        match kind.and_then(json::string) {
            Some(kind) => kind,
            None if role.is_some() => "message".into(),
            None => "".into(),
        }
    }
}

/// The types of response items that have no envelope in the first files.
fn is_item(kind: &str) -> bool {
    matches!(
        kind,
        "message"
            | "reasoning"
            | "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output"
            | "local_shell_call"
            | "web_search_call"
    )
}

fn instant(raw: &[u8]) -> Option<Millis> {
    timestamp::parse(&json::string(raw)?)
}

/// The text of a member, if it is a string and not blank.
pub(super) fn text<'a>(object: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    let text = json::get(object, name).and_then(json::string);
    text.filter(|text| !text.trim().is_empty())
}

/// The time in a member that is a string.
pub(super) fn time(object: &[u8], name: &str) -> Option<Millis> {
    json::get(object, name).and_then(instant)
}

/// The value, if it is a whole number and not negative.
pub(super) fn number(raw: &[u8]) -> Option<u64> {
    str::from_utf8(raw).ok()?.parse().ok()
}

/// The hash of some bytes. It is never 0.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes).max(1)
}

/// Whether the tool has failed. The object may have a result (`Ok` or an error), an exit code, or a state. `None` if
/// the object says nothing.
pub(super) fn has_failed(object: &[u8]) -> Option<bool> {
    let names = ["exit_code", "success", "status", "result", "error"];
    let [exit_code, success, status, result, error] = json::get_each(object, names);
    if let Some(code) = exit_code.filter(|code| *code != b"null") {
        return Some(code != b"0");
    }
    if let Some(success @ (b"true" | b"false")) = success {
        return Some(success == b"false");
    }
    if let Some(result) = result {
        let [error, okay, is_error] = json::get_each(result, ["Err", "Ok", "isError"]);
        let is_error = is_error.or_else(|| json::get(okay?, "isError"));
        if error.is_some() || is_error == Some(b"true") {
            return Some(true);
        }
    }
    if error.is_some_and(|error| error != b"null") {
        return Some(true);
    }
    match json::string(status?)?.as_ref() {
        "failed" | "declined" | "error" => Some(true),
        "completed" | "success" => Some(false),
        _ => None,
    }
}

/// The id of a call or of its output, as a raw string.
pub(super) fn call_id(payload: &[u8]) -> Option<&[u8]> {
    let ids = json::get_each(payload, ["call_id", "id"]);
    ids.into_iter().flatten().find(|id| id.starts_with(b"\""))
}

/// The name of the tool that an item of this type calls; `None` if the item does not call a tool.
pub(super) fn tool_name(kind: &str, payload: &[u8]) -> Option<String> {
    let own = match kind {
        "local_shell_call" => "local_shell",
        "web_search_call" => "web_search",
        "tool_search_call" => "tool_search",
        "image_generation_call" => "image_generation",
        "function_call" | "custom_tool_call" => "",
        _ => return None,
    };
    let space = text(payload, "namespace").unwrap_or_default();
    let named = text(payload, "name");
    let name = named.as_deref().unwrap_or(match own {
        "" => "unknown",
        own => own,
    });
    let separator = if space.is_empty() || space.ends_with("__") {
        ""
    } else {
        "__"
    };
    Some(format!("{space}{separator}{name}"))
}

/// Whether the program must answer such a call. Other calls are answered by the model's provider, in the same
/// response.
pub(super) fn awaits_output(kind: &str) -> bool {
    !matches!(kind, "web_search_call" | "image_generation_call")
}
