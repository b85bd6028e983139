//! Writes one file of the index: the words of some blocks of lines. The file is written once and never changed;
//! [`super::lookup`] reads it.
//!
//! A segment has these parts, in this order: lists of blocks, the vocabulary, a table of groups of words, the blocks,
//! the sets of letters and of joints, and a footer with the lengths of the first four parts. The vocabulary has each
//! word once, in the order of its first block, between line breaks. A group is [`GROUP`] adjacent words. For each
//! group, the table has the offset of its first word in the vocabulary and the offset of its first list. A list belongs
//! to one word. It has the position of the word in the group, and its own length in bytes. Then it has one number for
//! each block with the word, made of the distance to the block before and the scores of the fields that have the word.
//! A set of letters belongs to [`LETTER_GROUPS`] adjacent groups, and has every sequence of three bytes in their words.
//! With it, a search for a part of a word reads little of the vocabulary. A set of joints belongs to one block, and has
//! the joints of its words: where one word ends and the next one begins. With it, a search for a phrase of common words
//! reads few blocks.

use super::signature::{SetShape, SetWriter};
use super::words::WordTaker;
use crate::request::{EntryFilter, ScoreSet};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufWriter, Write};
use std::ops::{BitXor, Range};
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::entry::Role;
use treelined_core::timestamp::Millis;

/// Words of a block that are looked up in the vocabulary together.
const PREFETCHED: usize = 256;
/// The memory for the words of a block is used again for the next block, unless it has more than this number of bytes.
const LARGEST_KEPT: usize = 1 << 20;
/// Words of a group.
pub(super) const GROUP: usize = 32;
/// Bytes of the footer.
pub(super) const FOOTER: usize = 4 * 8;
/// Bytes of a group in the table.
pub(super) const GROUP_BYTES: usize = 8;
/// Bytes of a block in the table.
pub(super) const BLOCK_BYTES: usize = (4 + ScoreSet::BITS as usize) * 8 + 2 + EntryScores::BYTES;
/// The number of groups that share one set of letters.
pub(super) const LETTER_GROUPS: usize = 16;
/// The shape of sets of letters. 512 words have about 3,000 sequences of three bytes.
pub(super) const LETTERS: SetShape = SetShape {
    rows: 8 << 10,
    bits: 1,
};
/// The shape of sets of joints. 64 KiB of prose have about 9,000 joints. Of the blocks that do not have a joint, about
/// one in a hundred seems to have the joint.
pub(super) const JOINTS: SetShape = SetShape {
    rows: 96 << 10,
    bits: 3,
};

/// Adjacent lines of a file that have one row together in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The key of the file.
    pub file: u64,
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    /// The scores of its fields.
    pub scores: ScoreSet,
    pub of_entries: EntryScores,
    pub times: BlockTimes,
    /// Whether the block has labels. The hit of a label is the labelled entry, which may have any time.
    pub has_labels: bool,
    /// Whether the block may have text that the index lacks, as in damaged lines.
    pub is_opaque: bool,
}

/// The scores of the fields of a block, for each kind of entry that a filter can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EntryScores {
    user: ScoreSet,
    assistant: ScoreSet,
    tool_result: ScoreSet,
    /// Messages of other roles.
    others: ScoreSet,
    /// Messages that call a tool or name one.
    tools: ScoreSet,
}

impl EntryScores {
    const BYTES: usize = 5;

    fn of_role(&mut self, role: &str) -> &mut ScoreSet {
        match Role::of(role) {
            Role::User => &mut self.user,
            Role::Assistant => &mut self.assistant,
            Role::ToolResult => &mut self.tool_result,
            _ => &mut self.others,
        }
    }

    /// Adds a message with fields of these scores.
    pub(super) fn add(&mut self, role: &str, uses_tool: bool, scores: ScoreSet) {
        let of_role = self.of_role(role);
        *of_role = *of_role | scores;
        if uses_tool {
            self.tools = self.tools | scores;
        }
    }

    /// The scores of the entries that may pass a filter.
    pub(super) fn passing(mut self, filter: &EntryFilter) -> ScoreSet {
        let mut scores = ScoreSet::ALL;
        if let Some(role) = &filter.role {
            scores = scores & *self.of_role(role);
        }
        if filter.tool.is_some() {
            scores = scores & self.tools;
        }
        scores
    }

