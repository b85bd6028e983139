//! Moves parents before their children.

use crate::member::{Member, Node, NodeKind, Parent};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Sorts the nodes of a member so that parents come before their children, and sets the links to parents that came
/// later. All other nodes keep their order. In a cycle, one node begins a conversation.
pub(super) fn sort(member: &mut Member) {
    let nodes = &mut member.nodes;
    let own: HashMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| (&*node.key, index))
        .collect();
    let parents: Vec<Option<usize>> = nodes
        .iter()
        .map(|node| match &node.parent {
            Parent::Base => None,
            Parent::Node(index) => usize::try_from(*index).ok(),
            Parent::Key(key) => own.get(&**key).copied(),
        })
        .collect();
    let is_in_order = parents.iter().enumerate();
    if is_in_order
        .clone()
        .all(|(index, parent)| parent.is_none_or(|parent| parent < index))
    {
        return;
    }
    let (places, is_cut) = places(&parents);
    let mut sorted: Vec<Option<Node>> = Vec::new();
    sorted.resize_with(nodes.len(), || None);
    let place_of = |index: usize| {
        let place = places.get(index).copied().unwrap_or(0);
        u32::try_from(place).unwrap_or(u32::MAX)
    };
    member.leaf = member
        .leaf
        .and_then(|leaf| Some(place_of(usize::try_from(leaf).ok()?)));
    for (index, mut node) in std::mem::take(nodes).into_iter().enumerate() {
        let parent = parents.get(index).copied().flatten();
        match parent {
            _ if is_cut.get(index) == Some(&true) => node.parent = Parent::Base,
            Some(parent) => node.parent = Parent::Node(place_of(parent)),
            None => {}
        }
        if let NodeKind::Compaction { first_kept } = &mut node.kind {
            *first_kept = first_kept.and_then(|kept| Some(place_of(usize::try_from(kept).ok()?)));
        }
        if let Some(slot) = places.get(index).and_then(|place| sorted.get_mut(*place)) {
            *slot = Some(node);
        }
    }
    nodes.extend(sorted.into_iter().flatten());
}

/// For each node, its new index, and whether its link to its parent is cut.
fn places(parents: &[Option<usize>]) -> (Vec<usize>, Vec<bool>) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    let mut ready = BinaryHeap::new();
    for (index, parent) in parents.iter().enumerate() {
        match parent.and_then(|parent| children.get_mut(parent)) {
            Some(children) => children.push(index),
            None => ready.push(Reverse(index)),
        }
    }
    let mut places = vec![usize::MAX; parents.len()];
    let mut is_cut = vec![false; parents.len()];
    let mut next = 0;
    let mut unplaced = 0..parents.len();
    loop {
        while let Some(Reverse(index)) = ready.pop() {
            let Some(place) = places.get_mut(index).filter(|place| **place == usize::MAX) else {
                continue;
            };
            *place = next;
            next += 1;
            let children = children.get_mut(index).map(std::mem::take);
            ready.extend(children.unwrap_or_default().into_iter().map(Reverse));
        }
        let Some(index) = unplaced.find(|index| places.get(*index) == Some(&usize::MAX)) else {
            return (places, is_cut);
        };
        if let Some(cut) = is_cut.get_mut(index) {
            *cut = true;
        }
        ready.push(Reverse(index));
    }
}
