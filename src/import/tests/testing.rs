//! Helpers for the tests of formats: the records of a source, checks of a reader's nodes, and real files.

use crate::member::{Body, Member, Node, NodeKind, Parent, Place, Record};
use crate::reader::Format;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use treelined_core::json;
use treelined_core::shape::{self, Shape};

/// The values of a source, line by line, and the number of lines that are not one value.
pub(crate) fn records(source: &[u8]) -> (Vec<Place>, usize) {
    let (mut places, mut bad) = (Vec::new(), 0);
    let mut line_at = 0;
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        let mut at = json::skip_space(line, 0);
        let first = places.len();
        while at < line.len() {
            let Ok(end) = json::skip_value(line, at) else {
                break;
            };
            places.push(Place {
                at: (line_at + at) as u64,
                len: (end - at) as u64,
            });
            at = json::skip_space(line, end);
        }
        let is_blank = line.trim_ascii().is_empty();
        bad += usize::from(!is_blank && (at < line.len() || places.len() != first + 1));
        line_at += line.len();
    }
    (places, bad)
}

pub(crate) fn bytes(source: &[u8], place: Place) -> &[u8] {
    let at = usize::try_from(place.at).unwrap();
    &source[at..at + usize::try_from(place.len).unwrap()]
}

/// Reads a source whose lines are its records, and checks everything that must hold for any source.
#[track_caller]
pub(crate) fn read(format: &dyn Format, path: &str, source: &[u8]) -> Vec<Member> {
    read_records(format, path, source, &records(source).0)
}

#[track_caller]
pub(crate) fn read_records(
    format: &dyn Format,
    path: &str,
    source: &[u8],
    places: &[Place],
) -> Vec<Member> {
    let mut reader = format.reader(path);
    for (number, place) in places.iter().enumerate() {
        reader.record(Record {
            at: place.at,
            number: number as u64,
            bytes: bytes(source, *place),
        });
    }
    let members = reader.finish();
    check(format, source, places, &members);
    members
}

/// Checks nodes. Every record is in a node, in the report, or a duplicate. Parents come first. Keys differ. Bodies
/// have the form of their entry.
#[track_caller]
fn check(format: &dyn Format, source: &[u8], places: &[Place], members: &[Member]) {
    assert!(!members.is_empty(), "a source has a main conversation");
    let mut used = BTreeSet::new();
    let mut others = 0;
    for member in members {
        assert!(!member.native_id.is_empty());
        let mut keys = HashSet::new();
        for (at, node) in member.nodes.iter().enumerate() {
            assert!(keys.insert(&node.key), "the key {} is new", node.key);
            assert!(!node.places.is_empty(), "{} comes from records", node.key);
            for place in &node.places {
                let holds = |whole: &&Place| {
                    whole.at <= place.at && place.at + place.len <= whole.at + whole.len
                };
                let at = places.partition_point(|whole| whole.at <= place.at) - 1;
                assert!(places.get(at).filter(holds).is_some(), "{}", node.key);
                used.insert(places[at].at);
            }
            if let Parent::Node(parent) = node.parent {
                assert!(
                    (parent as usize) < at,
                    "the parent of {} is first",
                    node.key
                );
                let is_open = member.nodes[parent as usize].is_open;
                assert!(
                    node.is_open || !is_open,
                    "{} is below an open node",
                    node.key
                );
            }
            entry(format, source, member, node);
        }
        let last = member.nodes.len();
        assert!(member.leaf.is_none_or(|leaf| (leaf as usize) < last));
        assert!(member.aliases.iter().all(|(_, at)| (*at as usize) < last));
        others += member.origin_only.values().sum::<u64>() + member.duplicates;
    }
    let (used, others) = (used.len(), usize::try_from(others).unwrap());
    assert_eq!(used + others, places.len(), "{used} in nodes, {others} not");
}

/// The entry of a node, as an object without its envelope.
#[track_caller]
pub(crate) fn entry(format: &dyn Format, source: &[u8], member: &Member, node: &Node) -> String {
    let raw: Vec<&[u8]> = node
        .places
        .iter()
        .map(|place| bytes(source, *place))
        .collect();
    let Body { kind, members } = format.body(member, node, &raw);
    let entry = [format!("{{\"type\":\"{kind}\"").as_bytes(), &*members, b"}"].concat();
    let valid = json::value_span(&entry).map(|span| span.len());
    assert_eq!(
        valid,
        Ok(entry.len()),
        "{}",
        String::from_utf8_lossy(&entry)
    );
    let get = |path: &[&str]| json::get_path(&entry, path).map(<[u8]>::to_vec);
    match (kind, &node.kind) {
        ("message", kind) => {
            let message = get(&["message"]).expect("a message");
            shape::check_message(&message).unwrap_or_else(|fault| panic!("{fault:?} in {entry:?}"));
            let role = match kind {
                NodeKind::User => "\"user\"",
                NodeKind::Assistant => "\"assistant\"",
                _ => "\"toolResult\"",
            };
            assert_eq!(get(&["message", "role"]).as_deref(), Some(role.as_bytes()));
        }
        ("custom_message", NodeKind::Scaffolding) => {
            let content = get(&["content"]).expect("a content");
            shape::check(Shape::TextOrBlocks, &content).expect("text or blocks");
            assert!(get(&["customType"]).is_some() && get(&["display"]).is_some());
        }
        ("compaction", NodeKind::Compaction { .. }) => {
            assert!(get(&["summary"]).expect("a summary").starts_with(b"\""));
            assert!(get(&["tokensBefore"]).is_some());
        }
        ("model_change", NodeKind::ModelChange) => {
            assert!(get(&["provider"]).is_some() && get(&["modelId"]).is_some());
        }
        ("custom", NodeKind::Custom | NodeKind::Subagent { .. }) => {
            assert!(get(&["customType"]).is_some());
        }
        (kind, node) => panic!("{kind} for {node:?}"),
    }
    String::from_utf8_lossy(&entry).into_owned()
}

