//! The side index: the tree of a large session file, kept in the cache so that the next opening reads only the lines
//! that were appended since (session-file.md §2).
//!
//! The index is used while the file still begins with the bytes of its [fingerprint](super::fingerprint). Otherwise the
//! file is scanned as if there were no index. Bodies are always read from the file, and are checked against the id of
//! the entry.

use super::diagnostic::{Damage, Diagnostic};
use super::file_log::Tail;
use super::fingerprint::{Fingerprint, is_still_there};
use super::header::Header;
use super::ingest::Ingest;
use super::state::{FileLog, Log, LogStorage, OpenFile, OpenedLog};
use crate::cache::{Cache, CacheFile, FileKind};
use crate::cancel::Cancel;
use crate::os::file::{self, File, Location, Status};
use crate::os::handle::{Handle, HandleAccess};
use crate::parallel;
use std::io;
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::error::Result;
use treelined_core::tree::Tree;
use treelined_core::tree::image::{IdTable, Image, ImageRows, LEN_BYTES, ROW_BYTES};

/// The version of the format of this file. It must change with the format, and with the order of kinds, roles, damages
/// and causes.
pub const KIND: FileKind = FileKind {
    format: b"treelined indexB",
    ending: ".index",
    most: 4096,
    most_bytes: 1 << 30,
};
/// Scanning a file with fewer bytes than this takes no longer than reading an index.
pub(crate) const WORTHWHILE: u64 = 2 << 20;

/// An index ready to be written.
pub struct Index {
    name: String,
    head: Vec<u8>,
    image: Image,
}

impl Log {
    /// Opens a session file, and reads from the file only the lines that its index does not have. Also returns a new
    /// index if writing one is worthwhile.
    pub fn open_indexed(
        at: Location,
        cache: &Cache,
        cancel: &Cancel,
    ) -> Result<(OpenedLog, Option<Index>)> {
        Self::open_indexed_from(at, cache, WORTHWHILE, cancel)
    }

    /// Like [`Log::open_indexed`]; a new index is worthwhile after every `worthwhile` bytes.
    fn open_indexed_from(
        at: Location,
        cache: &Cache,
        worthwhile: u64,
        cancel: &Cancel,
    ) -> Result<(OpenedLog, Option<Index>)> {
        let before = at.status().ok();
        let restored = before
            .filter(|status| status.size >= worthwhile)
            .and_then(|status| restore(&at, status, cache));
        let (opened, covered) = match restored {
            Some(restored) => {
                let covered = restored.log.end;
                (restored.open(cancel)?, covered)
            }
            None => (Log::open_unless(at.clone(), cancel)?, 0),
        };
        let index = before.and_then(|before| Index::of(&opened, before, covered + worthwhile));
        Ok((opened, index))
    }
}

impl Index {
    /// The index of an opened file that had the status `before`. `None` if the file has changed since then, or has
    /// fewer than `least` bytes.
    fn of(opened: &OpenedLog, before: Status, least: u64) -> Option<Self> {
        let LogStorage::File(log) = &opened.log.store else {
            return None;
        };
        let ingest = &opened.log.ingest;
        let is_whole = log.ends_in_break && log.torn_at.is_none() && log.end == before.size;
        // The next write will replace a version 1 file, so an index of it is not worthwhile.
        if !is_whole || ingest.version() < 2 || log.end < least {
            return None;
        }
        let file = log.file(log.open.as_ref()?, HandleAccess::Read).ok()?;
        if file::status_of(&file).ok()? != before {
            return None;
        }
        let image = opened.tree.image()?;
        let mut out = Fields::default();
        Fingerprint::of(&file, before, log.end)?.put(&mut out);
        ingest.header.as_ref()?.put(&mut out);
        out.bytes(&log.header_line);
        out.u64(ingest.lines);
        let found = opened.diagnostics.iter();
        // Faults of links are reported at each opening, since later lines may repair them.
        let of_lines: Vec<&Diagnostic> = found.filter(|found| !is_of_links(found)).collect();
        out.count(of_lines.len());
        for diagnostic in of_lines {
            out.u8(diagnostic.damage as u8);
            out.u64(diagnostic.line);
            out.u64(diagnostic.offset);
            out.u64(diagnostic.length);
        }
        out.u32(image.count);
        Some(Self {
            name: KIND.name_for(before.identity),
            head: out.0,
            image,
        })
    }

