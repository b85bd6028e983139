//! Reads one line of the session file into its envelope: the facts that the index needs (session-file.md
//! §2).
//!
//! This module chooses the members, and has the rules for unusual ones: any order, duplicate members (the last one
//! counts), escaped keys, members of the wrong type (they count as absent). The same pass checks that every byte of the
//! line is JSON. The caller checks UTF-8, and whatever depends on other lines: the position of the header, duplicate
//! ids, orphans, migration.

use super::*;
use crate::json::{self, Elements, Malformed, Members};

/// Scans a line with exactly one JSON text. White space and a carriage return may surround the text.
/// [`BadLine::NotAnObject`] means that the whole line is valid JSON.
pub fn scan_line(line: &[u8]) -> Result<Line<'_>, BadLine> {
    let start = json::skip_space(line, 0);
    if start == line.len() {
        return Ok(Line::Blank);
    }
    let (scanned, end) = scan_value(line, start)?;
    match json::skip_space(line, end) {
        at if at < line.len() => Err(BadLine::InvalidJson { at }),
        _ => scanned.ok_or(BadLine::NotAnObject),
    }
}

/// Scans the first object from `at` on and returns the position after it. For lines with several adjacent objects
/// (`gluedLines`, session-file.md §2). Returns [`Line::Blank`] if only white space is left. After
/// [`BadLine::NotAnObject`], `json::skip_value` finds the start of the next object.
pub fn scan_first(line: &[u8], at: usize) -> Result<(Line<'_>, usize), BadLine> {
    let start = json::skip_space(line, at);
    if start >= line.len() {
        return Ok((Line::Blank, line.len()));
    }
    let (scanned, end) = scan_value(line, start)?;
    Ok((scanned.ok_or(BadLine::NotAnObject)?, end))
}

/// The members at the start of every entry, in the order of the format.
const FIRST: [&[u8]; 4] = [b"type", b"id", b"parentId", b"timestamp"];

/// The raw values of the relevant members, empty if absent. The `type` decides which members count, and the `type` may
/// come last.
#[derive(Default)]
struct RawEntry<'a> {
    kind: &'a [u8],
    id: &'a [u8],
    parent_id: &'a [u8],
    timestamp: &'a [u8],
    message: RawMessage<'a>,
    custom_type: &'a [u8],
    data: &'a [u8],
    display: &'a [u8],
    from_id: &'a [u8],
    merge: &'a [u8],
    target_id: &'a [u8],
    label: &'a [u8],
    name: &'a [u8],
    tokens_before: &'a [u8],
    first_kept_entry_id: &'a [u8],
    first_kept_entry_index: &'a [u8],
    version: &'a [u8],
    cwd: &'a [u8],
    parent_session: &'a [u8],
    parent_entry_id: &'a [u8],
    spawned_by: &'a [u8],
    title: &'a [u8],
    background: &'a [u8],
    group: &'a [u8],
    copied_from: &'a [u8],
}

/// Validates the value at `at`; `None` if the value is not an object with a type.
fn scan_value(text: &[u8], at: usize) -> Result<(Option<Line<'_>>, usize), Malformed> {
    if text.get(at) != Some(&b'{') {
        return Ok((None, json::skip_value(text, at)?));
    }
    let mut fields = RawEntry::default();
    let mut odd = false;
    let (mut members, mut passed) = match fields.take_first(text, at) {
        Some(end) => (Members::after(text, end), FIRST.len()),
        None => (Members::open(text, at)?, 0),
    };
    while let Some(key) = members.next_key()? {
        let name = key.name(text);
        odd |= key.escaped
            || match FIRST.get(passed) {
                Some(expected) => *expected != &*name,
                None => FIRST.contains(&&*name),
            };
        passed += 1;
        let field = match &*name {
            b"message" => {
                let (message, end) = walk_message(text, key.value_at)?;
                fields.message = message;
                members.resume(end);
                continue;
            }
            b"type" => &mut fields.kind,
            b"id" => &mut fields.id,
            b"parentId" => &mut fields.parent_id,
            b"timestamp" => &mut fields.timestamp,
            b"customType" => &mut fields.custom_type,
            b"data" => &mut fields.data,
            b"display" => &mut fields.display,
            b"fromId" => &mut fields.from_id,
            b"merge" => &mut fields.merge,
            b"targetId" => &mut fields.target_id,
            b"label" => &mut fields.label,
            b"name" => &mut fields.name,
            b"tokensBefore" => &mut fields.tokens_before,
            b"firstKeptEntryId" => &mut fields.first_kept_entry_id,
            b"firstKeptEntryIndex" => &mut fields.first_kept_entry_index,
            b"version" => &mut fields.version,
            b"cwd" => &mut fields.cwd,
            b"parentSession" => &mut fields.parent_session,
            b"parentEntryId" => &mut fields.parent_entry_id,
            b"spawnedBy" => &mut fields.spawned_by,
            b"title" => &mut fields.title,
            b"background" => &mut fields.background,
            b"group" => &mut fields.group,
            b"copiedFrom" => &mut fields.copied_from,
            _ => {
                members.value()?;
                continue;
            }
        };
        *field = text.get(members.value()?).unwrap_or_default();
    }
    odd |= passed < FIRST.len();
    Ok((fields.into_line(odd), members.end()))
}

