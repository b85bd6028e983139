//! Reading a session: leaf, entries, paths, labels, context, branches, statistics (protocol.md §3).
//!
//! A turn is held to find out what to read; bodies are read without it, and on a thread of their own
//! where there are many.

use super::reply::{Reply, page_bytes};
use crate::blocking::blocking;
use crate::context::{self, Context, Kept, Step};
use crate::daemon::call::Call;
use crate::daemon::convert::{self, push_array, push_id_member, push_number_member};
use crate::daemon::open_session::SessionGuard;
use crate::daemon::rows::RowReader;
use crate::entry::Role;
use crate::error::{Error, Kind, Result};
use crate::json;
use crate::lock::lock;
use crate::log::body::{Bodies, Fetch};
use crate::parallel::{CHUNK, in_order};
use crate::session::SessionState;
use crate::stats::Stats;
use crate::timestamp;
use crate::tree::branches;
use crate::tree::{Flags, Node};
use crate::view::{Outline, Scope, Subject};
use crate::wire;
use std::collections::HashMap;
use std::future::Future;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Bodies larger than this together are not read on the thread that reads requests, in bytes.
pub(super) const INLINE_BYTES: u64 = 256 << 10;
/// More entries than this are not walked on the thread that reads requests.
pub(super) const INLINE_ENTRIES: usize = 4096;
/// What a row of `list_branches` has at least besides its id, in bytes: the names of its members.
const BRANCH_BYTES: usize = 100;

pub(super) async fn get_leaf(call: Arc<Call>, params: wire::GetLeafParams) -> Result<Reply> {
    let (open, turn) = call.fresh(&params).await?;
    check_fits(
        &turn,
        turn.leaf().as_slice(),
        call.connection.client_frame_bytes(),
    )?;
    let entry = turn.leaf().map(|leaf| turn.entry(leaf)).transpose()?;
    Reply::of(&wire::GetLeafResult {
        leaf_id: turn.leaf_id().map(str::to_owned),
        seq: open.seq(&call.connection),
        entry: entry.as_deref().map(convert::raw),
    })
}

pub(super) async fn get_entry(call: Arc<Call>, params: wire::GetEntryParams) -> Result<Reply> {
    let (_, turn) = call.fresh(&params).await?;
    let node = turn.find(&params.entry_id)?;
    check_fits(&turn, &[node], call.connection.client_frame_bytes())?;
    Reply::of(&wire::GetEntryResult {
        entry: convert::raw(&turn.entry(node)?),
        flags: turn.tree.flags(node).names().map(str::to_owned).collect(),
    })
}

pub(super) async fn get_label(call: Arc<Call>, params: wire::GetLabelParams) -> Result<Reply> {
    let (_, turn) = call.fresh(&params).await?;
    let node = turn.find(&params.entry_id)?;
    let label = turn.tree.label(node);
    let at = label.and_then(|label| turn.tree.timestamp(label.entry));
    Reply::of(&wire::GetLabelResult {
        label: label.map(|label| label.text.to_string()),
        label_timestamp: at.map(timestamp::format),
    })
}

/// Reads, and once more if the file turns out not to hold what was read from it before: by then it has
/// been read anew, so that one entry edited in place does not fail an answer made of many.
pub(super) async fn read_again<T, F>(read: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    match read().await {
        Err(error) if error.kind == Kind::SessionReplaced => read().await,
        done => done,
    }
}

pub(super) async fn get_children(
    call: Arc<Call>,
    params: wire::GetChildrenParams,
) -> Result<Reply> {
    read_again(|| async {
        let (_, turn) = call.fresh(&params).await?;
        let parent = turn.find_position(params.entry_id.as_deref())?;
        let children = turn.tree.children(parent);
        entries_reply(turn, children, call.connection.client_frame_bytes()).await
    })
    .await
}

pub(super) async fn get_path(call: Arc<Call>, params: wire::GetPathParams) -> Result<Reply> {
    read_again(|| async {
        let (_, turn) = call.fresh(&params).await?;
        let end = match &params.entry_id {
            Some(id) => Some(turn.find(id)?),
            None => turn.leaf(),
        };
        let path = turn.tree.path(end);
        entries_reply(turn, path, call.connection.client_frame_bytes()).await
    })
    .await
}

