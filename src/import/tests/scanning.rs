//! Sources for the tests of formats: fixtures, real files, and a simple model of a family of members.

use crate::member::{Base, Member, Node, NodeKind, Parent, Place, Record};
use crate::reader::Format;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;
use treelined_core::{json, shape};

/// A source that was read to its end.
pub(crate) struct Source {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u64,
    pub(crate) member: Member,
}

/// Reads a source whose lines are its records. Other lines are skipped.
pub(crate) fn read(format: &dyn Format, path: &str, bytes: &[u8]) -> Source {
    let mut reader = format.reader(path);
    let (mut at, mut number) = (0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if let Ok(span) = json::value_span(line) {
            reader.record(Record {
                at: at + span.start as u64,
                number,
                bytes: &line[span],
            });
            number += 1;
        }
        at += line.len() as u64;
    }
    Source {
        bytes: bytes.to_vec(),
        records: number,
        member: reader.finish().remove(0),
    }
}

impl Source {
    /// The entry of a node, without the members that the importer adds.
    pub(crate) fn entry(&self, format: &dyn Format, node: &Node) -> Value {
        let at = |place: &Place| place.at as usize..(place.at + place.len) as usize;
        let records: Vec<&[u8]> = node.places.iter().map(|p| &self.bytes[at(p)]).collect();
        let body = format.body(&self.member, node, &records);
        let text = [
            format!("{{\"type\":\"{}\"", body.kind).as_bytes(),
            &body.members,
            b"}",
        ]
        .concat();
        json::value_span(&text).unwrap_or_else(|e| panic!("{e}: {}", text.escape_ascii()));
        // serde cannot read lone surrogates.
        let text_of_serde = String::from_utf8_lossy(&text).replace("\\ud8", "\\ue8");
        let entry: Value =
            serde_json::from_str(&text_of_serde).unwrap_or_else(|e| panic!("{e}: {text_of_serde}"));
        if body.kind == "message" {
            let message = json::get(&text, "message").unwrap();
            shape::check_message(message).unwrap_or_else(|fault| panic!("{fault:?}: {entry}"));
        }
        entry
    }

    /// Checks a source. Each record is in an entry, counted as kept only in the origin, or a duplicate. Parents come
    /// first. Keys are unique. Each node has an entry.
    #[track_caller]
    pub(crate) fn check(&self, format: &dyn Format) {
        let member = &self.member;
        let mut keys = BTreeSet::new();
        let mut places = BTreeSet::new();
        for (index, node) in member.nodes.iter().enumerate() {
            assert!(keys.insert(&node.key), "{} twice", node.key);
            assert!(!node.places.is_empty());
            places.extend(node.places.iter().map(|place| place.at));
            if let Parent::Node(parent) = node.parent {
                assert!((parent as usize) < index);
            }
            self.entry(format, node);
        }
        let only: u64 = member.origin_only.values().sum();
        let found = places.len() as u64 + only + member.duplicates;
        assert_eq!(found, self.records, "{:?}", member.origin_only);
        assert!(
            member
                .leaf
                .is_none_or(|leaf| (leaf as usize) < member.nodes.len())
        );
    }
}

/// A fixture in the repository.
pub(crate) fn fixture(path: &str) -> Vec<u8> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import");
    let path = data.join(path);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files of a tool in `shared/data/import` of a folder above the repository. The repository does not have them;
/// without them the list is empty, and the test says so.
pub(crate) fn real_files(tool: Tool) -> Vec<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut roots = above.map(|folder| folder.join("shared/data/import").join(tool.name()));
    let mut files = Vec::new();
    if let Some(root) = roots.find(|root| root.is_dir()) {
        collect(&root, &mut files);
    }
    if files.is_empty() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED {test}: there are no real files of {}",
            tool.name()
        );
    }
    files.sort();
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

