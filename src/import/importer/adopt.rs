//! Nodes that a session has already: the beginning of a conversation that was handed over to a tool (session-file.md
//! §5.8, "Home").

use super::handed::{Continuation, Cursor, said};
use super::line::{Contents, LineMaker};
use crate::family::forest::{
    Adopted, EntryContent, ForkLabel, MemberNumber, SessionTree, TreeEntry,
};
use crate::ids::NodeId;
use crate::member::NodeKind;
use std::collections::{HashMap, HashSet};
use treelined_core::error::Result;
use treelined_core::tree::Tree;

/// The facts of a session with which the nodes of its natives are compared.
pub(super) struct Adoption<'a> {
    pub(super) maker: &'a LineMaker<'a>,
    pub(super) planned: &'a SessionTree,
    /// The entries of the session.
    pub(super) tree: &'a Tree,
    /// The records of earlier imports, by the ids that nodes would have.
    pub(super) recorded: &'a HashMap<String, Option<String>>,
    /// By the natives that continue it.
    pub(super) continuations: &'a HashMap<String, Continuation>,
}

/// A planned entry, as far as it was compared.
#[derive(Clone, Copy)]
struct Compared<'a> {
    /// The first entry above it.
    root: usize,
    /// Where the comparison continues below it.
    next: Option<(&'a Continuation, Cursor)>,
}

impl<'a> Adoption<'a> {
    pub(super) fn make(&self, contents: &mut dyn Contents) -> Result<Adopted> {
        let entries = &self.planned.entries;
        let mut adopted = Adopted::default();
        let mut compared: Vec<Compared<'a>> = Vec::with_capacity(entries.len());
        // The first entries below which something is the same.
        let mut same: HashSet<usize> = HashSet::new();
        for (at, entry) in entries.iter().enumerate() {
            let above = entry
                .parent
                .and_then(|parent| compared.get(parent))
                .copied();
            let root = above.map_or(at, |above| above.root);
            let id = entry.id.to_string();
            let mut next = None;
            if self.tree.find_any(&id).is_some() {
                same.insert(root);
            } else if let Some(known) = self.recorded(&id) {
                adopted.entries.insert(at, known);
                same.insert(root);
            } else {
                let start = match (above, entry.parent) {
                    (Some(above), _) => above.next,
                    (None, None) => self.start(entry),
                    (None, Some(_)) => None,
                };
                if let Some((continuation, cursor)) = start
                    && let Some(behind) = self.behind(contents, entry, continuation, cursor)?
                {
                    if behind.part > cursor.part || behind.bytes > cursor.bytes {
                        same.insert(root);
                    }
                    let its = continuation.handed.entry(behind);
                    adopted.new.insert(id, its.clone());
                    adopted.entries.insert(at, its);
                    next = Some((continuation, behind));
                }
            }
            compared.push(Compared { root, next });
        }
        self.rewritten(&compared, &same, &mut adopted);
        if !adopted.new.is_empty() || !adopted.below.is_empty() {
            adopted.starts = self.starts(&adopted);
        }
        let entries = adopted
            .entries
            .keys()
            .filter_map(|at| self.planned.entries.get(*at));
        let guests = entries.filter_map(|entry| self.native(entry)).cloned();
        adopted.guests = guests.collect();
        Ok(adopted)
    }

    fn recorded(&self, id: &str) -> Option<Option<String>> {
        let known = self.recorded.get(id)?;
        let is_there = |entry: &String| self.tree.find(entry).is_some();
        known.as_ref().is_none_or(is_there).then(|| known.clone())
    }

