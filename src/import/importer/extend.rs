//! Extends sessions of earlier imports: appends the tool's new records while it holds the lock of the session file.
//! Existing entries never change. If the tool has changed a node, the new version becomes a sibling of the old entry.

use super::appender::{Appender, lock_fresh};
use super::create::{MovedLeaf, SessionWork, first_kept, label_line};
use super::git::InGit;
use super::line::{Contents, LineLinks};
use super::shed::LockedSession;
use crate::family::forest::{EntryContent, TreeEntry};
use crate::ids::NodeId;
use crate::importer::report::ImportedSession;
use crate::member::Body;
use std::collections::{HashMap, HashSet};
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;
use treelined_core::tree::{Node, Tree, branches};
use treelined_files::log::OpenedLog;
use treelined_files::os::file::Location;
use treelined_files::store::Store;

/// The members of a stored line that do not come from a mapper.
const NOT_MAPPED: [&str; 7] = [
    "type",
    "id",
    "parentId",
    "timestamp",
    "origin",
    "copiedFrom",
    "firstKeptEntryId",
];

impl SessionWork<'_> {
    /// Appends the new entries of an existing session. `is_known(entry)` says that an earlier import has read the
    /// records of an entry, so that the entry cannot have changed.
    pub(super) fn extend(
        mut self,
        store: &Store,
        at: Location,
        contents: &mut dyn Contents,
        is_known: &dyn Fn(&TreeEntry) -> bool,
        writes: bool,
    ) -> Result<ImportedSession> {
        self.row.path = at.path().display().to_string();
        loop {
            let mut opened = store.open(at.clone(), self.cancel)?;
            let lock = match writes {
                true => Some(lock_fresh(store, &at, &mut opened, self.cancel)?),
                false => None,
            };
            let session = LockedSession::new(opened)?;
            let whole = session.whole();
            let compared = self.tree.adopted.compared;
            if compared.is_some_and(|compared| compared != whole.tree.node_count()) {
                return Err(Error::new(
                    Kind::SessionLocked,
                    "the session grew while the import compared it; import again",
                ));
            }
            let planned = Extension::plan(&self, contents, is_known, whole)?;
            self.count(&planned, whole)?;
            let mut file = Appender::new(session, lock);
            if self.write(&planned, contents, &mut file)? {
                return Ok(self.row);
            }
        }
    }

    fn count(&mut self, planned: &Extension, opened: &OpenedLog) -> Result<()> {
        let tree = &opened.tree;
        let listed = branches::list(tree);
        let mut tips: HashSet<String> = listed
            .iter()
            .map(|branch| tree.id(branch.tip).to_owned())
            .collect();
        // For each new entry that is bookkeeping, the nearest step at or above it. Bookkeeping does not make
        // branches.
        let mut steps: HashMap<String, Option<String>> = HashMap::new();
        for step in &planned.steps {
            let above = step.parent.as_ref().and_then(|parent| {
                if let Some(above) = steps.get(parent) {
                    return above.clone();
                }
                match tree.find(parent) {
                    Some(parent) => {
                        let above = tree.skip_bookkeeping(Some(parent));
                        above.map(|above| tree.id(above).to_owned())
                    }
                    None => Some(parent.clone()),
                }
            });
            let entry = self.tree.entries.get(step.entry);
            if entry.is_some_and(|entry| self.maker.is_step(entry)) {
                if let Some(above) = above {
                    tips.remove(&above);
                }
                tips.insert(step.id.to_string());
            } else {
                steps.insert(step.id.to_string(), above);
            }
        }
        self.row.branches = (tips.len() as u64).saturating_sub(1);
        self.row.recovered = self.row.recovered.min(self.row.branches);
        self.row.entries_added = planned.steps.len() as u64;
        self.row.revised = planned.revised;
        // An entry that marks a gap stays in the file, even when the missing parent is found.
        let new = planned.steps.iter().filter(|step| {
            let entry = self.tree.entries.get(step.entry);
            entry.is_some_and(|entry| matches!(entry.content, EntryContent::Gap { .. }))
        });
        self.row.gaps = new.count() as u64;
        for node in tree.entries() {
            self.row.gaps += u64::from(is_gap(opened, node)?);
        }
        Ok(())
    }

    /// Writes the planned entries, if there are any. The last line is the leaf record. False if nothing was written,
    /// because shed branches had to be moved back first.
    fn write(
        &mut self,
        planned: &Extension,
        contents: &mut dyn Contents,
        file: &mut Appender,
    ) -> Result<bool> {
        let whole = file.session.whole();
        let tree = &whole.tree;
        let name = self.new_name(whole)?;
        self.row.name = name.clone().or_else(|| tree.name().map(str::to_owned));
        let leaf = Leaf::find(whole, self)?;
        let source = planned.leaf.clone();
        let source_node = source.as_deref().and_then(|id| tree.find(id));
        let has_moved = leaf.is_left_by_import
            && planned.steps.is_empty()
            && source.is_some()
            && !tree.is_same_conversation(source_node, leaf.at);
        let labels: Vec<_> = self.new_labels(planned, tree);
        self.row.entries_added += labels.len() as u64 + u64::from(name.is_some());
        let is_new = !planned.steps.is_empty()
            || name.is_some()
            || has_moved
            || !labels.is_empty()
            || leaf.has_import && self.git.has_seen_more(&leaf.git);
        let Some(lock) = file.lock.as_ref().filter(|_| is_new) else {
            return Ok(true);
        };
        let to = match leaf.is_left_by_import {
            true => source.clone(),
            false => leaf.id.clone(),
        };
        let used = self.used(planned, &labels);
        let used = used.iter().map(String::as_str).chain(to.as_deref());
        if file.session.bring_back(lock, used)? {
            return Ok(false);
        }
        let from = planned.steps.last().map(|step| step.id.to_string());
        let from = from.or_else(|| leaf.id.clone());
        // The number includes leaf records, so that each leaf record gets a different id.
        let entries = tree.node_count() + planned.steps.len();
        for step in &planned.steps {
            self.check()?;
            let Some(entry) = self.tree.entries.get(step.entry) else {
                continue;
            };
            let body = self.maker.body(contents, entry)?;
            let links = LineLinks {
                id: step.id,
                parent: step.parent.as_deref(),
                copied_from: step.copied_from,
                first_kept: first_kept(entry).and_then(|kept| planned.renamed(kept)),
            };
            let mut line = Vec::new();
            self.maker.line(&mut line, entry, &body, &links);
            file.push(line)?;
        }
        for line in labels {
            file.push(line)?;
        }
        if let Some(name) = name {
            let at = self.tree.entries.last().map_or(0, |entry| entry.time);
            file.push(self.name_line(&name, to.as_deref(), at, entries))?;
        }
        if let Some(line) = self.git_record(&leaf.git, to.as_deref(), entries) {
            file.push(line)?;
        }
        file.push(self.leaf_record(&MovedLeaf {
            from: from.as_deref(),
            to: to.as_deref(),
            source: source.as_deref(),
            entries,
            git_before: &leaf.git,
        }))?;
        file.finish()?;
        Ok(true)
    }

    /// The ids of the entries that the planned lines name, as parents or in other members.
    fn used(&self, planned: &Extension, labels: &[Vec<u8>]) -> Vec<String> {
        let mut used: Vec<String> = Vec::new();
        for step in &planned.steps {
            used.extend(step.parent.clone());
            used.extend(step.copied_from.map(|id| id.to_string()));
            let kept = self.tree.entries.get(step.entry).and_then(first_kept);
            used.extend(kept.and_then(|kept| planned.renamed(kept)));
        }
        let targets = labels.iter().filter_map(|line| json::get(line, "targetId"));
        used.extend(targets.filter_map(json::id).map(Into::into));
        used
    }

    /// The lines with labels for new forks.
    fn new_labels(&self, planned: &Extension, tree: &Tree) -> Vec<Vec<u8>> {
        let labels = self.tree.labels.iter();
        let new = labels.filter(|label| tree.find_any(&label.id.to_string()).is_none());
        new.filter_map(|label| {
            let entry = self.tree.entries.get(label.entry)?;
            label_line(
                label.id,
                &planned.renamed(entry.id)?,
                &self.maker.redaction.text(&label.text),
                entry.time,
            )
        })
        .collect()
    }

    /// The new name of the session: the tool's title, if the session has no name or has a name from an import.
    fn new_name(&self, opened: &OpenedLog) -> Result<Option<String>> {
        let title = self
            .row
            .name
            .as_deref()
            .and_then(treelined_core::name::given);
        let tree = &opened.tree;
        let Some(title) = title.filter(|title| tree.name() != Some(title)) else {
            return Ok(None);
        };
        let mut entries = tree.entries().rev();
        let named = entries.find(|node| tree.kind(*node) == EntryKind::SessionInfo);
        let is_ours = match named {
            None => tree.name().is_none(),
            Some(node) => json::get(&stored(opened, node)?, "origin").is_some(),
        };
        Ok(Some(title).filter(|_| is_ours))
    }
}

