//! Reading a session: leaf, entries, paths, labels, context, branches (protocol.md §3).
//!
//! The session's guard is held while the entries are chosen. Bodies are read without the guard, and on a blocking
//! thread if there are many.

use super::entries::{EntryFilter, check_fits, check_known};
use super::shed;
use crate::daemon::convert::diagnostics;
use crate::daemon::convert::member::{push_array, push_id_member, push_number_member};
use crate::daemon::convert::stored::raw;
use crate::daemon::reading::INLINE_ENTRIES;
use crate::daemon::rows::RowReader;
use crate::rpc::reply::{Prepared, page_bytes};
use crate::rpc::session_read::{Read, ReadAnswer, Work};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use treelined_core::context::{self, Context, Kept, PathStep};
use treelined_core::entry::Role;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;
use treelined_core::timestamp;
use treelined_core::tree::Archived;
use treelined_core::tree::branches::{self, Branch};
pub(crate) use treelined_core::tree::{FilePlace, Flags, Node, Tree};
use treelined_core::view::{Outline, Scope, Subject};
use treelined_files::log::body::{Bodies, Fetch};
use treelined_files::parallel::{CHUNK, in_order};
use treelined_files::session::SessionState;
use treelined_pages::renderers::Renderers;
use treelined_wire as wire;

/// The least bytes of a row of `list_branches` without its id: the names of the members.
const BRANCH_BYTES: usize = 100;

pub(in crate::rpc) fn get_leaf(
    read: &Read<'_>,
    _: &wire::GetLeafParams,
) -> Result<wire::GetLeafResult> {
    check_fits(read, read.leaf().as_slice(), read.frame_bytes())?;
    let entry = read.leaf().map(|leaf| read.entry(leaf)).transpose()?;
    Ok(wire::GetLeafResult {
        leaf_id: read.leaf_id().map(str::to_owned),
        seq: read.seq(),
        entry: entry.as_deref().map(raw),
        diagnostics: diagnostics::of_place(read).collect(),
    })
}

pub(in crate::rpc) fn get_label(
    read: &Read<'_>,
    params: &wire::GetLabelParams,
) -> Result<wire::GetLabelResult> {
    let node = read.find(&params.entry_id)?;
    let label = read.tree.label(node);
    let at = label.and_then(|label| read.tree.timestamp(label.entry));
    Ok(wire::GetLabelResult {
        label: label.map(|label| label.text.to_string()),
        label_timestamp: at.map(timestamp::format),
    })
}

pub(in crate::rpc) fn get_children(
    read: &Read<'_>,
    params: &wire::GetChildrenParams,
) -> Result<ReadAnswer<Prepared<wire::GetChildrenResult>>> {
    let parent = read.find_position(params.entry_id.as_deref())?;
    entries_of(read, read.tree.children(parent))
}

pub(in crate::rpc) fn get_path(
    read: &Read<'_>,
    params: &wire::GetPathParams,
) -> Result<ReadAnswer<Prepared<wire::GetPathResult>>> {
    let end = match &params.entry_id {
        Some(id) => Some(read.find(id)?),
        None => read.leaf(),
    };
    let path = below(read, read.tree.path(end), params.since.as_deref())?;
    if params.limit.is_none() && params.max_bytes.is_none() {
        return entries_of(read, path);
    }
    let page = Page::of(read, path.into_iter(), params.limit, params.max_bytes)?;
    let size = page.size;
    let write = move || {
        let mut out = b"{".to_vec();
        let next = page.push(&mut out)?;
        push_next(&mut out, next.as_deref());
        out.push(b'}');
        Ok(Prepared::bytes(out))
    };
    Ok(ReadAnswer::later(size, write))
}

/// The nodes of a path below the entry `since`. Without `since`, the whole path.
pub(super) fn below(read: &Read<'_>, path: Vec<Node>, since: Option<&str>) -> Result<Vec<Node>> {
    let Some(since) = since else {
        return Ok(path);
    };
    let node = read.find(since)?;
    let mut path = path.into_iter();
    match path.by_ref().any(|above| above == node) {
        true => Ok(path.collect()),
        false => Err(Error::invalid_params("since", "is not on the path")),
    }
}

/// `{"entries":[…]}`.
fn entries_of<R: 'static>(read: &Read<'_>, nodes: Vec<Node>) -> Result<ReadAnswer<Prepared<R>>> {
    check_fits(read, &nodes, read.frame_bytes())?;
    let size = read.stored_bytes(nodes.iter().copied());
    let (bodies, fetches) = (read.bodies(), read.fetch(nodes)?);
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
                // Removes the last comma.
                last.pop();
            }
            last.extend_from_slice(b"]}");
        }
        Ok(match pieces.len() {
            0..=2 => Prepared::bytes(pieces.concat()),
            _ => Prepared::pieces(pieces),
        })
    };
    Ok(ReadAnswer::later(size, write))
}

