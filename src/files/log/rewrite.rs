//! Replaces a session file of version 1 or 2 with a file of version 3, before the first write (session-file.md §2).
//! After a crash at any point, the name of the session leads to the whole old file or to the whole new file, and the
//! original is beside it.

use super::append::Lock;
use super::body::Bodies;
use super::header::CURRENT_VERSION;
use super::lines::{Lines, trimmed};
use super::recover::{LinePart, recover};
use super::state::{FileLog, Log, LogStorage};
use crate::invariant::{always, never};
use crate::os::FileAt;
use crate::os::file::{self, File, Location};
use crate::os::handle::HandleAccess;
use crate::os::temporary::{self, Temporary};
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use treelined_core::bytes::part;
use treelined_core::defect::breaks;
use treelined_core::entry::{BadLine, Line, scan};
use treelined_core::error::{Error, Result};
use treelined_core::json;
use treelined_core::tree::{FilePlace, Node, Tree};

/// The number of bytes that are copied or compared at a time.
const COPIED: usize = 1 << 18;
/// The number of bytes that are written at a time.
pub(super) const BUFFER: usize = 1 << 18;

/// The suffix of the name of the original file.
fn backup_suffix(version: u64) -> String {
    format!(".v{version}.bak")
}

impl Log {
    /// Whether the file must be rewritten before an append.
    pub fn needs_rewrite(&self) -> bool {
        self.is_written() && self.version() < CURRENT_VERSION
    }

    /// Rewrites the file as version 3 and keeps the original beside it. Requires the lock, and all lines in `tree`.
    /// After this call the caller must reopen the log, and follow the old file for a while ([`super::late_writes`]).
    pub fn rewrite(&mut self, lock: &Lock, tree: &Tree) -> Result<()> {
        let bodies = self.bodies();
        let (LogStorage::File(log), Some(old)) = (&self.store, lock.file()) else {
            return Err(nothing_to_rewrite());
        };
        let failed = |error: io::Error| log.failed("migrate", &error);
        always!(
            "Only a file of version 1 or 2 is migrated",
            self.needs_rewrite()
        )?;
        temporary::remove_abandoned(&log.at.folder).map_err(failed)?;
        keep_original(log, old, &backup_suffix(self.version()))?;
        let mut kept_to = 0;
        replace(&log.at, &log.at, |out| {
            let header = self.header().map(|header| header.place);
            write_migrated(out, old, 0..log.end, header, tree, &bodies)?;
            kept_to = copy_torn_tail(out, old, log.end)?;
            Ok(())
        })?;
        self.keep_tail_to(kept_to);
        Ok(())
    }

    /// Records that the unfinished line which ends at this offset is in the new file or in the quarantine.
    pub(super) fn keep_tail_to(&mut self, end: u64) {
        if let LogStorage::File(log) = &mut self.store {
            log.tail_kept_to = end;
        }
    }

    /// The lines from the offset `from` to the end of the bytes that were read, as version 3.
    pub(super) fn migrated(&self, tree: &Tree, from: u64) -> Result<Vec<Vec<u8>>> {
        let bodies = self.bodies();
        let LogStorage::File(log) = &self.store else {
            return Ok(Vec::new());
        };
        let Some(open) = &log.open else {
            return Ok(Vec::new());
        };
        let old = log.file(open, HandleAccess::Read)?;
        let mut text = Vec::new();
        write_migrated(&mut text, &old, from..log.end, None, tree, &bodies)
            .map_err(|error| log.failed("migrate", &error))?;
        always!(
            "A migrated entry is a whole line",
            text.is_empty() || text.ends_with(b"\n")
        )?;
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines
            .filter(|line| !line.trim_ascii().is_empty())
            .map(<[u8]>::to_vec)
            .collect())
    }
}

