//! The cold file of a session: the lines of shed branches (session-file.md §4.10).
//!
//! Each line of the cold file contains one line of the session and its offset. The offset counts the bytes after the
//! header, as if no branch had been shed. With these offsets the lines of both files are merged in their old order.

use super::body::Bodies;
use super::lines::{Lines, RawLine};
use super::rewrite::{self, copy_range};
use crate::os::file::{self, File, Location};
use crate::os::handle::HandleAccess;
use hashbrown::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::Range;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::shed::{self, ShedBranch};
use treelined_core::json;
use treelined_core::tree::{FilePlace, Tree};

/// The suffix of the cold file's name.
pub(crate) const SUFFIX: &str = ".cold";

/// The records of the branches whose lines are in the cold file.
#[derive(Default)]
pub struct ShedRecords {
    /// The id of the first entry of each branch, by the offset of its record in the session file.
    by_offset: HashMap<u64, String>,
    /// The offset of each record, by its id.
    offsets: HashMap<String, u64>,
    /// The branches by the id of their first entry; `None` for a record that cannot be read.
    branches: HashMap<String, Option<ShedBranch>>,
}

impl ShedRecords {
    pub fn of(tree: &Tree, bodies: &Bodies) -> Result<Self> {
        let mut records = Self::default();
        for (entry_id, record) in tree.shed() {
            let place = tree.place(record);
            let branch = ShedBranch::of_record(&bodies.read(place)?);
            let branch = branch.filter(|branch| branch.entry_id == entry_id);
            records.by_offset.insert(place.offset, entry_id.to_owned());
            let id = tree.id(record).to_owned();
            records.offsets.insert(id, place.offset);
            records.branches.insert(entry_id.to_owned(), branch);
        }
        Ok(records)
    }

    pub fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    /// The branch that begins with this entry.
    pub fn branch(&self, entry_id: &str) -> Option<&ShedBranch> {
        self.branches.get(entry_id)?.as_ref()
    }

    pub fn has(&self, entry_id: &str) -> bool {
        self.branches.contains_key(entry_id)
    }

    /// The bytes of the lines of all branches.
    pub(super) fn bytes(&self) -> u64 {
        let branches = self.branches.values().flatten();
        branches.map(|branch| branch.bytes).sum()
    }

    /// Whether `is_meant` is true for all branches.
    pub(super) fn are_all(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        self.branches.keys().all(|entry_id| is_meant(entry_id))
    }

    /// The offsets of the records that other lines of the session file name. Such lines exist because some programs use
    /// the last line as the leaf, and append below a record.
    pub(super) fn named(&self, file: &File, range: Range<u64>) -> io::Result<HashSet<u64>> {
        const NAMES: [&str; 4] = ["parentId", "targetId", "fromId", "firstKeptEntryId"];
        let mut named = HashSet::new();
        let Some(first) = self.offsets.values().min() else {
            return Ok(named);
        };
        let mut lines = Lines::new(file, *first);
        while let Some(line) = lines.next()? {
            if line.offset >= range.end {
                break;
            }
            let names = json::get_each(line.bytes.unwrap_or_default(), NAMES);
            let ids = names.into_iter().flatten().filter_map(json::id);
            named.extend(ids.filter_map(|id| self.offsets.get(id.as_ref()).copied()));
        }
        Ok(named)
    }

    /// Whether the line at this offset of the session file is a record.
    pub(super) fn is_at(&self, offset: u64) -> bool {
        self.by_offset.contains_key(&offset)
    }
}

/// A line of the cold file.
pub(super) struct ColdLine {
    /// The offset of the line in bytes from the end of the header, as if no branch had been shed.
    pub at: u64,
    /// The id of the first entry of its branch.
    pub of: String,
    /// The line of the session, without its line break.
    pub line: Vec<u8>,
}

impl ColdLine {
    fn parse(text: &[u8]) -> Option<Self> {
        let [at, of, line] = json::get_each(text, ["at", "of", "line"]);
        Some(Self {
            at: std::str::from_utf8(at?).ok()?.parse().ok()?,
            of: json::id(of?)?.into_owned(),
            line: line?.to_vec(),
        })
    }
}

/// Writes a line of the cold file.
pub(super) fn write_cold(out: &mut impl Write, at: u64, of: &str, line: &[u8]) -> io::Result<()> {
    write!(out, "{{\"at\":{at},\"of\":")?;
    out.write_all(&json::quoted(of))?;
    out.write_all(b",\"line\":")?;
    out.write_all(line)?;
    out.write_all(b"}\n")
}

