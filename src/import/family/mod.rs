//! Joins members into sessions: each family becomes one tree for each directory.
//!
//! A family is a set of members that copy or continue each other. The modules in reading order: [`identity`] finds
//! nodes that are the same. [`links`] finds the parent of each node. [`sessions`] groups members into sessions.
//! [`tree`] orders the entries of each session. All steps take linear time in the number of nodes.

pub(crate) mod forest;
mod identity;
mod links;
mod sessions;
#[cfg(test)]
mod tests;
mod tree;

use super::member::{Base, Member};
use forest::{Forest, MemberNumber, Rules};
use std::collections::HashMap;
use treelined_core::timestamp::Millis;

/// Joins the members of one tool. Sets `is_superseded` of each member, and takes `aliases` out of the members.
pub(crate) fn join(members: &mut [Member], rules: &Rules<'_>) -> Forest {
    supersede(members);
    let order = order(members, rules);
    let mut nodes = identity::find(members, &order, rules);
    let links = links::resolve(members, &order, &nodes, rules);
    // Memory is freed here, because the next step needs the most memory in a large import.
    nodes.forget_names();
    for member in members.iter_mut() {
        member.aliases = Vec::new();
    }
    let sessions = sessions::group(members, &order, &nodes, &links, rules);
    tree::lay_out(members, &nodes, &links, &sessions, rules.tool)
}

/// The order of members, which decides who owns shared nodes. Sessions of earlier imports come first, then members by
/// their start. If several started at the same time, a copy comes after the session that it names.
fn order(members: &[Member], rules: &Rules<'_>) -> Vec<MemberNumber> {
    let copies = copies(members);
    let mut order: Vec<MemberNumber> = (0..members.len()).collect();
    order.sort_by_cached_key(|number| {
        let member = members.get(*number);
        member.map(|member| {
            let placed = rules.placed.get(&member.native_id);
            let longest_first = std::cmp::Reverse(member.nodes.len());
            (
                placed.map_or(usize::MAX, |placed| placed.rank),
                member.started.unwrap_or(Millis::MAX),
                copies.get(&*member.native_id).copied().unwrap_or_default(),
                member.native_id.clone(),
                member.part_id.clone(),
                longest_first,
            )
        })
    });
    order
}

/// For each native session that is a copy: the length of its chain of originals.
fn copies(members: &[Member]) -> HashMap<String, usize> {
    let mut parents: HashMap<&str, &str> = HashMap::new();
    for member in members {
        if let Base::CopyOf { native_id } = &member.base {
            parents.entry(&member.native_id).or_insert(native_id);
        }
    }
    let mut copies: HashMap<String, usize> = HashMap::new();
    for first in parents.keys() {
        let (mut path, mut at) = (Vec::new(), *first);
        // If the names form a cycle, the walk ends where it began.
        while let Some(parent) = parents.get(at)
            && !copies.contains_key(at)
        {
            copies.insert(at.to_owned(), 0);
            path.push(at);
            at = parent;
        }
        let above = copies.get(at).copied().unwrap_or_default();
        for (number, native_id) in path.into_iter().rev().enumerate() {
            copies.insert(native_id.to_owned(), above + number + 1);
        }
    }
    copies
}

/// Sets `is_superseded`: if a native session has several parts, the tool shows only the part that was started last.
fn supersede(members: &mut [Member]) {
    let mut shown: HashMap<String, (Option<Millis>, String)> = HashMap::new();
    let age = |member: &Member| (member.started, member.part_id.clone());
    for member in members.iter() {
        let newest = shown
            .entry(member.native_id.clone())
            .or_insert_with(|| age(member));
        *newest = std::mem::take(newest).max(age(member));
    }
    for member in members {
        let newest = shown.get(&member.native_id);
        member.is_superseded |= newest.is_some_and(|(_, part)| *part != member.part_id);
    }
}
