//! An entry that a client sends.

use super::{push_raw_member, push_text_member, validate};
use crate::bytes::part;
use crate::error::{Error, Result};
use crate::id;
use crate::id::EntryId;
use crate::json;
use crate::json::Members;
use crate::name;
use crate::timestamp;
use std::ops::Range;

/// A planned entry.
#[derive(Debug, Clone)]
pub struct NewEntry {
    pub type_name: String,
    /// The id that the client has chosen; `None` to allocate one.
    pub id: Option<EntryId>,
    pub parent: NewParent,
    pub timestamp: Option<String>,
    /// All other members, as `,"name":value…` on one line.
    pub members: Vec<u8>,
    /// Whether the entry extends a branch in the background (session-file.md §4.9).
    pub background: bool,
    /// Whether the entry is a compaction that keeps nothing. Such a compaction names itself as the first kept entry.
    pub keeps_nothing: bool,
}

/// The parent of a new entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewParent {
    /// The entry before the new entry; for the first new entry, the leaf.
    Previous,
    /// This entry; `None` makes a root.
    Named(Option<String>),
}

impl NewEntry {
    pub(super) fn of(type_name: &str, members: Vec<u8>) -> Self {
        Self {
            type_name: type_name.to_owned(),
            id: None,
            parent: NewParent::Previous,
            timestamp: None,
            members,
            background: false,
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

    /// The members of the entry as one JSON object, without type, id, parent and timestamp.
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

    /// A `label` entry, with the label normalized. `None` and blank text remove the label.
    pub fn label(target_id: &str, label: Option<&str>) -> Self {
        let mut members = Vec::new();
        push_text_member(&mut members, "targetId", target_id);
        if let Some(label) = label.and_then(name::given) {
            push_text_member(&mut members, "label", &label);
        }
        Self::of("label", members)
    }

    /// A `session_info` entry, with the name normalized. Blank text removes the name.
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

    /// Makes this entry an entry of a background branch. `index` is its index in the operation; `group` names the
    /// question, if the branch is one of the candidates for its answer. Refuses a compaction or a summary, since these
    /// are about the conversation of the leaf.
    pub fn in_background(mut self, index: usize, group: Option<&str>) -> Result<Self> {
        if let "compaction" | "branch_summary" = self.type_name.as_str() {
            let reason = "cannot be written in the background: leave out keepLeaf";
            return Err(Error::entry_invalid(index, "type", reason));
        }
        for name in ["background", "group"] {
            if json::get(&self.object(), name).is_some() {
                let reason = "is set by the daemon: use keepLeaf and the parameter group";
                return Err(Error::entry_invalid(index, name, reason));
            }
        }
        push_raw_member(&mut self.members, "background", b"true");
        if let Some(group) = group {
            push_text_member(&mut self.members, "group", group);
        }
        self.background = true;
        Ok(self)
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
            } else if member.is(object, "background") {
                return Err(invalid("background", "is set by the daemon: use keepLeaf"));
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
            background: false,
        })
    }
}

/// Normalizes the texts at `places` in `members`. `places` must be in order. A text that is normalized already keeps
/// its bytes.
pub(super) fn with_normal_names(
    members: &[u8],
    places: impl Iterator<Item = Range<usize>>,
) -> Vec<u8> {
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
