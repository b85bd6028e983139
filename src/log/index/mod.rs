//! The side index: what scanning a large file found, kept in the cache, so that opening it again reads
//! only what has been appended since (storage.md §2).
//!
//! It is believed for a file that still begins with what it [covers](super::fingerprint); any other is
//! scanned as if there were no index. Bodies are always read from the file, which says of each whose it
//! is.

use super::diagnostic::{Damage, Diagnostic};
use super::fingerprint::{Covered, is_still_there};
use super::ingest::{Header, Ingest};
use super::{FileLog, Log, OpenFile, OpenedLog, Store, Tail};
use crate::bytes::{Cursor, Fields};
use crate::cache::Cache;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::os::file::{self, Location, Status};
use crate::os::handle::{Access, Handle};
use crate::tree::image::{Image, LEN_BYTES, ROW_BYTES, Rows, Table};
use crate::tree::{PagePosition, Tree};
use std::fs::File;

/// To be changed with everything that is written below, and with the order of kinds, roles, damages and
/// causes.
const FORMAT: &[u8; 16] = b"treelined index3";
/// How the names of indexes end.
const ENDING: &str = ".index";
/// Kept of one session directory.
const MOST: usize = 64;
/// Having scanned less than this, in bytes, there is nothing to save.
pub const WORTHWHILE: u64 = 2 << 20;

/// An index ready to be written.
pub struct Index {
    name: String,
    head: Vec<u8>,
    image: Image,
}

impl Log {
    /// Opens and reads a session file, what an index covers of it from there. Comes with a new index
    /// where that is worth writing.
    pub fn open_indexed(
        at: Location,
        cache: &Cache,
        cancel: &Cancel,
    ) -> Result<(OpenedLog, Option<Index>)> {
        Self::open_indexed_from(at, cache, WORTHWHILE, cancel)
    }

    /// As [`Log::open_indexed`], with less to save being worth it.
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

fn name_of(status: Status) -> String {
    let file::Identity { device, inode } = status.identity;
    format!("{device:x}-{inode:x}{ENDING}")
}

impl Index {
    /// What is known after opening a file that was as `before` says; `None` if it has changed
    /// meanwhile, or is shorter than `least`.
    fn of(opened: &OpenedLog, before: Status, least: u64) -> Option<Self> {
        let Store::File(log) = &opened.log.store else {
            return None;
        };
        let ingest = &opened.log.ingest;
        let is_whole = log.ends_in_break && log.torn_at.is_none() && log.end == before.size;
        // A version 1 file is rewritten at the first chance.
        if !is_whole || ingest.version() < 2 || log.end < least {
            return None;
        }
        let file = log.file(log.open.as_ref()?, Access::Read).ok()?;
        if file::status_of(&file).ok()? != before {
            return None;
        }
        let image = opened.tree.image()?;
        let mut out = Fields::default();
        Covered::of(&file, before, log.end)?.put(&mut out);
        put_header(&mut out, ingest.header.as_ref()?);
        out.bytes(&log.header_line);
        out.u64(ingest.lines);
        let told = opened.diagnostics.iter();
        // Links are told of anew each time: they may come right.
        let of_lines: Vec<&Diagnostic> = told.filter(|told| !is_of_links(told)).collect();
        out.count(of_lines.len());
        for diagnostic in of_lines {
            out.u8(diagnostic.damage as u8);
            out.u64(diagnostic.line);
            out.u64(diagnostic.offset);
            out.u64(diagnostic.length);
        }
        out.u32(image.count);
        out.count(image.ids.len());
        out.count(image.rest.len());
        Some(Self {
            name: name_of(before),
            head: out.0,
            image,
        })
    }

