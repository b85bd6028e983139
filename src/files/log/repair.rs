//! Repairs a session file on request. Damaged bytes are kept in a quarantine folder beside the file, and the
//! file is replaced with a file without them. Entries that are recovered from damaged lines stay, each on its
//! own line (session-file.md §2).
//!
//! A repair mends lines, not links: an entry with an unknown parent, or a second line with the same entry,
//! stays as it is.

use super::append::{self, TryLock};
use super::cold::{self, ColdReader, Piece, ShedRecords};
use super::diagnostic::{Damage, Diagnostic};
use super::header::CURRENT_VERSION;
use super::lines::Lines;
use super::recover::{LinePart, recover};
use super::rewrite::{self, copy_range};
use super::state::{Log, LogStorage, OpenedLog, Standing};
use crate::os::file::{File, Location};
use crate::os::handle::HandleAccess;
use crate::os::{temporary, time};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::bytes::part;
use treelined_core::entry::{Line, scan};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tree::FilePlace;

/// The suffix of the quarantine folder's name.
const QUARANTINE_SUFFIX: &str = ".quarantine";

/// The damage found, and the changes of the repair.
pub struct RepairReport {
    /// Every fault of the file.
    pub found: Vec<Diagnostic>,
    /// The number of lines that the repair removes or completes. A dry run counts them without a change.
    pub lines: usize,
    /// The number of bytes of the lines moved to quarantine.
    pub quarantined_bytes: u64,
    /// The number of entries recovered from those lines.
    pub recovered: usize,
    /// The path of the damaged bytes in quarantine; `None` if there are none, or if nothing was changed.
    pub quarantine: Option<PathBuf>,
    /// The replaced file, if there is one. Other processes may still write to it.
    pub replaced: Option<OpenedLog>,
}

/// Repairs the file. With `dry_run` it only reports the damage. Fails with `versionUnsupported` for a file of
/// another version, which must be migrated first.
pub fn repair(at: &Location, dry_run: bool) -> Result<RepairReport> {
    let mut opened = Log::open(at.clone())?;
    if opened.log.version() != CURRENT_VERSION {
        return Err(Error::new(
            Kind::VersionUnsupported,
            match opened.log.version() {
                CURRENT_VERSION.. => {
                    let newer = opened.log.version_text();
                    format!("{newer} is newer than this program and is not repaired")
                }
                older => format!(
                    "version {older} is not repaired: run `treelined migrate` on the file first"
                ),
            },
        ));
    }
    // The lock is held, so the file does not change after this point.
    let lock = if dry_run {
        None
    } else {
        let lock = locked(&mut opened.log)?;
        let tidied = temporary::remove_abandoned(&at.folder);
        tidied.map_err(|error| failed(at, &error))?;
        let read = Log::open(at.clone())?;
        if read.log.identity() != opened.log.identity() {
            return Err(append::replaced());
        }
        opened = read;
        Some(lock)
    };
    let OpenedLog {
        mut log,
        tree,
        diagnostics,
    } = opened;
    let file = Arc::new(at.folder.file(&at.name, HandleAccess::Read)?);
    let header = log.header().map(|header| header.place);
    let header = header.ok_or_else(append::replaced)?;
    // Bytes after this offset are copied later, as late writes of other programs.
    let end = match &log.store {
        LogStorage::File(log) => log.end,
        LogStorage::Memory(_) => 0,
    };
    let plan = plan(&file, header, end).map_err(|error| failed(at, &error))?;
    let unended = diagnostics
        .iter()
        .any(|found| found.damage == Damage::MissingTrailingNewline);
    let mut report = RepairReport {
        found: diagnostics,
        lines: plan.len() + usize::from(unended),
        quarantined_bytes: plan.iter().map(|line| line.len).sum(),
        recovered: plan.iter().map(|line| line.entries).sum(),
        quarantine: None,
        replaced: None,
    };
    if lock.is_none() || report.lines == 0 {
        return Ok(report);
    }
    if !plan.is_empty() {
        report.quarantine = Some(quarantine(at, &file, &plan)?);
    }
    let shed = match tree.has_shed() {
        true => Some(ShedRecords::of(&tree, &log.bodies())?),
        false => None,
    };
    rewrite::replace(at, at, |out| write_repaired(out, &file, &plan, end))?;
    if let Some(records) = shed {
        move_cold(at, &records, &file, header, &plan, end)?;
    }
    let fragment = plan.last().filter(|line| line.offset >= end);
    log.keep_tail_to(fragment.map_or(0, |line| line.offset + line.len));
    report.replaced = Some(OpenedLog {
        log,
        tree,
        diagnostics: Vec::new(),
    });
    Ok(report)
}

