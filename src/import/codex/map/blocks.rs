//! Makes content blocks from messages, outputs and items of the model.

pub(super) use super::elements::array_elements as elements;
use crate::codex::record::{self, Line};
use treelined_core::json;

/// The deepest nesting of a value that is copied unchanged.
const DEEPEST: usize = 200;

/// Appends the blocks of a message's content, separated by commas.
pub(super) fn content(out: &mut Vec<u8>, content: &[u8]) {
    if content.starts_with(b"\"") {
        return text(out, content);
    }
    let begin = out.len();
    for piece in elements(content) {
        let comma = out.len();
        if comma > begin {
            out.push(b',');
        }
        let at = out.len();
        block(out, piece);
        if out.len() == at {
            out.truncate(comma);
        }
    }
}

/// Appends the block of one item of `content`, or nothing if it has no content.
fn block(out: &mut Vec<u8>, piece: &[u8]) {
    let names = ["type", "text", "refusal", "image_url"];
    let [kind, words, refusal, image] = json::get_each(piece, names);
    let is_text = |value: &&[u8]| value.starts_with(b"\"");
    match kind.and_then(json::string).as_deref() {
        Some("input_text" | "output_text" | "text" | "refusal") => {
            if let Some(words) = words.or(refusal).filter(is_text) {
                text(out, words);
            }
        }
        Some("input_image") => match image.filter(is_text) {
            Some(url) if !data_url(out, url) => value(out, piece),
            _ => {}
        },
        // In an entry, blocks of these types have other members, so the item is not copied.
        None | Some("thinking" | "image" | "toolCall" | "encrypted_content") => {}
        Some(_) if json::depth(piece) > DEEPEST => quoted(out, piece),
        Some(_) => json::push_raw(out, piece),
    }
}

/// Appends a value. If it is nested too deeply, its JSON is appended as a string.
pub(super) fn value(out: &mut Vec<u8>, raw: &[u8]) {
    match json::depth(raw) {
        0..=DEEPEST => json::push_raw(out, raw),
        _ => json::push_string(out, &String::from_utf8_lossy(raw)),
    }
}

/// Appends a text block; `literal` is a JSON string.
fn text(out: &mut Vec<u8>, literal: &[u8]) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    json::push_raw(out, literal);
    out.push(b'}');
}

/// Appends an image block for the URL `data:<type>;base64,<bytes>`. False for any other URL.
fn data_url(out: &mut Vec<u8>, literal: &[u8]) -> bool {
    let url = json::string(literal).unwrap_or_default();
    let data = url.strip_prefix("data:");
    let Some((mime, data)) = data.and_then(|data| data.split_once(";base64,")) else {
        return false;
    };
    image(out, mime, data);
    true
}