/// The tree of a member, as a few numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The number of messages, without results. Messages of the harness count too. A compaction counts twice, because
    /// it is made from two records.
    pub(crate) messages: usize,
    pub(crate) forks: usize,
    pub(crate) roots: usize,
    pub(crate) gaps: usize,
    pub(crate) compactions: usize,
}

pub(crate) fn outline(member: &Member) -> Outline {
    let mut outline = Outline::default();
    let mut children = vec![0; member.nodes.len()];
    for node in &member.nodes {
        match &node.kind {
            NodeKind::User | NodeKind::Assistant | NodeKind::Scaffolding => outline.messages += 1,
            NodeKind::Compaction { .. } => {
                outline.messages += 2;
                outline.compactions += 1;
            }
            _ => {}
        }
        match &node.parent {
            Parent::Base => outline.roots += 1,
            Parent::Key(_) => outline.gaps += 1,
            Parent::Node(parent) => children[*parent as usize] += 1,
        }
    }
    outline.forks = children.iter().filter(|children| **children > 1).count();
    outline
}

/// Each node as the keys of its parent and itself. The parent is `-` if there is none, `?key` if it is missing.
pub(crate) fn shape(member: &Member) -> Vec<String> {
    let parent = |parent: &Parent| match parent {
        Parent::Base => "-".to_owned(),
        Parent::Node(at) => member.nodes[*at as usize].key.to_string(),
        Parent::Key(key) => format!("?{key}"),
    };
    let nodes = member.nodes.iter();
    nodes
        .map(|node| format!("{} {}", parent(&node.parent), node.key))
        .collect()
}

/// Checks that each result is below its call, and that no path has two results of one call.
#[track_caller]
pub(crate) fn check_calls(format: &dyn Format, source: &[u8], member: &Member) {
    let entries = member
        .nodes
        .iter()
        .map(|node| entry(format, source, member, node));
    let entries: Vec<String> = entries.collect();
    for (at, node) in member.nodes.iter().enumerate() {
        if node.kind != NodeKind::ToolResult {
            continue;
        }
        let raw = |at: usize, path: &[&str]| {
            json::get_path(entries[at].as_bytes(), path).map(<[u8]>::to_vec)
        };
        let call = raw(at, &["message", "toolCallId"]);
        let mut above = at;
        while let Parent::Node(parent) = member.nodes[above].parent {
            above = parent as usize;
            if member.nodes[above].kind == NodeKind::Assistant {
                break;
            }
            assert_ne!(raw(above, &["message", "toolCallId"]), call, "one result");
        }
        let call = [b"\"id\":", &*call.expect("a call")].concat();
        let has_call = memchr::memmem::find(entries[above].as_bytes(), &call).is_some();
        assert!(has_call, "{} is below its call", node.key);
    }
}

/// Files of other tools: from the repository, and from the folder that TREELINED_IMPORT_DATA names or from
/// `shared/data/import` in a folder above the repository.
pub(crate) fn real_files(folder: &str) -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("TREELINED_IMPORT_DATA").map(PathBuf::from);
    let found = named.or_else(|| {
        let mut folders = repository
            .ancestors()
            .map(|above| above.join("shared/data/import"));
        folders.find(|folder| folder.is_dir())
    });
    if found.is_none() {
        eprintln!("SKIPPED: there is no shared/data/import");
    }
    let mut waiting = vec![repository.join("../../tests/data/import").join(folder)];
    let others = found.map(|found| found.join(folder));
    waiting.extend(others.filter(|folder| folder.is_dir()));
    files_below(waiting)
}

fn files_below(mut waiting: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    while let Some(path) = waiting.pop() {
        match std::fs::read_dir(&path) {
            Ok(inside) => waiting.extend(inside.map(|entry| entry.unwrap().path())),
            Err(_) => files.push(path),
        }
    }
    files.sort();
    files
}
