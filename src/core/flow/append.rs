//! Plans appends: the entries that a client sends are checked, linked, and completed with ids and
//! timestamps (protocol.md §3, §9).

use super::path_rules::PathRules;
use super::{IdAllocator, leaf, line, push_raw_member, push_text_member, validate};
use crate::bytes::part;
use crate::entry::Kind as EntryKind;
use crate::error::{Error, Kind, Result};
use crate::flow::PlannedLines;
use crate::id::{self, EntryId, Source};
use crate::json::quoted;
use crate::json::{self, Members};
use crate::name;
use crate::timestamp;
use crate::tree::{Node, Tree};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// A planned entry.
#[derive(Debug, Clone)]
pub struct NewEntry {
    pub type_name: String,
    /// Chosen by the client, or `None` to allocate one.
    pub id: Option<EntryId>,
    pub parent: NewParent,
    pub timestamp: Option<String>,
    /// All other members, as `,"name":value…` on one line.
    pub members: Vec<u8>,
    /// Whether it is a compaction that keeps nothing: then it names itself as the first kept entry.
    pub keeps_nothing: bool,
}

/// The parent of a new entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewParent {
    /// The entry before it; for the first one the leaf.
    Previous,
    /// This entry; `None` makes a root.
    Named(Option<String>),
}

impl NewEntry {
    fn of(type_name: &str, members: Vec<u8>) -> Self {
        Self {
            type_name: type_name.to_owned(),
            id: None,
            parent: NewParent::Previous,
            timestamp: None,
            members,
            keeps_nothing: false,
        }
    }

    pub fn message(message: &[u8]) -> Result<Self> {
        validate::message(0, message)?;
        validate::nesting(0, "message", message)?;
        let mut members = Vec::with_capacity(message.len() + 12);
        push_raw_member(&mut members, "message", message);
        Ok(Self::of("message", members))
    }

    /// A message of a plugin; `content` and `details` are raw JSON.
    pub fn custom_message(
        custom_type: &str,
        content: &[u8],
        display: bool,
        details: Option<&[u8]>,
    ) -> Result<Self> {
        let mut members = Vec::with_capacity(content.len() + 64);
        push_text_member(&mut members, "customType", custom_type);
        push_raw_member(&mut members, "content", content);
        push_raw_member(
            &mut members,
            "display",
            if display { b"true" } else { b"false" },
        );
        if let Some(details) = details {
            push_raw_member(&mut members, "details", details);
        }
        let entry = Self::of("custom_message", members);
        let object = entry.object();
        validate::entry(0, "custom_message", &object)?;
        validate::nesting(0, "", &object)?;
        Ok(entry)
    }

    /// Its members as one JSON object, without type, id, parent and timestamp.
    pub fn object(&self) -> Vec<u8> {
        let mut object = self.members.clone();
        match object.first_mut() {
            Some(comma) => *comma = b'{',
            None => object.push(b'{'),
        }
        object.push(b'}');
        object
    }

    /// A text member.
    pub fn text(&self, name: &str) -> Option<String> {
        let object = self.object();
        let text = json::get(&object, name).and_then(json::string);
        text.map(std::borrow::Cow::into_owned)
    }

    /// Normalized; `None` and blank text remove the label.
    pub fn label(target_id: &str, label: Option<&str>) -> Self {
        let mut members = Vec::new();
        push_text_member(&mut members, "targetId", target_id);
        if let Some(label) = label.and_then(name::given) {
            push_text_member(&mut members, "label", &label);
        }
        Self::of("label", members)
    }

    /// Normalized; blank text removes the name.
    pub fn session_info(name: &str) -> Self {
        let mut members = Vec::new();
        push_text_member(&mut members, "name", &name::normalized(name));
        Self::of("session_info", members)
    }

    pub fn with_id(mut self, id: Option<&str>, field: &str) -> Result<Self> {
        if let Some(id) = id {
            if id == "root" {
                return Err(Error::entry_invalid(
                    0,
                    "id",
                    "stands for the empty position",
                ));
            }
            if !id::is_valid(id) {
                return Err(Error::invalid_params(field, "is not a usable entry id"));
            }
            self.id = Some(EntryId::new(id));
        }
        Ok(self)
    }

    #[must_use]
    pub fn with_parent(mut self, parent: NewParent) -> Self {
        self.parent = parent;
        self
    }

