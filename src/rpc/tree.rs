//! `get_tree` (protocol.md §6): options and cursors; the view itself is [`crate::view`]'s.

use super::convert::{push_id_member, push_number_member};
use super::method::Reply;
use super::read::{INLINE_ENTRIES, row_facts};
use super::server::{Call, OpenSession};
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::log::body::{Bodies, Fetch, Reader};
use crate::session::{Core, Turn, blocking};
use crate::view::{
    self, Filter, Folding, Order, Outline, Query, Render, Scope, Snapshot, Start, Visible, nested,
};
use crate::wire;
use serde_json::json;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// What a response has besides its rows, in bytes.
const ENVELOPE_BYTES: usize = 4096;

pub async fn get_tree(call: Arc<Call>, params: wire::GetTreeParams) -> Result<Reply> {
    let (open, turn) = call.fresh(&params).await?;
    let frame_bytes = call.server.client_frame_bytes();
    let fits = frame_bytes - ENVELOPE_BYTES.min(frame_bytes / 2);
    if turn.tree.node_count() > INLINE_ENTRIES {
        return blocking(move || tree(&open, turn, &params, fits)).await;
    }
    tree(&open, turn, &params, fits)
}

fn tree(
    open: &OpenSession,
    turn: Turn,
    params: &wire::GetTreeParams,
    fits: usize,
) -> Result<Reply> {
    let revision = format!("{:x}-{:x}", open.session.nonce, turn.tree.revision());
    let start = start(&turn, params, &revision)?;
    let scope = Scope {
        root: params
            .root_id
            .as_deref()
            .map(|id| turn.find(id))
            .transpose()?,
        filter: filter(params.filter.unwrap_or_default()),
        order: order(params.order.unwrap_or_default()),
    };
    let folded = params.fold.iter().flatten().map(|id| turn.find(id));
    let folding = Folding {
        folded: folded.collect::<Result<_>>()?,
        max_depth: params.max_depth,
    };
    let outline = Outline::new(&turn.tree, scope);
    let around = match start {
        From::Around(node) => Start::Around(outline.find(node).unwrap_or_default()),
        From::Offset(offset) => Start::Offset(offset),
    };
    let is_nested = params.format == Some(wire::TreeFormat::Nested);
    let head = Head {
        leaf_id: turn.leaf_id().map(str::to_owned),
        revision,
        seq: open.seq(),
    };
    let bodies = turn.bodies();
    let limit = params.limit.map(|limit| (limit as usize).max(1));
    let page = |visible: &Visible| -> Result<Range<usize>> {
        if is_nested {
            nested::check_depth(visible, params.max_depth).map_err(too_deep)?;
            return Ok(0..visible.total());
        }
        let start = match around {
            Start::Around(item) => Start::Around(visible.row_near(item).unwrap_or_default()),
            offset => offset,
        };
        Ok(view::page_range(visible.total(), start, limit))
    };
    // What is read from the file is read without the turn.
    let (visible, snapshot, range, fetches) = match params.query.as_deref().and_then(Query::parse) {
        None => {
            let visible = Visible::new(&outline, None, &folding);
            let range = page(&visible)?;
            let snapshot = Snapshot::take(&turn.tree, &outline, visible.items_of(range.clone()));
            let rows = visible.rows().iter().map(view::Row::item);
            let fetches = is_nested.then(|| nested_fetches(&turn, &outline, rows));
            let fetches = fetches.transpose()?;
            drop(turn);
            (visible, snapshot, range, fetches)
        }
        Some(query) => {
            let snapshot = Snapshot::take(&turn.tree, &outline, outline.kept());
            let fetches = is_nested.then(|| nested_fetches(&turn, &outline, outline.kept()));
            let fetches = fetches.transpose()?;
            drop(turn);
            let matched = matches(&bodies, &outline, &snapshot, &query)?;
            let visible = Visible::new(&outline, Some(&matched), &folding);
            let range = page(&visible)?;
            (visible, snapshot, range, fetches)
        }
    };
    let max_bytes = params
        .max_bytes
        .map_or(fits, |max| (max as usize).min(fits));
    let mut out = b"{\"nodes\":".to_vec();
    let mut reader = bodies.reader();
    let served = match fetches {
        Some(fetches) => {
            nested::push_json(&mut out, &visible, &snapshot, |out, item| {
                if out.len() > fits {
                    return Err(too_large(fits));
                }
                if let Some(fetch) = fetches.get(&item) {
                    json::push_raw(out, &reader.entry(fetch)?);
                }
                Ok::<(), Error>(())
            })?;
            range
        }
        None => {
            let render = params.render.map(render);
            push_rows(
                &mut out,
                &visible,
                &snapshot,
                range,
                render,
                &mut reader,
                max_bytes,
            )?
        }
    };
    push_id_member(&mut out, "leafId", head.leaf_id.as_deref());
    out.extend_from_slice(b",\"rootIds\":");
    visible.push_root_ids(&mut out, &snapshot);
    push_number_member(&mut out, "total", visible.total() as u64);
    push_number_member(&mut out, "hidden", visible.hidden() as u64);
    push_number_member(&mut out, "offset", served.start as u64);
    push_id_member(&mut out, "revision", Some(&head.revision));
    push_number_member(&mut out, "seq", head.seq);
    if served.end < visible.total() {
        let cursor = format!("{}:{}", head.revision, served.end);
        push_id_member(&mut out, "nextCursor", Some(&cursor));
    }
    out.push(b'}');
    Ok(Reply::Bytes(out))
}

