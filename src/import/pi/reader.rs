//! Reads the lines of a session file and makes its nodes.

use super::order;
use super::references::{DUPLICATE, references_of};
use crate::member::{Base, Member, Node, NodeKind, Parent, Place, Record};
use crate::reader::Reader;
use std::borrow::Cow;
use std::collections::HashMap;
use treelined_core::{json, timestamp};
use xxhash_rust::xxh3::xxh3_64;

/// Reads one session file.
#[derive(Default)]
pub(super) struct PiReader {
    member: Member,
    has_header: bool,
    ids: HashMap<String, ReadId>,
    /// The parent of the next entry. It is used for entries of version 1, which do not name their parents.
    last: Option<Parent>,
    is_version_1: bool,
    /// Whether some node names its parent by key, because the parent was not read yet.
    has_keys: bool,
    /// The index of the node at which the conversation continues.
    leaf: Option<u32>,
}

/// The facts about an id that was read.
struct ReadId {
    /// The parent for nodes that name this id. It is the entry of the record or, if the record has no entry, the
    /// parent of the record.
    parent: Parent,
    hash: u64,
    /// Facts that are kept only if the record has no entry.
    skipped: Option<SkippedRecord>,
}

/// A record that does not become an entry.
struct SkippedRecord {
    parent_id: Option<String>,
    /// The first entry after the record.
    next: Option<u32>,
}

/// The most types of records that are counted by name, and the longest name in bytes.
const MOST_TYPES: usize = 200;
const LONGEST_TYPE: usize = 64;

impl Reader for PiReader {
    fn record(&mut self, record: Record<'_>) {
        let names = ["type", "id", "parentId", "timestamp"];
        let [kind, id, parent, time] = json::get_each(record.bytes, names);
        let kind = kind.and_then(json::string).unwrap_or_default();
        let time = time.and_then(|time| timestamp::parse(&json::string(time)?));
        if time.is_some() {
            self.member.ended = time;
        }
        let id = id.and_then(json::id).filter(|id| !id.is_empty());
        let parent_id = parent.and_then(json::id);
        let parent = self.parent(parent);
        match (&*kind, id) {
            ("session", _) => self.header(record.bytes),
            ("title", _) => self.rename(json::get(record.bytes, "title")),
            ("", _) => {}
            (_, None) if !self.is_version_1 => {}
            ("session_info", id) => {
                self.rename(json::get(record.bytes, "name"));
                self.pass(id, parent, parent_id, record);
            }
            ("custom", id) if is_leaf_record(record.bytes) => {
                self.leaf = match &parent {
                    Parent::Node(index) => Some(*index),
                    Parent::Base | Parent::Key(_) => None,
                };
                self.pass(id, parent, parent_id, record);
            }
            (kind, id) => {
                self.follow(parent_id);
                return self.entry(kind, id, parent, time, record);
            }
        }
        self.count(&kind);
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        self.member.leaf = self.leaf;
        if self.has_keys {
            order::sort(&mut self.member);
        }
        vec![self.member]
    }
}

impl PiReader {
    pub(super) fn new(path: &str) -> Self {
        let mut reader = Self {
            is_version_1: true,
            ..Self::default()
        };
        reader.member.native_id = session_of(path);
        reader.member.part_id.clone_from(&reader.member.native_id);
        reader
    }

    /// Reads the first header. Later headers are ignored.
    fn header(&mut self, header: &[u8]) {
        if std::mem::replace(&mut self.has_header, true) {
            return;
        }
        let names = [
            "id",
            "version",
            "timestamp",
            "cwd",
            "title",
            "parentSession",
            "branchedFrom",
        ];
        let [id, version, time, cwd, title, parent, branched] = json::get_each(header, names);
        let text = |value: Option<&[u8]>| {
            let text = value.and_then(json::string).map(Cow::into_owned);
            text.filter(|text| !text.trim().is_empty())
        };
        if let Some(id) = text(id) {
            self.member.part_id.clone_from(&id);
            self.member.native_id = id;
        }
        self.is_version_1 = matches!(version, None | Some(b"1" | b"null"));
        self.member.started = text(time).and_then(|time| timestamp::parse(&time));
        self.member.cwd = text(cwd);
        self.member.title = self.member.title.take().or(text(title));
        if let Some(parent) = text(parent).or(text(branched)) {
            let native_id = session_of(&parent);
            self.member.base = Base::CopyOf { native_id };
        }
    }

