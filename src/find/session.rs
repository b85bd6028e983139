//! Turns the matching lines of a file into hits of its session.

use super::branch::{Branch, Branches};
use super::explain::Explainer;
use super::file::SearchedFile;
use super::labels;
use super::page::{Hit, Key};
use super::request::{EntryTest, SearchRequest};
use super::scan::FileMatches;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::search::{Excerpt, FieldKind};
use treelined_core::timestamp::Millis;
use treelined_core::tree::{Node, Tree};
use treelined_files::cancel::Cancel;
use treelined_files::log::OpenedLog;
use treelined_files::log::body::BodyReader;
use treelined_files::os::file::Location;
use treelined_files::store::Store;
use treelined_files::store::listing::first_message_of;

/// Characters of a session's name in a hit.
const NAME_CHARS: usize = 200;

/// The hits of one session.
#[derive(Debug, Default)]
pub(super) struct SessionHits {
    /// Entries that are hits.
    pub count: u64,
    /// The hits after the cursor, in order, at most one more than a page has. The hit is `None` if it cannot be among
    /// the best.
    pub best: Vec<(Key, Option<Hit>)>,
}

/// The hits of a session; `found` has its matching lines. `bound` is the key of the worst hit of a full page.
pub(super) fn hits(
    store: &Store,
    request: &SearchRequest,
    cancel: &Cancel,
    file: &SearchedFile,
    found: &FileMatches,
    bound: Option<&Key>,
) -> Result<SessionHits> {
    let opened = store.open(file.location.clone(), cancel)?;
    let header = opened.log.header();
    if !header.is_some_and(|header| request.takes_directory(&header.cwd)) {
        return Ok(SessionHits::default());
    }
    let bodies = opened.log.bodies();
    let mut finder = SessionFinder {
        request,
        tree: &opened.tree,
        branches: Branches::of(&opened.tree),
        explainer: request
            .explains
            .then(|| Explainer::of(&opened.tree, request.archived)),
        reader: bodies.reader(),
        test: EntryTest::new(request),
        started: labels::started(&opened),
        // If the file was replaced after the scan, the scanned lines do not count.
        is_same: opened.log.identity() == Some(file.status.identity),
        labels: match request.fields.has(FieldKind::Labels) {
            true => labels::labels(&opened)?,
            false => HashMap::new(),
        },
    };
    let (count, keys) = finder.keys(found, &file.location)?;
    let session_id = header.map(|header| header.id.clone()).unwrap_or_default();
    let mut session_name = None;
    let mut best = Vec::with_capacity(keys.len());
    for (number, (key, node)) in keys.into_iter().enumerate() {
        let may_fit = number < request.limit && bound.is_none_or(|bound| key < *bound);
        let shown = match may_fit {
            true => finder.shown(node)?,
            false => None,
        };
        let mut name = || -> Result<String> {
            match &session_name {
                Some(name) => Ok(String::clone(name)),
                None => Ok(session_name.insert(title(&opened)?).clone()),
            }
        };
        let hit = match shown {
            Some((field, excerpt)) => Some(Hit {
                session_id: session_id.clone(),
                session_name: name()?,
                entry_id: opened.tree.id(node).to_owned(),
                field,
                at: key.at.0,
                excerpt,
                inside: Vec::new(),
                score: f64::from(key.score.0),
                branch: finder.branch(node)?,
            }),
            None => None,
        };
        best.push((key, hit));
    }
    Ok(SessionHits { count, best })
}

/// The name of a session, shortened. If the session has no name, its first message.
pub(super) fn title(opened: &OpenedLog) -> Result<String> {
    match opened.tree.name() {
        Some(name) => Ok(name.chars().take(NAME_CHARS).collect()),
        None => first_message_of(opened),
    }
}

/// Finds the entries of one session that match.
struct SessionFinder<'t, 'r> {
    request: &'r SearchRequest,
    tree: &'t Tree,
    branches: Branches<'t>,
    explainer: Option<Explainer<'t>>,
    reader: BodyReader<'t>,
    test: EntryTest<'r>,
    /// The time for entries without one.
    started: Millis,
    /// Whether the session was read from the file that was scanned.
    is_same: bool,
    labels: HashMap<Node, String>,
}

