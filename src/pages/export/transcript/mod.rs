//! Exports a branch, or all branches, as a document for readers: Markdown or plain text.
//!
//! A turn is the text of one speaker: the messages of an assistant and the results of its calls are
//! one turn. [`piece`] reads the parts of an entry; [`markdown`] and [`text`] write them.

mod markdown;
mod piece;
mod row;
mod text;

use super::content::ContentSource;
use super::head::SessionHead;
use super::output::Output;
use super::request::{ExportOptions, Format, Part, Progress};
use super::tally::RedactionTally;
use crate::export::tally::Redaction;
use crate::renderers::Renderers;
use piece::pieces;
pub(super) use row::TranscriptSource;
use row::{Speaker, TranscriptRow, WrittenEntry};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::{Error, Result};
use treelined_core::timestamp::Millis;
pub(crate) use treelined_core::tree::{Flags, Node, Tree};
use treelined_core::view::{Filter, Folding, Order, Outline, Scope, Subject, Visible};
use treelined_files::cancel::Cancel;
use treelined_files::parallel::{ThreadPlan, map_in_order};
use treelined_files::session::SessionState;

/// The most threads of one export.
const THREADS: usize = 4;
/// The number of stored bytes of the entries that are written together.
const PART_BYTES: u64 = 1 << 20;

impl TranscriptSource {
    pub(super) fn take(
        state: &SessionState,
        part: Part,
        options: &ExportOptions,
        renderers: Arc<Renderers>,
        now: Millis,
    ) -> Result<Self> {
        let content = ContentSource::new(state.bodies(), renderers, options)?;
        let (scope, root) = match part {
            Part::Tree => ("tree", None),
            Part::Branch(_) => ("branch", None),
            Part::Subtree(top) => ("subtree", Some(top)),
        };
        let outline = Outline::new(
            &state.tree,
            Scope {
                root,
                filter: Filter::All,
                order: Order::ActiveFirst,
                active_last: false,
                archived: true,
            },
        );
        let matched = matched(&state.tree, part, &outline);
        let visible = Visible::new(&outline, Some(&matched), &Folding::default());
        Ok(Self {
            head: SessionHead::take(state, part, &outline, &content, now)?,
            rows: rows(state, &outline, &visible, &content)?,
            outline,
            content,
            scope,
            is_markdown: options.format == Format::Markdown,
            is_redacted: options.redacts,
        })
    }