    fn native(&self, entry: &TreeEntry) -> Option<&'a String> {
        match entry.content {
            EntryContent::Node { member, .. } => Some(&self.maker.members.get(member)?.native_id),
            EntryContent::Gap { .. } => None,
        }
    }

    fn continuation(&self, entry: &TreeEntry) -> Option<&'a Continuation> {
        self.continuations.get(self.native(entry)?)
    }

    fn start(&self, entry: &TreeEntry) -> Option<(&'a Continuation, Cursor)> {
        Some((self.continuation(entry)?, Cursor::default()))
    }

    /// The place behind a node, if the node is the same as what comes next.
    fn behind(
        &self,
        contents: &mut dyn Contents,
        entry: &TreeEntry,
        continuation: &Continuation,
        at: Cursor,
    ) -> Result<Option<Cursor>> {
        let EntryContent::Node { member, node, .. } = entry.content else {
            return Ok(None);
        };
        let handed = &continuation.handed;
        let (_, node) = self.maker.find(member, node)?;
        if handed.is_end(at) {
            // Of a result without text, nothing shows that it was handed over but its place.
            let is_silent = node.kind == NodeKind::ToolResult
                && said(&self.maker.body(contents, entry)?.members).is_empty();
            return Ok(is_silent.then_some(at));
        }
        if let NodeKind::Compaction { .. } = node.kind {
            return Ok(handed.behind_summary(at).or(Some(at)));
        }
        let body = self.maker.body(contents, entry)?;
        let said = said(&body.members);
        Ok(handed.behind(at, &said))
    }

    /// A conversation that has nothing of what was handed over is a branch below the last entry of that.
    fn rewritten(&self, compared: &[Compared<'_>], same: &HashSet<usize>, adopted: &mut Adopted) {
        let roots = self.planned.entries.iter().enumerate();
        let roots = roots.filter(|(at, entry)| entry.parent.is_none() && !same.contains(at));
        for (at, entry) in roots {
            if let Some(continuation) = self.continuation(entry) {
                adopted.below.insert(at, continuation.entry_id.clone());
            }
        }
        let is_rewritten = |at: &usize| {
            let root = compared.get(*at).map(|it| it.root);
            root.is_some_and(|root| adopted.below.contains_key(&root))
        };
        let ids = &self.planned.entries;
        for at in adopted.entries.keys().filter(|at| is_rewritten(at)) {
            if let Some(entry) = ids.get(*at) {
                adopted.new.remove(&entry.id.to_string());
            }
        }
        adopted.entries.retain(|at, _| {
            let root = compared.get(*at).map(|it| it.root);
            root.is_none_or(|root| !adopted.below.contains_key(&root))
        });
    }

    fn starts(&self, adopted: &Adopted) -> Vec<String> {
        let entries = &self.planned.entries;
        let mut starts = Vec::new();
        let mut at = self.planned.leaf;
        let mut first = None;
        while let Some(entry) = at.and_then(|at| entries.get(at)) {
            if let Some(found) = at.and_then(|at| adopted.entries.get(&at)) {
                starts.extend(found.clone());
                break;
            }
            first = Some(entry);
            at = entry.parent;
        }
        let continuation = first.and_then(|entry| self.continuation(entry));
        starts.extend(continuation.map(|it| it.entry_id.clone()));
        starts
    }

    /// The labels of conversations that their tool has written anew.
    pub(super) fn labels(&self, adopted: &Adopted) -> Vec<ForkLabel> {
        let tool = self.maker.tool;
        let labels = adopted.below.keys().filter_map(|at| {
            let entry = self.planned.entries.get(*at)?;
            let EntryContent::Node { member, node, .. } = entry.content else {
                return None;
            };
            let (member, node) = self.maker.find(member, node).ok()?;
            Some(ForkLabel {
                entry: *at,
                id: NodeId::of(tool, &member.native_id, &format!("{}/label", node.key)),
                text: format!("rewritten by {}", tool.name()),
            })
        });
        labels.collect()
    }

    /// For each member the number of its records whose nodes are all adopted, and that of these nodes.
    pub(super) fn counts(&self, adopted: &Adopted) -> HashMap<MemberNumber, (u64, u64)> {
        let mut records: HashMap<MemberNumber, (HashSet<u64>, HashSet<u64>, u64)> = HashMap::new();
        for (at, entry) in self.planned.entries.iter().enumerate() {
            let EntryContent::Node { member, node, .. } = entry.content else {
                continue;
            };
            let Ok((_, node)) = self.maker.find(member, node) else {
                continue;
            };
            let (same, own, nodes) = records.entry(member).or_default();
            let places = node.places.iter().map(|place| place.at);
            match adopted.entries.contains_key(&at) {
                true => {
                    same.extend(places);
                    *nodes += 1;
                }
                false => own.extend(places),
            }
        }
        let records = records.into_iter();
        let count = |(member, (same, own, nodes)): (_, (HashSet<u64>, HashSet<u64>, u64))| {
            (member, (same.difference(&own).count() as u64, nodes))
        };
        records.map(count).collect()
    }
}
