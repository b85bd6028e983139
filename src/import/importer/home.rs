//! Conversations that a session has, or from which they were handed over (session-file.md §4.6 and §5.8, "Home").

use super::handed::{Continuation, HandedOver, said};
use super::ledger::Ledger;
use super::line::Contents;
use super::reading::{ReadSource, SourceContents};
use crate::format;
use crate::member::{Member, NodeKind};
use crate::neutral::{NeutralPath, Options, PathHash, PathMessage, Said, hash};
use crate::tool::Tool;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use treelined_core::context::{self, Format, Kept, PathStep};
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::tree::Node;
use treelined_files::cancel::Cancel;
use treelined_files::log::OpenedLog;
use treelined_files::os::file::Location;
use treelined_files::store::Store;
use treelined_files::store::catalogue::CatalogueRow;

/// The most bytes of messages that are handed over.
const MAX_BYTES: usize = 512 << 20;

/// The parts of each message of a native session.
pub(super) type Beginning = Arc<Vec<Vec<Said>>>;

/// `data.continuation` of a leaf record.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContinuationRecord {
    id: String,
    session_id: String,
    entry_id: String,
    tool: String,
    native_id: Option<String>,
    from: Option<String>,
    summary: Option<String>,
    thinking: Option<String>,
    messages: u64,
    sha256: String,
}

/// The leaf records of a session about conversations of one tool.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The natives that imports have brought.
    natives: HashSet<String>,
    /// The entries of adopted nodes, by the ids that these would have.
    pub(super) adopted: HashMap<String, Option<String>>,
    /// In the order of the file; of one id the last one.
    continuations: Vec<ContinuationRecord>,
}

impl Records {
    pub(super) fn of(opened: &OpenedLog, tool: Tool) -> Result<Self> {
        let mut records = Self::default();
        let Some(header) = opened.log.header() else {
            return Ok(records);
        };
        let tree = &opened.tree;
        let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
        for node in nodes.filter(|node| tree.kind(*node) == EntryKind::LeafRecord) {
            let line = opened.log.bodies().read(tree.place(node))?;
            if let Some(import) = json::get_path(&line, &["data", "import"]) {
                records.take_import(import, &header.id, tool);
            } else if let Some(record) = json::get_path(&line, &["data", "continuation"])
                && let Ok(record) = serde_json::from_slice::<ContinuationRecord>(record)
                && record.session_id == header.id
                && record.tool == tool.name()
            {
                records.continuations.retain(|known| known.id != record.id);
                records.continuations.push(record);
            }
        }
        Ok(records)
    }

    fn take_import(&mut self, import: &[u8], session_id: &str, tool: Tool) {
        let text = |name: &str| {
            let raw = json::get_path(import, &["report", "session", name]);
            raw.and_then(json::string)
        };
        // In a copy of the file under another id, the records say nothing.
        if text("sessionId").as_deref() != Some(session_id)
            || text("tool").as_deref() != Some(tool.name())
        {
            return;
        }
        let natives = json::get(import, "natives").map(serde_json::from_slice::<Vec<String>>);
        self.natives.extend(natives.into_iter().flatten().flatten());
        let adopted = json::get(import, "adopted").map(serde_json::from_slice::<HashMap<_, _>>);
        self.adopted.extend(adopted.into_iter().flatten().flatten());
    }

    /// Whether a path was handed over to a native session.
    pub(super) fn is_guest(&self, native: &str) -> bool {
        let mut records = self.continuations.iter();
        records.any(|record| record.native_id.as_deref() == Some(native))
    }

    /// Whether an import has brought a native session.
    pub(super) fn has(&self, native: &str) -> bool {
        self.natives.contains(native)
    }