/// Fails with `responseTooLarge` if these entries have more than `limit` bytes together: their sizes
/// are known, so that none is read for an answer that cannot be given.
pub(super) fn check_fits(core: &SessionState, nodes: &[Node], limit: usize) -> Result<()> {
    let bodies = core.bodies();
    // One that is edited on its way out may become shorter.
    let least = |node: &Node| {
        let size = u64::from(core.tree.place(*node).len);
        match bodies.is_verbatim(&core.tree, *node) {
            true => size + 1,
            false => size / 2,
        }
    };
    let size: u64 = nodes.iter().map(least).sum();
    match size > limit as u64 {
        true => Err(too_large(size, limit)),
        false => Ok(()),
    }
}

fn too_large(size: u64, limit: usize) -> Error {
    Error::new(
        Kind::ResponseTooLarge,
        format!(
            "the entries have {size} bytes, the client takes {limit}: \
             read them in pages with get_entries"
        ),
    )
}

/// `{"entries":[…]}`.
async fn entries_reply(turn: SessionGuard, nodes: Vec<Node>, limit: usize) -> Result<Reply> {
    check_fits(&turn, &nodes, limit)?;
    let size = size_of(&turn, &nodes);
    let (bodies, fetches) = (turn.bodies(), turn.fetch(nodes)?);
    drop(turn);
    let write = move || {
        let part = |range: Range<usize>| {
            let fetches = fetches.get(range).unwrap_or_default();
            let sizes = fetches.iter().map(|fetch| fetch.place.len as usize + 1);
            let mut out = Vec::with_capacity(sizes.sum());
            let mut reader = bodies.reader();
            for fetch in fetches {
                reader.push_entry(&mut out, fetch)?;
                out.push(b',');
            }
            Ok(out)
        };
        let mut pieces = vec![b"{\"entries\":[".to_vec()];
        in_order(0..fetches.len(), CHUNK, part, |part| {
            pieces.push(part);
            ControlFlow::Continue(())
        })?;
        if let Some(last) = pieces.last_mut() {
            if !fetches.is_empty() {
                // The last comma.
                last.pop();
            }
            last.extend_from_slice(b"]}");
        }
        Ok(match pieces.len() {
            0..=2 => Reply::Bytes(pieces.concat()),
            _ => Reply::Pieces(pieces),
        })
    };
    inline_or_blocking(size, write).await
}

pub(super) async fn get_entries(call: Arc<Call>, params: wire::GetEntriesParams) -> Result<Reply> {
    read_again(|| entries(&call, &params)).await
}

async fn entries(call: &Call, params: &wire::GetEntriesParams) -> Result<Reply> {
    let (open, turn) = call.fresh(params).await?;
    let since = params
        .since
        .as_deref()
        .map(|id| turn.find(id))
        .transpose()?;
    let limit = params
        .limit
        .map_or(usize::MAX, |limit| (limit as usize).max(1));
    let fits = page_bytes(call.connection.client_frame_bytes());
    let max_bytes = params
        .max_bytes
        .map_or(fits, |max| (max as usize).min(fits));
    let (nodes, more) = page(&turn, since, limit, max_bytes as u64);
    let leaf_id = turn.leaf_id().map(str::to_owned);
    let (seq, size) = (open.seq(&call.connection), size_of(&turn, &nodes));
    let ids: Vec<String> = nodes
        .iter()
        .map(|node| turn.tree.id(*node).to_owned())
        .collect();
    let (bodies, fetches) = (turn.bodies(), turn.fetch(nodes)?);
    drop(turn);
    let write = move || {
        let mut out = b"{\"entries\":".to_vec();
        let written = push_entries(&mut out, &bodies, &fetches, max_bytes)?;
        push_id_member(&mut out, "leafId", leaf_id.as_deref());
        push_number_member(&mut out, "seq", seq);
        if let Some(last) = ids.get(written.wrapping_sub(1))
            && (more || written < ids.len())
        {
            push_id_member(&mut out, "nextCursor", Some(last));
        }
        out.push(b'}');
        Ok(Reply::Bytes(out))
    };
    inline_or_blocking(size, write).await
}