    /// Reads one element of `append_entries`.
    pub fn parse(index: usize, object: &[u8]) -> Result<Self> {
        let invalid = |field: &str, reason: &str| Error::entry_invalid(index, field, reason);
        let not_json = |_| invalid("", "is not a JSON object");
        validate::nesting(index, "", object)?;
        let text = |raw: &[u8]| json::string(raw).map(std::borrow::Cow::into_owned);
        let (mut type_name, mut entry_id, mut given_timestamp) = (None, None, None);
        let mut parent = NewParent::Previous;
        let mut members = Vec::with_capacity(object.len());
        let mut keeps_nothing = false;
        let mut names = Vec::new();
        let mut walk = Members::open(object, json::skip_space(object, 0)).map_err(not_json)?;
        while let Some(member) = walk.next_member().map_err(not_json)? {
            let value = part(object, member.value.clone());
            if member.is(object, "type") {
                type_name = Some(text(value).ok_or_else(|| invalid("type", "must be a string"))?);
            } else if member.is(object, "id") {
                let id = text(value).filter(|id| id != "root" && id::is_valid(id));
                entry_id = Some(id.ok_or_else(|| invalid("id", "is not a usable entry id"))?);
            } else if member.is(object, "parentId") {
                parent = NewParent::Named(match value {
                    b"null" => None,
                    value => Some(
                        text(value)
                            .ok_or_else(|| invalid("parentId", "must be a string or null"))?,
                    ),
                });
            } else if member.is(object, "timestamp") {
                let given = text(value).filter(|text| timestamp::parse(text).is_some());
                let given = given.ok_or_else(|| invalid("timestamp", "must be ISO 8601"))?;
                given_timestamp = Some(given);
            } else if member.is(object, "firstKeptEntryId") && value == b"null" {
                keeps_nothing = true;
            } else {
                members.push(b',');
                let key = member.key.start.saturating_sub(1)..member.key.end + 1;
                members.extend_from_slice(part(object, key));
                members.push(b':');
                let start = members.len();
                json::push_one_line(&mut members, value);
                if member.is(object, "label") || member.is(object, "name") {
                    names.push((member.is(object, "label"), start..members.len()));
                }
            }
        }
        let type_name = type_name.ok_or_else(|| invalid("type", "is missing"))?;
        validate::entry(index, &type_name, object)?;
        if let "label" | "session_info" = type_name.as_str() {
            let is_label = type_name == "label";
            let places = names.into_iter().filter(|(label, _)| *label == is_label);
            members = with_normal_names(&members, places.map(|(_, place)| place));
        }
        Ok(Self {
            keeps_nothing: keeps_nothing && type_name == "compaction",
            id: entry_id.map(EntryId::new),
            type_name,
            parent,
            timestamp: given_timestamp,
            members,
        })
    }
}

/// `members` with the texts at `places` normalized; the places are in order. Texts that are normalized
/// already keep their bytes.
fn with_normal_names(members: &[u8], places: impl Iterator<Item = Range<usize>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(members.len());
    let mut copied = 0;
    for place in places {
        let given = members.get(place.clone()).and_then(json::string);
        let Some(given) = given.filter(|given| name::normalized(given) != *given) else {
            continue;
        };
        out.extend_from_slice(part(members, copied..place.start));
        json::push_string(&mut out, &name::normalized(&given));
        copied = place.end;
    }
    out.extend_from_slice(part(members, copied..));
    out
}

/// Plans appending `entries` as one operation. `stored` reads the body of an entry, to recognize a retry.
pub fn plan(
    tree: &Tree,
    source: &dyn Source,
    entries: &[NewEntry],
    stored: &dyn Fn(Node) -> Result<Vec<u8>>,
) -> Result<PlannedLines> {
    let mut planner = Planner::new(tree, source);
    let planned = planner.plan(entries, stored)?;
    let mut planned = planned
        .ok_or_else(|| Error::new(Kind::InternalError, "a single operation was not planned"))?;
    planner.keep(&mut planned);
    Ok(planned)
}

/// Plans operations that are written together, each as if those before it were written already.
pub struct Planner<'a> {
    tree: &'a Tree,
    minter: IdAllocator<'a>,
    /// Ids of planned entries, which are not in the tree.
    ahead: HashSet<Arc<str>>,
    last: Option<EntryId>,
    is_full: bool,
}

impl<'a> Planner<'a> {
    pub fn new(tree: &'a Tree, source: &'a dyn Source) -> Self {
        Self {
            tree,
            minter: IdAllocator::new(tree, source),
            ahead: HashSet::new(),
            last: None,
            is_full: false,
        }
    }

    /// The leaf after the operations planned so far; `None` if they have no lines.
    pub fn last(&self) -> Option<&EntryId> {
        self.last.as_ref()
    }