    /// The continuation that counts for a native session: the latest one, and of those without a native id, of which the
    /// session may begin with several, the longest. `beginning` reads what the messages of the session say.
    pub(super) fn continuation(
        &self,
        opened: &OpenedLog,
        tool: Tool,
        native: &str,
        beginning: &mut dyn FnMut() -> Result<Beginning>,
    ) -> Result<Option<Continuation>> {
        let is_candidate = |record: &&ContinuationRecord| {
            let id = record.native_id.as_deref();
            id.is_none_or(|id| id == native) && opened.tree.find(&record.entry_id).is_some()
        };
        let records = self.continuations.iter().rev().filter(is_candidate);
        let mut records: Vec<&ContinuationRecord> = records.collect();
        records.sort_by_key(|record| match record.native_id {
            Some(_) => Reverse(u64::MAX),
            None => Reverse(record.messages),
        });
        for record in records {
            let is_named = record.native_id.is_some();
            let same = |said: &Beginning| beginning_with_hash(said, &record.sha256);
            let mut began = None;
            if !is_named {
                began = same(&beginning()?);
                if began.is_none() {
                    continue;
                }
            }
            let path = path_of(opened, tool, record)?;
            let handed = if hash(&path.messages) == record.sha256 {
                HandedOver::of(&path)
            } else {
                if is_named {
                    began = same(&beginning()?);
                }
                let Some(said) = began else {
                    continue;
                };
                HandedOver::all_of(said, &record.entry_id)
            };
            return Ok(Some(Continuation {
                entry_id: record.entry_id.clone(),
                handed,
                messages: record.messages,
            }));
        }
        Ok(None)
    }
}

/// The parts of the first messages that have this hash.
fn beginning_with_hash(said: &[Vec<Said>], sha256: &str) -> Option<Vec<Said>> {
    let mut hash = PathHash::default();
    for (at, parts) in said.iter().enumerate() {
        parts.iter().for_each(|part| hash.push(part));
        if hash.clone().digits() == sha256 {
            return Some(said.iter().take(at + 1).flatten().cloned().collect());
        }
    }
    None
}

/// The path of a continuation, made again.
fn path_of(opened: &OpenedLog, tool: Tool, record: &ContinuationRecord) -> Result<NeutralPath> {
    let options = Options {
        tool: Some(tool),
        last: None,
        keeps_thoughts: record.thinking.as_deref() == Some("text"),
        summary: record.summary.as_deref(),
    };
    let mut path = messages(opened, opened.tree.find(&record.entry_id))?;
    if let Some(from) = &record.from {
        let first = path.iter().position(|message| message.entry_id == *from);
        path.drain(..first.unwrap_or_default());
    }
    Ok(NeutralPath::of(path, options))
}

/// The context at an entry, as it is handed over.
fn messages(opened: &OpenedLog, entry: Option<Node>) -> Result<Vec<PathMessage>> {
    let (tree, bodies) = (&opened.tree, opened.log.bodies());
    let steps = tree.path(entry).into_iter().map(|node| PathStep {
        node,
        kind: tree.kind(node),
        role: tree.role(node),
    });
    let steps: Vec<PathStep> = steps.collect();
    let mut reader = bodies.reader();
    let mut imported = HashSet::new();
    let mut body = |node: Node| {
        let entry = reader.entry(&bodies.fetch(tree, node)?)?;
        if tree.kind(node) == EntryKind::CustomMessage && json::get(&entry, "origin").is_some() {
            imported.insert(tree.id(node).to_owned());
        }
        Ok(entry)
    };
    let kept = Kept::of(&steps, &mut body, |id| tree.find(id))?;
    let context = context::build_within(&steps, kept, Format::Agent, MAX_BYTES, &mut body)?;
    let messages = context.messages.into_iter().zip(context.entry_ids);
    let messages = messages.map(|(json, id)| {
        let entry_id = id.unwrap_or_default();
        PathMessage {
            is_scaffolding: imported.contains(&entry_id),
            json,
            entry_id,
        }
    });
    Ok(messages.collect())
}