impl Log {
    /// The entries before the header on its damaged line, as version 3.
    pub(super) fn before_header(&self, tree: &Tree) -> Result<Vec<Vec<u8>>> {
        let LogStorage::File(log) = &self.store else {
            return Ok(Vec::new());
        };
        let (Some(open), 1..) = (&log.open, log.header_at) else {
            return Ok(Vec::new());
        };
        let file = log.file(open, HandleAccess::Read)?;
        let failed = |error: io::Error| log.failed("read", &error);
        let mut lines = Lines::new(&file, 0);
        while let Some(line) = lines.next().map_err(failed)? {
            let before = log.header_at.saturating_sub(line.offset);
            let text = usize::try_from(before).ok();
            if let Some(text) = text.and_then(|before| line.bytes?.get(..before))
                && before < line.len
            {
                let bodies = self.bodies();
                let migration = Migration::of(None, tree, &bodies);
                let entries = migration.entries(text, line.offset);
                return entries.map_err(failed);
            }
        }
        Ok(Vec::new())
    }
}

/// Makes a synced copy of the original, unless one exists.
fn keep_original(log: &FileLog, old: &File, suffix: &str) -> Result<()> {
    let failed = |error: io::Error| log.failed("migrate", &error);
    let mut backup = log.at.beside(suffix);
    let mut number = 1;
    while backup.status().is_ok() {
        if let Ok(kept) = backup.folder.file(&backup.name, HandleAccess::Read)
            && same_content(&kept, old).map_err(failed)?
        {
            return Ok(());
        }
        number += 1;
        backup = log.at.beside(&format!("{suffix}.{number}"));
    }
    replace(&log.at, &backup, |out| copy(old, out))
}

