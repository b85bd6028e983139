//! `get_tree` (protocol.md §6): options and cursors. [`treelined_core::view`] makes the view.

use crate::daemon::convert::member::{push_count, push_id_member, push_number_member};
use crate::daemon::find;
use crate::daemon::reading::{INLINE_BYTES, INLINE_ENTRIES};
use crate::daemon::rows::{RowReader, ToExtract};
use crate::daemon::tree_view::{View, ViewOptions, ViewRoom};
use crate::rpc::methods::born::{self, BornSessions, Origin};
use crate::rpc::methods::branch_names::BranchNames;
use crate::rpc::methods::reader_query::ReaderQuery;
use crate::rpc::methods::revision;
use crate::rpc::reply::Prepared;
use crate::rpc::session_read::{Read, ReadAnswer};
use serde_json::json;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use treelined_core::entry::{Kind as EntryKind, Role};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::search::Query;
use treelined_core::view::{
    self, FIRST_READ, Filter, Folding, Guides, Left, Outline, RowFacts, RowParts, Scope, ServedRow,
    Snapshot, Start, Visible, nested,
};
use treelined_files::log::body::{Bodies, Fetch};
use treelined_files::parallel::{CHUNK, in_order};
use treelined_files::session::SessionState;
use treelined_pages::renderers::Renderers;
use treelined_wire as wire;

/// The bytes of a response that are not rows.
const ENVELOPE_BYTES: usize = 4096;
/// The most rows of a page that the reader thread writes if the view is cached.
const INLINE_ROWS: usize = 512;

/// The decoded params of `get_tree`.
struct TreeRequest {
    params: wire::GetTreeParams,
    query: ReaderQuery,
}

type TreeReply = Prepared<wire::GetTreeResult<'static>>;

