//! Sessions that continue other sessions.

use super::super::ClaudeCode;
use super::{called, record, result, said, user};
use crate::family::forest::{EntryContent, Forest, Rules};
use crate::family::join;
use crate::member::Member;
use crate::tests::testing::read;
use std::collections::HashMap;
use treelined_core::agent::Tool;

fn read_all(files: &[(&str, &str)]) -> Vec<Member> {
    let members = files.iter().flat_map(|(name, source)| {
        let path = format!("p/{name}.jsonl");
        read(&ClaudeCode, &path, source.as_bytes())
    });
    members.collect()
}

fn joined(members: &mut [Member]) -> Forest {
    let rules = Rules {
        tool: Tool::ClaudeCode,
        has_shared_keys: true,
        split: false,
        placed: &HashMap::new(),
    };
    join(members, &rules)
}

/// The entries of the first session, each as the key of its parent and its own key.
#[track_caller]
fn tree(files: &[(&str, &str)]) -> Vec<String> {
    let mut members = read_all(files);
    let forest = joined(&mut members);
    assert_eq!(forest.sessions.len(), 1);
    let entries = &forest.sessions[0].entries;
    let key = |at: usize| match &entries[at].content {
        EntryContent::Node { member, node, .. } => members[*member].nodes[*node].key.to_string(),
        EntryContent::Gap { expected_parent } => format!("?{expected_parent}"),
    };
    let parent = |at: usize| entries[at].parent.map_or("-".to_owned(), key);
    (0..entries.len())
        .map(|at| format!("{} {}", parent(at), key(at)))
        .collect()
}

fn first() -> String {
    user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + &result("r", "a", 2, "c", "")
        + &record("system", "t", "r", 3, r#""subtype":"turn_duration""#)
}

/// A resumed session may name as its parent a record without an entry, such as the end of a turn.
#[test]
fn a_session_goes_on_from_any_record_of_another() {
    for parent in ["r", "t", "a"] {
        let next = user("v", parent, 4, "on").replace(r#""S""#, r#""T""#);
        let expected = ["- u", "u M", "M r/r:c", "r/r:c v"];
        assert_eq!(tree(&[("S", &first()), ("T", &next)]), expected, "{parent}");
        assert_eq!(tree(&[("T", &next), ("S", &first())]), expected, "{parent}");
    }
}

#[test]
fn a_copied_prefix_is_imported_once() {
    let copied = first() + &said("b", "t", 5, "N").replace(r#""S""#, r#""T""#);
    let own = first() + &user("v", "t", 4, "on");
    let expected = ["- u", "u M", "M r/r:c", "r/r:c v", "r/r:c N"];
    assert_eq!(tree(&[("S", &own), ("T", &copied)]), expected);
}

#[test]
fn a_fork_hangs_where_its_own_records_begin() {
    let from = |line: &str, uuid: &str| {
        let members = format!(r#""forkedFrom":{{"sessionId":"S","messageUuid":"{uuid}"}},"type""#);
        line.replacen(r#""type""#, &members, 1)
            .replace(r#""S","cwd""#, r#""F","cwd""#)
    };
    let fork = from(&user("u2", "-", 0, "go"), "u")
        + &from(&called("a2", "u2", 1, "M", "c"), "a")
        + &from(&result("r2", "a2", 2, "c", ""), "r")
        + &user("v2", "r2", 9, "otherwise").replace(r#""S""#, r#""F""#);
    let own = first() + &user("v", "t", 4, "on");
    let expected = ["- u", "u M", "M r/r:c", "r/r:c v", "r/r:c v2"];
    assert_eq!(tree(&[("S", &own), ("F", &fork)]), expected);
    let mut members = read_all(&[("S", &own), ("F", &fork)]);
    assert_eq!(joined(&mut members).sessions[0].labels.len(), 1);
}
