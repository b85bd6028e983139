//! The counts of a session in the cache (session-file.md §5.7).

use super::counts::{Counter, Counts, LeafRecords, Posting};
use super::entries::CountedEntry;
use std::io;
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::search::ask::Term;
use treelined_core::timestamp::Millis;
use treelined_files::cache::{Cache, CacheBlock, CacheFile, FileKind};
use treelined_files::cancel::Cancel;
use treelined_files::log::fingerprint::Fingerprint;
use treelined_files::os::file::{Location, Status};
use treelined_files::os::handle::HandleAccess;

pub(super) const KIND: FileKind = FileKind {
    format: b"treelined terms5",
    ending: ".terms",
    most: 1 << 16,
    most_bytes: 2 << 30,
};
/// The most bytes of a session file, from its start, whose counts are kept. Each search counts the rest itself. This
/// limit bounds the memory of an update, which counts two files at once.
pub(super) const MOST: u64 = 64 << 20;
/// A block of postings ends after this number of bytes. A search reads one block for each term.
const BLOCK: usize = 16 << 10;

/// The kept counts of the first bytes of a session file. A search reads only the blocks that it needs.
pub(super) struct KeptCounts {
    file: CacheFile,
    pub(super) fingerprint: Fingerprint,
    /// The status of the file when it was counted.
    pub(super) status: Status,
    pub(super) cwd: Option<String>,
    pub(super) branches: u32,
    pub(super) has_archive: bool,
    /// The first term of each block of postings.
    firsts: Vec<Term>,
}

impl KeptCounts {
    /// `None` if no counts are kept, or if they are damaged.
    pub(super) fn open(cache: &Cache, status: Status) -> Option<Self> {
        let file = cache.open(&KIND.name_for(status.identity), KIND.format)?;
        let mut fields = Cursor::new(&file.summary);
        let fingerprint = Fingerprint::get(&mut fields)?;
        let counted = treelined_files::cache::get_status(&mut fields)?;
        let cwd = fields.optional(|fields| fields.text().map(str::to_owned))?;
        let branches = fields.u32()?;
        let has_archive = fields.u8()? != 0;
        let firsts = fields.list(|fields| fields.u64().map(Term))?;
        let is_whole = fields.is_at_end() && file.blocks.len() == firsts.len() + 2;
        is_whole.then_some(Self {
            fingerprint,
            status: counted,
            cwd,
            branches,
            has_archive,
            firsts,
            file,
        })
    }

    /// Whether these counts cover the whole file, and the file still has the status that it had when it was counted.
    pub(super) fn is_current(&self, status: Status) -> bool {
        self.status == status && self.fingerprint.end() == status.size
    }

    /// The entries and the leaf records, as [`Counts`] has them.
    pub(super) fn entries(&self) -> Option<(Vec<CountedEntry>, LeafRecords)> {
        let bytes = self.block(0)?;
        let mut fields = Cursor::new(&bytes);
        let entries = fields.list(|fields| {
            let entry = CountedEntry {
                offset: fields.u64()?,
                at: Some(fields.i64()?).filter(|at| *at != Millis::MIN),
                terms: fields.u32()?,
                branch: fields.u32()?,
                id: fields.u64()?,
                has_child: fields.u8()? != 0,
            };
            (entry.branch < self.branches).then_some(entry)
        })?;
        let records = fields.list(|fields| Some((fields.u64()?, fields.u32()?)))?;
        Some((entries, records))
    }

    /// The postings of a term; an empty list if no entry has it. `None` if the file is damaged.
    pub(super) fn postings(&self, term: Term) -> Option<Vec<Posting>> {
        let block = self.firsts.partition_point(|first| *first <= term);
        if block == 0 {
            return Some(Vec::new());
        }
        let bytes = self.block(block)?;
        let found = Records::of(&bytes).find(|(of, _)| *of >= term);
        match found.filter(|(of, _)| *of == term) {
            Some((_, postings)) => decoded(postings),
            None => Some(Vec::new()),
        }
    }

    /// All blocks of postings, as [`Records`] reads them. `None` if the file is damaged.
    pub(super) fn all_postings(&self) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        for block in 1..=self.firsts.len() {
            all.extend(self.block(block)?);
        }
        let terms = Records::of(&all).map(|(term, _)| term);
        terms.is_sorted_by(|one, next| one < next).then_some(all)
    }

    /// The words, one on each line.
    pub(super) fn vocabulary(&self) -> Option<Vec<u8>> {
        self.block(self.firsts.len() + 1)
    }

    fn block(&self, number: usize) -> Option<Vec<u8>> {
        let block: &CacheBlock = self.file.blocks.get(number)?;
        block.read(&self.file.file)
    }
}

/// Counts a session, and keeps the counts. Returns false if the file cannot be read: the search reports such a file.
pub(super) fn count(
    cache: &Cache,
    location: &Location,
    status: Status,
    cancel: &Cancel,
) -> io::Result<bool> {
    let file = location.folder.file(&location.name, HandleAccess::Read);
    let counter = Counter::new(None, Counts::default());
    let counts = file.map(|file| counter.read(&file, 0..status.size.min(MOST), cancel));
    match counts {
        Ok(Ok(counts)) => keep(cache, location, status, &counts),
        _ => Ok(false),
    }
}

