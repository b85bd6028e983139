//! Decides under which id each native session is imported. This is the tool's own id, unless two databases have
//! different conversations with the same id.

use super::ledger::Ledger;
use super::reading::ReadSource;
use super::source::facts::Source;
use crate::ids::NodeId;
use crate::member::{Base, Member};
use memchr::memmem;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::Hash;
use treelined_core::agent::Tool;

/// Sets the ids of members. The main member of a source keeps the id under which it was imported before, even if the
/// tool now writes another id. A member of a database gets a new id if another database has a conversation with the
/// same id and the two have no message in common.
pub(super) fn keep(
    members: &mut [Member],
    source_of: &[usize],
    sources: &[ReadSource],
    ledger: &Ledger,
) {
    let read_of = |number: usize| source_of.get(number).and_then(|at| sources.get(*at));
    let ids: HashSet<&str> = members.iter().map(|member| &*member.native_id).collect();
    let mut renamed: HashMap<usize, String> = HashMap::new();
    let mut taken: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut unplaced = Vec::new();
    let mut before = None;
    for (number, member) in members.iter().enumerate() {
        let Some(read) = read_of(number) else {
            continue;
        };
        let source = source_of.get(number);
        let is_main = std::mem::replace(&mut before, source) != source;
        match former_id(member, read, ledger) {
            Former::Same => taken.entry(&member.native_id).or_default().push(number),
            Former::Other(id) if is_main && !ids.contains(&*id) => {
                renamed.insert(number, id);
            }
            Former::None if read.source.part.is_some() => unplaced.push(number),
            Former::Other(_) | Former::None => {}
        }
    }
    for number in unplaced {
        let (Some(member), Some(read)) = (members.get(number), read_of(number)) else {
            continue;
        };
        let holders = taken.entry(&member.native_id).or_default();
        let mut owners = holders.iter().filter_map(|holder| members.get(*holder));
        let is_other = match owners.next() {
            Some(owner) => !has_common_node(owner, member),
            None => is_of_other_database(member, read.source.tool, ledger),
        };
        match is_other {
            true => {
                renamed.insert(number, own_id(&member.native_id, &read.source));
            }
            false => holders.push(number),
        }
    }
    rename(members, &renamed, &|number| {
        read_of(number).map(|read| read.source.path.as_path())
    });
}

/// The id under which an earlier import has the conversation of a source.
enum Former {
    None,
    Same,
    Other(String),
}

fn former_id(member: &Member, read: &ReadSource, ledger: &Ledger) -> Former {
    let Some(row) = ledger.source(read.source.tool, &read.source.name()) else {
        return Former::None;
    };
    // If a file has other bytes than before, it is another conversation. In a dry run no bytes are kept, so they
    // cannot be compared.
    let is_continued =
        read.source.part.is_some() || read.origin.is_empty() || row.origin == read.origin;
    match row.natives.first() {
        _ if row.natives.contains(&member.native_id) => Former::Same,
        Some(native) if is_continued => Former::Other(native.clone()),
        _ => Former::None,
    }
}

fn has_common_node(a: &Member, b: &Member) -> bool {
    let keys: HashSet<&str> = a.nodes.iter().map(|node| &*node.key).collect();
    b.nodes.is_empty() || b.nodes.iter().any(|node| keys.contains(&*node.key))
}

/// Whether an earlier import has another conversation with this id.
fn is_of_other_database(member: &Member, tool: Tool, ledger: &Ledger) -> bool {
    let session = ledger.target(tool, &member.native_id);
    let row = session.and_then(|(session, _)| ledger.session(tool, session)?.row());
    let Some(text) = row.and_then(|row| fs::read(&row.path).ok()) else {
        return false;
    };
    let is_there = |key: &str| {
        let id = NodeId::of(tool, &member.native_id, key).to_string();
        memmem::find(&text, id.as_bytes()).is_some()
    };
    !member.nodes.is_empty() && !member.nodes.iter().any(|node| is_there(&node.key))
}

/// An id made from the native id and the path of the database.
fn own_id(native_id: &str, source: &Source) -> String {
    let hash = Sha256::digest(source.path.to_string_lossy().as_bytes());
    let digits: String = hash
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{native_id}@{digits}")
}

/// Renames members, and changes the names of these members in other members of the same source or database.
fn rename<P: Eq + Hash>(
    members: &mut [Member],
    renamed: &HashMap<usize, String>,
    path: &dyn Fn(usize) -> Option<P>,
) {
    let mut links: HashMap<(Option<P>, String), &String> = HashMap::new();
    for (number, id) in renamed {
        if let Some(member) = members.get_mut(*number) {
            let former = std::mem::replace(&mut member.native_id, id.clone());
            if member.part_id == former {
                member.part_id.clone_from(id);
            }
            links.insert((path(*number), former), id);
        }
    }
    for (number, member) in members.iter_mut().enumerate().filter(|_| !links.is_empty()) {
        let named = match &mut member.base {
            Base::CopyOf { native_id } => Some(native_id),
            _ => None,
        };
        let spawner = member.spawned_by.as_mut().map(|it| &mut it.native_id);
        for name in named.into_iter().chain(spawner) {
            if let Some(id) = links.get(&(path(number), name.clone())) {
                name.clone_from(id);
            }
        }
    }
}