/// The entries of a page, one at least if there are any, and whether others follow. A page holds no
/// more than its stored bytes: what is written can only be larger.
fn page(
    core: &SessionState,
    since: Option<Node>,
    limit: usize,
    max_bytes: u64,
) -> (Vec<Node>, bool) {
    let first = since.map_or(0, |since| since.number() + 1);
    let mut after = core
        .tree
        .entries_from(first)
        .take(limit.saturating_add(1))
        .peekable();
    let mut nodes = Vec::new();
    let mut left = max_bytes;
    while let Some(node) = after.next_if(|_| nodes.len() < limit) {
        nodes.push(node);
        let size = u64::from(core.tree.place(node).len) + 1;
        if size > left {
            break;
        }
        left -= size;
    }
    (nodes, after.next().is_some())
}

/// Writes an array of entries while it has less than `max_bytes`, but one at least; returns how
/// many.
fn push_entries(
    out: &mut Vec<u8>,
    bodies: &Bodies,
    fetches: &[Fetch],
    max_bytes: usize,
) -> Result<usize> {
    let start = out.len();
    out.push(b'[');
    let mut reader = bodies.reader();
    let mut written = 0;
    for fetch in fetches {
        let before = out.len();
        if written > 0 {
            out.push(b',');
        }
        reader.push_entry(out, fetch)?;
        if written > 0 && out.len() - start >= max_bytes {
            out.truncate(before);
            break;
        }
        written += 1;
    }
    out.push(b']');
    Ok(written)
}

pub(super) async fn get_context(call: Arc<Call>, params: wire::GetContextParams) -> Result<Reply> {
    read_again(|| context_at(&call, &params)).await
}

async fn context_at(call: &Call, params: &wire::GetContextParams) -> Result<Reply> {
    let (_, turn) = call.fresh(params).await?;
    let max_bytes = call.connection.client_frame_bytes();
    let leaf = match &params.leaf_id {
        wire::GivenPosition::Leaf => turn.leaf(),
        wire::GivenPosition::Empty => None,
        wire::GivenPosition::At(id) => turn.find_position(Some(id))?,
    };
    let path = steps(&turn, leaf);
    let kept = kept(&turn, &path)?;
    let format = match params.format.unwrap_or_default() {
        wire::ContextFormat::Agent => context::Format::Agent,
        wire::ContextFormat::Llm => context::Format::Llm,
        wire::ContextFormat::Entries => {
            return context_entries(turn, &path, kept, max_bytes).await;
        }
    };
    let entries = ContextEntries::new(&turn, kept, &path)?;
    drop(turn);
    let size = entries.size();
    let build = move || {
        let mut body = |node| entries.entry(node);
        let context = context::build_within(&path, kept, format, max_bytes, &mut body)?;
        Ok(Reply::Bytes(context_json(context)))
    };
    inline_or_blocking(size, build).await
}

/// The entries that the context is made of, as stored (`format:"entries"`).
async fn context_entries(
    turn: SessionGuard,
    path: &[Step],
    kept: Kept,
    max_bytes: usize,
) -> Result<Reply> {
    let settings = context::settings(path, kept, &mut |node| turn.entry(node))?;
    let nodes: Vec<Node> = context::entries(path, kept).map(|step| step.node).collect();
    check_fits(&turn, &nodes, max_bytes)?;
    let size = size_of(&turn, &nodes);
    let ids: Vec<Vec<u8>> = nodes
        .iter()
        .map(|node| crate::json::quoted(turn.tree.id(*node)))
        .collect();
    let (bodies, fetches) = (turn.bodies(), turn.fetch(nodes)?);
    drop(turn);
    let write = move || {
        let mut out = b"{\"entries\":".to_vec();
        push_entries(&mut out, &bodies, &fetches, usize::MAX)?;
        push_settings(&mut out, &settings.thinking_level, settings.model.as_ref());
        out.extend_from_slice(b",\"entryIds\":");
        push_array(&mut out, ids);
        out.push(b'}');
        Ok(Reply::Bytes(out))
    };
    inline_or_blocking(size, write).await
}