/// Writes a line of the session file, whatever its length.
pub(super) fn write_hot(out: &mut impl Write, file: &File, line: &RawLine<'_>) -> io::Result<()> {
    match line.bytes {
        Some(bytes) => out.write_all(bytes)?,
        None => copy_range(out, file, line.offset, line.len)?,
    }
    out.write_all(b"\n")
}

/// The cold file of the session at `at`; `None` if there is none.
pub(super) fn open(at: &Location) -> Result<Option<File>> {
    let cold = at.beside(SUFFIX);
    match cold.status() {
        Ok(_) => cold.folder.file(&cold.name, HandleAccess::Read).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(
            &format!("open {}", cold.path().display()),
            &error,
        )),
    }
}

/// Whether this is the name of a cold file.
pub(crate) fn is_cold_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(SUFFIX.as_bytes())
}

/// Whether the session at `at` has a cold file.
pub fn is_there(at: &Location) -> bool {
    at.beside(SUFFIX).status().is_ok()
}

/// Copies the cold file of one session for a copy of the session.
pub(super) fn copy(from: &Location, to: &Location) -> Result<()> {
    let Some(stored) = open(from)? else {
        return Ok(());
    };
    let to = to.beside(SUFFIX);
    rewrite::replace(&to, &to, |out| {
        let size = file::status_of(&stored)?.size;
        copy_range(out, &stored, 0, size)
    })
}

/// The bytes of the session file together with its cold file.
pub fn size_with(at: &Location) -> io::Result<u64> {
    let cold = at.beside(SUFFIX).status().map_or(0, |status| status.size);
    Ok(at.status()?.size + cold)
}

/// Reads the lines of the cold file whose branches have a record.
pub(super) struct ColdReader<'a> {
    lines: Option<Lines<'a>>,
    records: &'a ShedRecords,
    next: Option<ColdLine>,
}

impl<'a> ColdReader<'a> {
    pub(super) fn new(file: Option<&'a File>, records: &'a ShedRecords) -> io::Result<Self> {
        let mut reader = Self {
            lines: file.map(|file| Lines::new(file, 0)),
            records,
            next: None,
        };
        reader.advance()?;
        Ok(reader)
    }

    /// The next line.
    pub(super) fn take(&mut self) -> io::Result<Option<ColdLine>> {
        let line = self.next.take();
        self.advance()?;
        Ok(line)
    }

    /// Returns the next line if its offset is at most `at`.
    fn take_at(&mut self, at: u64) -> io::Result<Option<ColdLine>> {
        match self.next.as_ref().is_some_and(|next| next.at <= at) {
            true => self.take(),
            false => Ok(None),
        }
    }