    fn rename(&mut self, name: Option<&[u8]>) {
        let name = name.and_then(json::string).unwrap_or_default();
        let name = name.trim();
        self.member.title = (!name.is_empty()).then(|| name.to_owned());
    }

    /// The parent of an entry with this `parentId`.
    fn parent(&self, id: Option<&[u8]>) -> Parent {
        match id.and_then(json::id) {
            Some(id) => match self.ids.get(&*id) {
                Some(known) => known.parent.clone(),
                None => Parent::Key(id.into()),
            },
            None if self.is_version_1 && id.is_none() => self.last.clone().unwrap_or(Parent::Base),
            None => Parent::Base,
        }
    }

    /// Handles a record without an entry: its children become children of its parent.
    fn pass(
        &mut self,
        id: Option<Cow<'_, str>>,
        parent: Parent,
        parent_id: Option<Cow<'_, str>>,
        record: Record<'_>,
    ) {
        let Some(id) = id else { return };
        let parent_id = parent_id.map(Cow::into_owned);
        let skipped = SkippedRecord {
            parent_id,
            next: None,
        };
        self.ids.entry(id.into_owned()).or_insert(ReadId {
            parent,
            hash: xxh3_64(record.bytes),
            skipped: Some(skipped),
        });
    }

    /// If the record `parent_id` has no entry, notes that the next entry is the first one after it. Does the same for
    /// the records without an entry above it.
    fn follow(&mut self, parent_id: Option<Cow<'_, str>>) {
        let next = u32::try_from(self.member.nodes.len()).ok();
        let mut at = parent_id.map(Cow::into_owned);
        while let Some(id) = at.take() {
            let skipped = self
                .ids
                .get_mut(&id)
                .and_then(|known| known.skipped.as_mut());
            if let Some(skipped) = skipped.filter(|skipped| skipped.next.is_none()) {
                skipped.next = next;
                at.clone_from(&skipped.parent_id);
            }
        }
    }

    fn entry(
        &mut self,
        kind: &str,
        id: Option<Cow<'_, str>>,
        parent: Parent,
        time: Option<timestamp::Millis>,
        record: Record<'_>,
    ) {
        let bytes_hash = xxh3_64(record.bytes);
        let index = u32::try_from(self.member.nodes.len()).unwrap_or(u32::MAX);
        let earlier = id.as_deref().and_then(|id| self.ids.get(id));
        if earlier.is_some_and(|known| known.hash == bytes_hash) {
            self.member.duplicates += 1;
            return;
        }
        let duplicated = earlier.map(|known| known.parent.clone());
        let is_duplicate = duplicated.is_some();
        let key = match &id {
            Some(id) if is_duplicate => format!("{id}/{}", record.number),
            Some(id) => id.as_ref().to_owned(),
            None => format!("#{}", record.number),
        };
        let own = matches!(&parent, Parent::Key(named) if **named == *key);
        let parent = duplicated.unwrap_or(if own { Parent::Base } else { parent });
        self.has_keys |= matches!(parent, Parent::Key(_));
        let node = Node {
            key: key.into(),
            parent,
            kind: match is_duplicate {
                true => NodeKind::Custom,
                false => self.node_kind(kind, record.bytes),
            },
            time,
            order: record.number,
            places: vec![Place {
                at: record.at,
                len: record.bytes.len() as u64,
            }],
            fingerprint: fingerprint(kind, record.bytes),
            note: match is_duplicate {
                true => Some(DUPLICATE.into()),
                false => self.reference(kind, record.bytes),
            },
            is_open: false,
        };
        self.member.nodes.push(node);
        if !is_duplicate {
            self.leaf = Some(index);
            self.last = Some(Parent::Node(index));
            if let Some(id) = id {
                let known = ReadId {
                    parent: Parent::Node(index),
                    hash: bytes_hash,
                    skipped: None,
                };
                self.ids.insert(id.into_owned(), known);
            }
        }
    }

