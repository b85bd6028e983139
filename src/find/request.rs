//! One search: the query, and the filters of fields, entries and sessions.

use super::page::Key;
use super::weights::weight;
use std::borrow::Cow;
use std::fmt;
use std::ops::{BitAnd, BitOr, ControlFlow};
use std::sync::Arc;
use treelined_core::entry::{Kind, Role};
use treelined_core::json::{self, Elements};
use treelined_core::search::{
    BranchFilter, FieldKind, Matcher, Query, decoded, each_field_with_kind,
};
use treelined_core::timestamp::Millis;

/// Says whether the sessions of a directory are searched. The directory is written as in the header of a session.
#[derive(Clone)]
pub struct DirectoryTest(pub Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl fmt::Debug for DirectoryTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryTest").finish_non_exhaustive()
    }
}

/// A directory to which a search is limited.
#[derive(Debug, Clone)]
pub struct WantedDirectory {
    /// The path of the request, normalized.
    pub written: String,
    /// Whether a session's directory is this one or below it.
    pub has: DirectoryTest,
}

/// A search.
#[derive(Debug)]
pub struct SearchRequest {
    pub query: Query,
    /// An entry is left out if one of its fields has a part of this query. Its label does not count.
    pub without: Option<Query>,
    /// The fields that are searched.
    pub fields: FieldSet,
    /// Only sessions that are in this directory or below it.
    pub directory: Option<WantedDirectory>,
    /// The directory and the filter of entries that the text of the query names. The filter is also in `entries`. A
    /// person has typed them and may have made a mistake, so the answer lists the values that no session or entry has.
    pub named_directory: Option<WantedDirectory>,
    pub named_entries: EntryFilter,
    /// Only sessions whose directory passes this test.
    pub within: Option<DirectoryTest>,
    /// Only sessions with this tag.
    pub tag: Option<String>,
    /// Only sessions on the git branch with this name.
    pub git: Option<String>,
    /// Only the session with this id.
    pub session: Option<String>,
    /// An entry must pass each of these filters.
    pub entries: Vec<EntryFilter>,
    /// Only entries of this time or later.
    pub since: Option<Millis>,
    /// Only entries before this time.
    pub until: Option<Millis>,
    pub branches: BranchFilter,
    /// Whether a hit says why its branch was left.
    pub explains: bool,
    /// Whether archived branches are searched.
    pub archived: bool,
    /// The most hits of a page.
    pub limit: usize,
    /// The last hit of the previous page.
    pub after: Option<Key>,
}

/// A filter of entries by the content of their lines. In names of tools, programs and types, upper and lower case of
/// ASCII letters count as the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// The tool that the entry calls, or whose result it is.
    pub tool: Option<String>,
    /// The program from which the entry was imported.
    pub source: Option<String>,
    /// The role of the message.
    pub role: Option<String>,
    /// The type of the entry, or its custom type.
    pub entry_type: Option<String>,
}

/// A set of kinds of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSet(u8);

impl FieldSet {
    pub const ALL: Self = Self(u8::MAX);

    pub fn of(kinds: impl IntoIterator<Item = FieldKind>) -> Self {
        let bits = kinds.into_iter().map(|kind| 1 << kind as u8);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set has at least one of these kinds. `bits` has one bit for each kind.
    pub(crate) fn has_any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    pub(crate) fn has(self, kind: FieldKind) -> bool {
        self.0 >> (kind as u8) & 1 == 1
    }
}

impl BitAnd for FieldSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl SearchRequest {
    /// Whether sessions of some directories are not searched.
    pub(super) fn leaves_directories_out(&self) -> bool {
        self.within.is_some() || self.wanted_directories().next().is_some()
    }

    /// The directories of the params and of the text of the query. A session must be in each of them.
    pub fn wanted_directories(&self) -> impl Iterator<Item = &WantedDirectory> {
        self.directory.iter().chain(&self.named_directory)
    }

    /// Whether sessions of this directory are searched.
    pub(super) fn takes_directory(&self, cwd: &str) -> bool {
        let named = self.named_directory.as_ref();
        self.takes_directory_but_named(cwd) && named.is_none_or(|named| (named.has.0)(cwd))
    }

    /// Like `takes_directory`, without the directory that the text of the query names.
    pub(super) fn takes_directory_but_named(&self, cwd: &str) -> bool {
        let mut tests = self
            .directory
            .iter()
            .map(|wanted| &wanted.has)
            .chain(&self.within);
        tests.all(|test| (test.0)(cwd))
    }

