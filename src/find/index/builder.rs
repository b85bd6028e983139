//! Reads the lines of session files into a segment.

use super::segment::{Block, BlockTimes, EntryScores, FieldWords, SegmentWriter};
use super::words::each_word;
use crate::request::ScoreSet;
use crate::weights::weight;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::{ControlFlow, Range};
use treelined_core::entry::{Facts, Kind, Line, Role, scan};
use treelined_core::search::{FieldKind, decoded, each_field_with_kind};
use treelined_core::{json, timestamp};
use treelined_files::cancel::Cancel;
use treelined_files::log::lines::Lines;

/// The bytes of lines in a block. To find one match, at least one block is scanned.
const BLOCK: u64 = 64 << 10;
/// The most bytes of labels and names that the index keeps for a file.
pub(super) const LABEL_BYTES: usize = 16 << 10;
/// Bytes of the longest id that a tree accepts.
const LONGEST_ID: usize = u16::MAX as usize;

/// The labels and names in a part of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LabelTexts {
    pub texts: Vec<String>,
    /// The names of the session.
    pub names: Vec<String>,
    /// Whether there are more labels and names than are kept.
    pub are_more: bool,
}

impl LabelTexts {
    /// Adds the label or the name in an entry.
    fn push(&mut self, kind: Kind, text: &str) {
        let all = self.texts.iter().chain(&self.names);
        let bytes: usize = all.map(String::len).sum();
        match kind {
            _ if bytes + text.len() > LABEL_BYTES => self.are_more = true,
            Kind::Label => self.texts.push(text.to_owned()),
            _ => self.names.push(text.to_owned()),
        }
    }
}

/// Adds the lines of one file to a segment.
pub(super) struct FileReader<'w> {
    writer: &'w mut SegmentWriter,
    block: OpenBlock,
    labels: LabelTexts,
    /// The hashes of the ids in the lines so far.
    ids: HashSet<u64>,
    hasher: RandomState,
    /// Whether each line so far is an entry with its own id, below a header.
    is_plain: bool,
    /// The directory in the header, if that is the first line.
    cwd: Option<String>,
}

impl<'w> FileReader<'w> {
    /// `key` is the key of the file in the index. `labels` and `cwd` come from the earlier lines of the file.
    pub(super) fn new(
        writer: &'w mut SegmentWriter,
        key: u64,
        labels: LabelTexts,
        cwd: Option<String>,
    ) -> Self {
        Self {
            writer,
            block: OpenBlock::new(key),
            labels,
            cwd,
            ids: HashSet::new(),
            hasher: RandomState::new(),
            is_plain: true,
        }
    }

    /// Reads the complete lines of a part of the file; returns their end. If the read is cancelled, it stops at the end
    /// of a block.
    pub(super) fn read(
        &mut self,
        file: &File,
        span: Range<u64>,
        cancel: &Cancel,
    ) -> io::Result<u64> {
        let mut lines = Lines::new(file, span.start);
        self.block.begin(span.start);
        // If the read does not begin at the start of the file, the ids of the earlier lines are unknown.
        self.is_plain = span.start == 0;
        while let Some(line) = lines.next()? {
            let end = line.offset + line.len + 1;
            // An incomplete line waits for the next update.
            if !line.terminated || end > span.end {
                break;
            }
            match line.bytes {
                Some(bytes) => self.line(bytes, line.offset == 0),
                None => self.skip(),
            }
            self.block.end = end;
            if end - self.block.start >= BLOCK {
                self.block.close(self.writer);
                if cancel.is_cancelled() {
                    break;
                }
            }
        }
        self.block.close(self.writer);
        Ok(self.block.start)
    }

    /// The labels of the file, its directory, and whether it is plain.
    pub(super) fn finish(self) -> (LabelTexts, Option<String>, bool) {
        (self.labels, self.cwd, self.is_plain)
    }

    fn skip(&mut self) {
        self.block.is_opaque = true;
        self.is_plain = false;
    }

