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
    /// Nodes without a parent, in the order they were read. Some have got a parent since: readers skip
    /// these.
    pub(super) roots: Vec<u32>,
    /// Nodes whose parent has not been read, and leaf records whose position has not.
    pub(super) waiting: Waiters,
    pub(super) forward_links: Vec<LinkReport>,
    pub(super) lineage: Lineage,
    pub(super) labels: HashMap<Node, Label>,
    /// From the `label` entry of each label in force to the labelled node.
    pub(super) labelled: HashMap<Node, Node>,
    /// Labels whose target has not been read.
    pub(super) waiting_labels: HashMap<Box<str>, Option<Label>>,
    /// From the `label` entry of each of those to the id of its target.
    pub(super) awaited_targets: HashMap<Node, Box<str>>,
    /// Entries by the id they refer to, where that has not been read: it may be a leaf record's.
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
