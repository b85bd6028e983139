//! One file of the index: the words of some blocks of lines, in SQLite. It is written once and never changed.

use super::words::Piece;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use std::hash::BuildHasher;
use std::ops::Range;
use std::path::Path;

/// A piece that occurs in more words than this does not narrow the search.
const MOST_WORDS: usize = 400;

/// Lines of a file with a common row in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The key of the file.
    pub file: u64,
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    /// Whether the block may have text that the index lacks, as in damaged lines.
    pub is_opaque: bool,
}

/// Writes a segment: the words of one block after the other.
pub(super) struct SegmentWriter {
    database: Connection,
    /// Each word once, between line breaks.
    vocabulary: Vec<u8>,
    known: HashTable<KnownWord>,
    hasher: DefaultHashBuilder,
    /// The words of the open block, separated by spaces.
    text: String,
    /// The number of the open block.
    block: u32,
}

/// A word of the vocabulary.
struct KnownWord {
    /// Where it begins in the vocabulary.
    at: usize,
    len: usize,
    /// The last block that has it.
    block: u32,
}

impl KnownWord {
    fn text<'v>(&self, vocabulary: &'v [u8]) -> &'v [u8] {
        vocabulary
            .get(self.at..self.at + self.len)
            .unwrap_or_default()
    }
}

impl SegmentWriter {
    pub(super) fn create(path: &Path) -> rusqlite::Result<Self> {
        let database = Connection::open(path)?;
        // Words are letters and digits, folded: the tokenizer keeps them whole.
        database.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32000;
             CREATE TABLE blocks (id INTEGER PRIMARY KEY, file INTEGER, start INTEGER, end INTEGER, opaque INTEGER);
             CREATE INDEX opaque ON blocks(id) WHERE opaque;
             CREATE TABLE vocabulary (words BLOB);
             CREATE VIRTUAL TABLE words USING fts5(text, content='', detail='none', columnsize=0, tokenize='ascii');
             INSERT INTO words(words, rank) VALUES('hashsize', 33554432);
             BEGIN;",
        )?;
        Ok(Self {
            database,
            vocabulary: vec![b'\n'],
            known: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            text: String::new(),
            block: 1,
        })
    }

    /// Adds a word to the open block; it may come several times.
    pub(super) fn word(&mut self, word: &str) {
        let Self {
            vocabulary, hasher, ..
        } = self;
        let is_it = |known: &KnownWord| known.text(vocabulary) == word.as_bytes();
        let hash_known = |known: &KnownWord| hasher.hash_one(known.text(vocabulary));
        let entry = self
            .known
            .entry(hasher.hash_one(word.as_bytes()), is_it, hash_known);
        match entry {
            Entry::Occupied(known) => {
                let last = std::mem::replace(&mut known.into_mut().block, self.block);
                if last == self.block {
                    return;
                }
            }
            Entry::Vacant(place) => {
                place.insert(KnownWord {
                    at: vocabulary.len(),
                    len: word.len(),
                    block: self.block,
                });
                vocabulary.extend_from_slice(word.as_bytes());
                vocabulary.push(b'\n');
            }
        }
        self.text.push_str(word);
        self.text.push(' ');
    }

    /// Writes the open block, and opens the next one.
    pub(super) fn close(&mut self, block: &Block) -> rusqlite::Result<()> {
        let (file, start) = (block.file.cast_signed(), block.span.start.cast_signed());
        let end = block.span.end.cast_signed();
        let database = &self.database;
        let mut insert = database.prepare_cached("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)")?;
        insert.execute(params![self.block, file, start, end, block.is_opaque])?;
        let mut insert = database.prepare_cached("INSERT INTO words(rowid, text) VALUES (?, ?)")?;
        insert.execute(params![self.block, self.text])?;
        self.block += 1;
        self.text.clear();
        Ok(())
    }

    /// Bytes of all words, each counted once.
    pub(super) fn vocabulary_bytes(&self) -> usize {
        self.vocabulary.len()
    }

    pub(super) fn finish(self) -> rusqlite::Result<()> {
        let database = self.database;
        database.execute(
            "INSERT INTO vocabulary VALUES (?)",
            params![self.vocabulary],
        )?;
        database.execute_batch("INSERT INTO words(words) VALUES('optimize'); COMMIT;")?;
        database.close().map_err(|(_, error)| error)
    }
}

