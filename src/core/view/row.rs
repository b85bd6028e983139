//! Flat rows of the answer (protocol.md §6), written directly as JSON.

use super::call::{ToldCall, relative};
use super::facts::{RowFacts, ToolCall};
use super::left::FoldedRow;
use super::prefix::{self, Guides, Render};
use super::snapshot::{Entry, Snapshot};
use super::visible::Visible;
use super::visible_row::Row;
use crate::entry::{Kind, Role};
use crate::json::push_string;
use crate::search::Excerpt;
use crate::timestamp;
use crate::tree::Flags;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// A row, with the facts from the tree that it needs.
#[derive(Debug, Clone)]
pub struct ServedRow<'a> {
    pub row: &'a Row,
    pub entry: Entry<'a>,
    /// The nearest visible ancestor.
    pub parent_id: Option<&'a str>,
    /// Present if the row stands for branches that the leaf has left.
    pub folded: Option<&'a FoldedRow>,
    opened: Opened<'a>,
}

/// The ids of the request that keep a row open. Without these ids the row would be folded.
#[derive(Debug, Clone, Default)]
struct Opened<'a> {
    expand: Vec<&'a str>,
    each: Vec<&'a str>,
}

/// The style of a row, by its meaning. Clients choose the colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RowStyle {
    Accent,
    Success,
    Warning,
    Error,
    Dim,
}

impl RowStyle {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accent => "accent",
            Self::Success => "success",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Dim => "dim",
        }
    }
}

/// The look that a renderer gives to a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowLook {
    /// The text that replaces the preview.
    pub preview: Option<String>,
    pub icon: Option<String>,
    pub style: Option<RowStyle>,
}

/// The data of a row that do not come from the tree.
#[derive(Debug, Clone, Copy)]
pub struct RowParts<'a> {
    pub facts: &'a RowFacts<'a>,
    pub look: &'a RowLook,
    /// The call that a tool result answers.
    pub call: Option<&'a ToolCall<'a>>,
    /// The excerpt that matches the query.
    pub found: Option<&'a Excerpt>,
    /// The working directory of the session. Paths inside this directory are shown relative to it.
    pub cwd: &'a str,
}

impl<'a> RowParts<'a> {
    /// The parts of a row without a call and without a match.
    pub fn plain(facts: &'a RowFacts<'a>, look: &'a RowLook, cwd: &'a str) -> Self {
        Self {
            facts,
            look,
            call: None,
            found: None,
            cwd,
        }
    }

    /// The call that the tool result itself names, if no other call is given.
    fn own_call(&self) -> Option<ToolCall<'a>> {
        match self.call {
            Some(_) => None,
            None => self.facts.own_call(),
        }
    }

    /// The preview of an entry other than a tool result.
    fn preview(&self, entry: &Entry<'_>) -> Cow<'a, str> {
        match &self.look.preview {
            Some(preview) => Cow::Borrowed(preview),
            // The entry has tool calls and nothing else.
            None if entry.flags.has(Flags::SILENT) => relative(&self.facts.preview, self.cwd),
            None => Cow::Borrowed(&self.facts.preview),
        }
    }

    /// The row's style.
    fn style(&self) -> Option<RowStyle> {
        match self.facts.is_aside && self.look.preview.is_none() {
            true => Some(RowStyle::Dim),
            false => self.look.style,
        }
    }
}

impl Visible {
    /// The rows of a page. `snapshot` must contain [`Visible::items_of`] the page; rows that it does not contain are
    /// left out.
    pub fn served<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        range: Range<usize>,
    ) -> impl Iterator<Item = ServedRow<'a>> + 'a {
        let first = range.start;
        let rows = self.rows().get(range).unwrap_or_default();
        let ids = |items: &[u32]| {
            let items = items.iter().map(|item| *item as usize);
            items.filter_map(|item| snapshot.id(item)).collect()
        };
        rows.iter().enumerate().filter_map(move |(at, row)| {
            let parent = self.parent_item(row);
            let (at, left) = (first + at, self.left());
            Some(ServedRow {
                row,
                entry: snapshot.entry(row.item())?,
                parent_id: parent.and_then(|item| snapshot.id(item)),
                folded: left.folded(at),
                opened: Opened {
                    expand: ids(left.expand(at)),
                    each: ids(left.each(at)),
                },
            })
        })
    }

    /// Appends the array `rootIds`.
    pub fn push_root_ids(&self, out: &mut Vec<u8>, snapshot: &Snapshot) {
        push_array(out, self.roots().filter_map(|item| snapshot.id(item)));
    }
}