/// Writes a synced file beside `at`, and then gives it the name of `to`.
pub fn replace(
    at: &Location,
    to: &Location,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<()> {
    let failed = |error: io::Error| Error::io(&format!("write {}", to.path().display()), &error);
    never!(
        "No temporary file replaces another temporary file",
        temporary::is_temporary(&to.name)
    )?;
    let written = (|| {
        let temporary = Temporary::for_name(&at.folder, &to.name)?;
        let mut out = BufWriter::with_capacity(BUFFER, &**temporary.file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        finish(temporary, to)
    })();
    written.map_err(failed)
}

/// Syncs a written file, and gives it the name of `to`.
pub(super) fn finish(temporary: Temporary, to: &Location) -> io::Result<()> {
    temporary.file().sync_all()?;
    never!(
        "No file replaces a session file while it is empty",
        file::status_of(temporary.file())?.size == 0
            && to.name.as_encoded_bytes().ends_with(b".jsonl")
    )
    .map_err(io::Error::other)?;
    temporary.name(to)?;
    to.folder.sync()
}

fn copy(from: &File, out: &mut impl Write) -> io::Result<()> {
    let size = file::status_of(from)?.size;
    copy_range(out, from, 0, size)
}

/// Copies `len` bytes of the file from `offset` on.
pub fn copy_range(out: &mut impl Write, file: &File, offset: u64, len: u64) -> io::Result<()> {
    let mut buffer = vec![0; COPIED.min(usize::try_from(len).unwrap_or(COPIED))];
    let mut copied = 0;
    while copied < len {
        let wanted = usize::try_from(len - copied).unwrap_or(usize::MAX);
        let length = buffer.len().min(wanted);
        let Some(room) = buffer.get_mut(..length) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        file.read_exact_at(room, offset + copied)?;
        out.write_all(room)?;
        copied += length as u64;
    }
    Ok(())
}

/// Whether both files have the same bytes.
fn same_content(a: &File, b: &File) -> io::Result<bool> {
    let size = file::status_of(a)?.size;
    if file::status_of(b)?.size != size {
        return Ok(false);
    }
    let (mut of_a, mut of_b) = (vec![0; COPIED], vec![0; COPIED]);
    let mut at = 0;
    while at < size {
        let length = COPIED.min(usize::try_from(size - at).unwrap_or(COPIED));
        let (Some(left), Some(right)) = (of_a.get_mut(..length), of_b.get_mut(..length)) else {
            return Ok(false);
        };
        a.read_exact_at(left, at)?;
        b.read_exact_at(right, at)?;
        if left != right {
            return Ok(false);
        }
        at += length as u64;
    }
    Ok(true)
}

/// Writes every line of the old file that begins in `range`. The header, which is at `header`, gets its new version,
/// entries are migrated, and all other lines stay unchanged.
fn write_migrated(
    out: &mut impl Write,
    old: &File,
    range: Range<u64>,
    header: Option<FilePlace>,
    tree: &Tree,
    bodies: &Bodies,
) -> io::Result<()> {
    let migration = Migration::of(header, tree, bodies);
    let mut lines = Lines::new(old, range.start);
    while let Some(line) = lines.next()? {
        if line.offset >= range.end {
            break;
        }
        match line.bytes {
            Some(bytes) => migration.write_line(out, bytes, line.offset)?,
            None => {
                copy_range(out, old, line.offset, line.len)?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}

/// The old file's header, tree and bodies.
struct Migration<'a> {
    header: Option<FilePlace>,
    tree: &'a Tree,
    bodies: &'a Bodies,
    /// The nodes, by the offset of their bodies in bytes.
    nodes: HashMap<u64, Node>,
}

impl<'a> Migration<'a> {
    fn of(header: Option<FilePlace>, tree: &'a Tree, bodies: &'a Bodies) -> Self {
        let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
        Self {
            header,
            tree,
            bodies,
            nodes: nodes.map(|node| (tree.place(node).offset, node)).collect(),
        }
    }

    /// The whole entries in `text`, which is the part of a damaged line that starts at `offset`. Entries of version
    /// 3 keep their bytes.
    fn entries(&self, text: &[u8], offset: u64) -> io::Result<Vec<Vec<u8>>> {
        let mut entries = Vec::new();
        for LinePart { span, whole } in recover(text, Some(self.bodies.version())).pieces {
            let at = offset + span.start as u64;
            let stored = part(text, span);
            let lossy = String::from_utf8_lossy(stored);
            let scanned = scan::scan_line(lossy.as_bytes());
            if !whole || !matches!(scanned, Ok(Line::Entry(_))) {
                continue;
            }
            entries.push(match self.bodies.version() {
                ..CURRENT_VERSION => self.value(stored, at)?,
                _ => lossy.into_owned().into_bytes(),
            });
        }
        Ok(entries)
    }

    /// Writes each whole object of the line, and each torn piece between them, on its own line.
    fn write_line(&self, out: &mut impl Write, line: &[u8], offset: u64) -> io::Result<()> {
        let text = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if offset == 0 => rest,
            _ => line,
        };
        let start = offset + (line.len() - text.len()) as u64;
        let header = self.header.filter(|header| header.offset >= start);
        if header.is_some_and(|header| header.offset >= start + text.len() as u64) {
            // Opening ignores the objects on this line. On separate lines before the header they would be read, so the
            // line is not split.
            return write_rest(out, line);
        }
        let at = |piece: &LinePart| start + piece.span.start as u64;
        let bytes = |piece: &LinePart| part(text, piece.span.clone());
        let is_header = |piece: &LinePart| header.is_some_and(|header| header.offset == at(piece));
        let mut pieces = self.pieces(text, start);
        if let Some(header) = header {
            // Only the title may precede the header.
            pieces.sort_by_key(|piece| match is_header(piece) {
                true => 1,
                false if at(piece) < header.offset && piece.whole && is_title(bytes(piece)) => 0,
                false => 2,
            });
        }
        for piece in &pieces {
            match piece.whole {
                true if is_header(piece) => write_header(out, bytes(piece))?,
                true => {
                    out.write_all(&self.value(bytes(piece), at(piece))?)?;
                    if !breaks("A migrated entry is a whole line") {
                        out.write_all(b"\n")?;
                    }
                }
                false => write_rest(out, bytes(piece))?,
            }
        }
        Ok(())
    }

    /// The parts of a line, in the order in which opening the file reads them. NUL bytes before a part belong to it.
    fn pieces(&self, text: &[u8], start: u64) -> Vec<LinePart> {
        let is_sound = std::str::from_utf8(text).is_ok()
            && !matches!(scan::scan_line(text), Err(BadLine::InvalidJson { .. }));
        if is_sound {
            let span = trimmed(text);
            let whole = !span.is_empty();
            return whole
                .then_some(LinePart { span, whole })
                .into_iter()
                .collect();
        }
        let is_behind_header = self.header.is_none_or(|header| header.offset < start);
        let found = recover(text, is_behind_header.then(|| self.bodies.version())).pieces;
        let mut in_file_order: Vec<_> = found.iter().map(|piece| piece.span.clone()).collect();
        in_file_order.sort_unstable_by_key(|span| span.start);
        let gap_before = |span: &Range<usize>| {
            let next = in_file_order.partition_point(|other| other.start < span.start);
            let before = next.checked_sub(1).and_then(|at| in_file_order.get(at));
            let start = before.map_or(0, |before| before.end);
            let span = start..span.start;
            LinePart { span, whole: false }
        };
        let mut pieces = Vec::with_capacity(2 * found.len() + 1);
        for piece in found {
            pieces.push(gap_before(&piece.span));
            pieces.push(piece);
        }
        pieces.push(gap_before(&(text.len()..text.len())));
        pieces
    }

    /// An entry in its migrated form, even if a later line replaces it; any other value as it is stored.
    fn value(&self, stored: &[u8], offset: u64) -> io::Result<Vec<u8>> {
        let node = self.nodes.get(&offset).copied().or_else(|| {
            let text = String::from_utf8_lossy(stored);
            match scan::scan_line(text.as_bytes()) {
                Ok(Line::Entry(entry)) => self.tree.find_any(entry.id.as_deref()?),
                _ => None,
            }
        });
        match node {
            Some(node) => {
                let fetch = self.bodies.fetch(self.tree, node).map_err(other)?;
                Ok(fetch.apply(stored.to_vec()))
            }
            None => Ok(stored.to_vec()),
        }
    }
}

fn is_title(stored: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stored);
    matches!(scan::scan_line(text.as_bytes()), Ok(Line::Title(_)))
}

fn write_header(out: &mut impl Write, stored: &[u8]) -> io::Result<()> {
    let text = String::from_utf8_lossy(stored);
    let version = CURRENT_VERSION.to_string();
    out.write_all(&json::with_member(
        text.as_bytes(),
        "version",
        version.as_bytes(),
    ))?;
    out.write_all(b"\n")
}

/// Writes the fragment at the end of the old file as its own line, and returns its end. Whole lines after `end` are
/// late writes, and are copied later.
fn copy_torn_tail(out: &mut impl Write, old: &File, end: u64) -> io::Result<u64> {
    let mut kept_to = 0;
    let mut lines = Lines::new(old, end);
    while let Some(line) = lines.next()? {
        let Some(bytes) = line.bytes else {
            copy_range(out, old, line.offset, line.len)?;
            out.write_all(b"\n")?;
            continue;
        };
        if !line.terminated && scan::scan_line(bytes).is_err() {
            out.write_all(bytes)?;
            out.write_all(b"\n")?;
            kept_to = line.offset + line.len;
        }
    }
    Ok(kept_to)
}

/// Writes bytes that are not a JSON value, on their own line.
fn write_rest(out: &mut impl Write, rest: &[u8]) -> io::Result<()> {
    let rest = rest.trim_ascii();
    if rest.is_empty() {
        return Ok(());
    }
    out.write_all(rest)?;
    out.write_all(b"\n")
}

fn other(error: Error) -> io::Error {
    io::Error::other(error.message)
}

fn nothing_to_rewrite() -> Error {
    Error::new(
        treelined_core::error::Kind::StorageIo,
        "there is no file to migrate",
    )
}