/// The conversations of a family: each path from a root to a tip, as the texts of its entries joined by ` > `. It is a
/// simple model of the join: parts are sorted by the member `order`, and copies are found by their fingerprints from
/// the first node on.
pub(crate) fn paths(format: &dyn Format, sources: &[Source]) -> BTreeSet<String> {
    let mut nodes: Vec<(Option<usize>, String, u64)> = Vec::new();
    let mut known: Vec<Vec<usize>> = vec![Vec::new(); sources.len()];
    let mut open: Vec<usize> = (0..sources.len()).collect();
    while let Some(next) = open.iter().position(|source| {
        let base = base_of(sources, &sources[*source].member);
        base.is_none_or(|base| !open.contains(&base))
    }) {
        let source = open.remove(next);
        let member = &sources[source].member;
        let base = base_of(sources, member);
        let mut start = None;
        if let (Base::Before { order, .. }, Some(base)) = (&member.base, base) {
            let mut before = sources[base].member.nodes.iter().enumerate();
            let before = before.rfind(|(_, node)| node.order < *order);
            start = before.map(|(index, _)| known[base][index]);
        }
        let mut is_copy = matches!(member.base, Base::CopyOf { .. });
        for node in &member.nodes {
            let parent = match node.parent {
                Parent::Node(parent) => Some(known[source][parent as usize]),
                _ => start,
            };
            let same = |(at, held, print): (usize, Option<usize>, u64)| {
                (is_copy && held == parent && print == node.fingerprint).then_some(at)
            };
            let held = nodes.iter().enumerate();
            let copied = held
                .map(|(at, (held, _, print))| (at, *held, *print))
                .find_map(same);
            is_copy &= copied.is_some();
            known[source].push(copied.unwrap_or_else(|| {
                let text = words_of(&sources[source].entry(format, node), node);
                nodes.push((parent, text, node.fingerprint));
                nodes.len() - 1
            }));
        }
    }
    let inner: BTreeSet<usize> = nodes.iter().filter_map(|(parent, ..)| *parent).collect();
    let tips = (0..nodes.len()).filter(|node| !inner.contains(node));
    let path = |tip: usize| {
        let mut texts = Vec::new();
        let mut at = Some(tip);
        while let Some(node) = at {
            texts.push(nodes[node].1.as_str());
            at = nodes[node].0;
        }
        texts.reverse();
        texts.retain(|text| !text.is_empty());
        texts.join(" > ")
    };
    tips.map(path).collect()
}

fn base_of(sources: &[Source], member: &Member) -> Option<usize> {
    sources.iter().position(|source| match &member.base {
        Base::None => false,
        Base::Before { part_id, .. } => source.member.part_id == *part_id,
        Base::CopyOf { native_id } => source.member.native_id == *native_id,
    })
}

/// The role and the texts of an entry. Scaffolding has none.
fn words_of(entry: &Value, node: &Node) -> String {
    let message = &entry["message"];
    let texts = message["content"].as_array().into_iter().flatten();
    let texts = texts.map(|block| match block["type"].as_str() {
        Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
        Some("thinking") => format!("({})", block["thinking"].as_str().unwrap_or_default()),
        Some("toolCall") => format!("{}{}", block["name"].as_str().unwrap(), block["arguments"]),
        other => other.unwrap_or_default().to_owned(),
    });
    let text = texts.collect::<Vec<_>>().join(" ");
    match &node.kind {
        NodeKind::User => format!("U:{text}"),
        NodeKind::Assistant => format!("A:{text}"),
        NodeKind::ToolResult => format!("R:{}", message["toolName"].as_str().unwrap_or_default()),
        NodeKind::Compaction { .. } => "compaction".to_owned(),
        NodeKind::ModelChange => entry["modelId"].as_str().unwrap_or_default().to_owned(),
        NodeKind::Custom | NodeKind::Subagent { .. } => {
            entry["customType"].as_str().unwrap_or_default().to_owned()
        }
        NodeKind::Scaffolding => String::new(),
    }
}
