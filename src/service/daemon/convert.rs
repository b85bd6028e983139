//! Conversions between the session's types and those of `wire`.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use treelined_core::durability::Durability;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;
use treelined_core::timestamp;
pub(crate) use treelined_core::tree::{Cause, Node, Tree};
use treelined_files::log::diagnostic::{Damage, Diagnostic};
use treelined_files::session::SessionState;
use treelined_wire as wire;
use treelined_wire::methods::Notification;

/// Stored JSON as a member of a message.
pub(crate) fn raw(json: &[u8]) -> wire::Raw {
    raw_text(String::from_utf8_lossy(json).into_owned())
}

/// As [`raw`], for an owned value.
pub(crate) fn raw_owned(json: Vec<u8>) -> wire::Raw {
    match String::from_utf8(json) {
        Ok(text) => raw_text(text),
        Err(error) => raw(error.as_bytes()),
    }
}

fn raw_text(text: String) -> wire::Raw {
    RawValue::from_string(text).unwrap_or_else(|error| {
        // Checks the body as it is read. Sends null if the file has changed since.
        tracing::error!(%error, "an entry could not be handed out");
        RawValue::NULL.to_owned()
    })
}

/// The ids of these nodes.
pub(crate) fn id_list(tree: &Tree, nodes: &[Node]) -> wire::IdList {
    nodes.iter().map(|node| tree.id(*node)).collect()
}

/// A value as JSON on one line.
pub(crate) fn line(value: &impl Serialize) -> Result<Vec<u8>> {
    let bytes = serde_json::to_vec(value);
    let bytes = bytes.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
    Ok(on_one_line(bytes))
}

/// The JSON of a notification.
pub(crate) fn message<N: Notification>(params: &N) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct Message<'a, N> {
        jsonrpc: &'static str,
        method: &'static str,
        params: &'a N,
    }
    let method = N::NAME;
    let message = Message {
        jsonrpc: "2.0",
        method,
        params,
    };
    match serde_json::to_vec(&message) {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::error!(method, %error, "a notification could not be written");
            None
        }
    }
}

/// Puts a message on one line: line breaks between tokens of stored JSON become spaces, and U+2028 and U+2029
/// are escaped (protocol.md §1).
pub(crate) fn on_one_line(message: Vec<u8>) -> Vec<u8> {
    // The separators begin with 0xe2.
    if memchr::memchr3(b'\n', b'\r', 0xe2, &message).is_none() {
        return message;
    }
    let mut escaped = Vec::with_capacity(message.len() + 64);
    json::push_raw(&mut escaped, &message);
    escaped
}

/// How durable an operation is: not at all if it wrote nothing.
pub(crate) fn policy(policy: wire::DurabilityPolicy) -> Durability {
    match policy {
        wire::DurabilityPolicy::Os => Durability::Os,
        wire::DurabilityPolicy::Interval => Durability::Interval,
        wire::DurabilityPolicy::Always => Durability::Always,
    }
}

pub(crate) fn cause(cause: Cause) -> wire::MoveCause {
    match cause {
        Cause::SetLeaf => wire::MoveCause::SetLeaf,
        Cause::Branch => wire::MoveCause::Branch,
        Cause::NavigateTree => wire::MoveCause::NavigateTree,
        Cause::Undo => wire::MoveCause::Undo,
        Cause::Redo => wire::MoveCause::Redo,
    }
}

pub(crate) fn diagnostics(found: &[Diagnostic]) -> Vec<wire::Diagnostic> {
    found.iter().map(diagnostic).collect()
}

fn diagnostic(found: &Diagnostic) -> wire::Diagnostic {
    use wire::DiagnosticKind as Kind;
    let kind = match found.damage {
        Damage::TornTail => Kind::TornTail,
        Damage::InvalidJson => Kind::InvalidJson,
        Damage::NotAnObject => Kind::NotAnObject,
        Damage::InvalidUtf8 => Kind::InvalidUtf8,
        Damage::NulBytes => Kind::NulBytes,
        Damage::GluedLines => Kind::GluedLines,
        Damage::DuplicateId => Kind::DuplicateId,
        Damage::OrphanParent => Kind::OrphanParent,
        Damage::ForwardParent => Kind::ForwardParent,
        Damage::SelfParent => Kind::SelfParent,
        Damage::Cycle => Kind::Cycle,
        Damage::SecondHeader => Kind::SecondHeader,
        Damage::MissingTrailingNewline => Kind::MissingTrailingNewline,
        Damage::OversizedLine => Kind::OversizedLine,
        Damage::DurabilityUnknown => Kind::DurabilityUnknown,
    };
    wire::Diagnostic {
        line: found.line,
        offset: found.offset,
        length: found.length,
        ..wire::Diagnostic::of_file(kind)
    }
}

/// The diagnostic of a file that opens beside its newest step (session-file.md §4.2).
pub(crate) fn leaf_beside_newest(core: &SessionState) -> Option<wire::Diagnostic> {
    let beside = core.tree.beside_newest()?;
    let at = core.tree.timestamp(beside.opens_at);
    let entry = match core.tree.kind(beside.opens_at) {
        EntryKind::Custom | EntryKind::Note => core.entry(beside.opens_at).ok(),
        _ => None,
    };
    let by = entry
        .as_deref()
        .and_then(|entry| json::get(entry, "customType"));
    Some(wire::Diagnostic {
        newest_tip_id: Some(core.tree.id(beside.newest).to_owned()),
        at: at.map(timestamp::format),
        by: by.and_then(json::string).map(Cow::into_owned),
        newer_turns: Some(beside.turns),
        ..wire::Diagnostic::of_file(wire::DiagnosticKind::LeafBesideNewest)
    })
}

/// `data = {kind, retryable, retryAfterMs?, details?}` (protocol.md §8).
pub(crate) fn error(error: &Error) -> ErrorObjectOwned {
    let wire::ErrorObject {
        code,
        message,
        data,
    } = error_object(error);
    ErrorObjectOwned::owned(code, message, Some(data))
}

/// As [`error`], for notifications.
pub(crate) fn error_object(error: &Error) -> wire::ErrorObject {
    wire::ErrorObject {
        code: error.kind.code(),
        message: error.message.to_string(),
        data: wire::ErrorData {
            kind: error.kind.name().to_owned(),
            retryable: error.kind.retryable(),
            retry_after_ms: error.retry_after_ms,
            details: error
                .details
                .as_ref()
                .and_then(|details| details.as_object().cloned()),
        },
    }
}

/// Writes `[…]` of raw JSON values.
pub(crate) fn push_array(out: &mut Vec<u8>, values: impl IntoIterator<Item = impl AsRef<[u8]>>) {
    out.push(b'[');
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::push_raw(out, value.as_ref());
    }
    out.push(b']');
}

/// Writes `,"name":"text"` or `,"name":null`.
pub(crate) fn push_id_member(out: &mut Vec<u8>, name: &str, id: Option<&str>) {
    out.push(b',');
    json::push_string(out, name);
    out.push(b':');
    match id {
        Some(id) => json::push_string(out, id),
        None => out.extend_from_slice(b"null"),
    }
}

/// Writes `,"name":number`.
pub(crate) fn push_number_member(out: &mut Vec<u8>, name: &str, number: u64) {
    out.push(b',');
    json::push_string(out, name);
    out.push(b':');
    out.extend_from_slice(number.to_string().as_bytes());
}
