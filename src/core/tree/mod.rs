//! The tree of one session in memory: parents, children, leaf, labels, paths, common ancestors.
//!
//! The module is pure: no I/O, no clock, no JSON. Bodies stay in the file; a node has the offset and length of its
//! line. Lines are inserted in file order (session-file.md §2). Nothing recurses, and no walk meets a node twice,
//! since a link that would close a cycle is refused.
//!
//! `links` links nodes to their parents, `facts` stores the other facts of an entry (labels, name, moves), and
//! [`image`] converts the tree to bytes for the side index.

mod ancestor;
mod archived;
mod background;
pub mod below;
mod beside;
mod born;
pub mod branches;
mod children;
mod facts;
mod flags;
mod ids;
pub mod image;
mod lineage;
mod links;
mod marks;
mod moves;
mod node;
mod state;
mod steps;
mod targets;
#[cfg(test)]
mod tests;
mod waiting;

pub use archived::Archived;
pub use facts::PlainFacts;
pub use flags::Flags;
pub use ids::{IdHash, IdHasher};
pub use marks::Marks;
pub use moves::{Cause, Move, Moves, Position};
pub(crate) use node::number32;
pub use node::{FilePlace, Label, Node};
use node::{NO_TIME, NONE, NodeRow, some};
pub use state::Tree;

use crate::entry::{Envelope, Kind, Parent, Role};
use crate::timestamp::Millis;
use hashbrown::HashTable;
use ids::{hash_at, id_of};

/// The outcome of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insertion {
    pub node: Node,
    /// `SELF_PARENT` or `CYCLE` if its link to the parent was refused, else empty.
    pub refused: Flags,
}

impl Tree {
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty tree with room for this many entries and this many bytes of ids.
    pub fn with_room(entries: usize, id_bytes: usize) -> Self {
        Self {
            rows: Vec::with_capacity(entries),
            ids: Vec::with_capacity(id_bytes),
            by_id: HashTable::with_capacity(entries),
            ..Self::default()
        }
    }

    /// The number of entries, without leaf records.
    pub fn entry_count(&self) -> usize {
        self.rows.len() - self.leaf_records as usize
    }

    /// The number of nodes: entries and leaf records.
    pub fn node_count(&self) -> usize {
        self.rows.len()
    }

    pub fn has_leaf_records(&self) -> bool {
        self.leaf_records > 0
    }

