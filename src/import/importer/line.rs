//! Makes the lines of imported entries: the mapper's entry of a node, with ids, time and origin added.

use super::redaction::Redaction;
use crate::family::forest::{EntryContent, MemberNumber, TreeEntry, may_be_leaf};
use crate::ids::NodeId;
use crate::member::{Body, Member, Node, NodeKind, Place};
use crate::reader::Format;
use std::cell::RefCell;
use std::collections::HashMap;
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::{json, timestamp};

/// The most bytes of an entry. In a longer entry, the longest strings are cut; the origin still has the whole strings.
const MAX_ENTRY_BYTES: usize = 48 << 20;
/// A string that is cut keeps at least this many bytes.
const LEAST_STRING_BYTES: usize = 1 << 10;
/// The most bytes of a buffer for records that is used again, and the most such buffers.
const MAX_KEPT_BYTES: usize = 256 << 10;
const MAX_KEPT_RECORDS: usize = 8;
/// The mark at the end of a string that was cut.
const CUT: &[u8] = "…".as_bytes();

/// Reads places of the sources.
pub(super) trait Contents {
    /// Replaces the content of `into` with the bytes of a place in the source of a member.
    fn read(&mut self, member: MemberNumber, place: Place, into: &mut Vec<u8>) -> Result<()>;
}

/// Makes the lines for the entries of one tool.
pub(super) struct LineMaker<'a> {
    pub(super) tool: Tool,
    pub(super) format: &'a dyn Format,
    pub(super) members: &'a [Member],
    /// For each member, the name of its source's origin.
    pub(super) origins: &'a [String],
    /// For each native session, its session.
    pub(super) sessions: &'a HashMap<String, String>,
    /// For each member, the ids of its nodes' entries.
    pub(super) node_ids: &'a [Vec<NodeId>],
    /// For each adopted node, its entry.
    pub(super) adopted: HashMap<NodeId, String>,
    pub(super) redaction: &'a Redaction,
    /// For each member whose entries refer to other entries: the index of each node, by its key.
    pub(super) keys: RefCell<HashMap<MemberNumber, HashMap<Box<str>, usize>>>,
    /// Buffers for the records of an entry, which the next entry uses again.
    pub(super) records: RefCell<Vec<Vec<u8>>>,
}

/// The ids that a line contains.
pub(super) struct LineLinks<'a> {
    pub(super) id: NodeId,
    pub(super) parent: Option<&'a str>,
    pub(super) copied_from: Option<NodeId>,
    /// The first entry that a compaction keeps; `None` if it keeps none.
    pub(super) first_kept: Option<String>,
}

