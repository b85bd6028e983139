//! `compare_branches` and `get_stats` (protocol.md §15.4, §15.5).

use super::read::{ContextEntries, below};
use super::render::position;
use crate::daemon::reading::INLINE_ENTRIES;
use crate::daemon::rows::RowReader;
use crate::rpc::session_read::{Read, ReadAnswer};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use treelined_core::context;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;
use treelined_core::name;
use treelined_core::stats::{Cost, ModelUse, PrefixStats, Prices, Stats, TimeSpan, Tokens};
use treelined_core::summary::files::FileCollector;
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::{FilePlace, Node, Tree};
use treelined_core::view::Subject;
use treelined_files::lock::lock;
use treelined_files::log::body::{Bodies, Fetch};
use treelined_files::parallel::{CHUNK, in_order};
use treelined_wire as wire;

pub(in crate::rpc) fn compare_branches(
    read: &Read<'_>,
    params: &wire::CompareBranchesParams,
) -> Result<ReadAnswer<wire::CompareBranchesResult>> {
    if !read.may_block() && read.tree.node_count() > INLINE_ENTRIES {
        return Ok(ReadAnswer::OnBlockingThread);
    }
    let more = params.more.as_deref().unwrap_or_default();
    if more.len() > MAX_MORE {
        let reason = format!("has more than {MAX_MORE} branches");
        return Err(Error::invalid_params("more", reason));
    }
    let ids = [&params.a, &params.b].into_iter().chain(more);
    let tips = ids.map(|id| read.find(id)).collect::<Result<Vec<_>>>()?;
    let mut ancestor = tips.first().copied();
    for tip in &tips {
        ancestor = read.tree.common_ancestor(ancestor, Some(*tip));
    }
    let ancestor_id = ancestor.map(|node| read.tree.id(node).to_owned());
    let mut room = read.frame_bytes();
    let mut size = 0;
    let mut parts = Vec::with_capacity(tips.len());
    for tip in tips {
        let (_, nodes) = read.tree.branch(Some(tip), ancestor);
        size += read.stored_bytes(nodes.iter().copied());
        parts.push(PathEntries::new(read, nodes, &mut room)?);
    }
    let notes = read.tree.entries();
    let notes = notes.filter(|node| read.tree.kind(*node) == EntryKind::Note);
    let notes = read.fetch(notes.collect::<Vec<_>>())?;
    let (bodies, call) = (read.bodies(), Arc::clone(read.call));
    Ok(ReadAnswer::later(size, move || {
        let notes = Notes::read(&bodies, &notes)?;
        let mut compared = Vec::with_capacity(parts.len());
        for part in parts {
            compared.push(part.compared(&bodies, &notes, call.daemon.parts.prices())?);
        }
        let mut compared = compared.into_iter();
        let (Some(a), Some(b)) = (compared.next(), compared.next()) else {
            return Err(Error::new(Kind::InternalError, "two branches are compared"));
        };
        Ok(wire::CompareBranchesResult {
            ancestor_id,
            a,
            b,
            more: compared.collect(),
        })
    }))
}

/// The most branches that are compared in addition to two.
const MAX_MORE: usize = 30;

/// The entries of a part of a path. They are read without the session.
struct PathEntries {
    ids: Vec<String>,
    times: Vec<Millis>,
    fetches: Vec<Fetch>,
    label: Option<String>,
    /// The last message of the part.
    last: Option<(Node, FilePlace, Subject)>,
}

impl PathEntries {
    /// Subtracts the bytes of the ids from `room`. Fails with `responseTooLarge` if the ids have more bytes than
    /// `room`.
    fn new(read: &Read<'_>, nodes: Vec<Node>, room: &mut usize) -> Result<Self> {
        let tree = &read.tree;
        let ids = nodes.iter().map(|node| tree.id(*node));
        let size = ids.clone().map(|id| id.len() + 3).sum();
        *room = room.checked_sub(size).ok_or_else(|| {
            let message = "the ids of the branches have more bytes than the client takes: \
                           compare shorter branches";
            Error::new(Kind::ResponseTooLarge, message)
        })?;
        let newest = || nodes.iter().rev();
        let label = newest().find_map(|node| tree.label(*node));
        let last = newest().find(|node| tree.kind(**node) == EntryKind::Message);
        let subject = |node: Node| Subject {
            kind: tree.kind(node),
            role: tree.role(node),
            flags: tree.flags(node),
            calls: false,
        };
        Ok(Self {
            ids: ids.map(str::to_owned).collect(),
            times: times(tree, nodes.iter().copied()),
            label: label.map(|label| label.text.to_string()),
            last: last.map(|node| (*node, tree.place(*node), subject(*node))),
            fetches: read.fetch(nodes)?,
        })
    }

