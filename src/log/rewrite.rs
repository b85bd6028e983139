//! The one time a session file is replaced: versions 1 and 2 become version 3 on the first write
//! (storage.md §2). Killed at any point, either the old or the new file is whole under its name, and
//! the original stays beside it.

use super::append::Lock;
use super::body::Bodies;
use super::file::Location;
use super::handle::Access;
use super::ingest::CURRENT_VERSION;
use super::lines::Lines;
use super::scan::{self, Facts, Line, Role};
use super::temporary::{self, Temporary};
use super::{FileLog, Log, Store, migrate};
use crate::error::{Error, Result};
use crate::json;
use crate::tree::{Node, Tree};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

/// What the original is kept as: the name of the file and this.
fn backup_suffix(version: u64) -> String {
    format!(".v{version}.bak")
}

impl Log {
    /// Whether the file is of a version that has to be rewritten before anything is appended.
    pub fn needs_rewrite(&self) -> bool {
        self.is_written() && self.version() < CURRENT_VERSION
    }

    /// Rewrites the file as version 3 and keeps the original beside it. The lock is held and
    /// everything in the file is in `tree`; afterwards the log has to be opened again, and the old
    /// file watched for a while ([`super::carry`]).
    pub fn rewrite(&mut self, lock: &Lock, tree: &Tree) -> Result<()> {
        let bodies = self.bodies();
        let (Store::File(log), Some(old)) = (&self.store, lock.file()) else {
            return Err(nothing_to_rewrite());
        };
        let failed = |error: io::Error| log.failed("migrate", &error);
        temporary::remove_abandoned(&log.at.folder).map_err(failed)?;
        keep_original(log, old, &backup_suffix(self.version()))?;
        replace(&log.at, &log.at, |out| {
            write_migrated(out, old, 0..log.end, tree, &bodies)?;
            copy_torn_tail(out, old, log.end)
        })
    }

    /// The lines from `from` up to where the log has been read, as version 3.
    pub(super) fn migrated(&self, tree: &Tree, from: u64) -> Result<Vec<Vec<u8>>> {
        let bodies = self.bodies();
        let Store::File(log) = &self.store else {
            return Ok(Vec::new());
        };
        let Some(open) = &log.open else {
            return Ok(Vec::new());
        };
        let old = log.file(open, Access::Read)?;
        let mut text = Vec::new();
        write_migrated(&mut text, &old, from..log.end, tree, &bodies)
            .map_err(|error| log.failed("migrate", &error))?;
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines
            .filter(|line| !line.trim_ascii().is_empty())
            .map(<[u8]>::to_vec)
            .collect())
    }
}

/// Copies the original, synced, unless the copy is already there.
fn keep_original(log: &FileLog, old: &File, suffix: &str) -> Result<()> {
    let failed = |error: io::Error| log.failed("migrate", &error);
    let mut backup = log.at.beside(suffix);
    let mut number = 1;
    while backup.status().is_ok() {
        if let Ok(kept) = backup.folder.file(&backup.name, Access::Read)
            && same_content(&kept, old).map_err(failed)?
        {
            return Ok(());
        }
        number += 1;
        backup = log.at.beside(&format!("{suffix}.{number}"));
    }
    replace(&log.at, &backup, |out| copy(old, out))
}

