//! The tree of one session in memory: parents, children, leaf, labels, paths, common ancestors.
//!
//! Pure: no I/O, no clock, no JSON. Bodies stay in the file; a node knows where its line stands. Fed
//! line by line in file order, which is the only order there is (storage.md §2). Nothing here
//! recurses, and no walk can meet a node twice, because a link that would close a cycle is never
//! made.

pub mod below;
pub mod branches;
mod children;
pub mod image;
mod lineage;
mod moves;
mod steps;
#[cfg(test)]
mod tests;
mod waiting;

pub use moves::{Cause, Move, Moves, Position};

use crate::entry::{Envelope, Facts, Kind, Parent, Role};
use crate::name;
use crate::timestamp::{self, Millis};
use children::Children;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use lineage::Lineage;
use std::hash::BuildHasher;
use waiting::Waiters;

/// An entry (or leaf record) of one tree: its number in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(u32);

impl Node {
    /// Its number in file order, leaf records counted.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

const NONE: u32 = u32::MAX;
/// Marks a timestamp that names no instant.
const NO_TIME: Millis = Millis::MIN;

/// Where a line stands in the file, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePlace {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// What is noteworthy about a node; a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u16);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// Its parent is unknown.
    pub const ORPHAN: Flags = Flags(1);
    /// Its parent stands later in the file.
    pub const FORWARD_PARENT: Flags = Flags(1 << 1);
    pub const SELF_PARENT: Flags = Flags(1 << 2);
    /// Its parent link would have closed a cycle.
    pub const CYCLE: Flags = Flags(1 << 3);
    /// Another line has the same id and other bytes.
    pub const DUPLICATE_ID: Flags = Flags(1 << 4);
    /// LeafPosition on a damaged line.
    pub const RECOVERED: Flags = Flags(1 << 5);
    pub const INVALID_UTF8: Flags = Flags(1 << 6);
    /// A custom_message with `display:false`.
    pub const HIDDEN: Flags = Flags(1 << 7);
    /// A failed tool result, assistant message or command.
    pub const ERROR: Flags = Flags(1 << 8);
    /// An assistant message without text that did not end early.
    pub const SILENT: Flags = Flags(1 << 9);
    /// Appended by another process after this one opened the session.
    pub const FOREIGN: Flags = Flags(1 << 10);
    /// Its stored parent is not the parent it has here: what is delivered carries the latter.
    pub const REPARENTED: Flags = Flags(1 << 11);
    /// A branch_summary with `merge:true`.
    pub const MERGE: Flags = Flags(1 << 12);
    /// Its timestamp is not in the form this program writes, so rows show the stored text.
    pub const ODD_TIMESTAMP: Flags = Flags(1 << 13);
    /// One of its references names a leaf record: what is delivered carries the resolved one.
    pub const STALE_REFERENCE: Flags = Flags(1 << 14);

    /// The names that clients see (`flags` of protocol.md §6).
    const NAMES: [(Flags, &'static str); 7] = [
        (Flags::ORPHAN, "orphan"),
        (Flags::FORWARD_PARENT, "forwardParent"),
        (Flags::SELF_PARENT, "selfParent"),
        (Flags::CYCLE, "cycle"),
        (Flags::DUPLICATE_ID, "duplicateId"),
        (Flags::RECOVERED, "recovered"),
        (Flags::INVALID_UTF8, "invalidUtf8"),
    ];

    pub const fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }
    pub fn set(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }
    pub fn clear(&mut self, flag: Flags) {
        self.0 &= !flag.0;
    }
    #[must_use]
    pub const fn with(self, flag: Flags) -> Flags {
        Flags(self.0 | flag.0)
    }
    /// The flags a client is told of.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .iter()
            .filter(move |(flag, _)| self.has(*flag))
            .map(|(_, name)| *name)
    }
}