/// Where a page begins, before the rows are known.
enum From {
    Offset(u64),
    Around(crate::tree::Node),
}

fn start(turn: &Turn, params: &wire::GetTreeParams, revision: &str) -> Result<From> {
    if let Some(cursor) = &params.cursor {
        let (of, offset) = cursor.rsplit_once(':').unwrap_or_default();
        let offset: Option<u64> = offset.parse().ok();
        let Some(offset) = offset else {
            return Err(Error::invalid_params("cursor", "is no cursor of get_tree"));
        };
        if of != revision {
            return Err(
                Error::new(Kind::TreeChanged, "the tree has changed since this cursor")
                    .with_details(json!({ "revision": revision })),
            );
        }
        return Ok(From::Offset(offset));
    }
    match &params.around {
        Some(id) => Ok(From::Around(turn.find(id)?)),
        None => Ok(From::Offset(params.offset.unwrap_or_default())),
    }
}

/// What the answer says of the session.
struct Head {
    leaf_id: Option<String>,
    revision: String,
    seq: u64,
}

/// What it takes to hand out the entries of these items.
fn nested_fetches(
    core: &Core,
    outline: &Outline,
    items: impl Iterator<Item = usize>,
) -> Result<HashMap<usize, Fetch>> {
    let bodies = core.bodies();
    let nodes = items.filter_map(|item| Some((item, outline.items().get(item)?.node)));
    let fetches = nodes.map(|(item, node)| Ok((item, bodies.fetch(&core.tree, node)?)));
    fetches.collect()
}

/// For each item whether the query finds it; only those the filter keeps are read.
fn matches(
    bodies: &Bodies,
    outline: &Outline,
    snapshot: &Snapshot,
    query: &Query,
) -> Result<Vec<bool>> {
    let mut reader = bodies.reader();
    let mut matched = vec![false; outline.items().len()];
    let mut kept: Vec<usize> = outline.kept().collect();
    // In file order, so that neighbours are read together.
    kept.sort_unstable_by_key(|item| snapshot.entry(*item).map(|entry| entry.place));
    for item in kept {
        let Some(entry) = snapshot.entry(item) else {
            continue;
        };
        let facts = row_facts(&mut reader, entry.place, entry.subject(true))?;
        if let Some(matched) = matched.get_mut(item) {
            *matched = query.matches(entry.label, entry.role, &facts);
        }
    }
    Ok(matched)
}

fn too_deep(error: nested::TooDeep) -> Error {
    let details = json!({ "depth": error.depth, "limit": error.limit, "format": "flat" });
    Error::new(Kind::NestingTooDeep, error.to_string()).with_details(details)
}

fn too_large(limit: usize) -> Error {
    Error::new(
        Kind::ResponseTooLarge,
        format!(
            "the nested tree has more than the {limit} bytes the client takes: ask for the flat form"
        ),
    )
}

/// Writes rows while the array has less than `max_bytes`, but one at least; returns which.
fn push_rows(
    out: &mut Vec<u8>,
    visible: &Visible,
    snapshot: &Snapshot,
    range: Range<usize>,
    render: Option<Render>,
    reader: &mut Reader<'_>,
    max_bytes: usize,
) -> Result<Range<usize>> {
    let start = out.len();
    let mut end = range.start;
    out.push(b'[');
    for served in visible.served(snapshot, range.clone()) {
        let before = out.len();
        if end > range.start {
            out.push(b',');
        }
        let facts = row_facts(reader, served.entry.place, served.entry.subject(false))?;
        served.push_json(out, &facts, render);
        if end > range.start && out.len() - start >= max_bytes {
            out.truncate(before);
            break;
        }
        end += 1;
    }
    out.push(b']');
    Ok(range.start..end)
}

fn filter(filter: wire::TreeFilter) -> Filter {
    match filter {
        wire::TreeFilter::Default => Filter::Default,
        wire::TreeFilter::NoTools => Filter::NoTools,
        wire::TreeFilter::UserOnly => Filter::UserOnly,
        wire::TreeFilter::LabeledOnly => Filter::LabeledOnly,
        wire::TreeFilter::All => Filter::All,
    }
}

fn order(order: wire::TreeOrder) -> Order {
    match order {
        wire::TreeOrder::Time => Order::Time,
        wire::TreeOrder::ActiveFirst => Order::ActiveFirst,
    }
}

fn render(render: wire::TreeRender) -> Render {
    match render {
        wire::TreeRender::Unicode => Render::Unicode,
        wire::TreeRender::Ascii => Render::Ascii,
    }
}