pub(in crate::rpc) fn get_tree(
    params: wire::GetTreeParams,
) -> Result<impl Fn(&Read<'_>) -> Result<ReadAnswer<TreeReply>> + Send + Sync> {
    let text = params.query.as_deref().unwrap_or_default();
    let is_nested = params.format == Some(wire::TreeFormat::Nested);
    if is_nested && matches!(params.fold, Some(wire::TreeFold::Left)) {
        return Err(Error::invalid_params(
            "fold",
            "left is for the flat form: leave format out, or fold ids",
        ));
    }
    let query = ReaderQuery::parse(text, params.mode.unwrap_or_default())?;
    let request = Arc::new(TreeRequest { params, query });
    Ok(move |read: &Read<'_>| request.read(read))
}

impl TreeRequest {
    fn read(self: &Arc<Self>, read: &Read<'_>) -> Result<ReadAnswer<TreeReply>> {
        let asked = self.asked(read, read.call.connection.rights().redacts())?;
        let last = &read.open.last_view;
        let view = last
            .get(&asked)
            .or_else(|| last.extended(&read.tree, &asked));
        if !read.may_block() && (self.names_sessions() || !self.is_quick(read, view.as_deref())) {
            return Ok(ReadAnswer::OnBlockingThread);
        }
        let frame_bytes = read.frame_bytes();
        let revision = revision::of(read.open.session.nonce, asked.revision);
        let page = Page {
            start: start(read, &self.params, Some(&revision))?,
            fits: frame_bytes - ENVELOPE_BYTES.min(frame_bytes / 2),
            head: Head {
                leaf_id: read.leaf_id().map(str::to_owned),
                revision,
                seq: read.seq(),
                shed_branches: read.tree.shed().len(),
                cwd: read.cwd().to_owned(),
            },
            origin: self.names_sessions().then(|| Origin::of(read)),
            query: self.query.of(read.call.connection.rights().shown_text()),
            request: Arc::clone(self),
        };
        let view = match (view, self.query.is_given()) {
            (Some(view), _) => view,
            (None, true) => return page.of_matches(read, asked),
            (None, false) => {
                let outline = Outline::new(&read.tree, asked.scope);
                let room = ViewRoom {
                    kept: read.call.daemon.files.store.kept(),
                    origin: read.tree.origin(),
                };
                last.make(&room, asked, outline, None)
            }
        };
        page.of_view(read, view)
    }

    fn asked(&self, state: &SessionState, redacts: bool) -> Result<ViewOptions> {
        let params = &self.params;
        let root = params.root_id.as_deref().map(|id| state.find(id));
        let nodes = |ids: &[String]| ids.iter().map(|id| state.find(id)).collect::<Result<_>>();
        let filter = params.filter.unwrap_or_default();
        let mut folding = Folding {
            max_depth: params.max_depth,
            ..Folding::default()
        };
        match &params.fold {
            Some(wire::TreeFold::Below(ids)) => folding.folded = nodes(ids)?,
            Some(wire::TreeFold::Left) => {
                let left = Left {
                    expand: nodes(params.expand.as_deref().unwrap_or_default())?,
                    each: nodes(params.each.as_deref().unwrap_or_default())?,
                };
                // A caller that searches wants to see where the entries are, so nothing is folded.
                let is_search = self.query.is_given() || filter == Filter::LabeledOnly;
                folding.left = (!is_search).then_some(left);
            }
            None => {}
        }
        let query = params.query.clone();
        Ok(ViewOptions {
            revision: state.tree.revision(),
            scope: Scope {
                root: root.transpose()?,
                filter,
                order: params.order.unwrap_or_default(),
                active_last: folding.left.is_some(),
                archived: params.archived.unwrap_or_default(),
            },
            query: query.map(|query| (params.mode.unwrap_or_default(), query, redacts)),
            folding,
        })
    }

    fn names_sessions(&self) -> bool {
        self.params.sessions == Some(true)
    }

    fn is_nested(&self) -> bool {
        self.params.format == Some(wire::TreeFormat::Nested)
    }

    /// Whether the request is small enough for the reader thread.
    fn is_quick(&self, state: &SessionState, view: Option<&View>) -> bool {
        let count = state.tree.node_count();
        let last = count.checked_sub(1).and_then(|last| state.tree.node(last));
        let end = last.map(|last| state.tree.place(last));
        if count <= INLINE_ENTRIES && end.is_none_or(|end| end.offset <= INLINE_BYTES) {
            return true;
        }
        let limit = self.params.limit.map(|limit| limit as usize);
        let (Some(view), Some(limit), false) = (view, limit, self.query.is_given()) else {
            return false;
        };
        let Ok(start) = start(state, &self.params, None) else {
            return true;
        };
        !self.is_nested() && limit <= INLINE_ROWS && {
            let items = view.visible.items_of(view.page(&start, Some(limit.max(1))));
            let items = items
                .take(limit)
                .filter_map(|item| view.outline.items().get(item));
            let bytes = items.map(|item| read_for_row(state, item.node));
            bytes.sum::<u64>() <= INLINE_BYTES
        }
    }
}

/// The bytes that a row reads, apart from the preview.
fn read_for_row(state: &SessionState, node: treelined_core::tree::Node) -> u64 {
    let len = u64::from(state.tree.place(node).len);
    match (state.tree.kind(node), state.tree.role(node)) {
        // The row may need the last line of the body, or its last call.
        (_, Role::ToolResult | Role::Assistant) => len,
        // A renderer may need any member of the body.
        (EntryKind::Custom | EntryKind::CustomMessage, _) | (_, Role::Custom) => len,
        _ => len.min(FIRST_READ as u64),
    }
}

impl View {
    fn page(&self, start: &PageStart, limit: Option<usize>) -> Range<usize> {
        let start = match *start {
            PageStart::Offset(offset) => Start::Offset(offset),
            PageStart::Around(node) => {
                let item = self.outline.find(node).unwrap_or_default();
                Start::Around(self.visible.row_near(item).unwrap_or_default())
            }
        };
        view::page_range(self.visible.total(), start, limit)
    }
}

/// A page of a view.
struct Page {
    request: Arc<TreeRequest>,
    query: Option<Arc<Query>>,
    head: Head,
    start: PageStart,
    /// The limit of the rows, in bytes.
    fits: usize,
    /// Set if rows name the sessions that come from their entries.
    origin: Option<Origin>,
}

/// The rows of a page. They are read without the session.
struct PageRows {
    view: Arc<View>,
    range: Range<usize>,
    snapshot: Snapshot,
    /// The entries of the nested form, by item.
    fetches: Option<HashMap<usize, Fetch>>,
    bodies: Bodies,
    renderers: Arc<Renderers>,
}

impl Page {
    /// The rows of a cached view. The session's guard is held until it is known which entries are read.
    fn of_view(self, read: &Read<'_>, view: Arc<View>) -> Result<ReadAnswer<TreeReply>> {
        let range = self.range(&view)?;
        let items = view.visible.items_of(range.clone());
        let snapshot = Snapshot::take(&read.tree, &view.outline, items);
        let mut fetches = None;
        if self.request.is_nested() {
            self.check_fits(&snapshot, &view)?;
            fetches = Some(nested_fetches(read, &view.outline, rows_of(&view))?);
        }
        let missing = ToExtract::before(range.len(), read, &read.call.daemon.files.store);
        let shown = PageRows {
            view,
            range,
            snapshot,
            fetches,
            bodies: read.bodies(),
            renderers: read.call.daemon.offers.renderers(),
        };
        let bytes = (shown.range.len() * ROW_BYTES).min(self.fits);
        Ok(ReadAnswer::rows(bytes, move || {
            if let Some(missing) = missing {
                missing.make(&shown.bodies);
            }
            self.write(&shown)
        }))
    }

    /// The rows that the query finds. The entries are searched without the session's guard.
    fn of_matches(self, read: &Read<'_>, asked: ViewOptions) -> Result<ReadAnswer<TreeReply>> {
        let outline = Outline::new(&read.tree, asked.scope);
        let snapshot = Snapshot::take(&read.tree, &outline, outline.kept());
        let is_nested = self.request.is_nested();
        let fetches = is_nested.then(|| nested_fetches(read, &outline, outline.kept()));
        let (fetches, bodies) = (fetches.transpose()?, read.bodies());
        let (call, open) = (Arc::clone(read.call), Arc::clone(read.open));
        let origin = read.tree.origin();
        Ok(ReadAnswer::later(0, move || {
            let room = ViewRoom {
                kept: call.daemon.files.store.kept(),
                origin,
            };
            let (last, in_tree) = (&open.last_view, (&bodies, &outline, &snapshot));
            let query = self.query.as_deref();
            let matched = query.map(|query| last.matches(&asked, origin, query, in_tree));
            let matched = matched.transpose()?;
            let view = last.make(&room, asked, outline, matched.as_deref());
            let range = self.range(&view)?;
            if is_nested {
                self.check_fits(&snapshot, &view)?;
            }
            self.write(&PageRows {
                view,
                range,
                snapshot,
                fetches,
                bodies,
                renderers: call.daemon.offers.renderers(),
            })
        }))
    }

    /// The rows of a view that the page can have at most.
    fn range(&self, view: &View) -> Result<Range<usize>> {
        let (visible, params) = (&view.visible, &self.request.params);
        if self.request.is_nested() {
            nested::check_depth(visible, params.max_depth).map_err(too_deep)?;
            return Ok(0..visible.total());
        }
        let limit = params.limit.map(|limit| (limit as usize).max(1));
        Ok(view.page(&self.start, limit))
    }

    /// Fails, before any entry is read, if the entries of the rows exceed the client's limit. Only half of the stored
    /// bytes count, since an entry that is edited for the response may become shorter.
    fn check_fits(&self, snapshot: &Snapshot, view: &View) -> Result<()> {
        let size = |item| Some(u64::from(snapshot.entry(item)?.place.len));
        let sizes = rows_of(view).filter_map(size);
        match sizes.sum::<u64>() / 2 > self.fits as u64 {
            true => Err(too_large(self.fits)),
            false => Ok(()),
        }
    }

    fn write(&self, shown: &PageRows) -> Result<TreeReply> {
        let params = &self.request.params;
        let visible = &shown.view.visible;
        let max_bytes = params.max_bytes.map_or(self.fits, |max| max as usize);
        let mut out = b"{\"nodes\":".to_vec();
        let born = self.origin.as_ref().map(Origin::sessions).transpose()?;
        let served = match &shown.fetches {
            Some(fetches) => {
                self.push_nested(&mut out, shown, fetches)?;
                shown.range.clone()
            }
            None => {
                let rows = Rows {
                    visible,
                    outline: &shown.view.outline,
                    query: self.query.as_deref(),
                    snapshot: &shown.snapshot,
                    bodies: &shown.bodies,
                    renderers: &shown.renderers,
                    guides: params.render.map(|of| guides(of, params.prefix_columns)),
                    cwd: &self.head.cwd,
                    born: born.as_ref(),
                };
                rows.push(&mut out, shown.range.clone(), max_bytes.min(self.fits))?
            }
        };
        push_rest(&mut out, &self.head, shown, &served);
        Ok(Prepared::bytes(out))
    }

    fn push_nested(
        &self,
        out: &mut Vec<u8>,
        shown: &PageRows,
        fetches: &HashMap<usize, Fetch>,
    ) -> Result<()> {
        let mut reader = shown.bodies.reader();
        nested::push_json(out, &shown.view.visible, &shown.snapshot, |out, item| {
            if out.len() > self.fits {
                return Err(too_large(self.fits));
            }
            if let Some(fetch) = fetches.get(&item) {
                reader.push_entry(out, fetch)?;
            }
            Ok::<(), Error>(())
        })
    }
}

/// The items of all rows of a view.
fn rows_of(view: &View) -> impl Iterator<Item = usize> {
    view.visible.rows().iter().map(view::Row::item)
}

/// The members of a response after the rows. `served` are the rows of the page.
fn push_rest(out: &mut Vec<u8>, head: &Head, shown: &PageRows, served: &Range<usize>) {
    let (visible, snapshot) = (&shown.view.visible, &shown.snapshot);
    push_id_member(out, "leafId", head.leaf_id.as_deref());
    out.extend_from_slice(b",\"rootIds\":");
    visible.push_root_ids(out, snapshot);
    push_number_member(out, "total", visible.total() as u64);
    push_number_member(out, "hidden", visible.hidden() as u64);
    let archived = shown.view.outline.archived_branches();
    push_count(out, "archivedBranches", archived);
    push_count(out, "shedBranches", head.shed_branches);
    push_number_member(out, "offset", served.start as u64);
    push_id_member(out, "revision", Some(&head.revision));
    push_number_member(out, "seq", head.seq);
    if served.end < visible.total() {
        let cursor = format!("{}:{}", head.revision, served.end);
        push_id_member(out, "nextCursor", Some(&cursor));
    }
    out.push(b'}');
}

/// The start of a page. Its rows are not made yet.
enum PageStart {
    Offset(u64),
    Around(treelined_core::tree::Node),
}

/// The start that the params name. `revision` is the revision that a cursor must have.
fn start(
    state: &SessionState,
    params: &wire::GetTreeParams,
    revision: Option<&str>,
) -> Result<PageStart> {
    if let Some(cursor) = &params.cursor {
        let (of, offset) = cursor.rsplit_once(':').unwrap_or_default();
        let offset: Option<u64> = offset.parse().ok();
        let Some(offset) = offset else {
            return Err(Error::invalid_params(
                "cursor",
                "is not a cursor of get_tree",
            ));
        };
        if let Some(revision) = revision
            && of != revision
        {
            return Err(revision::changed(
                "the tree has changed since this cursor",
                revision,
            ));
        }
        return Ok(PageStart::Offset(offset));
    }
    match &params.around {
        Some(id) => Ok(PageStart::Around(shown(state, params, state.find(id)?))),
        None => Ok(PageStart::Offset(params.offset.unwrap_or_default())),
    }
}

/// The entry, or the nearest entry above it that is not hidden in an archived branch.
fn shown(
    state: &SessionState,
    params: &wire::GetTreeParams,
    node: treelined_core::tree::Node,
) -> treelined_core::tree::Node {
    if params.archived == Some(true) || params.root_id.is_some() {
        return node;
    }
    let archived = state.tree.archived();
    let hidden = |node: &treelined_core::tree::Node| archived.hides(*node);
    let mut path = state.tree.ancestors(Some(node));
    path.find(|node| !hidden(node)).unwrap_or(node)
}

/// The members about the session in a response.
struct Head {
    leaf_id: Option<String>,
    revision: String,
    seq: u64,
    shed_branches: usize,
    cwd: String,
}

/// Prepares the reads of these items' entries.
fn nested_fetches(
    state: &SessionState,
    outline: &Outline,
    items: impl Iterator<Item = usize>,
) -> Result<HashMap<usize, Fetch>> {
    let bodies = state.bodies();
    let nodes = items.filter_map(|item| Some((item, outline.items().get(item)?.node)));
    let fetches = nodes.map(|(item, node)| Ok((item, bodies.fetch(&state.tree, node)?)));
    fetches.collect()
}

fn too_deep(error: nested::TooDeep) -> Error {
    let details = json!({ "depth": error.depth, "limit": error.limit, "format": "flat" });
    Error::new(Kind::NestingTooDeep, error.to_string()).with_details(details)
}

fn too_large(limit: usize) -> Error {
    let why = "bytes the client takes: ask for the flat form";
    let message = format!("the nested tree has more than the {limit} {why}");
    Error::new(Kind::ResponseTooLarge, message)
}

/// The sources from which rows are written.
struct Rows<'a> {
    visible: &'a Visible,
    outline: &'a Outline,
    query: Option<&'a Query>,
    snapshot: &'a Snapshot,
    bodies: &'a Bodies,
    renderers: &'a Renderers,
    guides: Option<Guides>,
    cwd: &'a str,
    born: Option<&'a BornSessions>,
}

