//! Exports a session as one HTML file that opens from disk (`clients/web/FORMAT.md`).
//!
//! [`PageSource::take`] copies the data for the rows while the guard of the session is held. [`PageSource::write`]
//! reads each entry once, on several threads: the row and the blocks of an entry come from the same redacted bytes. In
//! the file, rows come before bodies, but the rows are complete only after all bodies are read. So the packed bodies
//! wait in a second temporary file. In memory are the packed rows, about 40 bytes for each entry, and a few parts of
//! bodies for each thread.

mod chunk;
mod document;
mod packer;
mod page_stats;
mod source;
mod static_text;
mod views;

use super::content::ContentSource;
use super::head::SessionHead;
use super::output::{Output, Spool};
use super::request::{ExportOptions, Part, Progress};
use super::tally::RedactionTally;
use crate::export::tally::Redaction;
use crate::redact::RedactEntry;
use crate::renderers::Renderers;
use crate::session_render::RenderPlanner;
use chunk::ChunkPacker;
use packer::{PackedPart, RowBuffer};
use page_stats::PageStats;
pub(super) use source::PageSource;
use source::{CHUNK_ROWS, PagePart};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::stats::Prices;
use treelined_core::timestamp::Millis;
use treelined_core::tree::Node;
use treelined_core::view::{Filter, Folding, Order, Outline, Row, Scope, Snapshot, Visible};
use treelined_files::cancel::Cancel;
use treelined_files::log::body::Fetch;
use treelined_files::parallel::{ThreadPlan, map_in_order};
use treelined_files::session::SessionState;

/// The most threads of one export.
const THREADS: usize = 4;
/// The number of stored bytes of the entries whose bodies are packed together.
const PART_BYTES: u64 = 256 << 10;
/// The most entries whose bodies are packed together.
const PART_ENTRIES: usize = 2048;

/// The filters of the page, with their names.
const FILTERS: [(&str, Filter); 5] = [
    ("default", Filter::Default),
    ("no-tools", Filter::NoTools),
    ("user-only", Filter::UserOnly),
    ("labeled-only", Filter::LabeledOnly),
    ("all", Filter::All),
];

impl PageSource {
    pub(super) fn take(
        state: &SessionState,
        part: Part,
        options: &ExportOptions,
        renderers: Arc<Renderers>,
        now: Millis,
    ) -> Result<Self> {
        let tree = &state.tree;
        let content = ContentSource::new(state.bodies(), renderers, options)?;
        let scope = |filter| Scope {
            root: match part {
                Part::Subtree(top) => Some(top),
                Part::Tree | Part::Branch(_) => None,
            },
            filter,
            order: Order::ActiveFirst,
            active_last: false,
            archived: true,
        };
        let everything = Outline::new(tree, scope(Filter::All));
        let outlines = FILTERS.iter();
        let outlines = outlines.map(|(_, filter)| everything.with_filter(tree, *filter));
        let outlines: Vec<Outline> = outlines.collect();
        let matched = part.matched(state, &everything)?;
        let all = Visible::new(&everything, matched.as_deref(), &Folding::default());
        let items = all.rows().iter().map(Row::item);
        let snapshot = Snapshot::take(tree, &everything, items);
        let nodes = all
            .rows()
            .iter()
            .filter_map(|row| everything.items().get(row.item()));
        let nodes: Vec<Node> = nodes.map(|item| item.node).collect();
        let fetches = state.fetch(nodes.iter().copied())?;
        let mut planner = RenderPlanner::new(tree, &content.bodies, tree.leaf());
        let mut plans = HashMap::new();
        for (row, node) in nodes.iter().enumerate() {
            if matches!(tree.kind(*node), Kind::Compaction | Kind::BranchSummary) {
                plans.insert(row, planner.plan(*node)?);
            }
        }
        Ok(Self {
            head: SessionHead::take(state, part, &everything, &content, now)?,
            part: PagePart::new(state, part, &all, &nodes),
            parts: parts(&fetches),
            is_redacted: options.redacts,
            content,
            outlines,
            matched,
            all,
            snapshot,
            fetches,
            plans,
        })
    }

