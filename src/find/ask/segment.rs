//! The counts of many sessions in one file (session-file.md §5.7). A question reads one block of the file for each of
//! its terms, and the table of the sessions.
//!
//! A segment never changes. It is made from the kept counts of sessions, and has the status that each session file had
//! then. If a session file has another status now, its counts are read from a file for this session only (`kept`).

use super::counts::{Counts, Posting};
use super::entries::PackedEntries;
use super::kept::{self, KeptCounts, Records};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::search::ask::{Corpus, Term};
use treelined_files::cache::{Cache, CacheBlock, CacheFile, FormatName, get_status, put_status};
use treelined_files::os::file::Status;

const FORMAT: &FormatName = b"treelined count4";
/// A block of postings ends after this number of bytes. A question reads one block for each term.
const BLOCK: usize = 64 << 10;
/// A block of entries ends after this number of bytes. All entries of a session are in one block, which is read if it
/// is not in memory.
const ENTRY_BLOCK: usize = 8 << 10;

/// The name of the file of a segment.
pub(super) fn name(number: u64) -> String {
    format!("ask-{number}.counts")
}

/// Whether a file of the cache has the name of a segment.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with("ask-") && name.ends_with(".counts")
}

/// A session of a segment.
#[derive(Debug, Clone)]
pub(super) struct SegmentSession {
    /// The status of the session file when all of it was counted.
    pub status: Status,
    pub cwd: Option<String>,
    pub has_archive: bool,
    pub corpus: Corpus,
    /// The number of the block that has the entries of the session, and their range in the block.
    block: u32,
    span: Range<u32>,
}

/// An open segment.
pub(super) struct Segment {
    file: CacheFile,
    pub sessions: Vec<SegmentSession>,
    /// The number of blocks of entries. Blocks of postings follow, then the words, then the sessions of each word.
    entry_blocks: usize,
    /// The first term of each block of postings.
    firsts: Vec<Term>,
    /// The first blocks of entries, as many as fit into memory. A block is read when a question needs it, and is then
    /// kept. So the first question of a process does not wait for blocks that it does not need.
    kept: Vec<OnceLock<Vec<u8>>>,
}

impl Segment {
    /// `None` if the segment is missing or damaged. The segment keeps blocks of entries in memory, as many as fit if
    /// the segment takes at most `most` bytes. Each block is checked when it is read.
    pub(super) fn open(cache: &Cache, number: u64, most: usize) -> Option<Self> {
        let file = cache.open(&name(number), FORMAT)?;
        let mut fields = Cursor::new(&file.summary);
        let entry_blocks = usize::try_from(fields.u32()?).ok()?;
        let sessions = fields.list(session)?;
        let firsts = fields.list(|fields| fields.u64().map(Term))?;
        let is_whole = fields.is_at_end() && file.blocks.len() == entry_blocks + firsts.len() + 2;
        let mut segment = is_whole.then_some(Self {
            file,
            sessions,
            entry_blocks,
            firsts,
            kept: Vec::new(),
        })?;
        let mut left = most.saturating_sub(segment.bytes()) as u64;
        let blocks = segment.file.blocks.iter().take(entry_blocks);
        let fitting = blocks.take_while(|block| match left.checked_sub(block.len) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        let fitting = fitting.count();
        segment.kept.resize_with(fitting, OnceLock::new);
        Some(segment)
    }

    /// The approximate number of bytes that the segment takes in memory at most.
    pub(super) fn bytes(&self) -> usize {
        let sessions = self.sessions.iter();
        let cwds = sessions.map(|one| one.cwd.as_ref().map_or(0, String::len));
        let tables = self.sessions.len() * size_of::<SegmentSession>()
            + self.firsts.len() * size_of::<Term>()
            + self.file.blocks.len() * size_of::<CacheBlock>();
        let kept = self.file.blocks.iter().take(self.kept.len());
        let kept: u64 = kept.map(|block| block.len).sum();
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        cwds.sum::<usize>() + tables + kept + self.file.summary.len()
    }

    /// The bytes of its file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file.blocks.iter().map(|block| block.len).sum()
    }

    fn block(&self, number: usize) -> Option<Vec<u8>> {
        self.file.blocks.get(number)?.read(&self.file.file)
    }

    /// The postings of a term; `None` if the file is damaged.
    pub(super) fn postings(&self, term: Term) -> Option<TermPostings> {
        let number = self.firsts.partition_point(|first| *first <= term);
        let Some(number) = number.checked_sub(1) else {
            return Some(TermPostings::default());
        };
        let block = self.block(self.entry_blocks + number)?;
        let found = Records::of(&block).find(|(of, _)| *of >= term);
        match found.filter(|(of, _)| *of == term) {
            Some((_, postings)) => TermPostings::of(postings),
            None => Some(TermPostings::default()),
        }
    }

