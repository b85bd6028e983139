//! Finds the blocks of a segment that may hold a match, with the best place that a hit in them can have.

use super::segment::{BLOCK_BYTES, Block, FOOTER, GROUP_BYTES, take_number};
use super::words::Piece;
use crate::bytes::{Cursor, index};
use crate::os::FileAt;
use crate::session_search::page::Ceiling;
use crate::session_search::request::ScoreSet;
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use std::fs::File;
use std::io;
use std::ops::Range;

/// A piece that occurs in more words than this does not narrow the search.
const MOST_WORDS: usize = 2000;
/// Bytes of the vocabulary that are searched at a time: few enough to stay in the processor's cache.
const CHUNK: usize = 256 << 10;

/// A block that may have a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The key of the file.
    pub file: u64,
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    pub ceiling: Ceiling,
}

/// The pieces of each text that a match needs.
pub(super) type Texts = Vec<Vec<Piece>>;

/// The blocks that may hold a match: those with all texts of any alternative, in fields with these scores.
pub(super) fn candidates(
    file: &File,
    alternatives: &[Texts],
    scores: ScoreSet,
) -> io::Result<Vec<Candidate>> {
    let segment = Segment::open(file)?;
    let pieces: Vec<&Piece> = alternatives.iter().flatten().flatten().collect();
    let words = segment.words_with(&pieces)?;
    let mut of_pieces = words.into_iter();
    let mut found = vec![ScoreSet::default(); segment.blocks.len()];
    for texts in alternatives {
        let mut of_texts: Option<Vec<ScoreSet>> = None;
        for text in texts {
            // All pieces of a text are in one field.
            let mut fields: Vec<ScoreSet> =
                segment.blocks.iter().map(|it| it.scores & scores).collect();
            for words in of_pieces.by_ref().take(text.len()).flatten() {
                segment.keep(&mut fields, &words)?;
            }
            of_texts = Some(match of_texts {
                None => fields,
                Some(before) => both(before, &fields),
            });
        }
        for (found, of_texts) in found.iter_mut().zip(of_texts.unwrap_or_default()) {
            *found = *found | of_texts;
        }
    }
    let with_scores = segment.blocks.iter().zip(found);
    Ok(with_scores
        .filter_map(|(block, scores)| candidate(block, scores))
        .collect())
}

/// The scores of either text, where there are both.
fn both(mut one: Vec<ScoreSet>, other: &[ScoreSet]) -> Vec<ScoreSet> {
    for (one, other) in one.iter_mut().zip(other) {
        *one = match one.is_empty() || other.is_empty() {
            true => ScoreSet::default(),
            false => *one | *other,
        };
    }
    one
}

fn candidate(block: &Block, scores: ScoreSet) -> Option<Candidate> {
    if scores.is_empty() && !block.is_opaque {
        return None;
    }
    let highest = scores.highest();
    let is_of_label = block.has_labels && highest == ScoreSet::LABELS.highest();
    Some(Candidate {
        file: block.file,
        span: block.span.clone(),
        ceiling: match block.is_opaque || is_of_label {
            true => Ceiling::NONE,
            false => Ceiling {
                score: highest,
                at: block.newest,
            },
        },
    })
}

fn damaged() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

/// An open segment.
struct Segment<'f> {
    file: &'f File,
    blocks: Vec<Block>,
    /// For each group where its first word begins in the vocabulary, and where its first list begins.
    groups: Vec<(u32, u32)>,
    /// Bytes of all lists.
    lists: u64,
    /// Bytes of the vocabulary, which begins behind them.
    vocabulary: u64,
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
        if start.checked_add(tables) != Some(footer_at) {
            return Err(damaged());
        }
        let tables = read(file, start, tables)?;
        let (groups, blocks) = tables.split_at_checked(index(groups)).ok_or_else(damaged)?;
        let group = |bytes: &[u8]| {
            let mut fields = Cursor::new(bytes);
            Some((fields.u32()?, fields.u32()?))
        };
        let groups = groups.chunks(GROUP_BYTES).map(group);
        let blocks = blocks.chunks(BLOCK_BYTES);
        let blocks = blocks.map(|bytes| Block::get(&mut Cursor::new(bytes)));
        Ok(Self {
            file,
            blocks: blocks.collect::<Option<_>>().ok_or_else(damaged)?,
            groups: groups.collect::<Option<_>>().ok_or_else(damaged)?,
            lists,
            vocabulary,
        })
    }

    /// For each piece the places of the words with it; `None` if there are more than [`MOST_WORDS`].
    fn words_with(&self, pieces: &[&Piece]) -> io::Result<Vec<Option<Vec<u32>>>> {
        let mut searches: Vec<WordSearch> =
            pieces.iter().map(|piece| WordSearch::of(piece)).collect();
        let (mut chunk, mut at) = (Vec::new(), 0_u64);
        while at < self.vocabulary {
            let len = (CHUNK as u64).min(self.vocabulary - at);
            chunk.resize(index(len), 0);
            self.file.read_exact_at(&mut chunk, self.lists + at)?;
            // The next chunk begins with the line break before its first word.
            let last = memrchr(b'\n', &chunk).filter(|last| *last > 0 || len == 1);
            let last = last.ok_or_else(damaged)?;
            let whole = chunk.get(..=last).unwrap_or_default();
            for search in &mut searches {
                search.look(whole, at);
            }
            at += last as u64 + u64::from(at + len == self.vocabulary);
        }
        Ok(searches.into_iter().map(WordSearch::finish).collect())
    }

    /// Leaves those scores of each block that fields with any of these words have.
    fn keep(&self, fields: &mut [ScoreSet], words: &[u32]) -> io::Result<()> {
        let mut with_words = vec![ScoreSet::default(); fields.len()];
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.peek().copied() {
            let number = self.groups.partition_point(|(at, _)| *at <= word);
            let number = number.checked_sub(1).ok_or_else(damaged)?;
            let (first, start) = *self.groups.get(number).ok_or_else(damaged)?;
            let next = self.groups.get(number + 1);
            let end = next.map_or(self.lists, |(_, start)| u64::from(*start));
            let len = end.checked_sub(u64::from(start)).ok_or_else(damaged)?;
            let lists = read(self.file, u64::from(start), len)?;
            let mut lists = lists.as_slice();
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

/// Adds the scores in the list of a word.
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
    // A damaged length must not take memory that no file has.
    if len > file.metadata()?.len() {
        return Err(damaged());
    }
    let mut bytes = vec![0; index(len)];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// The search for one piece in a vocabulary.
struct WordSearch {
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

    fn finish(self) -> Option<Vec<u32>> {
        self.words
    }
}