    fn node_kind(&self, kind: &str, entry: &[u8]) -> NodeKind {
        match kind {
            "message" => match role(entry).as_deref() {
                Some("user") => NodeKind::User,
                Some("assistant") => NodeKind::Assistant,
                Some("toolResult") => NodeKind::ToolResult,
                _ => NodeKind::Scaffolding,
            },
            "compaction" => NodeKind::Compaction {
                first_kept: self.first_kept(entry),
            },
            "model_change" | "thinking_level_change" => NodeKind::ModelChange,
            "custom_message" | "branch_summary" | "context_edit" => NodeKind::Scaffolding,
            _ => NodeKind::Custom,
        }
    }

    /// The first entry that a compaction keeps. The compaction names it by its id, or in version 1 by its number.
    fn first_kept(&self, entry: &[u8]) -> Option<u32> {
        let [id, number] = json::get_each(entry, ["firstKeptEntryId", "firstKeptEntryIndex"]);
        if let Some(id) = id.and_then(json::id) {
            return match self.ids.get(&*id)? {
                ReadId {
                    skipped: Some(skipped),
                    ..
                } => skipped.next,
                ReadId {
                    parent: Parent::Node(index),
                    ..
                } => Some(*index),
                _ => None,
            };
        }
        let number: u64 = str::from_utf8(number?).ok()?.parse().ok()?;
        let nodes = &self.member.nodes;
        let found = nodes.binary_search_by_key(&number, |node| node.order);
        u32::try_from(found.ok()?).ok()
    }

    /// If this entry refers to a record without an entry, the key of the parent of that record. `None` otherwise, and
    /// if there is no such parent.
    fn reference(&self, kind: &str, entry: &[u8]) -> Option<Box<str>> {
        let [name] = references_of(kind) else {
            return None;
        };
        let known = self.ids.get(&*json::id(json::get(entry, name)?)?)?;
        known.skipped.as_ref()?;
        match &known.parent {
            Parent::Node(index) => {
                let node = self.member.nodes.get(usize::try_from(*index).ok()?)?;
                Some(node.key.clone())
            }
            Parent::Key(key) => Some(key.clone()),
            Parent::Base => None,
        }
    }

    fn count(&mut self, kind: &str) {
        let counts = &mut self.member.origin_only;
        let kind = match kind {
            "" => "unknown",
            kind if kind.len() > LONGEST_TYPE => "other",
            kind if counts.len() >= MOST_TYPES && !counts.contains_key(kind) => "other",
            kind => kind,
        };
        *counts.entry(kind.to_owned()).or_insert(0) += 1;
    }
}

/// Whether an entry is bookkeeping of treelined: a move of the leaf, a deletion, a branch, tags, git (session-file.md
/// §4).
fn is_leaf_record(entry: &[u8]) -> bool {
    let custom = json::get(entry, "customType").and_then(json::string);
    let records = [
        "treelined.leaf",
        "treelined.trashed",
        "treelined.restored",
        "treelined.branch",
        "treelined.archived",
        "treelined.unarchived",
        "treelined.tags",
        "treelined.git",
    ];
    custom.is_some_and(|custom| records.contains(&&*custom))
}

fn role(entry: &[u8]) -> Option<Cow<'_, str>> {
    json::get_path(entry, &["message", "role"]).and_then(json::string)
}

/// A hash of type, role and time. Copies of an entry have the same hash, even if another program has changed the
/// body. The id alone is not enough: it is short, so entries of unrelated sessions may have the same id.
fn fingerprint(kind: &str, entry: &[u8]) -> u64 {
    let time = json::get(entry, "timestamp").unwrap_or_default();
    let role = role(entry).unwrap_or_default();
    let parts = [kind.as_bytes(), b"\0", role.as_bytes(), b"\0", time];
    xxh3_64(&parts.concat()).max(1)
}

/// The id of a session, from a path (`<time>_<id>.jsonl`) or from an id.
fn session_of(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let Some(stem) = name.strip_suffix(".jsonl") else {
        return name.to_owned();
    };
    let id = stem.split_once('_').map_or(stem, |(_, id)| id);
    id.to_owned()
}
