//! Finds the session to which a native session belongs (session-file.md §4.6 and §5.8, "Home"). It is the session
//! that already has the native session, or the session from which the conversation was handed over.

use super::handed::{Continuation, HandedOver, said, words_of};
use super::ledger::Ledger;
use super::line::Contents;
use super::reading::{ReadSource, SourceContents};
use super::recorded::{At, Record, records_of};
use crate::family::forest::MemberNumber;
use crate::format;
use crate::member::{Member, NodeKind};
use crate::neutral::{NeutralPath, Options, PathHash, Said, hash, parts_of};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use treelined_core::agent::Tool;
use treelined_core::context::PathStep;
use treelined_core::context::handed::{self, MAX_BYTES};
use treelined_core::entry::{Kind as EntryKind, Role};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::Node;
use treelined_files::cancel::Cancel;
use treelined_files::log::OpenedLog;
use treelined_files::os::file::Location;
use treelined_files::store::Store;
use treelined_files::store::catalogue::{CatalogueRow, Rows};

/// The most messages of the user below a path that are compared with the first prompt of the tool.
const MAX_PROMPTS: usize = 64;

/// The member `data.continuation` of a leaf record: a path that was handed over to a tool.
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
    /// The time of the leaf record, at which the path was handed over; `Millis::MIN` if it cannot be read.
    #[serde(skip)]
    at: Millis,
}

/// The facts in a session's leaf records about native sessions of one tool.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The native sessions that imports have written into the session.
    natives: HashSet<String>,
    /// The nodes that imports have adopted. The key is the id that an import would give to the entry of the node, and
    /// the value is the entry that the session has instead.
    pub(super) adopted: HashMap<String, Option<String>>,
    /// For each native session, by its id: the latest continuation.
    named: HashMap<String, ContinuationRecord>,
    /// The continuations that do not have a native id, by the hash of their paths. If several have the same hash, the
    /// continuation with the most messages counts.
    unnamed: HashMap<String, ContinuationRecord>,
    /// For each native session, by its id: the entries at which its records begin.
    pub(super) recorded: HashMap<String, Vec<Node>>,
}

impl Records {
    pub(super) fn of(opened: &OpenedLog, tool: Tool) -> Result<Self> {
        let mut records = Self::default();
        let Some(header) = opened.log.header() else {
            return Ok(records);
        };
        let tree = &opened.tree;
        let mut continuations: Vec<Option<ContinuationRecord>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
        for node in nodes.filter(|node| tree.kind(*node) == EntryKind::LeafRecord) {
            let line = opened.log.bodies().read(tree.place(node))?;
            if let Some(import) = json::get_path(&line, &["data", "import"]) {
                records.take_import(import, &header.id, tool);
            } else if let Some(record) = json::get_path(&line, &["data", "continuation"])
                && let Ok(mut record) = serde_json::from_slice::<ContinuationRecord>(record)
                && record.session_id == header.id
                && record.tool == tool.name()
            {
                let written = json::get(&line, "timestamp").and_then(json::string);
                record.at = written.map_or(Millis::MIN, |written| {
                    timestamp::parse(&written).unwrap_or(Millis::MIN)
                });
                let earlier = places.insert(record.id.clone(), continuations.len());
                if let Some(earlier) = earlier.and_then(|at| continuations.get_mut(at)) {
                    *earlier = None;
                }
                continuations.push(Some(record));
            }
        }
        for record in continuations.into_iter().flatten() {
            records.take_continuation(record, opened);
        }
        records.recorded = records_of(opened)?;
        Ok(records)
    }

    fn take_continuation(&mut self, record: ContinuationRecord, opened: &OpenedLog) {
        if let Some(native) = &record.native_id {
            self.named.insert(native.clone(), record);
            return;
        }
        let known = self.unnamed.get(&record.sha256);
        let is_longest = known.is_none_or(|known| record.messages >= known.messages);
        if is_longest && opened.tree.find(&record.entry_id).is_some() {
            self.unnamed.insert(record.sha256.clone(), record);
        }
    }