fn stored(opened: &OpenedLog, node: Node) -> Result<Vec<u8>> {
    let bodies = opened.log.bodies();
    bodies.entry(&bodies.fetch(&opened.tree, node)?)
}

/// The leaf of a session file before an import.
struct Leaf {
    at: Option<Node>,
    id: Option<String>,
    /// Whether the leaf is still at the position where the last import left it: the entry at which the tool continued.
    /// False if the user has moved the leaf since then, or if the last import kept the user's leaf.
    is_left_by_import: bool,
    /// Whether an earlier import has written conversations of the tool.
    has_import: bool,
    /// The positions in git that the leaf record of the tool's last import has.
    git: InGit,
}

impl Leaf {
    fn find(opened: &OpenedLog, work: &SessionWork<'_>) -> Result<Self> {
        let tree = &opened.tree;
        let at = tree.file_leaf();
        let numbers = (0..tree.node_count()).rev();
        let nodes = numbers.filter_map(|number| tree.node(number));
        let adopted = &work.tree.adopted;
        // A file without a leaf record of an import was shortened, so the user has not moved its leaf since then.
        let mut is_left_by_import = adopted.guests.is_empty();
        let (mut has_import, mut git) = (false, InGit::default());
        for node in nodes.filter(|node| tree.kind(*node) == EntryKind::LeafRecord) {
            let line = opened.log.bodies().read(tree.place(node))?;
            let cause = json::get_path(&line, &["data", "cause"]).and_then(json::string);
            let tool = json::get_path(&line, &["data", "import", "report", "session", "tool"]);
            let tool = tool.and_then(json::string);
            if cause.as_deref() == Some("import")
                && tool.is_none_or(|tool| tool == work.maker.tool.name())
            {
                let source = json::get_path(&line, &["data", "import", "sourceLeaf"]);
                let source = source.and_then(json::string);
                let source = source.and_then(|id| tree.find(&id));
                is_left_by_import = tree.is_same_conversation(source, at);
                (has_import, git) = (true, InGit::kept(&line));
                break;
            }
        }
        let mut starts = adopted.starts.iter().filter_map(|start| tree.find(start));
        is_left_by_import |= starts.any(|start| tree.is_same_conversation(Some(start), at));
        Ok(Self {
            at,
            id: at.map(|at| tree.id(at).to_owned()),
            is_left_by_import,
            has_import,
            git,
        })
    }
}

