//! Reads sources into members. The bytes of records are not kept in memory.

use super::held::HeldNodes;
use super::large::LargeSources;
use super::ledger::Ledger;
use super::limits::{Limits, TOO_LARGE};
use super::origin::{OriginWriter, Origins};
use super::sides::Sides;
use super::source::Places;
use super::source::facts::{Scan, ScanFailure, SideKind, Source, SourceFailure};
use crate::family::forest::MemberNumber;
use crate::importer::line::Contents;
use crate::mapping::Former;
use crate::member::{Base, Member, Node, NodeKind, Parent, Place};
use crate::reader::{Format, Reader};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::Duration;
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::timestamp::Millis;
use treelined_files::cancel::Cancel;

/// A source is complete if it has not changed for this long.
const QUIET: Duration = Duration::from_secs(600);
/// If a tool marks the end of a message, the mark counts once the source has not changed for this long. The tool may
/// write more records of the same message just after the mark.
const PAUSE: Duration = Duration::from_secs(1);
/// Used in place of [`PAUSE`] if the tool has reported the end of the turn: after this report, the tool writes the rest
/// of the message at once.
pub(super) const SETTLED: Duration = Duration::from_millis(200);
/// The most sources that are open at a time while a session is written.
const MAX_OPEN: usize = 4;

/// The name that reports of Claude Code have for records without a type.
const UNTYPED: &str = "no type";

/// A source that was read.
pub(super) struct ReadSource {
    pub(super) source: Source,
    pub(super) scan: Scan,
    /// The name of the origin; empty in a dry run.
    pub(super) origin: String,
    pub(super) members: Vec<Member>,
    /// For each member, the nodes that were held back. [`super::open_nodes`] fills the list.
    pub(super) held: Vec<HeldNodes>,
    /// Whether the source may still grow. Its last nodes are then held back.
    pub(super) is_growing: bool,
    /// The records that older versions of the reader have read.
    pub(super) former: Former,
    /// The time at which the source counts as complete if it does not change, in Unix milliseconds.
    pub(super) complete_at: Millis,
    /// The time at which the tool's marks in the source count, in Unix milliseconds. Once they count, it equals
    /// `complete_at`.
    pub(super) marks_count_at: Millis,
    /// Whether the source exceeds the limits. A source beyond the limits is read only if the limits do not apply to it.
    pub(super) is_beyond: bool,
}

/// The settings for reading sources.
pub(super) struct Reading<'a> {
    /// The origins; `None` in a dry run.
    pub(super) origins: Option<&'a Origins>,
    pub(super) is_final: bool,
    /// See [`ImportRequest::has_ended`](super::request::ImportRequest::has_ended).
    pub(super) has_ended: bool,
    /// The time at which the import began, in Unix milliseconds.
    pub(super) now: Millis,
    pub(super) cancel: &'a Cancel,
    pub(super) sides: &'a Sides,
    pub(super) ledger: &'a Ledger,
    /// The names of sources whose sessions are written anew.
    pub(super) anew: &'a HashSet<String>,
    pub(super) limits: Limits,
    pub(super) large: &'a LargeSources,
    /// Gets the number of bytes that were read since the last call.
    pub(super) progress: &'a (dyn Fn(u64) + Sync),
}