/// The parts of each message of a native session, in the order of its source.
pub(super) fn beginning(
    tool: Tool,
    number: usize,
    member: &Member,
    contents: &mut dyn Contents,
) -> Result<Beginning> {
    let mut found = Vec::new();
    for node in &member.nodes {
        let is_message = matches!(
            node.kind,
            NodeKind::User | NodeKind::Assistant | NodeKind::ToolResult
        );
        if !is_message {
            continue;
        }
        let mut records = Vec::with_capacity(node.places.len());
        for place in &node.places {
            let mut bytes = Vec::new();
            contents.read(number, *place, &mut bytes)?;
            records.push(bytes);
        }
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        found.push(said(&format(tool).body(member, node, &slices).members));
    }
    Ok(Arc::new(found))
}

/// Finds the sessions of native sessions that the ledger does not place.
pub(super) struct Homes<'a> {
    pub(super) tool: Tool,
    pub(super) store: &'a Store,
    /// The session files by id.
    pub(super) known: &'a HashMap<String, Location>,
    pub(super) ledger: &'a Ledger,
    pub(super) cancel: &'a Cancel,
}

impl Homes<'_> {
    /// The sessions by the native sessions that were read.
    pub(super) fn find(&self, read: &[ReadSource]) -> Result<HashMap<String, String>> {
        let mut homes = HashMap::new();
        let members = || {
            let sources = read.iter().enumerate();
            sources.flat_map(|(at, source)| source.members.iter().map(move |it| (at, it)))
        };
        let is_new = |member: &Member| self.ledger.target(self.tool, &member.native_id).is_none();
        if !members().any(|(_, member)| is_new(member)) {
            return Ok(homes);
        }
        let rows = self.store.rows()?;
        let of: Vec<usize> = members().map(|(at, _)| at).collect();
        let mut contents = SourceContents::new(read, &of);
        let mut opened: HashMap<&str, Option<(OpenedLog, Records)>> = HashMap::new();
        for (number, (_, member)) in members().enumerate() {
            let native = &member.native_id;
            if !is_new(member) || homes.contains_key(native) {
                continue;
            }
            let mut began: Option<Beginning> = None;
            let mut beginning = || match &began {
                Some(began) => Ok(Arc::clone(began)),
                None => {
                    let read = beginning(self.tool, number, member, &mut contents)?;
                    Ok(Arc::clone(began.insert(read)))
                }
            };
            // The session with the number of messages that it handed over.
            let mut best: Option<(u64, &str)> = None;
            for row in &rows {
                let Some((id, at)) = self.candidate(row, native) else {
                    continue;
                };
                let session = opened.entry(id).or_insert_with(|| self.open(at));
                let Some((log, records)) = session else {
                    continue;
                };
                if records.has(native) {
                    best = Some((u64::MAX, id));
                    break;
                }
                let found = records.continuation(log, self.tool, native, &mut beginning)?;
                let found = found.map(|found| (found.messages, id));
                let count = |of: Option<(u64, &str)>| of.map(|(count, _)| count);
                if count(found) > count(best) {
                    best = found;
                }
            }
            homes.extend(best.map(|(_, id)| (native.clone(), id.to_owned())));
        }
        Ok(homes)
    }

    /// The session of a row, if it may have a native session.
    fn candidate<'r>(
        &self,
        row: &'r Arc<CatalogueRow>,
        native: &str,
    ) -> Option<(&'r str, &Location)> {
        let row = &row.listing;
        let mut imported = row.source.iter().flat_map(|source| &source.native_ids);
        let mut continued = row.continued.iter();
        let is_candidate = imported.any(|id| id == native)
            || continued.any(|continued| {
                let id = continued.native_id.as_deref();
                continued.tool == self.tool.name() && id.is_none_or(|id| id == native)
            });
        let id = row.header.as_ref().filter(|_| is_candidate)?.id.as_str();
        Some((id, self.known.get(id)?))
    }

    /// `None` for a session that cannot be read.
    fn open(&self, at: &Location) -> Option<(OpenedLog, Records)> {
        let opened = self.store.open(at.clone(), self.cancel).ok()?;
        let records = Records::of(&opened, self.tool).ok()?;
        Some((opened, records))
    }
}
