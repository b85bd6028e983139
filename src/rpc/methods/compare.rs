//! `compare_branches` and `get_stats` (protocol.md §15.4, §15.5).

use super::read::ContextEntries;
use crate::context;
use crate::daemon::reading::{kept, size_of, steps};
use crate::error::Result;
use crate::lock::lock;
use crate::log::body::{Bodies, Fetch};
use crate::parallel::{CHUNK, in_order};
use crate::rpc::handler::{Read, ReadAnswer};
use crate::stats::Stats;
use crate::summary::files::FileCollector;
use crate::tree::Node;
use crate::wire;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub(in crate::rpc) fn get_stats(
    read: &Read<'_>,
    _: &wire::GetStatsParams,
) -> Result<ReadAnswer<wire::GetStatsResult>> {
    let open = Arc::clone(read.open);
    let mut counted = lock(&open.last_count).for_tree(read.tree.origin());
    let nodes: Vec<Node> = read.tree.entries().skip(counted.count).collect();
    let size = size_of(read, nodes.iter().copied());
    let path = steps(read, read.leaf());
    let kept = kept(read, &path)?;
    let entries = ContextEntries::new(read, kept, &path)?;
    let (bodies, fetches) = (read.bodies(), read.fetch(nodes)?);
    let count = move || {
        let context_tokens = context::tokens(&path, kept, &mut |node| entries.entry(node))?;
        let part = |range: Range<usize>| {
            let mut stats = Stats::default();
            let mut reader = bodies.reader();
            let fetches = fetches.get(range).unwrap_or_default();
            for fetch in fetches {
                reader.see_entry(fetch, |entry| stats.add(entry))?;
            }
            Ok((fetches.len(), stats))
        };
        in_order(0..fetches.len(), CHUNK, part, |(count, part)| {
            counted.stats += part;
            counted.count += count;
            // The parts are always the same, so that the sum of the floating-point costs is the same.
            if count == CHUNK && counted.fits_budget() {
                *lock(&open.last_count) = counted.clone();
            }
            ControlFlow::Continue(())
        })?;
        let stats = counted.stats;
        Ok(wire::GetStatsResult {
            stats: wire_stats(stats),
            context_tokens,
        })
    };
    Ok(ReadAnswer::later(size, count))
}

fn wire_stats(stats: Stats) -> wire::BranchStats {
    wire::BranchStats {
        messages: stats.messages,
        tool_calls: stats.tool_calls,
        tokens: wire::Tokens {
            input: stats.tokens.input,
            output: stats.tokens.output,
            cache_read: stats.tokens.cache_read,
            cache_write: stats.tokens.cache_write,
        },
        cost: stats.cost,
        ..wire::BranchStats::default()
    }
}

pub(in crate::rpc) fn compare_branches(
    read: &Read<'_>,
    params: &wire::CompareBranchesParams,
) -> Result<ReadAnswer<wire::CompareBranchesResult>> {
    let (a, b) = (read.find(&params.a)?, read.find(&params.b)?);
    let (ancestor, a_nodes) = read.tree.branch(Some(a), Some(b));
    let (_, b_nodes) = read.tree.branch(Some(b), Some(a));
    let ancestor_id = ancestor.map(|node| read.tree.id(node).to_owned());
    let size = size_of(read, a_nodes.iter().chain(&b_nodes).copied());
    let branch = |nodes: Vec<Node>| -> Result<_> {
        let ids: Vec<String> = nodes
            .iter()
            .map(|node| read.tree.id(*node).to_owned())
            .collect();
        Ok((ids, read.fetch(nodes)?))
    };
    let (a, b) = (branch(a_nodes)?, branch(b_nodes)?);
    let bodies = read.bodies();
    Ok(ReadAnswer::later(size, move || {
        Ok(wire::CompareBranchesResult {
            ancestor_id,
            a: compared(&bodies, a)?,
            b: compared(&bodies, b)?,
        })
    }))
}

fn compared(
    bodies: &Bodies,
    (entry_ids, fetches): (Vec<String>, Vec<Fetch>),
) -> Result<wire::ComparedBranch> {
    let mut stats = Stats::default();
    let mut files = FileCollector::default();
    let mut reader = bodies.reader();
    for fetch in &fetches {
        reader.see_entry(fetch, |entry| {
            stats.add(entry);
            files.note_entry(entry);
        })?;
    }
    let files = files.into_lists();
    Ok(wire::ComparedBranch {
        entry_ids,
        files: wire::TouchedFiles {
            read_files: files.read_files,
            modified_files: files.modified_files,
        },
        stats: wire_stats(stats),
    })
}
