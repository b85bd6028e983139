//! Finds the blocks of a segment that may hold a match. Each block has the best rank that a hit in it can have.

use super::damage::damaged;
use super::segment::{
    BLOCK_BYTES, Block, FOOTER, GROUP_BYTES, JOINTS, LETTER_GROUPS, LETTERS, letters, take_number,
};
use super::signature::{SetMatches, Sets};
use super::words::{self, Piece};
use crate::page::Ceiling;
use crate::request::{ScoreSet, SearchRequest};
use hashbrown::HashSet;
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use std::fs::File;
use std::io;
use std::ops::Range;
use treelined_core::bytes::{Cursor, index};
use treelined_core::timestamp::Millis;
pub(crate) use treelined_files::os::FileAt;

/// A piece that occurs in more words than this does not narrow the search.
const MOST_WORDS: usize = 2000;

/// A block that may have a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The key of the file.
    pub file: u64,
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    pub ceiling: Ceiling,
}

/// The parts of a text that a match needs, all in one field.
#[derive(Debug)]
pub(super) struct TextParts {
    pieces: Vec<Piece>,
    /// The hashes of the joints: the end of a word with the beginning of the next word.
    joints: Vec<u64>,
}

impl TextParts {
    /// The parts of a folded text; `None` if it has no words.
    pub(super) fn of(folded: &str) -> Option<Self> {
        let (pieces, joints) = (words::pieces(folded), words::joints(folded));
        (!pieces.is_empty()).then_some(Self { pieces, joints })
    }

    /// The parts of the whole text of a field; `None` if it has no words.
    pub(super) fn of_field(folded: &str) -> Option<Self> {
        // The spaces say that the first and the last word of the text are complete.
        Self::of(&format!(" {folded} "))
    }
}

/// The conditions by which the blocks for a search are looked up.
#[derive(Debug)]
pub(super) struct BlockQuery<'q> {
    pub request: &'q SearchRequest,
    /// A match has all texts of at least one of these lists. If there is no list, each block may have a match.
    pub alternatives: Vec<Vec<TextParts>>,
    /// A match has these texts too, in any of its fields.
    pub required: Vec<TextParts>,
    /// The keys of files that have a label with a part of the query, and whose labelled entries are unknown.
    pub labelled: HashSet<u64>,
    /// The keys of files that have a session name with a part of the query, and all keys in `labelled`.
    pub named: HashSet<u64>,
}

/// The blocks that may hold a match.
pub(super) fn candidates(file: &File, query: &BlockQuery<'_>) -> io::Result<Vec<Candidate>> {
    let segment = Segment::open(file)?;
    let all = |scores| vec![scores; segment.block_count()];
    let scores = query.request.scores();
    let mut found = match query.alternatives.is_empty() {
        true => all(scores),
        false => all(ScoreSet::default()),
    };
    for texts in &query.alternatives {
        let mut of_texts: Option<Vec<ScoreSet>> = None;
        for text in texts {
            let fields = segment.with_text(text, all(scores))?;
            of_texts = Some(match of_texts {
                None => fields,
                Some(before) => both(before, &fields),
            });
        }
        for (found, of_texts) in found.iter_mut().zip(of_texts.unwrap_or_default()) {
            *found = *found | of_texts;
        }
    }
    for text in &query.required {
        let fields = segment.with_text(text, all(ScoreSet::ALL))?;
        let missing = found
            .iter_mut()
            .zip(fields)
            .filter(|(_, with)| with.is_empty());
        missing.for_each(|(found, _)| *found = ScoreSet::default());
    }
    let mut candidates = Vec::new();
    for (number, scores) in found.into_iter().enumerate() {
        if !scores.is_empty() || segment.is_opaque(number) {
            candidates.extend(candidate(&segment.block(number)?, scores, query));
        }
    }
    Ok(candidates)
}

/// Joins the scores of two texts for each block that may have both. Other blocks get none.
fn both(mut one: Vec<ScoreSet>, other: &[ScoreSet]) -> Vec<ScoreSet> {
    for (one, other) in one.iter_mut().zip(other) {
        *one = match one.is_empty() || other.is_empty() {
            true => ScoreSet::default(),
            false => *one | *other,
        };
    }
    one
}

