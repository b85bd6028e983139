//! Reads and maps a source in memory. Fuzzers use this.

use super::family::{self};
use super::format;
use super::member::{Body, Place, Record};
use super::records::{Layout, Piece, Splitter};
use crate::family::forest::Rules;
use std::collections::{HashMap, HashSet};
use treelined_core::agent::Tool;

/// The result of reading a source.
#[derive(Debug)]
pub struct WholeSource {
    /// The number of records.
    pub records: u64,
    /// The number of records that have an entry, that only the origin keeps, or that repeat another one. Zero if the
    /// source has no conversation.
    pub accounted: u64,
    /// For each node, its entry as a JSON object without ids.
    pub entries: Vec<Vec<u8>>,
}

/// Reads and joins the conversations of a source. `None` if no tool has this name.
pub fn read_whole(tool: &str, path: &str, layout: Layout, source: &[u8]) -> Option<WholeSource> {
    let tool = Tool::ALL.into_iter().find(|it| it.name() == tool)?;
    let format = format(tool);
    let mut reader = format.reader(path);
    let mut places: Vec<Place> = Vec::new();
    let mut take = |piece: Piece<'_>| {
        if let Piece::Record(record) = piece {
            let (at, len) = (record.at, record.bytes.len() as u64);
            places.push(Place { at, len });
            reader.record(Record { ..record });
        }
    };
    let mut splitter = Splitter::new(layout);
    splitter.push(source, &mut take);
    splitter.finish(true, &mut take);
    let mut members = reader.finish();
    let (mut used, mut entries) = (HashSet::new(), Vec::new());
    let mut accounted = 0;
    for member in &members {
        accounted += member.origin_only.values().sum::<u64>() + member.duplicates;
        for node in &member.nodes {
            let number = |place: &Place| places.partition_point(|record| record.at <= place.at);
            used.extend(node.places.iter().map(number));
            let bytes = node.places.iter().map(|place| bytes(source, *place));
            let records: Option<Vec<&[u8]>> = bytes.collect();
            let Body { kind, members } = format.body(member, node, &records.unwrap_or_default());
            let kind = format!("{{\"type\":\"{kind}\"");
            entries.push([kind.as_bytes(), &*members, b"}"].concat());
        }
    }
    let rules = Rules {
        tool,
        has_shared_keys: format.has_shared_keys(),
        split: false,
        placed: &HashMap::new(),
    };
    family::join(&mut members, &rules);
    Some(WholeSource {
        records: places.len() as u64,
        accounted: accounted + used.len() as u64,
        entries,
    })
}

fn bytes(source: &[u8], place: Place) -> Option<&[u8]> {
    let at = usize::try_from(place.at).ok()?;
    let len = usize::try_from(place.len).ok()?;
    source.get(at..)?.get(..len)
}