pub(in crate::rpc) fn get_entries(
    read: &Read<'_>,
    params: &wire::GetEntriesParams,
) -> Result<ReadAnswer<Prepared<wire::GetEntriesResult>>> {
    let since = params
        .since
        .as_deref()
        .map(|id| read.find(id))
        .transpose()?;
    let first = since.map_or(0, |since| since.number() + 1);
    if let Some(known) = params.known {
        check_known(read, params, first, known)?;
    }
    if let Some(filter) = EntryFilter::of(params)? {
        return filter.page(read, params, first);
    }
    let after = read.tree.entries_from(first);
    let page = Page::of(read, after, params.limit, params.max_bytes)?;
    let leaf_id = read.leaf_id().map(str::to_owned);
    let (seq, size) = (read.seq(), page.size);
    let write = move || {
        let mut out = b"{".to_vec();
        let next = page.push(&mut out)?;
        push_id_member(&mut out, "leafId", leaf_id.as_deref());
        push_number_member(&mut out, "seq", seq);
        push_next(&mut out, next.as_deref());
        out.push(b'}');
        Ok(Prepared::bytes(out))
    };
    Ok(ReadAnswer::later(size, write))
}

/// The entries of a page, to be read without the session.
struct Page {
    ids: Vec<String>,
    bodies: Bodies,
    fetches: Vec<Fetch>,
    /// The bytes of the entries in the file.
    size: u64,
    max_bytes: usize,
    /// Whether more entries follow the page.
    has_more: bool,
}

impl Page {
    /// A page of entries, with at least one entry if there are any. Stored bytes limit the page, since the written
    /// entries can only be larger.
    fn of(
        read: &Read<'_>,
        entries: impl Iterator<Item = Node>,
        limit: Option<u64>,
        max_bytes: Option<u64>,
    ) -> Result<Self> {
        let limit = limit.map_or(usize::MAX, |limit| (limit as usize).max(1));
        let fits = page_bytes(read.frame_bytes());
        let max_bytes = max_bytes.map_or(fits, |max| (max as usize).min(fits));
        let mut entries = entries.peekable();
        let mut nodes = Vec::new();
        let mut left = max_bytes as u64;
        while let Some(node) = entries.next_if(|_| nodes.len() < limit) {
            nodes.push(node);
            let size = u64::from(read.tree.place(node).len) + 1;
            if size > left {
                break;
            }
            left -= size;
        }
        let ids = nodes.iter().map(|node| read.tree.id(*node).to_owned());
        Ok(Self {
            ids: ids.collect(),
            bodies: read.bodies(),
            size: read.stored_bytes(nodes.iter().copied()),
            fetches: read.fetch(nodes)?,
            max_bytes,
            has_more: entries.next().is_some(),
        })
    }

    /// Writes the member `entries`. Returns the id of the last written entry if more entries follow.
    fn push(&self, out: &mut Vec<u8>) -> Result<Option<String>> {
        out.extend_from_slice(b"\"entries\":");
        let written = push_entries(out, &self.bodies, &self.fetches, self.max_bytes)?;
        let last = self.ids.get(written.wrapping_sub(1));
        let has_more = self.has_more || written < self.ids.len();
        Ok(last.filter(|_| has_more).cloned())
    }
}

fn push_next(out: &mut Vec<u8>, next: Option<&str>) {
    if let Some(next) = next {
        push_id_member(out, "nextCursor", Some(next));
    }
}

/// Writes an array of entries that ends at `max_bytes`, but has at least one entry. Returns the number of entries.
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

pub(in crate::rpc) fn get_context(
    read: &Read<'_>,
    params: &wire::GetContextParams,
) -> Result<ReadAnswer<Prepared<wire::GetContextResult>>> {
    let max_bytes = read.frame_bytes();
    let leaf = match &params.leaf_id {
        wire::GivenPosition::Leaf => read.leaf(),
        wire::GivenPosition::Empty => None,
        wire::GivenPosition::At(id) => read.find_position(Some(id))?,
    };
    let path = read.steps(leaf);
    let kept = read.kept(&path)?;
    let format = match params.format.unwrap_or_default() {
        wire::ContextFormat::Agent => context::Format::Agent,
        wire::ContextFormat::Llm => context::Format::Llm,
        wire::ContextFormat::Entries => {
            return context_entries(read, &path, kept, max_bytes);
        }
    };
    let entries = ContextEntries::new(read, kept, &path)?;
    let size = entries.size();
    let build = move || {
        let mut body = |node| entries.entry(node);
        let context = context::build_within(&path, kept, format, max_bytes, &mut body)?;
        Ok(Prepared::bytes(context_json(context)))
    };
    // The messages and their JSON are in memory together.
    let makes = size.saturating_mul(2);
    Ok(ReadAnswer::working(Work { reads: size, makes }, build))
}

