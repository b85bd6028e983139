//! The conversations of one tool, joined into sessions, and the rows of the ledger for them.

use super::adopt::{self, Adoption};
use super::create::natives;
use super::held::HeldNodes;
use super::home::{Native, Records};
use super::ledger::Ledger;
use super::ledger::rows::{SessionRow, SourceRow};
use super::line::LineMaker;
use super::names;
use super::open_nodes::{count_held, hold_back_open};
use super::reading::{ReadSource, SourceContents};
use super::rebuild::placement;
use super::recorded::Record;
use super::redaction::Redaction;
use super::relatives::base;
use super::request::ImportRequest;
use crate::family::forest::{
    EntryContent, Forest, MemberNumber, Placement, Rules, SessionTree, TreeEntry,
};
use crate::family::{self};
use crate::format;
use crate::importer::report::{ImportedFile, ImportedSession};
use crate::mapping::VERSION;
use crate::member::Member;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Result};
use treelined_core::name;
use treelined_core::timestamp::{self, Millis};
use treelined_files::log::OpenedLog;

/// The sources of one tool that were read, with their members joined into sessions.
pub(super) struct Batch {
    pub(super) tool: Tool,
    pub(super) sources: Vec<ReadSource>,
    pub(super) members: Vec<Member>,
    /// For each member, the index of its source.
    pub(super) source_of: Vec<usize>,
    /// For each source, its members.
    members_of: Vec<Vec<MemberNumber>>,
    /// For each member, the nodes that were held back, and the time from which they are imported, in Unix
    /// milliseconds.
    pub(super) held: Vec<(HeldNodes, Millis)>,
    /// For each member, the name of its origin.
    pub(super) origins: Vec<String>,
    /// For each source, the number of bytes that an earlier import has read.
    pub(super) known_len: Vec<u64>,
    pub(super) session_of_native: HashMap<String, String>,
    /// For each session, the number of subagents that it spawned.
    pub(super) spawned: HashMap<String, u64>,
    pub(super) forest: Forest,
    /// The sessions that are not written because their nodes could not be compared, each with the error. Conversations
    /// of these sessions were handed over.
    pub(super) not_compared: HashMap<usize, Error>,
    redaction: Redaction,
}

impl Batch {
    pub(super) fn new(
        tool: Tool,
        mut sources: Vec<ReadSource>,
        ledger: &Ledger,
        homes: &HashMap<String, String>,
        request: &ImportRequest,
        redaction: Redaction,
    ) -> Self {
        hold_back_open(&mut sources, format(tool).has_shared_keys());
        let (mut members, mut held) = (Vec::new(), Vec::new());
        let (mut source_of, mut origins) = (Vec::new(), Vec::new());
        let (mut known_len, mut members_of) = (Vec::new(), Vec::new());
        for (number, source) in sources.iter_mut().enumerate() {
            let row = ledger.source(tool, &source.source.name());
            // Without kept bytes, it is unknown whether the file still begins with the bytes that were read.
            let is_continued =
                |row: &&SourceRow| !source.origin.is_empty() && row.origin == source.origin;
            let known = row.filter(is_continued);
            known_len.push(known.map_or(0, |row| row.len));
            let first = members.len();
            for (member, held_back) in std::mem::take(&mut source.members)
                .into_iter()
                .zip(std::mem::take(&mut source.held))
            {
                held.push((held_back, source.held_until(&member)));
                members.push(member);
                source_of.push(number);
                origins.push(source.origin.clone());
            }
            members_of.push((first..members.len()).collect());
        }
        names::keep(&mut members, &source_of, &sources, ledger);
        let mut placed = HashMap::new();
        for member in &members {
            let home = || Some((homes.get(&member.native_id)?.as_str(), usize::MAX));
            let target = ledger.target(tool, &member.native_id);
            if let Some((session_id, rank)) = target.or_else(home) {
                let session_id = session_id.to_owned();
                placed.insert(member.native_id.clone(), Placement { session_id, rank });
            }
        }
        let rules = Rules {
            tool,
            has_shared_keys: format(tool).has_shared_keys(),
            split: request.split,
            placed: &placed,
        };
        let forest = family::join(&mut members, &rules);
        let mut session_of_native = HashMap::new();
        for (member, outcome) in members.iter().zip(&forest.members) {
            if let Some(tree) = outcome.session.and_then(|at| forest.sessions.get(at)) {
                session_of_native.insert(member.native_id.clone(), tree.session_id.clone());
            }
        }
        let mut spawned: HashMap<String, u64> = HashMap::new();
        for spawn in forest
            .sessions
            .iter()
            .filter_map(|tree| tree.spawned_by.as_ref())
        {
            *spawned.entry(spawn.session_id.clone()).or_default() += 1;
        }
        Self {
            tool,
            sources,
            spawned,
            members,
            source_of,
            members_of,
            held,
            origins,
            known_len,
            session_of_native,
            forest,
            not_compared: HashMap::new(),
            redaction,
        }
    }

