//! `render_entries` (protocol.md §15.1).

use crate::daemon::convert::{push_array, push_number_member};
use crate::daemon::reading::size_of;
use crate::error::{Error, Result};
use crate::json;
use crate::log::body::{Bodies, Fetch};
use crate::render::{self, EntryContext};
use crate::rpc::handler::{Read, ReadAnswer};
use crate::rpc::reply::{Prepared, page_bytes};
use crate::wire;

/// The most ids of one request.
const MOST_IDS: usize = 10_000;

pub(in crate::rpc) fn render_entries(
    read: &Read<'_>,
    params: &wire::RenderEntriesParams,
) -> Result<ReadAnswer<Prepared<wire::RenderEntriesResult>>> {
    if params.entry_ids.len() > MOST_IDS {
        let reason = format!("has more than {MOST_IDS} ids: ask for the rest in another request");
        return Err(Error::invalid_params("entryIds", reason));
    }
    let fits = page_bytes(read.frame_bytes());
    let max_bytes = params
        .max_bytes
        .map_or(fits, |max| (max as usize).min(fits));
    let mut asked = Vec::new();
    let mut missing = Vec::new();
    for (index, id) in params.entry_ids.iter().enumerate() {
        match read.tree.find(id) {
            Some(node) => asked.push((index, node, id.clone())),
            None => missing.push(json::quoted(id)),
        }
    }
    let nodes = asked.iter().map(|(_, node, _)| *node);
    let size = size_of(read, nodes.clone());
    let (bodies, fetches) = (read.bodies(), read.fetch(nodes)?);
    let asked: Vec<(usize, String, Fetch)> = asked
        .into_iter()
        .zip(fetches)
        .map(|((index, _, id), fetch)| (index, id, fetch))
        .collect();
    Ok(ReadAnswer::later(size, move || {
        let mut out = b"{\"entries\":[".to_vec();
        let next = push_entries(&mut out, &bodies, &asked, max_bytes)?;
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

/// Writes entries until they have `max_bytes`, at least one; returns the index of the first one left out.
fn push_entries(
    out: &mut Vec<u8>,
    bodies: &Bodies,
    asked: &[(usize, String, Fetch)],
    max_bytes: usize,
) -> Result<Option<usize>> {
    let start = out.len();
    let mut reader = bodies.reader();
    for (at, (index, id, fetch)) in asked.iter().enumerate() {
        let before = out.len();
        if at > 0 {
            out.push(b',');
        }
        let context = EntryContext {
            id,
            ..EntryContext::default()
        };
        reader.see_entry(fetch, |entry| {
            render::push_entry(out, entry, &context, max_bytes);
        })?;
        if at > 0 && out.len() - start > max_bytes {
            out.truncate(before);
            return Ok(Some(*index));
        }
    }
    Ok(None)
}
