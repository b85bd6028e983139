//! The text of an entry: the strings of its line that people write or search for, and the data of plugins. Names
//! of members and custom types, ids, times and images are not searched.

use crate::entry::{Kind, Role};
use crate::json::{self, Elements, Malformed, Members};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The kind of a field of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SearchField"))]
#[repr(u8)]
pub enum FieldKind {
    /// The text of messages, and every field that has none of the other kinds.
    Text,
    /// The thinking of a model.
    Thinking,
    /// The names and arguments of called tools, and commands.
    ToolCalls,
    /// The results of tools, and the output of commands.
    ToolResults,
    /// The current labels of entries, and the names of sessions.
    Labels,
    /// The summaries of branches, and compactions.
    Summaries,
}

/// The reason why a walk stops before the end of the line.
enum FieldStop {
    /// The visitor needs no more fields.
    Enough,
    Malformed,
}

impl From<Malformed> for FieldStop {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// The levels of a call's arguments, or of a plugin's data, that are searched.
const DEEPEST_VALUE: usize = 64;

/// The members of an entry that are text. A content may consist of blocks.
const fn texts(kind: Kind) -> &'static [&'static [u8]] {
    match kind {
        Kind::Message
        | Kind::ContextEdit
        | Kind::Custom
        | Kind::LeafRecord
        | Kind::ModeChange
        | Kind::Note
        | Kind::Unknown => &[],
        Kind::CustomMessage => &[b"content"],
        Kind::Compaction | Kind::BranchSummary => &[b"summary"],
        Kind::ThinkingLevelChange => &[b"thinkingLevel"],
        Kind::ModelChange => &[b"provider", b"modelId"],
        Kind::Label => &[b"label"],
        Kind::SessionInfo => &[b"name"],
        Kind::Usage => &[b"kind", b"provider", b"model", b"note"],
    }
}

/// The kind of the fields in a member of an entry that is not a message.
const fn field_kind(kind: Kind) -> FieldKind {
    match kind {
        Kind::Compaction | Kind::BranchSummary => FieldKind::Summaries,
        Kind::Label | Kind::SessionInfo => FieldKind::Labels,
        _ => FieldKind::Text,
    }
}

/// The kind of the fields in a member of a message.
fn message_field_kind(role: Role, name: &[u8]) -> FieldKind {
    match (role, name) {
        (_, b"summary") | (Role::BranchSummary | Role::CompactionSummary, _) => {
            FieldKind::Summaries
        }
        (_, b"command") => FieldKind::ToolCalls,
        (_, b"output") | (Role::ToolResult, _) => FieldKind::ToolResults,
        _ => FieldKind::Text,
    }
}

/// The members of a message that are text, whatever its role.
const OF_MESSAGES: &[&[u8]] = &[
    b"content",
    b"summary",
    b"command",
    b"output",
    b"errorMessage",
    b"toolName",
];

/// Passes each field of a stored line to `see`, in order, as raw JSON. A field is a string, or a number in the
/// arguments of a call or in the data of a plugin. Text after invalid JSON is not read.
pub fn each_field<'a>(
    line: &'a [u8],
    kind: Kind,
    mut see: impl FnMut(&'a [u8]) -> ControlFlow<()>,
) {
    each_field_with_kind(line, kind, Role::None, |_, raw| see(raw));
}

/// Like [`each_field`], and also passes the kind of each field. `role` is the role of the message.
pub fn each_field_with_kind<'a>(
    line: &'a [u8],
    kind: Kind,
    role: Role,
    see: impl FnMut(FieldKind, &'a [u8]) -> ControlFlow<()>,
) {
    let mut walk = FieldWalk {
        text: line,
        role,
        see,
    };
    let (Ok(()) | Err(FieldStop::Enough | FieldStop::Malformed)) = walk.entry(kind);
}

struct FieldWalk<'a, F> {
    text: &'a [u8],
    role: Role,
    see: F,
}