    /// Writes the index to the cache, and removes the indexes that exceed the limits. A failure is logged; the next
    /// opening then scans the file.
    pub fn write(&self, cache: &Cache) {
        if let Err(error) = self.save(cache).and_then(|()| cache.prune(&KIND)) {
            tracing::info!(%error, "a side index could not be written");
        }
    }

    /// Writes the index to the cache.
    pub fn save(&self, cache: &Cache) -> io::Result<()> {
        let Image {
            id_lens,
            ids,
            rows,
            rest,
            ..
        } = &self.image;
        cache.write(
            &self.name,
            KIND.format,
            &self.head,
            &[id_lens, ids, rows, rest],
        )
    }
}

/// Whether the diagnostic is about a parent, which a later line may still add.
fn is_of_links(diagnostic: &Diagnostic) -> bool {
    matches!(
        diagnostic.damage,
        Damage::OrphanParent | Damage::ForwardParent
    )
}

/// A log in the state in which its index was written.
struct RestoredLog {
    log: FileLog,
    ingest: Ingest,
    tree: Tree,
}

impl RestoredLog {
    /// Reads the lines that were appended after the index was written.
    fn open(mut self, cancel: &Cancel) -> Result<OpenedLog> {
        self.log
            .read_on(&mut self.tree, &mut self.ingest, Tail::Take, cancel)?;
        Ok(self.log.opened(self.ingest, self.tree))
    }
}

/// The head of an index.
struct IndexHead {
    end: u64,
    header: Header,
    header_line: Vec<u8>,
    lines: u64,
    diagnostics: Vec<Diagnostic>,
    /// The number of nodes of the tree.
    count: u32,
}

fn restore(at: &Location, status: Status, cache: &Cache) -> Option<RestoredLog> {
    let file = at.folder.file(&at.name, HandleAccess::Read).ok()?;
    if file::status_of(&file).ok()? != status {
        return None;
    }
    let settled = status.is_settled().then_some(status);
    let index = cache.open(&KIND.name_for(status.identity), KIND.format)?;
    let head = IndexHead::read(&index.summary, &file, status)?;
    let tree = read_tree(&index, &head)?;
    if status.size > head.end && !is_still_there(&file, &tree) {
        return None;
    }
    let open = OpenFile::new(Handle::new(file, HandleAccess::Read), status.identity);
    let mut log = FileLog::new(at.clone(), Some(open));
    log.header_at = head.header.place.offset;
    log.header_line = head.header_line;
    log.end = head.end;
    log.note_checked(settled);
    let mut ingest = Ingest::of_new(head.header, head.lines);
    ingest.diagnostics = head.diagnostics;
    Some(RestoredLog { log, ingest, tree })
}

fn read_tree(index: &CacheFile, head: &IndexHead) -> Option<Tree> {
    let [id_lens, ids, rows, rest] = *index.blocks.as_slice() else {
        return None;
    };
    // The count is checked before memory for the nodes is reserved.
    let count = u64::from(head.count);
    if rows.len != count.checked_mul(ROW_BYTES as u64)?
        || id_lens.len != count.checked_mul(LEN_BYTES as u64)?
    {
        return None;
    }
    let (id_lens, ids) = (id_lens.read(&index.file)?, ids.read(&index.file)?);
    let read_rows = || {
        let mut read = ImageRows::with_capacity(head.count);
        rows.pass(&index.file, ROW_BYTES, |bytes| {
            read.take(bytes, &id_lens, head.end)
        })?;
        Some((read, rest.read(&index.file)?))
    };
    let (rows, table) = parallel::join(read_rows, || IdTable::of(head.count, &id_lens, &ids));
    let ((rows, rest), table) = (rows?, table?);
    rows.finish(head.count, ids, table, &rest)
}

impl IndexHead {
    /// Reads the head; `None` if the index does not belong to this file with this status.
    fn read(bytes: &[u8], file: &File, status: Status) -> Option<Self> {
        let mut fields = Cursor::new(bytes);
        let covered = Fingerprint::get(&mut fields)?;
        if !covered.matches(file, status) {
            return None;
        }
        let header = Header::get(&mut fields)?;
        let header_line = fields.bytes()?.to_vec();
        let lines = fields.u64()?;
        let diagnostics = fields.list(|fields| {
            Some(Diagnostic {
                damage: Damage::from_number(fields.u8()?)?,
                line: fields.u64()?,
                offset: fields.u64()?,
                length: fields.u64()?,
            })
        })?;
        let head = Self {
            end: covered.end(),
            header,
            header_line,
            lines,
            diagnostics,
            count: fields.u32()?,
        };
        fields.is_at_end().then_some(head)
    }
}

#[cfg(test)]
mod tests;
