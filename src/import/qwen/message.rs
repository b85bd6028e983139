//! Reads the messages in records.

use crate::message::elements;
use crate::value::{literal, text};
use std::borrow::Cow;
use treelined_core::json;

/// A part of a message. All members are raw.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Text(&'a [u8]),
    Thought(&'a [u8]),
    Call {
        id: Option<&'a [u8]>,
        name: Option<&'a [u8]>,
        arguments: Option<&'a [u8]>,
    },
    Result {
        id: Option<&'a [u8]>,
        name: Option<&'a [u8]>,
        response: Option<&'a [u8]>,
    },
    Image {
        data: &'a [u8],
        mime: &'a [u8],
    },
}

/// The parts of a message. Parts of unknown types are left out.
pub(super) fn parts(message: Option<&[u8]>) -> impl Iterator<Item = Part<'_>> {
    let parts = message.and_then(|message| json::get(message, "parts"));
    parts.into_iter().flat_map(elements).filter_map(part)
}

fn part(part: &[u8]) -> Option<Part<'_>> {
    let names = [
        "text",
        "thought",
        "functionCall",
        "functionResponse",
        "inlineData",
    ];
    let [said, thought, call, response, data] = json::get_each(part, names);
    if let Some(call) = call {
        let [id, name, arguments] = json::get_each(call, ["id", "name", "args"]);
        return Some(Part::Call {
            id,
            name,
            arguments,
        });
    }
    if let Some(response) = response {
        let [id, name, response] = json::get_each(response, ["id", "name", "response"]);
        return Some(Part::Result { id, name, response });
    }
    if let Some(said) = literal(said) {
        return Some(match thought {
            Some(b"true") => Part::Thought(said),
            _ => Part::Text(said),
        });
    }
    let [mime, data] = json::get_each(data?, ["mimeType", "data"]);
    let (mime, data) = (literal(mime)?, literal(data)?);
    mime.starts_with(b"\"image/")
        .then_some(Part::Image { data, mime })
}

/// The id of a call: the id in the part, or the number of the call in the message if the part has none.
pub(super) fn call_id(id: Option<&[u8]>, number: usize) -> Cow<'_, str> {
    let own = text(id).filter(|id| !id.is_empty());
    own.unwrap_or_else(|| Cow::Owned(format!("#{number}")))
}