    /// The entries of a session; `None` if the file is damaged.
    pub(super) fn entries(&self, session: &SegmentSession) -> Option<PackedEntries<'_>> {
        let number = session.block as usize;
        let span = session.span.start as usize..session.span.end as usize;
        let bytes = match self.kept.get(number) {
            Some(kept) => {
                let block = match kept.get() {
                    Some(block) => block,
                    None => {
                        let block = self.block(number)?;
                        kept.get_or_init(|| block)
                    }
                };
                Cow::Borrowed(block.get(span)?)
            }
            None if number < self.entry_blocks => {
                let block = self.block(number)?;
                Cow::Owned(block.get(span)?.to_vec())
            }
            None => return None,
        };
        Some(PackedEntries::new(bytes))
    }

    /// The words of all sessions, one on each line.
    pub(super) fn words(&self) -> Option<Vec<u8>> {
        self.block(self.entry_blocks + self.firsts.len())
    }

    /// The numbers of the sessions that have each word, in the order of the words.
    pub(super) fn sessions_of_words(&self) -> Option<SessionsOfWords> {
        let bytes = self.block(self.entry_blocks + self.firsts.len() + 1)?;
        Some(SessionsOfWords(bytes))
    }
}

fn session(fields: &mut Cursor<'_>) -> Option<SegmentSession> {
    Some(SegmentSession {
        status: get_status(fields)?,
        cwd: fields.optional(|fields| fields.text().map(str::to_owned))?,
        has_archive: fields.u8()? != 0,
        corpus: Corpus {
            entries: fields.u64()?,
            sessions: 1,
            branches: fields.u64()?,
            terms: fields.u64()?,
        },
        block: fields.u32()?,
        span: fields.u32()?..fields.u32()?,
    })
}

fn put_session(out: &mut Fields, session: &SegmentSession) {
    put_status(out, session.status);
    out.optional(session.cwd.as_deref(), Fields::text);
    out.u8(u8::from(session.has_archive));
    out.u64(session.corpus.entries);
    out.u64(session.corpus.branches);
    out.u64(session.corpus.terms);
    out.u32(session.block);
    out.u32(session.span.start);
    out.u32(session.span.end);
}

/// The postings of a term in the sessions of a segment.
#[derive(Default)]
pub(super) struct TermPostings {
    bytes: Vec<u8>,
    /// The number of each session that has the term, and the range of its postings in `bytes`.
    sessions: Vec<(u32, Range<usize>)>,
}

impl TermPostings {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (mut fields, mut sessions, mut number) = (Cursor::new(bytes), Vec::new(), 0_u32);
        let mut at = 0;
        while !fields.is_at_end() {
            number = number.checked_add(kept::number(&mut fields)?)?;
            let len = kept::number(&mut fields)? as usize;
            at = bytes.len() - fields.left();
            fields.take(len)?;
            sessions.push((number, at..at + len));
            at += len;
        }
        (at == bytes.len()).then(|| Self {
            bytes: bytes.to_vec(),
            sessions,
        })
    }

    pub(super) fn has(&self, session: u32) -> bool {
        self.place(session).is_some()
    }

    fn place(&self, session: u32) -> Option<&Range<usize>> {
        let at = self.sessions.binary_search_by_key(&session, |(of, _)| *of);
        self.sessions.get(at.ok()?).map(|(_, span)| span)
    }

    /// The postings of a session; `None` if they are damaged.
    pub(super) fn of_session(&self, session: u32) -> Option<Vec<Posting>> {
        match self.place(session) {
            Some(span) => kept::decoded(self.bytes.get(span.clone())?),
            None => Some(Vec::new()),
        }
    }
}

/// The numbers of the sessions that have each word.
pub(super) struct SessionsOfWords(Vec<u8>);

impl SessionsOfWords {
    /// The sessions of the word with this number; `None` if the bytes are damaged.
    pub(super) fn of(&self, word: usize) -> Option<Vec<u32>> {
        let at = |number: usize| {
            let bytes = self.0.get(number.checked_mul(4)?..)?.first_chunk()?;
            usize::try_from(u32::from_le_bytes(*bytes)).ok()
        };
        let mut fields = Cursor::new(self.0.get(at(word)?..at(word + 1)?)?);
        let (mut sessions, mut session) = (Vec::new(), 0_u32);
        while !fields.is_at_end() {
            session = session.checked_add(kept::number(&mut fields)?)?;
            sessions.push(session);
        }
        Some(sessions)
    }
}

/// Collects sessions for a segment.
#[derive(Default)]
pub(super) struct SegmentBuilder {
    sessions: Vec<SegmentSession>,
    entry_blocks: Vec<Vec<u8>>,
    postings: Vec<Vec<u8>>,
    words: HashMap<Box<str>, Vec<u32>>,
    /// The bytes of memory that the builder takes.
    pub bytes: usize,
}