    fn take_import(&mut self, import: &[u8], session_id: &str, tool: Tool) {
        let text = |name: &str| {
            let raw = json::get_path(import, &["report", "session", name]);
            raw.and_then(json::string)
        };
        // If the file was copied under another id, its leaf records are about the original session, and are ignored.
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
        self.named.contains_key(native)
    }

    /// Whether an import has written a native session into the session.
    pub(super) fn has(&self, native: &str) -> bool {
        self.natives.contains(native)
    }

    /// The continuation to which a native session belongs. It is the latest continuation with the native id. If there
    /// is none, it is the longest continuation without an id whose path is the beginning of the native session.
    pub(super) fn continuation(
        &self,
        opened: &OpenedLog,
        tool: Tool,
        native: &mut Native<'_>,
    ) -> Result<Option<Continuation>> {
        if let Some(record) = self.named.get(&native.member.native_id)
            && let Some(found) = record.continuation(opened, tool, native)?
        {
            return Ok(Some(found));
        }
        let Some(most) = self.unnamed.values().map(|record| record.messages).max() else {
            return Ok(None);
        };
        let mut longest: Option<&ContinuationRecord> = None;
        native.walk(most, &mut |hash, _| {
            let found = self.unnamed.get(hash);
            longest = found
                .into_iter()
                .chain(longest)
                .max_by_key(|record| record.messages);
            ControlFlow::Continue(())
        })?;
        match longest {
            Some(record) => record.continuation(opened, tool, native),
            None => Ok(None),
        }
    }
}

impl ContinuationRecord {
    /// The continuation with its texts. `None` if neither the path in the session nor the beginning of the native
    /// session has the recorded hash.
    fn continuation(
        &self,
        opened: &OpenedLog,
        tool: Tool,
        native: &mut Native<'_>,
    ) -> Result<Option<Continuation>> {
        if opened.tree.find(&self.entry_id).is_none() {
            return Ok(None);
        }
        let handed = match self.path(opened, tool) {
            Some(path) => Some(HandedOver::of(&path)),
            None => {
                let said = native.beginning(self)?;
                said.map(|said| HandedOver::all_of(said, &self.entry_id))
            }
        };
        Ok(handed.map(|handed| Continuation {
            entry_id: self.entry_id.clone(),
            handed,
            prompts: self.prompts(opened),
        }))
    }

    /// The messages of the user that were below the path when the path was handed over. If a message of the user was at
    /// the end, the tool got this message as its first prompt, joined with the messages of the user right above it.
    fn prompts(&self, opened: &OpenedLog) -> Vec<(String, Arc<str>)> {
        let (tree, bodies) = (&opened.tree, opened.log.bodies());
        let first = tree.find(&self.entry_id);
        let mut looked: Vec<(Node, Arc<str>)> = Vec::new();
        looked.extend(first.map(|node| (node, Arc::default())));
        let (mut at, mut prompts) = (0, Vec::new());
        while let Some((above, words)) = looked.get(at).cloned()
            && prompts.len() < MAX_PROMPTS
        {
            at += 1;
            for node in tree.children(Some(above)) {
                let is_prompt = tree.kind(node) == EntryKind::Message
                    && tree.role(node) == Role::User
                    && tree.timestamp(node).is_none_or(|said| said <= self.at);
                if tree.kind(node).is_bookkeeping() {
                    looked.push((node, Arc::clone(&words)));
                } else if is_prompt && let Ok(line) = bodies.read(tree.place(node)) {
                    let message = json::get(&line, "message").unwrap_or_default();
                    let words = Arc::from(words.to_string() + &words_of(&parts_of(message)));
                    prompts.push((tree.id(node).to_owned(), Arc::clone(&words)));
                    looked.push((node, words));
                }
            }
        }
        prompts
    }

    /// Computes the path of the continuation from the session as it is now. `None` if this fails, or if the path has
    /// changed since it was handed over.
    fn path(&self, opened: &OpenedLog, tool: Tool) -> Option<NeutralPath> {
        let path = path_of(opened, tool, self).ok()?;
        (hash(&path.messages) == self.sha256).then_some(path)
    }
}

