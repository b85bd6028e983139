//! Finds the nodes of a native session that its session already has as entries: the beginning of a conversation that
//! was handed over to a tool, and messages that a recorder wrote (session-file.md §5.8, "Home"). Such a node is
//! adopted: the entry stands for it, and no new entry is written.

use super::handed::{Continuation, Cursor, said, words_of};
use super::line::{Contents, LineMaker};
use super::recorded::{At, Record};
use crate::family::forest::{
    Adopted, EntryContent, ForkLabel, MemberNumber, SessionTree, TreeEntry,
};
use crate::ids::NodeId;
use crate::member::NodeKind;
use crate::neutral::Said;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::tree::{Node, Tree};

/// The data with which the nodes of a session are compared.
pub(super) struct Adoption<'a> {
    pub(super) maker: &'a LineMaker<'a>,
    pub(super) planned: &'a SessionTree,
    /// The entries that the session has.
    pub(super) tree: &'a Tree,
    /// The nodes that earlier imports have adopted. The key is the id that an import would give to the entry of the
    /// node, and the value is the entry that the session has instead.
    pub(super) recorded: &'a HashMap<String, Option<String>>,
    /// For each native session that continues a path: the path that was handed over to it.
    pub(super) continuations: &'a HashMap<String, Continuation>,
    /// For each native session that was not imported so far: the entry at which its record begins.
    pub(super) records: &'a HashMap<String, String>,
}

/// For each native session, by its id: the record of a recorder.
pub(super) type Records<'a> = HashMap<String, Record<'a>>;

/// The state of the comparison after a planned entry.
#[derive(Clone, Copy)]
struct Compared<'a> {
    /// The index of the topmost planned entry above this entry, or of this entry itself.
    root: usize,
    /// The position at which the comparison of the entries below continues.
    next: Next<'a>,
}

/// The position at which a comparison continues.
#[derive(Clone, Copy)]
enum Next<'a> {
    Nowhere,
    /// In the path that was handed over.
    Handed(&'a Continuation, Cursor),
    /// In the record, after the entry that stands for this planned entry. The exact position is not computed yet.
    Behind,
    Recorded(At),
    /// In the record, but the record lacks the message above.
    Lacking(At),
}