/// The candidate for a block whose fields of these scores may have the texts; `None` if the block cannot have a match.
fn candidate(block: &Block, scores: ScoreSet, query: &BlockQuery<'_>) -> Option<Candidate> {
    let SearchRequest { since, until, .. } = *query.request;
    let is_labelled = query.labelled.contains(&block.file);
    let labels = scores & ScoreSet::LABELS;
    let scores = query
        .request
        .entries
        .iter()
        .fold(scores & block.scores, |scores, filter| {
            scores & block.of_entries.passing(filter)
        });
    let ceiling = if block.is_opaque || is_labelled && block.has_labels && !labels.is_empty() {
        // The labelled entry may be in another block, so it may have any time.
        Ceiling::NONE
    } else {
        if until.is_some_and(|until| block.times.oldest >= until) {
            return None;
        }
        let is_possible = |score: &u8| {
            let is_label = ScoreSet::of(*score) == ScoreSet::LABELS;
            let is_late = since.is_none_or(|since| block.times.newest(*score) >= since);
            is_late && (!is_label || query.named.contains(&block.file))
        };
        let score = scores.descending().find(is_possible)?;
        let before = until.map_or(Millis::MAX, |until| until.saturating_sub(1));
        Ceiling {
            score,
            at: block.times.newest(score).min(before),
        }
    };
    Some(Candidate {
        file: block.file,
        span: block.span.clone(),
        ceiling,
    })
}

/// An open segment.
struct Segment<'f> {
    file: &'f File,
    /// The table of blocks, as stored.
    blocks: Vec<u8>,
    /// For each group: where its first word begins in the vocabulary, and where its first list begins.
    groups: Vec<(u32, u32)>,
    /// Bytes of all lists.
    lists: u64,
    /// Bytes of the vocabulary, which begins after the lists.
    vocabulary: u64,
    /// The sets of letters, one for each [`LETTER_GROUPS`] groups.
    letters: Sets,
    /// The sets of joints, one for each block.
    joints: Sets,
}

impl<'f> Segment<'f> {
    fn open(file: &'f File) -> io::Result<Self> {
        let footer_at = file.metadata()?.len().checked_sub(FOOTER as u64);
        let footer_at = footer_at.ok_or_else(damaged)?;
        let footer = read(file, footer_at, FOOTER as u64)?;
        let mut lens = Cursor::new(&footer);
        let mut next = || lens.u64().ok_or_else(damaged);
        let (lists, vocabulary, groups, blocks) = (next()?, next()?, next()?, next()?);
        let start = lists.checked_add(vocabulary).ok_or_else(damaged)?;
        let tables = groups.checked_add(blocks).ok_or_else(damaged)?;
        let letters = Sets {
            shape: LETTERS,
            at: start.checked_add(tables).ok_or_else(damaged)?,
            columns: (groups / GROUP_BYTES as u64).div_ceil(LETTER_GROUPS as u64),
        };
        let joints = Sets {
            shape: JOINTS,
            at: letters.at.saturating_add(LETTERS.bytes(letters.columns)),
            columns: blocks / BLOCK_BYTES as u64,
        };
        if joints.at.checked_add(JOINTS.bytes(joints.columns)) != Some(footer_at) {
            return Err(damaged());
        }
        let tables = read(file, start, tables)?;
        let (groups, blocks) = tables.split_at_checked(index(groups)).ok_or_else(damaged)?;
        let group = |bytes: &[u8]| {
            let mut fields = Cursor::new(bytes);
            Some((fields.u32()?, fields.u32()?))
        };
        let groups = groups.chunks(GROUP_BYTES).map(group);
        Ok(Self {
            file,
            blocks: blocks.to_vec(),
            groups: groups.collect::<Option<_>>().ok_or_else(damaged)?,
            lists,
            vocabulary,
            letters,
            joints,
        })
    }

    fn block_count(&self) -> usize {
        self.blocks.len() / BLOCK_BYTES
    }

    fn stored_block(&self, number: usize) -> &[u8] {
        let at = number * BLOCK_BYTES;
        self.blocks.get(at..at + BLOCK_BYTES).unwrap_or_default()
    }

    fn is_opaque(&self, number: usize) -> bool {
        Block::is_stored_opaque(self.stored_block(number))
    }

    fn block(&self, number: usize) -> io::Result<Block> {
        Block::get(&mut Cursor::new(self.stored_block(number))).ok_or_else(damaged)
    }

    /// For each block: the scores in `fields` with at least one field that may have the text.
    fn with_text(&self, text: &TextParts, mut fields: Vec<ScoreSet>) -> io::Result<Vec<ScoreSet>> {
        for piece in &text.pieces {
            if let Some(words) = self.words_with(piece)? {
                self.keep(&mut fields, &words)?;
            }
        }
        let joined = self
            .joints
            .with_all(self.file, text.joints.iter().copied())?;
        for (number, fields) in fields.iter_mut().enumerate() {
            if !joined.has(number) {
                *fields = ScoreSet::default();
            }
        }
        Ok(fields)
    }

    /// The words that have a piece, by their offsets in the vocabulary; `None` if there are more than [`MOST_WORDS`].
    fn words_with(&self, piece: &Piece) -> io::Result<Option<Vec<u32>>> {
        let mut search = WordSearch::of(piece);
        let with_letters = self.letters.with_all(self.file, letters(&search.needle))?;
        let mut chunk = Vec::new();
        for span in self.chunks(&with_letters) {
            let len = span.end.checked_sub(span.start).ok_or_else(damaged)?;
            if span.end > self.vocabulary {
                return Err(damaged());
            }
            chunk.resize(index(len), 0);
            self.file
                .read_exact_at(&mut chunk, self.lists + span.start)?;
            search.look(&chunk, span.start);
            if search.words.is_none() {
                break;
            }
        }
        Ok(search.words)
    }