/// Which part of a path counts.
pub(super) fn kept(core: &SessionState, path: &[Step]) -> Result<Kept> {
    Kept::of(path, |node| core.entry(node), |id| core.tree.find(id))
}

/// What a context may need, to be read without the session's turn.
pub(super) struct ContextEntries {
    bodies: Bodies,
    /// By node.
    fetches: Vec<Fetch>,
}

impl ContextEntries {
    pub(super) fn new(core: &SessionState, kept: Kept, path: &[Step]) -> Result<Self> {
        let mut fetches = core.fetch(kept.nodes(path))?;
        // Sorted already, unless a parent stands behind its child.
        fetches.sort_unstable_by_key(|fetch| fetch.node);
        Ok(Self {
            bodies: core.bodies(),
            fetches,
        })
    }

    /// As stored, in bytes.
    fn size(&self) -> u64 {
        let sizes = self.fetches.iter().map(|fetch| fetch.place.len);
        sizes.map(u64::from).sum()
    }

    /// The entry as clients get it.
    fn entry(&self, node: Node) -> Result<Vec<u8>> {
        let at = self.fetches.binary_search_by_key(&node, |fetch| fetch.node);
        match at.ok().and_then(|at| self.fetches.get(at)) {
            Some(fetch) => self.bodies.entry(fetch),
            None => Err(Error::new(Kind::InternalError, "an entry off the context")),
        }
    }
}

/// The path to a position, as the context is made from it.
pub(super) fn steps(core: &SessionState, leaf: Option<Node>) -> Vec<Step> {
    let path = core.tree.path(leaf).into_iter();
    path.map(|node| step(core, node)).collect()
}

pub(super) fn step(core: &SessionState, node: Node) -> Step {
    Step {
        node,
        kind: core.tree.kind(node),
        role: core.tree.role(node),
    }
}

fn context_json(context: Context) -> Vec<u8> {
    let mut out = b"{\"messages\":".to_vec();
    // Each is let go as soon as it is written.
    push_array(&mut out, context.messages);
    push_settings(&mut out, &context.thinking_level, context.model.as_ref());
    out.extend_from_slice(b",\"entryIds\":");
    let ids = context.entry_ids.iter().map(|id| crate::json::quoted(id));
    push_array(&mut out, ids);
    out.push(b'}');
    out
}

/// The members `thinkingLevel` and `model`.
fn push_settings(out: &mut Vec<u8>, thinking_level: &str, model: Option<&(String, String)>) {
    push_id_member(out, "thinkingLevel", Some(thinking_level));
    match model {
        Some((provider, model_id)) => {
            out.extend_from_slice(b",\"model\":{\"provider\":");
            json::push_string(out, provider);
            push_id_member(out, "modelId", Some(model_id));
            out.push(b'}');
        }
        None => out.extend_from_slice(b",\"model\":null"),
    }
}

pub(super) async fn get_stats(call: Arc<Call>, params: wire::GetStatsParams) -> Result<Reply> {
    read_again(|| statistics(&call, &params)).await
}

async fn statistics(call: &Call, params: &wire::GetStatsParams) -> Result<Reply> {
    let (open, turn) = call.fresh(params).await?;
    let mut counted = lock(&open.last_count).for_tree(turn.tree.origin());
    let nodes: Vec<Node> = turn.tree.entries().skip(counted.count).collect();
    let size = size_of(&turn, &nodes);
    let path = steps(&turn, turn.leaf());
    let kept = kept(&turn, &path)?;
    let entries = ContextEntries::new(&turn, kept, &path)?;
    let (bodies, fetches) = (turn.bodies(), turn.fetch(nodes)?);
    drop(turn);
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
            // In the same parts always, so that the sum of costs is the same always.
            if count == CHUNK && counted.fits_budget() {
                *lock(&open.last_count) = counted.clone();
            }
            ControlFlow::Continue(())
        })?;
        let stats = counted.stats;
        Reply::of(&wire::GetStatsResult {
            messages: stats.messages,
            tool_calls: stats.tool_calls,
            tokens: wire::Tokens {
                input: stats.tokens.input,
                output: stats.tokens.output,
                cache_read: stats.tokens.cache_read,
                cache_write: stats.tokens.cache_write,
            },
            cost: stats.cost,
            context_tokens,
        })
    };
    inline_or_blocking(size, count).await
}