impl Reading<'_> {
    /// Reads a source from beginning to end.
    pub(super) fn read(
        &self,
        format: &dyn Format,
        source: Source,
    ) -> Result<ReadSource, ScanFailure> {
        let is_limited = self.is_limited(&source);
        if let Some(message) = self.large.refusal(&source).filter(|_| is_limited) {
            return Err(source.failure(TOO_LARGE, message).into());
        }
        let limits = match is_limited {
            true => self.limits,
            false => Limits::NONE,
        };
        let may_grow = !self.is_final && source.kept.is_none();
        let is_growing = may_grow && !source.status.is_quiet(self.now, QUIET);
        let mut reader = format.reader(&source.name());
        let mut origin = match self.origins {
            Some(origins) => Some(origins.writer(&source)?),
            None => None,
        };
        let former = self.former(&source, origin.as_ref());
        reader.formerly(former.clone());
        if let Some(origin) = &mut origin {
            origin.set_former(former.clone());
        }
        let scanned = self.scan(&source, &mut *reader, origin.as_mut(), !is_growing, limits);
        let scan = match scanned {
            Ok(scan) => scan,
            Err(failure) => return Err(abandon(origin, failure)),
        };
        let end = (scan.len, scan.records);
        let beside = self.sides.spawner(&source, end, &mut *reader);
        let mut members = reader.finish();
        if let Some(limit) = exceeded_by(&members, &limits) {
            return Err(abandon(origin, source.too_large(&limit)));
        }
        let is_beyond = is_beyond(&source, &scan, &members);
        self.keep_outputs(&source)?;
        let complete_at = source.status.quiet_at(QUIET);
        let pause = match self.has_ended {
            true => SETTLED,
            false => PAUSE,
        };
        let mut marks_count_at = source.last_change(&scan).quiet_at(pause);
        if scan.has_rest() {
            marks_count_at = complete_at;
        } else if marks_count_at <= self.now {
            marks_count_at = complete_at;
            let marked = members.iter_mut().filter(|member| member.has_end_mark);
            let nodes = marked.flat_map(|member| &mut member.nodes);
            nodes.for_each(|node| node.is_open = false);
        }
        discount(&mut members, beside);
        self.sides.complete(&source, &mut members);
        // The lists stay in memory until all sources are read, so their spare memory is freed.
        for member in &mut members {
            member.nodes.shrink_to_fit();
            member.aliases.shrink_to_fit();
        }
        let origin = match origin {
            Some(origin) => origin.finish()?,
            None => String::new(),
        };
        Ok(ReadSource {
            source,
            scan,
            origin,
            members,
            held: Vec::new(),
            is_growing,
            former,
            complete_at,
            marks_count_at,
            is_beyond,
        })
    }

    fn scan(
        &self,
        source: &Source,
        reader: &mut dyn Reader,
        origin: Option<&mut OriginWriter>,
        is_final: bool,
        limits: Limits,
    ) -> Result<Scan, ScanFailure> {
        let progress = |bytes: u64| {
            (self.progress)(bytes);
            match self.cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        source.scan(reader, origin, is_final, limits, &progress)
    }

    /// Whether the limits apply to a source. They do not apply to a source that the user has allowed to be large, whose
    /// session is written anew, or that is read from kept bytes.
    fn is_limited(&self, source: &Source) -> bool {
        let is_anew = || self.anew.contains(&source.name());
        self.limits != Limits::NONE
            && source.kept.is_none()
            && !self.large.is_allowed(source)
            && !is_anew()
    }

    /// Keeps the files that have the whole outputs of calls.
    fn keep_outputs(&self, source: &Source) -> Result<()> {
        let Some(origins) = self.origins else {
            return Ok(());
        };
        let outputs = source.side_files.iter();
        for side in outputs.filter(|side| side.kind == SideKind::ToolResult) {
            origins.keep_side_file(source.tool, &side.path)?;
        }
        Ok(())
    }

    /// The records that older versions of the reader have read. They come from the ledger, or from the origin if the
    /// ledger has no row of the source.
    fn former(&self, source: &Source, origin: Option<&OriginWriter>) -> Former {
        if self.anew.contains(&source.name()) {
            return Former::default();
        }
        match self.ledger.source(source.tool, &source.name()) {
            Some(row) => row.former.clone().and(row.version, row.len),
            None => origin.map_or_else(Former::default, |origin| origin.former().clone()),
        }
    }
}

impl ReadSource {
    /// The time from which an import takes the held-back nodes of a member if the source does not change. In Unix
    /// milliseconds.
    pub(super) fn held_until(&self, member: &Member) -> Millis {
        match member.has_end_mark {
            true => self.marks_count_at,
            false => self.complete_at,
        }
    }
}

