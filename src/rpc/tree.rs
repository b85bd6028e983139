//! `get_tree` (protocol.md §6): options and cursors; the view itself is [`crate::view`]'s.

use super::read::{INLINE_BYTES, INLINE_ENTRIES};
use super::reply::Reply;
use crate::blocking::blocking;
use crate::daemon::call::Call;
use crate::daemon::convert::{push_id_member, push_number_member};
use crate::daemon::find;
use crate::daemon::open_session::{OpenSession, SessionGuard};
use crate::daemon::rows::{RowReader, ToExtract};
use crate::daemon::tree_view::{Asked, View, ViewRoom};
use crate::entry::Role;
use crate::error::{Error, Kind, Result};
use crate::log::body::{Bodies, Fetch};
use crate::parallel::{CHUNK, in_order};
use crate::search::{Mode, Query};
use crate::session::SessionState;
use crate::view::{
    self, FIRST_READ, Filter, Folding, Order, Outline, Render, Scope, Served, Snapshot, Start,
    Visible, nested,
};
use crate::wire;
use serde_json::json;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// What a response has besides its rows, in bytes.
const ENVELOPE_BYTES: usize = 4096;
/// Rows of a page that is written on the thread that reads requests, if the view stands.
const INLINE_ROWS: usize = 512;

/// A view to be served.
struct Wanted {
    asked: Asked,
    query: Option<Query>,
    /// If it is there already.
    view: Option<Arc<View>>,
}

pub(super) async fn get_tree(call: Arc<Call>, params: wire::GetTreeParams) -> Result<Reply> {
    let params = Arc::new(params);
    super::read::read_again(|| view_of(&call, &params)).await
}

async fn view_of(call: &Arc<Call>, params: &Arc<wire::GetTreeParams>) -> Result<Reply> {
    let query = query(params)?;
    let (open, turn) = call.fresh(&**params).await?;
    let frame_bytes = call.connection.client_frame_bytes();
    let fits = frame_bytes - ENVELOPE_BYTES.min(frame_bytes / 2);
    let asked = asked(&turn, params)?;
    let last = &open.last_view;
    let view = last
        .get(&asked)
        .or_else(|| last.extended(&turn.tree, &asked));
    let wanted = Wanted { asked, query, view };
    if wanted.is_quick(&turn, params) {
        return tree(call, &open, turn, wanted, params, fits);
    }
    let (call, params) = (Arc::clone(call), Arc::clone(params));
    blocking(move || tree(&call, &open, turn, wanted, &params, fits)).await
}

fn query(params: &wire::GetTreeParams) -> Result<Option<Query>> {
    let text = params.query.as_deref().unwrap_or_default();
    let mode = mode(params.mode.unwrap_or_default());
    Query::parse(text, mode).map_err(|reason| Error::invalid_params("query", reason))
}

impl Wanted {
    /// Whether it takes so little that it is answered where requests arrive.
    fn is_quick(&self, turn: &SessionGuard, params: &wire::GetTreeParams) -> bool {
        let count = turn.tree.node_count();
        let last = count.checked_sub(1).and_then(|last| turn.tree.node(last));
        let end = last.map(|last| turn.tree.place(last));
        if count <= INLINE_ENTRIES && end.is_none_or(|end| end.offset <= INLINE_BYTES) {
            return true;
        }
        let limit = params.limit.map(|limit| limit as usize);
        let (Some(view), Some(limit), None) = (&self.view, limit, &self.query) else {
            return false;
        };
        let is_nested = params.format == Some(wire::TreeFormat::Nested);
        let Ok(start) = start(turn, params, None) else {
            return true;
        };
        !is_nested && limit <= INLINE_ROWS && {
            let items = view.visible.items_of(view.page(&start, Some(limit.max(1))));
            let items = items
                .take(limit)
                .filter_map(|item| view.outline.items().get(item));
            let bytes = items.map(|item| read_for_row(turn, item.node));
            bytes.sum::<u64>() <= INLINE_BYTES
        }
    }
}