    fn compared(
        self,
        bodies: &Bodies,
        notes: &Notes,
        prices: &dyn Prices,
    ) -> Result<wire::ComparedBranch> {
        let (stats, files) = count(bodies, &self.fetches, prices)?;
        let files = files.into_lists();
        let last = match self.last {
            Some((node, place, subject)) => {
                let mut reader = RowReader::new(bodies);
                let facts = reader.facts(node, place, subject)?;
                Some(facts.preview.into_owned())
            }
            None => None,
        };
        let noted = self.ids.iter().rev().find_map(|id| notes.0.get(id));
        let outcome = outcome([
            self.label.map(|label| format!("[{label}]")),
            noted.cloned(),
            last,
            changed(&files.modified_files),
        ]);
        Ok(wire::ComparedBranch {
            entry_ids: self.ids,
            files: wire::TouchedFiles {
                read_files: files.read_files,
                modified_files: files.modified_files,
            },
            stats: wire_stats(stats, self.times),
            outcome,
        })
    }
}

/// For each entry that has notes, the reason in its last note.
struct Notes(HashMap<String, String>);

impl Notes {
    fn read(bodies: &Bodies, notes: &[Fetch]) -> Result<Self> {
        let mut reader = bodies.reader();
        let mut found = HashMap::new();
        for note in notes {
            let entry = reader.entry(note)?;
            let text = |name: &str| json::get_path(&entry, &["data", name]).and_then(json::string);
            let said = text("reason").or_else(|| text("outcome"));
            if let (Some(target), Some(said)) = (text("targetId"), said) {
                found.insert(target.into_owned(), name::normalized(&said).into_owned());
            }
        }
        Ok(Self(found))
    }
}

/// The most characters of the line about a branch, and of each of its parts.
const MAX_OUTCOME: usize = 300;
const MAX_PART: usize = 120;

/// The line about a branch, made of these parts.
fn outcome(parts: [Option<String>; 4]) -> String {
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    let parts: Vec<String> = parts.map(|part| cut(&part, MAX_PART)).collect();
    cut(&parts.join(" · "), MAX_OUTCOME)
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit.saturating_sub(1)) {
        Some((at, _)) if text.chars().nth(limit).is_some() => {
            format!("{}…", text.get(..at).unwrap_or_default())
        }
        _ => text.to_owned(),
    }
}

/// The number of modified files, and the names of the first ones.
fn changed(files: &[String]) -> Option<String> {
    const NAMED: usize = 3;
    let names = files.iter().take(NAMED);
    let names = names.map(|file| file.rsplit('/').next().unwrap_or(file));
    let names: Vec<&str> = names.collect();
    let (names, count) = (names.join(", "), files.len());
    match count {
        0 => None,
        1 => Some(format!("1 file: {names}")),
        _ if count > NAMED => Some(format!("{count} files: {names}, …")),
        _ => Some(format!("{count} files: {names}")),
    }
}

/// The times of entries. Entries without a readable time are left out.
fn times(tree: &Tree, nodes: impl Iterator<Item = Node>) -> Vec<Millis> {
    nodes.filter_map(|node| tree.timestamp(node)).collect()
}

/// The sums over entries, and the files that the entries read or changed.
fn count(
    bodies: &Bodies,
    fetches: &[Fetch],
    prices: &dyn Prices,
) -> Result<(Stats, FileCollector)> {
    let part = |range: Range<usize>| {
        let (mut stats, mut files) = (Stats::default(), FileCollector::default());
        let mut reader = bodies.reader();
        for fetch in fetches.get(range).unwrap_or_default() {
            reader.see_entry(fetch, |entry| {
                stats.add(entry, prices);
                files.note_entry(entry);
            })?;
        }
        Ok((stats, files))
    };
    let (mut stats, mut files) = (Stats::default(), FileCollector::default());
    in_order(0..fetches.len(), CHUNK, part, |(part, more)| {
        stats += part;
        files.merge(more);
        ControlFlow::Continue(())
    })?;
    Ok((stats, files))
}