/// The blocks of a segment that may hold a match: those with all pieces of any alternative.
pub(super) fn candidates(path: &Path, alternatives: &[Vec<Piece>]) -> rusqlite::Result<Vec<Block>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    let vocabulary: Vec<u8> =
        database.query_row("SELECT words FROM vocabulary", [], |row| row.get(0))?;
    let mut numbers = Vec::new();
    for pieces in alternatives {
        let Some(expression) = expression(&vocabulary, pieces) else {
            continue;
        };
        if expression.is_empty() {
            return blocks(&database, "TRUE");
        }
        let mut found = database.prepare("SELECT rowid FROM words WHERE words MATCH ?")?;
        let found = found.query_map([expression], |row| row.get::<_, i64>(0))?;
        for number in found {
            numbers.push(number?);
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    let mut taken = blocks(&database, "opaque")?;
    let mut find = database.prepare(&format!("{SELECT_BLOCKS} id = ? AND NOT opaque"))?;
    for number in numbers {
        taken.extend(find.query_row([number], block).optional()?);
    }
    Ok(taken)
}

const SELECT_BLOCKS: &str = "SELECT file, start, end, opaque FROM blocks WHERE";

fn block(row: &Row<'_>) -> rusqlite::Result<Block> {
    let at = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
    Ok(Block {
        file: at(0)?,
        span: at(1)?..at(2)?,
        is_opaque: row.get(3)?,
    })
}

/// The blocks for which a condition in SQL holds.
fn blocks(database: &Connection, condition: &str) -> rusqlite::Result<Vec<Block>> {
    let mut all = database.prepare(&format!("{SELECT_BLOCKS} {condition}"))?;
    let all = all.query_map([], block)?;
    all.collect()
}

/// A query of the full-text table for blocks with all these pieces: empty if it would not narrow the search, `None`
/// if no word has one of the pieces.
fn expression(vocabulary: &[u8], pieces: &[Piece]) -> Option<String> {
    let mut all = Vec::new();
    for piece in pieces {
        let words = words_with(vocabulary, piece);
        if words.is_empty() {
            return None;
        }
        if words.len() <= MOST_WORDS {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            all.push(format!("({})", words.join(" OR ")));
        }
    }
    Some(all.join(" AND "))
}

/// The words of the vocabulary with this piece; more than [`MOST_WORDS`] if there are too many.
fn words_with<'v>(vocabulary: &'v [u8], piece: &Piece) -> Vec<&'v str> {
    let mut needle = piece.text.clone().into_bytes();
    if piece.is_start {
        needle.insert(0, b'\n');
    }
    if piece.is_end {
        needle.push(b'\n');
    }
    let finder = Finder::new(&needle);
    let mut words = Vec::new();
    let mut from = 0;
    while let Some(found) = vocabulary.get(from..).and_then(|rest| finder.find(rest)) {
        let inside = from + found + usize::from(piece.is_start);
        let start = memrchr(b'\n', vocabulary.get(..inside).unwrap_or_default());
        let rest = vocabulary.get(inside..).unwrap_or_default();
        let end = inside + memchr(b'\n', rest).unwrap_or(rest.len());
        let word = vocabulary.get(start.map_or(0, |at| at + 1)..end);
        words.extend(word.and_then(|word| str::from_utf8(word).ok()));
        if words.len() > MOST_WORDS {
            break;
        }
        from = end;
    }
    words
}
