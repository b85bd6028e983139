//! Holds back nodes of growing sources that may still change.

use super::held::{CopyMark, HeldNodes};
use super::reading::{ReadSource, hold_back};
use crate::member::Node;
use std::collections::HashSet;

/// The number of nodes of a session's members that were held back. If several members have copies of the same node, the
/// node counts once.
pub(super) fn count_held<'a>(members: impl Iterator<Item = &'a HeldNodes>) -> u64 {
    let (mut count, mut seen) = (0, HashSet::new());
    for held in members {
        let is_new = |mark: &&Option<CopyMark>| mark.as_ref().is_none_or(|it| !seen.contains(it));
        count += held.iter().filter(is_new).count() as u64;
        seen.extend(held.iter().flatten());
    }
    count
}

/// Removes the open nodes from the members of growing sources, and adds their marks to `held`. A node stays if
/// another member has a complete copy of it. Otherwise the copy would be imported now as an entry of the other
/// session, and the original later as one more entry. `has_shared_keys`: see
/// [`crate::reader::Format::has_shared_keys`].
pub(super) fn hold_back_open(sources: &mut [ReadSource], has_shared_keys: bool) {
    let complete = complete_copies(sources, has_shared_keys);
    for source in sources.iter_mut() {
        if !source.is_growing {
            source.held = vec![HeldNodes::new(); source.members.len()];
            continue;
        }
        let nodes = source.members.iter_mut().flat_map(|it| &mut it.nodes);
        for node in nodes.filter(|node| node.is_open) {
            let mark = CopyMark::of(node, has_shared_keys);
            node.is_open = mark.is_none_or(|mark| !complete.contains(&mark));
        }
        let mark = |node: Node| CopyMark::of(&node, has_shared_keys);
        let held = source.members.iter_mut().map(hold_back);
        source.held = held
            .map(|held| held.into_iter().map(mark).collect())
            .collect();
    }
}

/// The open nodes of which another member has a complete copy.
fn complete_copies(sources: &[ReadSource], has_shared_keys: bool) -> HashSet<CopyMark> {
    let mut open = HashSet::new();
    for source in sources.iter().filter(|source| source.is_growing) {
        let found = nodes(source).filter(|(_, is_open)| *is_open);
        open.extend(found.filter_map(|(node, _)| CopyMark::of(node, has_shared_keys)));
    }
    if open.is_empty() {
        return HashSet::new();
    }
    let closed = sources.iter().flat_map(nodes);
    let closed = closed.filter(|(_, is_open)| !is_open);
    let marks = closed.filter_map(|(node, _)| CopyMark::of(node, has_shared_keys));
    marks.filter(|mark| open.contains(mark)).collect()
}

/// The nodes of a source. The boolean says whether the node may still change.
fn nodes(source: &ReadSource) -> impl Iterator<Item = (&Node, bool)> {
    let nodes = source.members.iter().flat_map(|member| &member.nodes);
    nodes.map(|node| (node, source.is_growing && node.is_open))
}
