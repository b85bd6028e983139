//! Writes one file of the index: the words of some blocks of lines. It is written once and never changed; [`super::lookup`]
//! reads it.
//!
//! A segment is lists of blocks, then the vocabulary, then a table of groups of words, then the blocks, then the sets of
//! letters and of joints, then a footer with the lengths of the first four parts. The vocabulary has each word once, in the order of its first block, between
//! line breaks. A group is [`GROUP`] adjacent words: the table has the place of its first word in the vocabulary, and
//! that of its first list. A list has the place of its word in the group, the number of its bytes, and for each block
//! with the word one number: the distance to the block before, and the scores of the fields that have the word.
//! The set of letters of some adjacent groups has the triples of adjacent bytes of their words, so that a search for a
//! part of a word reads little of the vocabulary. The set of joints of a block has the places where two words of it
//! meet, so that a search for a phrase of common words reads few blocks.

use super::signature::{SetShape, SetWriter};
use super::words::WordTaker;
use crate::bytes::{Cursor, Fields};
use crate::session_search::request::ScoreSet;
use crate::timestamp::Millis;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

/// Words of a group.
pub(super) const GROUP: usize = 32;
/// Bytes of the footer.
pub(super) const FOOTER: usize = 4 * 8;
/// Bytes of a group in the table.
pub(super) const GROUP_BYTES: usize = 8;
/// Bytes of a block in the table.
pub(super) const BLOCK_BYTES: usize = (4 + ScoreSet::BITS as usize) * 8 + 2;
/// Groups with a common set of letters.
pub(super) const LETTER_GROUPS: usize = 16;
/// Sets of letters: 512 words have some 3,000 triples.
pub(super) const LETTERS: SetShape = SetShape {
    rows: 8 << 10,
    bits: 1,
};
/// Sets of joints: 64 KiB of prose have some 9,000. One in a hundred blocks seems to have a joint that it lacks.
pub(super) const JOINTS: SetShape = SetShape {
    rows: 96 << 10,
    bits: 3,
};

/// Lines of a file with a common row in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The key of the file.
    pub file: u64,
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    /// The scores of its fields.
    pub scores: ScoreSet,
    pub times: BlockTimes,
    /// Whether the block has labels: their hits are other entries, at any time.
    pub has_labels: bool,
    /// Whether the block may have text that the index lacks, as in damaged lines.
    pub is_opaque: bool,
}

/// The times of the entries of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockTimes {
    /// That of the first entry; the minimum if an entry has no time.
    pub oldest: Millis,
    /// For each score, the lowest first, that of the last entry with a field of it; the maximum if such an entry has no
    /// time.
    newest: [Millis; ScoreSet::BITS as usize],
}

impl Default for BlockTimes {
    fn default() -> Self {
        Self {
            oldest: Millis::MAX,
            newest: [Millis::MIN; ScoreSet::BITS as usize],
        }
    }
}

impl BlockTimes {
    /// Adds an entry with a field of this score.
    pub(super) fn add(&mut self, score: u8, at: Option<Millis>) {
        self.oldest = self.oldest.min(at.unwrap_or(Millis::MIN));
        let place = usize::from(score).checked_sub(1);
        if let Some(newest) = place.and_then(|place| self.newest.get_mut(place)) {
            *newest = (*newest).max(at.unwrap_or(Millis::MAX));
        }
    }

    pub(super) fn newest(&self, score: u8) -> Millis {
        let place = usize::from(score).checked_sub(1);
        let newest = place.and_then(|place| self.newest.get(place));
        newest.copied().unwrap_or(Millis::MAX)
    }
}

impl Block {
    fn put(&self, out: &mut Fields) {
        out.u64(self.file);
        out.u64(self.span.start);
        out.u64(self.span.end);
        out.i64(self.times.oldest);
        self.times.newest.iter().for_each(|at| out.i64(*at));
        out.u8(self.scores.bits());
        out.u8(u8::from(self.has_labels) | u8::from(self.is_opaque) << 1);
    }

    pub(super) fn get(fields: &mut Cursor<'_>) -> Option<Self> {
        let (file, span) = (fields.u64()?, fields.u64()?..fields.u64()?);
        let mut times = BlockTimes {
            oldest: fields.i64()?,
            ..BlockTimes::default()
        };
        for newest in &mut times.newest {
            *newest = fields.i64()?;
        }
        let (scores, flags) = (ScoreSet::of_bits(fields.u8()?), fields.u8()?);
        Some(Self {
            file,
            span,
            scores,
            times,
            has_labels: flags & 1 != 0,
            is_opaque: flags & 2 != 0,
        })
    }
}

/// Collects a segment: the words of one block after the other.
pub(super) struct SegmentWriter {
    /// Each word once, between line breaks.
    vocabulary: Vec<u8>,
    words: Vec<KnownWord>,
    /// Numbers of words.
    known: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The words of the open block.
    open: Vec<u32>,
    /// The joints of each block.
    joints: SetWriter,
    blocks: Vec<Block>,
}

/// Adds the words of a field to the open block.
pub(super) struct FieldWords<'w> {
    pub writer: &'w mut SegmentWriter,
    pub score: u8,
}

impl WordTaker for FieldWords<'_> {
    fn word(&mut self, word: &str) {
        self.writer.word(word, self.score);
    }

    fn joint(&mut self, hash: u64) {
        self.writer.joints.add(hash);
    }
}