pub(super) async fn list_branches(
    call: Arc<Call>,
    params: wire::ListBranchesParams,
) -> Result<Reply> {
    read_again(|| branch_rows(&call, &params)).await
}

async fn branch_rows(call: &Call, params: &wire::ListBranchesParams) -> Result<Reply> {
    let (_, turn) = call.fresh(params).await?;
    let limit = call.connection.client_frame_bytes();
    let long = turn.tree.node_count() > INLINE_ENTRIES;
    let list = move || {
        let found = branches::list(&turn.tree);
        let bodies = turn.bodies();
        let tree = &turn.tree;
        let id = |node: Node| tree.id(node).to_owned();
        // What the rows have at least is known before one of them is made.
        let least = found
            .iter()
            .map(|row| tree.id(row.tip).len() + BRANCH_BYTES);
        let least: usize = least.sum();
        if least > limit {
            let message = format!(
                "the branches have at least {least} bytes, the client takes {limit}: \
                 read the tree in pages with get_tree"
            );
            return Err(Error::new(Kind::ResponseTooLarge, message));
        }
        let rows = found.into_iter().map(|branch| {
            let row = wire::Branch {
                tip_id: id(branch.tip),
                fork_id: branch.fork.map(id),
                label: tree.label(branch.tip).map(|label| label.text.to_string()),
                message_count: branch.message_count,
                preview: String::new(),
                last_activity: timestamp::format(tree.timestamp(branch.tip).unwrap_or_default()),
                is_active: branch.is_active,
            };
            let subject = Subject {
                kind: tree.kind(branch.tip),
                role: tree.role(branch.tip),
                flags: tree.flags(branch.tip),
                calls: false,
            };
            (row, branch.tip, tree.place(branch.tip), subject)
        });
        let rows: Vec<_> = rows.collect();
        let is_result = |subject: &Subject| subject.role == Role::ToolResult;
        let some_are_results = rows.iter().any(|(.., subject)| is_result(subject));
        // As in the tree, such a tip is shown with the call that it answers.
        let outline = some_are_results.then(|| Outline::new(tree, Scope::default()));
        let items = outline
            .iter()
            .flat_map(|outline| outline.items().iter().enumerate());
        let items: HashMap<Node, usize> = items.map(|(item, of)| (of.node, item)).collect();
        drop(turn);
        let mut reader = RowReader::new(&bodies);
        let mut branches = Vec::with_capacity(rows.len());
        for (mut row, tip, place, subject) in rows {
            row.preview = match (&outline, items.get(&tip)) {
                (Some(outline), Some(item)) if is_result(&subject) => {
                    let callers = outline.callers(*item);
                    let (facts, call) = reader.result(tip, place, subject, callers)?;
                    let call = call.cloned().or_else(|| facts.own_call());
                    facts.preview_of_result(call.as_ref(), subject.flags.has(Flags::ERROR), None)
                }
                _ => reader.facts(tip, place, subject)?.preview.into_owned(),
            };
            branches.push(row);
        }
        Reply::of(&wire::ListBranchesResult { branches })
    };
    if long { blocking(list).await } else { list() }
}

pub(super) fn size_of(core: &SessionState, nodes: &[Node]) -> u64 {
    nodes
        .iter()
        .map(|node| u64::from(core.tree.place(*node).len))
        .sum()
}

pub(super) fn size_of_steps(core: &SessionState, steps: &[Step]) -> u64 {
    steps
        .iter()
        .map(|step| u64::from(core.tree.place(step.node).len))
        .sum()
}

/// Large reads run on a blocking thread, not on the reader thread.
pub(super) async fn inline_or_blocking<T: Send + 'static>(
    size: u64,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if size > INLINE_BYTES {
        blocking(work).await
    } else {
        work()
    }
}