/// Bytes that are read for a row, its extract aside.
fn read_for_row(core: &SessionState, node: crate::tree::Node) -> u64 {
    let len = u64::from(core.tree.place(node).len);
    match core.tree.role(node) {
        // To its last line, and to its last call.
        Role::ToolResult | Role::Assistant => len,
        _ => len.min(FIRST_READ as u64),
    }
}

impl View {
    fn page(&self, start: &From, limit: Option<usize>) -> Range<usize> {
        let start = match *start {
            From::Offset(offset) => Start::Offset(offset),
            From::Around(node) => {
                let item = self.outline.find(node).unwrap_or_default();
                Start::Around(self.visible.row_near(item).unwrap_or_default())
            }
        };
        view::page_range(self.visible.total(), start, limit)
    }
}

fn asked(turn: &SessionGuard, params: &wire::GetTreeParams) -> Result<Asked> {
    let root = params.root_id.as_deref().map(|id| turn.find(id));
    let folded = params.fold.iter().flatten().map(|id| turn.find(id));
    Ok(Asked {
        revision: turn.tree.revision(),
        scope: Scope {
            root: root.transpose()?,
            filter: filter(params.filter.unwrap_or_default()),
            order: order(params.order.unwrap_or_default()),
        },
        query: (params.query.clone()).map(|query| (mode(params.mode.unwrap_or_default()), query)),
        folding: Folding {
            folded: folded.collect::<Result<_>>()?,
            max_depth: params.max_depth,
        },
    })
}

fn tree(
    call: &Call,
    open: &OpenSession,
    turn: SessionGuard,
    wanted: Wanted,
    params: &wire::GetTreeParams,
    fits: usize,
) -> Result<Reply> {
    let daemon = &*call.daemon;
    let Wanted { asked, query, view } = wanted;
    let revision = format!("{:x}-{:x}", open.session.nonce, asked.revision);
    let start = start(&turn, params, Some(&revision))?;
    let head = Head {
        leaf_id: turn.leaf_id().map(str::to_owned),
        revision,
        seq: open.seq(&call.connection),
    };
    let is_nested = params.format == Some(wire::TreeFormat::Nested);
    let limit = params.limit.map(|limit| (limit as usize).max(1));
    let page = |view: &View| -> Result<Range<usize>> {
        let visible = &view.visible;
        if is_nested {
            nested::check_depth(visible, params.max_depth).map_err(too_deep)?;
            return Ok(0..visible.total());
        }
        Ok(view.page(&start, limit))
    };
    let take = |core: &SessionState, view: &View, range: &Range<usize>| -> Result<(Snapshot, _)> {
        let items = view.visible.items_of(range.clone());
        let snapshot = Snapshot::take(&core.tree, &view.outline, items);
        let rows = view.visible.rows().iter().map(view::Row::item);
        if is_nested {
            check_fits(&snapshot, rows.clone(), fits)?;
        }
        let fetches = is_nested.then(|| nested_fetches(core, &view.outline, rows));
        Ok((snapshot, fetches.transpose()?))
    };
    let bodies = turn.bodies();
    let room = ViewRoom {
        daemon,
        origin: turn.tree.origin(),
    };
    let extracts = |core: &SessionState, rows: usize| ToExtract::before(rows, core, &daemon.store);
    let make = |missing: Option<ToExtract>| {
        if let Some(missing) = missing {
            missing.make(&bodies);
        }
    };
    // What is read from the file is read without the turn.
    let (view, range, (snapshot, fetches)) = match (view, &query) {
        (None, Some(query)) => {
            let outline = Outline::new(&turn.tree, asked.scope);
            let snapshot = Snapshot::take(&turn.tree, &outline, outline.kept());
            let fetches = is_nested.then(|| nested_fetches(&turn, &outline, outline.kept()));
            let fetches = fetches.transpose()?;
            drop(turn);
            let last = &open.last_view;
            let in_tree = (&bodies, &outline, &snapshot);
            let matched = last.matches(&asked, room.origin, query, in_tree)?;
            let view = last.make(&room, asked, outline, Some(&matched));
            let range = page(&view)?;
            if is_nested {
                let rows = view.visible.rows().iter().map(view::Row::item);
                check_fits(&snapshot, rows, fits)?;
            }
            (view, range, (snapshot, fetches))
        }
        (view, _) => {
            let view = view.unwrap_or_else(|| {
                let outline = Outline::new(&turn.tree, asked.scope);
                open.last_view.make(&room, asked, outline, None)
            });
            let range = page(&view)?;
            let taken = take(&turn, &view, &range)?;
            let missing = extracts(&turn, range.len());
            drop(turn);
            make(missing);
            (view, range, taken)
        }
    };
    let visible = &view.visible;
    let max_bytes = params
        .max_bytes
        .map_or(fits, |max| (max as usize).min(fits));
    let mut out = b"{\"nodes\":".to_vec();
    let served = match fetches {
        Some(fetches) => {
            let mut reader = bodies.reader();
            nested::push_json(&mut out, visible, &snapshot, |out, item| {
                if out.len() > fits {
                    return Err(too_large(fits));
                }
                if let Some(fetch) = fetches.get(&item) {
                    reader.push_entry(out, fetch)?;
                }
                Ok::<(), Error>(())
            })?;
            range
        }
        None => {
            let rows = Rows {
                visible,
                outline: &view.outline,
                query: query.as_ref(),
                snapshot: &snapshot,
                bodies: &bodies,
                render: params.render.map(render),
            };
            rows.push(&mut out, range, max_bytes)?
        }
    };
    push_rest(&mut out, &head, visible, &snapshot, &served);
    Ok(Reply::Bytes(out))
}