impl ServedRow<'_> {
    /// Appends the row as one JSON object, with its members in the order of protocol.md §6.
    pub fn push_json(&self, out: &mut Vec<u8>, parts: RowParts<'_>, guides: Option<Guides>) {
        let own = parts.own_call();
        let call = parts.call.or(own.as_ref());
        let told = call.map(|call| call.told(parts.cwd)).unwrap_or_default();
        let call = call.map(|call| ToldCall { call, told: &told });
        self.push_ids(out);
        let render = guides.map(|guides| guides.render);
        self.push_said(out, parts, call, render);
        self.push_place(out);
        self.push_tool(out, parts, call);
        self.push_guides(out, guides);
        self.push_flags(out);
        out.push(b'}');
    }

    /// Appends a row that stands for branches, with `preview` as the line to show.
    pub fn push_folded(
        &self,
        out: &mut Vec<u8>,
        facts: &RowFacts<'_>,
        preview: &str,
        guides: Option<Guides>,
    ) {
        self.push_ids(out);
        self.push_kind(out, facts);
        out.extend_from_slice(b",\"preview\":");
        push_string(out, preview);
        self.push_times(out, facts);
        self.push_place(out);
        self.push_guides(out, guides);
        out.push(b'}');
    }

    /// Whether a folded row needs facts of its entry's body: a type, a role or a form of timestamp that this program
    /// does not write.
    pub fn is_odd(&self) -> bool {
        let entry = &self.entry;
        let has_odd_role = entry.kind == Kind::Message && entry.role.name().is_none();
        let has_odd_time = entry.timestamp.is_none() || entry.flags.has(Flags::ODD_TIMESTAMP);
        entry.kind.name().is_none() || has_odd_role || has_odd_time
    }

    fn push_ids(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        push_string(out, self.entry.id);
        out.extend_from_slice(b",\"parentId\":");
        match self.parent_id {
            Some(id) => push_string(out, id),
            None => out.extend_from_slice(b"null"),
        }
    }

    /// Appends the members from `childCount` to `archived`.
    fn push_place(&self, out: &mut Vec<u8>) {
        let row = self.row;
        out.extend_from_slice(b",\"childCount\":");
        push_number(out, u64::from(row.child_count));
        out.extend_from_slice(b",\"depth\":");
        push_number(out, u64::from(row.depth));
        out.extend_from_slice(b",\"indent\":");
        push_number(out, u64::from(row.indent));
        out.extend_from_slice(b",\"onActivePath\":");
        push_bool(out, row.on_active_path);
        out.extend_from_slice(b",\"isLeaf\":");
        push_bool(out, row.is_leaf);
        out.extend_from_slice(b",\"isBranchPoint\":");
        push_bool(out, row.is_branch_point());
        if row.is_archived {
            out.extend_from_slice(b",\"archived\":true");
        }
    }

    /// Appends the members from `prefix` to `opened`.
    fn push_guides(&self, out: &mut Vec<u8>, guides: Option<Guides>) {
        if let Some(guides) = guides {
            out.extend_from_slice(b",\"prefix\":\"");
            prefix::push(out, self.row, guides);
            out.push(b'"');
        }
        if let Some(folded) = self.folded {
            out.extend_from_slice(b",\"folded\":{\"branches\":");
            push_number(out, u64::from(folded.branches));
            out.extend_from_slice(b",\"entries\":");
            push_number(out, u64::from(folded.entries));
            out.push(b'}');
        }
        let Opened { expand, each } = &self.opened;
        if expand.is_empty() && each.is_empty() {
            return;
        }
        let lists = [("expand", expand), ("each", each)];
        let mut open = "{";
        out.extend_from_slice(b",\"opened\":");
        for (name, ids) in lists.into_iter().filter(|(_, ids)| !ids.is_empty()) {
            out.extend_from_slice(format!("{open}\"{name}\":").as_bytes());
            push_array(out, ids.iter().copied());
            open = ",";
        }
        out.push(b'}');
    }

    /// Appends the row as one JSON object without the members that depend on the filter, for a file that has several
    /// views of one tree. `parent` is the number of the parent's row. `body` is the number of the part of the file that
    /// has the blocks of the entry.
    pub fn push_packed(
        &self,
        out: &mut Vec<u8>,
        parts: RowParts<'_>,
        parent: Option<usize>,
        body: usize,
    ) {
        let own = parts.own_call();
        let call = parts.call.or(own.as_ref());
        let told = call.map(|call| call.told(parts.cwd)).unwrap_or_default();
        let call = call.map(|call| ToldCall { call, told: &told });
        out.extend_from_slice(b"{\"id\":");
        push_string(out, self.entry.id);
        out.extend_from_slice(b",\"parent\":");
        match parent {
            Some(parent) => push_number(out, parent as u64),
            None => out.extend_from_slice(b"-1"),
        }
        out.extend_from_slice(b",\"body\":");
        push_number(out, body as u64);
        self.push_said(out, parts, call, Some(Render::Unicode));
        if self.row.on_active_path {
            out.extend_from_slice(b",\"onActivePath\":true");
        }
        if self.row.is_leaf {
            out.extend_from_slice(b",\"isLeaf\":true");
        }
        self.push_tool(out, parts, call);
        self.push_flags(out);
        out.push(b'}');
    }

    /// Appends the members from `type` to `labelTimestamp`.
    fn push_said(
        &self,
        out: &mut Vec<u8>,
        parts: RowParts<'_>,
        call: Option<ToldCall<'_>>,
        render: Option<Render>,
    ) {
        let (entry, RowParts { facts, look, .. }) = (&self.entry, parts);
        self.push_kind(out, facts);
        out.extend_from_slice(b",\"preview\":");
        if entry.role == Role::ToolResult {
            let is_error = entry.flags.has(Flags::ERROR);
            push_string(
                out,
                &facts.preview_of_told(call, is_error, render, parts.cwd),
            );
        } else {
            push_string(out, &parts.preview(entry));
        }
        push_look(out, look.icon.as_deref(), parts.style());
        self.push_times(out, facts);
    }

    fn push_kind(&self, out: &mut Vec<u8>, facts: &RowFacts<'_>) {
        let entry = &self.entry;
        out.extend_from_slice(b",\"type\":");
        match entry.kind.name() {
            Some(name) => push_name(out, name),
            None => push_string(out, facts.kind.as_deref().unwrap_or_default()),
        }
        if let Some(name) = entry.role.name() {
            out.extend_from_slice(b",\"role\":");
            push_name(out, name);
        } else if let Some(role) = &facts.role {
            out.extend_from_slice(b",\"role\":");
            push_string(out, role);
        }
    }

    /// Appends the members from `timestamp` to `labelTimestamp`.
    fn push_times(&self, out: &mut Vec<u8>, facts: &RowFacts<'_>) {
        let entry = &self.entry;
        out.extend_from_slice(b",\"timestamp\":");
        match entry.timestamp {
            Some(at) if !entry.flags.has(Flags::ODD_TIMESTAMP) => push_timestamp(out, at),
            _ => push_string(out, facts.timestamp.as_deref().unwrap_or_default()),
        }
        push_label(out, entry);
    }

    /// Appends the members from `tokens` to `isError`.
    fn push_tool(&self, out: &mut Vec<u8>, parts: RowParts<'_>, call: Option<ToldCall<'_>>) {
        let RowParts { facts, found, .. } = parts;
        if let Some(tokens) = facts.tokens {
            out.extend_from_slice(b",\"tokens\":");
            push_number(out, tokens);
        }
        if let Some(tool_name) = &facts.tool_name {
            out.extend_from_slice(b",\"toolName\":");
            push_string(out, tool_name);
        }
        if let Some(call) = call {
            push_call(out, call);
        }
        if let Some(found) = found {
            push_match(out, found);
        }
        if self.entry.flags.has(Flags::ERROR) {
            out.extend_from_slice(b",\"isError\":true");
        }
    }

    fn push_flags(&self, out: &mut Vec<u8>) {
        if self.entry.flags.names().next().is_some() {
            out.extend_from_slice(b",\"flags\":");
            push_array(out, self.entry.flags.names());
        }
    }
}

