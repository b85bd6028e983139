//! Finds the entries of a session that match the `query` of `get_tree`.
//!
//! The results are kept for the next view with the same query. Since entries are only appended, the next view reads
//! only the new entries.

use super::rows::RowReader;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::search::{BestField, Excerpt, Matcher, Query, row_words};
use treelined_core::tree::{FilePlace, Node};
use treelined_core::view::{Entry, Outline, Snapshot, ToolCall};
use treelined_files::log::body::Bodies;
use treelined_files::parallel::{CHUNK, in_order};

/// The results of one query for the entries of a session.
#[derive(Default)]
pub(crate) struct QueryResults {
    tested: Bits,
    /// Whether the entry's own text matches the whole query.
    matched: Bits,
    /// Whether the text matches a part of the query. Set for assistant messages only.
    touched: Bits,
}

/// One bit for each entry, by its number.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn get(&self, node: Node) -> bool {
        let word = self.0.get(node.number() / 64).copied().unwrap_or_default();
        word >> (node.number() % 64) & 1 == 1
    }

    fn set(&mut self, node: Node) {
        let at = node.number() / 64;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        if let Some(word) = self.0.get_mut(at) {
            *word |= 1 << (node.number() % 64);
        }
    }
}

/// An entry whose text must be searched.
#[derive(Clone, Copy)]
struct SearchTarget {
    place: FilePlace,
    node: Node,
    kind: Kind,
    role: Role,
}

