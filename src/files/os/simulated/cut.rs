//! The state of a disk after a power cut.
//!
//! The disk is made again from its first state and the changes that survive. All synced changes survive. A [`Profile`]
//! selects the other changes that survive.

use super::disk::{Asked, Change, Disk, Node, NodeId, ROOT, apply};
use super::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// The changes that the disk keeps although they were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// All of them: the processes died, and the machine did not.
    All,
    /// None of them.
    Synced,
    /// Names in the order of their changes, and a prefix of the writes of each file, as ext4 does (`data=ordered`). The
    /// last write of the prefix may be torn.
    Ordered { sector: u64 },
    /// Any of them, as on XFS and APFS: a write is kept, dropped, torn or zeroed, and a name is kept or dropped.
    Anything { sector: u64 },
}

impl Disk {
    /// The disk after a power cut. All of its content is durable.
    pub fn after_cut(&self, profile: Profile, random: &mut Random) -> Self {
        let mut nodes = self.first.clone();
        let left = self.changes.len() - self.committed;
        let journal = self.committed as u64 + random.below(left as u64 + 1);
        // The files that have lost a write, so that their later writes are lost too.
        let mut ended = BTreeSet::new();
        for (number, (change, asked)) in self.changes.iter().enumerate() {
            let kept = match (profile, change) {
                _ if *asked == Asked::Synced => Some(change.clone()),
                (Profile::All, _) => Some(change.clone()),
                (Profile::Synced, _) => None,
                (Profile::Anything { sector }, Change::Write { node, at, data }) => {
                    anything(*node, *at, data, sector, random)
                }
                (Profile::Anything { .. }, _) | (_, Change::Again { .. }) => {
                    random.one_in(2).then(|| change.clone())
                }
                (Profile::Ordered { sector }, Change::Write { node, at, data }) => {
                    if ended.contains(node) {
                        None
                    } else if random.one_in(2) {
                        Some(change.clone())
                    } else {
                        ended.insert(*node);
                        torn(*node, *at, data, sector, random)
                    }
                }
                (Profile::Ordered { .. }, _) => ((number as u64) < journal).then(|| change.clone()),
            };
            if let Some(change) = kept {
                apply(&mut nodes, &change);
            }
        }
        // Nodes that a write or a rename made again have no inode number yet.
        for (id, node) in &mut nodes {
            if node.inode == 0 {
                node.inode = self.nodes.get(id).map_or(0, |known| known.inode);
            }
        }
        Self::of(reachable(&nodes))
    }
}

/// The nodes that have a path.
fn reachable(nodes: &BTreeMap<NodeId, Node>) -> BTreeMap<NodeId, Node> {
    let mut found = BTreeMap::new();
    let mut next = vec![ROOT];
    while let Some(id) = next.pop() {
        if let Some(node) = nodes.get(&id)
            && !found.contains_key(&id)
        {
            next.extend(node.names.values());
            found.insert(id, node.clone());
        }
    }
    found
}

fn write(node: NodeId, at: u64, data: &[u8]) -> Option<Change> {
    (!data.is_empty()).then(|| Change::Write {
        node,
        at,
        data: data.into(),
    })
}

/// The number of bytes of a torn write that are kept. The write is torn where a sector begins; 0 if no sector begins
/// within the write.
fn cut(at: u64, len: usize, sector: u64, random: &mut Random) -> usize {
    let (first, last) = (at / sector, (at + len as u64) / sector);
    let sectors = last.saturating_sub(first);
    let end = (first + 1 + random.below(sectors)) * sector;
    let within = usize::try_from(end - at).unwrap_or(usize::MAX);
    if within >= len || sectors == 0 {
        0
    } else {
        within
    }
}

fn torn(node: NodeId, at: u64, data: &[u8], sector: u64, random: &mut Random) -> Option<Change> {
    let end = cut(at, data.len(), sector, random);
    write(node, at, data.get(..end).unwrap_or_default())
}

fn anything(
    node: NodeId,
    at: u64,
    data: &[u8],
    sector: u64,
    random: &mut Random,
) -> Option<Change> {
    match random.below(5) {
        0 | 1 => write(node, at, data),
        2 => None,
        3 => torn(node, at, data, sector, random),
        // The new size is on the disk, but the bytes after the start of a sector are zero.
        _ => {
            let end = cut(at, data.len(), sector, random);
            let mut zeroed = vec![0; data.len()];
            let (kept, _) = zeroed.split_at_mut(end);
            kept.copy_from_slice(data.get(..end).unwrap_or_default());
            write(node, at, &zeroed)
        }
    }
}