/// Appends `,"icon":…,"style":…` as far as the row has them.
fn push_look(out: &mut Vec<u8>, icon: Option<&str>, style: Option<RowStyle>) {
    if let Some(icon) = icon {
        out.extend_from_slice(b",\"icon\":");
        push_string(out, icon);
    }
    if let Some(style) = style {
        out.extend_from_slice(b",\"style\":");
        push_string(out, style.name());
    }
}

/// Appends `,"toolCall":{"name":…,"summary":…}`; an empty summary is left out.
fn push_call(out: &mut Vec<u8>, ToldCall { call, told }: ToldCall<'_>) {
    out.extend_from_slice(b",\"toolCall\":{\"name\":");
    push_string(out, &call.name);
    if !told.is_empty() {
        out.extend_from_slice(b",\"summary\":");
        push_string(out, told);
    }
    out.push(b'}');
}

/// Appends `,"match":{"snippet":…,"ranges":[[start,end],…]}`.
fn push_match(out: &mut Vec<u8>, found: &Excerpt) {
    out.extend_from_slice(b",\"match\":{\"snippet\":");
    push_string(out, &found.text);
    out.extend_from_slice(b",\"ranges\":[");
    for (at, range) in found.ranges.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
        push_number(out, range.start as u64);
        out.push(b',');
        push_number(out, range.end as u64);
        out.push(b']');
    }
    out.extend_from_slice(b"]}");
}

/// Appends `,"label":…,"labelTimestamp":…` if the entry has them.
pub(super) fn push_label(out: &mut Vec<u8>, entry: &Entry<'_>) {
    if let Some(label) = entry.label {
        out.extend_from_slice(b",\"label\":");
        push_string(out, label);
        if let Some(at) = entry.label_timestamp {
            out.extend_from_slice(b",\"labelTimestamp\":");
            push_timestamp(out, at);
        }
    }
}

fn push_timestamp(out: &mut Vec<u8>, at: timestamp::Millis) {
    out.push(b'"');
    timestamp::push(out, at);
    out.push(b'"');
}

fn push_array<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_string(out, text);
    }
    out.push(b']');
}

/// Appends a name of this program. It has no character that needs an escape.
fn push_name(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

fn push_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends a number as JSON.
pub fn push_number(out: &mut Vec<u8>, number: u64) {
    let mut power = 1;
    while number / power >= 10 {
        power *= 10;
    }
    while power > 0 {
        // A decimal digit.
        out.push(b'0' + (number / power % 10) as u8);
        power /= 10;
    }
}