impl LineMaker<'_> {
    /// The entry that the mapper makes of a node: its type, and its members without ids, time and origin.
    pub(super) fn body(&self, contents: &mut dyn Contents, entry: &TreeEntry) -> Result<Body> {
        let (member, node) = match &entry.content {
            EntryContent::Gap { expected_parent } => return Ok(gap(expected_parent)),
            EntryContent::Node { member, node, .. } => (*member, *node),
        };
        let (owner, node) = self.find(member, node)?;
        let mut records = self.records.take();
        records.resize_with(records.len().max(node.places.len()), Vec::new);
        for (place, bytes) in node.places.iter().zip(&mut records) {
            contents.read(member, *place, bytes)?;
        }
        let slices = records.iter().take(node.places.len());
        let slices: Vec<&[u8]> = slices.map(Vec::as_slice).collect();
        let mut body = self.format.body(owner, node, &slices);
        for (name, key) in self.format.references(node, &slices) {
            let named = self.with_key(member, &key);
            let named = named.map(|id| {
                let adopted = self.adopted.get(&id).cloned();
                adopted.unwrap_or_else(|| id.to_string())
            });
            push_text(&mut body.members, name, &named.unwrap_or(key));
        }
        drop(slices);
        records.retain(|record| record.capacity() <= MAX_KEPT_BYTES);
        records.truncate(MAX_KEPT_RECORDS);
        self.records.replace(records);
        if let NodeKind::Subagent { native_id } = &node.kind {
            let session = self.sessions.get(&**native_id).cloned();
            let session = session.unwrap_or_else(|| crate::ids::session_id(self.tool, native_id));
            body.members = with_session(&body.members, &session);
        }
        if simdutf8::basic::from_utf8(&body.members).is_err() {
            body.members = String::from_utf8_lossy(&body.members)
                .into_owned()
                .into_bytes();
        }
        if memchr::memchr2(b'\n', b'\r', &body.members).is_some() {
            let mut one_line = Vec::with_capacity(body.members.len());
            json::push_one_line(&mut one_line, &body.members);
            body.members = one_line;
        }
        if body.members.len() > MAX_ENTRY_BYTES {
            body.members = shortened(&body.members, MAX_ENTRY_BYTES);
        }
        Ok(body)
    }

    /// Appends the line of an entry that has this body.
    pub(super) fn line(
        &self,
        line: &mut Vec<u8>,
        entry: &TreeEntry,
        body: &Body,
        links: &LineLinks<'_>,
    ) {
        line.reserve(body.members.len() + 384);
        line.extend_from_slice(b"{\"type\":");
        json::push_string(line, body.kind);
        push_text(line, "id", &links.id.to_string());
        line.extend_from_slice(b",\"parentId\":");
        line.extend_from_slice(&json::quoted_or_null(links.parent));
        line.extend_from_slice(b",\"timestamp\":\"");
        timestamp::push(line, entry.time);
        line.push(b'"');
        line.extend_from_slice(&self.redaction.members(&body.members));
        if let EntryContent::Node { member, node, .. } = &entry.content
            && let Ok((_, node)) = self.find(*member, *node)
        {
            if let NodeKind::Compaction { .. } = node.kind {
                let own = || links.id.to_string();
                let kept = links.first_kept.clone().unwrap_or_else(own);
                push_text(line, "firstKeptEntryId", &kept);
            }
            self.push_origin(line, *member, node);
        }
        if let Some(copied_from) = links.copied_from {
            push_text(line, "copiedFrom", &copied_from.to_string());
        }
        line.push(b'}');
    }

    /// Whether the entry is a step of the conversation, and not bookkeeping.
    pub(super) fn is_step(&self, entry: &TreeEntry) -> bool {
        match &entry.content {
            EntryContent::Gap { .. } => false,
            EntryContent::Node { member, node, .. } => self
                .find(*member, *node)
                .is_ok_and(|(_, node)| may_be_leaf(&node.kind)),
        }
    }

    pub(super) fn find(&self, member: MemberNumber, node: usize) -> Result<(&Member, &Node)> {
        let owner = self.members.get(member);
        let found = owner.and_then(|owner| Some((owner, owner.nodes.get(node)?)));
        found.ok_or_else(|| Error::new(Kind::InternalError, "an entry without its node"))
    }

    /// The id of the entry for the node of a member that has this key.
    fn with_key(&self, member: MemberNumber, key: &str) -> Option<NodeId> {
        let mut keys = self.keys.borrow_mut();
        let keys = keys.entry(member).or_insert_with(|| {
            let nodes = self.members.get(member).into_iter();
            let nodes = nodes.flat_map(|member| member.nodes.iter().enumerate());
            nodes.map(|(at, node)| (node.key.clone(), at)).collect()
        });
        self.node_ids.get(member)?.get(*keys.get(key)?).copied()
    }

    /// Appends `,"origin":{…}` with the tool and the key of the node. If the bytes of the source are kept, it also
    /// has the places of the entry's records.
    fn push_origin(&self, line: &mut Vec<u8>, member: MemberNumber, node: &Node) {
        let source = self.origins.get(member).map_or("", String::as_str);
        line.extend_from_slice(b",\"origin\":{\"tool\":");
        json::push_string(line, self.tool.name());
        if !source.is_empty() {
            push_text(line, "source", source);
            line.extend_from_slice(b",\"ranges\":[");
            for (at, place) in node.places.iter().enumerate() {
                if at > 0 {
                    line.push(b',');
                }
                line.extend_from_slice(format!("[{},{}]", place.at, place.len).as_bytes());
            }
            line.push(b']');
        }
        push_text(line, "id", &node.key);
        line.push(b'}');
    }
}

