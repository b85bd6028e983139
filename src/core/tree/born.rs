//! Entries that were not appended at the leaf: background branches, and copies of entries of other sessions
//! (session-file.md §4.9, semantics.md §5.4).

use super::node::Node;
use crate::bytes::{Cursor, Fields};
use crate::entry::Envelope;
use hashbrown::HashMap;

/// The longest group that is kept, in bytes.
const MAX_GROUP_BYTES: usize = 256;

/// The groups of background branches, and the sources of copies.
#[derive(Default)]
pub(super) struct Born {
    /// The groups, by the entries that name them.
    pub(super) groups: HashMap<Node, Box<str>>,
    /// For each copy: the session and the entry from which it was copied.
    pub(super) sources: HashMap<Node, (Box<str>, Box<str>)>,
}

impl Born {
    pub(super) fn take(&mut self, node: Node, envelope: &Envelope<'_>) {
        let group = envelope.background.as_ref();
        let group = group.and_then(|background| background.group.as_deref());
        match group.filter(|group| group.len() <= MAX_GROUP_BYTES) {
            Some(group) => drop(self.groups.insert(node, group.into())),
            None if self.groups.is_empty() => {}
            None => drop(self.groups.remove(&node)),
        }
        match &envelope.copied_from {
            Some(from) => {
                let source = ((*from.session_id).into(), (*from.entry_id).into());
                drop(self.sources.insert(node, source));
            }
            None if self.sources.is_empty() => {}
            None => drop(self.sources.remove(&node)),
        }
    }

    pub(super) fn is_copy(&self, node: Node) -> bool {
        !self.sources.is_empty() && self.sources.contains_key(&node)
    }

    /// Writes the groups and sources into an image.
    pub(super) fn put(&self, out: &mut Fields) {
        out.count(self.groups.len());
        for (node, group) in &self.groups {
            out.u32(node.0);
            out.text(group);
        }
        out.count(self.sources.len());
        for (node, (session_id, entry_id)) in &self.sources {
            out.u32(node.0);
            out.text(session_id);
            out.text(entry_id);
        }
    }

    /// Reads the groups and sources that [`Born::put`] has written; `count` is the number of nodes.
    pub(super) fn read(fields: &mut Cursor<'_>, count: u32) -> Option<Self> {
        let groups = fields.list(|fields| {
            let node = Node::checked(fields.u32()?, count)?;
            Some((node, fields.text()?.into()))
        })?;
        let sources = fields.list(|fields| {
            let node = Node::checked(fields.u32()?, count)?;
            Some((node, (fields.text()?.into(), fields.text()?.into())))
        })?;
        Some(Self {
            groups: HashMap::from_iter(groups),
            sources: HashMap::from_iter(sources),
        })
    }
}
