//! One search: the query, and the filters of fields, entries and sessions.

use super::branch::BranchFilter;
use super::page::Key;
use crate::entry::{Kind, Role};
use crate::json::{self, Elements};
use crate::name;
use crate::search::{FieldKind, Matcher, Query, decoded, each_field_with_kind};
use crate::timestamp::Millis;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// A search.
#[derive(Debug)]
pub(crate) struct SearchRequest {
    pub query: Query,
    /// The fields that are searched.
    pub fields: FieldSet,
    /// Only sessions of this directory and of those below it; normalized.
    pub cwd: Option<String>,
    pub entries: EntryFilter,
    /// Only entries of this time or later.
    pub since: Option<Millis>,
    /// Only entries before this time.
    pub until: Option<Millis>,
    pub branches: BranchFilter,
    /// The most hits of a page.
    pub limit: usize,
    /// The last hit of the page before.
    pub after: Option<Key>,
}

/// The filter of entries by their lines.
#[derive(Debug, Default)]
pub(crate) struct EntryFilter {
    /// The tool that the entry calls, or whose result it is.
    pub tool: Option<String>,
    /// The program from which the entry was imported.
    pub source: Option<String>,
    /// The role of the message.
    pub role: Option<String>,
}

/// A set of kinds of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldSet(u8);

impl FieldSet {
    pub(crate) const ALL: Self = Self(u8::MAX);

    pub(crate) fn of(kinds: impl IntoIterator<Item = FieldKind>) -> Self {
        let bits = kinds.into_iter().map(|kind| 1 << kind as u8);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    pub(crate) fn has(self, kind: FieldKind) -> bool {
        self.0 >> (kind as u8) & 1 == 1
    }
}

impl SearchRequest {
    /// Whether sessions of this directory are searched.
    pub(super) fn takes_directory(&self, cwd: &str) -> bool {
        let Some(wanted) = self.cwd.as_deref() else {
            return true;
        };
        let cwd = name::directory(cwd);
        let below = cwd.strip_prefix(wanted);
        below.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || wanted.ends_with('/') || wanted.is_empty()
        })
    }

    pub(super) fn takes_time(&self, at: Millis) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

impl EntryFilter {
    fn takes(&self, line: &[u8], kind: Kind) -> bool {
        let is = |path: &[&str], wanted: &str| {
            let value = json::get_path(line, path).and_then(json::string);
            value.is_some_and(|value| value == wanted)
        };
        let is_message = kind == Kind::Message;
        let has_role = |role: &String| is_message && is(&["message", "role"], role);
        let is_from = |source: &String| is(&["origin", "tool"], source);
        let uses =
            |tool: &String| is_message && (is(&["message", "toolName"], tool) || calls(line, tool));
        self.role.as_ref().is_none_or(has_role)
            && self.source.as_ref().is_none_or(is_from)
            && self.tool.as_ref().is_none_or(uses)
    }
}

/// Whether a message calls this tool.
fn calls(line: &[u8], tool: &str) -> bool {
    let content = json::get_path(line, &["message", "content"]).unwrap_or_default();
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return false;
    };
    while let Ok(Some(span)) = blocks.next() {
        let block = content.get(span).unwrap_or_default();
        let is = |name: &str, wanted: &str| {
            let value = json::get(block, name).and_then(json::string);
            value.is_some_and(|value| value == wanted)
        };
        if is("type", "toolCall") && is("name", tool) {
            return true;
        }
    }
    false
}

/// The field of an entry that shows a match best.
#[derive(Debug)]
pub(super) struct BestField {
    pub kind: FieldKind,
    pub score: u8,
    pub text: String,
}

/// Tests entries against a request.
pub(super) struct EntryTest<'r> {
    request: &'r SearchRequest,
    pub matcher: Matcher<'r>,
    folded: Vec<u8>,
}

impl<'r> EntryTest<'r> {
    pub(super) fn new(request: &'r SearchRequest) -> Self {
        Self {
            request,
            matcher: Matcher::new(&request.query),
            folded: Vec::new(),
        }
    }

    /// Whether a label has any part of the query.
    pub(super) fn touches_label(&mut self, label: &str) -> bool {
        self.matcher.begin(0);
        let _seen = self.see_label(Some(label));
        self.matcher.is_touched()
    }

    fn see_label(&mut self, label: Option<&str>) -> ControlFlow<()> {
        match label.filter(|_| self.request.fields.has(FieldKind::Labels)) {
            Some(label) => self.matcher.see(label),
            None => ControlFlow::Continue(()),
        }
    }

    /// Whether an entry matches the query and the filter of entries. `label` is its current label.
    pub(super) fn is_match(
        &mut self,
        line: &[u8],
        kind: Kind,
        role: Role,
        label: Option<&str>,
    ) -> bool {
        self.matcher.begin(0);
        if self.see_label(label).is_continue() {
            let (fields, matcher) = (self.request.fields, &mut self.matcher);
            each_field_with_kind(line, kind, role, |kind, raw| match fields.has(kind) {
                true => matcher.see_raw(raw),
                false => ControlFlow::Continue(()),
            });
        }
        self.matcher.is_match() && self.request.entries.takes(line, kind)
    }

    /// The field of a matching entry with most of the query; of several, the one with the highest weight.
    pub(super) fn best_field(
        &mut self,
        line: &[u8],
        kind: Kind,
        role: Role,
        label: Option<&str>,
    ) -> Option<BestField> {
        let mut best: Option<(u32, BestField)> = None;
        let (request, folded) = (self.request, &mut self.folded);
        let mut see = |kind: FieldKind, text: Cow<'_, str>| {
            let found = request.query.found_in(&text, 0, folded).count_ones();
            let score = weight(kind, role);
            let is_better = |best: &(u32, BestField)| (best.0, best.1.score) < (found, score);
            if found > 0 && best.as_ref().is_none_or(is_better) {
                let text = text.into_owned();
                best = Some((found, BestField { kind, score, text }));
            }
        };
        if let Some(label) = label.filter(|_| request.fields.has(FieldKind::Labels)) {
            see(FieldKind::Labels, Cow::Borrowed(label));
        }
        each_field_with_kind(line, kind, role, |kind, raw| {
            if request.fields.has(kind) {
                see(kind, decoded(raw));
            }
            ControlFlow::Continue(())
        });
        best.map(|(_, best)| best)
    }
}

/// The score of a match in a field (protocol.md §3.16).
fn weight(kind: FieldKind, role: Role) -> u8 {
    match (kind, role) {
        (FieldKind::Labels, _) => 5,
        (FieldKind::Text, Role::User) => 4,
        (FieldKind::Text, Role::Assistant) => 3,
        (FieldKind::ToolResults, _) => 1,
        _ => 2,
    }
}
