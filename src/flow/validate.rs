//! What an entry must look like before it is appended (protocol.md §9). Stored entries are never
//! judged by this: what is in a file is read as it is.

use crate::error::{Error, Result};
use crate::json::{self, Elements};

/// Deepest nesting of arrays and objects a client may send in an entry.
const MAX_NESTING: usize = 256;
/// `custom` entries of these types are the daemon's own.
const RESERVED_CUSTOM_PREFIX: &str = "treelined.";

/// Refuses nesting that common parsers cannot read back.
pub fn nesting(index: usize, field: &str, text: &[u8]) -> Result<()> {
    // What opens that seldom needs no closer look.
    let opens = memchr::memchr2_iter(b'[', b'{', text).count();
    if opens > MAX_NESTING && json::depth(text) > MAX_NESTING {
        return Err(Error::entry_invalid(
            index,
            field,
            "is nested more than 256 levels deep",
        ));
    }
    Ok(())
}

/// Checks the members of an entry by its type; types unknown to us pass.
pub fn entry(index: usize, type_name: &str, object: &[u8]) -> Result<()> {
    let check = Check {
        index,
        object,
        path: "",
    };
    match type_name {
        "session" => Err(check.refused("type", "is the header's")),
        "message" => message(index, check.member("message")?),
        "thinking_level_change" => check.text("thinkingLevel"),
        "model_change" => {
            check.text("provider")?;
            check.text("modelId")
        }
        "compaction" => {
            check.text("summary")?;
            check.member("firstKeptEntryId")?;
            check.optional_text("firstKeptEntryId")?;
            check.count("tokensBefore")?;
            check.optional_object("usage")?;
            check.optional_object("systemMessage")
        }
        "branch_summary" => {
            check.text("fromId")?;
            check.text("summary")?;
            check.optional_object("usage")
        }
        "context_edit" => {
            check.text("targetId")?;
            match check.member("replacement")? {
                b"null" => Ok(()),
                replacement if is_object(replacement) => Check {
                    index,
                    object: replacement,
                    path: "replacement.",
                }
                .text_or_blocks("content"),
                _ => Err(check.refused("replacement", "must be null or {content}")),
            }
        }
        "custom" => {
            check.text("customType")?;
            let custom_type = json::get(object, "customType").and_then(json::string);
            if custom_type.is_some_and(|name| name.starts_with(RESERVED_CUSTOM_PREFIX)) {
                return Err(check.refused("customType", "is the daemon's own"));
            }
            Ok(())
        }
        "custom_message" => {
            check.text("customType")?;
            check.text_or_blocks("content")?;
            check.boolean("display")
        }
        "label" => {
            check.text("targetId")?;
            check.optional_text("label")
        }
        "session_info" => check.optional_text("name"),
        "usage" => {
            check.text("kind")?;
            check.text("provider")?;
            check.text("model")?;
            check.member("usage")?;
            check.optional_object("usage")?;
            check.optional_text("note")
        }
        _ => Ok(()),
    }
}

/// A message needs a role; known roles need the content of their role.
pub fn message(index: usize, message: &[u8]) -> Result<()> {
    let entry = Check {
        index,
        object: message,
        path: "message.",
    };
    if !is_object(message) {
        return Err(Error::entry_invalid(index, "message", "must be an object"));
    }
    let wanted = ["role", "content", "toolCallId"];
    let [role, content, tool_call_id] = json::get_each(message, wanted);
    let role = role.and_then(json::string);
    let role = role.ok_or_else(|| entry.refused("role", "must be a string"))?;
    match &*role {
        "user" | "custom" | "system" => entry.is_text_or_blocks("content", content),
        "assistant" => entry.are_blocks("content", content),
        "toolResult" => {
            entry.is_text("toolCallId", tool_call_id)?;
            entry.are_blocks("content", content)
        }
        "bashExecution" => {
            entry.text("command")?;
            entry.text("output")
        }
        "branchSummary" | "compactionSummary" => entry.text("summary"),
        _ => Ok(()),
    }
}