/// The entries from which the context is made, as they are stored (`format:"entries"`).
fn context_entries(
    read: &Read<'_>,
    path: &[PathStep],
    kept: Kept,
    max_bytes: usize,
) -> Result<ReadAnswer<Prepared<wire::GetContextResult>>> {
    let settings = context::settings(path, kept, &mut |node| read.entry(node))?;
    let nodes: Vec<Node> = context::entries(path, kept).map(|step| step.node).collect();
    check_fits(read, &nodes, max_bytes)?;
    let size = read.stored_bytes(nodes.iter().copied());
    let ids: Vec<Vec<u8>> = nodes
        .iter()
        .map(|node| treelined_core::json::quoted(read.tree.id(*node)))
        .collect();
    let (bodies, fetches) = (read.bodies(), read.fetch(nodes)?);
    let write = move || {
        let mut out = b"{\"entries\":".to_vec();
        push_entries(&mut out, &bodies, &fetches, usize::MAX)?;
        push_settings(&mut out, &settings.thinking_level, settings.model.as_ref());
        out.extend_from_slice(b",\"entryIds\":");
        push_array(&mut out, ids);
        out.push(b'}');
        Ok(Prepared::bytes(out))
    };
    Ok(ReadAnswer::later(size, write))
}

/// The entries that a context may need. They are read without the session's guard.
pub(super) struct ContextEntries {
    bodies: Bodies,
    /// Sorted by node, ascending.
    fetches: Vec<Fetch>,
}

impl ContextEntries {
    pub(super) fn new(state: &SessionState, kept: Kept, path: &[PathStep]) -> Result<Self> {
        let mut fetches = state.fetch(kept.nodes(path))?;
        // The entries are already sorted unless a parent is after its child in the file.
        fetches.sort_unstable_by_key(|fetch| fetch.node);
        Ok(Self {
            bodies: state.bodies(),
            fetches,
        })
    }

    /// The stored bytes of all entries.
    fn size(&self) -> u64 {
        let sizes = self.fetches.iter().map(|fetch| fetch.place.len);
        sizes.map(u64::from).sum()
    }

    /// The entry as clients get it.
    pub(super) fn entry(&self, node: Node) -> Result<Vec<u8>> {
        let at = self.fetches.binary_search_by_key(&node, |fetch| fetch.node);
        match at.ok().and_then(|at| self.fetches.get(at)) {
            Some(fetch) => self.bodies.entry(fetch),
            None => Err(Error::new(Kind::InternalError, "an entry off the context")),
        }
    }
}

