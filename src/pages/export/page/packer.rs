//! Makes the rows and the blocks of entries, one part of the session at a time.

use super::chunk::ChunkPacker;
use super::page_stats::PageStats;
use super::source::{CHUNK_ROWS, PageSource};
use crate::export::content::{EntryReader, ReadEntry, answered_call};
use crate::export::tally::RedactionTally;
use crate::render::{self, CallResult, EntryContext};
use crate::session_render::{EntryRenderer, ResultParts};
use std::borrow::Cow;
use std::ops::Range;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::json::push_string;
use treelined_core::stats::Prices;
pub(crate) use treelined_core::tree::Flags;
use treelined_core::view::{Outline, RowFacts, RowParts, ServedRow, Subject, ToolCall};

/// The most bytes of the blocks of one entry.
const ENTRY_BYTES: usize = 32 << 20;
/// The most rows below an assistant message that are searched for the results of its calls.
const RESULT_REACH: usize = 64;

/// A packed part of the session.
pub(super) struct PackedPart {
    /// The packed chunk of blocks.
    pub body: Vec<u8>,
    /// The rows as JSON.
    pub rows: Vec<Vec<u8>>,
    pub stats: PageStats,
    pub tally: RedactionTally,
}

/// Replaces the secrets of an entry's JSON.
pub(super) type Change<'s> = &'s (dyn Fn(&[u8]) -> Vec<u8> + Sync);

/// Packs parts. It reuses its readers and its memory.
pub(super) struct PartPacker<'s> {
    source: &'s PageSource,
    prices: &'s dyn Prices,
    reader: EntryReader<'s>,
    /// Renders the entries that have a plan.
    renderer: EntryRenderer<'s>,
    packer: ChunkPacker,
    blocks: Vec<u8>,
}

/// The entries of a part, with their secrets replaced.
struct PartEntries {
    /// The row of the first entry.
    first: usize,
    entries: Vec<ReadEntry>,
}

impl PartEntries {
    /// The entry of this row; `None` if it is in another part.
    fn get(&self, row: usize) -> Option<&ReadEntry> {
        self.entries.get(row.checked_sub(self.first)?)
    }
}

/// The result of a call of an assistant message.
struct FoundResult {
    call_id: String,
    entry_id: String,
    is_error: bool,
}

impl<'s> PartPacker<'s> {
    pub(super) fn new(source: &'s PageSource, change: Change<'s>, prices: &'s dyn Prices) -> Self {
        let content = &source.content;
        let renderer = EntryRenderer::new(&content.bodies, ResultParts::Ids);
        Self {
            source,
            prices,
            reader: content.reader(),
            renderer: renderer
                .with_renderers(&content.renderers)
                .changed_by(change),
            packer: ChunkPacker::new(),
            blocks: Vec::new(),
        }
    }

    /// Packs the part with this number, which has the rows `rows`.
    pub(super) fn pack(&mut self, number: usize, rows: Range<usize>) -> Result<PackedPart> {
        let source = self.source;
        let mut part = PackedPart {
            body: Vec::new(),
            rows: Vec::with_capacity(rows.len()),
            stats: PageStats::default(),
            tally: RedactionTally::default(),
        };
        let fetches = source.fetches.get(rows.clone()).unwrap_or_default();
        let read = fetches.iter().map(|fetch| self.reader.entry(fetch));
        let entries = PartEntries {
            first: rows.start,
            entries: read.collect::<Result<_>>()?,
        };
        self.blocks.clear();
        self.blocks.push(b'[');
        let served = source.all.served(&source.snapshot, rows.clone());
        for ((at, served), entry) in rows.zip(served).zip(&entries.entries) {
            part.tally.add(served.entry.id, &entry.found);
            part.stats.add(at, &served.entry, &entry.json, self.prices);
            if self.blocks.len() > 1 {
                self.blocks.push(b',');
            }
            let preview = self.push_row(&mut part.rows, number, &served, entry)?;
            self.push_blocks(at, &served, &entries, preview.as_deref())?;
        }
        self.blocks.push(b']');
        part.body = self.packer.pack(&self.blocks)?;
        Ok(part)
    }

    /// Adds the row of an entry. Returns the preview that a renderer makes of the entry, if there is one.
    fn push_row(
        &mut self,
        rows: &mut Vec<Vec<u8>>,
        body: usize,
        served: &ServedRow<'_>,
        entry: &ReadEntry,
    ) -> Result<Option<String>> {
        let content = &self.source.content;
        let subject = Subject {
            calls: served.entry.role == Role::Assistant,
            ..served.entry.subject()
        };
        let look = content.look(&entry.json, subject);
        let facts = RowFacts::of_line(&entry.json, subject);
        let mut call: Option<ToolCall<'static>> = None;
        if served.entry.role == Role::ToolResult
            && let Some(id) = &facts.tool_call_id
            && let Some(outline) = self.source.outlines.last()
        {
            let callers = outline.callers_in_scope(served.row.item());
            call = self.reader.call(id, callers)?;
        }
        let label = served.entry.label.map(|label| content.clean(label));
        let mut served = served.clone();
        served.entry.label = label.as_deref();
        let parts = RowParts {
            call: call.as_ref(),
            ..RowParts::plain(&facts, &look, &self.source.head.cwd)
        };
        let mut row = Vec::with_capacity(256);
        served.push_packed(&mut row, parts, served.row.parent(), body);
        let names = self.source.outlines.last();
        if let Some(name) = names.and_then(|names| names.branch_name(served.row.item())) {
            row.pop();
            row.extend_from_slice(b",\"branchName\":");
            push_string(&mut row, &content.clean(name));
            row.push(b'}');
        }
        rows.push(row);
        let items = self.source.outlines.last().map(Outline::items);
        if subject.calls
            && let Some(item) = items.and_then(|items| items.get(served.row.item()))
        {
            self.reader.keep_calls(item.node, facts.calls);
        }
        Ok(look.preview)
    }