    /// The parts of the vocabulary whose sets of letters match. Each part has whole words, with the line breaks around
    /// them.
    fn chunks(&self, with_letters: &SetMatches) -> impl Iterator<Item = Range<u64>> {
        let place = |set: usize| {
            let group = self.groups.get(set * LETTER_GROUPS);
            group.map_or(self.vocabulary, |(at, _)| u64::from(*at))
        };
        let sets = 0..self.groups.len().div_ceil(LETTER_GROUPS);
        sets.filter(|set| with_letters.has(*set))
            .map(move |set| place(set).saturating_sub(1)..place(set + 1))
    }

    /// Keeps, for each block, only the scores of fields that have at least one of these words.
    fn keep(&self, fields: &mut [ScoreSet], words: &[u32]) -> io::Result<()> {
        let mut with_words = vec![ScoreSet::default(); fields.len()];
        let mut words = words.iter().copied().peekable();
        let mut bytes = Vec::new();
        while let Some(word) = words.peek().copied() {
            let number = self.groups.partition_point(|(at, _)| *at <= word);
            let number = number.checked_sub(1).ok_or_else(damaged)?;
            let (first, start) = *self.groups.get(number).ok_or_else(damaged)?;
            let next = self.groups.get(number + 1);
            let end = next.map_or(self.lists, |(_, start)| u64::from(*start));
            let len = end.checked_sub(u64::from(start)).ok_or_else(damaged)?;
            if end > self.lists {
                return Err(damaged());
            }
            bytes.resize(index(len), 0);
            self.file.read_exact_at(&mut bytes, u64::from(start))?;
            let mut lists = bytes.as_slice();
            let before = words.len();
            while let Some(at) = take_number(&mut lists) {
                let len = take_number(&mut lists).ok_or_else(damaged)?;
                let (list, rest) = lists.split_at_checked(index(len)).ok_or_else(damaged)?;
                lists = rest;
                if words.peek().map(|word| u64::from(word - first)) == Some(at) {
                    words.next();
                    add_list(list, &mut with_words)?;
                }
            }
            if words.len() == before {
                return Err(damaged());
            }
        }
        for (fields, with_words) in fields.iter_mut().zip(with_words) {
            *fields = *fields & with_words;
        }
        Ok(())
    }
}

/// Adds the scores in the list of a word to the scores of each block.
fn add_list(mut list: &[u8], to: &mut [ScoreSet]) -> io::Result<()> {
    let mut count = 0_usize;
    while !list.is_empty() {
        let number = take_number(&mut list).ok_or_else(damaged)?;
        count = count.saturating_add(index(number >> ScoreSet::BITS));
        let block = count.checked_sub(1).and_then(|number| to.get_mut(number));
        let block = block.ok_or_else(damaged)?;
        let [bits, ..] = number.to_le_bytes();
        *block = *block | ScoreSet::of_bits(bits);
    }
    Ok(())
}

fn read(file: &File, at: u64, len: u64) -> io::Result<Vec<u8>> {
    // A damaged length must not reserve more memory than the file has bytes.
    if len > file.metadata()?.len() {
        return Err(damaged());
    }
    let mut bytes = vec![0; index(len)];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// The search for one piece in a vocabulary.
struct WordSearch {
    needle: Vec<u8>,
    finder: Finder<'static>,
    is_start: bool,
    words: Option<Vec<u32>>,
}

impl WordSearch {
    fn of(piece: &Piece) -> Self {
        let mut needle = piece.text.clone().into_bytes();
        if piece.is_start {
            needle.insert(0, b'\n');
        }
        if piece.is_end {
            needle.push(b'\n');
        }
        Self {
            finder: Finder::new(&needle).into_owned(),
            needle,
            is_start: piece.is_start,
            words: Some(Vec::new()),
        }
    }

    /// Searches a part of the vocabulary, from one line break to another; `at` is where it begins.
    fn look(&mut self, part: &[u8], at: u64) {
        let mut from = 0;
        while let Some(words) = &mut self.words
            && let Some(found) = part.get(from..).and_then(|rest| self.finder.find(rest))
        {
            let inside = from + found + usize::from(self.is_start);
            let before = part.get(..inside).unwrap_or_default();
            let start = memrchr(b'\n', before).map_or(0, |at| at + 1);
            words.extend(u32::try_from(at + start as u64));
            if words.len() > MOST_WORDS {
                self.words = None;
            }
            let rest = part.get(inside..).unwrap_or_default();
            from = inside + memchr(b'\n', rest).unwrap_or(rest.len());
        }
    }
}
