//! Rules for references of new entries to entries of their path (protocol.md §9): a compaction keeps
//! entries of its path, and a context edit changes a message of the context at its parent. Any other
//! reference would silently have no effect, so it is refused.

use super::new_entry::NewEntry;
use super::paths::Paths;
use crate::context::agent;
use crate::entry::{Kind, Role};
use crate::error::{Error, Result};
use crate::id::EntryId;
use crate::json;
use crate::tree::{Node, Tree};
use hashbrown::HashMap;

/// Checks the entries of one operation in turn.
pub(crate) struct PathRules<'a> {
    tree: &'a Tree,
    entries: &'a [NewEntry],
    /// Reads the body of a stored entry.
    stored: &'a dyn Fn(Node) -> Result<Vec<u8>>,
    paths: Paths<'a>,
    /// The entries of the operation so far, by id.
    batch: HashMap<String, InBatch>,
    /// The last search for the nearest compaction in the tree: the node where it started, and its
    /// result.
    looked_at: Option<(Node, Option<Node>)>,
}

struct InBatch {
    /// The index of the entry in the operation.
    index: usize,
    /// The id of the nearest compaction at or above the entry.
    compaction: Option<String>,
}

impl<'a> PathRules<'a> {
    /// The rules for these entries; `None` if no rule applies to them.
    pub(crate) fn of(
        tree: &'a Tree,
        entries: &'a [NewEntry],
        stored: &'a dyn Fn(Node) -> Result<Vec<u8>>,
    ) -> Option<Self> {
        let concerns = |entry: &NewEntry| is_edit(entry) || first_kept(entry).is_some();
        entries.iter().any(concerns).then(|| Self {
            tree,
            entries,
            stored,
            paths: Paths::new(tree),
            batch: HashMap::new(),
            looked_at: None,
        })
    }

    /// Checks the next entry, then adds it. The caller has checked that the entries that it names exist.
    pub(crate) fn add(
        &mut self,
        index: usize,
        id: &EntryId,
        parent_id: Option<&str>,
    ) -> Result<()> {
        let Some(entry) = self.entries.get(index) else {
            return Ok(());
        };
        if is_edit(entry)
            && let Some(target_id) = entry.text("targetId")
            && !self.is_message(&target_id, parent_id)?
        {
            let reason = "must name a message of the context on the path to the edit's parent";
            return Err(Error::entry_invalid(index, "targetId", reason));
        }
        match first_kept(entry) {
            // A compaction that names itself keeps nothing, by the client's choice.
            Some(kept) if *kept != *id.as_str() && !self.paths.is_on_path(&kept, parent_id) => {
                return Err(Error::entry_not_found(&kept));
            }
            _ => {}
        }
        let compaction = match entry.type_name == "compaction" {
            true => Some(id.as_str().to_owned()),
            false => self.nearest_compaction(parent_id),
        };
        self.paths.add(id.as_str(), parent_id);
        let in_batch = InBatch { index, compaction };
        self.batch.insert(id.as_str().to_owned(), in_batch);
        Ok(())
    }

    /// Whether the target is on the path that ends at `parent_id`, is kept by the latest compaction of this path, and
    /// makes a message.
    fn is_message(&mut self, target_id: &str, parent_id: Option<&str>) -> Result<bool> {
        if !self.paths.is_on_path(target_id, parent_id) {
            return Ok(false);
        }
        if let Some(compaction) = self.nearest_compaction(parent_id)
            && !self.paths.is_on_path(&compaction, Some(target_id))
            && !self.is_kept(&compaction, target_id)?
        {
            return Ok(false);
        }
        let entry = self.body(target_id)?;
        let (kind, role) = self.kind_and_role(target_id, &entry);
        Ok(!agent::messages(kind, role, &entry).is_empty())
    }

    /// Whether an entry above a compaction is in the part that the compaction keeps.
    fn is_kept(&mut self, compaction: &str, target_id: &str) -> Result<bool> {
        let (kind, role) = self.kind_and_role(target_id, &self.body(target_id)?);
        if kind == Kind::Compaction || role == Role::System {
            return Ok(false);
        }
        let entry = self.body(compaction)?;
        let first = json::get(&entry, "firstKeptEntryId").and_then(json::string);
        Ok(first.is_some_and(|first| self.paths.is_on_path(&first, Some(target_id))))
    }

    fn nearest_compaction(&mut self, id: Option<&str>) -> Option<String> {
        let id = id?;
        if let Some(entry) = self.batch.get(id) {
            return entry.compaction.clone();
        }
        let node = self.tree.find(id)?;
        let found = match self.looked_at {
            Some((at, found)) if at == node => found,
            _ => {
                let mut above = self.tree.ancestors(Some(node));
                above.find(|node| self.tree.kind(*node) == Kind::Compaction)
            }
        };
        self.looked_at = Some((node, found));
        found.map(|node| self.tree.id(node).to_owned())
    }

    fn kind_and_role(&self, id: &str, body: &[u8]) -> (Kind, Role) {
        match (self.new_entry(id), self.tree.find(id)) {
            (Some(entry), _) => {
                let role = json::get_path(body, &["message", "role"]).and_then(json::string);
                let role = role.map_or(Role::None, |role| Role::of(&role));
                (Kind::of(&entry.type_name), role)
            }
            (None, Some(node)) => (self.tree.kind(node), self.tree.role(node)),
            (None, None) => (Kind::Unknown, Role::None),
        }
    }

    fn body(&self, id: &str) -> Result<Vec<u8>> {
        match (self.new_entry(id), self.tree.find(id)) {
            (Some(entry), _) => Ok(entry.object()),
            (None, Some(node)) => (self.stored)(node),
            (None, None) => Ok(Vec::new()),
        }
    }

    fn new_entry(&self, id: &str) -> Option<&'a NewEntry> {
        self.entries.get(self.batch.get(id)?.index)
    }
}

fn is_edit(entry: &NewEntry) -> bool {
    entry.type_name == "context_edit"
}

/// The id of the entry that a compaction names as the first kept entry.
fn first_kept(entry: &NewEntry) -> Option<String> {
    if entry.type_name != "compaction" || entry.keeps_nothing {
        return None;
    }
    entry.text("firstKeptEntryId")
}
