//! The simulated file system: files, folders and their names, and which changes of them are synced.
//!
//! All changes are kept in a list. `cut` makes the disk after a power cut from this list.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// The number of a file or folder in this model. Unlike an inode number, this number is never used again.
pub(super) type NodeId = u64;

/// The root folder.
pub(super) const ROOT: NodeId = 0;

#[derive(Debug, Clone, Default)]
pub struct Node {
    pub is_folder: bool,
    pub data: Vec<u8>,
    pub names: BTreeMap<OsString, NodeId>,
    /// The number of names of the node.
    pub links: u32,
    /// The inode number. The number of a removed file is used again.
    pub inode: u64,
    pub modified: u64,
    pub changed: u64,
}

#[derive(Debug, Clone)]
pub enum Change {
    Write {
        node: NodeId,
        at: u64,
        data: Arc<[u8]>,
    },
    /// The same bytes are written again at the same offset. Sectors are written whole, so bytes that are on the disk
    /// stay there.
    Again {
        node: NodeId,
        at: u64,
        data: Arc<[u8]>,
    },
    Size {
        node: NodeId,
        len: u64,
    },
    /// A name leads to this node, and no longer to an earlier node.
    Name {
        folder: NodeId,
        name: OsString,
        node: NodeId,
        is_folder: bool,
    },
    Unname {
        folder: NodeId,
        name: OsString,
    },
    Rename {
        from: (NodeId, OsString),
        to: (NodeId, OsString),
        node: NodeId,
    },
}

/// The outcome of the syncs of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    Synced,
    /// The sync of the change failed. Linux then treats the bytes as written, so later syncs skip them.
    Failed,
}

#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub nodes: BTreeMap<NodeId, Node>,
    pub(super) first: BTreeMap<NodeId, Node>,
    pub(super) changes: Vec<(Change, Asked)>,
    /// The number of changes before the last sync of any file or folder. A journal that keeps the order of changes has
    /// all changes of names before that sync.
    pub(super) committed: usize,
    next: NodeId,
    /// The bytes that are free.
    pub space: Option<u64>,
}

impl Disk {
    pub fn new() -> Self {
        let root = Node {
            is_folder: true,
            links: 2,
            inode: 1,
            ..Node::default()
        };
        Self::of(BTreeMap::from([(ROOT, root)]))
    }

    pub(super) fn of(nodes: BTreeMap<NodeId, Node>) -> Self {
        Self {
            first: nodes.clone(),
            next: nodes.keys().max().map_or(0, |last| last + 1),
            nodes,
            changes: Vec::new(),
            committed: 0,
            space: None,
        }
    }

    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The node that a name of a folder leads to.
    pub fn lookup(&self, folder: NodeId, name: &OsStr) -> Option<NodeId> {
        self.node(folder)?.names.get(name).copied()
    }

    /// Makes a node with a name. `is_open` says which removed files are still open, and keep their inode number.
    pub fn make(
        &mut self,
        folder: NodeId,
        name: &OsStr,
        is_folder: bool,
        is_open: impl Fn(NodeId) -> bool,
    ) -> NodeId {
        let node = self.next;
        self.next += 1;
        let live = self.nodes.iter();
        let live = live.filter(|(id, node)| node.links > 0 || is_open(**id));
        let taken: std::collections::BTreeSet<u64> = live.map(|(_, node)| node.inode).collect();
        let inode = (1..).find(|number| !taken.contains(number));
        let made = Node {
            is_folder,
            inode: inode.unwrap_or(0),
            ..Node::default()
        };
        self.nodes.insert(node, made);
        self.change(Change::Name {
            folder,
            name: name.to_owned(),
            node,
            is_folder,
        });
        node
    }

    pub fn change(&mut self, change: Change) {
        apply(&mut self.nodes, &change);
        self.changes.push((change, Asked::Nothing));
    }

    /// Makes the content and the size of a file durable, except bytes whose sync has failed before.
    pub fn sync_file(&mut self, id: NodeId) {
        self.ask_of(id, Asked::Synced);
        self.committed = self.changes.len();
    }

    /// Fails to make the content and the size of a file durable.
    pub fn fail_file(&mut self, id: NodeId) {
        self.ask_of(id, Asked::Failed);
    }

    fn ask_of(&mut self, id: NodeId, outcome: Asked) {
        for (change, asked) in &mut self.changes {
            if *asked == Asked::Nothing && of_file(change, id) {
                *asked = outcome;
            }
        }
    }

    /// Makes the names in a folder durable.
    pub fn sync_folder(&mut self, id: NodeId) {
        for (change, asked) in &mut self.changes {
            let is_meant = match change {
                Change::Name { folder, .. } | Change::Unname { folder, .. } => *folder == id,
                Change::Rename { from, to, .. } => from.0 == id || to.0 == id,
                Change::Write { .. } | Change::Again { .. } | Change::Size { .. } => false,
            };
            if is_meant {
                *asked = Asked::Synced;
            }
        }
        self.committed = self.changes.len();
    }
}

fn of_file(change: &Change, id: NodeId) -> bool {
    match change {
        Change::Write { node, .. } | Change::Again { node, .. } | Change::Size { node, .. } => {
            *node == id
        }
        _ => false,
    }
}

pub(super) fn apply(nodes: &mut BTreeMap<NodeId, Node>, change: &Change) {
    match change {
        Change::Write { node, at, data } | Change::Again { node, at, data } => {
            let file = &mut nodes.entry(*node).or_default().data;
            let at = usize::try_from(*at).unwrap_or(usize::MAX);
            let end = at.saturating_add(data.len());
            if file.len() < end {
                file.resize(end, 0);
            }
            if let Some(room) = file.get_mut(at..end) {
                room.copy_from_slice(data);
            }
        }
        Change::Size { node, len } => {
            let len = usize::try_from(*len).unwrap_or(usize::MAX);
            nodes.entry(*node).or_default().data.resize(len, 0);
        }
        Change::Name {
            folder,
            name,
            node,
            is_folder,
        } => {
            nodes.entry(*node).or_default().is_folder = *is_folder;
            link(nodes, *folder, name, *node);
        }
        Change::Unname { folder, name } => {
            let known = nodes.get_mut(folder);
            if let Some(gone) = known.and_then(|folder| folder.names.remove(name)) {
                unlink(nodes, gone);
            }
        }
        Change::Rename { from, to, node } => {
            link(nodes, to.0, &to.1, *node);
            if let Some(folder) = nodes.get_mut(&from.0)
                && folder.names.get(&from.1) == Some(node)
                && from != to
            {
                folder.names.remove(&from.1);
                unlink(nodes, *node);
            }
        }
    }
}

fn link(nodes: &mut BTreeMap<NodeId, Node>, folder: NodeId, name: &OsStr, node: NodeId) {
    let within = nodes.entry(folder).or_default();
    within.is_folder = true;
    let before = within.names.insert(name.to_owned(), node);
    nodes.entry(node).or_default().links += 1;
    if let Some(before) = before {
        unlink(nodes, before);
    }
}

fn unlink(nodes: &mut BTreeMap<NodeId, Node>, node: NodeId) {
    if let Some(node) = nodes.get_mut(&node) {
        node.links = node.links.saturating_sub(1);
    }
}
