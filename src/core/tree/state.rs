//! The data of a tree.

use super::born::Born;
use super::children::Children;
use super::ids::IdHasher;
use super::lineage::Lineage;
use super::marks::Marks;
use super::moves::Moves;
use super::node::{Label, Node, NodeRow};
use super::waiting::{LinkReport, Waiters};
use hashbrown::{HashMap, HashTable};

#[derive(Default)]
pub struct Tree {
    pub(super) rows: Vec<NodeRow>,
    pub(super) children: Children,
    /// The ids of all rows, one after the other.
    pub(super) ids: Vec<u8>,
    pub(super) by_id: HashTable<u32>,
    pub(super) hasher: IdHasher,
    /// Nodes that had no parent when they were read, in the order in which they were read. Some of these nodes have a
    /// parent now; readers skip these.
    pub(super) roots: Vec<u32>,
    /// Nodes whose parent has not been read, and leaf records whose position has not been read.
    pub(super) waiting: Waiters,
    pub(super) forward_links: Vec<LinkReport>,
    pub(super) lineage: Lineage,
    pub(super) labels: HashMap<Node, Label>,
    /// For each label in force: its `label` entry, and the labelled node.
    pub(super) labelled: HashMap<Node, Node>,
    /// Labels whose target has not been read.
    pub(super) waiting_labels: HashMap<Box<str>, Option<Label>>,
    /// For each waiting label: its `label` entry, and the id of its target.
    pub(super) awaited_targets: HashMap<Node, Box<str>>,
    /// Entries that refer to an entry that has not been read, by its id. The id may turn out to be the id of a leaf
    /// record.
    pub(super) waiting_references: HashMap<Box<str>, Vec<Node>>,
    pub(super) name: Option<Box<str>>,
    pub(super) marks: Marks,
    pub(super) born: Born,
    pub(super) leaf_records: u32,
    pub(super) leaf: Option<Node>,
    pub(super) last: Option<Node>,
    pub(super) moves: Moves,
    pub(super) revision: u64,
    pub(super) origin: u64,
}