    fn put(self, out: &mut Fields) {
        let all = [
            self.user,
            self.assistant,
            self.tool_result,
            self.others,
            self.tools,
        ];
        all.iter().for_each(|scores| out.u8(scores.bits()));
    }

    fn get(fields: &mut Cursor<'_>) -> Option<Self> {
        let mut next = || Some(ScoreSet::of_bits(fields.u8()?));
        Some(Self {
            user: next()?,
            assistant: next()?,
            tool_result: next()?,
            others: next()?,
            tools: next()?,
        })
    }
}

/// The times of the entries of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockTimes {
    /// The time of the oldest entry; the smallest number if an entry has no time.
    pub oldest: Millis,
    /// For each score, the lowest first: the time of the newest entry with a field of this score. It is the largest
    /// number if one of these entries has no time.
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
    /// The flag in the last byte of a stored block that says that the block is opaque.
    const OPAQUE: u8 = 2;

    fn put(&self, out: &mut Fields) {
        out.u64(self.file);
        out.u64(self.span.start);
        out.u64(self.span.end);
        out.i64(self.times.oldest);
        self.times.newest.iter().for_each(|at| out.i64(*at));
        self.of_entries.put(out);
        out.u8(self.scores.bits());
        let opaque = u8::from(self.is_opaque) * Self::OPAQUE;
        out.u8(u8::from(self.has_labels) | opaque);
    }

    /// Whether a stored block is opaque, without reading the rest of it.
    pub(super) fn is_stored_opaque(block: &[u8]) -> bool {
        block.last().is_some_and(|flags| flags & Self::OPAQUE != 0)
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
        let of_entries = EntryScores::get(fields)?;
        let (scores, flags) = (ScoreSet::of_bits(fields.u8()?), fields.u8()?);
        Some(Self {
            file,
            span,
            scores,
            of_entries,
            times,
            has_labels: flags & 1 != 0,
            is_opaque: flags & Self::OPAQUE != 0,
        })
    }
}

/// Collects a segment: the words of one block after the other.
pub(super) struct SegmentWriter {
    /// Each word once, between line breaks.
    vocabulary: Vec<u8>,
    words: Vec<KnownWord>,
    known: HashTable<WordSlot>,
    /// The words of the open block.
    open: BlockWords,
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
        self.writer.open.add(word.as_bytes(), self.score);
    }

    fn joint(&mut self, hash: u64) {
        self.writer.joints.add(hash);
    }
}

/// The part of a word's hash that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WordHash(u32);

impl WordHash {
    fn of(word: &[u8], hasher: &DefaultHashBuilder) -> Self {
        let [a, b, c, d, ..] = hasher.hash_one(word).to_le_bytes();
        Self(u32::from_le_bytes([a, b, c, d]))
    }

    /// The hash as 64 bits, which a table needs. The lower bits choose the slot, and the upper bits are compared before
    /// the word.
    fn wide(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}

/// The slot of a word in a table. The hash excludes most other words, so that their texts are not read.
#[derive(Debug, Clone, Copy)]
struct WordSlot {
    hash: WordHash,
    number: u32,
}

/// The words of one block, each once. They are few enough to stay in the processor's cache. The vocabulary of a segment
/// is too large for that, so it is searched only once for each of these words.
#[derive(Default)]
struct BlockWords {
    texts: Vec<u8>,
    words: Vec<BlockWord>,
    known: HashTable<WordSlot>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug, Clone, Copy)]
struct BlockWord {
    /// Where it begins in the texts.
    at: u32,
    len: u32,
    hash: WordHash,
    /// The scores of the fields that have it.
    scores: ScoreSet,
}

impl BlockWords {
    fn text(&self, word: &BlockWord) -> &[u8] {
        let at = word.at as usize;
        let text = self.texts.get(at..at + word.len as usize);
        text.unwrap_or_default()
    }