/// A word of the vocabulary.
struct KnownWord {
    /// Where it begins in the vocabulary.
    at: u32,
    len: u16,
    /// The scores of the fields of the open block that have it.
    scores: ScoreSet,
    /// The number of blocks up to the last one in the list.
    listed: u32,
    /// The list of its blocks.
    list: Vec<u8>,
}

impl KnownWord {
    fn text<'v>(&self, vocabulary: &'v [u8]) -> &'v [u8] {
        let at = self.at as usize;
        let text = vocabulary.get(at..at + usize::from(self.len));
        text.unwrap_or_default()
    }
}

impl SegmentWriter {
    pub(super) fn new() -> Self {
        Self {
            vocabulary: vec![b'\n'],
            words: Vec::new(),
            known: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            open: Vec::new(),
            joints: SetWriter::new(JOINTS),
            blocks: Vec::new(),
        }
    }

    /// Adds a word to the open block, in a field with this score; it may come several times.
    fn word(&mut self, word: &str, score: u8) {
        let Self {
            vocabulary,
            words,
            known,
            hasher,
            open,
            ..
        } = self;
        let text = |number: &u32| match words.get(*number as usize) {
            Some(known) => known.text(vocabulary),
            None => b"",
        };
        let hash = hasher.hash_one(word.as_bytes());
        let is_it = |number: &u32| text(number) == word.as_bytes();
        let entry = known.entry(hash, is_it, |number| hasher.hash_one(text(number)));
        let number = match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let numbers = u32::try_from(words.len()).ok();
                let (Some(number), Ok(at)) = (numbers, u32::try_from(vocabulary.len())) else {
                    debug_assert!(false, "the vocabulary of a segment is limited");
                    return;
                };
                place.insert(number);
                let len = u16::try_from(word.len()).unwrap_or_default();
                debug_assert_eq!(usize::from(len), word.len(), "words are short");
                words.push(KnownWord {
                    at,
                    len,
                    scores: ScoreSet::default(),
                    listed: 0,
                    list: Vec::new(),
                });
                vocabulary.extend_from_slice(word.as_bytes());
                vocabulary.push(b'\n');
                number
            }
        };
        if let Some(known) = words.get_mut(number as usize) {
            if known.scores.is_empty() {
                open.push(number);
            }
            known.scores = known.scores | ScoreSet::of(score);
        }
    }

    /// Ends the open block with its words, and opens the next one. Its scores are those of its words.
    pub(super) fn close(&mut self, block: Block) {
        let count = u32::try_from(self.blocks.len() + 1).unwrap_or(u32::MAX);
        let mut scores = ScoreSet::default();
        for number in self.open.drain(..) {
            if let Some(word) = self.words.get_mut(number as usize) {
                let of_word = std::mem::take(&mut word.scores);
                let distance = u64::from(count - word.listed);
                put_number(
                    &mut word.list,
                    distance << ScoreSet::BITS | u64::from(of_word.bits()),
                );
                word.listed = count;
                scores = scores | of_word;
            }
        }
        self.joints.close();
        self.blocks.push(Block { scores, ..block });
    }

    /// Bytes of all words, each counted once.
    pub(super) fn vocabulary_bytes(&self) -> usize {
        self.vocabulary.len()
    }

    /// The letters of each [`LETTER_GROUPS`] groups.
    fn letters(&self) -> SetWriter {
        let mut sets = SetWriter::new(LETTERS);
        for words in self.words.chunks(GROUP * LETTER_GROUPS) {
            for word in words {
                let at = word.at as usize;
                // With the line breaks around it.
                let text = self.vocabulary.get(at - 1..=at + usize::from(word.len));
                letters(text.unwrap_or_default()).for_each(|hash| sets.add(hash));
            }
            sets.close();
        }
        sets
    }

    pub(super) fn finish(self, file: &File) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let (mut groups, mut lists_len, mut list) = (Fields::default(), 0_u64, Vec::new());
        for group in self.words.chunks(GROUP) {
            let at = group.first().map_or(0, |word| word.at);
            groups.u32(at);
            groups.u32(u32::try_from(lists_len).map_err(io::Error::other)?);
            for word in group {
                list.clear();
                put_number(&mut list, u64::from(word.at - at));
                put_number(&mut list, word.list.len() as u64);
                out.write_all(&list)?;
                out.write_all(&word.list)?;
                lists_len += (list.len() + word.list.len()) as u64;
            }
        }
        let mut blocks = Fields::default();
        self.blocks.iter().for_each(|block| block.put(&mut blocks));
        let mut footer = Fields::default();
        footer.u64(lists_len);
        for part in [&self.vocabulary, &groups.0, &blocks.0] {
            out.write_all(part)?;
            footer.count(part.len());
        }
        self.letters().write(&mut out)?;
        self.joints.write(&mut out)?;
        out.write_all(&footer.0)?;
        out.flush()
    }
}

/// The hashes of the triples of adjacent bytes of a word with line breaks around it, or of a part of that.
pub(super) fn letters(word: &[u8]) -> impl Iterator<Item = u64> {
    word.windows(3).map(|bytes| {
        let number = bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        // Fibonacci hashing: the upper bits are mixed best.
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    })
}

/// Writes a number in groups of seven bits, the lowest first.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        let [lowest, ..] = number.to_le_bytes();
        out.push(lowest | 0x80);
        number >>= 7;
    }
    let [last, ..] = number.to_le_bytes();
    out.push(last);
}

/// Reads a number that [`put_number`] has written.
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