/// The span of the value that follows `before`; `None` if `before` is not at `at`.
#[inline]
fn value_after<const N: usize>(text: &[u8], at: usize, before: &[u8; N]) -> Option<json::Span> {
    let is_there = text.get(at..)?.first_chunk() == Some(before);
    let start = at + N;
    let end = is_there.then(|| json::skip_value(text, start))?.ok()?;
    Some(start..end)
}

impl<'a> RawEntry<'a> {
    /// Reads the first members if they are in the usual form, and returns the end of the last one. `None` for any
    /// other form, whether it is valid or not.
    #[inline]
    fn take_first(&mut self, text: &'a [u8], at: usize) -> Option<usize> {
        let kind = value_after(text, at, b"{\"type\":")?;
        let id = value_after(text, kind.end, b",\"id\":")?;
        let parent_id = value_after(text, id.end, b",\"parentId\":")?;
        let timestamp = value_after(text, parent_id.end, b",\"timestamp\":")?;
        let end = timestamp.end;
        self.kind = text.get(kind)?;
        self.id = text.get(id)?;
        self.parent_id = text.get(parent_id)?;
        self.timestamp = text.get(timestamp)?;
        Some(end)
    }

    fn into_line(self, odd: bool) -> Option<Line<'a>> {
        let kind = json::string(self.kind)?;
        if kind == "session" {
            return Some(Line::Header(HeaderFacts {
                version: version(self.version),
                id: json::id(self.id),
                timestamp: json::string(self.timestamp),
                cwd: json::string(self.cwd),
                parent_session: json::string(self.parent_session),
                parent_entry_id: json::id(self.parent_entry_id),
                spawned_by: SpawnedBy::parse(self.spawned_by),
                title: json::string(self.title),
            }));
        }
        let is_bare = [self.id, self.parent_id, self.timestamp]
            .iter()
            .all(|raw| raw.is_empty());
        if kind == "title" && is_bare {
            return Some(Line::Title(json::string(self.title)));
        }
        let mut kind = Kind::of(&kind);
        if kind == Kind::Custom {
            kind = self.custom_kind();
        }
        Some(Line::Entry(Envelope {
            kind,
            id: json::id(self.id),
            parent: match self.parent_id {
                b"null" => Parent::Null,
                raw => json::id(raw).map_or(Parent::Absent, Parent::Id),
            },
            timestamp: json::string(self.timestamp),
            facts: self.facts(kind),
            background: self.background(kind),
            copied_from: self.copied_from(),
            odd,
        }))
    }

    fn background(&self, kind: Kind) -> Option<Background<'a>> {
        let is_background = self.background == b"true" && kind != Kind::LeafRecord;
        is_background.then(|| Background {
            group: json::string(self.group).filter(|group| !group.is_empty()),
        })
    }

    /// The entry of another session from which this entry was copied. `None` for a copy from another branch of the
    /// same session.
    fn copied_from(&self) -> Option<CopiedFrom<'a>> {
        if !self.copied_from.starts_with(b"{") {
            return None;
        }
        let id = |name: &str| json::get(self.copied_from, name).and_then(json::id);
        Some(CopiedFrom {
            session_id: id("sessionId")?,
            entry_id: id("entryId")?,
        })
    }

    /// The kind of a `custom` entry.
    fn custom_kind(&self) -> Kind {
        match json::string(self.custom_type).as_deref() {
            Some(
                LEAF_RECORD | TRASHED | RESTORED | BRANCH | ARCHIVED | UNARCHIVED | SHED | TAGS
                | GIT,
            ) => Kind::LeafRecord,
            Some("note")
                if json::get(self.data, "targetId")
                    .and_then(json::id)
                    .is_some() =>
            {
                Kind::Note
            }
            _ => Kind::Custom,
        }
    }

    fn facts(&self, kind: Kind) -> Facts<'a> {
        match kind {
            Kind::Message => self.message.facts(),
            Kind::Compaction => Facts::Compaction {
                tokens_before: whole(self.tokens_before),
                first_kept_entry_id: json::id(self.first_kept_entry_id),
                first_kept_entry_index: whole(self.first_kept_entry_index),
            },
            Kind::BranchSummary => Facts::BranchSummary {
                from_id: json::id(self.from_id),
                merge: self.merge == b"true",
            },
            Kind::Label => Facts::Label {
                target_id: json::id(self.target_id),
                label: json::string(self.label).filter(|label| !label.is_empty()),
            },
            Kind::SessionInfo => Facts::SessionInfo {
                name: json::string(self.name).filter(|name| !name.is_empty()),
            },
            Kind::CustomMessage => Facts::CustomMessage {
                display: self.display != b"false",
            },
            Kind::ContextEdit => Facts::ContextEdit {
                target_id: json::id(self.target_id),
            },
            Kind::LeafRecord => self.record_facts(),
            Kind::ThinkingLevelChange
            | Kind::ModelChange
            | Kind::ModeChange
            | Kind::Custom
            | Kind::Note
            | Kind::Usage
            | Kind::Unknown => Facts::None,
        }
    }

    /// The facts of a record. A record is not an entry.
    fn record_facts(&self) -> Facts<'a> {
        let data = |name: &str| json::get(self.data, name);
        let of_branch = |change| Facts::BranchRecord {
            entry_id: data("entryId").and_then(json::id),
            change,
        };
        match json::string(self.custom_type).as_deref() {
            Some(BRANCH) => of_branch(BranchChange::Name(data("name").and_then(json::string))),
            Some(ARCHIVED) => of_branch(BranchChange::Archive),
            Some(UNARCHIVED) => of_branch(BranchChange::Unarchive),
            Some(SHED) => of_branch(BranchChange::Shed),
            Some(TRASHED | RESTORED | TAGS | GIT) => Facts::LeafRecord {
                from: None,
                cause: Some(NO_MOVE.into()),
            },
            _ => Facts::LeafRecord {
                from: data("from").and_then(json::id),
                cause: data("cause").and_then(json::string),
            },
        }
    }
}