fn image(out: &mut Vec<u8>, mime: &str, data: &str) {
    out.extend_from_slice(br#"{"type":"image","data":"#);
    json::push_string(out, data);
    out.extend_from_slice(b",\"mimeType\":");
    json::push_string(out, mime);
    out.push(b'}');
}

/// Appends the blocks of one item of a response. `key` makes an id for a call that has none.
pub(super) fn item(out: &mut Vec<u8>, line: &Line<'_>, key: impl Fn() -> String) {
    let kind = line.payload_kind();
    match &*kind {
        "message" => content(out, json::get(line.payload, "content").unwrap_or_default()),
        "reasoning" => thinking(out, line.payload),
        kind => {
            let Some(name) = record::tool_name(kind, line.payload) else {
                return;
            };
            out.extend_from_slice(br#"{"type":"toolCall","id":"#);
            match record::call_id(line.payload) {
                Some(id) => json::push_raw(out, id),
                None => json::push_string(out, &key()),
            }
            out.extend_from_slice(b",\"name\":");
            json::push_string(out, &name);
            out.extend_from_slice(b",\"arguments\":");
            call_arguments(out, kind, line.payload);
            out.push(b'}');
        }
    }
}

/// Appends the text of a reasoning item, or its summary. Its parts become paragraphs.
fn thinking(out: &mut Vec<u8>, payload: &[u8]) {
    let [summary, content] = json::get_each(payload, ["summary", "content"]);
    let parts = |array: Option<&'_ [u8]>| -> Vec<Vec<u8>> {
        let pieces = elements(array.unwrap_or_default());
        let texts = pieces.filter_map(|piece| json::get(piece, "text"));
        let inner = texts.filter_map(|text| text.strip_prefix(b"\"")?.strip_suffix(b"\""));
        inner.map(<[u8]>::to_vec).collect()
    };
    let mut texts = parts(content);
    if texts.is_empty() {
        texts = parts(summary);
    }
    if texts.iter().all(Vec::is_empty) {
        return;
    }
    out.extend_from_slice(br#"{"type":"thinking","thinking":""#);
    json::push_raw(out, &texts.join(&br"\n\n"[..]));
    out.extend_from_slice(b"\"}");
}

fn call_arguments(out: &mut Vec<u8>, kind: &str, payload: &[u8]) {
    let names = ["arguments", "input", "action", "revised_prompt"];
    let [arguments, input, action, prompt] = json::get_each(payload, names);
    match kind {
        "custom_tool_call" => named(out, "input", input),
        "image_generation_call" => named(out, "prompt", prompt),
        "local_shell_call" | "web_search_call" => object(out, action.unwrap_or(b"null")),
        _ => object(out, arguments.unwrap_or(b"null")),
    }
}

/// Appends an object with the member `name`. Without a value, appends an empty object.
fn named(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    out.push(b'{');
    if let Some(value) = value.filter(|value| *value != b"null") {
        json::push_string(out, name);
        out.push(b':');
        self::value(out, value);
    }
    out.push(b'}');
}

/// Appends the arguments of a call: an object, the object in a text, or any other value in `_raw`.
fn object(out: &mut Vec<u8>, raw: &[u8]) {
    let is_object =
        |text: &[u8]| text.trim_ascii_start().starts_with(b"{") && json::depth(text) <= DEEPEST;
    if is_object(raw) {
        return json::push_raw(out, raw);
    }
    let text = json::string(raw);
    if let Some(text) = text.filter(|text| is_exact(raw, text)) {
        if is_object(text.as_bytes()) && json::value_span(text.as_bytes()).is_ok() {
            return json::push_raw(out, text.trim().as_bytes());
        }
        if text.trim().is_empty() {
            return named(out, "", None);
        }
    }
    named(out, "_raw", Some(raw));
}

/// Whether all characters of a string literal could be decoded.
fn is_exact(literal: &[u8], text: &str) -> bool {
    let is_replaced = text.contains(char::REPLACEMENT_CHARACTER);
    !is_replaced || memchr::memmem::find(literal, "\u{fffd}".as_bytes()).is_some()
}

/// Appends the content of a result. It may be the output of an item, the tools that a search has found, or the
/// results in an event.
pub(super) fn output(out: &mut Vec<u8>, item: &[u8]) {
    let names = ["output", "tools", "results", "result"];
    let [output, tools, results, result] = json::get_each(item, names);
    let Some(found) = output.or(tools).or(results).or(result) else {
        return;
    };
    if output.is_none() && result.is_some_and(|image| image == found) {
        // The provider returns an image as Base64 without a type.
        return match json::string(found) {
            Some(data) => image(out, "image/png", &data),
            None => quoted(out, found),
        };
    }
    if output.is_none() {
        return quoted(out, found);
    }
    match found.first() {
        Some(b'"' | b'[') => content(out, found),
        Some(b'{') => {
            let inner = json::get(found, "content");
            let at = out.len();
            match inner.filter(|inner| matches!(inner.first(), Some(b'"' | b'['))) {
                Some(inner) => content(out, inner),
                None => block(out, found),
            }
            if out.len() == at {
                quoted(out, found);
            }
        }
        _ if found == b"null" => {}
        _ => quoted(out, found),
    }
}

/// Appends a text block whose text is raw JSON.
fn quoted(out: &mut Vec<u8>, raw: &[u8]) {
    text(out, &json::quoted(&String::from_utf8_lossy(raw)));
}

/// Whether an output says that the tool has failed. The member `success` says this. In the first versions, the output
/// is JSON in a text, and the member `metadata` says this.
pub(super) fn has_failed(item: &[u8]) -> Option<bool> {
    let output = json::get(item, "output")?;
    if output.starts_with(b"{") {
        return record::has_failed(output);
    }
    let text = json::string(output)?;
    if !text.starts_with("{\"output\":") || json::value_span(text.as_bytes()).is_err() {
        return None;
    }
    record::has_failed(json::get(text.as_bytes(), "metadata")?)
}