/// A damaged line that is replaced.
struct DamagedLine {
    /// The offset in bytes from the start of the file.
    offset: u64,
    /// The length in bytes, without the line break.
    len: u64,
    /// The offset and length of each part that is kept: the title, the header and the entries on the line, in
    /// the order in which they are written.
    kept: Vec<(u64, u64)>,
    /// The number of entries among the kept parts.
    entries: usize,
}

pub(super) fn locked(log: &mut Log) -> Result<append::Lock> {
    let began = time::now();
    loop {
        if let TryLock::Locked(lock) = log.try_lock()? {
            return match log.standing()? {
                standing @ (Standing::Deleted | Standing::Replaced) => {
                    Err(append::refuse(standing).unwrap_or_else(append::replaced))
                }
                Standing::Unchanged | Standing::Grown(_) => Ok(lock),
            };
        }
        if time::since(began) >= append::LOCK_TIMEOUT {
            return Err(append::locked_elsewhere());
        }
        time::sleep(Duration::from_millis(5));
    }
}

/// The damaged lines before `end`, and the fragment at `end`. Lines that are too long for memory are not touched.
fn plan(file: &File, header: FilePlace, end: u64) -> io::Result<Vec<DamagedLine>> {
    let mut damaged = Vec::new();
    let mut lines = Lines::new(file, 0);
    while let Some(line) = lines.next()? {
        if line.offset >= end && line.terminated {
            break;
        }
        let Some(bytes) = line.bytes else {
            continue;
        };
        let text = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if line.offset == 0 => rest,
            _ => bytes,
        };
        let start = line.offset + (line.len - text.len() as u64);
        let is_before_header = start <= header.offset;
        let is_utf8 = std::str::from_utf8(text).is_ok();
        let is_sound = match scan::scan_line(text) {
            Ok(Line::Header(_)) => is_utf8 && is_before_header,
            Ok(Line::Title(_)) => is_utf8 && is_before_header,
            Ok(Line::Entry(entry)) => is_utf8 && entry.id.is_some(),
            Ok(Line::Blank) => true,
            Err(_) => false,
        };
        if !is_sound {
            let (kept, entries) = kept(text, start, header);
            damaged.push(DamagedLine {
                offset: line.offset,
                len: line.len,
                kept,
                entries,
            });
        }
    }
    Ok(damaged)
}

/// The parts of a damaged line that stay (the header, the title before it, and every whole entry), as offsets
/// and lengths. Also returns the number of entries among them.
fn kept(text: &[u8], start: u64, header: FilePlace) -> (Vec<(u64, u64)>, usize) {
    let version = (header.offset < start).then_some(CURRENT_VERSION);
    let (mut kept, mut entries) = (Vec::new(), 0);
    for LinePart { span, .. } in recover(text, version)
        .pieces
        .into_iter()
        .filter(|piece| piece.whole)
    {
        let bytes = part(text, span.clone());
        let offset = start + span.start as u64;
        let is_kept = match scan::scan_line(String::from_utf8_lossy(bytes).as_bytes()) {
            Ok(Line::Header(_)) => offset == header.offset,
            Ok(Line::Title(_)) => offset < header.offset,
            Ok(Line::Entry(entry)) => {
                entries += usize::from(entry.id.is_some());
                entry.id.is_some()
            }
            Ok(Line::Blank) | Err(_) => false,
        };
        if is_kept {
            kept.push((offset, span.len() as u64));
        }
    }
    (kept, entries)
}