    pub(super) fn write(
        &self,
        out: &mut Output,
        cancel: &Cancel,
        progress: Progress<'_>,
    ) -> Result<Vec<Redaction>> {
        let has_outline = self.scope != "branch";
        let head = match self.is_markdown {
            true => markdown::head(self, has_outline.then(|| self.outline_rows()).transpose()?),
            false => text::head(self),
        };
        out.write(head.as_bytes())?;
        let total = self.rows.iter().map(bytes_of).sum();
        let (mut tally, mut read) = (RedactionTally::default(), 0);
        let parts = self.parts();
        let work = |(): &mut (), number: usize| match cancel.is_cancelled() {
            true => Err(Error::cancelled()),
            false => self.part(parts.get(number).cloned().unwrap_or_default()),
        };
        let plan = ThreadPlan::up_to(THREADS);
        let done = map_in_order(
            parts.len(),
            plan,
            || (),
            work,
            |part| {
                let written = part.and_then(|(text, part_tally, bytes)| {
                    tally.append(part_tally);
                    read += bytes;
                    progress(read, total);
                    out.write(text.as_bytes())
                });
                match written {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => ControlFlow::Break(error),
                }
            },
        );
        match done {
            ControlFlow::Continue(()) => Ok(tally.into_redactions()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// The text of some rows, the secrets replaced in it, and the number of their stored bytes.
    fn part(&self, range: Range<usize>) -> Result<(String, RedactionTally, u64)> {
        let mut reader = self.content.reader();
        let (mut out, mut tally, mut bytes) = (String::new(), RedactionTally::default(), 0);
        for row in self.rows.get(range).unwrap_or_default() {
            let entry = reader.entry(&row.fetch)?;
            bytes += bytes_of(row);
            let id =
                treelined_core::json::get(&entry.json, "id").and_then(treelined_core::json::id);
            tally.add(&id.unwrap_or_default(), &entry.found);
            let look = self.content.look(&entry.json, row.subject);
            let mut call = None;
            if row.subject.role == Role::ToolResult
                && let Some(id) = piece::call_id(&entry.json)
            {
                call = reader.call(&id, self.outline.callers_in_scope(row.item))?;
            }
            let pieces = pieces(&entry.json, row.subject, call.as_ref(), look.preview);
            let written = WrittenEntry { row, pieces };
            match self.is_markdown {
                true => markdown::push_entry(&mut out, &written),
                false => text::push_entry(&mut out, &written),
            }
        }
        Ok((out, tally, bytes))
    }

    /// The rows of the outline, each with the first line of its entry.
    fn outline_rows(&self) -> Result<Vec<(&TranscriptRow, String)>> {
        let mut reader = self.content.reader();
        let mut rows = Vec::new();
        let is_listed =
            |row: &&TranscriptRow| row.begins.is_some() && row.speaker != Speaker::Assistant;
        for row in self.rows.iter().filter(is_listed) {
            let entry = reader.entry(&row.fetch)?;
            let preview = treelined_core::view::RowFacts::of_line(&entry.json, row.subject).preview;
            rows.push((row, preview.into_owned()));
        }
        Ok(rows)
    }

    fn parts(&self) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let (mut start, mut bytes) = (0, 0);
        for (at, row) in self.rows.iter().enumerate() {
            bytes += bytes_of(row);
            if bytes >= PART_BYTES || at + 1 == self.rows.len() {
                parts.push(start..at + 1);
                (start, bytes) = (at + 1, 0);
            }
        }
        parts
    }
}

fn bytes_of(row: &TranscriptRow) -> u64 {
    u64::from(row.fetch.place.len)
}

/// For each item, whether the document has it.
fn matched(tree: &Tree, part: Part, outline: &Outline) -> Vec<bool> {
    let mut path = match part {
        Part::Branch(tip) => tree.path(tip),
        Part::Tree | Part::Subtree(_) => Vec::new(),
    };
    path.sort_unstable();
    let is_in = |node: Node| match part {
        Part::Branch(_) => path.binary_search(&node).is_ok(),
        Part::Tree | Part::Subtree(_) => true,
    };
    let items = outline.items().iter();
    items
        .map(|item| is_in(item.node) && speaker(tree, item.node).is_some())
        .collect()
}

/// The speaker of an entry; `None` for entries that readers do not see.
fn speaker(tree: &Tree, node: Node) -> Option<Speaker> {
    let is_hidden = tree.flags(node).has(Flags::HIDDEN);
    match (tree.kind(node), tree.role(node)) {
        (Kind::Message, role) => Some(match role {
            Role::User => Speaker::User,
            Role::Assistant | Role::ToolResult => Speaker::Assistant,
            Role::BashExecution => Speaker::Command,
            Role::System => Speaker::System,
            Role::Custom if is_hidden => return None,
            Role::Custom => Speaker::Plugin,
            Role::BranchSummary => Speaker::BranchSummary,
            Role::CompactionSummary => Speaker::Compaction,
            _ => Speaker::Other,
        }),
        (Kind::CustomMessage, _) if !is_hidden => Some(Speaker::Plugin),
        (Kind::BranchSummary, _) => Some(Speaker::BranchSummary),
        (Kind::Compaction, _) => Some(Speaker::Compaction),
        _ => None,
    }
}

fn rows(
    state: &SessionState,
    outline: &Outline,
    visible: &Visible,
    content: &ContentSource,
) -> Result<Vec<TranscriptRow>> {
    let (tree, bodies) = (&state.tree, state.bodies());
    let mut rows: Vec<TranscriptRow> = Vec::with_capacity(visible.total());
    // The number of the turn of each row.
    let mut turns: Vec<usize> = Vec::with_capacity(visible.total());
    for row in visible.rows() {
        let Some(node) = outline.items().get(row.item()).map(|item| item.node) else {
            continue;
        };
        let Some(speaker) = speaker(tree, node) else {
            continue;
        };
        let follows = rows.len().checked_sub(1) == row.parent();
        let goes_on = follows
            && speaker == Speaker::Assistant
            && rows.last().is_some_and(|last| last.speaker == speaker);
        let turn = turns.last().copied().unwrap_or_default() + usize::from(!goes_on);
        turns.push(turn);
        let back_to = row.parent().filter(|_| !follows);
        rows.push(TranscriptRow {
            fetch: bodies.fetch(tree, node)?,
            item: row.item(),
            subject: Subject {
                kind: tree.kind(node),
                role: tree.role(node),
                flags: tree.flags(node),
                calls: false,
            },
            speaker,
            begins: (!goes_on).then_some(turn),
            back_to: back_to.and_then(|parent| turns.get(parent).copied()),
            indent: row.indent as usize,
            timestamp: tree.timestamp(node),
            label: tree.label(node).map(|label| content.clean(&label.text)),
            is_on_active_path: row.on_active_path,
        });
    }
    Ok(rows)
}