/// An entry to append.
struct Step {
    /// The index of the entry in the planned tree.
    entry: usize,
    id: NodeId,
    parent: Option<String>,
    /// The original of this entry: an older version of the same node, or the entry of a branch that is copied.
    copied_from: Option<NodeId>,
}

/// The entries that an import adds to a session.
struct Extension {
    steps: Vec<Step>,
    revised: u64,
    /// The entry at which the tool continues.
    leaf: Option<String>,
    /// For each replaced entry, its newer version. For each adopted node, its entry.
    newer: HashMap<NodeId, Option<String>>,
}

impl Extension {
    /// The entry of a node in the file. `None` for a node that is adopted at the empty position.
    fn renamed(&self, id: NodeId) -> Option<String> {
        let own = || Some(id.to_string());
        self.newer.get(&id).cloned().unwrap_or_else(own)
    }

    fn plan(
        work: &SessionWork<'_>,
        contents: &mut dyn Contents,
        is_known: &dyn Fn(&TreeEntry) -> bool,
        opened: &OpenedLog,
    ) -> Result<Self> {
        let tree = &opened.tree;
        let entries = &work.tree.entries;
        let on_path = path(entries, work.tree.leaf);
        let mut planned = Self {
            steps: Vec::new(),
            revised: 0,
            leaf: None,
            newer: HashMap::new(),
        };
        let adopted = &work.tree.adopted;
        // For each planned entry: the id of its current version, and the reason if it gets this version now.
        let mut ids: Vec<(Option<String>, Renewal)> = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            work.check()?;
            let above = entry.parent.and_then(|parent| ids.get(parent));
            let below = || adopted.below.get(&at).cloned();
            let parent = above.map_or_else(below, |(id, _)| id.clone());
            let above = above.map_or(Renewal::None, |(_, above)| *above);
            if let Some(its) = adopted.entries.get(&at) {
                planned.newer.insert(entry.id, its.clone());
                ids.push((its.clone(), Renewal::None));
                continue;
            }
            if tree.find_any(&entry.id.to_string()).is_none() {
                planned.steps.push(Step {
                    entry: at,
                    id: entry.id,
                    parent,
                    copied_from: entry.copied_from.as_ref().map(|_| entry.id),
                });
                ids.push((Some(entry.id.to_string()), Renewal::None));
                continue;
            }
            let (latest, next) = versions(work, tree, entry);
            let is_on_path = on_path.get(at).copied().unwrap_or_default();
            let is_changed =
                !is_known(entry) && has_changed(work, contents, entry, opened, latest)?;
            planned.revised += u64::from(is_changed);
            let renewal = match above {
                // A gap does not get a new version.
                _ if matches!(entry.content, EntryContent::Gap { .. }) => Renewal::None,
                Renewal::Moved => Renewal::Moved,
                _ if leaves_gap(entries, entry, opened, latest)? => Renewal::Moved,
                Renewal::Revised if is_on_path => Renewal::Revised,
                _ if is_changed => Renewal::Revised,
                _ => Renewal::None,
            };
            let counts = match renewal {
                Renewal::None => latest,
                Renewal::Revised | Renewal::Moved => next,
            };
            if renewal != Renewal::None {
                let node = tree.find(&latest.to_string());
                let beside = node.and_then(|node| tree.parent(node));
                let beside = beside.map(|parent| tree.id(parent).to_owned());
                let stays = above == Renewal::None && renewal == Renewal::Revised;
                planned.steps.push(Step {
                    entry: at,
                    id: next,
                    parent: if stays { beside } else { parent },
                    copied_from: Some(latest),
                });
            }
            let counts = counts.to_string();
            if renewal != Renewal::None || latest != entry.id {
                planned.newer.insert(entry.id, Some(counts.clone()));
            }
            ids.push((Some(counts), renewal));
        }
        let leaf = work.tree.leaf.and_then(|leaf| ids.get(leaf));
        planned.leaf = leaf.and_then(|(id, _)| id.clone());
        Ok(planned)
    }
}

