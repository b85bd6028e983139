//! Finds the parent of each node. The parent may be in another member. Every node has one parent, and there are no
//! cycles.

use super::forest::{MemberNumber, Rules};
use super::identity::{NodeNumber, Nodes, node_of};
use crate::member::{Base, Member, Parent};
use hashbrown::{HashMap, HashSet};

/// The number of a gap.
pub(super) type GapNumber = usize;

/// The parent of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Root,
    Node(NodeNumber),
    Gap(GapNumber),
}

/// A parent that no source has.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) expected: Box<str>,
    /// The first member that names the parent.
    pub(super) member: MemberNumber,
    /// The node below which the gap is put. It is the node before the first node that names the missing parent.
    pub(super) after: Option<NodeNumber>,
}

#[derive(Default)]
pub(super) struct Links {
    /// The parent of each node.
    pub(super) up: Vec<Link>,
    pub(super) gaps: Vec<Gap>,
    /// For a member whose first node has no parent: the node below which it begins.
    pub(super) beginnings: HashMap<MemberNumber, NodeNumber>,
}

impl Links {
    pub(super) fn of(&self, shared: NodeNumber) -> Link {
        self.up.get(shared).copied().unwrap_or(Link::Root)
    }

    /// The nearest node above a node. Gaps are skipped.
    pub(super) fn node_above(&self, shared: NodeNumber) -> Option<NodeNumber> {
        match self.of(shared) {
            Link::Root => None,
            Link::Node(above) => Some(above),
            Link::Gap(gap) => self.gaps.get(gap)?.after,
        }
    }
}

pub(super) fn resolve(
    members: &[Member],
    order: &[MemberNumber],
    nodes: &Nodes,
    rules: &Rules<'_>,
) -> Links {
    let mut resolver = Resolver {
        members,
        nodes,
        has_shared_keys: rules.has_shared_keys,
        parts: parts(members, order),
        bases: HashMap::new(),
        gaps: HashMap::new(),
        links: Links::default(),
    };
    for (member, at) in &nodes.owners {
        let link = resolver.link(*member, *at);
        resolver.links.up.push(link);
    }
    for number in order {
        let is_empty = members.get(*number).is_some_and(|it| it.nodes.is_empty());
        if is_empty && let Beginning::At(shared) = resolver.beginning(*number) {
            resolver.links.beginnings.insert(*number, shared);
        }
    }
    let mut links = resolver.links;
    cut_circles(&mut links, members, nodes);
    links
}

/// The members by the id of their part. If several members have the same id, the first of them.
fn parts<'a>(members: &'a [Member], order: &[MemberNumber]) -> HashMap<&'a str, MemberNumber> {
    let mut parts = HashMap::new();
    for number in order {
        if let Some(member) = members.get(*number) {
            parts.entry(member.part_id.as_str()).or_insert(*number);
        }
    }
    parts
}

/// The position at which a member's own nodes begin.
#[derive(Debug, Clone)]
enum Beginning {
    Root,
    At(NodeNumber),
    /// The base is a part that no source has, or the parts form a cycle.
    Missing(Box<str>),
}

struct Resolver<'a> {
    members: &'a [Member],
    nodes: &'a Nodes,
    has_shared_keys: bool,
    parts: HashMap<&'a str, MemberNumber>,
    bases: HashMap<MemberNumber, Beginning>,
    /// The gaps, by the native session in which the parent is looked for (`None`: in all) and by the key of the
    /// parent.
    gaps: HashMap<(Option<&'a str>, Box<str>), GapNumber>,
    links: Links,
}

impl<'a> Resolver<'a> {
    fn link(&mut self, number: MemberNumber, at: usize) -> Link {
        let Some(member) = self.members.get(number) else {
            return Link::Root;
        };
        let Some(node) = member.nodes.get(at) else {
            return Link::Root;
        };
        match &node.parent {
            Parent::Base => match self.beginning(number) {
                Beginning::Root => Link::Root,
                Beginning::At(shared) => Link::Node(shared),
                Beginning::Missing(expected) => self.gap(number, at, expected),
            },
            Parent::Node(parent) => {
                let parent = usize::try_from(*parent).ok().filter(|parent| *parent < at);
                let of = self.nodes.of.get(number);
                let parent = parent.and_then(|parent| of?.get(parent).copied());
                // A parent that is a copy of the node itself is left out, because a node cannot be its own parent.
                match parent.filter(|parent| self.nodes.owners.get(*parent) != Some(&(number, at)))
                {
                    Some(parent) => Link::Node(parent),
                    None => Link::Root,
                }
            }
            Parent::Key(key) => match self.nodes.with_key(self.members, &member.native_id, key) {
                Some(shared) if self.nodes.owners.get(shared) != Some(&(number, at)) => {
                    Link::Node(shared)
                }
                _ => self.gap(number, at, key.clone()),
            },
        }
    }