    fn line(&mut self, bytes: &[u8], is_first: bool) {
        let scanned = match simdutf8::basic::from_utf8(bytes) {
            Ok(_) => scan::scan_line(bytes).ok(),
            Err(_) => None,
        };
        let Some(scanned) = scanned else {
            return self.skip();
        };
        self.is_plain &= bytes.first() == Some(&b'{') && self.is_plain_line(&scanned, is_first);
        let envelope = match scanned {
            Line::Entry(envelope) => envelope,
            Line::Header(header) if is_first => {
                self.cwd = header.cwd.map(|cwd| cwd.into_owned());
                return;
            }
            _ => return,
        };
        let at = envelope.timestamp.as_deref().and_then(timestamp::parse);
        self.block.has_labels |= envelope.kind == Kind::Label;
        let role = match envelope.facts {
            Facts::Message { role, .. } => role,
            _ => Role::None,
        };
        let (mut scores, mut calls) = (ScoreSet::default(), false);
        each_field_with_kind(bytes, envelope.kind, role, |kind, raw| {
            let (score, text) = (weight(kind, role), decoded(raw));
            scores = scores | ScoreSet::of(score);
            calls |= kind == FieldKind::ToolCalls;
            if kind == FieldKind::Labels {
                self.labels.push(envelope.kind, &text);
            }
            self.block.times.add(score, at);
            let mut words = FieldWords {
                writer: self.writer,
                score,
            };
            each_word(&text, &mut words);
            ControlFlow::Continue(())
        });
        if envelope.kind == Kind::Message {
            // The filter of entries reads the role and the tool in the same way.
            let message = json::get(bytes, "message").unwrap_or_default();
            let [role, tool] = json::get_each(message, ["role", "toolName"]);
            let role = role.and_then(json::string).unwrap_or_default();
            let uses_tool = calls || tool.is_some();
            self.block.of_entries.add(&role, uses_tool, scores);
        }
    }

    /// Whether a line is plain. The first line must be the header. Each other line must be an entry whose id no earlier
    /// line has.
    fn is_plain_line(&mut self, line: &Line<'_>, is_first: bool) -> bool {
        match line {
            // Entries of version 1 have no ids.
            Line::Header(header) => is_first && header.version > 1 && header.id.is_some(),
            Line::Entry(envelope) => {
                let id = envelope.id.as_deref();
                // A branch record may archive entries, and only the tree knows which ones.
                let is_record = matches!(envelope.facts, Facts::BranchRecord { .. });
                let id = id.filter(|id| !is_first && !is_record && id.len() <= LONGEST_ID);
                // Two different ids have the same hash with a probability of 2^-64. Then the file counts as not plain,
                // and is only searched more slowly.
                id.is_some_and(|id| self.ids.insert(self.hasher.hash_one(id)))
            }
            Line::Title(_) | Line::Blank => false,
        }
    }
}

/// The block that lines are added to; the writer has its words.
struct OpenBlock {
    file: u64,
    start: u64,
    end: u64,
    of_entries: EntryScores,
    times: BlockTimes,
    has_labels: bool,
    is_opaque: bool,
}

impl OpenBlock {
    fn new(file: u64) -> Self {
        Self {
            file,
            start: 0,
            end: 0,
            of_entries: EntryScores::default(),
            times: BlockTimes::default(),
            has_labels: false,
            is_opaque: false,
        }
    }

    fn begin(&mut self, start: u64) {
        *self = Self::new(self.file);
        (self.start, self.end) = (start, start);
    }

    /// Ends the block, and begins the next one at its end.
    fn close(&mut self, writer: &mut SegmentWriter) {
        if self.end > self.start {
            writer.close(Block {
                file: self.file,
                span: self.start..self.end,
                scores: ScoreSet::default(),
                of_entries: self.of_entries,
                times: self.times,
                has_labels: self.has_labels,
                is_opaque: self.is_opaque,
            });
        }
        self.begin(self.end);
    }
}