fn gap(expected_parent: &str) -> Body {
    let mut members = b",\"customType\":\"import.gap\",\"data\":{\"expectedParent\":".to_vec();
    json::push_string(&mut members, expected_parent);
    members.push(b'}');
    Body {
        kind: "custom",
        members,
    }
}

/// Appends `,"name":"text"`.
pub(super) fn push_text(out: &mut Vec<u8>, name: &str, text: &str) {
    out.push(b',');
    json::push_string(out, name);
    out.push(b':');
    json::push_string(out, text);
}

/// The members of a subagent's entry, with the id of its session added to `data`.
fn with_session(members: &[u8], session_id: &str) -> Vec<u8> {
    let mut object = b"{\"id\":0".to_vec();
    object.extend_from_slice(members);
    object.push(b'}');
    let data = json::get_path(&object, &["data"]).filter(|data| data.starts_with(b"{"));
    let data = json::with_member(
        data.unwrap_or(b"{}"),
        "sessionId",
        &json::quoted(session_id),
    );
    let object = json::with_member(&object, "data", &data);
    let inner = object.strip_prefix(b"{\"id\":0").unwrap_or_default();
    inner.strip_suffix(b"}").unwrap_or_default().to_vec()
}

/// The same JSON with its longest strings cut. It has at most `limit` bytes, unless members other than strings are
/// too long.
fn shortened(members: &[u8], limit: usize) -> Vec<u8> {
    let mut longest = limit / 2;
    loop {
        let cut = with_strings_cut(members, longest);
        if cut.len() <= limit || longest <= LEAST_STRING_BYTES {
            return cut;
        }
        longest /= 2;
    }
}

fn with_strings_cut(text: &[u8], longest: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len().min(MAX_ENTRY_BYTES));
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'"', rest) {
        let (before, string) = rest.split_at(start + 1);
        out.extend_from_slice(before);
        let (end, last_fit) = string_end(string, longest);
        let (inner, after) = string.split_at(end);
        match inner.get(..last_fit).filter(|_| inner.len() > longest) {
            Some(kept) => {
                out.extend_from_slice(kept);
                out.extend_from_slice(CUT);
            }
            None => out.extend_from_slice(inner),
        }
        let (quote, after) = after.split_at(after.len().min(1));
        out.extend_from_slice(quote);
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

/// The position of the closing quote of a string, and the last character boundary at or before `longest`.
fn string_end(string: &[u8], longest: usize) -> (usize, usize) {
    let mut at = 0;
    let mut last_fit = 0;
    while let Some(byte) = string.get(at) {
        let is_between = !(0x80..0xc0).contains(byte);
        if at <= longest && is_between {
            last_fit = at;
        }
        match byte {
            b'"' => return (at, last_fit),
            b'\\' => {
                at += if string.get(at + 1) == Some(&b'u') {
                    6
                } else {
                    2
                }
            }
            _ => at += 1,
        }
    }
    (string.len(), last_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_strings_are_cut_between_characters_and_the_rest_stays_json() {
        let text = format!(
            ",\"a\":\"{}\",\"b\":[\"\\u00e9\\n\\\\{}\",1]",
            "é".repeat(3_000),
            "x".repeat(2_000)
        );
        for limit in [2_100, 4_000, 5_000] {
            let cut = shortened(text.as_bytes(), limit);
            assert!(cut.len() <= limit + 16, "{} of {limit}", cut.len());
            let mut object = b"{\"z\":0".to_vec();
            object.extend_from_slice(&cut);
            object.push(b'}');
            let value: serde_json::Value = serde_json::from_slice(&object).unwrap();
            assert!(value["a"].as_str().unwrap().ends_with('…'));
            assert_eq!(value["b"][1], 1);
        }
        assert_eq!(shortened(b",\"a\":\"b\"", 100), b",\"a\":\"b\"");
    }

    #[test]
    fn a_subagent_names_its_session() {
        let members = b",\"customType\":\"subagent\",\"data\":{\"agentId\":\"a\"}";
        let with = with_session(members, "S");
        assert_eq!(
            String::from_utf8(with).unwrap(),
            ",\"customType\":\"subagent\",\"data\":{\"agentId\":\"a\",\"sessionId\":\"S\"}"
        );
    }
}