/// What an answer says behind its rows, of which it has those that were `served`.
fn push_rest(
    out: &mut Vec<u8>,
    head: &Head,
    visible: &Visible,
    snapshot: &Snapshot,
    served: &Range<usize>,
) {
    push_id_member(out, "leafId", head.leaf_id.as_deref());
    out.extend_from_slice(b",\"rootIds\":");
    visible.push_root_ids(out, snapshot);
    push_number_member(out, "total", visible.total() as u64);
    push_number_member(out, "hidden", visible.hidden() as u64);
    push_number_member(out, "offset", served.start as u64);
    push_id_member(out, "revision", Some(&head.revision));
    push_number_member(out, "seq", head.seq);
    if served.end < visible.total() {
        let cursor = format!("{}:{}", head.revision, served.end);
        push_id_member(out, "nextCursor", Some(&cursor));
    }
    out.push(b'}');
}

/// Where a page begins, before the rows are known.
enum From {
    Offset(u64),
    Around(crate::tree::Node),
}

/// `revision` is what a cursor must be of.
fn start(
    turn: &SessionGuard,
    params: &wire::GetTreeParams,
    revision: Option<&str>,
) -> Result<From> {
    if let Some(cursor) = &params.cursor {
        let (of, offset) = cursor.rsplit_once(':').unwrap_or_default();
        let offset: Option<u64> = offset.parse().ok();
        let Some(offset) = offset else {
            return Err(Error::invalid_params("cursor", "is no cursor of get_tree"));
        };
        if let Some(revision) = revision
            && of != revision
        {
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
    core: &SessionState,
    outline: &Outline,
    items: impl Iterator<Item = usize>,
) -> Result<HashMap<usize, Fetch>> {
    let bodies = core.bodies();
    let nodes = items.filter_map(|item| Some((item, outline.items().get(item)?.node)));
    let fetches = nodes.map(|(item, node)| Ok((item, bodies.fetch(&core.tree, node)?)));
    fetches.collect()
}

fn too_deep(error: nested::TooDeep) -> Error {
    let details = json!({ "depth": error.depth, "limit": error.limit, "format": "flat" });
    Error::new(Kind::NestingTooDeep, error.to_string()).with_details(details)
}

/// Fails if the entries of these rows are more than the client takes, before one of them is read. Half of
/// what is stored is certain to go out: an entry that is edited on its way may become shorter.
fn check_fits(snapshot: &Snapshot, items: impl Iterator<Item = usize>, limit: usize) -> Result<()> {
    let sizes = items.filter_map(|item| Some(u64::from(snapshot.entry(item)?.place.len)));
    match sizes.sum::<u64>() / 2 > limit as u64 {
        true => Err(too_large(limit)),
        false => Ok(()),
    }
}

fn too_large(limit: usize) -> Error {
    Error::new(
        Kind::ResponseTooLarge,
        format!(
            "the nested tree has more than the {limit} bytes the client takes: ask for the flat form"
        ),
    )
}

/// The sources from which rows are written.
struct Rows<'a> {
    visible: &'a Visible,
    outline: &'a Outline,
    query: Option<&'a Query>,
    snapshot: &'a Snapshot,
    bodies: &'a Bodies,
    render: Option<Render>,
}

/// Rows as JSON, a comma behind each, and where each of them ends.
struct Chunk {
    json: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows<'_> {
    /// Writes rows while the array has less than `max_bytes`, but one at least; returns which.
    fn push(
        &self,
        out: &mut Vec<u8>,
        range: Range<usize>,
        max_bytes: usize,
    ) -> Result<Range<usize>> {
        let start = out.len();
        out.push(b'[');
        let mut end = range.start;
        let write = |range| self.chunk(range);
        in_order(range.clone(), CHUNK, write, |chunk| {
            let before = out.len() - start;
            let fits = |at: &usize| before + at - 1 < max_bytes;
            let fitting = chunk.ends.iter().take_while(|at| fits(at)).count();
            let written = fitting.max(usize::from(end == range.start));
            let bytes = written.checked_sub(1).and_then(|last| chunk.ends.get(last));
            let bytes = bytes.copied().unwrap_or_default();
            out.extend_from_slice(chunk.json.get(..bytes).unwrap_or_default());
            end += written;
            if written < chunk.ends.len() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if end > range.start {
            out.pop();
        }
        out.push(b']');
        Ok(range.start..end)
    }

    fn chunk(&self, range: Range<usize>) -> Result<Chunk> {
        let mut reader = RowReader::new(self.bodies);
        let mut chunk = Chunk {
            json: Vec::with_capacity(range.len() * ROW_BYTES),
            ends: Vec::with_capacity(range.len()),
        };
        for served in self.visible.served(self.snapshot, range) {
            self.push_row(&mut chunk.json, &mut reader, &served)?;
            chunk.json.push(b',');
            chunk.ends.push(chunk.json.len());
        }
        Ok(chunk)
    }

    fn push_row(
        &self,
        out: &mut Vec<u8>,
        reader: &mut RowReader<'_>,
        served: &Served<'_>,
    ) -> Result<()> {
        let entry = &served.entry;
        let subject = entry.subject();
        if entry.role != Role::ToolResult && self.query.is_none() {
            let facts = reader.facts(entry.node, entry.place, subject)?;
            served.push_json(out, &facts, None, None, self.render);
            return Ok(());
        }
        let (facts, call) = match entry.role {
            Role::ToolResult => {
                let callers = self.outline.callers(served.row.item());
                let (facts, call) = reader.result(entry.node, entry.place, subject, callers)?;
                (facts, call.cloned())
            }
            _ => {
                let facts = reader.facts(entry.node, entry.place, subject)?;
                (facts.into_owned(), None)
            }
        };
        let found = match self.query {
            Some(query) => find::excerpt(reader, query, entry, call.as_ref())?,
            None => None,
        };
        let found = found.as_ref();
        served.push_json(out, &facts, call.as_ref(), found, self.render);
        Ok(())
    }
}

/// The usual size of a row, in bytes.
const ROW_BYTES: usize = 512;

fn filter(filter: wire::TreeFilter) -> Filter {
    match filter {
        wire::TreeFilter::Default => Filter::Default,
        wire::TreeFilter::NoTools => Filter::NoTools,
        wire::TreeFilter::UserOnly => Filter::UserOnly,
        wire::TreeFilter::LabeledOnly => Filter::LabeledOnly,
        wire::TreeFilter::All => Filter::All,
    }
}

fn mode(mode: wire::SearchMode) -> Mode {
    match mode {
        wire::SearchMode::Words => Mode::Words,
        wire::SearchMode::Literal => Mode::Literal,
        wire::SearchMode::Regex => Mode::Regex,
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
