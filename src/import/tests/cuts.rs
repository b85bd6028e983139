//! For every tool, cuts sources at every byte of their last 4 KB. Each whole record must be in an entry, kept only in
//! the origin, or a repetition. Each entry must be JSON.

use super::testing::real_files;
use crate::format;
use crate::member::{Body, Member, Node, Parent, Place, Record};
use crate::reader::Format;
use crate::records::{Layout, Piece, Splitter};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;
use treelined_core::json;
use treelined_core::test_support::sample;

const LAST: usize = 4 << 10;
/// Files that are longer are read only in the long form of the test.
const MAX_LEN: usize = 40 << 10;

/// Reads every cut of a source. The lines before the last ones are split only once, and cuts with equal records are
/// read only once.
pub(crate) fn check(tool: Tool, path: &str, layout: Layout, source: &[u8]) {
    let first = source.len().saturating_sub(LAST);
    let line = source[..first].iter().rposition(|byte| *byte == b'\n');
    let common = line
        .filter(|_| layout == Layout::Lines)
        .map_or(0, |at| at + 1);
    let mut before = Vec::new();
    let mut beginning = Splitter::new(layout);
    beginning.push(&source[..common], &mut |piece| add(piece, &mut before));
    let mut last = None;
    for end in first..=source.len() {
        let mut places = before.clone();
        let mut splitter = beginning.clone();
        let mut take = |piece: Piece<'_>| add(piece, &mut places);
        splitter.push(&source[common..end], &mut take);
        splitter.finish(true, &mut take);
        if last.as_ref() != Some(&places) {
            let mapped_from = if end == source.len() { 0 } else { common };
            read(tool, path, source, &places, mapped_from as u64);
            last = Some(places);
        }
    }
}

fn add(piece: Piece<'_>, places: &mut Vec<Place>) {
    if let Piece::Record(Record { at, bytes, .. }) = piece {
        let len = bytes.len() as u64;
        places.push(Place { at, len });
    }
}

/// Reads these records of a source. Maps only the nodes that have a record with at least the number `mapped_from`.
fn read(tool: Tool, path: &str, source: &[u8], places: &[Place], mapped_from: u64) {
    let format = format(tool);
    let mut reader = format.reader(path);
    for (number, place) in places.iter().enumerate() {
        reader.record(Record {
            at: place.at,
            number: number as u64,
            bytes: bytes(source, *place),
        });
    }
    let mut used = BTreeSet::new();
    let mut others = 0;
    for member in reader.finish() {
        let mut keys = HashSet::new();
        for (at, node) in member.nodes.iter().enumerate() {
            assert!(keys.insert(&node.key), "{path}: {} is unique", node.key);
            if let Parent::Node(parent) = node.parent {
                assert!((parent as usize) < at, "{path}: {}", node.key);
            }
            let record = |place: &Place| places.partition_point(|it| it.at <= place.at) - 1;
            used.extend(node.places.iter().map(record));
            if node.places.iter().any(|place| place.at >= mapped_from) {
                map(format, source, &member, node);
            }
        }
        others += member.origin_only.values().sum::<u64>() + member.duplicates;
    }
    let found = used.len() as u64 + others;
    // A session of a database is not a session if it lacks its own record.
    if !used.is_empty() || others > 0 {
        assert_eq!(
            found,
            places.len() as u64,
            "{path}: {} records",
            places.len()
        );
    }
}

fn bytes(source: &[u8], place: Place) -> &[u8] {
    let at = usize::try_from(place.at).unwrap();
    &source[at..at + usize::try_from(place.len).unwrap()]
}

fn map(format: &dyn Format, source: &[u8], member: &Member, node: &Node) {
    let places = node.places.iter();
    let records: Vec<&[u8]> = places.map(|place| bytes(source, *place)).collect();
    let Body { kind, members } = format.body(member, node, &records);
    let entry = [format!("{{\"type\":\"{kind}\"").as_bytes(), &*members, b"}"].concat();
    let is_whole = json::value_span(&entry).is_ok_and(|span| span == (0..entry.len()));
    assert!(is_whole, "{}", entry.escape_ascii());
}

fn files(tool: Tool, endings: &[&str]) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
    let ends = |path: &PathBuf| {
        endings
            .iter()
            .any(|it| path.to_string_lossy().ends_with(it))
    };
    let files: Vec<PathBuf> = real_files(tool.name()).into_iter().filter(ends).collect();
    assert!(!files.is_empty(), "fixtures of {}", tool.name());
    files.into_iter().map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    })
}

fn layout(path: &Path) -> Layout {
    match path.extension().is_some_and(|ending| ending == "json") {
        true => Layout::Document,
        false => Layout::Lines,
    }
}

#[test]
fn a_file_cut_at_every_byte_of_its_end_is_read_as_far_as_it_goes() {
    for tool in [
        Tool::ClaudeCode,
        Tool::Codex,
        Tool::Gemini,
        Tool::Pi,
        Tool::CopilotCli,
        Tool::VscodeChat,
    ] {
        let endings: &[&str] = match tool {
            Tool::Gemini | Tool::VscodeChat => &[".jsonl", ".json"],
            _ => &[".jsonl"],
        };
        for (path, bytes) in files(tool, endings) {
            if bytes.len() > MAX_LEN && !sample::is_long_run() {
                continue;
            }
            check(tool, path.to_str().unwrap(), layout(&path), &bytes);
        }
    }
}