    /// Whether an earlier import has read all records of an entry.
    pub(super) fn is_known(&self, entry: &TreeEntry) -> bool {
        let EntryContent::Node { member, node, .. } = &entry.content else {
            return true;
        };
        let node = self.members.get(*member).and_then(|it| it.nodes.get(*node));
        let source = self.source_of.get(*member);
        let len = source.and_then(|source| self.known_len.get(*source).copied());
        let mut places = node.into_iter().flat_map(|node| &node.places);
        places.all(|place| place.at.saturating_add(place.len) <= len.unwrap_or(0))
    }

    /// Whether a session has entries from one of these sources.
    pub(super) fn has_source(&self, tree: &SessionTree, names: &HashSet<String>) -> bool {
        let is_named = |member: MemberNumber| {
            let source = self
                .source_of
                .get(member)
                .and_then(|at| self.sources.get(*at));
            source.is_some_and(|read| names.contains(&read.source.name()))
        };
        !names.is_empty()
            && tree.entries.iter().any(|entry| match &entry.content {
                EntryContent::Node { member, .. } => is_named(*member),
                EntryContent::Gap { .. } => false,
            })
    }

    /// The earliest time at which an import takes something that was held back: nodes, or a last line without a line
    /// break. `None` if nothing was held back.
    fn held_until(&self, source: usize, read: &ReadSource) -> Option<Millis> {
        let held = self.members_of(source).filter_map(|at| self.held.get(at));
        let held = held.filter(|(nodes, _)| !nodes.is_empty());
        let is_cut = read.is_growing && read.scan.len < read.source.status.size;
        let rest = is_cut.then_some(read.complete_at);
        held.map(|(_, until)| *until).chain(rest).min()
    }

