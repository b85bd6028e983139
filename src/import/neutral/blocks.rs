//! Converts the content blocks of a stored message to the parts of a neutral path. Accepts JSON of any shape, and
//! counts what is lost.

use super::loss::{Loss, Losses};
use super::path::Part;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write;
use treelined_core::json::{self, Elements};

/// The largest image that agents accept, in bytes.
const MAX_IMAGE_BYTES: usize = 5 << 20;
/// The types of images that agents accept.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A block of a message.
pub(super) enum Block<'a> {
    Part(Part),
    /// The text of a thought; empty if the thought is not readable.
    Thought(String),
    Call {
        id: Cow<'a, str>,
        name: String,
        arguments: Map<String, Value>,
    },
}

/// Returns the blocks of a message's `content`, which is raw JSON. A string is one block of text.
pub(super) fn blocks<'a>(content: &'a [u8], losses: &mut Losses) -> Vec<Block<'a>> {
    if content.starts_with(b"\"") {
        let text = clean(content, losses).map(|text| Block::Part(Part::Text(text)));
        return text.into_iter().collect();
    }
    let mut found = Vec::new();
    let Ok(mut elements) = Elements::open(content, 0) else {
        return found;
    };
    while let Ok(Some(span)) = elements.next_value() {
        let raw = content.get(span).unwrap_or_default();
        match block(raw, losses) {
            Some(block) => found.push(block),
            None => losses.add(Loss::Blocks, 1),
        }
    }
    found.retain(|block| !matches!(block, Block::Part(Part::Text(text)) if text.trim().is_empty()));
    found
}

fn block<'a>(raw: &'a [u8], losses: &mut Losses) -> Option<Block<'a>> {
    let literal = |name| json::get(raw, name).filter(|raw| raw.starts_with(b"\""));
    let text = |name, losses: &mut Losses| clean(literal(name)?, losses);
    Some(match &*json::string(literal("type")?)? {
        "text" => Block::Part(Part::Text(text("text", losses)?)),
        "thinking" => Block::Thought(text("thinking", losses).unwrap_or_default()),
        "image" => Block::Part(image(
            literal("data").and_then(json::string)?,
            &literal("mimeType").and_then(json::string)?,
            losses,
        )),
        "toolCall" => Block::Call {
            id: literal("id").and_then(json::string).unwrap_or_default(),
            name: text("name", losses)?,
            arguments: arguments(json::get(raw, "arguments").unwrap_or_default(), losses),
        },
        _ => return None,
    })
}

/// Decodes a JSON string. Replaces each NUL and each lone surrogate by U+FFFD, and counts the string as a loss if it
/// has any of these.
fn clean(literal: &[u8], losses: &mut Losses) -> Option<String> {
    let text = json::string(literal)?;
    let is_whole = !text.contains(['\0', char::REPLACEMENT_CHARACTER])
        || (!text.contains('\0') && has_replacement(literal));
    losses.add(Loss::Characters, u64::from(!is_whole));
    Some(text.replace('\0', "\u{fffd}"))
}

/// Whether a literal contains U+FFFD, as a character or as an escape.
fn has_replacement(literal: &[u8]) -> bool {
    let own = "\u{fffd}".as_bytes();
    let is_own = |window: &[u8]| window.eq_ignore_ascii_case(b"\\ufffd");
    literal.windows(own.len()).any(|window| window == own) || literal.windows(6).any(is_own)
}

/// Returns the arguments of a call. If they are not a JSON object, their text becomes the member `_raw`, as
/// in an import.
fn arguments(raw: &[u8], losses: &mut Losses) -> Map<String, Value> {
    if let Ok(Value::Object(arguments)) = serde_json::from_slice(raw) {
        return cleaned(arguments, losses);
    }
    if let Ok(Value::Object(arguments)) = serde_json::from_str(&with_unicode(raw)) {
        losses.add(Loss::Characters, 1);
        return cleaned(arguments, losses);
    }
    let text = json::string(raw).map_or_else(
        || String::from_utf8_lossy(raw).into_owned(),
        Cow::into_owned,
    );
    match text.is_empty() {
        true => Map::new(),
        false => Map::from_iter([("_raw".to_owned(), Value::String(text))]),
    }
}

fn cleaned(mut arguments: Map<String, Value>, losses: &mut Losses) -> Map<String, Value> {
    let mut waiting: Vec<&mut Value> = arguments.values_mut().collect();
    let mut has_nul = false;
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) if text.contains('\0') => {
                *text = text.replace('\0', "\u{fffd}");
                has_nul = true;
            }
            Value::Array(values) => waiting.extend(values),
            Value::Object(values) => waiting.extend(values.values_mut()),
            _ => {}
        }
    }
    losses.add(Loss::Characters, u64::from(has_nul));
    arguments
}

/// Replaces the escapes of lone surrogates in JSON by the escape of U+FFFD.
fn with_unicode(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let unit =
            |escape: &str| u16::from_str_radix(escape.strip_prefix("\\u")?.get(..4)?, 16).ok();
        let second = || unit(escape.get(6..)?);
        let length = match unit(escape) {
            Some(0xd800..0xdc00) if matches!(second(), Some(0xdc00..0xe000)) => 12,
            Some(0xd800..0xe000) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            Some(_) => 6,
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        out.push_str(escape.get(..length).unwrap_or_default());
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns an image, or a text that describes it if agents do not accept the image.
fn image(data: Cow<'_, str>, mime_type: &str, losses: &mut Losses) -> Part {
    let is_taken = IMAGE_TYPES.contains(&mime_type) && is_base64(&data);
    if is_taken && size(&data) <= MAX_IMAGE_BYTES {
        return Part::Image {
            mime_type: mime_type.to_owned(),
            data: data.into_owned(),
        };
    }
    losses.add(Loss::Images, 1);
    Part::Text(described(&data, mime_type))
}

/// Whether a text is valid Base64.
fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty()
        && digits.len() % 4 != 1
        && data.len() - digits.len() <= 2
        && digits.bytes().all(is_digit)
}

/// Returns the number of bytes that a Base64 text encodes.
fn size(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

/// Returns the text that replaces an image. It has the hash of the image's Base64 text.
pub(super) fn described(data: &str, mime_type: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(data) {
        let _infallible = write!(digits, "{byte:02x}");
    }
    format!(
        "[An image is not part of this session: {mime_type}, {} bytes, SHA-256 of its Base64 {digits}]",
        size(data)
    )
}