/// The raw values of the relevant members of a message, empty if absent.
#[derive(Default)]
struct RawMessage<'a> {
    role: &'a [u8],
    /// Whether the content has text that is not blank.
    has_text: bool,
    has_content: bool,
    tool_name: &'a [u8],
    is_error: &'a [u8],
    stop_reason: &'a [u8],
    exit_code: &'a [u8],
    cancelled: &'a [u8],
    timestamp: &'a [u8],
}

impl<'a> RawMessage<'a> {
    fn facts(&self) -> Facts<'a> {
        let role = json::string(self.role).map_or(Role::None, |name| Role::of(&name));
        let stop_reason = json::string(self.stop_reason);
        let stop_reason = stop_reason.as_deref().unwrap_or_default();
        Facts::Message {
            role,
            // An answer that was cut off at its limit of length is shown too, as in the program that defined the
            // format.
            silent: role == Role::Assistant
                && !self.has_text
                && matches!(stop_reason, "" | "stop" | "toolUse"),
            is_error: match role {
                Role::ToolResult => self.is_error == b"true",
                Role::Assistant => matches!(stop_reason, "error" | "aborted"),
                Role::BashExecution => {
                    self.cancelled == b"true" || number(self.exit_code).is_some_and(|n| n != 0.0)
                }
                _ => false,
            },
            tool_name: if role == Role::ToolResult {
                json::string(self.tool_name)
            } else {
                None
            },
            said: self.said(role),
        }
    }

    fn said(&self, role: Role) -> MessageTime {
        if !self.has_content || !matches!(role, Role::User | Role::Assistant) {
            return MessageTime::Never;
        }
        let text = str::from_utf8(self.timestamp).unwrap_or_default();
        let fraction = || number(self.timestamp).filter(|time| time.abs() < MAX_MILLIS);
        match text.parse().ok().or_else(|| fraction().map(whole_millis)) {
            Some(time) => MessageTime::At(time),
            None => MessageTime::WithEntry,
        }
    }
}