/// Computes the path of a continuation from the session as it is now.
fn path_of(opened: &OpenedLog, tool: Tool, record: &ContinuationRecord) -> Result<NeutralPath> {
    let options = Options {
        tool: Some(tool),
        last: None,
        keeps_thoughts: record.thinking.as_deref() == Some("text"),
        summary: record.summary.as_deref(),
    };
    let (tree, bodies) = (&opened.tree, opened.log.bodies());
    let steps = tree.path(tree.find(&record.entry_id)).into_iter();
    let steps: Vec<PathStep> = steps
        .map(|node| PathStep {
            node,
            kind: tree.kind(node),
            role: tree.role(node),
        })
        .collect();
    let mut reader = bodies.reader();
    let mut body = |node| reader.entry(&bodies.fetch(tree, node)?);
    let mut path = handed::context(tree, &steps, &mut body)?.messages;
    if let Some(from) = &record.from {
        let first = path.iter().position(|message| message.entry_id == *from);
        path.drain(..first.unwrap_or_default());
    }
    Ok(NeutralPath::of(path, options))
}

/// A native session whose beginning is compared.
pub(super) struct Native<'a> {
    pub(super) tool: Tool,
    pub(super) number: MemberNumber,
    pub(super) member: &'a Member,
    pub(super) contents: &'a mut dyn Contents,
}