/// Returns for each item whether the query matches it. Searches only the items that the filter keeps.
pub(crate) fn matches(
    bodies: &Bodies,
    outline: &Outline,
    snapshot: &Snapshot,
    query: &Query,
    known: &mut QueryResults,
) -> Result<Vec<bool>> {
    let words = RowWords::of(query);
    learn(
        bodies,
        untested(outline, snapshot, known),
        query,
        &words,
        known,
    )?;
    let mut matched = vec![false; outline.items().len()];
    let mut open = Vec::new();
    for item in outline.kept() {
        let Some(entry) = snapshot.entry(item) else {
            continue;
        };
        let caller = || outline.callers(item).next();
        let is_found = known.matched.get(entry.node);
        // The label may match the rest of the query. In the row of a tool result, the call may match the rest too.
        let may_be = entry.label.is_some()
            || (entry.role == Role::ToolResult
                && caller().is_some_and(|caller| known.touched.get(caller.node)));
        if let Some(matched) = matched.get_mut(item) {
            *matched = is_found;
        }
        if !is_found && may_be {
            open.push(item);
        }
    }
    open.sort_unstable_by_key(|item| snapshot.entry(*item).map(|entry| entry.place));
    let found = |range: Range<usize>| -> Result<Vec<usize>> {
        let mut reader = RowReader::new(bodies);
        let mut matcher = Matcher::new(query);
        let mut found = Vec::new();
        for item in open.get(range).unwrap_or_default() {
            let Some(entry) = snapshot.entry(*item) else {
                continue;
            };
            matcher.begin(words.found(entry.kind, entry.role));
            let shown = shown_beside(&mut reader, &entry, outline, *item)?;
            for text in shown.iter().map(|text| &**text).chain(entry.label) {
                let _seen = matcher.see(text);
            }
            matcher.see_line(reader.line(entry.place)?, entry.kind);
            if matcher.is_match() {
                found.push(*item);
            }
        }
        Ok(found)
    };
    in_order(0..open.len(), CHUNK, found, |found| {
        for item in found {
            if let Some(matched) = matched.get_mut(item) {
                *matched = true;
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(matched)
}

/// An excerpt of a matching entry, around the match.
pub(crate) fn excerpt(
    reader: &mut RowReader<'_>,
    query: &Query,
    entry: &Entry<'_>,
    call: Option<&ToolCall<'_>>,
) -> Result<Option<Excerpt>> {
    let mut best = BestField::new(query);
    let line = reader.line(entry.place)?;
    let mut seen = best.see_line(line, entry.kind);
    let kind = own_kind(line, entry.kind);
    let role = own_role(line, entry.role);
    let words = row_words(
        entry.kind,
        kind.as_deref().unwrap_or_default(),
        role.as_deref(),
    );
    let call = call.map(|call| format!("{} {}", call.name, call.summary));
    let label = entry.label.map(str::to_owned);
    for field in call.into_iter().chain(label).chain(words) {
        if seen.is_continue() {
            seen = best.see(Cow::Owned(field));
        }
    }
    Ok(best.excerpt())
}

/// The texts of other entries that a row shows: for a tool result, the call that it answers.
fn shown_beside(
    reader: &mut RowReader<'_>,
    entry: &Entry<'_>,
    outline: &Outline,
    item: usize,
) -> Result<Vec<String>> {
    if entry.role != Role::ToolResult {
        return Ok(Vec::new());
    }
    let callers = outline.callers(item);
    let (_, call) = reader.result(entry.node, entry.place, entry.subject(), callers)?;
    let call = call.map(|call| format!("{} {}", call.name, call.summary));
    Ok(call.into_iter().collect())
}

/// The entries to search: the entries that the filter keeps, and the calls of their tool results.
fn untested(outline: &Outline, snapshot: &Snapshot, known: &QueryResults) -> Vec<SearchTarget> {
    let mut asked = Vec::new();
    for item in outline.kept() {
        let Some(entry) = snapshot.entry(item) else {
            continue;
        };
        if !known.tested.get(entry.node) {
            asked.push(SearchTarget {
                place: entry.place,
                node: entry.node,
                kind: entry.kind,
                role: entry.role,
            });
        }
        if entry.role == Role::ToolResult
            && let Some(caller) = outline.callers(item).next()
            && !known.tested.get(caller.node)
        {
            asked.push(SearchTarget {
                place: caller.place(),
                node: caller.node,
                kind: Kind::Message,
                role: Role::Assistant,
            });
        }
    }
    // Sorted in file order, so that entries that are close in the file are read together.
    asked.sort_unstable_by_key(|asked| (asked.place, asked.node));
    asked.dedup_by_key(|asked| asked.node);
    asked
}

fn learn(
    bodies: &Bodies,
    asked: Vec<SearchTarget>,
    query: &Query,
    words: &RowWords,
    known: &mut QueryResults,
) -> Result<()> {
    let look = |range: Range<usize>| -> Result<Vec<(Node, bool, bool)>> {
        let mut reader = bodies.reader();
        let mut matcher = Matcher::new(query);
        let mut found = Vec::new();
        for entry in asked.get(range).unwrap_or_default() {
            matcher.begin(words.found(entry.kind, entry.role));
            if !matcher.is_match() {
                let line = reader.stored(entry.place, usize::MAX)?;
                for name in [own_kind(line, entry.kind), own_role(line, entry.role)] {
                    if let Some(Cow::Owned(name)) = name {
                        let _seen = matcher.see(&name);
                    }
                }
                // If a part of the query matches an assistant message, it also counts for the results of its
                // calls.
                if entry.role == Role::Assistant || matcher.may_complete(line) {
                    matcher.see_line(line, entry.kind);
                }
            }
            found.push((entry.node, matcher.is_match(), matcher.is_touched()));
        }
        Ok(found)
    };
    in_order(0..asked.len(), CHUNK, look, |found| {
        for (node, is_match, is_touched) in found {
            known.tested.set(node);
            if is_match {
                known.matched.set(node);
            }
            if is_touched {
                known.touched.set(node);
            }
        }
        ControlFlow::Continue(())
    })
}

/// The type as rows show it: the name of a known type, else the stored text.
fn own_kind(line: &[u8], kind: Kind) -> Option<Cow<'static, str>> {
    match kind.name() {
        Some(name) => Some(Cow::Borrowed(name)),
        None => owned(json::get(line, "type")),
    }
}

/// Like [`own_kind`], for the role.
fn own_role(line: &[u8], role: Role) -> Option<Cow<'static, str>> {
    match (role.name(), role) {
        (Some(name), _) => Some(Cow::Borrowed(name)),
        (None, Role::Other) => owned(json::get_path(line, &["message", "role"])),
        (None, _) => None,
    }
}

fn owned(raw: Option<&[u8]>) -> Option<Cow<'static, str>> {
    let text = raw.and_then(json::string)?;
    Some(Cow::Owned(text.into_owned()))
}

/// For each kind and role, the parts of the query that match the words that a row shows for the kind and the role.
struct RowWords(HashMap<(u8, u8), u64>);

impl RowWords {
    fn of(query: &Query) -> Self {
        let mut matcher = Matcher::new(query);
        let mut words = HashMap::new();
        for kind in (0..=u8::MAX).map_while(Kind::from_number) {
            for role in (0..=u8::MAX).map_while(Role::from_number) {
                matcher.begin(0);
                for word in row_words(kind, kind.name().unwrap_or_default(), role.name()) {
                    let _seen = matcher.see(&word);
                }
                words.insert((kind as u8, role as u8), matcher.found());
            }
        }
        Self(words)
    }

    fn found(&self, kind: Kind, role: Role) -> u64 {
        let found = self.0.get(&(kind as u8, role as u8));
        found.copied().unwrap_or_default()
    }
}