    /// Writes it. Nothing depends on this.
    pub fn write(&self, cache: &Cache) {
        let head_len = (self.head.len() as u64).to_le_bytes();
        let parts: [&[u8]; 6] = [
            &head_len,
            &self.head,
            &self.image.id_lens,
            &self.image.ids,
            &self.image.rows,
            &self.image.rest,
        ];
        let written = cache.write(&self.name, FORMAT, &parts);
        if let Err(error) = written.and_then(|()| cache.prune(ENDING, MOST)) {
            tracing::info!(%error, "a side index could not be written");
        }
    }
}

/// Removes the index of a file that goes.
pub fn forget(at: &Location, cache: &Cache) {
    if let Ok(status) = at.status() {
        cache.remove(&name_of(status));
    }
}

/// Whether this is said of parents, which may stand in lines to come.
fn is_of_links(diagnostic: &Diagnostic) -> bool {
    matches!(
        diagnostic.damage,
        Damage::OrphanParent | Damage::ForwardParent
    )
}

/// A log as it stood when its index was written.
struct Restored {
    log: FileLog,
    ingest: Ingest,
    tree: Tree,
}

impl Restored {
    /// Reads what has come since.
    fn open(mut self, cancel: &Cancel) -> Result<OpenedLog> {
        self.log
            .read_on(&mut self.tree, &mut self.ingest, Tail::Take, cancel)?;
        Ok(self.log.opened(self.ingest, self.tree))
    }
}

/// The head of an index.
struct Head {
    end: u64,
    header: Header,
    header_line: Vec<u8>,
    lines: u64,
    diagnostics: Vec<Diagnostic>,
    count: u32,
    ids_len: u64,
    rest_len: u64,
}

fn restore(at: &Location, status: Status, cache: &Cache) -> Option<Restored> {
    let file = at.folder.file(&at.name, Access::Read).ok()?;
    if file::status_of(&file).ok()? != status {
        return None;
    }
    let settled = status.is_settled().then_some(status);
    let (head, tree) = cache.read(&name_of(status), FORMAT, |contents| {
        let head_len = Cursor::new(&contents.take(8)?).u64()?;
        let head = Head::read(&contents.take(head_len)?, &file, status)?;
        let count = u64::from(head.count);
        let id_lens = contents.take(count.checked_mul(LEN_BYTES as u64)?)?;
        let ids = contents.take(head.ids_len)?;
        let rows_len = count.checked_mul(ROW_BYTES as u64)?;
        // Before room is made for them.
        if rows_len > contents.left() {
            return None;
        }
        let tree = std::thread::scope(|scope| {
            let table = scope.spawn(|| Table::of(head.count, &id_lens, &ids));
            let mut rows = Rows::with_capacity(head.count);
            contents.pass(rows_len, ROW_BYTES, |bytes| {
                rows.take(bytes, &id_lens, head.end)
            })?;
            let rest = contents.take(head.rest_len)?;
            let table = table.join().ok()??;
            Some((rows, rest, table))
        });
        let (rows, rest, table) = tree?;
        let tree = rows.finish(head.count, ids, table, &rest)?;
        Some((head, tree))
    })?;
    if status.size > head.end && !is_still_there(&file, &tree) {
        return None;
    }
    let mut log = FileLog {
        at: at.clone(),
        open: Some(OpenFile::new(
            Handle::new(file, Access::Read),
            status.identity,
        )),
        claim: None,
        header_at: head.header.place.offset,
        header_line: head.header_line,
        end: head.end,
        ends_in_break: true,
        torn_at: None,
        tail_to: 0,
    };
    log.note_checked(settled);
    let mut ingest = Ingest::of_new(head.header, head.lines);
    ingest.diagnostics = head.diagnostics;
    Some(Restored { log, ingest, tree })
}

impl Head {
    /// `None` unless it is of this file, as it is.
    fn read(bytes: &[u8], file: &File, status: Status) -> Option<Self> {
        let mut fields = Cursor::new(bytes);
        let covered = Covered::get(&mut fields)?;
        if !covered.is_of(file, status) {
            return None;
        }
        let header = get_header(&mut fields)?;
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
            end: covered.end,
            header,
            header_line,
            lines,
            diagnostics,
            count: fields.u32()?,
            ids_len: fields.u64()?,
            rest_len: fields.u64()?,
        };
        fields.is_at_end().then_some(head)
    }
}

pub(crate) fn put_header(out: &mut Fields, header: &Header) {
    out.text(&header.id);
    out.u64(header.version);
    out.optional(header.timestamp.as_deref(), Fields::text);
    out.text(&header.cwd);
    out.optional(header.parent_session.as_deref(), Fields::text);
    out.u64(header.place.offset);
    out.u32(header.place.len);
}

pub(crate) fn get_header(fields: &mut Cursor<'_>) -> Option<Header> {
    let text = |fields: &mut Cursor<'_>| Some(fields.text()?.to_owned());
    Some(Header {
        id: text(fields)?,
        version: fields.u64()?,
        timestamp: fields.optional(text)?,
        cwd: text(fields)?,
        parent_session: fields.optional(text)?,
        place: PagePosition {
            offset: fields.u64()?,
            len: fields.u32()?,
        },
    })
}

#[cfg(test)]
mod tests;