/// Keeps the counts of a session file. Returns false if the file cannot be read.
pub(super) fn keep(
    cache: &Cache,
    location: &Location,
    status: Status,
    counts: &Counts,
) -> io::Result<bool> {
    let file = location.folder.file(&location.name, HandleAccess::Read);
    let fingerprint = file.map(|file| Fingerprint::of(&file, status, counts.end));
    match fingerprint {
        Ok(Some(fingerprint)) => {
            write(cache, status, &fingerprint, counts)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Writes the counts of a file that had this status.
fn write(
    cache: &Cache,
    status: Status,
    fingerprint: &Fingerprint,
    counts: &Counts,
) -> io::Result<()> {
    let mut writer = cache.writer(&KIND.name_for(status.identity))?;
    writer.push(&entries_block(counts))?;
    let mut terms: Vec<(&Term, &Vec<Posting>)> = counts.postings.iter().collect();
    terms.sort_unstable_by_key(|(term, _)| **term);
    let (mut firsts, mut block) = (Vec::new(), Fields::default());
    for (term, postings) in terms {
        if block.0.is_empty() {
            firsts.push(*term);
        }
        let encoded = encoded(postings);
        block.u64(term.0);
        block.u32(u32::try_from(encoded.len()).map_err(io::Error::other)?);
        block.0.extend_from_slice(&encoded);
        if block.0.len() >= BLOCK {
            writer.push(&std::mem::take(&mut block).0)?;
        }
    }
    if !block.0.is_empty() {
        writer.push(&block.0)?;
    }
    let mut vocabulary: Vec<&str> = counts.vocabulary.iter().map(|word| &**word).collect();
    vocabulary.sort_unstable();
    let mut words = String::new();
    for word in vocabulary {
        words.push_str(word);
        words.push('\n');
    }
    writer.push(words.as_bytes())?;
    let mut summary = Fields::default();
    fingerprint.put(&mut summary);
    treelined_files::cache::put_status(&mut summary, status);
    summary.optional(counts.cwd.as_deref(), Fields::text);
    summary.u32(counts.branches);
    summary.u8(u8::from(counts.has_archive));
    summary.count(firsts.len());
    for first in firsts {
        summary.u64(first.0);
    }
    writer.finish(KIND.format, &summary.0).map(drop)
}

fn entries_block(counts: &Counts) -> Vec<u8> {
    let mut block = Fields::default();
    block.count(counts.entries.len());
    for entry in &counts.entries {
        block.u64(entry.offset);
        block.i64(entry.at.unwrap_or(Millis::MIN));
        block.u32(entry.terms);
        block.u32(entry.branch);
        block.u64(entry.id);
        block.u8(u8::from(entry.has_child));
    }
    block.count(counts.records.len());
    for (id, place) in &counts.records {
        block.u64(*id);
        block.u32(*place);
    }
    block.0
}

/// The postings as bytes. Each one has the distance of its entry from the entry before, its weight, and its fields.
fn encoded(postings: &[Posting]) -> Vec<u8> {
    let (mut bytes, mut before) = (Vec::with_capacity(postings.len() * 3), 0);
    for posting in postings {
        put_number(&mut bytes, posting.entry - before);
        before = posting.entry;
        bytes.extend([posting.weight, posting.fields]);
    }
    bytes
}

/// `None` if the bytes are not postings.
pub(super) fn decoded(bytes: &[u8]) -> Option<Vec<Posting>> {
    let (mut fields, mut entry) = (Cursor::new(bytes), 0_u32);
    let mut postings = Vec::with_capacity(bytes.len() / 3);
    while !fields.is_at_end() {
        entry = entry.checked_add(number(&mut fields)?)?;
        postings.push(Posting {
            entry,
            weight: fields.u8()?,
            fields: fields.u8()?,
        });
    }
    Some(postings)
}

/// Appends a number in groups of seven bits, the lowest first.
pub(super) fn put_number(bytes: &mut Vec<u8>, mut number: u32) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return bytes.push(low & 0x7f);
        }
        bytes.push(low | 0x80);
    }
}

pub(super) fn number(fields: &mut Cursor<'_>) -> Option<u32> {
    let (mut number, mut shift) = (0_u32, 0);
    loop {
        let byte = fields.u8()?;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte < 0x80 {
            return Some(number);
        }
    }
}

/// The terms in blocks of postings, each with its encoded postings. The iterator ends at the first damaged byte.
pub(super) struct Records<'b>(Cursor<'b>);

impl<'b> Records<'b> {
    pub(super) fn of(bytes: &'b [u8]) -> Self {
        Self(Cursor::new(bytes))
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = (Term, &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (term, len) = (Term(self.0.u64()?), self.0.u32()?);
        Some((term, self.0.take(usize::try_from(len).ok()?)?))
    }
}