/// The result of a comparison.
enum Outcome<'a> {
    /// This entry stands for the node. `None`: the node is at the empty position, before the first entry.
    Adopted(Option<String>, Next<'a>),
    New(Next<'a>),
}

impl<'a> Adoption<'a> {
    pub(super) fn make(
        &self,
        contents: &mut dyn Contents,
        records: &mut Records<'_>,
    ) -> Result<Adopted> {
        let entries = &self.planned.entries;
        let mut adopted = Adopted::default();
        let mut compared: Vec<Compared<'a>> = Vec::with_capacity(entries.len());
        // The first planned entries below which some node was adopted.
        let mut same: HashSet<usize> = HashSet::new();
        self.take_known(records);
        for (at, entry) in entries.iter().enumerate() {
            let above = entry
                .parent
                .and_then(|parent| compared.get(parent))
                .copied();
            let root = above.map_or(at, |above| above.root);
            let id = entry.id.to_string();
            let mut record = self.native(entry).and_then(|id| records.get_mut(id));
            let mut next = match record {
                Some(_) => Next::Behind,
                None => Next::Nowhere,
            };
            if self.tree.find_any(&id).is_some() {
                same.insert(root);
            } else if let Some(known) = self.recorded(&id) {
                adopted.entries.insert(at, known);
                same.insert(root);
            } else {
                let above = above.map(|above| above.next);
                let start = match (above, entry.parent, record.as_deref_mut()) {
                    (Some(Next::Behind | Next::Nowhere), Some(parent), Some(record)) => {
                        self.behind_known(contents, parent, record, &adopted)?
                    }
                    (Some(above), ..) => above,
                    (None, None, record) => self.start(entry, record.is_some()),
                    (None, Some(_), _) => Next::Nowhere,
                };
                match self.compare(contents, entry, start, record)? {
                    Outcome::New(then) => next = then,
                    Outcome::Adopted(its, then) => {
                        if start.is_before(then) {
                            same.insert(root);
                        }
                        adopted.new.insert(id, its.clone());
                        adopted.entries.insert(at, its);
                        next = then;
                    }
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
        adopted.guests = guests.chain(records.keys().cloned()).collect();
        Ok(adopted)
    }

    /// Marks the entries that imports have written or adopted as taken, so that no other node adopts them.
    fn take_known(&self, records: &mut Records<'_>) {
        if records.is_empty() {
            return;
        }
        for entry in &self.planned.entries {
            let id = entry.id.to_string();
            let its = match self.recorded(&id) {
                Some(known) => known.and_then(|known| self.tree.find(&known)),
                None => self.tree.find(&id),
            };
            let record = self.native(entry).and_then(|id| records.get_mut(id));
            if let (Some(record), Some(its)) = (record, its) {
                record.take(its);
            }
        }
    }

    /// The position in the record after a planned entry that an earlier import has written or adopted. An adopted entry
    /// may stand for several nodes. The position moves past the texts of all of them.
    fn behind_known(
        &self,
        contents: &mut dyn Contents,
        planned: usize,
        record: &mut Record<'_>,
        adopted: &Adopted,
    ) -> Result<Next<'a>> {
        let entries = &self.planned.entries;
        let its = match adopted.entries.get(&planned) {
            Some(Some(its)) => its,
            Some(None) => return Ok(Next::Recorded(At::default())),
            None => {
                let own = entries.get(planned);
                let own = own.and_then(|entry| self.tree.find(&entry.id.to_string()));
                // The planned entry is new and was not compared. The entries below it are not compared either.
                let after = own.map(|own| Next::Recorded(At::after(Some(own))));
                return Ok(after.unwrap_or(Next::Nowhere));
            }
        };
        let mut said_of = Vec::new();
        let mut place = Some(planned);
        while let Some(at) = place
            && adopted.entries.get(&at).and_then(Option::as_ref) == Some(its)
            && let Some(entry) = entries.get(at)
        {
            said_of.push(said(&self.maker.body(contents, entry)?.members));
            place = entry.parent;
        }
        let said: Vec<Said> = said_of.into_iter().rev().flatten().collect();
        Ok(match self.tree.find(its) {
            Some(node) => Next::Recorded(record.behind_words(node, &said)?),
            None => Next::Nowhere,
        })
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

    fn start(&self, entry: &TreeEntry, is_recorded: bool) -> Next<'a> {
        match self.continuation(entry) {
            Some(continuation) => Next::Handed(continuation, Cursor::default()),
            None if is_recorded => Next::Recorded(At::default()),
            None => Next::Nowhere,
        }
    }

    fn compare(
        &self,
        contents: &mut dyn Contents,
        entry: &TreeEntry,
        start: Next<'a>,
        record: Option<&mut Record<'_>>,
    ) -> Result<Outcome<'a>> {
        let mut start = start;
        if let Next::Handed(continuation, cursor) = start {
            let handed = &continuation.handed;
            if let Some(after) = self.after(contents, entry, continuation, cursor)? {
                let next = Next::Handed(continuation, after);
                return Ok(Outcome::Adopted(handed.entry(after), next));
            }
            if !handed.is_end(cursor) {
                return Ok(Outcome::New(Next::Nowhere));
            }
            if record.is_none()
                && let Some(prompt) = self.prompt(contents, entry, continuation)?
            {
                return Ok(Outcome::Adopted(Some(prompt), Next::Nowhere));
            }
            let last = handed.entry(cursor).and_then(|last| self.tree.find(&last));
            start = Next::Recorded(At::after(last));
        }
        match (start, record) {
            (Next::Recorded(at), Some(record)) => self.follow(contents, entry, record, at),
            (Next::Lacking(at), Some(record)) => self.find_again(contents, entry, record, at),
            _ => Ok(Outcome::New(Next::Nowhere)),
        }
    }

    /// Compares a node with the next entry of the record.
    fn follow(
        &self,
        contents: &mut dyn Contents,
        entry: &TreeEntry,
        record: &mut Record<'_>,
        at: At,
    ) -> Result<Outcome<'a>> {
        let EntryContent::Node { member, node, .. } = entry.content else {
            return Ok(Outcome::New(Next::Recorded(at)));
        };
        let (_, node) = self.maker.find(member, node)?;
        let members = self.maker.body(contents, entry)?.members;
        let said = said(&members);
        let adopt = |at: At, its: Option<Node>| {
            let its = its.map(|its| self.tree.id(its).to_owned());
            Outcome::Adopted(its, Next::Recorded(at))
        };
        match node.kind {
            NodeKind::ToolResult => {
                let call = call_of(&members);
                Ok(match record.result(at, call.as_deref())? {
                    Some(its) => adopt(at, Some(its)),
                    None => Outcome::New(Next::Recorded(at)),
                })
            }
            NodeKind::User | NodeKind::Assistant if !said.is_empty() => {
                let from = match node.kind {
                    NodeKind::User => At::after(at.entry),
                    _ => at,
                };
                Ok(match record.follow(from, &said)? {
                    Some(after) => adopt(after, after.entry),
                    None if node.kind == NodeKind::User => {
                        self.find_again(contents, entry, record, at)?
                    }
                    None => Outcome::New(Next::Lacking(at)),
                })
            }
            NodeKind::Custom | NodeKind::Subagent { .. } if at.entry.is_some() => {
                Ok(Outcome::New(Next::Recorded(at)))
            }
            _ => Ok(match record.goes_on(at)? {
                true => adopt(at, at.entry),
                false => Outcome::New(Next::Recorded(at)),
            }),
        }
    }

    /// Looks for a message of the user further down in the record, after messages that the record lacks.
    fn find_again(
        &self,
        contents: &mut dyn Contents,
        entry: &TreeEntry,
        record: &mut Record<'_>,
        at: At,
    ) -> Result<Outcome<'a>> {
        let lacks = Ok(Outcome::New(Next::Lacking(at)));
        let EntryContent::Node { member, node, .. } = entry.content else {
            return lacks;
        };
        if self.maker.find(member, node)?.1.kind != NodeKind::User {
            return lacks;
        }
        let said = said(&self.maker.body(contents, entry)?.members);
        if said.is_empty() {
            return lacks;
        }
        match record.find(at, &said, entry.time)? {
            Some(after) => {
                let its = after.entry.map(|its| self.tree.id(its).to_owned());
                Ok(Outcome::Adopted(its, Next::Recorded(after)))
            }
            None => lacks,
        }
    }

    /// The position after a node in the path that was handed over; `None` if the path continues with another message.
    fn after(
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
            // A tool result without text has nothing to compare. At the end of the path it counts as handed over.
            let is_silent = node.kind == NodeKind::ToolResult
                && said(&self.maker.body(contents, entry)?.members).is_empty();
            return Ok(is_silent.then_some(at));
        }
        if let NodeKind::Compaction { .. } = node.kind {
            return Ok(handed.behind_summary(at).or(Some(at)));
        }
        let body = self.maker.body(contents, entry)?;
        let said = said(&body.members);
        Ok(handed.after(at, &said))
    }

    /// The message of the user that was handed over as the first prompt, if it has the words of this node.
    fn prompt(
        &self,
        contents: &mut dyn Contents,
        entry: &TreeEntry,
        continuation: &Continuation,
    ) -> Result<Option<String>> {
        let EntryContent::Node { member, node, .. } = entry.content else {
            return Ok(None);
        };
        if continuation.prompts.is_empty()
            || self.maker.find(member, node)?.1.kind != NodeKind::User
        {
            return Ok(None);
        }
        let said = words_of(&said(&self.maker.body(contents, entry)?.members));
        let mut prompts = continuation.prompts.iter();
        let same = prompts.find(|(_, words)| !said.is_empty() && **words == said);
        Ok(same.map(|(id, _)| id.clone()))
    }

    /// If a native session has none of the messages that were handed over, it becomes a branch below the last of these
    /// messages.
    fn rewritten(&self, compared: &[Compared<'_>], same: &HashSet<usize>, adopted: &mut Adopted) {
        let roots = self.planned.entries.iter().enumerate();
        let roots = roots.filter(|(at, entry)| entry.parent.is_none() && !same.contains(at));
        for (at, entry) in roots {
            let handed = self.continuation(entry).map(|it| &it.entry_id);
            let recorded = self.native(entry).and_then(|id| self.records.get(id));
            if let Some(below) = handed.or(recorded) {
                adopted.below.insert(at, below.clone());
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

    /// The labels of native sessions whose tool has replaced the messages that were handed over.
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

    /// For each member: the number of records whose nodes are all adopted, and the number of these nodes.
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

impl Next<'_> {
    /// Whether there is text between two positions of one comparison.
    fn is_before(self, then: Self) -> bool {
        match (self, then) {
            (Next::Handed(_, from), Next::Handed(_, to)) => {
                to.part > from.part || to.bytes > from.bytes
            }
            (Next::Recorded(from) | Next::Lacking(from), Next::Recorded(to)) => from != to,
            (_, Next::Recorded(_)) => true,
            _ => false,
        }
    }
}

/// The id of the call in a mapper's entry of a tool result.
fn call_of(members: &[u8]) -> Option<String> {
    let mut object = b"{\"id\":0".to_vec();
    object.extend_from_slice(members);
    object.push(b'}');
    let call = json::get_path(&object, &["message", "toolCallId"]);
    call.and_then(json::string).map(Cow::into_owned)
}