pub(in crate::rpc) fn get_stats(
    read: &Read<'_>,
    params: &wire::GetStatsParams,
) -> Result<ReadAnswer<wire::GetStatsResult>> {
    let is_of_path = params.since.is_some() || params.leaf_id != wire::GivenPosition::Leaf;
    let leaf = position(read, &params.leaf_id)?;
    let path = read.steps(leaf);
    let kept = read.kept(&path)?;
    let entries = ContextEntries::new(read, kept, &path)?;
    let counted = match is_of_path {
        true => None,
        false => Some(lock(&read.open.last_count).for_tree(read.tree.origin())),
    };
    let (nodes, times): (Vec<Node>, _) = match &counted {
        Some(counted) => {
            let nodes = read.tree.entries().skip(counted.count).collect();
            (nodes, times(&read.tree, read.tree.entries()))
        }
        None => {
            let nodes: Vec<Node> = path.iter().map(|step| step.node).collect();
            let nodes = below(read, nodes, params.since.as_deref())?;
            let times = times(&read.tree, nodes.iter().copied());
            (nodes, times)
        }
    };
    let size = read.stored_bytes(nodes.iter().copied());
    let (bodies, fetches) = (read.bodies(), read.fetch(nodes)?);
    let (open, call) = (Arc::clone(read.open), Arc::clone(read.call));
    let shed = Some(read.tree.shed().len() as u64).filter(|shed| !is_of_path && *shed > 0);
    Ok(ReadAnswer::later(size, move || {
        let context_tokens = context::tokens(&path, kept, &mut |node| entries.entry(node))?;
        let prices = call.daemon.parts.prices();
        let stats = match counted {
            Some(counted) => count_on(counted, &bodies, &fetches, prices, |counted| {
                *lock(&open.last_count) = counted.clone();
            })?,
            None => count(&bodies, &fetches, prices)?.0,
        };
        Ok(wire::GetStatsResult {
            stats: wire_stats(stats, times),
            context_tokens,
            shed_branches: shed,
        })
    }))
}

/// The sums over a whole session: the sums of the entries that were counted before, and of the other entries, which are
/// counted here. Calls `keep` with sums from which the next request can continue.
fn count_on(
    mut counted: PrefixStats,
    bodies: &Bodies,
    fetches: &[Fetch],
    prices: &dyn Prices,
    keep: impl Fn(&PrefixStats),
) -> Result<Stats> {
    let part = |range: Range<usize>| {
        let mut stats = Stats::default();
        let mut reader = bodies.reader();
        let fetches = fetches.get(range).unwrap_or_default();
        for fetch in fetches {
            reader.see_entry(fetch, |entry| stats.add(entry, prices))?;
        }
        Ok((fetches.len(), stats))
    };
    in_order(0..fetches.len(), CHUNK, part, |(count, part)| {
        counted.stats += part;
        counted.count += count;
        // Sums are kept only after whole parts. So the parts are always the same, and floating-point costs always have
        // the same sum.
        if count == CHUNK && counted.fits_budget() {
            keep(&counted);
        }
        ControlFlow::Continue(())
    })?;
    Ok(counted.stats)
}

fn wire_stats(stats: Stats, times: Vec<Millis>) -> wire::BranchStats {
    let models = stats.models.into_iter().flat_map(|(provider, models)| {
        let models = models.into_iter();
        models.map(move |(model_id, used)| wire_model(provider.clone(), model_id, used))
    });
    let span = TimeSpan::of(times);
    wire::BranchStats {
        messages: stats.messages,
        tool_calls: stats.tool_calls,
        tokens: wire_tokens(stats.tokens),
        cost: stats.cost.recorded.unwrap_or_default(),
        costs: wire_costs(stats.cost),
        models: models.collect(),
        started_at: span.map(|span| timestamp::format(span.start)),
        ended_at: span.map(|span| timestamp::format(span.end)),
        active_ms: span.map(|span| span.active).unwrap_or_default(),
    }
}

fn wire_model(provider: String, model_id: String, used: ModelUse) -> wire::ModelStats {
    wire::ModelStats {
        provider,
        model_id,
        messages: used.messages,
        tokens: wire_tokens(used.tokens),
        cost: used.cost.recorded.unwrap_or_default(),
        costs: wire_costs(used.cost),
    }
}

fn wire_costs(cost: Cost) -> wire::Costs {
    wire::Costs {
        recorded: cost.recorded,
        estimated: cost.estimated,
        unknown_answers: cost.unknown,
    }
}

fn wire_tokens(tokens: Tokens) -> wire::Tokens {
    wire::Tokens {
        input: tokens.input,
        output: tokens.output,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_write,
    }
}