    /// The entries in file order, without leaf records.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Node> + '_ {
        self.entries_from(0)
    }

    /// The entries from the number `first` on, in file order.
    pub fn entries_from(&self, first: usize) -> impl DoubleEndedIterator<Item = Node> + '_ {
        (first..self.rows.len())
            .map(|number| Node(number32(number)))
            .filter(|node| self.kind(*node) != Kind::LeafRecord)
    }

    /// The node at this number in file order.
    pub fn node(&self, number: usize) -> Option<Node> {
        (number < self.rows.len()).then(|| Node(number32(number)))
    }

    // Only the tree makes its nodes, and it never removes rows. So the index is always valid.
    #[allow(clippy::indexing_slicing)]
    fn row(&self, node: Node) -> &NodeRow {
        &self.rows[node.number()]
    }

    #[allow(clippy::indexing_slicing)]
    fn row_mut(&mut self, node: Node) -> &mut NodeRow {
        &mut self.rows[node.number()]
    }

    pub fn id(&self, node: Node) -> &str {
        let id = std::str::from_utf8(self.id_bytes(node));
        debug_assert!(id.is_ok(), "ids are inserted as text");
        id.unwrap_or_default()
    }

    /// Like [`Tree::id`], without the check for UTF-8.
    pub fn id_bytes(&self, node: Node) -> &[u8] {
        let id = id_of(&self.rows, &self.ids, node.0);
        debug_assert!(id.is_some(), "each row has an id");
        id.unwrap_or_default()
    }

    pub fn kind(&self, node: Node) -> Kind {
        self.row(node).kind
    }

    pub fn role(&self, node: Node) -> Role {
        self.row(node).role
    }

    pub fn flags(&self, node: Node) -> Flags {
        self.row(node).flags
    }

    /// The timestamp in Unix milliseconds; `None` if the stored text is not a time.
    pub fn timestamp(&self, node: Node) -> Option<Millis> {
        Some(self.row(node).timestamp).filter(|at| *at != NO_TIME)
    }

    pub fn place(&self, node: Node) -> FilePlace {
        let row = self.row(node);
        FilePlace {
            offset: row.offset,
            len: row.len,
        }
    }

    pub fn parent(&self, node: Node) -> Option<Node> {
        some(self.row(node).parent)
    }

    /// The entry with this id; leaf records are not entries.
    pub fn find(&self, id: &str) -> Option<Node> {
        self.find_any(id)
            .filter(|node| self.kind(*node) != Kind::LeafRecord)
    }

    /// The entry or leaf record with this id.
    pub fn find_any(&self, id: &str) -> Option<Node> {
        self.find_hashed(id, self.hasher.hash(id))
    }

    /// Like [`Tree::find_any`]; `hash` is the hash of the id by [`Tree::id_hasher`].
    pub fn find_hashed(&self, id: &str, hash: IdHash) -> Option<Node> {
        self.by_id
            .find(hash.wide(), |&at| self.id_bytes(Node(at)) == id.as_bytes())
            .map(|&at| Node(at))
    }

    pub fn id_hasher(&self) -> &IdHasher {
        &self.hasher
    }

    /// The position that a stored reference to `id` means. A leaf record means its own position (session-file.md §4).
    /// `None` if no node has this id.
    pub fn resolve(&self, id: &str) -> Option<Option<Node>> {
        let node = self.find_any(id)?;
        Some(self.resolve_node(node))
    }

    fn resolve_node(&self, node: Node) -> Option<Node> {
        match self.kind(node) {
            Kind::LeafRecord => self.parent(node),
            _ => Some(node),
        }
    }

    /// `node` and its ancestors, up to the root.
    pub fn ancestors(&self, node: Option<Node>) -> impl Iterator<Item = Node> + '_ {
        std::iter::successors(node, |node| self.parent(*node))
    }

    /// The nodes from the root to `node`.
    pub fn path(&self, node: Option<Node>) -> Vec<Node> {
        let mut path: Vec<Node> = self.ancestors(node).collect();
        path.reverse();
        path
    }

    /// Whether `ancestor` is `node` or one of its ancestors.
    pub fn is_ancestor(&self, ancestor: Node, node: Node) -> bool {
        self.ancestors(Some(node)).any(|above| above == ancestor)
    }

    /// The step of a position: the nearest entry at or above it that is not bookkeeping. Two positions are the same
    /// conversation if they have the same step.
    pub fn skip_bookkeeping(&self, position: Option<Node>) -> Option<Node> {
        self.ancestors(position)
            .find(|node| !self.kind(*node).is_bookkeeping())
    }

    /// Whether two positions have the same step.
    pub fn is_same_conversation(&self, a: Option<Node>, b: Option<Node>) -> bool {
        a == b || self.skip_bookkeeping(a) == self.skip_bookkeeping(b)
    }

    /// The children of a node, or the roots for `None`, the oldest timestamp first. Children with equal timestamps are
    /// in file order.
    pub fn children(&self, node: Option<Node>) -> Vec<Node> {
        let mut children = Vec::new();
        self.children_into(node, &mut children);
        children
    }

    /// Like [`Tree::children`], into a buffer that the caller uses again.
    pub fn children_into(&self, node: Option<Node>, children: &mut Vec<Node>) {
        children.clear();
        match node {
            Some(node) => children.extend(self.children.of(&self.rows, node.0).map(Node)),
            None => {
                let roots = self.roots.iter().map(|at| Node(*at));
                children.extend(roots.filter(|node| self.parent(*node).is_none()));
            }
        }
        let key = |node: &Node| (self.row(*node).timestamp, node.0);
        if children.len() > 1 && !children.is_sorted_by_key(key) {
            children.sort_unstable_by_key(key);
        }
    }

    pub fn has_children(&self, node: Node) -> bool {
        self.children.any(&self.rows, node.0)
    }

    /// The child of a node that has exactly one child.
    pub fn only_child(&self, node: Node) -> Option<Node> {
        self.children.only(&self.rows, node.0).map(Node)
    }

    pub fn label(&self, node: Node) -> Option<&Label> {
        self.labels.get(&node)
    }

    /// Every label in force, in no order.
    pub fn labels(&self) -> impl Iterator<Item = (Node, &Label)> {
        self.labels.iter().map(|(node, label)| (*node, label))
    }

    /// Sets the name from the header; a `session_info` entry overrides it.
    pub fn set_title(&mut self, title: &str) {
        self.name = Some(title)
            .filter(|title| !title.is_empty())
            .map(Into::into);
    }

    /// The session's name: the name in the last `session_info` in file order, or the name in the header.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The names of branches, and which branches are archived.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The current position of this daemon.
    pub fn leaf(&self) -> Option<Node> {
        self.leaf
    }

    pub fn set_leaf(&mut self, leaf: Option<Node>) {
        self.leaf = leaf;
        self.revision += 1;
    }

    /// The leaf of a program that reads only the file. The last line decides, unless it was written in the background
    /// (session-file.md §4.2).
    pub fn file_leaf(&self) -> Option<Node> {
        self.last.and_then(|last| self.resolve_node(last))
    }

    /// The navigation log, with its undo and redo stacks.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    pub fn moves_mut(&mut self) -> &mut Moves {
        &mut self.moves
    }

    /// A number that changes with every append, label and move.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Replaces `former` after a reload. The new revisions differ from all revisions of `former`.
    pub fn take_place_of(&mut self, former: &Tree) {
        self.revision += former.revision + 1;
        self.origin = self.revision;
    }

    /// A number that changes when bodies change. While it stays the same, entries are only added, so facts that were
    /// read from bodies stay valid. A tree that replaces another tree has another origin.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Inserts a line; `line` counts from 1. There must not be a node with this `id` yet (if there is, see
    /// [`Tree::replace_body`]). `None` if the tree is full: 2^32 − 1 nodes or 4 GiB of ids.
    pub fn insert(
        &mut self,
        id: &str,
        parent: &Parent<'_>,
        envelope: &Envelope<'_>,
        place: FilePlace,
        flags: Flags,
        line: u64,
    ) -> Option<Insertion> {
        let hash = self.hasher.hash(id);
        let node = self.add(id, hash, envelope.kind, place, flags)?;
        let refused = if envelope.kind == Kind::LeafRecord {
            self.leaf_records += 1;
            for referrer in self.waiting_references.remove(id).unwrap_or_default() {
                steps::count(1);
                self.row_mut(referrer).flags.set(Flags::STALE_REFERENCE);
            }
            self.link_record(node, id, parent, line)
        } else {
            self.link_entry(node, id, parent, line)
        };
        self.row_mut(node).flags.set(refused);
        self.take_facts(node, envelope);
        self.adopt_label(node, id);
        self.open_at(node);
        self.revision += 1;
        Some(Insertion { node, refused })
    }

    /// Like [`Tree::insert`], for an entry that has only plain facts. The caller also passes the hash of its id.
    pub fn insert_plain(
        &mut self,
        (id, hash): (&str, IdHash),
        parent: &Parent<'_>,
        facts: &PlainFacts,
        place: FilePlace,
        flags: Flags,
        line: u64,
    ) -> Option<Insertion> {
        let node = self.add(id, hash, facts.kind, place, flags)?;
        let refused = self.link_entry(node, id, parent, line);
        let row = self.row_mut(node);
        row.flags.set(refused);
        row.flags.set(facts.flags);
        row.timestamp = facts.timestamp;
        row.role = facts.role;
        self.adopt_label(node, id);
        self.last = Some(node);
        self.revision += 1;
        Some(Insertion { node, refused })
    }

    /// Reserves room for `more` entries. This is a hint, and it is limited.
    pub fn reserve(&mut self, more: u64) {
        /// The most entries for which room is reserved, as a multiple of the number of nodes.
        const MOST: usize = 64;
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        let more = more.min(MOST * self.rows.len());
        let (hasher, rows, ids) = (&self.hasher, &self.rows, &self.ids);
        if self.by_id.capacity() - self.by_id.len() < more {
            self.by_id
                .reserve(more, |&at| hash_at(hasher, rows, ids, at));
        }
    }

    /// Loads the table slots of these hashes into the cache of the processor. Separate look-ups would each wait for
    /// memory; loaded together, they wait once.
    pub fn prefetch(&self, hashes: impl Iterator<Item = IdHash>) {
        let found = hashes.filter(|hash| self.by_id.find(hash.wide(), |_| false).is_some());
        std::hint::black_box(found.count());
    }

    /// Like [`Tree::insert`], for the copy of an entry of another tree. The parent of the copy is a node of this tree;
    /// with `None` the copy is a root. Returns `None` if the tree is full.
    pub fn insert_copy(
        &mut self,
        id: &str,
        parent: Option<Node>,
        facts: PlainFacts,
        place: FilePlace,
    ) -> Option<Node> {
        let hash = self.hasher.hash(id);
        let node = self.add(id, hash, facts.kind, place, facts.flags)?;
        match parent {
            Some(parent) => self.link(node, parent),
            None => self.roots.push(node.0),
        }
        let row = self.row_mut(node);
        row.timestamp = facts.timestamp;
        row.role = facts.role;
        self.adopt_label(node, id);
        self.last = Some(node);
        self.revision += 1;
        Some(node)
    }

    /// Adds a row and its id, without links and facts.
    fn add(
        &mut self,
        id: &str,
        hash: IdHash,
        kind: Kind,
        place: FilePlace,
        flags: Flags,
    ) -> Option<Node> {
        let number = u32::try_from(self.rows.len()).ok().filter(|n| *n != NONE)?;
        let id_at = u32::try_from(self.ids.len()).ok()?;
        // An image stores the length of an id in 16 bits.
        u16::try_from(id.len()).ok()?;
        self.children.add();
        self.rows.push(NodeRow {
            offset: place.offset,
            timestamp: NO_TIME,
            len: place.len,
            parent: NONE,
            id_at,
            flags,
            kind,
            role: Role::None,
        });
        self.ids.extend_from_slice(id.as_bytes());
        let (hasher, rows, ids) = (&self.hasher, &self.rows, &self.ids);
        self.by_id
            .insert_unique(hash.wide(), number, |&at| hash_at(hasher, rows, ids, at));
        Some(Node(number))
    }

    /// Replaces the body of `node` with the body of a later line that has the same id and other bytes. The node keeps
    /// its order and its parent (session-file.md §2). If the line or the node is a leaf record, only the flag
    /// `DUPLICATE_ID` is set.
    pub fn replace_body(&mut self, node: Node, envelope: &Envelope<'_>, place: FilePlace) {
        let both_entries = envelope.kind != Kind::LeafRecord && self.kind(node) != Kind::LeafRecord;
        if both_entries {
            self.withdraw_label(node);
            let row = self.row_mut(node);
            row.offset = place.offset;
            row.len = place.len;
            row.kind = envelope.kind;
            row.role = Role::None;
            for stale in [
                Flags::HIDDEN,
                Flags::ERROR,
                Flags::SILENT,
                Flags::MERGE,
                Flags::ODD_TIMESTAMP,
                Flags::STAYS,
            ] {
                row.flags.clear(stale);
            }
            row.flags.set(Flags::REPARENTED);
            self.take_facts(node, envelope);
        }
        self.row_mut(node).flags.set(Flags::DUPLICATE_ID);
        if envelope.background.is_none() {
            self.last = Some(node);
        }
        self.revision += 1;
        if both_entries {
            self.origin = self.revision;
        }
    }
}