impl SegmentBuilder {
    /// The number of sessions that were added.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Adds a session with its kept counts. Adds nothing and returns `None` if they are damaged.
    pub(super) fn add(&mut self, kept: &KeptCounts) -> Option<()> {
        let (entries, _) = kept.entries()?;
        let (postings, words) = (kept.all_postings()?, kept.vocabulary()?);
        let words = std::str::from_utf8(&words).ok()?;
        if self
            .entry_blocks
            .last()
            .is_none_or(|last| last.len() >= ENTRY_BLOCK)
        {
            self.entry_blocks.push(Vec::new());
        }
        let block = u32::try_from(self.entry_blocks.len() - 1).ok()?;
        let number = u32::try_from(self.sessions.len()).ok()?;
        let last = self.entry_blocks.last_mut()?;
        let start = u32::try_from(last.len()).ok()?;
        PackedEntries::pack(&entries, last);
        let end = u32::try_from(last.len()).ok()?;
        let packed = (end - start) as usize;
        let counts = Counts {
            entries,
            branches: kept.branches,
            ..Counts::default()
        };
        for word in words.lines() {
            match self.words.get_mut(word) {
                Some(sessions) => sessions.push(number),
                None => drop(self.words.insert(word.into(), vec![number])),
            }
        }
        self.bytes += postings.len() + words.len() + packed;
        self.postings.push(postings);
        self.sessions.push(SegmentSession {
            status: kept.status,
            cwd: kept.cwd.clone(),
            has_archive: kept.has_archive,
            corpus: counts.corpus(),
            block,
            span: start..end,
        });
        Some(())
    }

    /// Writes the segment.
    pub(super) fn write(self, cache: &Cache, number: u64) -> io::Result<()> {
        let mut writer = cache.writer(&name(number))?;
        for block in &self.entry_blocks {
            writer.push(block)?;
        }
        let (mut firsts, mut block) = (Vec::new(), Fields::default());
        each_term(&self.postings, |term, postings| {
            if block.0.is_empty() {
                firsts.push(term);
            }
            block.u64(term.0);
            block.u32(u32::try_from(postings.len()).map_err(io::Error::other)?);
            block.0.extend_from_slice(postings);
            match block.0.len() >= BLOCK {
                true => writer.push(&std::mem::take(&mut block).0),
                false => Ok(()),
            }
        })?;
        if !block.0.is_empty() {
            writer.push(&block.0)?;
        }
        let (words, sessions) = words_blocks(self.words)?;
        writer.push(&words)?;
        writer.push(&sessions)?;
        let mut summary = Fields::default();
        summary.u32(u32::try_from(self.entry_blocks.len()).map_err(io::Error::other)?);
        summary.count(self.sessions.len());
        for session in &self.sessions {
            put_session(&mut summary, session);
        }
        summary.count(firsts.len());
        for first in firsts {
            summary.u64(first.0);
        }
        writer.finish(FORMAT, &summary.0).map(drop)
    }
}

/// Passes each term to `see`, in order, with its postings in all sessions. The bytes have three values for each
/// session: the distance of its number from the number before, the length of its postings, and the postings.
fn each_term(
    of_sessions: &[Vec<u8>],
    mut see: impl FnMut(Term, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut records: Vec<Records<'_>> = of_sessions.iter().map(|all| Records::of(all)).collect();
    let mut next = BinaryHeap::new();
    let mut pull = |number: usize, next: &mut BinaryHeap<_>| {
        if let Some((term, postings)) = records.get_mut(number).and_then(Iterator::next) {
            next.push(Reverse((term, number, postings)));
        }
    };
    for number in 0..of_sessions.len() {
        pull(number, &mut next);
    }
    let (mut now, mut joined, mut before) = (None, Vec::new(), 0);
    while let Some(Reverse((term, number, postings))) = next.pop() {
        pull(number, &mut next);
        if now != Some(term) {
            if let Some(now) = now {
                see(now, &joined)?;
            }
            (now, before) = (Some(term), 0);
            joined.clear();
        }
        let number = u32::try_from(number).map_err(io::Error::other)?;
        kept::put_number(&mut joined, number - before);
        before = number;
        let len = u32::try_from(postings.len()).map_err(io::Error::other)?;
        kept::put_number(&mut joined, len);
        joined.extend_from_slice(postings);
    }
    match now {
        Some(now) => see(now, &joined),
        None => Ok(()),
    }
}

/// Two blocks: the words, one on each line, and the sessions of each word. The second block begins with a table of
/// offsets: where the sessions of each word begin, and where the sessions of the last word end.
fn words_blocks(words: HashMap<Box<str>, Vec<u32>>) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut words: Vec<(Box<str>, Vec<u32>)> = words.into_iter().collect();
    words.sort_unstable();
    let (mut lines, mut starts, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let head = (words.len() + 1) * 4;
    let mut begin = |at: usize| -> io::Result<()> {
        let start = u32::try_from(head + at).map_err(io::Error::other)?;
        starts.extend(start.to_le_bytes());
        Ok(())
    };
    for (word, sessions) in &words {
        lines.extend_from_slice(word.as_bytes());
        lines.push(b'\n');
        begin(all.len())?;
        let mut before = 0;
        for session in sessions {
            kept::put_number(&mut all, session - before);
            before = *session;
        }
    }
    begin(all.len())?;
    starts.append(&mut all);
    Ok((lines, starts))
}