impl SessionFinder<'_, '_> {
    /// The number of matching entries, and the best of these entries after the cursor, in order: at most one more than
    /// a page has.
    fn keys(&mut self, found: &FileMatches, at: &Location) -> Result<(u64, Vec<(Key, Node)>)> {
        let path: Arc<str> = at.path().to_string_lossy().into();
        let mut keys = Vec::new();
        let mut count = 0;
        for (node, score) in self.matching(found)? {
            let at = self.time(node);
            let request = self.request;
            let is_taken = request.archived || !self.branches.is_archived(node);
            if !is_taken || !request.takes_time(at) || !self.branches.takes(node, request.branches)
            {
                continue;
            }
            count += 1;
            let key = Key {
                score: Reverse(score),
                at: Reverse(at),
                path: Arc::clone(&path),
                offset: self.tree.place(node).offset,
            };
            if request.after.as_ref().is_none_or(|after| key > *after) {
                keys.push((key, node));
            }
        }
        keys.sort_unstable();
        keys.truncate(self.request.limit.saturating_add(1));
        Ok((count, keys))
    }

    /// The matching entries with their scores, in file order.
    fn matching(&mut self, found: &FileMatches) -> Result<Vec<(Node, u8)>> {
        let mut touched = HashMap::new();
        for (node, label) in &self.labels {
            if self.test.touches_label(label) {
                touched.insert(*node, label.clone());
            }
        }
        let mut matching = Vec::new();
        for node in self.tree.entries() {
            if self.tree.kind(node) == Kind::Label {
                continue;
            }
            let at = self.tree.place(node).offset;
            let label = touched.get(&node).map(String::as_str);
            let line = line_at(&found.lines, at, |line| &line.span);
            let is_open = label.is_some()
                || !self.is_same
                || line_at(&found.damaged, at, |span| span).is_some();
            match line {
                Some(line) if !is_open => matching.push((node, line.score)),
                _ if is_open => {
                    let score = self.read(node, label)?;
                    matching.extend(score.map(|score| (node, score)));
                }
                _ => {}
            }
        }
        Ok(matching)
    }

    /// The score of an entry, from its line; `None` if it does not match.
    fn read(&mut self, node: Node, label: Option<&str>) -> Result<Option<u8>> {
        let (kind, role) = (self.tree.kind(node), self.tree.role(node));
        let line = self.reader.stored(self.tree.place(node), usize::MAX)?;
        let best = self.test.best_field(line, kind, role, label);
        Ok(best.map(|best| best.score))
    }

    /// The part of an entry that shows the match; `None` if the entry changed since it matched.
    fn shown(&mut self, node: Node) -> Result<Option<(FieldKind, Excerpt)>> {
        let (kind, role) = (self.tree.kind(node), self.tree.role(node));
        let label = self.labels.get(&node).map(String::as_str);
        let line = self.reader.stored(self.tree.place(node), usize::MAX)?;
        let best = self.test.best_field(line, kind, role, label);
        Ok(best.map(|best| (best.kind, Excerpt::of(&self.request.query, &best.text()))))
    }

    fn branch(&mut self, node: Node) -> Result<Branch> {
        let mut branch = self.branches.branch(node);
        if let Some(explainer) = &mut self.explainer {
            explainer.explain(node, &mut branch, &mut self.reader)?;
        }
        Ok(branch)
    }

    fn time(&self, node: Node) -> Millis {
        self.tree.timestamp(node).unwrap_or(self.started)
    }
}

/// The line in an ascending list that contains the offset `at`.
fn line_at<T>(lines: &[T], at: u64, span: impl Fn(&T) -> &Range<u64>) -> Option<&T> {
    let next = lines.partition_point(|line| span(line).start <= at);
    let line = next.checked_sub(1).and_then(|last| lines.get(last))?;
    span(line).contains(&at).then_some(line)
}