    /// Plans one more operation. `None` if it can only be planned after those before it are written, for
    /// instance because it repeats one of them.
    pub fn plan(
        &mut self,
        entries: &[NewEntry],
        stored: &dyn Fn(Node) -> Result<Vec<u8>>,
    ) -> Result<Option<PlannedLines>> {
        let tree = self.tree;
        let ids = || entries.iter().filter_map(|entry| entry.id.as_ref());
        if self.is_full
            || (!self.ahead.is_empty() && ids().any(|id| self.ahead.contains(id.as_str())))
        {
            return Ok(None);
        }
        let mut rules = PathRules::of(tree, entries, stored);
        if rules.is_some() && !self.ahead.is_empty() {
            return Ok(None);
        }
        for id in ids() {
            self.minter.keep_off(id);
        }
        let mut planned = PlannedLines::default();
        let mut new: HashMap<&str, usize> = HashMap::new();
        let mut previous = match &self.last {
            Some(last) => Some(last.as_str().to_owned()),
            None => tree.leaf().map(|leaf| tree.id(leaf).to_owned()),
        };
        for (index, entry) in entries.iter().enumerate() {
            let parent_id = match &entry.parent {
                NewParent::Previous => previous,
                NewParent::Named(None) => None,
                NewParent::Named(Some(id)) => {
                    if !new.contains_key(id.as_str()) && !self.is_known(id) {
                        return Err(Error::entry_not_found(id));
                    }
                    Some(id.clone())
                }
            };
            if let Some(id) = &entry.id {
                if new.insert(id.as_str(), index).is_some() {
                    return Err(duplicate(id));
                }
                if let Some(taken) = tree.find_any(id.as_str()) {
                    if !is_repetition(tree, taken, entry, stored)? {
                        return Err(duplicate(id));
                    }
                    previous = Some(id.as_str().to_owned());
                    planned.entry_ids.push(id.clone());
                    continue;
                }
            }
            match target(entry) {
                Some(id) if !new.contains_key(&*id) && !self.is_known(&id) => {
                    return Err(Error::entry_not_found(&id));
                }
                _ => {}
            }
            let id = entry.id.clone().unwrap_or_else(|| self.minter.id());
            if let Some(rules) = &mut rules {
                rules.add(index, &id, parent_id.as_deref())?;
            }
            let timestamp = entry.timestamp.as_deref().unwrap_or(self.minter.now());
            let mut members = entry.members.clone();
            if entry.keeps_nothing {
                push_text_member(&mut members, "firstKeptEntryId", id.as_str());
            }
            let entry_line = line(
                &entry.type_name,
                &id,
                parent_id.as_deref(),
                timestamp,
                &members,
            );
            planned.has_steps |= !EntryKind::of(&entry.type_name).is_bookkeeping();
            planned.lines.push(entry_line);
            previous = Some(id.as_str().to_owned());
            planned.entry_ids.push(id);
        }
        Ok(Some(planned))
    }

    /// Ends all that was planned, if it is bookkeeping, with a record of the place where the file opens.
    pub fn keep(&mut self, planned: &mut PlannedLines) {
        leaf::keep(planned, &mut self.minter, self.tree);
    }

    /// Treats this operation as written: the next ones come after it.
    pub fn accept(&mut self, entries: &[NewEntry], planned: &PlannedLines) {
        let tree = self.tree;
        let ids = planned.entry_ids.iter();
        for id in ids.filter(|id| tree.find_any(id.as_str()).is_none()) {
            self.ahead.insert(id.shared());
            self.last = Some(id.clone());
        }
        // Clients are notified of each new name, and the tree has only the last one: so a name ends the batch.
        self.is_full |= entries
            .iter()
            .any(|entry| entry.type_name == "session_info");
    }

    fn is_known(&self, id: &str) -> bool {
        self.tree.find(id).is_some() || self.ahead.contains(id)
    }
}

/// The target of a label or an edit, which must exist: otherwise the entry would have no effect.
fn target(entry: &NewEntry) -> Option<String> {
    if !matches!(entry.type_name.as_str(), "label" | "context_edit") {
        return None;
    }
    entry.text("targetId")
}

/// Whether the stored entry equals the one that the client sends: then it is a retry.
fn is_repetition(
    tree: &Tree,
    taken: Node,
    entry: &NewEntry,
    stored: &dyn Fn(Node) -> Result<Vec<u8>>,
) -> Result<bool> {
    if tree.find(tree.id(taken)).is_none() {
        return Ok(false);
    }
    if let NewParent::Named(parent_id) = &entry.parent {
        let parent = tree.parent(taken).map(|parent| tree.id(parent));
        if parent != parent_id.as_deref() {
            return Ok(false);
        }
    }
    let mut known = stored(taken)?;
    let type_is = json::get(&known, "type").and_then(json::string);
    let timestamp_is = json::get(&known, "timestamp").and_then(json::string);
    if type_is.as_deref() != Some(&entry.type_name)
        || (entry.timestamp.is_some() && timestamp_is.as_deref() != entry.timestamp.as_deref())
    {
        return Ok(false);
    }
    for name in ["type", "id", "parentId", "timestamp"] {
        known = json::without_member(&known, name);
    }
    let mut sent = entry.object();
    if entry.keeps_nothing {
        let id = quoted(tree.id(taken));
        sent = json::with_member(&sent, "firstKeptEntryId", &id);
    }
    if entry.type_name == "label" {
        (known, sent) = (without_blank_label(known), without_blank_label(sent));
    }
    if known == sent {
        return Ok(true);
    }
    let parsed = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).ok();
    Ok(parsed(&known).is_some_and(|known| Some(known) == parsed(&sent)))
}

/// A blank label removes the label, as an absent one does.
fn without_blank_label(object: Vec<u8>) -> Vec<u8> {
    match json::get(&object, "label") {
        Some(b"null" | b"\"\"") => json::without_member(&object, "label"),
        _ => object,
    }
}

fn duplicate(id: &EntryId) -> Error {
    Error::new(
        Kind::DuplicateEntryId,
        format!("another entry has the id {:?}", id.as_str()),
    )
    .with_details(serde_json::json!({ "entryId": id.as_str() }))
}