    fn advance(&mut self) -> io::Result<()> {
        let Some(lines) = &mut self.lines else {
            return Ok(());
        };
        while let Some(line) = lines.next()? {
            let parsed = line.bytes.and_then(ColdLine::parse);
            // Lines of a branch without a record are left over from a crash.
            self.next = parsed.filter(|line| self.records.has(&line.of));
            if self.next.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The line that replaces a record when its branch comes back; `None` if no other line names the record.
pub(super) fn left_record(line: &RawLine<'_>, named: &HashSet<u64>) -> Option<Vec<u8>> {
    let bytes = line.bytes.filter(|_| named.contains(&line.offset));
    bytes.and_then(shed::left_record)
}

/// A line of the whole session.
pub(super) enum Piece<'a> {
    /// A line of the session file, with its offset in bytes from the end of the header, as if no branch had been shed.
    Hot(u64, &'a RawLine<'a>),
    /// The record of a shed branch, and the id of its first entry. It is not a line of the whole session.
    Record(&'a RawLine<'a>, &'a str),
    Cold(&'a ColdLine),
}

/// Passes all lines after the header to `take`: the lines of the session file in `range`, and the lines of the cold
/// file at their old positions between them.
pub(super) fn walk(
    file: &File,
    range: Range<u64>,
    records: &ShedRecords,
    cold: &mut ColdReader<'_>,
    mut take: impl FnMut(Piece<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut lines = Lines::new(file, range.start);
    let mut at = 0;
    while let Some(line) = lines.next()? {
        if line.offset >= range.end {
            break;
        }
        while let Some(cold) = cold.take_at(at)? {
            take(Piece::Cold(&cold))?;
            at += cold.line.len() as u64 + 1;
        }
        if let Some(of) = records.by_offset.get(&line.offset) {
            take(Piece::Record(&line, of))?;
            continue;
        }
        take(Piece::Hot(at, &line))?;
        at += line.len + 1;
    }
    while let Some(cold) = cold.take()? {
        take(Piece::Cold(&cold))?;
    }
    Ok(())
}

/// The offset of the first line after the header.
pub(super) fn first_line(file: &File, header: FilePlace) -> io::Result<u64> {
    let mut lines = Lines::new(file, 0);
    while let Some(line) = lines.next()? {
        let end = line.offset + line.len;
        if end >= header.offset + u64::from(header.len) {
            return Ok(end + u64::from(line.terminated));
        }
    }
    Ok(file::status_of(file)?.size)
}

/// Checks the branches for which `is_meant` is true. Fails if the lines of such a branch in the cold file do not have
/// the hash in the record of the branch, or if `is_taken` is true for one of these lines.
pub(super) fn check(
    at: &Location,
    records: &ShedRecords,
    is_meant: impl Fn(&str) -> bool,
    mut is_taken: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    let file = open(at)?;
    let path = at.beside(SUFFIX).path();
    let failed = |error: io::Error| Error::io(&format!("read {}", path.display()), &error);
    let mut found: HashMap<String, Digest> = HashMap::new();
    let mut cold = ColdReader::new(file.as_ref(), records).map_err(failed)?;
    while let Some(line) = cold.take().map_err(failed)? {
        if !is_meant(&line.of) {
            continue;
        }
        if is_taken(&line.line) {
            let why = "the session has an entry with the id of a shed one: change one of the ids";
            return Err(Error::new(Kind::DuplicateEntryId, why));
        }
        found.entry(line.of).or_default().add(&line.line);
    }
    for (entry_id, branch) in records.branches.iter().filter(|(id, _)| is_meant(id)) {
        let finished = found.remove(entry_id).unwrap_or_default().finish();
        if branch
            .as_ref()
            .is_none_or(|branch| branch.sha256 != finished)
        {
            let why = format!(
                "{} does not have the lines of the branch {entry_id:?} as they were: restore it from a copy",
                path.display()
            );
            return Err(Error::new(Kind::StorageIo, why));
        }
    }
    Ok(())
}

/// The id of the first entry of the shed branch that has this entry; `None` if no line of the cold file has the entry.
pub fn branch_of(at: &Location, records: &ShedRecords, entry_id: &str) -> Result<Option<String>> {
    if records.is_empty() {
        return Ok(None);
    }
    let file = open(at)?;
    let failed = |error: io::Error| {
        let path = at.beside(SUFFIX).path();
        Error::io(&format!("read {}", path.display()), &error)
    };
    let mut cold = ColdReader::new(file.as_ref(), records).map_err(failed)?;
    while let Some(line) = cold.take().map_err(failed)? {
        if json::get(&line.line, "id").and_then(json::id).as_deref() == Some(entry_id) {
            return Ok(Some(line.of));
        }
    }
    Ok(None)
}

/// Returns these lines without the lines whose entries are in shed branches.
pub fn without_shed(
    at: &Location,
    records: &ShedRecords,
    mut lines: Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>> {
    let file = open(at)?;
    let failed = |error: io::Error| {
        let path = at.beside(SUFFIX).path();
        Error::io(&format!("read {}", path.display()), &error)
    };
    let mut cold = ColdReader::new(file.as_ref(), records).map_err(failed)?;
    let mut shed = HashSet::new();
    while let Some(line) = cold.take().map_err(failed)? {
        let id = json::get(&line.line, "id").and_then(json::id);
        shed.extend(id.map(std::borrow::Cow::into_owned));
    }
    let id = |line: &[u8]| Some(json::get(line, "id").and_then(json::id)?.into_owned());
    lines.retain(|line| id(line).is_none_or(|id| !shed.contains(&id)));
    Ok(lines)
}

/// The hash of the lines of a branch.
#[derive(Default)]
pub(super) struct Digest(sha2::Sha256);

impl Digest {
    pub(super) fn add(&mut self, line: &[u8]) {
        use sha2::Digest as _;
        self.0.update(line);
        self.0.update(b"\n");
    }

    /// In hexadecimal digits.
    pub(super) fn finish(self) -> String {
        use sha2::Digest as _;
        let bytes = self.0.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