    pub(super) fn write(
        &self,
        out: &mut Output,
        prices: &dyn Prices,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<Vec<Redaction>> {
        out.write(document::head(&self.head.title).as_bytes())?;
        out.write(static_text::html(self)?.as_bytes())?;
        let mut bodies = out.spool()?;
        let packed = self.pack(&mut bodies, prices, cancel, progress)?;
        let redactions = packed.tally.into_redactions();
        let mut packer = ChunkPacker::new();
        let meta = self.meta(packed.rows.len(), &redactions);
        document::write_chunk(out, "meta", &packer.pack(&meta)?)?;
        self.write_views(out)?;
        document::write_chunk(out, "stats", &packer.pack(&packed.stats)?)?;
        for (number, rows) in packed.rows.iter().enumerate() {
            document::write_chunk(out, &format!("rows-{number}"), rows)?;
        }
        out.write(document::script().as_bytes())?;
        for number in self.order_of_parts() {
            if let Some(range) = packed.bodies.get(number) {
                let packed = bodies.read(range.clone())?;
                document::write_chunk(out, &format!("bodies-{number}"), &packed)?;
            }
        }
        out.write(document::END.as_bytes())?;
        Ok(redactions)
    }

    /// Packs the bodies into `spool`, and packs the rows.
    fn pack(
        &self,
        spool: &mut Spool,
        prices: &dyn Prices,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<PackedSession> {
        let total = self.bytes_of(0..self.fetches.len());
        let mut read = 0;
        let mut rows = RowBuffer::default();
        let mut stats = PageStats::default();
        let mut tally = RedactionTally::default();
        let mut bodies = Vec::with_capacity(self.parts.len());
        let mut take = |part: PackedPart, bytes: u64| -> Result<()> {
            bodies.push(spool.push(&part.body)?);
            rows.push(&part.rows)?;
            stats.append(part.stats);
            tally.append(part.tally);
            read += bytes;
            progress(read, total);
            Ok(())
        };
        let work = |state: &mut packer::PartPacker<'_>, number: usize| match cancel.is_cancelled() {
            true => Err(treelined_core::error::Error::cancelled()),
            false => {
                let rows = self.parts.get(number).cloned().unwrap_or_default();
                let bytes = self.bytes_of(rows.clone());
                state.pack(number, rows).map(|part| (part, bytes))
            }
        };
        let change = |entry: &[u8]| {
            self.content
                .redactor
                .entry(entry, &mut |_, _| {})
                .into_owned()
        };
        let state = || packer::PartPacker::new(self, &change, prices);
        let plan = ThreadPlan::up_to(THREADS);
        // With more parts ahead, the other threads do not wait while this thread packs rows.
        let plan = ThreadPlan {
            ahead: plan.ahead * 2,
            ..plan
        };
        let done = map_in_order(self.parts.len(), plan, state, work, |part| {
            match part.and_then(|(part, bytes)| take(part, bytes)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        match done {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(PackedSession {
                rows: rows.finish()?,
                stats: stats.into_json()?,
                bodies,
                tally,
            }),
        }
    }

    fn write_views(&self, out: &mut Output) -> Result<()> {
        let work = |packer: &mut ChunkPacker, number: usize| {
            let (name, _) = FILTERS.get(number).copied()?;
            let outline = self.outlines.get(number)?;
            let view = views::view_json(outline, self.matched.as_deref(), &self.all);
            Some((name, packer.pack(&view)))
        };
        let plan = ThreadPlan::up_to(THREADS);
        let written = map_in_order(FILTERS.len(), plan, ChunkPacker::new, work, |view| {
            let Some((name, packed)) = view else {
                return ControlFlow::Continue(());
            };
            let written = packed
                .and_then(|packed| document::write_chunk(out, &format!("view-{name}"), &packed));
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        written.break_value().map_or(Ok(()), Err)
    }

    /// The parts of bodies in the order of the file: first the part that the page shows first, then the parts before
    /// that part, then the rest.
    fn order_of_parts(&self) -> impl Iterator<Item = usize> {
        let selected = self.part.selected.unwrap_or_default();
        let first = self.parts.iter().position(|rows| rows.contains(&selected));
        let after = first.map_or(0, |first| first + 1);
        (0..after).rev().chain(after..self.parts.len())
    }

    /// The number of stored bytes of the entries of these rows.
    fn bytes_of(&self, rows: Range<usize>) -> u64 {
        let fetches = self.fetches.get(rows).unwrap_or_default();
        fetches.iter().map(|fetch| u64::from(fetch.place.len)).sum()
    }

    fn meta(&self, row_chunks: usize, redactions: &[Redaction]) -> Vec<u8> {
        let head = &self.head;
        let mut session = serde_json::json!({
            "sessionId": head.session_id,
            "title": head.title,
            "cwd": head.cwd,
            "entryCount": self.fetches.len(),
        });
        for (name, value) in [("name", &head.name), ("created", &head.created)] {
            if let (Some(value), Some(members)) = (value, session.as_object_mut()) {
                members.insert(name.to_owned(), value.as_str().into());
            }
        }
        let mut meta = serde_json::json!({
            "format": 1,
            "generator": document::GENERATOR,
            "exportedAt": head.exported_at,
            "session": session,
            "scope": self.part.scope,
            "leafId": self.part.leaf_id,
            "selected": self.part.selected,
            "rowCount": self.fetches.len(),
            "rowsPerChunk": CHUNK_ROWS,
            "rowChunks": row_chunks,
            "bodyChunks": self.parts.len(),
            "redacted": self.is_redacted,
            "redactions": redactions,
        });
        if let (Some(id), Some(members)) = (&self.part.entry_id, meta.as_object_mut()) {
            members.insert("entryId".to_owned(), id.as_str().into());
        }
        meta.to_string().into_bytes()
    }
}

/// A session whose packed bodies are in the spool.
struct PackedSession {
    /// The packed chunks of rows.
    rows: Vec<Vec<u8>>,
    /// The numbers of the session as JSON.
    stats: Vec<u8>,
    /// For each part, its range of bytes in the spool.
    bodies: Vec<Range<u64>>,
    tally: RedactionTally,
}

/// Divides the rows into parts of about [`PART_BYTES`].
fn parts(fetches: &[Fetch]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, fetch) in fetches.iter().enumerate() {
        bytes += u64::from(fetch.place.len);
        let end = at + 1;
        if bytes >= PART_BYTES || end - start >= PART_ENTRIES || end == fetches.len() {
            parts.push(start..end);
            (start, bytes) = (end, 0);
        }
    }
    parts
}