fn walk_message(text: &[u8], at: usize) -> Result<(RawMessage<'_>, usize), Malformed> {
    let mut message = RawMessage::default();
    if text.get(at) != Some(&b'{') {
        return Ok((message, json::skip_value(text, at)?));
    }
    let mut members = Members::open(text, at)?;
    while let Some(key) = members.next_key()? {
        let field = match &*key.name(text) {
            b"content" => {
                let (has_text, end) = walk_content(text, key.value_at)?;
                message.has_text = has_text;
                message.has_content = true;
                members.resume(end);
                continue;
            }
            b"role" => &mut message.role,
            b"toolName" => &mut message.tool_name,
            b"isError" => &mut message.is_error,
            b"stopReason" => &mut message.stop_reason,
            b"exitCode" => &mut message.exit_code,
            b"cancelled" => &mut message.cancelled,
            b"timestamp" => &mut message.timestamp,
            _ => {
                members.value()?;
                continue;
            }
        };
        *field = text.get(members.value()?).unwrap_or_default();
    }
    Ok((message, members.end()))
}

/// Skips a content; returns whether it has text that is not blank.
fn walk_content(text: &[u8], at: usize) -> Result<(bool, usize), Malformed> {
    if text.get(at) != Some(&b'[') {
        let end = json::skip_value(text, at)?;
        let shown = text.get(at..end).unwrap_or_default();
        return Ok((!is_blank(shown), end));
    }
    let mut has_text = false;
    let mut blocks = Elements::open(text, at)?;
    while let Some(block_at) = blocks.next_at()? {
        let (says_something, end) = walk_block(text, block_at)?;
        has_text |= says_something;
        blocks.resume(end);
    }
    Ok((has_text, blocks.end()))
}

/// Skips one block; returns whether it is text that is not blank.
fn walk_block(text: &[u8], at: usize) -> Result<(bool, usize), Malformed> {
    if text.get(at) != Some(&b'{') {
        return Ok((false, json::skip_value(text, at)?));
    }
    let (mut kind, mut shown): (&[u8], &[u8]) = (b"", b"");
    let mut members = Members::open(text, at)?;
    while let Some(key) = members.next_key()? {
        let value = members.value()?;
        match &*key.name(text) {
            b"type" => kind = text.get(value).unwrap_or_default(),
            b"text" => shown = text.get(value).unwrap_or_default(),
            _ => {}
        }
    }
    let is_text = json::string(kind).is_some_and(|kind| kind == "text");
    Ok((is_text && !is_blank(shown), members.end()))
}

/// Whether a value is blank: JavaScript's `trim` leaves nothing of the string, or the value is not a string.
fn is_blank(raw: &[u8]) -> bool {
    json::chars(raw).all(|c| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}')
}

fn number(raw: &[u8]) -> Option<f64> {
    str::from_utf8(raw).ok()?.parse().ok()
}

/// `millis`, which is less than [`MAX_MILLIS`], without its fraction.
#[allow(clippy::cast_possible_truncation)]
fn whole_millis(millis: f64) -> i64 {
    millis as i64
}

/// A whole number in any notation (`7`, `7.0`, `7e0`); `None` for anything else.
fn whole(raw: &[u8]) -> Option<u64> {
    let text = str::from_utf8(raw).ok()?;
    text.parse().ok().or_else(|| {
        let value: f64 = text.parse().ok()?;
        (value >= 0.0 && value.fract() == 0.0).then(|| json::saturated(value))
    })
}

fn version(raw: &[u8]) -> u64 {
    match raw {
        b"" | b"null" => 1,
        raw => whole(raw).unwrap_or(UNREADABLE_VERSION),
    }
}

#[cfg(test)]
mod tests;
