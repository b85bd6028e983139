//! Decodes the raw `params` of a request into its struct, strictly. This module decides which spellings of "nothing"
//! are allowed, and which member an error names (protocol.md §1, §8). It does not know single methods.

use serde::de::DeserializeOwned;
use treelined_core::error::Error;
use treelined_core::{json, suggest};

/// Decodes the `params` member of a request, as it is in the frame.
///
/// An absent member, `null`, `{}` and `[]` all mean no params. Fails with `invalidParams`, which names the
/// member by its path.
pub(super) fn decode<T: DeserializeOwned>(params: Option<&str>) -> Result<T, Error> {
    let text = params.map_or("", |text| text.trim_matches(is_json_space));
    let text = match text.as_bytes() {
        b"" | b"null" => "{}",
        [b'{', ..] => text,
        [b'[', inner @ .., b']'] if inner.iter().all(|b| is_json_space(char::from(*b))) => "{}",
        _ => return Err(Error::invalid_params("", "params go by name, in an object")),
    };
    // The path of each member is tracked only in a second attempt, when there is an error to report.
    if let Ok(decoded) = serde_json::from_str(text) {
        return Ok(decoded);
    }
    if let Some(Ok(decoded)) = with_readable_ids(text).map(|text| serde_json::from_str(&text)) {
        return Ok(decoded);
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let decoded = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let at = error.path().to_string();
        refusal(if at == "." { "" } else { &at }, &error.into_inner())
    })?;
    json.end().map_err(|error| refusal("", &error))?;
    Ok(decoded)
}

/// Replaces lone surrogates in the ids of params in the same way as in the ids of entries (see [`json::id`]); `None`
/// if there are none. A client's text cannot contain lone surrogates, but ids in files may.
fn with_readable_ids(params: &str) -> Option<String> {
    let text = params.as_bytes();
    let mut edits: Vec<(json::Span, Vec<u8>)> = Vec::new();
    let mut readable = |span: json::Span| {
        let Some(id) = text.get(span.clone()).and_then(json::id) else {
            return;
        };
        if id.contains(char::REPLACEMENT_CHARACTER) {
            let mut literal = Vec::new();
            json::push_string(&mut literal, &id);
            edits.push((span, literal));
        }
    };
    let mut members = json::Members::open(text, 0).ok()?;
    while let Some(member) = members.next_member().ok()? {
        let name = member.name(text);
        if name.ends_with(b"Ids") && text.get(member.value.start) == Some(&b'[') {
            let mut ids = json::Elements::open(text, member.value.start).ok()?;
            while let Some(id) = ids.next_value().ok()? {
                readable(id);
            }
        } else if name.ends_with(b"Id") && &*name != b"sessionId" {
            readable(member.value);
        }
    }
    let edits: Vec<(json::Span, &[u8])> = edits
        .iter()
        .map(|(span, literal)| (span.clone(), literal.as_slice()))
        .collect();
    if edits.is_empty() {
        return None;
    }
    String::from_utf8(json::splice(text, &edits)).ok()
}

/// The most bytes of a client's text that an error repeats.
const MAX_ECHO: usize = 200;

/// Converts an error of serde to `invalidParams`. `at` is the path of the struct if a member is missing or duplicate,
/// else it is the path of the member.
fn refusal(at: &str, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let reason = text
        .rfind(" at line ")
        .and_then(|end| text.get(..end))
        .unwrap_or(&text);
    let unnamed = reason
        .strip_prefix("missing field `")
        .or_else(|| reason.strip_prefix("duplicate field `"))
        .and_then(|rest| rest.strip_suffix('`'));
    let field = match unnamed {
        Some(name) if at.is_empty() => name.to_owned(),
        Some(name) => format!("{at}.{name}"),
        None => at.to_owned(),
    };
    let reason = if let Some(rest) = reason.strip_prefix("unknown field `") {
        // The rest of the message is "name`, expected one of `a`, `b`".
        let mut quoted = rest.split('`').step_by(2);
        let wrong = quoted.next().unwrap_or_default();
        format!("no such member{}", suggest::hint(wrong, quoted))
    } else if reason.starts_with("missing field `") {
        "is required".to_owned()
    } else if reason.starts_with("duplicate field `") {
        "stands there twice".to_owned()
    } else {
        shortened(reason)
    };
    Error::invalid_params(shortened(&field), reason)
}

fn shortened(text: &str) -> String {
    match text
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| *at >= MAX_ECHO)
    {
        Some(end) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn is_json_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests;
