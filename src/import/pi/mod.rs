//! pi and its relatives: session files in the format of treelined itself, versions 1 to 3 (session-file.md §1, §2.5).
//!
//! Entries are copied: all members except `id` and `parentId` keep their bytes. Version 1 has neither of these
//! members; its entries form a chain. A fork is a separate file, which begins with copies of its parent's entries
//! that have the same ids. Two kinds of entries are not copied, because the importer writes its own: names of the
//! session (`session_info`, titles of oh-my-pi), and leaf records.

mod order;
mod reader;
mod references;
#[cfg(test)]
mod tests;

use super::member::{Body, Member, Node};
use super::message;
use super::reader::{Format, Reader};
use references::{DUPLICATE, references_of};
use treelined_core::json::{self, Members};

pub(crate) struct PiFormat;

/// The types of entries in the format.
const TYPES: &[&str] = &[
    "message",
    "thinking_level_change",
    "model_change",
    "compaction",
    "branch_summary",
    "context_edit",
    "custom",
    "custom_message",
    "label",
    "usage",
];

impl Format for PiFormat {
    fn has_shared_keys(&self) -> bool {
        true
    }

    fn reader(&self, path: &str) -> Box<dyn Reader> {
        Box::new(reader::PiReader::new(path))
    }

    fn body(&self, _member: &Member, node: &Node, records: &[&[u8]]) -> Body {
        let entry = records.first().copied().unwrap_or(b"{}");
        let kind = json::get(entry, "type").and_then(json::string);
        let known = TYPES.iter().find(|known| Some(**known) == kind.as_deref());
        match known {
            Some(known) if node.note.as_deref() != Some(DUPLICATE) => Body {
                kind: known,
                members: members(entry, known),
            },
            _ => wrapped(entry, node, kind.as_deref().unwrap_or_default()),
        }
    }

    fn references(&self, node: &Node, records: &[&[u8]]) -> Vec<(&'static str, String)> {
        let entry = records.first().copied().unwrap_or_default();
        let kind = json::get(entry, "type").and_then(json::string);
        let named = match node.note.as_deref() {
            Some(DUPLICATE) => &[],
            _ => references_of(kind.as_deref().unwrap_or_default()),
        };
        let named = named.iter().filter_map(|name| {
            let id = json::id(json::get(entry, name)?)?;
            let key = node.note.as_deref().unwrap_or(&id);
            Some((*name, key.to_owned()))
        });
        named.collect()
    }
}

/// The members of an entry that are copied.
fn members(entry: &[u8], kind: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(entry.len());
    let Ok(mut members) = Members::open(entry, json::skip_space(entry, 0)) else {
        return out;
    };
    while let Ok(Some(member)) = members.next_member() {
        let name = member.name(entry);
        let is_given = match &*name {
            b"type" | b"id" | b"parentId" | b"timestamp" | b"origin" => true,
            b"firstKeptEntryId" | b"firstKeptEntryIndex" => kind == "compaction",
            name => references_of(kind).iter().any(|own| own.as_bytes() == name),
        };
        if is_given {
            continue;
        }
        out.extend_from_slice(b",\"");
        out.extend_from_slice(entry.get(member.key.clone()).unwrap_or_default());
        out.extend_from_slice(b"\":");
        let value = entry.get(member.value.clone()).unwrap_or_default();
        match &*name {
            b"message" if kind == "message" => push_message(&mut out, value),
            _ => json::push_one_line(&mut out, value),
        }
    }
    out
}

/// Appends a message. In the first versions the role `custom` has another name.
fn push_message(out: &mut Vec<u8>, message: &[u8]) {
    let role = json::get(message, "role").and_then(json::string);
    match role.as_deref() {
        Some("hookMessage") => {
            json::push_one_line(out, &json::with_member(message, "role", b"\"custom\""));
        }
        _ => json::push_one_line(out, message),
    }
}

/// The `custom` entry for an entry that has an unknown type, or the same id as an earlier entry.
fn wrapped(entry: &[u8], node: &Node, kind: &str) -> Body {
    if node.note.as_deref() == Some(DUPLICATE) {
        return Body {
            kind: "custom",
            members: message::duplicate(entry),
        };
    }
    let mut members = b",\"customType\":".to_vec();
    json::push_string(&mut members, &format!("pi.{kind}"));
    members.extend_from_slice(b",\"data\":");
    json::push_one_line(&mut members, entry);
    Body {
        kind: "custom",
        members,
    }
}