    /// The scores of the fields that are searched.
    pub(super) fn scores(&self) -> ScoreSet {
        const KINDS: [FieldKind; 6] = [
            FieldKind::Text,
            FieldKind::Thinking,
            FieldKind::ToolCalls,
            FieldKind::ToolResults,
            FieldKind::Labels,
            FieldKind::Summaries,
        ];
        let searched = KINDS.into_iter().filter(|kind| self.fields.has(*kind));
        searched.fold(ScoreSet::default(), |scores, kind| {
            let roles = [Role::User, Role::Assistant, Role::None];
            let of_roles = roles.map(|role| ScoreSet::of(weight(kind, role)));
            of_roles.into_iter().fold(scores, ScoreSet::bitor)
        })
    }

    /// Whether the entry of this line passes each filter of entries.
    pub(super) fn takes_entry(&self, line: &[u8], kind: Kind) -> bool {
        self.entries.iter().all(|filter| filter.takes(line, kind))
    }

    pub(super) fn takes_time(&self, at: Millis) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

impl EntryFilter {
    /// The name of each filter that is set, with its value.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self {
            tool,
            source,
            role,
            entry_type,
        } = self;
        let all = [
            ("tool", tool),
            ("source", source),
            ("role", role),
            ("type", entry_type),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    fn takes(&self, line: &[u8], kind: Kind) -> bool {
        let is_message = kind == Kind::Message;
        let own_role = || json::get_path(line, &["message", "role"]).and_then(json::string);
        let has_role = |role: &String| is_message && own_role().as_deref() == Some(role);
        let is_from = |source: &String| has_name(line, &["origin", "tool"], source);
        let calls = |tool: &str| called_tools(line, |called| called.eq_ignore_ascii_case(tool));
        let uses = |tool: &String| {
            is_message && (has_name(line, &["message", "toolName"], tool) || calls(tool))
        };
        let is_of = |wanted: &String| {
            has_name(line, &["type"], wanted) || has_name(line, &["customType"], wanted)
        };
        self.role.as_ref().is_none_or(has_role)
            && self.source.as_ref().is_none_or(is_from)
            && self.tool.as_ref().is_none_or(uses)
            && self.entry_type.as_ref().is_none_or(is_of)
    }
}

fn has_name(json: &[u8], path: &[&str], wanted: &str) -> bool {
    let value = json::get_path(json, path).and_then(json::string);
    value.is_some_and(|value| value.eq_ignore_ascii_case(wanted))
}

/// Calls `is_meant` with the name of each tool that a message calls, until `is_meant` returns true. Returns whether it
/// has returned true.
pub(super) fn called_tools(line: &[u8], mut is_meant: impl FnMut(&str) -> bool) -> bool {
    let content = json::get_path(line, &["message", "content"]).unwrap_or_default();
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return false;
    };
    while let Ok(Some(span)) = blocks.next_value() {
        let block = content.get(span).unwrap_or_default();
        let name = || json::get(block, "name").and_then(json::string);
        if has_name(block, &["type"], "toolCall") && name().is_some_and(|name| is_meant(&name)) {
            return true;
        }
    }
    false
}

/// The field of an entry that shows a match best.
#[derive(Debug, Clone, Copy)]
pub(super) struct BestField<'l> {
    pub kind: FieldKind,
    pub score: u8,
    stored: StoredText<'l>,
    /// The number of needles in the field.
    found: u32,
}

#[derive(Debug, Clone, Copy)]
enum StoredText<'l> {
    Plain(&'l str),
    Json(&'l [u8]),
}

impl<'l> BestField<'l> {
    pub(super) fn text(&self) -> Cow<'l, str> {
        match self.stored {
            StoredText::Plain(text) => Cow::Borrowed(text),
            StoredText::Json(raw) => decoded(raw),
        }
    }
}

/// Tests entries against a request.
pub(super) struct EntryTest<'r> {
    request: &'r SearchRequest,
    matcher: Matcher<'r>,
    without: Option<Matcher<'r>>,
}

impl<'r> EntryTest<'r> {
    pub(super) fn new(request: &'r SearchRequest) -> Self {
        Self {
            request,
            matcher: Matcher::new(&request.query),
            without: request.without.as_ref().map(Matcher::new),
        }
    }

