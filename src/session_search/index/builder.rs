//! Reads the lines of session files into a segment.

use super::segment::{Block, SegmentWriter};
use super::words::each_word;
use crate::cancel::Cancel;
use crate::entry::{Facts, Kind, Line, scan};
use crate::log::lines::Lines;
use crate::search::{decoded, each_field, folded_text};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};

/// Bytes of lines in a block: a match scans at least as many.
const BLOCK: u64 = 128 << 10;
/// Bytes of the labels of a file that are kept with it.
const LABEL_BYTES: usize = 16 << 10;

/// The labels in a part of a file, folded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LabelTexts {
    pub texts: Vec<String>,
    /// Whether there are more than are kept.
    pub are_more: bool,
}

impl LabelTexts {
    pub(super) fn push(&mut self, folded: String) {
        let bytes: usize = self.texts.iter().map(String::len).sum();
        match bytes + folded.len() <= LABEL_BYTES {
            true => self.texts.push(folded),
            false => self.are_more = true,
        }
    }
}

/// Adds the complete lines of a part of a file to a segment; returns their end. Stops early, at the end of a block, if
/// it is cancelled.
pub(super) fn add(
    writer: &mut SegmentWriter,
    file: &File,
    key: u64,
    span: Range<u64>,
    labels: &mut LabelTexts,
    cancel: &Cancel,
) -> io::Result<u64> {
    let mut lines = Lines::new(file, span.start);
    let mut block = OpenBlock::new(key, span.start);
    while let Some(line) = lines.next()? {
        let end = line.offset + line.len + 1;
        // An incomplete line waits for the next update.
        if !line.terminated || end > span.end {
            break;
        }
        match line.bytes {
            Some(bytes) => block.line(bytes, labels),
            None => block.is_opaque = true,
        }
        block.end = end;
        if block.end - block.start >= BLOCK {
            block.close(writer)?;
            if cancel.is_cancelled() {
                break;
            }
        }
    }
    block.close(writer)?;
    Ok(block.start)
}

/// The block that lines are added to.
struct OpenBlock {
    file: u64,
    start: u64,
    end: u64,
    is_opaque: bool,
    words: HashSet<String>,
}

impl OpenBlock {
    fn new(file: u64, start: u64) -> Self {
        Self {
            file,
            start,
            end: start,
            is_opaque: false,
            words: HashSet::new(),
        }
    }

    fn line(&mut self, bytes: &[u8], labels: &mut LabelTexts) {
        let scanned = match simdutf8::basic::from_utf8(bytes) {
            Ok(_) => scan::scan_line(bytes).ok(),
            Err(_) => None,
        };
        let envelope = match scanned {
            Some(Line::Entry(envelope)) => envelope,
            Some(Line::Header(_) | Line::Title(_) | Line::Blank) => return,
            None => {
                self.is_opaque = true;
                return;
            }
        };
        if let (
            Kind::Label,
            Facts::Label {
                label: Some(label), ..
            },
        ) = (envelope.kind, &envelope.facts)
        {
            labels.push(folded_text(label));
        }
        let words = &mut self.words;
        each_field(bytes, envelope.kind, |raw| {
            each_word(&decoded(raw), |word| {
                if !words.contains(word) {
                    words.insert(word.to_owned());
                }
            });
            ControlFlow::Continue(())
        });
    }

    /// Writes the block, and begins the next one at its end.
    fn close(&mut self, writer: &mut SegmentWriter) -> io::Result<()> {
        if self.end > self.start {
            let block = Block {
                file: self.file,
                span: self.start..self.end,
                is_opaque: self.is_opaque,
            };
            let words = self.words.iter().map(String::as_str);
            writer.push(&block, words).map_err(io::Error::other)?;
        }
        self.start = self.end;
        self.is_opaque = false;
        self.words.clear();
        Ok(())
    }
}