/// Rows as JSON, each with a comma after it, and the end of each row.
struct Chunk {
    json: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows<'_> {
    /// Writes rows until the array has `max_bytes`, but at least one row. Returns the range of the rows.
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
            match written < chunk.ends.len() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        if end > range.start {
            out.pop();
        }
        out.push(b']');
        Ok(range.start..end)
    }

    fn names(&self) -> BranchNames<'_> {
        BranchNames {
            visible: self.visible,
            outline: self.outline,
            snapshot: self.snapshot,
            renderers: self.renderers,
            render: self.guides.map(|guides| guides.render),
            cwd: self.cwd,
        }
    }

    fn chunk(&self, range: Range<usize>) -> Result<Chunk> {
        let mut reader = RowReader::new(self.bodies);
        let mut chunk = Chunk {
            json: Vec::with_capacity(range.len() * ROW_BYTES),
            ends: Vec::with_capacity(range.len()),
        };
        let mut rows = self.visible.served(self.snapshot, range).peekable();
        while let Some(served) = rows.next() {
            let next = rows.peek().map(|next| next.entry.role);
            self.push_row(&mut chunk.json, &mut reader, &served, next)?;
            chunk.json.push(b',');
            chunk.ends.push(chunk.json.len());
        }
        Ok(chunk)
    }

    fn push_row(
        &self,
        out: &mut Vec<u8>,
        reader: &mut RowReader<'_>,
        served: &ServedRow<'_>,
        next: Option<Role>,
    ) -> Result<()> {
        let (entry, subject) = (&served.entry, served.entry.subject());
        if let Some(folded) = served.folded {
            let preview = self.names().preview(reader, folded)?;
            let facts = match served.is_odd() {
                true => reader.facts(entry.node, entry.place, subject)?,
                false => RowFacts::default(),
            };
            served.push_folded(out, &facts, &preview, self.guides);
            return Ok(());
        }
        let branch = self.visible.branch_name(self.outline, served.row.item());
        let look = &reader.look(entry.place, subject, self.renderers)?;
        if entry.role != Role::ToolResult && self.query.is_none() {
            let facts = &reader.row(entry, next)?;
            served.push_json(out, RowParts::plain(facts, look, self.cwd), self.guides);
            return born::push(branch, self.born, out, entry.id, None);
        }
        let callers = self.outline.callers(served.row.item());
        let Some(query) = self.query else {
            let (facts, call) = reader.result(entry.node, entry.place, subject, callers)?;
            let mut parts = RowParts::plain(&facts, look, self.cwd);
            parts.call = call;
            served.push_json(out, parts, self.guides);
            let result_of = facts.tool_call_id.as_deref();
            return born::push(branch, self.born, out, entry.id, result_of);
        };
        let (facts, call) = if entry.role == Role::ToolResult {
            let (facts, call) = reader.result(entry.node, entry.place, subject, callers)?;
            (facts, call.cloned())
        } else {
            let facts = reader.facts(entry.node, entry.place, subject)?;
            (facts.into_owned(), None)
        };
        let found = find::excerpt(reader, query, entry, call.as_ref())?;
        let mut parts = RowParts::plain(&facts, look, self.cwd);
        parts.call = call.as_ref();
        parts.found = found.as_ref();
        served.push_json(out, parts, self.guides);
        let result_of = facts.tool_call_id.as_deref();
        born::push(branch, self.born, out, entry.id, result_of)
    }
}

/// The usual size of a row, in bytes.
const ROW_BYTES: usize = 512;

/// The guides of rows, for a client that has `columns` columns for them.
fn guides(render: wire::TreeRender, columns: Option<u64>) -> Guides {
    let columns = columns.map(|columns| usize::try_from(columns).unwrap_or(usize::MAX));
    Guides::new(render, columns)
}