/// 32 bytes an entry, the id's bytes and [`Children`] aside.
struct Row {
    offset: u64,
    timestamp: Millis,
    len: u32,
    /// The parent, leaf records resolved; [`NONE`] at a root.
    parent: u32,
    /// Where its id starts; the next row's starts where it ends.
    id_at: u32,
    flags: Flags,
    kind: Kind,
    role: Role,
}

/// A label in force.
#[derive(Debug, Clone)]
pub struct Label {
    /// Normalized.
    pub text: Box<str>,
    /// The `label` entry it comes from, whose timestamp is the label's.
    pub entry: Node,
}

/// A node whose parent has not turned up.
#[derive(Clone, Copy)]
struct Waiting {
    node: Node,
    line: u64,
}

/// What a node waits for.
enum Awaited<'a> {
    /// An entry with this id.
    Id(&'a str),
    /// What this leaf record waits for.
    AsRecord(Node),
}

/// What became of an inserted line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inserted {
    pub node: Node,
    /// `SELF_PARENT` or `CYCLE`, where its own link was refused.
    pub refused: Flags,
}

/// What a row says of an entry by itself: it holds for a copy in another tree, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    kind: Kind,
    role: Role,
    timestamp: Millis,
    flags: Flags,
}

impl Copied {
    /// `None` for entries that name others besides their parent: there is more to them.
    pub fn of(envelope: &Envelope<'_>) -> Option<Self> {
        is_plain(envelope.kind).then(|| Self::part_of(envelope))
    }

    /// Of any entry.
    fn part_of(envelope: &Envelope<'_>) -> Self {
        let timestamp = envelope.timestamp.as_deref();
        let (timestamp, canonical) = timestamp
            .and_then(timestamp::parse_exact)
            .unwrap_or((NO_TIME, false));
        let mut flags = Flags::NONE;
        let mut role = Role::None;
        if !canonical {
            flags.set(Flags::ODD_TIMESTAMP);
        }
        match envelope.facts {
            Facts::Message {
                role: its,
                silent,
                is_error,
                ..
            } => {
                role = its;
                if silent {
                    flags.set(Flags::SILENT);
                }
                if is_error {
                    flags.set(Flags::ERROR);
                }
            }
            Facts::CustomMessage { display: false } => flags.set(Flags::HIDDEN),
            _ => {}
        }
        Self {
            kind: envelope.kind,
            role,
            timestamp,
            flags,
        }
    }
}

/// Whether entries of this kind name no others but their parent.
fn is_plain(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Message
            | Kind::ThinkingLevelChange
            | Kind::ModelChange
            | Kind::Custom
            | Kind::CustomMessage
            | Kind::Usage
            | Kind::Unknown
    )
}

/// How a tree hashes ids: to be had by threads that do it ahead.
#[derive(Clone, Default)]
pub struct IdHasher(DefaultHashBuilder);

impl IdHasher {
    #[inline]
    pub fn hash(&self, id: &str) -> IdHash {
        self.hash_bytes(id.as_bytes())
    }

    #[inline]
    fn hash_bytes(&self, id: &[u8]) -> IdHash {
        IdHash(self.0.hash_one(id) as u32)
    }
}

/// The hash of an id in one tree; of half the usual size, since many are kept for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdHash(u32);