fn context_json(context: Context) -> Vec<u8> {
    let mut out = b"{\"messages\":".to_vec();
    // Each message is dropped when it is written, so that its memory is free early.
    push_array(&mut out, context.messages);
    push_settings(&mut out, &context.thinking_level, context.model.as_ref());
    out.extend_from_slice(b",\"entryIds\":");
    let ids = context
        .entry_ids
        .iter()
        .map(|id| treelined_core::json::quoted_or_null(id.as_deref()));
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

pub(in crate::rpc) fn list_branches(
    read: &Read<'_>,
    params: &wire::ListBranchesParams,
) -> Result<ReadAnswer<wire::ListBranchesResult>> {
    if !read.may_block() && read.tree.node_count() > INLINE_ENTRIES {
        return Ok(ReadAnswer::OnBlockingThread);
    }
    let (tree, bodies) = (&read.tree, read.bodies());
    let mut found = branches::list(tree);
    let archived = tree.archived();
    let shows = params.archived.unwrap_or_default();
    found.retain(|branch| shows || !archived.hides(branch.tip));
    let count = Some(archived.count() as u64).filter(|count| *count > 0);
    let (shed_branches, shed) = shed::listed(read, shows)?;
    check_branches_fit(tree, &found, read.frame_bytes())?;
    let rows: Vec<BranchRow> = found
        .into_iter()
        .map(|row| BranchRow::new(tree, row, &archived))
        .collect();
    // If a tip is a tool result, its row shows the call, as in the tree.
    let some_are_results = rows.iter().any(BranchRow::is_result);
    let outline = some_are_results.then(|| {
        let scope = Scope {
            archived: shows,
            ..Scope::default()
        };
        Outline::new(tree, scope)
    });
    let renderers = read.call.daemon.offers.renderers();
    let cwd = read.cwd().to_owned();
    // The entries of the tips are read without the session.
    Ok(ReadAnswer::later(0, move || {
        let items = outline
            .iter()
            .flat_map(|outline| outline.items().iter().enumerate());
        let items: HashMap<Node, usize> = items.map(|(item, of)| (of.node, item)).collect();
        let mut reader = RowReader::new(&bodies);
        let mut branches = Vec::with_capacity(rows.len());
        for row in rows {
            let at = outline.as_ref().zip(items.get(&row.tip).copied());
            branches.push(row.with_preview(&mut reader, at, &renderers, &cwd)?);
        }
        Ok(wire::ListBranchesResult {
            branches,
            archived_branches: count,
            shed_branches,
            shed,
        })
    }))
}

/// Fails if the rows exceed the client's limit. The least size of all rows is known before the first row is made.
fn check_branches_fit(tree: &Tree, found: &[Branch], limit: usize) -> Result<()> {
    let least = found
        .iter()
        .map(|row| tree.id(row.tip).len() + BRANCH_BYTES);
    let least: usize = least.sum();
    if least <= limit {
        return Ok(());
    }
    let message = format!(
        "the branches have at least {least} bytes, the client takes {limit}: \
         read the tree in pages with get_tree"
    );
    Err(Error::new(Kind::ResponseTooLarge, message))
}

/// A row of `list_branches` without its preview.
struct BranchRow {
    row: wire::Branch,
    tip: Node,
    place: FilePlace,
    subject: Subject,
    /// The user messages after the fork. Empty if the branch has a name or a label.
    prompts: Vec<(Node, FilePlace, Subject)>,
}

impl BranchRow {
    fn new(tree: &Tree, branch: Branch, archived: &Archived) -> Self {
        let id = |node: Node| tree.id(node).to_owned();
        let subject = |node: Node| Subject {
            kind: tree.kind(node),
            role: tree.role(node),
            flags: tree.flags(node),
            calls: false,
        };
        let label = tree.label(branch.tip).map(|label| label.text.to_string());
        let mut prompts = branch.prompts;
        let is_heads = |named: Node| tree.skip_bookkeeping(tree.parent(named)) == branch.fork;
        let group = tree.group(branch.tip).filter(|(named, _)| is_heads(*named));
        let given_name = branch.named_by.and_then(|head| tree.branch_name(head));
        prompts.retain(|_| label.is_none() && given_name.is_none());
        let place = |node: Node| (node, tree.place(node), subject(node));
        Self {
            prompts: prompts.into_iter().map(place).collect(),
            row: wire::Branch {
                tip_id: id(branch.tip),
                name: String::new(),
                given_name: given_name.map(str::to_owned),
                fork_id: branch.fork.map(id),
                label,
                message_count: branch.message_count,
                preview: String::new(),
                icon: None,
                style: None,
                last_activity: timestamp::format(tree.timestamp(branch.tip).unwrap_or_default()),
                is_active: branch.is_active,
                archived: archived.hides(branch.tip).then_some(true),
                group: group.map(|(_, group)| group.to_owned()),
            },
            tip: branch.tip,
            place: tree.place(branch.tip),
            subject: subject(branch.tip),
        }
    }

    fn is_result(&self) -> bool {
        self.subject.role == Role::ToolResult
    }

    /// The row of a tip. `at` is the item of the tip.
    fn with_preview(
        self,
        reader: &mut RowReader<'_>,
        at: Option<(&Outline, usize)>,
        renderers: &Renderers,
        cwd: &str,
    ) -> Result<wire::Branch> {
        let at = at.filter(|_| self.is_result());
        let Self {
            row,
            tip,
            place,
            subject,
            prompts,
        } = self;
        let prompt = first_prompt(reader, &prompts)?;
        let look = reader.look(place, subject, renderers)?;
        let preview = match (at, look.preview) {
            (_, Some(preview)) => preview,
            (Some((outline, item)), None) => {
                let callers = outline.callers(item);
                let (facts, call) = reader.result(tip, place, subject, callers)?;
                let call = call.cloned().or_else(|| facts.own_call());
                facts.preview_of_result(call.as_ref(), subject.flags.has(Flags::ERROR), None, cwd)
            }
            (None, None) => reader.facts(tip, place, subject)?.preview.into_owned(),
        };
        let name = row.given_name.clone();
        let name = name.or_else(|| row.label.clone()).or(prompt);
        Ok(wire::Branch {
            name: name.unwrap_or_else(|| preview.clone()),
            preview,
            icon: look.icon,
            style: look.style,
            ..row
        })
    }
}

/// The first message of a person among these messages; `None` if tools wrote all of them.
fn first_prompt(
    reader: &mut RowReader<'_>,
    prompts: &[(Node, FilePlace, Subject)],
) -> Result<Option<String>> {
    for (node, place, subject) in prompts {
        let facts = reader.facts(*node, *place, *subject)?;
        if let Some(prompt) = facts.prompt() {
            return Ok(Some(prompt.to_owned()));
        }
    }
    Ok(None)
}