    fn push_blocks(
        &mut self,
        at: usize,
        served: &ServedRow<'_>,
        entries: &PartEntries,
        preview: Option<&str>,
    ) -> Result<()> {
        if let Some(plan) = self.source.plans.get(&at) {
            return self.renderer.push(&mut self.blocks, plan, ENTRY_BYTES);
        }
        let Some(entry) = entries.get(at) else {
            return Ok(());
        };
        let results = match served.entry.role {
            Role::Assistant => self.results(at, entries)?,
            _ => Vec::new(),
        };
        let results: Vec<CallResult<'_>> = results
            .iter()
            .map(|result| CallResult {
                call_id: &result.call_id,
                entry_id: &result.entry_id,
                is_error: result.is_error,
                entry: None,
            })
            .collect();
        let context = EntryContext {
            id: served.entry.id,
            is_error: served.entry.flags.has(Flags::ERROR),
            results: &results,
            preview,
            ..EntryContext::default()
        };
        render::push_entry(&mut self.blocks, &entry.json, &context, ENTRY_BYTES);
        Ok(())
    }

    /// The results of the calls of the assistant message in row `at`. The results are searched in the rows after this
    /// row. For each call, the first result counts.
    fn results(&mut self, at: usize, entries: &PartEntries) -> Result<Vec<FoundResult>> {
        let mut found: Vec<FoundResult> = Vec::new();
        let has_calls = |entry: &ReadEntry| memchr::memmem::find(&entry.json, b"\"toolCall\"");
        if entries.get(at).and_then(has_calls).is_none() {
            return Ok(found);
        }
        let source = self.source;
        let rows = source.all.rows();
        let depth = rows.get(at).map_or(0, |row| row.depth);
        let below = rows.iter().enumerate().skip(at + 1);
        let below = below
            .take(RESULT_REACH)
            .take_while(|(_, row)| row.depth > depth);
        for (number, row) in below {
            let Some(entry) = source.snapshot.entry(row.item()) else {
                continue;
            };
            match (entry.kind, entry.role) {
                (Kind::Message, Role::ToolResult) => {}
                (Kind::Message, _) => break,
                _ => continue,
            }
            let call_id = match entries.get(number) {
                Some(read) => answered_call(&read.json),
                None => self.reader.call_id_of_result(entry.place)?,
            };
            let Some(call_id) = call_id else {
                continue;
            };
            if found.iter().all(|result| result.call_id != call_id) {
                found.push(FoundResult {
                    call_id,
                    entry_id: entry.id.to_owned(),
                    is_error: entry.flags.has(Flags::ERROR),
                });
            }
        }
        Ok(found)
    }
}

/// Collects rows until they fill a chunk.
#[derive(Default)]
pub(super) struct RowBuffer {
    json: Vec<u8>,
    count: usize,
    packed: Vec<Vec<u8>>,
}

impl RowBuffer {
    pub(super) fn push(&mut self, rows: &[Vec<u8>]) -> Result<()> {
        for row in rows {
            self.json.push(if self.count == 0 { b'[' } else { b',' });
            self.json.extend_from_slice(row);
            self.count += 1;
            if self.count == CHUNK_ROWS {
                self.pack()?;
            }
        }
        Ok(())
    }

    /// The packed chunks of all rows.
    pub(super) fn finish(mut self) -> Result<Vec<Vec<u8>>> {
        if self.count > 0 {
            self.pack()?;
        }
        Ok(self.packed)
    }

    fn pack(&mut self) -> Result<()> {
        self.json.push(b']');
        self.packed.push(ChunkPacker::new().pack(&self.json)?);
        self.json.clear();
        self.count = 0;
        Ok(())
    }
}

/// An entry as clients receive it in rendered form: `RenderedEntry` of protocol.md §15.
pub(super) fn rendered(id: &str, entry: &[u8], preview: Option<&str>) -> serde_json::Value {
    let mut out = Vec::new();
    let context = EntryContext {
        id,
        preview,
        ..EntryContext::default()
    };
    render::push_entry(&mut out, entry, &context, ENTRY_BYTES);
    serde_json::from_str(&text_of(&out)).unwrap_or_default()
}

fn text_of(json: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(json)
}
