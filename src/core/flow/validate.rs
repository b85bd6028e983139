//! Checks entries before they are appended (protocol.md §9). Stored entries are never checked: a file is
//! read as it is.

use crate::error::{Error, Result};
use crate::json;
use crate::shape::{self, Shape, ShapeFault};

/// Deepest nesting of arrays and objects in an entry that a client sends.
const MAX_NESTING: usize = 256;
/// Only the daemon writes `custom` entries whose type begins with this text.
const RESERVED_CUSTOM_PREFIX: &str = "treelined.";

/// Refuses nesting that common parsers cannot read.
pub(crate) fn nesting(index: usize, field: &str, text: &[u8]) -> Result<()> {
    // An entry with few opening brackets cannot be too deep.
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

/// Checks the members of an entry by its type; unknown types pass.
pub(crate) fn entry(index: usize, type_name: &str, object: &[u8]) -> Result<()> {
    let check = Check {
        index,
        object,
        path: "",
    };
    match type_name {
        "session" => Err(check.refused("type", "is reserved for the header")),
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
            check.usage("usage")?;
            check.optional_boolean("fromHook")?;
            check.optional_object("systemMessage")
        }
        "branch_summary" => {
            check.text("fromId")?;
            check.text("summary")?;
            check.optional_boolean("fromHook")?;
            check.optional_boolean("merge")?;
            check.usage("usage")
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
                return Err(check.refused("customType", "is reserved for the daemon"));
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
            let usage = check.member("usage")?;
            check.has_shape("usage", Shape::Object(&shape::USAGE), usage)?;
            check.optional_text("note")
        }
        _ => Ok(()),
    }
}

/// Checks the members of a client's summary other than its text; `path` names the summary in the params.
pub fn summary(path: &str, details: Option<&[u8]>, usage: Option<&[u8]>) -> Result<()> {
    if let Some(details) = details {
        nesting(0, &format!("{path}.details"), details)?;
    }
    let Some(usage) = usage else {
        return Ok(());
    };
    nesting(0, &format!("{path}.usage"), usage)?;
    shape::check(Shape::Object(&shape::USAGE), usage).map_err(|ShapeFault { member, reason }| {
        let dot = if member.is_empty() { "" } else { "." };
        Error::entry_invalid(0, format!("{path}.usage{dot}{member}"), &reason)
    })
}

/// Checks that a message has a role, and that a message with a known role has the members that this role requires.
pub(crate) fn message(index: usize, message: &[u8]) -> Result<()> {
    shape::check_message(message).map_err(|ShapeFault { member, reason }| {
        let dot = if member.is_empty() { "" } else { "." };
        Error::entry_invalid(index, format!("message{dot}{member}"), &reason)
    })
}

/// Checks the members of one object; errors name the path of the member.
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
        let value = json::get(self.object, name);
        value.ok_or_else(|| self.refused(name, "is missing"))
    }

    fn text(&self, name: &str) -> Result<()> {
        if self.member(name)?.starts_with(b"\"") {
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

    fn optional_boolean(&self, name: &str) -> Result<()> {
        match json::get(self.object, name) {
            None | Some(b"null") => Ok(()),
            Some(_) => self.boolean(name),
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
        let value = self.member(name)?;
        self.has_shape(name, Shape::TextOrBlocks, value)
    }

    fn usage(&self, name: &str) -> Result<()> {
        match json::get(self.object, name) {
            None | Some(b"null") => Ok(()),
            Some(value) => self.has_shape(name, Shape::Object(&shape::USAGE), value),
        }
    }

    fn has_shape(&self, name: &str, shape: Shape, value: &[u8]) -> Result<()> {
        shape::check(shape, value).map_err(|ShapeFault { member, reason }| {
            let dot = if member.is_empty() { "" } else { "." };
            self.refused(&format!("{name}{dot}{member}"), &reason)
        })
    }
}

fn is_object(value: &[u8]) -> bool {
    value.starts_with(b"{")
}
