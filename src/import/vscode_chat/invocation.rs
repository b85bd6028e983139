//! Reads the calls of tools in a response, as the user has seen them.

use crate::message::{Blocks, elements};
use crate::value::{is_blank, literal, text};
use std::borrow::Cow;
use treelined_core::json;
use xxhash_rust::xxh3::xxh3_64;

/// The longest id that is used unchanged, in bytes. The hash of a longer id is used instead of the id.
const LONGEST_ID: usize = 128;

/// The id and the name of a call; `None` if the part is not a call.
pub(super) fn head(part: &[u8]) -> Option<(Option<Cow<'_, str>>, Cow<'_, str>)> {
    let [kind, id, name] = json::get_each(part, ["kind", "toolCallId", "toolId"]);
    if text(kind)? != "toolInvocationSerialized" {
        return None;
    }
    let id = text(id).filter(|id| !id.is_empty());
    Some((id, text(name).unwrap_or(Cow::Borrowed("unknown"))))
}

/// The arguments of a call: its input, its command, or its description.
pub(super) fn arguments(part: &[u8]) -> Vec<u8> {
    let [data, message] = json::get_each(part, ["toolSpecificData", "invocationMessage"]);
    let data = data.unwrap_or(b"{}");
    let [input, line, command] = json::get_each(data, ["rawInput", "commandLine", "command"]);
    if let Some(input) = input.filter(|input| input.starts_with(b"{")) {
        return input.to_vec();
    }
    let original = line.and_then(|line| json::get(line, "original"));
    if let Some(command) = literal(original).or(literal(command)) {
        return [b"{\"command\":", command, b"}"].concat();
    }
    match markdown(message) {
        Some(message) => [b"{\"description\":", message, b"}"].concat(),
        None => b"{}".to_vec(),
    }
}

/// The output of a call, and whether it is an error.
pub(super) fn output(part: &[u8]) -> (Blocks, bool) {
    let names = ["resultDetails", "toolSpecificData", "pastTenseMessage"];
    let [details, data, message] = json::get_each(part, names);
    let details = details.unwrap_or(b"{}");
    let [output, is_error] = json::get_each(details, ["output", "isError"]);
    let mut blocks = Blocks::default();
    if let Some(output) = literal(output).filter(|output| !is_blank(output)) {
        blocks.text(output);
    }
    for piece in output.into_iter().flat_map(elements) {
        let [is_text, value] = json::get_each(piece, ["isText", "value"]);
        if let (Some(b"true"), Some(value)) = (is_text, literal(value)) {
            blocks.text(value);
        }
    }
    if blocks.is_empty() {
        let printed = ["terminalCommandOutput", "text"];
        let printed = data.and_then(|data| json::get_path(data, &printed));
        if let Some(said) = literal(printed).or(markdown(message)) {
            blocks.text(said);
        }
    }
    (blocks, is_error == Some(b"true"))
}

/// The literal of a text, or of the value of a Markdown text.
pub(super) fn markdown(raw: Option<&[u8]>) -> Option<&[u8]> {
    let raw = raw?;
    let said = literal(Some(raw)).or_else(|| literal(json::get(raw, "value")));
    said.filter(|said| !is_blank(said))
}

/// An id that is short enough to be repeated in many nodes.
pub(super) fn short(id: &str) -> String {
    match id.len() {
        0..=LONGEST_ID => id.to_owned(),
        _ => format!("{:016x}", xxh3_64(id.as_bytes())),
    }
}