/// The reason why an entry gets a new version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewal {
    None,
    /// The tool has changed the entry, or an entry above it.
    Revised,
    /// The parent of the entry, or of an entry above it, was missing at the last import and is found now.
    Moved,
}

/// Whether the parent of an entry was missing at the last import and is found now.
fn leaves_gap(
    entries: &[TreeEntry],
    entry: &TreeEntry,
    opened: &OpenedLog,
    latest: NodeId,
) -> Result<bool> {
    let is_node = |entry: &TreeEntry| matches!(entry.content, EntryContent::Node { .. });
    let above = entry.parent.and_then(|parent| entries.get(parent));
    let tree = &opened.tree;
    let stored = tree.find(&latest.to_string());
    let stored = stored.and_then(|node| tree.parent(node));
    match (above.filter(|above| is_node(above)), stored) {
        (Some(_), Some(stored)) if is_node(entry) => is_gap(opened, stored),
        _ => Ok(false),
    }
}

/// Whether a stored entry marks a gap, that is a missing parent.
fn is_gap(opened: &OpenedLog, node: Node) -> Result<bool> {
    if opened.tree.kind(node) != EntryKind::Custom {
        return Ok(false);
    }
    let entry = stored(opened, node)?;
    Ok(json::get(&entry, "customType") == Some(b"\"import.gap\""))
}