    /// Adds a word of a field with this score. The same word may be added several times.
    fn add(&mut self, word: &[u8], score: u8) {
        let hash = WordHash::of(word, &self.hasher);
        let is_it = |slot: &WordSlot| {
            let known = self.words.get(slot.number as usize);
            slot.hash == hash && known.is_some_and(|known| self.text(known) == word)
        };
        let known = self.known.find(hash.wide(), is_it);
        if let Some(WordSlot { number, .. }) = known.copied() {
            if let Some(known) = self.words.get_mut(number as usize) {
                known.scores = known.scores | ScoreSet::of(score);
            }
            return;
        }
        let place = |len: usize| u32::try_from(len).ok();
        let (Some(number), Some(at), Some(len)) = (
            place(self.words.len()),
            place(self.texts.len()),
            place(word.len()),
        ) else {
            debug_assert!(false, "a line has less than 4 GiB");
            return;
        };
        let slot = WordSlot { hash, number };
        self.known
            .insert_unique(hash.wide(), slot, |slot| slot.hash.wide());
        self.texts.extend_from_slice(word);
        self.words.push(BlockWord {
            at,
            len,
            hash,
            scores: ScoreSet::of(score),
        });
    }

    fn clear(&mut self) {
        self.texts.clear();
        self.words.clear();
        self.known.clear();
        // The memory that a long line needed is released.
        if self.texts.capacity() > LARGEST_KEPT {
            self.texts = Vec::new();
            self.words = Vec::new();
            self.known = HashTable::new();
        }
    }
}

/// A word of the vocabulary.
struct KnownWord {
    /// Where it begins in the vocabulary.
    at: u32,
    len: u16,
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
            open: BlockWords::default(),
            joints: SetWriter::new(JOINTS),
            blocks: Vec::new(),
        }
    }

    /// The number of a word in the vocabulary. Adds the word if it is new. `None` if the vocabulary is full.
    fn number(&mut self, word: &[u8], hash: WordHash) -> Option<u32> {
        let Self {
            vocabulary,
            words,
            known,
            ..
        } = self;
        let is_it = |slot: &WordSlot| {
            let known = words.get(slot.number as usize);
            slot.hash == hash && known.is_some_and(|known| known.text(vocabulary) == word)
        };
        let place = match known.entry(hash.wide(), is_it, |slot| slot.hash.wide()) {
            Entry::Occupied(known) => return Some(known.get().number),
            Entry::Vacant(place) => place,
        };
        let (number, at) = (
            u32::try_from(words.len()).ok()?,
            u32::try_from(vocabulary.len()).ok()?,
        );
        place.insert(WordSlot { hash, number });
        let len = u16::try_from(word.len()).unwrap_or_default();
        debug_assert_eq!(usize::from(len), word.len(), "words are short");
        words.push(KnownWord {
            at,
            len,
            listed: 0,
            list: Vec::new(),
        });
        vocabulary.extend_from_slice(word);
        vocabulary.push(b'\n');
        Some(number)
    }

    /// Loads the slots of known words into the processor's cache. Separate look-ups would each wait for memory; here
    /// all of them wait at the same time.
    fn prefetch(&self, words: &[BlockWord]) {
        let slots = words
            .iter()
            .filter_map(|word| self.known.find(word.hash.wide(), |it| it.hash == word.hash));
        let known = slots.filter_map(|slot| self.words.get(slot.number as usize));
        let bytes = known.map(|known| {
            let first = self.vocabulary.get(known.at as usize);
            first.copied().unwrap_or_default() ^ known.list.last().copied().unwrap_or_default()
        });
        std::hint::black_box(bytes.fold(0, BitXor::bitxor));
    }

    /// Ends the open block, and opens the next one. The ended block gets the scores of its words.
    pub(super) fn close(&mut self, block: Block) {
        let count = u32::try_from(self.blocks.len() + 1).unwrap_or(u32::MAX);
        let mut scores = ScoreSet::default();
        let open = std::mem::take(&mut self.open);
        for some in open.words.chunks(PREFETCHED) {
            self.prefetch(some);
            for word in some {
                let Some(number) = self.number(open.text(word), word.hash) else {
                    debug_assert!(false, "the vocabulary of a segment is limited");
                    continue;
                };
                if let Some(known) = self.words.get_mut(number as usize) {
                    let distance = u64::from(count - known.listed);
                    let bits = u64::from(word.scores.bits());
                    put_number(&mut known.list, distance << ScoreSet::BITS | bits);
                    known.listed = count;
                    scores = scores | word.scores;
                }
            }
        }
        self.open = open;
        self.open.clear();
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
                // The text of the word, with the line breaks around it.
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

/// The hash of every sequence of three bytes in a text. The text is a word with line breaks around it, or a part of
/// such a text.
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
