//! Nodes that a session has already: the beginning of a conversation that was handed over to a tool (session-file.md
//! §5.8, "Home").

use super::home::Continuation;
use super::line::{Contents, LineMaker};
use crate::family::forest::{
    Adopted, EntryContent, ForkLabel, MemberNumber, SessionTree, TreeEntry,
};
use crate::ids::NodeId;
use crate::member::NodeKind;
use crate::neutral::{Message, NeutralPath, Said, parts, parts_of};
use std::collections::{HashMap, HashSet};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::tree::Tree;

/// What was handed over, as its agent gives it back.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandedOver {
    /// Each part with the number of its step.
    said: Vec<(Said, usize)>,
    steps: Vec<Step>,
}

/// A message, or a result.
#[derive(Debug, Clone)]
struct Step {
    /// The entry that has its beginning, or the one before it.
    first: Option<String>,
    /// The entry that has its end, or the one before it.
    last: Option<String>,
    is_summary: bool,
}

/// A place in what was handed over: the part that comes next, and the bytes of it that are behind.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    part: usize,
    bytes: usize,
}

impl HandedOver {
    pub(crate) fn of(path: &NeutralPath) -> Self {
        let mut handed = Self::default();
        let mut before: Option<String> = None;
        for message in &path.messages {
            let is_summary = matches!(message, Message::User(said) if said.is_summary);
            let entries: Vec<Vec<&str>> = match message {
                Message::Results(results) => {
                    let results = results.iter();
                    results
                        .map(|result| result.entry.as_deref().into_iter().collect())
                        .collect()
                }
                message => vec![message.entries()],
            };
            for (entries, said) in entries.iter().zip(parts(message)) {
                let name = |entry: Option<&&str>| entry.map(|entry| (*entry).to_owned());
                let first = name(entries.first()).or_else(|| before.clone());
                before = name(entries.last()).or(before);
                let step = handed.steps.len();
                handed
                    .said
                    .extend(said.into_iter().map(|said| (said, step)));
                handed.steps.push(Step {
                    first,
                    last: before.clone(),
                    is_summary,
                });
            }
        }
        handed
    }

    /// One step, all of an entry.
    pub(crate) fn all_of(said: Vec<Said>, entry: &str) -> Self {
        let entry = Some(entry.to_owned());
        Self {
            said: said.into_iter().map(|said| (said, 0)).collect(),
            steps: vec![Step {
                first: entry.clone(),
                last: entry,
                is_summary: false,
            }],
        }
    }

    /// The place behind these parts, if they come next.
    fn behind(&self, mut at: Cursor, said: &[Said]) -> Option<Cursor> {
        for said in said {
            let mut rest = said.text.as_str();
            while !rest.is_empty() {
                let (next, _) = self.said.get(at.part)?;
                let ahead = next.text.get(at.bytes..)?;
                if next.letter != said.letter {
                    return None;
                }
                if let Some(after) = rest.strip_prefix(ahead) {
                    at = Cursor {
                        part: at.part + 1,
                        bytes: 0,
                    };
                    rest = after;
                } else if ahead.starts_with(rest) {
                    at.bytes += rest.len();
                    rest = "";
                } else {
                    return None;
                }
                let is_whole = at.bytes == 0 && rest.is_empty();
                if !is_whole && !Said::goes_on(said.letter) {
                    return None;
                }
            }
        }
        Some(at)
    }

    /// The place behind the summary that comes next.
    fn behind_summary(&self, at: Cursor) -> Option<Cursor> {
        let (_, step) = self.said.get(at.part)?;
        self.steps.get(*step).filter(|step| step.is_summary)?;
        let rest = self.said.iter().skip(at.part);
        let count = rest.take_while(|(_, its)| its == step).count();
        Some(Cursor {
            part: at.part + count,
            bytes: 0,
        })
    }

    fn is_end(&self, at: Cursor) -> bool {
        at.part >= self.said.len()
    }

    /// The entry of what is before a place.
    fn entry(&self, at: Cursor) -> Option<String> {
        let Some((_, step)) = self.said.get(at.part) else {
            return self.steps.last()?.last.clone();
        };
        let before = at.part.checked_sub(1).and_then(|part| self.said.get(part));
        let is_inside = at.bytes > 0 || before.is_some_and(|(_, its)| its == step);
        match is_inside {
            true => self.steps.get(*step)?.first.clone(),
            false => self.steps.get(step.checked_sub(1)?)?.last.clone(),
        }
    }
}

/// What is known of a session when the nodes of its natives are compared with it.
pub(super) struct Adoption<'a> {
    pub(super) maker: &'a LineMaker<'a>,
    pub(super) planned: &'a SessionTree,
    /// The entries of the session.
    pub(super) tree: &'a Tree,
    /// What earlier imports have recorded, by the ids that nodes would have.
    pub(super) recorded: &'a HashMap<String, Option<String>>,
    /// By the natives that continue it.
    pub(super) continuations: &'a HashMap<String, Continuation>,
}

/// A planned entry, as far as it was compared.
#[derive(Clone, Copy)]
struct Compared<'a> {
    /// The first entry above it.
    root: usize,
    /// Where the comparison goes on below it.
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
        if handed.is_end(at) {
            return Ok(None);
        }
        let (_, node) = self.maker.find(member, node)?;
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

/// What a mapper's entry says: the parts of its message.
pub(super) fn said(members: &[u8]) -> Vec<Said> {
    let mut object = b"{\"id\":0".to_vec();
    object.extend_from_slice(members);
    object.push(b'}');
    json::get(&object, "message").map_or_else(Vec::new, parts_of)
}