/// Discards the bytes of a source that fails, and returns the failure.
fn abandon(origin: Option<OriginWriter>, failure: ScanFailure) -> ScanFailure {
    if let Some(origin) = origin {
        origin.abandon();
    }
    failure
}

/// The limit that the members of a source exceed; `None` if they exceed none.
fn exceeded_by(members: &[Member], limits: &Limits) -> Option<String> {
    let entries: usize = members.iter().map(|member| member.nodes.len()).sum();
    limits.exceeded_by_members(entries as u64, members.len() as u64)
}

/// Whether a source that was read exceeds the usual limits.
fn is_beyond(source: &Source, scan: &Scan, members: &[Member]) -> bool {
    let limits = Limits::default();
    let size = source.size_on_disk().unwrap_or(0);
    let pieces = scan.records + scan.unparsable.len() as u64;
    let by_scan = limits.exceeded_by_scan(scan.made, size, pieces);
    by_scan.or_else(|| exceeded_by(members, &limits)).is_some()
}

/// Subtracts the records that came from side files from the count of records without a type.
fn discount(members: &mut [Member], mut beside: u64) {
    for member in members {
        if let Some(count) = member.origin_only.get_mut(UNTYPED) {
            let less = beside.min(*count);
            (*count, beside) = (*count - less, beside - less);
        }
        member.origin_only.retain(|_, count| *count > 0);
    }
}

/// Removes the open nodes of a member, and all nodes below them. Returns the removed nodes.
pub(super) fn hold_back(member: &mut Member) -> Vec<Node> {
    if is_beginning_of_copy(member) {
        member.nodes.iter_mut().for_each(|node| node.is_open = true);
    }
    if !member.nodes.iter().any(|node| node.is_open) {
        return Vec::new();
    }
    let nodes = std::mem::take(&mut member.nodes);
    let mut held = Vec::new();
    // For each node, the index that it gets. A removed node has the index of the nearest kept node above it.
    let mut numbers: Vec<(Option<u32>, bool)> = Vec::with_capacity(nodes.len());
    let at = |numbers: &[(Option<u32>, bool)], number: u32| {
        let number = usize::try_from(number).ok();
        number.and_then(|number| numbers.get(number).copied())
    };
    for mut node in nodes {
        let above = match node.parent {
            Parent::Node(parent) => at(&numbers, parent),
            Parent::Base | Parent::Key(_) => None,
        };
        let hangs_at_held = above.is_some_and(|(_, is_kept)| !is_kept);
        if node.is_open || hangs_at_held {
            numbers.push((above.and_then(|(number, _)| number), false));
            held.push(node);
            continue;
        }
        if let (Parent::Node(_), Some((Some(parent), _))) = (&node.parent, above) {
            node.parent = Parent::Node(parent);
        }
        rename_first_kept(&mut node, |kept| at(&numbers, kept));
        numbers.push((u32::try_from(member.nodes.len()).ok(), true));
        member.nodes.push(node);
    }
    for (_, node) in &mut member.aliases {
        // An alias of a removed node becomes an alias of the nearest kept node above it.
        *node = at(&numbers, *node)
            .and_then(|(number, _)| number)
            .unwrap_or(u32::MAX);
    }
    member.leaf = member
        .leaf
        .and_then(|leaf| at(&numbers, leaf))
        .and_then(|(number, _)| number);
    held
}

/// Whether a member is a copy of another session and has no complete user message yet. Only such a message joins the
/// copy to that session; without one, the copy would be imported as a separate session.
fn is_beginning_of_copy(member: &Member) -> bool {
    let is_closed_turn = |node: &Node| node.kind == NodeKind::User && !node.is_open;
    matches!(member.base, Base::CopyOf { .. }) && !member.nodes.iter().any(is_closed_turn)
}