    /// Whether a label has any part of the query.
    pub(super) fn touches_label(&mut self, label: &str) -> bool {
        self.request.fields.has(FieldKind::Labels) && self.found_in(label) != 0
    }

    /// Whether labels are searched, and one part of the query may be in an entry and another part in its label.
    pub(super) fn needs_labels(&self) -> bool {
        self.request.fields.has(FieldKind::Labels) && self.request.query.all() > 1
    }

    /// Whether this line may have any part of the query.
    pub(super) fn may_touch(&mut self, line: &[u8]) -> bool {
        self.matcher.begin(0);
        self.matcher.may_add(line)
    }

    /// The needles that are in a text, one bit for each needle.
    fn found_in(&mut self, text: &str) -> u64 {
        self.matcher.begin(0);
        let _seen = self.matcher.see(text);
        self.matcher.found()
    }

    /// The field of an entry that has the most needles of the query. If there are several such fields, the field with
    /// the highest weight is returned. `None` if the entry does not match the query and the filters of entries. `label`
    /// is the current label of the entry.
    pub(super) fn best_field<'l>(
        &mut self,
        line: &'l [u8],
        kind: Kind,
        role: Role,
        label: Option<&'l str>,
    ) -> Option<BestField<'l>> {
        let mut found = 0;
        let mut best: Option<BestField<'l>> = None;
        let (all, most) = (self.request.query.all(), highest_weight(kind, role));
        let mut see = |kind, bits: u64, stored| {
            found |= bits;
            let field = BestField {
                kind,
                score: weight(kind, role),
                stored,
                found: bits.count_ones(),
            };
            let rank = |field: &BestField<'_>| (field.found, field.score);
            if bits != 0 && best.as_ref().is_none_or(|best| rank(best) < rank(&field)) {
                best = Some(field);
            }
            // No other field can be better.
            match bits == all && field.score >= most {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let fields = self.request.fields;
        let seen = match label.filter(|_| fields.has(FieldKind::Labels)) {
            Some(label) => see(
                FieldKind::Labels,
                self.found_in(label),
                StoredText::Plain(label),
            ),
            None => ControlFlow::Continue(()),
        };
        if seen.is_continue() {
            let matcher = &mut self.matcher;
            each_field_with_kind(line, kind, role, |kind, raw| {
                if !fields.has(kind) {
                    return ControlFlow::Continue(());
                }
                matcher.begin(0);
                let _seen = matcher.see_raw(raw);
                see(kind, matcher.found(), StoredText::Json(raw))
            });
        }
        let takes = found == all && self.request.takes_entry(line, kind);
        best.filter(|_| takes && !self.is_left_out(line, kind, role))
    }

    /// Whether a field of the entry has a part of the query `without`. The label of the entry does not count.
    pub(super) fn is_left_out(&mut self, line: &[u8], kind: Kind, role: Role) -> bool {
        let Some(matcher) = &mut self.without else {
            return false;
        };
        matcher.begin(0);
        if !matcher.may_add(line) {
            return false;
        }
        each_field_with_kind(line, kind, role, |_, raw| {
            let _seen = matcher.see_raw(raw);
            match matcher.is_touched() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        matcher.is_touched()
    }
}

/// The highest score that a field of such an entry can have. The label of the entry does not count.
fn highest_weight(kind: Kind, role: Role) -> u8 {
    match kind {
        Kind::Message => weight(FieldKind::Text, role),
        Kind::Label | Kind::SessionInfo => weight(FieldKind::Labels, role),
        _ => weight(FieldKind::Summaries, role),
    }
}

/// A set of scores of fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ScoreSet(u8);

impl ScoreSet {
    /// The number of different scores. The lowest score is 1.
    pub(super) const BITS: u32 = 5;
    pub(super) const ALL: Self = Self((1 << Self::BITS) - 1);
    /// The score of labels and names.
    pub(super) const LABELS: Self = Self(1 << 4);

    pub(super) fn of(score: u8) -> Self {
        Self(1 << score.saturating_sub(1)) & Self::ALL
    }

    pub(super) fn of_bits(bits: u8) -> Self {
        Self(bits) & Self::ALL
    }

    pub(super) fn bits(self) -> u8 {
        self.0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scores in the set, the highest first.
    pub(super) fn descending(self) -> impl Iterator<Item = u8> {
        (1..=5)
            .rev()
            .filter(move |score| !(self & Self::of(*score)).is_empty())
    }
}

impl BitAnd for ScoreSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for ScoreSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