impl<'a, F: FnMut(FieldKind, &'a [u8]) -> ControlFlow<()>> FieldWalk<'a, F> {
    fn entry(&mut self, kind: Kind) -> Result<(), FieldStop> {
        let mut members = Members::open(self.text, json::skip_space(self.text, 0))?;
        while let Some(key) = members.next_key()? {
            let (name, at) = (key.name(self.text), key.value_at);
            let end = match (&*name, kind) {
                (b"message", Kind::Message) => self.object(at, OF_MESSAGES)?,
                (b"data", Kind::Custom) => self.values(at, FieldKind::Text, None)?,
                // The id of the entry that the note is about is not text.
                (b"data", Kind::Note) => self.values(at, FieldKind::Text, Some("targetId"))?,
                (b"replacement", Kind::ContextEdit) => self.object(at, &[b"content"])?,
                (name, _) if texts(kind).contains(&name) => self.content(at, field_kind(kind))?,
                _ => json::skip_value(self.text, at)?,
            };
            members.resume(end);
        }
        Ok(())
    }

    /// Reads the members `texts` of an object; returns the position after the object.
    fn object(&mut self, at: usize, texts: &[&[u8]]) -> Result<usize, FieldStop> {
        if self.text.get(at) != Some(&b'{') {
            return Ok(json::skip_value(self.text, at)?);
        }
        let mut members = Members::open(self.text, at)?;
        while let Some(key) = members.next_key()? {
            let at = key.value_at;
            let name = key.name(self.text);
            let end = match texts.contains(&&*name) {
                true => self.content(at, message_field_kind(self.role, &name))?,
                false => json::skip_value(self.text, at)?,
            };
            members.resume(end);
        }
        Ok(members.end())
    }

    /// Reads text, or an array of blocks.
    fn content(&mut self, at: usize, kind: FieldKind) -> Result<usize, FieldStop> {
        if self.text.get(at) != Some(&b'[') {
            return self.string(at, kind);
        }
        let mut blocks = Elements::open(self.text, at)?;
        while let Some(at) = blocks.next_at()? {
            let end = match self.text.get(at) {
                Some(b'{') => self.block(at, kind)?,
                _ => self.string(at, kind)?,
            };
            blocks.resume(end);
        }
        Ok(blocks.end())
    }

    /// Reads a block: the text and thinking of any type of block, the name and arguments of a call.
    fn block(&mut self, at: usize, kind: FieldKind) -> Result<usize, FieldStop> {
        let mut members = Members::open(self.text, at)?;
        while let Some(key) = members.next_key()? {
            let at = key.value_at;
            let end = match &*key.name(self.text) {
                b"text" => self.string(at, kind)?,
                b"thinking" => self.string(at, FieldKind::Thinking)?,
                b"name" => self.string(at, FieldKind::ToolCalls)?,
                b"arguments" => self.values(at, FieldKind::ToolCalls, None)?,
                _ => json::skip_value(self.text, at)?,
            };
            members.resume(end);
        }
        Ok(members.end())
    }

    /// Reads all strings and numbers in a value, without recursion. The member `except` of the value is not read.
    fn values(
        &mut self,
        at: usize,
        kind: FieldKind,
        except: Option<&str>,
    ) -> Result<usize, FieldStop> {
        let end = json::skip_value(self.text, at)?;
        let mut open = vec![(at, 0)];
        while let Some((at, level)) = open.pop() {
            let first = open.len();
            match self.text.get(at) {
                Some(b'{') if level < DEEPEST_VALUE => {
                    let mut members = Members::open(self.text, at)?;
                    while let Some(member) = members.next_member()? {
                        let is_left_out =
                            level == 0 && except.is_some_and(|name| member.is(self.text, name));
                        if !is_left_out {
                            open.push((member.value.start, level + 1));
                        }
                    }
                }
                Some(b'[') if level < DEEPEST_VALUE => {
                    let mut elements = Elements::open(self.text, at)?;
                    while let Some(element) = elements.next_value()? {
                        open.push((element.start, level + 1));
                    }
                }
                Some(b'"' | b'-' | b'0'..=b'9') => {
                    let end = json::skip_value(self.text, at)?;
                    self.show(kind, at, end)?;
                }
                _ => {}
            }
            if let Some(inner) = open.get_mut(first..) {
                inner.reverse();
            }
        }
        Ok(end)
    }

    fn string(&mut self, at: usize, kind: FieldKind) -> Result<usize, FieldStop> {
        let end = json::skip_value(self.text, at)?;
        if self.text.get(at) == Some(&b'"') {
            self.show(kind, at, end)?;
        }
        Ok(end)
    }

    fn show(&mut self, kind: FieldKind, at: usize, end: usize) -> Result<(), FieldStop> {
        match (self.see)(kind, self.text.get(at..end).unwrap_or_default()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FieldStop::Enough),
        }
    }
}

/// The words that a row shows in addition to its text: the role of a message, or else the type. Both the raw and the
/// decoded form.
pub fn row_words(kind: Kind, kind_name: &str, role: Option<&str>) -> [String; 2] {
    match kind {
        Kind::Message => [role.unwrap_or_default().to_owned(), String::new()],
        _ => [kind_name.to_owned(), kind_name.replace('_', " ")],
    }
}