impl Native<'_> {
    /// Calls `see` after each message, with the hash of all messages so far and the parts of this message. Ends after
    /// the longest beginning that a path with `most` messages can have, and after [`MAX_BYTES`].
    fn walk(
        &mut self,
        most: u64,
        see: &mut dyn FnMut(&str, Vec<Said>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut hash = PathHash::default();
        let (mut turns, mut bytes) = (0, 0);
        let mut speaker = None;
        for node in &self.member.nodes {
            let is_message = matches!(
                node.kind,
                NodeKind::User | NodeKind::Assistant | NodeKind::ToolResult
            );
            if !is_message {
                continue;
            }
            let mut records = Vec::with_capacity(node.places.len());
            for place in &node.places {
                let mut record = Vec::new();
                self.contents.read(self.number, *place, &mut record)?;
                bytes += record.len();
                records.push(record);
            }
            let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            let body = format(self.tool).body(self.member, node, &slices);
            let said = said(&body.members);
            for part in &said {
                // A model's calls belong to the message of the model.
                let its = match part.letter {
                    b'c' => b'a',
                    letter => letter,
                };
                turns += u64::from(speaker.replace(its) != Some(its));
                hash.push(part);
            }
            if turns > most || bytes > MAX_BYTES || see(&hash.clone().digits(), said).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The parts of the first message that has text; empty if no message has text.
    fn first_words(&mut self) -> Result<Vec<Said>> {
        let mut first = Vec::new();
        self.walk(u64::MAX, &mut |_, said| {
            first = said;
            match first.is_empty() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok(first)
    }

    /// The parts of the first messages that have the hash of a continuation; `None` if the hash is not found.
    fn beginning(&mut self, record: &ContinuationRecord) -> Result<Option<Vec<Said>>> {
        let mut parts = Vec::new();
        let mut is_found = false;
        self.walk(record.messages, &mut |hash, said| {
            parts.extend(said);
            is_found = hash == record.sha256;
            match is_found {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(is_found.then_some(parts))
    }
}

/// Finds the sessions of native sessions that the ledger does not have.
pub(super) struct Homes<'a> {
    pub(super) tool: Tool,
    pub(super) store: &'a Store,
    /// The rows of all sessions.
    pub(super) rows: &'a dyn Fn() -> Result<Rows>,
    /// The session files, by the ids of their sessions.
    pub(super) known: &'a HashMap<String, Location>,
    pub(super) ledger: &'a Ledger,
    pub(super) cancel: &'a Cancel,
}

/// The sessions of native sessions.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) homes: HashMap<String, String>,
    /// The native sessions that have no text so far, but have a record.
    pub(super) silent: HashSet<String>,
}

impl Homes<'_> {
    /// Finds the session of each native session that was read.
    pub(super) fn find(&self, read: &[ReadSource]) -> Result<Found> {
        let mut found = Found::default();
        let members = || {
            let sources = read.iter().enumerate();
            sources.flat_map(|(at, source)| source.members.iter().map(move |it| (at, it)))
        };
        let natives = members().map(|(_, member)| member.native_id.as_str());
        let new: HashSet<&str> = natives
            .filter(|native| self.ledger.target(self.tool, native).is_none())
            .collect();
        if new.is_empty() {
            return Ok(found);
        }
        let rows = (self.rows)()?;
        let of: Vec<usize> = members().map(|(at, _)| at).collect();
        let mut contents = SourceContents::new(read, &of);
        let records = rows.iter().flat_map(|row| &row.listing.recorded);
        let recorded: HashSet<&str> = records.map(|record| record.native_id.as_str()).collect();
        let mut first_words: HashMap<&str, Vec<Said>> = HashMap::new();
        for (number, (_, member)) in members().enumerate() {
            let id = member.native_id.as_str();
            if new.contains(id)
                && recorded.contains(id)
                && first_words.get(id).is_none_or(Vec::is_empty)
            {
                first_words.insert(
                    id,
                    self.native(number, member, &mut contents).first_words()?,
                );
            }
        }
        let offers = self.offers(&rows, &new, &first_words)?;
        for (number, (_, member)) in members().enumerate() {
            let id = &member.native_id;
            if !new.contains(id.as_str()) || found.homes.contains_key(id) {
                continue;
            }
            if let Some(session) = offers.home(&mut self.native(number, member, &mut contents))? {
                found.homes.insert(id.clone(), session.to_owned());
            } else if first_words.get(id.as_str()).is_some_and(Vec::is_empty) {
                found.silent.insert(id.clone());
            }
        }
        Ok(found)
    }

    fn native<'a>(
        &self,
        number: MemberNumber,
        member: &'a Member,
        contents: &'a mut SourceContents<'_>,
    ) -> Native<'a> {
        Native {
            tool: self.tool,
            number,
            member,
            contents,
        }
    }

    /// Reads the leaf records of all sessions that may have one of the native sessions. Sessions that cannot be read
    /// are ignored.
    fn offers(
        &self,
        rows: &[Arc<CatalogueRow>],
        new: &HashSet<&str>,
        first_words: &HashMap<&str, Vec<Said>>,
    ) -> Result<Offers> {
        let mut offers = Offers::default();
        for row in rows {
            let header = row.listing.header.as_ref();
            let header = header.filter(|_| self.may_offer(row, new));
            let Some((id, at)) = header.and_then(|it| Some((&it.id, self.known.get(&it.id)?)))
            else {
                continue;
            };
            if let Ok(opened) = self.store.open(at.clone(), self.cancel)
                && let Ok(mut records) = Records::of(&opened, self.tool)
            {
                let named = &mut records.named;
                named.retain(|_, record| opened.tree.find(&record.entry_id).is_some());
                let recorded = std::mem::take(&mut records.recorded);
                for (native, begins) in recorded {
                    let said = first_words.get(native.as_str()).map(Vec::as_slice);
                    let said = said.filter(|said| !said.is_empty());
                    let after =
                        said.map(|said| Record::of(&opened, &begins).follow(At::default(), said));
                    if matches!(after, Some(Ok(Some(_)))) {
                        let known = offers.recorded.entry(native);
                        known.or_insert_with(|| id.clone());
                    }
                }
                offers.take(id, records, new, |record| {
                    record.path(&opened, self.tool).is_some()
                });
            }
        }
        Ok(offers)
    }

    /// Whether a session may have one of these native sessions. Its row in the list decides.
    fn may_offer(&self, row: &CatalogueRow, new: &HashSet<&str>) -> bool {
        let row = &row.listing;
        let mut imported = row.source.iter().flat_map(|source| &source.native_ids);
        let mut continued = row.continued.iter();
        let mut recorded = row.recorded.iter();
        imported.any(|id| new.contains(id.as_str()))
            || recorded.any(|record| new.contains(record.native_id.as_str()))
            || continued.any(|continued| {
                let id = continued.native_id.as_deref();
                continued.tool == self.tool.name() && id.is_none_or(|id| new.contains(id))
            })
    }
}

/// A session from which a path was handed over.
#[derive(Debug, Clone)]
struct Offer {
    session_id: String,
    /// The number of messages in the path, and the time when it was handed over. The greatest rank is chosen: if two
    /// paths are equal, the agent most likely continues the path that was handed over last.
    rank: (u64, Millis),
}

/// The facts in leaf records about native sessions that the ledger does not have.
#[derive(Debug, Default)]
struct Offers {
    /// For each native session that a session already has: this session.
    imported: HashMap<String, String>,
    /// For each native session: the best offer among paths that have not changed since they were handed over.
    same: HashMap<String, Offer>,
    /// For each native session, and for each hash of a path that has changed since it was handed over: the best offer.
    /// The offer counts only if the beginning of the native session has this hash.
    changed: HashMap<String, HashMap<String, Offer>>,
    /// For each native session that a recorder has recorded: the session with the record, if both have the same
    /// beginning.
    recorded: HashMap<String, String>,
    /// For the hash of a path that was handed over without a native id: the best offer.
    unnamed: HashMap<String, Offer>,
}

impl Offers {
    fn take(
        &mut self,
        session_id: &str,
        records: Records,
        new: &HashSet<&str>,
        is_same: impl Fn(&ContinuationRecord) -> bool,
    ) {
        let natives = records.natives.into_iter();
        for native in natives.filter(|native| new.contains(native.as_str())) {
            let known = self.imported.entry(native);
            known.or_insert_with(|| session_id.to_owned());
        }
        let offer = |record: &ContinuationRecord| Offer {
            session_id: session_id.to_owned(),
            rank: (record.messages, record.at),
        };
        let named = records.named.into_iter();
        for (native, record) in named.filter(|(native, _)| new.contains(native.as_str())) {
            match is_same(&record) {
                true => keep_greatest(&mut self.same, native, offer(&record)),
                false => {
                    let changed = self.changed.entry(native).or_default();
                    keep_greatest(changed, record.sha256.clone(), offer(&record));
                }
            }
        }
        for (hash, record) in records.unnamed {
            keep_greatest(&mut self.unnamed, hash, offer(&record));
        }
    }

    /// The session to which a native session belongs.
    fn home(&self, native: &mut Native<'_>) -> Result<Option<&str>> {
        let id = &native.member.native_id;
        if let Some(session) = self.imported.get(id) {
            return Ok(Some(session));
        }
        let mut best = self.same.get(id);
        let changed = self.changed.get(id);
        let waiting = self.unnamed.values();
        let waiting = waiting.chain(changed.into_iter().flat_map(HashMap::values));
        if let Some(most) = waiting.map(|offer| offer.rank.0).max() {
            native.walk(most, &mut |hash, _| {
                let named = changed.and_then(|changed| changed.get(hash));
                let found = named.into_iter().chain(self.unnamed.get(hash));
                best = found.chain(best).max_by_key(|offer| offer.rank);
                ControlFlow::Continue(())
            })?;
        }
        let recorded = self.recorded.get(id);
        Ok(best
            .map(|offer| &offer.session_id)
            .or(recorded)
            .map(String::as_str))
    }
}

/// Keeps the offer with the greatest rank. If ranks are equal, keeps the first offer.
fn keep_greatest(offers: &mut HashMap<String, Offer>, of: String, offer: Offer) {
    let known = offers.get(&of);
    if known.is_none_or(|known| known.rank < offer.rank) {
        offers.insert(of, offer);
    }
}