impl IdHash {
    /// As a table wants it: different in its low bits and in its high ones.
    #[inline]
    fn wide(self) -> u64 {
        u64::from(self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A parent link that deserves a diagnostic once the whole file has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkReport {
    pub node: Node,
    /// From 1.
    pub line: u64,
    /// `ORPHAN`, `FORWARD_PARENT` or `CYCLE`.
    pub flag: Flags,
}

#[derive(Default)]
pub struct Tree {
    rows: Vec<Row>,
    children: Children,
    /// Of all rows, one behind the other.
    ids: Vec<u8>,
    by_id: HashTable<u32>,
    hasher: IdHasher,
    /// Every node that was ever without a parent, in the order it became known; those adopted
    /// since are passed over.
    roots: Vec<u32>,
    /// Nodes whose parent has not turned up, and leaf records whose position has not.
    waiting: Waiters,
    forward_links: Vec<LinkReport>,
    lineage: Lineage,
    labels: HashMap<Node, Label>,
    /// `label` entries of the labels in force → what they label.
    labelled: HashMap<Node, Node>,
    /// Labels whose target has not turned up.
    waiting_labels: HashMap<Box<str>, Option<Label>>,
    /// Entries by the id they refer to, where it has not turned up: it may be a leaf record's.
    waiting_references: HashMap<Box<str>, Vec<Node>>,
    name: Option<Box<str>>,
    leaf_records: u32,
    leaf: Option<Node>,
    last: Option<Node>,
    moves: Moves,
    revision: u64,
    origin: u64,
}

impl Tree {
    pub fn new() -> Self {
        Self::default()
    }

    /// With room for this many entries, whose ids have so many bytes together.
    pub fn with_room(entries: usize, id_bytes: usize) -> Self {
        Self {
            rows: Vec::with_capacity(entries),
            ids: Vec::with_capacity(id_bytes),
            by_id: HashTable::with_capacity(entries),
            ..Self::default()
        }
    }

    /// Entries, leaf records left out.
    pub fn entry_count(&self) -> usize {
        self.rows.len() - self.leaf_records as usize
    }

    /// Nodes, leaf records counted.
    pub fn node_count(&self) -> usize {
        self.rows.len()
    }

    pub fn has_leaf_records(&self) -> bool {
        self.leaf_records > 0
    }

    /// The nodes in file order, leaf records left out.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Node> + '_ {
        self.entries_from(0)
    }

    /// The entries from this number in file order on.
    pub fn entries_from(&self, first: usize) -> impl DoubleEndedIterator<Item = Node> + '_ {
        (first..self.rows.len())
            .map(|number| Node(number as u32))
            .filter(|node| self.kind(*node) != Kind::LeafRecord)
    }

    /// The node at this number in file order.
    pub fn node(&self, number: usize) -> Option<Node> {
        (number < self.rows.len()).then_some(Node(number as u32))
    }

    // A node is only made by the tree it indexes, and rows are never removed.
    #[allow(clippy::indexing_slicing)]
    fn row(&self, node: Node) -> &Row {
        &self.rows[node.number()]
    }

    #[allow(clippy::indexing_slicing)]
    fn row_mut(&mut self, node: Node) -> &mut Row {
        &mut self.rows[node.number()]
    }

    pub fn id(&self, node: Node) -> &str {
        std::str::from_utf8(self.id_bytes(node)).unwrap_or_default()
    }

    /// As [`Tree::id`], for who has no need to know that it is text.
    pub fn id_bytes(&self, node: Node) -> &[u8] {
        id_of(&self.rows, &self.ids, node.0).unwrap_or_default()
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

    /// Unix milliseconds; `None` where the stored text names no instant.
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

    /// As [`Tree::find_any`], with the hash that [`Tree::id_hasher`] says.
    pub fn find_hashed(&self, id: &str, hash: IdHash) -> Option<Node> {
        self.by_id
            .find(hash.wide(), |&at| self.id_bytes(Node(at)) == id.as_bytes())
            .map(|&at| Node(at))
    }

    pub fn id_hasher(&self) -> &IdHasher {
        &self.hasher
    }

    /// What a stored reference to `id` means: a leaf record stands for its resolved parent
    /// (storage.md §4). `None` if nothing has this id.
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

    /// Root to node.
    pub fn path(&self, node: Option<Node>) -> Vec<Node> {
        let mut path: Vec<Node> = self.ancestors(node).collect();
        path.reverse();
        path
    }

    /// The deepest node that is an ancestor of both, or one of them; `None` if there is none.
    pub fn common_ancestor(&self, a: Option<Node>, b: Option<Node>) -> Option<Node> {
        self.nearby_ancestor(a, b)
            .unwrap_or_else(|| self.common_ancestor_by_depth(a, b))
    }

    /// The same in as many steps as it is away: the later one in the file cannot stand above the other,
    /// so it goes up. `None` where a parent on the way stands behind its child.
    fn nearby_ancestor(&self, a: Option<Node>, b: Option<Node>) -> Option<Option<Node>> {
        // From 1 on; 0 is above all roots.
        let number = |node: Option<Node>| raw(node).wrapping_add(1);
        let (mut one, mut other) = (number(a), number(b));
        while one != other {
            (one, other) = (one.max(other), one.min(other));
            while one > other {
                let above = number(self.parent(Node(one - 1)));
                if above >= one {
                    return None;
                }
                one = above;
            }
        }
        Some(some(one.wrapping_sub(1)))
    }

    fn common_ancestor_by_depth(&self, a: Option<Node>, b: Option<Node>) -> Option<Node> {
        let (depth_a, depth_b) = (self.ancestors(a).count(), self.ancestors(b).count());
        let a = self.ancestors(a).skip(depth_a.saturating_sub(depth_b));
        let b = self.ancestors(b).skip(depth_b.saturating_sub(depth_a));
        a.zip(b).find(|(a, b)| a == b).map(|(a, _)| a)
    }

    /// The common ancestor of `tip` and `other`, and the path from behind it to `tip`.
    pub fn branch(&self, tip: Option<Node>, other: Option<Node>) -> (Option<Node>, Vec<Node>) {
        let (ancestor, mut branch) = self.nearby_branch(tip, other).unwrap_or_else(|| {
            let ancestor = self.common_ancestor_by_depth(tip, other);
            let path = self.ancestors(tip);
            let branch = path.take_while(|node| Some(*node) != ancestor);
            (ancestor, branch.collect())
        });
        branch.reverse();
        (ancestor, branch)
    }

    /// The same, from `tip` up and in one walk, as [`Tree::nearby_ancestor`] does it.
    fn nearby_branch(
        &self,
        tip: Option<Node>,
        other: Option<Node>,
    ) -> Option<(Option<Node>, Vec<Node>)> {
        // From 1 on; 0 is above all roots.
        let number = |node: Option<Node>| raw(node).wrapping_add(1);
        let above = |of: u32| Some(number(self.parent(Node(of - 1)))).filter(|above| *above < of);
        let (mut own, mut across) = (number(tip), number(other));
        let mut branch = Vec::new();
        while own != across {
            while across > own {
                across = above(across)?;
            }
            while own > across {
                branch.push(Node(own - 1));
                own = above(own)?;
            }
        }
        Some((some(own.wrapping_sub(1)), branch))
    }

    /// Whether `ancestor` is `node` or stands above it.
    pub fn is_ancestor(&self, ancestor: Node, node: Node) -> bool {
        self.ancestors(Some(node)).any(|above| above == ancestor)
    }

    /// The position without the labels and session_info entries it ends in: two positions with the
    /// same conversation settle at the same node.
    pub fn skip_bookkeeping(&self, position: Option<Node>) -> Option<Node> {
        self.ancestors(position)
            .find(|node| !matches!(self.kind(*node), Kind::Label | Kind::SessionInfo))
    }

    /// Whether two positions settle at the same node.
    pub fn is_same_conversation(&self, a: Option<Node>, b: Option<Node>) -> bool {
        a == b || self.skip_bookkeeping(a) == self.skip_bookkeeping(b)
    }

    /// The children (of `None`: the roots), oldest first by timestamp, ties in file order.
    pub fn children(&self, node: Option<Node>) -> Vec<Node> {
        let mut children = Vec::new();
        self.children_into(node, &mut children);
        children
    }

    /// As [`Tree::children`], in a buffer to be used again.
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

    /// Its child, if it has exactly one, as most have.
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

    /// The session's name: the last `session_info` in file order.
    /// Names the session as its header does; an entry that names it counts before that.
    pub fn set_title(&mut self, title: &str) {
        self.name = Some(title)
            .filter(|title| !title.is_empty())
            .map(Into::into);
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where this daemon stands.
    pub fn leaf(&self) -> Option<Node> {
        self.leaf
    }

    pub fn set_leaf(&mut self, leaf: Option<Node>) {
        self.leaf = leaf;
        self.revision += 1;
    }

    /// Where opening the file now would stand: the last line decides (storage.md §4).
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

    /// Changes with every append, label and move.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Never has a revision again that `former` has had.
    pub fn take_place_of(&mut self, former: &Tree) {
        self.revision += former.revision + 1;
        self.origin = self.revision;
    }

    /// While it stays the same, entries are only ever added: what has been found out of those that were
    /// there still holds of their bodies. Another one than that of any tree whose place this one has taken.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// The parent links to report after the whole file was read: forward links made, and nodes
    /// that still wait for their parent. In file order.
    pub fn link_reports(&self) -> Vec<LinkReport> {
        let orphans = self.waiting.groups().flat_map(|(_, waiting)| waiting);
        let orphans = orphans.map(|waiting| LinkReport {
            node: waiting.node,
            line: waiting.line,
            flag: Flags::ORPHAN,
        });
        let mut reports: Vec<LinkReport> =
            orphans.chain(self.forward_links.iter().copied()).collect();
        reports.sort_by_key(|report| (report.line, report.node));
        reports
    }

    /// Takes a line in. `id` must not be taken (see [`Tree::replace_body`]); `line` counts from 1.
    /// `None` if the tree is full: 2^32 − 1 nodes or 4 GiB of ids.
    pub fn insert(
        &mut self,
        id: &str,
        parent: &Parent<'_>,
        envelope: &Envelope<'_>,
        place: FilePlace,
        flags: Flags,
        line: u64,
    ) -> Option<Inserted> {
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
        self.last = Some(node);
        self.revision += 1;
        Some(Inserted { node, refused })
    }

    /// As [`Tree::insert`], for an entry of which nothing else is to be kept, the hash of its id known.
    pub fn insert_plain(
        &mut self,
        (id, hash): (&str, IdHash),
        parent: &Parent<'_>,
        facts: &Copied,
        place: FilePlace,
        flags: Flags,
        line: u64,
    ) -> Option<Inserted> {
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
        Some(Inserted { node, refused })
    }

    /// Makes room for about so many more: a guess, which is not believed far.
    pub fn reserve(&mut self, more: u64) {
        /// Times what is there.
        const FAR: usize = 64;
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        let more = more.min(FAR * self.rows.len());
        let (hasher, rows, ids) = (&self.hasher, &self.rows, &self.ids);
        if self.by_id.capacity() - self.by_id.len() < more {
            self.by_id
                .reserve(more, |&at| hash_at(hasher, rows, ids, at));
        }
    }

    /// Looks where ids of these hashes stand or would. One after the other each would have to wait for
    /// the memory; looked at together they wait together, and are near when they are asked for.
    pub fn prefetch(&self, hashes: impl Iterator<Item = IdHash>) {
        let found = hashes.filter(|hash| self.by_id.find(hash.wide(), |_| false).is_some());
        std::hint::black_box(found.count());
    }

    /// As [`Tree::insert`], for a copy of an entry of another tree below one that is here already
    /// (`None`: at the root). `None` if the tree is full.
    pub fn insert_copy(
        &mut self,
        id: &str,
        parent: Option<Node>,
        facts: Copied,
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

    /// What a copy of this entry needs no second look at its line for; `None` for entries that name
    /// others, and for those that are not as they stand in the file.
    pub fn copied(&self, node: Node) -> Option<Copied> {
        let row = self.row(node);
        let is_as_stored = [Flags::DUPLICATE_ID, Flags::RECOVERED, Flags::INVALID_UTF8];
        let is_as_stored = is_as_stored.iter().all(|flag| !row.flags.has(*flag));
        let mut flags = Flags::NONE;
        for flag in [
            Flags::HIDDEN,
            Flags::ERROR,
            Flags::SILENT,
            Flags::ODD_TIMESTAMP,
        ] {
            if row.flags.has(flag) {
                flags.set(flag);
            }
        }
        (is_plain(row.kind) && is_as_stored).then_some(Copied {
            kind: row.kind,
            role: row.role,
            timestamp: row.timestamp,
            flags,
        })
    }

    /// A row and its id, without links and facts.
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
        // An image has no room for a longer one.
        u16::try_from(id.len()).ok()?;
        self.children.add();
        self.rows.push(Row {
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

    /// A later line with the id of `node` and other bytes: its body counts, with the first one's
    /// place in the order and the first one's parent (storage.md §2). Nothing changes if one of the
    /// two is a leaf record.
    pub fn replace_body(&mut self, node: Node, envelope: &Envelope<'_>, place: FilePlace) {
        let both_entries = envelope.kind != Kind::LeafRecord && self.kind(node) != Kind::LeafRecord;
        if both_entries {
            if let Some(target) = self.labelled.remove(&node) {
                self.labels.remove(&target);
            }
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
            ] {
                row.flags.clear(stale);
            }
            row.flags.set(Flags::REPARENTED);
            self.take_facts(node, envelope);
        }
        self.row_mut(node).flags.set(Flags::DUPLICATE_ID);
        self.last = Some(node);
        self.revision += 1;
        if both_entries {
            self.origin = self.revision;
        }
    }

    fn take_facts(&mut self, node: Node, envelope: &Envelope<'_>) {
        if let Some(id) = reference(&envelope.facts) {
            self.note_reference(node, id);
        }
        let part = Copied::part_of(envelope);
        let row = self.row_mut(node);
        row.timestamp = part.timestamp;
        row.role = part.role;
        row.flags.set(part.flags);
        match &envelope.facts {
            Facts::BranchSummary { from_id, merge } => {
                if *merge {
                    row.flags.set(Flags::MERGE);
                }
                let from = self.moved_from(from_id.as_deref(), "root");
                let at_its_own_parent = from == self.parent(node).into();
                if !merge && !at_its_own_parent && from_id.is_some() {
                    self.moves.note(Move {
                        at: node,
                        from,
                        to: Position::At(node),
                        cause: Cause::NavigateTree,
                    });
                }
            }
            Facts::LeafRecord { from, cause } => {
                let from = self.moved_from(from.as_deref(), "");
                self.moves.note(Move {
                    at: node,
                    from,
                    to: self.parent(node).into(),
                    cause: cause.as_deref().map_or(Cause::SetLeaf, Cause::parse),
                });
            }
            Facts::Label { target_id, label } => {
                let label = label.as_deref().and_then(name::given).map(|text| Label {
                    text: text.into(),
                    entry: node,
                });
                if let Some(target_id) = target_id {
                    match self.resolve(target_id) {
                        Some(Some(target)) => self.put_label(target, label),
                        Some(None) => {}
                        None => {
                            self.waiting_labels.insert(target_id.as_ref().into(), label);
                        }
                    }
                }
            }
            Facts::SessionInfo { name } => {
                self.name = name.as_deref().and_then(name::given).map(Into::into);
            }
            Facts::Message { .. }
            | Facts::CustomMessage { .. }
            | Facts::Compaction { .. }
            | Facts::ContextEdit { .. }
            | Facts::None => {}
        }
    }

    /// Notes what else than its parent an entry names: a leaf record is resolved when the entry is
    /// handed out (storage.md §4).
    fn note_reference(&mut self, node: Node, id: &str) {
        match self.find_any(id) {
            Some(named) if self.kind(named) == Kind::LeafRecord => {
                self.row_mut(node).flags.set(Flags::STALE_REFERENCE);
            }
            Some(_) => {}
            None => self
                .waiting_references
                .entry_ref(id)
                .or_default()
                .push(node),
        }
    }

    /// A position named by a move; `root` is the word that stands for the empty position.
    fn moved_from(&self, id: Option<&str>, root: &str) -> Position {
        match id {
            None => Position::Root,
            Some(id) if id == root && self.find_any(id).is_none() => Position::Root,
            Some(id) => match self.resolve(id) {
                Some(position) => position.into(),
                None => Position::Gone,
            },
        }
    }

    fn put_label(&mut self, target: Node, label: Option<Label>) {
        let entry = label.as_ref().map(|label| label.entry);
        let former = match label {
            Some(label) => self.labels.insert(target, label),
            None => self.labels.remove(&target),
        };
        if let Some(former) = former {
            self.labelled.remove(&former.entry);
        }
        if let Some(entry) = entry {
            self.labelled.insert(entry, target);
        }
    }

    fn adopt_label(&mut self, node: Node, id: &str) {
        if self.waiting_labels.is_empty() {
            return;
        }
        if let Some(label) = self.waiting_labels.remove(id)
            && let Some(target) = self.resolve_node(node)
        {
            self.put_label(target, label);
        }
    }

    fn link_entry(&mut self, node: Node, id: &str, parent: &Parent<'_>, line: u64) -> Flags {
        // Whoever waited for this entry is linked first: then only the entry's own link can close
        // a cycle, and every cycle is cut at its last line in file order.
        let adopted = self.adopt(id, Some(node));
        let parent_id = match parent {
            Parent::Absent | Parent::Null => {
                self.roots.push(node.0);
                return Flags::NONE;
            }
            Parent::Id(parent_id) if **parent_id == *id => {
                self.roots.push(node.0);
                return Flags::SELF_PARENT;
            }
            Parent::Id(parent_id) => parent_id,
        };
        // Most entries hang on the line before theirs.
        let before = self
            .last
            .filter(|last| self.id_bytes(*last) == parent_id.as_bytes());
        let Some(named) = before.or_else(|| self.find_any(parent_id)) else {
            self.wait(node, Awaited::Id(parent_id), line);
            return Flags::NONE;
        };
        if self.kind(named) == Kind::LeafRecord {
            self.row_mut(node).flags.set(Flags::REPARENTED);
            if self.waiting.is_waiting(named) {
                self.wait(node, Awaited::AsRecord(named), line);
                return Flags::NONE;
            }
        }
        let Some(parent) = self.resolve_node(named) else {
            self.roots.push(node.0);
            return Flags::NONE;
        };
        if adopted && self.lineage_root(parent) == node {
            self.roots.push(node.0);
            return Flags::CYCLE;
        }
        self.link(node, parent);
        Flags::NONE
    }

    /// A leaf record's parent is the position it stands for; it is nobody's child.
    fn link_record(&mut self, record: Node, id: &str, parent: &Parent<'_>, line: u64) -> Flags {
        let mut target = None;
        let mut missing = None;
        if let Parent::Id(parent_id) = parent
            && **parent_id != *id
        {
            match self.find_any(parent_id) {
                Some(named) if self.waiting.is_waiting(named) => {
                    missing = Some(Awaited::AsRecord(named));
                }
                Some(named) => target = self.resolve_node(named),
                None => missing = Some(Awaited::Id(parent_id)),
            }
        }
        match missing {
            Some(missing) => {
                self.wait(record, missing, line);
                // What waited for the record now waits with it.
                for waiting in self.waiting.hand_on(id, record) {
                    self.row_mut(waiting.node).flags.set(Flags::REPARENTED);
                }
            }
            None => {
                self.row_mut(record).parent = raw(target);
                self.adopt(id, target);
            }
        }
        match parent {
            Parent::Id(parent_id) if **parent_id == *id => Flags::SELF_PARENT,
            _ => Flags::NONE,
        }
    }

    /// Keeps `node` until what it waits for turns up.
    fn wait(&mut self, node: Node, awaited: Awaited<'_>, line: u64) {
        let waiting = Waiting { node, line };
        let is_record = self.kind(node) == Kind::LeafRecord;
        match awaited {
            Awaited::Id(id) => {
                self.waiting.wait(id, waiting);
                if is_record {
                    self.waiting.record_waits(node, id);
                }
            }
            Awaited::AsRecord(record) => {
                self.waiting.wait_with(record, waiting);
                if is_record {
                    self.waiting.record_waits_with(node, record);
                }
            }
        }
        if !is_record {
            self.roots.push(node.0);
        }
        self.row_mut(node).flags.set(Flags::ORPHAN);
    }

    /// Links everything that waited for `id` below `parent`; whether there was anything.
    fn adopt(&mut self, id: &str, parent: Option<Node>) -> bool {
        let Some(list) = self.waiting.adopt(id) else {
            return false;
        };
        let through_record = parent.is_none_or(|parent| self.id(parent) != id);
        for Waiting { node, line } in list {
            steps::count(1);
            let row = self.row_mut(node);
            row.flags.clear(Flags::ORPHAN);
            if through_record {
                row.flags.set(Flags::REPARENTED);
            }
            if row.kind == Kind::LeafRecord {
                row.parent = raw(parent);
                self.waiting.has_been_adopted(node);
                continue;
            }
            row.flags.set(Flags::FORWARD_PARENT);
            self.forward_links.push(LinkReport {
                node,
                line,
                flag: Flags::FORWARD_PARENT,
            });
            match parent {
                Some(parent) if self.lineage_root(parent) == node => {
                    self.row_mut(node).flags.set(Flags::CYCLE);
                    self.forward_links.push(LinkReport {
                        node,
                        line,
                        flag: Flags::CYCLE,
                    });
                }
                Some(parent) => self.link(node, parent),
                None => {}
            }
        }
        true
    }

    fn link(&mut self, node: Node, parent: Node) {
        self.row_mut(node).parent = parent.0;
        self.children.link(node.0, parent.0);
    }

    /// The root above `node`.
    fn lineage_root(&mut self, node: Node) -> Node {
        let rows = &self.rows;
        let parent = |at: u32| rows.get(at as usize).map_or(NONE, |row| row.parent);
        Node(self.lineage.root(node.0, parent))
    }
}

/// The id that an entry names besides its parent's.
fn reference<'a>(facts: &'a Facts<'_>) -> Option<&'a str> {
    match facts {
        Facts::BranchSummary { from_id, .. } => from_id.as_deref().filter(|id| *id != "root"),
        Facts::Label { target_id, .. } | Facts::ContextEdit { target_id } => target_id.as_deref(),
        Facts::Compaction {
            first_kept_entry_id,
            ..
        } => first_kept_entry_id.as_deref(),
        _ => None,
    }
}

/// The hash of the id of a row that is in the table already.
fn hash_at(hasher: &IdHasher, rows: &[Row], ids: &[u8], at: u32) -> u64 {
    let id = id_of(rows, ids, at);
    hasher.hash_bytes(id.unwrap_or_default()).wide()
}

fn id_of<'i>(rows: &[Row], ids: &'i [u8], at: u32) -> Option<&'i [u8]> {
    let at = at as usize;
    let start = rows.get(at)?.id_at as usize;
    let end = rows
        .get(at + 1)
        .map_or(ids.len(), |next| next.id_at as usize);
    ids.get(start..end)
}

fn some(at: u32) -> Option<Node> {
    (at != NONE).then_some(Node(at))
}

fn raw(node: Option<Node>) -> u32 {
    node.map_or(NONE, |node| node.0)
}
