//! Plans appends: the entries that a client sends are checked, linked, and completed with ids and
//! timestamps (protocol.md §3, §9).

pub use super::new_entry::{NewEntry, NewParent};
use super::path_rules::PathRules;
use super::{IdAllocator, leaf, line, push_text_member};
use crate::author::{self, Author};
use crate::entry::Kind as EntryKind;
use crate::error::{Error, Kind, Result};
use crate::flow::PlannedLines;
use crate::id::{EntryId, Source};
use crate::json::{self, quoted};
use crate::tree::{Node, Tree};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Plans appending `entries` as one operation. `stored` reads the body of an entry, to recognize a retry.
pub fn plan(
    tree: &Tree,
    source: &dyn Source,
    entries: &[NewEntry],
    stored: &dyn Fn(Node) -> Result<Vec<u8>>,
) -> Result<PlannedLines> {
    let mut planner = Planner::new(tree, source);
    let planned = planner.plan(entries, stored)?;
    let mut planned = planned
        .ok_or_else(|| Error::new(Kind::InternalError, "a single operation was not planned"))?;
    planner.keep(&mut planned);
    Ok(planned)
}

/// Plans operations that are written together. Each operation is planned as if the operations before it were written
/// already.
pub struct Planner<'a> {
    tree: &'a Tree,
    minter: IdAllocator<'a>,
    /// The ids of planned entries. These entries are not in the tree yet.
    ahead: HashSet<Arc<str>>,
    last: Option<EntryId>,
    /// Whether the operations planned so far are in the background; `None` before the first one.
    background: Option<bool>,
    is_full: bool,
}

impl<'a> Planner<'a> {
    pub fn new(tree: &'a Tree, source: &'a dyn Source) -> Self {
        Self {
            tree,
            minter: IdAllocator::new(tree, source),
            ahead: HashSet::new(),
            last: None,
            background: None,
            is_full: false,
        }
    }

    /// The leaf after the operations planned so far; `None` if they have no lines.
    pub fn last(&self) -> Option<&EntryId> {
        self.last.as_ref()
    }

    /// Plans one more operation. `None` if the operations before it must be written first, for instance because this
    /// operation repeats one of them.
    pub fn plan(
        &mut self,
        entries: &[NewEntry],
        stored: &dyn Fn(Node) -> Result<Vec<u8>>,
    ) -> Result<Option<PlannedLines>> {
        let tree = self.tree;
        let ids = || entries.iter().filter_map(|entry| entry.id.as_ref());
        let background = entries.first().is_some_and(|entry| entry.background);
        if self.must_wait(background) || ids().any(|id| self.ahead.contains(id.as_str())) {
            return Ok(None);
        }
        let mut rules = PathRules::of(tree, entries, stored);
        if rules.is_some() && !self.ahead.is_empty() {
            return Ok(None);
        }
        for id in ids() {
            self.minter.keep_off(id);
        }
        self.background = Some(background);
        let mut planned = PlannedLines::default();
        let mut new: HashMap<&str, usize> = HashMap::new();
        let mut previous = match &self.last {
            Some(last) => Some(last.as_str().to_owned()),
            None => tree.leaf().map(|leaf| tree.id(leaf).to_owned()),
        };
        for (index, entry) in entries.iter().enumerate() {
            let parent_id = match &entry.parent {
                NewParent::Previous => previous,
                NewParent::Named(None) => None,
                NewParent::Named(Some(id)) => {
                    if !new.contains_key(id.as_str()) && !self.is_known(id) {
                        return Err(Error::entry_not_found(id));
                    }
                    Some(id.clone())
                }
            };
            if let Some(id) = &entry.id {
                if new.insert(id.as_str(), index).is_some() {
                    return Err(duplicate(id));
                }
                if let Some(taken) = tree.find_any(id.as_str()) {
                    if !is_repetition(tree, taken, entry, stored)? {
                        return Err(duplicate(id));
                    }
                    previous = Some(id.as_str().to_owned());
                    planned.entry_ids.push(id.clone());
                    continue;
                }
            }
            match target(entry) {
                Some(id) if !new.contains_key(&*id) && !self.is_known(&id) => {
                    return Err(Error::entry_not_found(&id));
                }
                _ => {}
            }
            let id = entry.id.clone().unwrap_or_else(|| self.minter.id());
            if let Some(rules) = &mut rules {
                rules.add(index, &id, parent_id.as_deref())?;
            }
            let timestamp = entry.timestamp.as_deref().unwrap_or(self.minter.now());
            let mut members = entry.members.clone();
            if entry.keeps_nothing {
                push_text_member(&mut members, "firstKeptEntryId", id.as_str());
            }
            planned.lines.push(line(
                &entry.type_name,
                &id,
                parent_id.as_deref(),
                timestamp,
                &members,
            ));
            planned.has_steps |= !EntryKind::of(&entry.type_name).is_bookkeeping();
            previous = Some(id.as_str().to_owned());
            planned.entry_ids.push(id);
        }
        planned.background = background;
        Ok(Some(planned))
    }