    /// The position at which a member begins. A part may continue another part, so this follows the chain of bases.
    fn beginning(&mut self, number: MemberNumber) -> Beginning {
        if let Some(known) = self.bases.get(&number) {
            return known.clone();
        }
        let mut seen: HashSet<MemberNumber> = HashSet::new();
        let mut order_below = u64::MAX;
        let mut at = number;
        let found = loop {
            let Some(Base::Before { part_id, order }) = self.members.get(at).map(|it| &it.base)
            else {
                break Beginning::Root;
            };
            order_below = order_below.min(*order);
            let missing = || Beginning::Missing(format!("{part_id}#{order_below}").into());
            let Some(part) = self.parts.get(part_id.as_str()).copied() else {
                break missing();
            };
            if part == number || !seen.insert(part) {
                break missing();
            }
            if let Some(shared) = self.last_before(part, order_below) {
                break Beginning::At(shared);
            }
            at = part;
        };
        self.bases.insert(number, found.clone());
        found
    }

    /// The last node of a part whose order is less than `order`.
    fn last_before(&self, part: MemberNumber, order: u64) -> Option<NodeNumber> {
        let nodes = &self.members.get(part)?.nodes;
        let is_before = |node: &crate::member::Node| node.order < order;
        let count = match nodes.is_sorted_by_key(|node| node.order) {
            true => nodes.partition_point(is_before),
            false => nodes.iter().rposition(is_before).map_or(0, |at| at + 1),
        };
        self.nodes.of.get(part)?.get(count.checked_sub(1)?).copied()
    }

    /// The gap for a missing parent. All nodes that name this parent share it.
    fn gap(&mut self, number: MemberNumber, at: usize, expected: Box<str>) -> Link {
        let within = self.members.get(number).map(|member| &*member.native_id);
        let within = within.filter(|_| !self.has_shared_keys);
        let key = (within, expected.clone());
        if let Some(gap) = self.gaps.get(&key) {
            return Link::Gap(*gap);
        }
        let before = at.checked_sub(1);
        let of = self.nodes.of.get(number);
        let gaps = &mut self.links.gaps;
        gaps.push(Gap {
            expected,
            member: number,
            after: before.and_then(|before| of?.get(before).copied()),
        });
        self.gaps.insert(key, gaps.len() - 1);
        Link::Gap(gaps.len() - 1)
    }
}

/// Cuts each cycle at the node through which it is first entered. A gap there names the parent.
fn cut_circles(links: &mut Links, members: &[Member], nodes: &Nodes) {
    const NEW: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut state = vec![NEW; links.up.len()];
    for start in 0..links.up.len() {
        let mut path = Vec::new();
        let mut at = Some(start);
        while let Some(node) = at {
            match state.get(node).copied().unwrap_or(DONE) {
                NEW => {}
                OPEN => {
                    cut(links, members, nodes, node);
                    break;
                }
                _ => break,
            }
            if let Some(slot) = state.get_mut(node) {
                *slot = OPEN;
            }
            path.push(node);
            at = links.node_above(node);
        }
        for node in path {
            if let Some(slot) = state.get_mut(node) {
                *slot = DONE;
            }
        }
    }
}

fn cut(links: &mut Links, members: &[Member], nodes: &Nodes, node: NodeNumber) {
    let expected = match links.of(node) {
        Link::Gap(gap) => {
            // The parent of the gap itself closes the cycle, so the gap gets no parent.
            if let Some(gap) = links.gaps.get_mut(gap) {
                gap.after = None;
            }
            return;
        }
        Link::Node(parent) => node_of(nodes, members, parent).map(|parent| parent.key.clone()),
        Link::Root => None,
    };
    let member = nodes.owners.get(node).map(|(member, _)| *member);
    links.gaps.push(Gap {
        expected: expected.unwrap_or_default(),
        member: member.unwrap_or_default(),
        after: None,
    });
    let gap = links.gaps.len() - 1;
    if let Some(link) = links.up.get_mut(node) {
        *link = Link::Gap(gap);
    }
}