/// Writes a file beside `at`, synced, and gives it the name of `to`.
pub fn replace(
    at: &Location,
    to: &Location,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<()> {
    let failed = |error: io::Error| Error::io(&format!("write {}", to.path().display()), &error);
    let written = (|| {
        let temporary = Temporary::for_name(&at.folder, &to.name)?;
        let mut out = BufWriter::with_capacity(1 << 18, &**temporary.file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        temporary.file().sync_all()?;
        temporary.name(to)?;
        to.folder.sync()
    })();
    written.map_err(failed)
}

fn copy(from: &File, out: &mut impl Write) -> io::Result<()> {
    let mut lines = Lines::new(from, 0);
    while let Some(line) = lines.next()? {
        let bytes = line.bytes.ok_or_else(too_long)?;
        out.write_all(bytes)?;
        if line.terminated {
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Whether both hold the same lines.
fn same_content(a: &File, b: &File) -> io::Result<bool> {
    let (mut a, mut b) = (Lines::new(a, 0), Lines::new(b, 0));
    loop {
        match (a.next()?, b.next()?) {
            (None, None) => return Ok(true),
            (Some(a), Some(b)) if a == b => {}
            _ => return Ok(false),
        }
    }
}

/// Every line of the old file that begins in `range`: the header with its new version, entries as
/// migrated, anything else as it is.
fn write_migrated(
    out: &mut impl Write,
    old: &File,
    range: Range<u64>,
    tree: &Tree,
    bodies: &Bodies,
) -> io::Result<()> {
    let mut by_offset: Vec<(u64, Node)> = (0..tree.node_count())
        .filter_map(|number| tree.node(number))
        .map(|node| (tree.place(node).offset, node))
        .filter(|(offset, _)| range.contains(offset))
        .collect();
    by_offset.sort_unstable();
    let mut nodes = by_offset.into_iter().peekable();
    let mut lines = Lines::new(old, range.start);
    let mut header_passed = range.start > 0;
    while let Some(line) = lines.next()? {
        if line.offset >= range.end {
            break;
        }
        let bytes = line.bytes.ok_or_else(too_long)?;
        let end = line.offset + line.len;
        let scanned = scan::scan_line(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
        if let (Ok(Line::Header(_)), false) = (&scanned, header_passed) {
            header_passed = true;
            let version = CURRENT_VERSION.to_string();
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            out.write_all(&json::with_member(
                bytes.trim_ascii(),
                "version",
                version.as_bytes(),
            ))?;
            out.write_all(b"\n")?;
            continue;
        }
        let mut at = line.offset;
        while let Some((offset, node)) = nodes.next_if(|(offset, _)| *offset < end) {
            let place = tree.place(node);
            write_rest(out, bytes, line.offset, at..offset)?;
            let fetch = bodies.fetch(tree, node).map_err(other)?;
            let stored = bodies.read(place).map_err(other)?;
            out.write_all(&fetch.apply(stored))?;
            out.write_all(b"\n")?;
            at = offset + u64::from(place.len);
        }
        if at == line.offset {
            write_other_line(out, bytes, &scanned)?;
        } else {
            write_rest(out, bytes, line.offset, at..end)?;
        }
    }
    Ok(())
}

/// The fragment that stands behind everything else, as a line of its own. What is whole there has
/// only just come, and is carried over.
fn copy_torn_tail(out: &mut impl Write, old: &File, end: u64) -> io::Result<()> {
    let mut lines = Lines::new(old, end);
    while let Some(line) = lines.next()? {
        let bytes = line.bytes.ok_or_else(too_long)?;
        if !line.terminated && scan::scan_line(bytes).is_err() {
            out.write_all(bytes)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// A line that no entry of the tree stands on: damaged, or a copy that another line has replaced.
fn write_other_line(
    out: &mut impl Write,
    bytes: &[u8],
    scanned: &Result<Line<'_>, scan::BadLine>,
) -> io::Result<()> {
    let is_custom_message = match scanned {
        Ok(Line::Entry(envelope)) => {
            matches!(
                &envelope.facts,
                Facts::Message {
                    role: Role::Custom,
                    ..
                }
            )
        }
        _ => false,
    };
    if is_custom_message {
        out.write_all(&migrate::rename_role(bytes))?;
    } else {
        out.write_all(bytes)?;
    }
    out.write_all(b"\n")
}

/// What stands on a damaged line beside its entries, on a line of its own.
fn write_rest(
    out: &mut impl Write,
    line: &[u8],
    line_offset: u64,
    range: std::ops::Range<u64>,
) -> io::Result<()> {
    let start = (range.start - line_offset) as usize;
    let end = (range.end.saturating_sub(line_offset)) as usize;
    let rest = line.get(start..end).unwrap_or_default().trim_ascii();
    if rest.is_empty() || rest == b"\xef\xbb\xbf" {
        return Ok(());
    }
    out.write_all(rest)?;
    out.write_all(b"\n")
}

fn too_long() -> io::Error {
    io::Error::other("a line is too long to be copied")
}

fn other(error: Error) -> io::Error {
    io::Error::other(error.message)
}

fn nothing_to_rewrite() -> Error {
    Error::new(crate::error::Kind::StorageIo, "there is no file to migrate")
}