/// Copies the damaged lines into a new, synced file; it never overwrites a file.
fn quarantine(at: &Location, file: &File, plan: &[DamagedLine]) -> Result<PathBuf> {
    let mut folder_name = at.name.clone();
    folder_name.push(QUARANTINE_SUFFIX);
    let folder = at.folder.subfolder_or_create(&folder_name);
    let folder = folder.map_err(|error| failed(at, &error))?;
    let mut number = 1;
    let (name, mut out) = loop {
        let name = OsString::from(format!("{number}.damaged"));
        match folder.create(&name) {
            Ok(out) => break (name, out),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(at, &error)),
        }
    };
    let written = (|| {
        for line in plan {
            copy_range(&mut out, file, line.offset, line.len)?;
            out.write_all(b"\n")?;
        }
        out.sync_all()?;
        folder.sync()
    })();
    written.map_err(|error| failed(at, &error))?;
    Ok(folder.path().join(name))
}

/// Writes every undamaged line before `end`, and the entries recovered from damaged lines. Entries that are not
/// UTF-8 are written with U+FFFD, as they are read.
fn write_repaired(
    out: &mut impl Write,
    file: &File,
    plan: &[DamagedLine],
    end: u64,
) -> io::Result<()> {
    let mut damaged = plan.iter().peekable();
    let mut lines = Lines::new(file, 0);
    while let Some(line) = lines.next()? {
        if line.offset >= end {
            break;
        }
        let Some(damage) = damaged.next_if(|damage| damage.offset == line.offset) else {
            match line.bytes {
                Some(bytes) => out.write_all(bytes)?,
                None => copy_range(out, file, line.offset, line.len)?,
            }
            out.write_all(b"\n")?;
            continue;
        };
        for (offset, len) in &damage.kept {
            let mut bytes = Vec::new();
            copy_range(&mut bytes, file, *offset, *len)?;
            out.write_all(String::from_utf8_lossy(&bytes).as_bytes())?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Writes the cold file again with offsets in the repaired file, so that the order of the lines of both files stays.
fn move_cold(
    at: &Location,
    records: &ShedRecords,
    file: &File,
    header: FilePlace,
    plan: &[DamagedLine],
    end: u64,
) -> Result<()> {
    let Some(stored) = cold::open(at)? else {
        return Ok(());
    };
    let start = cold::first_line(file, header).map_err(|error| failed(at, &error))?;
    let to = at.beside(cold::SUFFIX);
    rewrite::replace(&to, &to, |out| {
        let mut growth = 0;
        for damage in plan.iter().filter(|damage| damage.offset < start) {
            growth += kept_bytes(file, damage, header.offset)?;
        }
        let mut damaged = plan
            .iter()
            .filter(|damage| damage.offset >= start)
            .peekable();
        let mut reader = ColdReader::new(Some(&stored), records)?;
        cold::walk(
            file,
            start..end,
            records,
            &mut reader,
            |piece| match piece {
                Piece::Hot(_, line) => {
                    if let Some(damage) = damaged.next_if(|damage| damage.offset == line.offset) {
                        growth += kept_bytes(file, damage, 0)?;
                        growth -= (damage.len + 1).cast_signed();
                    }
                    Ok(())
                }
                Piece::Record(..) => Ok(()),
                Piece::Cold(line) => {
                    let at = line.at.saturating_add_signed(growth);
                    cold::write_cold(out, at, &line.of, &line.line)
                }
            },
        )
    })
}

/// The number of bytes that the repair writes for the kept parts of a damaged line. Only the parts after the offset
/// `from` count, or all parts if `from` is 0.
fn kept_bytes(file: &File, damage: &DamagedLine, from: u64) -> io::Result<i64> {
    let mut size: u64 = 0;
    for (offset, len) in damage
        .kept
        .iter()
        .filter(|(offset, _)| *offset > from || from == 0)
    {
        let mut bytes = Vec::new();
        copy_range(&mut bytes, file, *offset, *len)?;
        size += String::from_utf8_lossy(&bytes).len() as u64 + 1;
    }
    Ok(size.cast_signed())
}

fn failed(at: &Location, error: &io::Error) -> Error {
    Error::io(&format!("repair {}", at.path().display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#;

    fn entry(id: &str, parent: &str) -> String {
        format!(
            r#"{{"type":"custom","id":"{id}","parentId":{parent},"timestamp":"2025-01-01T00:00:01.000Z","data": 1.0}}"#
        )
    }

    fn damaged_file() -> (tempfile::TempDir, Location, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let (a, b, c) = (entry("a", "null"), entry("b", "\"a\""), entry("c", "\"b\""));
        let mut bytes =
            format!("{HEADER}\n{a}\n{{\"type\":\"mess\n42\n{b}{c}\n\0\0\0\n").into_bytes();
        bytes.extend_from_slice(b"{\"type\":\"custom\",\"id\":\"d\",\"parentId\":\"c\",\"timestamp\":\"t\",\"x\":\"\xff\"}\n");
        bytes.extend_from_slice(
            format!("{HEADER}\n{}\n{{\"type\":", entry("e", "\"d\"")).as_bytes(),
        );
        fs::write(&path, &bytes).unwrap();
        let at = Location::of_path(&path).unwrap();
        (folder, at, bytes)
    }

    fn ids(at: &Location) -> (Vec<String>, Vec<Diagnostic>) {
        let opened = Log::open(at.clone()).unwrap();
        let tree = &opened.tree;
        let ids = tree.entries().map(|node| tree.id(node).to_owned());
        (ids.collect(), opened.diagnostics)
    }

    #[test]
    fn a_dry_run_says_what_would_be_done_and_writes_nothing() {
        let (folder, at, bytes) = damaged_file();
        let report = repair(&at, true).unwrap();
        assert_eq!((report.lines, report.recovered), (7, 3));
        assert!(report.replaced.is_none() && report.quarantine.is_none());
        assert_eq!(fs::read(at.path()).unwrap(), bytes);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn damaged_bytes_are_kept_beside_the_file_and_entries_stay() {
        let (_folder, at, bytes) = damaged_file();
        let (before, found) = ids(&at);
        assert_eq!(before, ["a", "b", "c", "d", "e"]);
        let report = repair(&at, false).unwrap();
        assert_eq!(report.found, found);
        assert!(report.replaced.is_some());
        assert_eq!(ids(&at), (before, vec![]));
        let repaired = fs::read(at.path()).unwrap();
        assert!(repaired.starts_with(format!("{HEADER}\n{}\n", entry("a", "null")).as_bytes()));

        let kept = report.quarantine.unwrap();
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&kept), 0o600);
        assert_eq!(mode(kept.parent().unwrap()), 0o700);
        assert_eq!(mode(&at.path()), 0o600);
        let kept = fs::read(&kept).unwrap();
        assert_eq!(kept.len() as u64, report.quarantined_bytes + 7);
        for line in bytes.split(|byte| *byte == b'\n') {
            let is_in =
                |text: &[u8]| line.is_empty() || text.windows(line.len()).any(|part| part == line);
            assert!(
                is_in(&repaired) || is_in(&kept),
                "{:?}",
                String::from_utf8_lossy(line)
            );
        }

        // A second repair of the file changes nothing.
        let again = repair(&at, false).unwrap();
        assert!(again.replaced.is_none() && again.lines == 0);
        assert_eq!(fs::read(at.path()).unwrap(), repaired);
    }

    #[test]
    fn a_file_somebody_is_writing_to_is_not_repaired() {
        let (_folder, at, bytes) = damaged_file();
        let holder = File::open(at.path()).unwrap();
        holder.lock().unwrap();
        let refused = repair(&at, false).err().map(|error| error.kind);
        assert_eq!(refused, Some(Kind::SessionLocked));
        assert_eq!(fs::read(at.path()).unwrap(), bytes);
    }
}