/// Names what it refuses by the path of the member.
struct Check<'a> {
    index: usize,
    object: &'a [u8],
    path: &'static str,
}

impl<'a> Check<'a> {
    fn refused(&self, member: &str, reason: &str) -> Error {
        Error::entry_invalid(self.index, format!("{}{member}", self.path), reason)
    }

    fn member(&self, name: &str) -> Result<&'a [u8]> {
        self.given(name, json::get(self.object, name))
    }

    fn given<'v>(&self, name: &str, value: Option<&'v [u8]>) -> Result<&'v [u8]> {
        value.ok_or_else(|| self.refused(name, "is missing"))
    }

    fn text(&self, name: &str) -> Result<()> {
        self.is_text(name, json::get(self.object, name))
    }

    fn is_text(&self, name: &str, value: Option<&[u8]>) -> Result<()> {
        if self.given(name, value)?.starts_with(b"\"") {
            return Ok(());
        }
        Err(self.refused(name, "must be a string"))
    }

    fn optional_text(&self, name: &str) -> Result<()> {
        match json::get(self.object, name) {
            None | Some(b"null") => Ok(()),
            Some(_) => self.text(name),
        }
    }

    fn count(&self, name: &str) -> Result<()> {
        let number = std::str::from_utf8(self.member(name)?).ok();
        let number = number.and_then(|text| text.parse::<f64>().ok());
        if number.is_some_and(|number| number >= 0.0 && number.fract() == 0.0) {
            return Ok(());
        }
        Err(self.refused(name, "must be a whole number, 0 or more"))
    }

    fn boolean(&self, name: &str) -> Result<()> {
        match self.member(name)? {
            b"true" | b"false" => Ok(()),
            _ => Err(self.refused(name, "must be true or false")),
        }
    }

    fn optional_object(&self, name: &str) -> Result<()> {
        match json::get(self.object, name) {
            None | Some(b"null") => Ok(()),
            Some(value) if is_object(value) => Ok(()),
            Some(_) => Err(self.refused(name, "must be an object")),
        }
    }

    fn text_or_blocks(&self, name: &str) -> Result<()> {
        self.is_text_or_blocks(name, json::get(self.object, name))
    }

    fn is_text_or_blocks(&self, name: &str, value: Option<&[u8]>) -> Result<()> {
        match self.given(name, value)? {
            [b'"', ..] => Ok(()),
            _ => self.are_blocks(name, value),
        }
    }

    /// An array of objects that each have a string `type`, and what the known types need.
    fn are_blocks(&self, name: &str, value: Option<&[u8]>) -> Result<()> {
        let value = self.given(name, value)?;
        let wrong = |reason: &str| self.refused(name, reason);
        let not_blocks = |_| wrong("must be an array of content blocks");
        let untyped = || wrong("must be an array of objects with a type");
        let mut elements = Elements::open(value, 0).map_err(not_blocks)?;
        while let Some(at) = elements.next_at().map_err(not_blocks)? {
            let wanted = ["type", "text", "thinking", "data", "mimeType", "id", "name"];
            let picked = json::pick(value, at, wanted);
            let ([kind, text, thinking, data, mime_type, id, tool], end) =
                picked.map_err(|_| untyped())?;
            elements.resume(end);
            let kind = kind.and_then(json::string).ok_or_else(untyped)?;
            let needed: &[(&str, Option<&[u8]>)] = match &*kind {
                "text" => &[("text", text)],
                "thinking" => &[("thinking", thinking)],
                "image" => &[("data", data), ("mimeType", mime_type)],
                "toolCall" => &[("id", id), ("name", tool)],
                _ => &[],
            };
            for (member, value) in needed {
                if !value.is_some_and(|value| value.starts_with(b"\"")) {
                    return Err(wrong(&format!("has a block without its {member}")));
                }
            }
        }
        Ok(())
    }
}

fn is_object(value: &[u8]) -> bool {
    value.starts_with(b"{")
}
