//! The names of branches, and the branches that are archived, according to their records (session-file.md §4.7).
//!
//! Marks are stored by the id that their record names, since the entry with this id may come later
//! in the file.

use super::node::Node;
use crate::bytes::{Cursor, Fields};
use crate::entry::BranchChange;
use crate::name;
use hashbrown::HashMap;

/// The names and archives of the branches of a session.
#[derive(Default)]
pub struct Marks {
    pub(super) by_id: HashMap<Box<str>, Mark>,
    /// The number of records read so far.
    records: u64,
}

/// The mark of the branch that begins with one entry: the result of its last records.
#[derive(Default)]
pub(super) struct Mark {
    /// The normalized name.
    pub(super) name: Option<Box<str>>,
    /// The record that archives the branch; `None` if the branch is not archived now.
    pub(super) archived: Option<Node>,
    /// The record which says that the lines of the branch are in the cold file.
    pub(super) shed: Option<Node>,
}

impl Marks {
    /// A number that changes with every record.
    pub fn version(&self) -> u64 {
        self.records
    }

    pub(super) fn take(&mut self, record: Node, entry_id: &str, change: &BranchChange<'_>) {
        self.records += 1;
        let mark = self.by_id.entry_ref(entry_id).or_default();
        match change {
            BranchChange::Name(name) => {
                mark.name = name.as_deref().and_then(name::of_branch).map(Into::into);
            }
            BranchChange::Archive => mark.archived = Some(record),
            BranchChange::Unarchive => mark.archived = None,
            BranchChange::Shed => mark.shed = Some(record),
        }
    }

    /// Writes the marks into an image.
    pub(super) fn put(&self, out: &mut Fields) {
        out.u64(self.records);
        out.count(self.by_id.len());
        for (id, mark) in &self.by_id {
            out.text(id);
            out.optional(mark.name.as_deref(), Fields::text);
            out.optional(mark.archived, |out, record| out.u32(record.0));
            out.optional(mark.shed, |out, record| out.u32(record.0));
        }
    }

    /// Reads what [`Marks::put`] has written; `count` is the number of nodes.
    pub(super) fn read(fields: &mut Cursor<'_>, count: u32) -> Option<Self> {
        let records = fields.u64()?;
        let by_id = fields.list(|fields| {
            let id = fields.text()?.into();
            let mark = Mark {
                name: fields.optional(|fields| Some(fields.text()?.into()))?,
                archived: fields.optional(|fields| Node::checked(fields.u32()?, count))?,
                shed: fields.optional(|fields| Node::checked(fields.u32()?, count))?,
            };
            Some((id, mark))
        })?;
        Some(Self {
            by_id: HashMap::from_iter(by_id),
            records,
        })
    }
}