    /// The maker of the lines of a session.
    pub(super) fn maker(&self, tree: &SessionTree) -> LineMaker<'_> {
        let adopted = tree.adopted.entries.iter().filter_map(|(at, entry)| {
            let node = tree.entries.get(*at)?;
            Some((node.id, entry.clone()?))
        });
        LineMaker {
            tool: self.tool,
            format: format(self.tool),
            members: &self.members,
            origins: &self.origins,
            sessions: &self.session_of_native,
            node_ids: &self.forest.node_ids,
            adopted: adopted.collect(),
            redaction: &self.redaction,
            keys: RefCell::default(),
            records: RefCell::default(),
        }
    }

    /// Finds the nodes of a session that are already entries in its file.
    pub(super) fn adopt(&mut self, at: usize, opened: &OpenedLog) -> Result<()> {
        let Some(tree) = self.forest.sessions.get(at) else {
            return Ok(());
        };
        let records = Records::of(opened, self.tool)?;
        let mut contents = SourceContents::new(&self.sources, &self.source_of);
        let mut continuations = HashMap::new();
        for number in &tree.members {
            let Some(member) = self.members.get(*number) else {
                continue;
            };
            let native = &member.native_id;
            if records.has(native) || continuations.contains_key(native) {
                continue;
            }
            let mut member = Native {
                tool: self.tool,
                number: *number,
                member,
                contents: &mut contents,
            };
            let found = records.continuation(opened, self.tool, &mut member)?;
            continuations.extend(found.map(|found| (native.clone(), found)));
        }
        let natives = || {
            let members = tree.members.iter().filter_map(|at| self.members.get(*at));
            members.map(|member| &member.native_id)
        };
        let (mut recorded, mut begins) = (adopt::Records::new(), HashMap::new());
        for native in natives() {
            let Some(nodes) = records.recorded.get(native) else {
                continue;
            };
            recorded.insert(native.clone(), Record::of(opened, nodes));
            if let Some(first) = nodes.first().filter(|_| !records.has(native)) {
                begins.insert(native.clone(), opened.tree.id(*first).to_owned());
            }
        }
        let maker = self.maker(tree);
        let adoption = Adoption {
            maker: &maker,
            planned: tree,
            tree: &opened.tree,
            recorded: &records.adopted,
            continuations: &continuations,
            records: &begins,
        };
        let mut adopted = adoption.make(&mut contents, &mut recorded)?;
        let guests = natives().filter(|native| records.is_guest(native));
        adopted.guests.extend(guests.cloned());
        adopted.compared = (!recorded.is_empty()).then(|| opened.tree.node_count());
        let is_guest = adopted.guests.contains(&tree.native_id)
            && !recorded.contains_key(&tree.native_id)
            || records.is_guest(&tree.native_id);
        let labels = adoption.labels(&adopted);
        let counts = adoption.counts(&adopted);
        for (number, (records, nodes)) in counts {
            if let Some(outcome) = self.forest.members.get_mut(number) {
                outcome.entries -= nodes.min(outcome.entries);
                outcome.shared += records;
            }
        }
        if let Some(tree) = self.forest.sessions.get_mut(at) {
            if is_guest {
                tree.name = None;
            }
            tree.labels.extend(labels);
            tree.adopted = adopted;
        }
        Ok(())
    }

    fn members_of(&self, source: usize) -> impl Iterator<Item = MemberNumber> + '_ {
        self.members_of.get(source).into_iter().flatten().copied()
    }

    pub(super) fn sessions_of(&self, source: usize) -> impl Iterator<Item = usize> + '_ {
        let outcome = |member: MemberNumber| self.forest.members.get(member)?.session;
        self.members_of(source).filter_map(outcome)
    }

    pub(super) fn sources_of<'a>(
        &'a self,
        tree: &'a SessionTree,
    ) -> impl Iterator<Item = usize> + 'a {
        let members = tree.members.iter();
        members.filter_map(|member| self.source_of.get(*member).copied())
    }

    /// The row of a session in the report, before the session is written.
    pub(super) fn row(&self, tree: &SessionTree) -> ImportedSession {
        let members = tree.members.iter();
        let shared = |number: &MemberNumber| {
            let shared = self.forest.members.get(*number).map_or(0, |it| it.shared);
            shared + self.members.get(*number).map_or(0, |it| it.duplicates)
        };
        let held = members.clone().filter_map(|at| self.held.get(*at));
        let held = held.filter(|(nodes, _)| !nodes.is_empty());
        let name = tree.name.as_deref().map(|name| self.redaction.text(name));
        let is_gap = |entry: &&TreeEntry| matches!(entry.content, EntryContent::Gap { .. });
        ImportedSession {
            tool: self.tool.name().to_owned(),
            native_id: tree.native_id.clone(),
            session_id: tree.session_id.clone(),
            cwd: tree.cwd.clone().unwrap_or_default(),
            name: name.as_deref().and_then(name::given),
            recovered: tree.recovered,
            gaps: tree.entries.iter().filter(is_gap).count() as u64,
            duplicates: members.clone().map(shared).sum(),
            held: count_held(held.clone().map(|(nodes, _)| nodes)),
            held_until: held.map(|(_, until)| *until).min().map(timestamp::format),
            subagents: self
                .spawned
                .get(&tree.session_id)
                .copied()
                .unwrap_or_default(),
            by: tree.is_heuristic.then(|| "heuristic".to_owned()),
            family_split: tree.is_family_split,
            ..ImportedSession::default()
        }
    }

    /// The report of each source.
    pub(super) fn files(&self) -> Vec<ImportedFile> {
        let mut files: Vec<ImportedFile> = self.sources.iter().map(super::result::file).collect();
        for (number, member) in self.members.iter().enumerate() {
            let source = self.source_of.get(number).copied();
            let Some(file) = source.and_then(|source| files.get_mut(source)) else {
                continue;
            };
            for (kind, count) in &member.origin_only {
                *file.origin_only.entry(kind.clone()).or_default() += count;
            }
            file.duplicates += member.duplicates;
            let held = self
                .held
                .get(number)
                .map_or(0, |(nodes, _)| nodes.len() as u64);
            if held > 0 {
                *file.held.get_or_insert(0) += held;
            }
            if member.disagreements > 0 {
                *file.disagreements.get_or_insert(0) += member.disagreements;
            }
            if let Some(outcome) = self.forest.members.get(number) {
                file.entries += outcome.entries;
                file.gaps += outcome.gaps;
                file.duplicates += outcome.shared;
                if file.prefix_shared_with.is_none() {
                    file.prefix_shared_with
                        .clone_from(&outcome.prefix_shared_with);
                }
            }
        }
        files
    }

    /// Of the sessions of a source that were not written, the error of the first one.
    pub(super) fn failure(&self, source: usize, failed: &HashMap<usize, Error>) -> Option<Error> {
        self.sessions_of(source)
            .find_map(|at| failed.get(&at).cloned())
    }

    /// Writes the import into the ledger, so that a source is not read again until it changes.
    pub(super) fn note(
        &self,
        ledger: &mut Ledger,
        rows: &[(usize, ImportedSession)],
        failed: &HashMap<usize, Error>,
    ) -> Result<()> {
        let written: HashSet<usize> = rows.iter().map(|(at, _)| *at).collect();
        // The first row about a native session decides in which session it is. So these rows come before the rows of
        // sources, which are in another order.
        let trees = rows
            .iter()
            .filter_map(|(at, _)| self.forest.sessions.get(*at));
        let placed = trees.map(|tree| (tree, natives(tree, &self.members)));
        let families = placed.filter(|(_, natives)| natives.len() > 1);
        let mut sources: Vec<SourceRow> = families
            .map(|(tree, natives)| placement(self.tool, &tree.session_id, natives))
            .collect();
        for (number, read) in self.sources.iter().enumerate() {
            let mut sessions = self.sessions_of(number);
            if !sessions.all(|at| written.contains(&at)) || self.failure(number, failed).is_some() {
                continue;
            }
            let members = || {
                self.members_of(number)
                    .filter_map(|at| self.members.get(at))
            };
            let placed = |member: &Member| {
                let target = self.session_of_native.get(&member.native_id)?;
                Some((member.native_id.clone(), target.clone()))
            };
            let (natives, targets) = members().filter_map(placed).unzip();
            let mut origin = read.origin.clone();
            if origin.is_empty() {
                // Without new kept bytes, the row keeps the name of the earlier origin, so that this origin can be
                // deleted later.
                let before = ledger.source(self.tool, &read.source.name());
                origin = before.map_or_else(String::new, |row| row.origin.clone());
            }
            sources.push(SourceRow {
                tool: self.tool,
                source: read.source.name(),
                targets,
                natives,
                bases: members().filter_map(base).map(str::to_owned).collect(),
                status: read.source.status,
                len: read.scan.len,
                hash: read.scan.prefix_hash,
                origin,
                held_until: self.held_until(number, read),
                version: VERSION,
                former: read.former.clone(),
            });
        }
        let sessions = rows
            .iter()
            .map(|(at, row)| {
                let tree = self.forest.sessions.get(*at);
                let is_home = tree.is_some_and(|tree| !tree.adopted.guests.is_empty());
                SessionRow::of(self.tool, row, is_home)
            })
            .collect();
        ledger.note(sources, sessions)
    }
}
