//! What a `context_edit` may name: an entry that is a message of the context where the edit stands
//! (protocol.md §9). An edit of anything else would change nothing, silently.

use super::append::NewEntry;
use crate::context::agent;
use crate::error::{Error, Result};
use crate::id::EntryId;
use crate::json;
use crate::log::scan::{Kind, Role};
use crate::tree::{Node, Tree};
use std::collections::HashMap;

/// The entries an operation has planned so far, before they are in the tree.
#[derive(Default)]
pub struct Ahead {
    /// By id: the index in the operation.
    numbers: HashMap<String, usize>,
    /// By index: the id of the parent.
    parents: HashMap<usize, String>,
}

impl Ahead {
    pub fn insert(&mut self, index: usize, id: &EntryId, parent_id: Option<&str>) {
        self.numbers.insert(id.as_str().to_owned(), index);
        if let Some(parent_id) = parent_id {
            self.parents.insert(index, parent_id.to_owned());
        }
    }
}

/// The path above an edit.
pub struct Path<'a> {
    pub tree: &'a Tree,
    /// Of the operation.
    pub entries: &'a [NewEntry],
    pub ahead: &'a Ahead,
    /// Reads the body of a stored entry.
    pub stored: &'a dyn Fn(Node) -> Result<Vec<u8>>,
}

/// An entry of the path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    New(usize),
    Stored(Node),
}

impl Path<'_> {
    /// Refuses an edit of `target_id` below `parent_id` unless the target is a message of the context
    /// there: on the path, kept by the latest compaction, and of a kind that makes messages.
    pub fn check(&self, index: usize, target_id: &str, parent_id: Option<&str>) -> Result<()> {
        if self.is_message(target_id, parent_id)? {
            return Ok(());
        }
        let reason = "must name a message of the context on the path to the edit's parent";
        Err(Error::entry_invalid(index, "targetId", reason))
    }

    fn is_message(&self, target_id: &str, parent_id: Option<&str>) -> Result<bool> {
        let Some(target) = self.place(target_id) else {
            return Ok(false);
        };
        let mut at = parent_id.and_then(|id| self.place(id));
        let mut compaction = None;
        while let Some(place) = at {
            if place == target {
                let is_kept = match compaction {
                    None => true,
                    Some(compaction) => self.is_kept(compaction, target)?,
                };
                return Ok(is_kept && self.makes_messages(target)?);
            }
            if compaction.is_none() && self.kind(place) == Kind::Compaction {
                compaction = Some(place);
            }
            at = self.parent(place);
        }
        Ok(false)
    }

    /// Whether an entry above a compaction is in the part that the compaction keeps.
    fn is_kept(&self, compaction: Place, target: Place) -> Result<bool> {
        if self.kind(target) == Kind::Compaction || self.role(target)? == Role::System {
            return Ok(false);
        }
        let entry = self.body(compaction)?;
        let first = json::get(&entry, "firstKeptEntryId").and_then(json::string);
        let Some(first) = first.and_then(|id| self.place(&id)) else {
            return Ok(false);
        };
        let mut at = Some(target);
        while let Some(place) = at {
            if place == first {
                return Ok(true);
            }
            at = self.parent(place);
        }
        Ok(false)
    }

    fn makes_messages(&self, place: Place) -> Result<bool> {
        let (kind, role) = (self.kind(place), self.role(place)?);
        Ok(!agent::messages(kind, role, &self.body(place)?).is_empty())
    }

    fn place(&self, id: &str) -> Option<Place> {
        match self.ahead.numbers.get(id) {
            Some(number) => Some(Place::New(*number)),
            None => self.tree.find(id).map(Place::Stored),
        }
    }

    fn parent(&self, place: Place) -> Option<Place> {
        match place {
            Place::New(number) => {
                let id = self.ahead.parents.get(&number)?;
                self.place(id)
            }
            Place::Stored(node) => self.tree.parent(node).map(Place::Stored),
        }
    }

    fn kind(&self, place: Place) -> Kind {
        match place {
            Place::New(number) => self
                .entries
                .get(number)
                .map_or(Kind::Unknown, |entry| Kind::of(&entry.type_name)),
            Place::Stored(node) => self.tree.kind(node),
        }
    }

    fn role(&self, place: Place) -> Result<Role> {
        match place {
            Place::New(_) => {
                let entry = self.body(place)?;
                let role = json::get_path(&entry, &["message", "role"]).and_then(json::string);
                Ok(role.map_or(Role::None, |role| Role::of(&role)))
            }
            Place::Stored(node) => Ok(self.tree.role(node)),
        }
    }

    fn body(&self, place: Place) -> Result<Vec<u8>> {
        match place {
            Place::New(number) => Ok(self
                .entries
                .get(number)
                .map(NewEntry::object)
                .unwrap_or_default()),
            Place::Stored(node) => (self.stored)(node),
        }
    }
}