fn rename_first_kept(node: &mut Node, rename: impl Fn(u32) -> Option<(Option<u32>, bool)>) {
    if let NodeKind::Compaction { first_kept } = &mut node.kind {
        *first_kept = first_kept.and_then(|kept| rename(kept)?.0);
    }
}

/// The bytes of sources, for the bodies of entries. Only a few sources are open at a time.
pub(super) struct SourceContents<'a> {
    sources: &'a [ReadSource],
    /// For each member, the index of its source.
    of: &'a [usize],
    open: HashMap<usize, Places>,
    order: Vec<usize>,
}

impl<'a> SourceContents<'a> {
    pub(super) fn new(sources: &'a [ReadSource], of: &'a [usize]) -> Self {
        Self {
            sources,
            of,
            open: HashMap::new(),
            order: Vec::new(),
        }
    }

    /// Closes all sources except these.
    pub(super) fn keep_open(&mut self, sources: &BTreeSet<usize>) {
        self.order.retain(|number| sources.contains(number));
        self.open.retain(|number, _| sources.contains(number));
    }

    fn open(&mut self, number: usize) -> Result<&mut Places> {
        if !self.open.contains_key(&number) {
            let source = self.sources.get(number);
            let source = source.ok_or_else(|| failed("an entry without its source"))?;
            let places = source.source.places(&source.scan).map_err(import_failed)?;
            if self.order.len() >= MAX_OPEN {
                let oldest = self.order.remove(0);
                self.open.remove(&oldest);
            }
            self.order.push(number);
            self.open.insert(number, places);
        }
        let places = self.open.get_mut(&number);
        places.ok_or_else(|| failed("an entry without its source"))
    }
}

impl Contents for SourceContents<'_> {
    fn read(&mut self, member: MemberNumber, place: Place, into: &mut Vec<u8>) -> Result<()> {
        let number = self.of.get(member).copied();
        let number = number.ok_or_else(|| failed("an entry without its source"))?;
        self.open(number)?.read(place, into).map_err(import_failed)
    }
}

fn failed(message: &'static str) -> Error {
    Error::new(Kind::InternalError, message)
}

/// The error `importFailed`, for a source that could be read before.
fn import_failed(failure: ScanFailure) -> Error {
    match failure {
        ScanFailure::Import(error) => error,
        ScanFailure::Source(SourceFailure { message, path, .. }) => {
            Error::new(Kind::ImportFailed, format!("{}: {message}", path.display()))
        }
    }
}

/// The tools in `sources`, without repetition.
pub(super) fn tools(sources: &[Source]) -> Vec<Tool> {
    let mut tools: Vec<Tool> = sources.iter().map(|source| source.tool).collect();
    tools.sort_unstable();
    tools.dedup();
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(key: &str, parent: Parent, is_open: bool) -> Node {
        Node {
            key: key.into(),
            parent,
            kind: NodeKind::User,
            time: None,
            order: 0,
            places: Vec::new(),
            fingerprint: 0,
            note: None,
            is_open,
        }
    }

    #[test]
    fn open_nodes_and_those_below_them_are_held_back() {
        let mut member = Member {
            nodes: vec![
                node("a", Parent::Base, false),
                node("b", Parent::Node(0), true),
                node("c", Parent::Node(1), false),
                node("d", Parent::Node(0), false),
                node("e", Parent::Node(3), false),
            ],
            leaf: Some(2),
            ..Member::default()
        };
        assert_eq!(hold_back(&mut member).len(), 2);
        let kept: Vec<_> = member
            .nodes
            .iter()
            .map(|node| (&*node.key, node.parent.clone()))
            .collect();
        assert_eq!(
            kept,
            [
                ("a", Parent::Base),
                ("d", Parent::Node(0)),
                ("e", Parent::Node(1))
            ]
        );
        assert_eq!(member.leaf, Some(0));
        assert!(hold_back(&mut member).is_empty());
    }
}
