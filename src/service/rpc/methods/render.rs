//! `render_entries` (protocol.md §15.1).

use crate::daemon::convert::member::{push_array, push_number_member};
use crate::daemon::reading::INLINE_ENTRIES;
use crate::rpc::reply::{Prepared, page_bytes};
use crate::rpc::session_read::{Read, ReadAnswer};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use treelined_core::error::{Error, Result};
use treelined_core::json;
use treelined_core::tree::Node;
use treelined_files::log::body::Bodies;
use treelined_files::parallel::in_order;
use treelined_pages::renderers::Renderers;
use treelined_pages::session_render::{EntryRenderer, RenderPlan, RenderPlanner, ResultParts};
use treelined_wire as wire;

/// The most ids of one request.
const MOST_IDS: usize = 10_000;
/// The most ids of a request that is prepared on the reader thread.
const INLINE_IDS: usize = 64;
/// The smallest `maxBytes` that is allowed.
const LEAST_BYTES: u64 = 4096;
/// The number of entries that one thread renders at a time. A page may end inside of a chunk, so the number is small.
const CHUNK: usize = 32;

pub(in crate::rpc) fn render_entries(
    read: &Read<'_>,
    params: &wire::RenderEntriesParams,
) -> Result<ReadAnswer<Prepared<wire::RenderEntriesResult>>> {
    let max_bytes = checked(read, params)?;
    // The path needs a table of all nodes, so a request takes long in a large tree too.
    let is_long = params.entry_ids.len() > INLINE_IDS || read.tree.node_count() > INLINE_ENTRIES;
    if is_long && !read.may_block() {
        return Ok(ReadAnswer::OnBlockingThread);
    }
    let leaf = position(read, &params.leaf_id)?;
    let bodies = read.bodies();
    let mut planner = RenderPlanner::new(&read.tree, &bodies, leaf);
    let mut asked = Vec::with_capacity(params.entry_ids.len());
    let mut missing = Vec::new();
    for (index, id) in params.entry_ids.iter().enumerate() {
        match read.tree.find(id) {
            Some(node) => asked.push((index, planner.plan(node)?)),
            None => missing.push(json::quoted(id)),
        }
    }
    let stored = asked.iter().map(|(_, plan)| plan.bytes());
    let size = stored.sum();
    let asked = AskedEntries {
        bodies,
        asked,
        parts: match params.results.unwrap_or_default() {
            wire::RenderedResults::Blocks => ResultParts::Blocks,
            wire::RenderedResults::Ids => ResultParts::Ids,
        },
        renderers: read.call.daemon.offers.renderers(),
        max_bytes,
    };
    Ok(ReadAnswer::later(size, move || {
        let mut out = b"{\"entries\":[".to_vec();
        let next = asked.push(&mut out)?;
        out.push(b']');
        if !missing.is_empty() {
            out.extend_from_slice(b",\"missing\":");
            push_array(&mut out, missing);
        }
        if let Some(next) = next {
            push_number_member(&mut out, "nextIndex", next as u64);
        }
        out.push(b'}');
        Ok(Prepared::bytes(out))
    }))
}

/// Checks the params, and returns the limit of the entries in bytes.
fn checked(read: &Read<'_>, params: &wire::RenderEntriesParams) -> Result<usize> {
    if params.entry_ids.len() > MOST_IDS {
        let reason = format!("has more than {MOST_IDS} ids: ask for the rest in another request");
        return Err(Error::invalid_params("entryIds", reason));
    }
    // The ids of missing entries are in the answer too.
    let ids = params.entry_ids.iter().map(|id| id.len() + 8);
    let fits = page_bytes(read.frame_bytes()).saturating_sub(ids.sum());
    match params.max_bytes {
        Some(max) if max < LEAST_BYTES => {
            let reason = format!("is less than {LEAST_BYTES}");
            Err(Error::invalid_params("maxBytes", reason))
        }
        Some(max) => Ok((max as usize).min(fits)),
        None => Ok(fits),
    }
}

/// The node of the position that the client gives. Without one, the leaf.
pub(super) fn position(read: &Read<'_>, given: &wire::GivenPosition) -> Result<Option<Node>> {
    match given {
        wire::GivenPosition::Leaf => Ok(read.leaf()),
        wire::GivenPosition::Empty => Ok(None),
        wire::GivenPosition::At(id) => read.find_position(Some(id)),
    }
}

/// The entries of a request. They are rendered without the session.
struct AskedEntries {
    bodies: Bodies,
    /// Each entry with its index in the params.
    asked: Vec<(usize, RenderPlan)>,
    parts: ResultParts,
    renderers: Arc<Renderers>,
    max_bytes: usize,
}

/// Rendered entries, each with its index in the params.
struct RenderedChunk {
    entries: Vec<(usize, Vec<u8>)>,
    /// The index of the first entry of the chunk that was not rendered, if the entries before it fill a page.
    rest: Option<usize>,
}

impl AskedEntries {
    /// Writes entries until they have `max_bytes`, but at least one. Returns the index of the first entry that is left
    /// out.
    fn push(&self, out: &mut Vec<u8>) -> Result<Option<usize>> {
        let start = out.len();
        let mut next = None;
        let render = |range: Range<usize>| self.render(range);
        in_order(0..self.asked.len(), CHUNK, render, |chunk| {
            for (index, entry) in chunk.entries {
                let is_first = out.len() == start;
                if !is_first && out.len() - start + entry.len() >= self.max_bytes {
                    next = Some(index);
                    return ControlFlow::Break(());
                }
                if !is_first {
                    out.push(b',');
                }
                out.extend_from_slice(&entry);
            }
            next = chunk.rest;
            match next {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        })?;
        Ok(next)
    }

    fn render(&self, range: Range<usize>) -> Result<RenderedChunk> {
        let renderer = EntryRenderer::new(&self.bodies, self.parts);
        let mut renderer = renderer.with_renderers(&self.renderers);
        let mut entries = Vec::with_capacity(range.len());
        let mut bytes = 0;
        for (index, plan) in self.asked.get(range).unwrap_or_default() {
            if bytes > self.max_bytes {
                let rest = Some(*index);
                return Ok(RenderedChunk { entries, rest });
            }
            let mut entry = Vec::new();
            renderer.push(&mut entry, plan, self.max_bytes)?;
            bytes += entry.len();
            entries.push((*index, entry));
        }
        Ok(RenderedChunk {
            entries,
            rest: None,
        })
    }
}