    /// Whether an operation must wait until the planned operations are written. The record after background entries
    /// names a position, which must be in the file already.
    fn must_wait(&self, background: bool) -> bool {
        self.is_full || self.background.is_some_and(|before| before != background)
    }

    /// Whether a planned operation is not written yet.
    pub fn has_planned(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Ends the planned operations with a record of the position where the file opens, if they are bookkeeping or in
    /// the background.
    pub fn keep(&mut self, planned: &mut PlannedLines) {
        leaf::keep(planned, &mut self.minter, self.tree);
    }

    /// Treats this operation as written: the next ones come after it.
    pub fn accept(&mut self, entries: &[NewEntry], planned: &PlannedLines) {
        let tree = self.tree;
        let ids = planned.entry_ids.iter();
        for id in ids.filter(|id| tree.find_any(id.as_str()).is_none()) {
            self.ahead.insert(id.shared());
            if !planned.background {
                self.last = Some(id.clone());
            }
        }
        // Clients are notified of each new name, but the tree keeps only the last name. So an operation with a name
        // ends the batch.
        self.is_full |= entries
            .iter()
            .any(|entry| entry.type_name == "session_info");
    }

    fn is_known(&self, id: &str) -> bool {
        self.tree.find(id).is_some() || self.ahead.contains(id)
    }
}

/// The target of a label or an edit. The target must exist, since otherwise the entry would have no effect.
fn target(entry: &NewEntry) -> Option<String> {
    if !matches!(entry.type_name.as_str(), "label" | "context_edit") {
        return None;
    }
    entry.text("targetId")
}

/// Whether the stored entry equals the entry that the client sends. If so, the request is a retry.
fn is_repetition(
    tree: &Tree,
    taken: Node,
    entry: &NewEntry,
    stored: &dyn Fn(Node) -> Result<Vec<u8>>,
) -> Result<bool> {
    if tree.find(tree.id(taken)).is_none() {
        return Ok(false);
    }
    if let NewParent::Named(parent_id) = &entry.parent {
        let parent = tree.parent(taken).map(|parent| tree.id(parent));
        if parent != parent_id.as_deref() {
            return Ok(false);
        }
    }
    let mut known = stored(taken)?;
    let type_is = json::get(&known, "type").and_then(json::string);
    let timestamp_is = json::get(&known, "timestamp").and_then(json::string);
    if type_is.as_deref() != Some(&entry.type_name)
        || (entry.timestamp.is_some() && timestamp_is.as_deref() != entry.timestamp.as_deref())
    {
        return Ok(false);
    }
    for name in ["type", "id", "parentId", "timestamp"] {
        known = json::without_member(&known, name);
    }
    let mut sent = entry.object();
    // Another daemon may have signed the entry.
    if Author::of(&sent).is_none() {
        known = author::without(&known).into_owned();
    }
    if entry.keeps_nothing {
        let id = quoted(tree.id(taken));
        sent = json::with_member(&sent, "firstKeptEntryId", &id);
    }
    if entry.type_name == "label" {
        (known, sent) = (without_blank_label(known), without_blank_label(sent));
    }
    if known == sent {
        return Ok(true);
    }
    let parsed = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).ok();
    Ok(parsed(&known).is_some_and(|known| Some(known) == parsed(&sent)))
}

/// Leaves out a blank label. An entry with a blank label removes the stored label, and so does an entry without a
/// label.
fn without_blank_label(object: Vec<u8>) -> Vec<u8> {
    match json::get(&object, "label") {
        Some(b"null" | b"\"\"") => json::without_member(&object, "label"),
        _ => object,
    }
}

fn duplicate(id: &EntryId) -> Error {
    Error::new(
        Kind::DuplicateEntryId,
        format!("another entry has the id {:?}", id.as_str()),
    )
    .with_details(serde_json::json!({ "entryId": id.as_str() }))
}