/// For each planned entry, whether it is on the path to the leaf.
fn path(entries: &[TreeEntry], leaf: Option<usize>) -> Vec<bool> {
    let mut on_path = vec![false; entries.len()];
    let mut at = leaf;
    while let Some(slot) = at.and_then(|at| on_path.get_mut(at)) {
        *slot = true;
        at = at.and_then(|at| entries.get(at)?.parent);
    }
    on_path
}

/// The id of the newest version of an entry in the file, and the id that the next version would have.
fn versions(work: &SessionWork<'_>, tree: &Tree, entry: &TreeEntry) -> (NodeId, NodeId) {
    let (native_id, key) = match &entry.content {
        EntryContent::Node { member, node, .. } => match work.maker.find(*member, *node) {
            Ok((member, node)) => (member.native_id.as_str(), &*node.key),
            Err(_) => return (entry.id, entry.id),
        },
        EntryContent::Gap { .. } => return (entry.id, entry.id),
    };
    let mut latest = entry.id;
    for number in 2u32.. {
        let next = NodeId::of(work.maker.tool, native_id, &format!("{key}~{number}"));
        if tree.find_any(&next.to_string()).is_none() {
            return (latest, next);
        }
        latest = next;
    }
    (latest, latest)
}

/// Whether the entry that the mapper makes now differs from the newest version in the file.
fn has_changed(
    work: &SessionWork<'_>,
    contents: &mut dyn Contents,
    entry: &TreeEntry,
    opened: &OpenedLog,
    latest: NodeId,
) -> Result<bool> {
    if matches!(entry.content, EntryContent::Gap { .. }) {
        return Ok(false);
    }
    let Some(node) = opened.tree.find(&latest.to_string()) else {
        return Ok(false);
    };
    let Body { kind, members } = work.maker.body(contents, entry)?;
    let mut made = b"{\"type\":".to_vec();
    json::push_string(&mut made, kind);
    made.extend_from_slice(&members);
    made.push(b'}');
    let line = stored(opened, node)?;
    let kind_of = |line: &[u8]| json::get(line, "type").map(<[u8]>::to_vec);
    if kind_of(&line) != kind_of(&made) {
        return Ok(true);
    }
    let is_other = |line: &[u8], made: &[u8]| mapped(line) != mapped(made);
    // If the two lines differ only because secrets were replaced in one of them, the tool has not changed the record.
    Ok(is_other(&line, &made)
        && work
            .maker
            .redaction
            .both([&line, &made])
            .is_none_or(|[line, made]| is_other(&line, &made)))
}

/// The members of a stored line that come from a mapper, in order.
fn mapped(line: &[u8]) -> Vec<Vec<u8>> {
    let mut mapped = Vec::new();
    let Ok(mut members) = json::Members::open(line, 0) else {
        return mapped;
    };
    while let Ok(Some(member)) = members.next_member() {
        if !NOT_MAPPED.iter().any(|name| member.is(line, name)) {
            let span = member.key.start..member.value.end;
            mapped.push(line.get(span).unwrap_or_default().to_vec());
        }
    }
    mapped
}
