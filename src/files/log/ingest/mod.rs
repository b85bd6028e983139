//! Adds lines to the tree, in file order, with a diagnostic for every fault (session-file.md §2). The same code reads
//! an opened file, lines of other processes, and lines that this process has written. So the tree in memory equals the
//! tree after reopening.

use super::body::Bodies;
use super::diagnostic::{Damage, Diagnostic};
use super::header::{CURRENT_VERSION, Header};
use super::lines::trimmed;
use super::parallel_scan::ScannedLine;
use super::recover::{RecoveredLine, recover};
use super::{lines, migrate};
use crate::invariant::{always, never};
use memchr::memchr;
use std::borrow::Cow;
use std::ops::Range;
use treelined_core::bytes::part;
use treelined_core::defect::breaks;
use treelined_core::entry::{BadLine, Envelope, Kind as EntryKind, Line, Parent, scan};
use treelined_core::error::{Error, Kind as ErrorKind, Result};
use treelined_core::tree::Insertion;
pub(crate) use treelined_core::tree::{FilePlace, Flags, Node, PlainFacts, Tree};

/// Lines with more bytes than this are reported, since they exceed the default limit of a client.
const OVERSIZED: u64 = 64 << 20;
/// The state of reading a session file.
#[derive(Default)]
pub(crate) struct Ingest {
    pub header: Option<Header>,
    /// The number of lines read so far.
    pub lines: u64,
    /// The diagnostics that were not collected yet.
    pub diagnostics: Vec<Diagnostic>,
    /// Set while lines of other processes are read.
    pub foreign: bool,
    v1: migrate::Chain,
    /// The number of bytes read; a byte that is read twice counts twice. This number must stay linear in the size of
    /// the file.
    steps: u64,
    /// The session's title, from a line before the header.
    title: Option<String>,
}

impl Ingest {
    /// The state for a log with this header, to which `lines` lines were written.
    pub(crate) fn of_new(header: Header, lines: u64) -> Self {
        Self {
            header: Some(header),
            lines,
            ..Self::default()
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.header.as_ref().map_or(CURRENT_VERSION, |h| h.version)
    }

    /// The nodes at the positions that version 1 entries name.
    pub(crate) fn boundaries(&self) -> &migrate::Boundaries {
        self.v1.boundaries()
    }

    /// Adds one line to the tree. Returns false for an incomplete line without a line break: it may be in flight, and
    /// is read again when it has grown. `bodies` is used to compare lines with the same id.
    pub(crate) fn line(
        &mut self,
        tree: &mut Tree,
        bodies: &Bodies,
        line: &lines::RawLine<'_>,
    ) -> Result<bool> {
        self.lines += 1;
        if line.len > OVERSIZED {
            self.report(Damage::OversizedLine, line.offset, line.len);
        }
        let Some(bytes) = line.bytes else {
            return Ok(true);
        };
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if line.offset == 0 => rest,
            _ => bytes,
        };
        let start = line.offset + (line.len - bytes.len() as u64);
        self.steps += bytes.len() as u64;
        let mut at = LineContext {
            tree,
            bodies,
            offset: start,
            text: bytes,
            flags: Flags::NONE,
            taken: 0,
        };
        let scanned = match simdutf8::basic::from_utf8(bytes) {
            Ok(_) => scan::scan_line(bytes),
            Err(_) => Err(BadLine::InvalidJson { at: 0 }),
        };
        match scanned {
            Ok(Line::Blank) => return Ok(true),
            Ok(scanned) => self.object(&mut at, scanned, trimmed(bytes))?,
            Err(BadLine::NotAnObject) => {
                self.header.as_ref().ok_or_else(header_missing)?;
                self.not_an_object(start, bytes.len());
            }
            Err(BadLine::InvalidJson { .. }) => {
                let whole = self.damaged(&mut at, line.terminated)?;
                if !whole && !line.terminated {
                    self.lines -= 1;
                    return Ok(false);
                }
            }
        }
        if !line.terminated {
            self.report(Damage::MissingTrailingNewline, line.offset, line.len);
        }
        Ok(true)
    }

    /// Like [`Ingest::line`], for a line that a scanner thread has already scanned.
    pub(crate) fn scanned_line(
        &mut self,
        tree: &mut Tree,
        bodies: &Bodies,
        line: &ScannedLine<'_>,
    ) -> Result<()> {
        let is_for_us = self.version() >= 2 && self.header.is_some();
        let entry = line
            .entry
            .as_ref()
            .filter(|entry| is_for_us && tree.find_hashed(entry.id, entry.hash).is_none());
        let Some(entry) = entry else {
            return self.line(tree, bodies, &line.line()).map(|_| ());
        };
        self.lines += 1;
        let place = FilePlace {
            offset: line.offset + u64::from(entry.start),
            len: entry.len,
        };
        let parent = entry
            .parent
            .map_or(Parent::Null, |id| Parent::Id(id.into()));
        let flags = match self.foreign {
            true => Flags::FOREIGN,
            false => Flags::NONE,
        };
        let id = (entry.id, entry.hash);
        let before = tree.node_count();
        let inserted = tree
            .insert_plain(id, &parent, entry.facts, place, flags, self.lines)
            .ok_or_else(full)?;
        check_added(tree, before, inserted, place)?;
        self.report_refused(inserted.refused, place);
        Ok(())
    }

    fn report_refused(&mut self, refused: Flags, place: FilePlace) {
        for (flag, damage) in [
            (Flags::SELF_PARENT, Damage::SelfParent),
            (Flags::CYCLE, Damage::Cycle),
        ] {
            if refused.has(flag) {
                self.report(damage, place.offset, u64::from(place.len));
            }
        }
    }

    /// Adds a whole line that is a copy of an entry of another tree (see [`Tree::insert_copy`]).
    pub(crate) fn copied_line(
        &mut self,
        tree: &mut Tree,
        id: &str,
        parent: Option<Node>,
        facts: PlainFacts,
        place: FilePlace,
    ) -> Result<Node> {
        self.lines += 1;
        let before = tree.node_count();
        let node = tree.insert_copy(id, parent, facts, place);
        let node = node.ok_or_else(full)?;
        let refused = Flags::NONE;
        check_added(tree, before, Insertion { node, refused }, place)?;
        Ok(node)
    }

    /// Reports the faults of links, which are known only at the end of the file.
    pub(crate) fn report_links(&mut self, tree: &Tree) {
        for report in tree.link_reports() {
            let damage = match report.flag {
                Flags::ORPHAN => Damage::OrphanParent,
                Flags::CYCLE => Damage::Cycle,
                _ => Damage::ForwardParent,
            };
            let place = tree.place(report.node);
            self.diagnostics.push(Diagnostic {
                damage,
                line: report.line,
                offset: place.offset,
                length: u64::from(place.len),
            });
        }
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.line);
    }

    fn report(&mut self, damage: Damage, offset: u64, length: u64) {
        self.diagnostics.push(Diagnostic {
            damage,
            line: self.lines,
            offset,
            length,
        });
    }

    fn not_an_object(&mut self, offset: u64, length: usize) {
        self.report(Damage::NotAnObject, offset, length as u64);
        self.v1.pass();
    }

    /// Recovers the entries of a line that is not one JSON text in UTF-8, and reports the rest of the line. Returns
    /// false if no entry was recovered.
    fn damaged(&mut self, at: &mut LineContext<'_>, terminated: bool) -> Result<bool> {
        let (text, start) = (at.text, at.offset);
        if std::str::from_utf8(text).is_err() {
            at.flags.set(Flags::INVALID_UTF8);
        }
        let has_nul = memchr(0, text).is_some();
        let version = self.header.as_ref().map(|header| header.version);
        let RecoveredLine { pieces, steps } = recover(text, version);
        self.steps += steps;
        let found: usize = pieces.iter().filter(|piece| piece.whole).count();
        let torn = pieces.iter().any(|piece| !piece.whole);
        if has_nul {
            self.report(Damage::NulBytes, start, text.len() as u64);
        }
        if found > 0 && at.flags.has(Flags::INVALID_UTF8) {
            self.report(Damage::InvalidUtf8, start, text.len() as u64);
        }
        if found > 1 {
            self.report(Damage::GluedLines, start, text.len() as u64);
        }
        if found != 1 || torn || has_nul {
            at.flags.set(Flags::RECOVERED);
        }
        for piece in pieces {
            let bytes = part(text, piece.span.clone());
            if !piece.whole {
                let last = piece.span.end == text.len();
                let damage = match terminated {
                    false if last => Damage::TornTail,
                    _ => Damage::InvalidJson,
                };
                if !bytes.iter().all(|byte| *byte == 0) {
                    self.report(damage, start + piece.span.start as u64, bytes.len() as u64);
                }
                continue;
            }
            let lossy = String::from_utf8_lossy(bytes);
            match scan::scan_line(lossy.as_bytes()) {
                Ok(scanned) => self.object(at, scanned, piece.span)?,
                Err(_) => self.not_an_object(start + piece.span.start as u64, bytes.len()),
            }
        }
        Ok(found > 0)
    }

    fn object(
        &mut self,
        at: &mut LineContext<'_>,
        scanned: Line<'_>,
        span: Range<usize>,
    ) -> Result<()> {
        let offset = at.offset + span.start as u64;
        let len = u32::try_from(span.len()).unwrap_or(u32::MAX);
        let place = FilePlace { offset, len };
        match scanned {
            Line::Blank => Ok(()),
            Line::Header(header) if self.header.is_none() => {
                let title = self.title.take();
                let title = title.or(header.title.map(Cow::into_owned));
                if let Some(title) = title.as_deref().map(str::trim) {
                    at.tree.set_title(title);
                }
                self.header = Some(Header {
                    id: header.id.ok_or_else(header_missing)?.into_owned(),
                    version: header.version,
                    timestamp: header.timestamp.map(Cow::into_owned),
                    cwd: header.cwd.map(Cow::into_owned).unwrap_or_default(),
                    parent_session: header.parent_session.map(Cow::into_owned),
                    parent_entry_id: header.parent_entry_id.map(Cow::into_owned),
                    spawned_by: header.spawned_by,
                    place,
                });
                self.v1.pass();
                Ok(())
            }
            Line::Header(_) => {
                self.report(Damage::SecondHeader, offset, u64::from(len));
                self.v1.pass();
                Ok(())
            }
            Line::Title(title) => {
                match self.header {
                    None => {
                        let title = title.map(Cow::into_owned);
                        self.title = title.filter(|title| !title.trim().is_empty());
                    }
                    Some(_) => self.not_an_object(offset, len as usize),
                }
                Ok(())
            }
            Line::Entry(envelope) => {
                let header = self.header.as_ref().ok_or_else(header_missing)?;
                let version_1 = header.version < 2;
                let text = part(at.text, span);
                self.entry(at, &envelope, text, place, version_1)
            }
        }
    }

    fn entry(
        &mut self,
        at: &mut LineContext<'_>,
        envelope: &Envelope<'_>,
        text: &[u8],
        place: FilePlace,
        version_1: bool,
    ) -> Result<()> {
        let id: Cow<'_, str> = match &envelope.id {
            Some(id) => Cow::Borrowed(id),
            None if version_1 => {
                let place = (self.lines, at.taken);
                Cow::Owned(migrate::derive_id(place, text, |id| {
                    at.tree.find_any(id).is_some()
                }))
            }
            None => {
                self.not_an_object(place.offset, place.len as usize);
                return Ok(());
            }
        };
        if id.len() > usize::from(u16::MAX) {
            self.not_an_object(place.offset, place.len as usize);
            return Ok(());
        }
        at.taken += 1;
        if let Some(known) = at.tree.find_any(&id) {
            self.report(Damage::DuplicateId, place.offset, u64::from(place.len));
            if !at.bodies.holds(at.tree.place(known), text) {
                let (count, parent) = (at.tree.node_count(), at.tree.parent(known));
                if breaks("A line with the id of an entry adds no entry, and moves none") {
                    at.add_twin(&id, envelope, place);
                }
                at.tree.replace_body(known, envelope, place);
                always!(
                    "A line with the id of an entry adds no entry, and moves none",
                    at.tree.node_count() == count && at.tree.parent(known) == parent
                )?;
            }
            return Ok(());
        }
        let chained;
        let parent = match &envelope.parent {
            Parent::Absent if version_1 => {
                let previous = self.v1.last().map(|node| at.tree.id(node).to_owned());
                chained = previous.map_or(Parent::Null, |id| Parent::Id(Cow::Owned(id)));
                &chained
            }
            parent => parent,
        };
        let mut flags = at.flags;
        if self.foreign {
            flags.set(Flags::FOREIGN);
        }
        let before = at.tree.node_count();
        if breaks("A new entry comes after all entries of the tree") {
            at.add_twin(&id, envelope, place);
        }
        let read_at = FilePlace {
            offset: place.offset
                + u64::from(breaks(
                    "The body of an entry is read from the place of its line",
                )),
            ..place
        };
        let inserted = at
            .tree
            .insert(&id, parent, envelope, read_at, flags, self.lines)
            .ok_or_else(full)?;
        check_added(at.tree, before, inserted, place)?;
        if version_1 {
            self.v1.push(inserted.node, &envelope.facts, place);
        }
        self.report_refused(inserted.refused, place);
        Ok(())
    }
}

/// The current line, and the tree that receives its entries.
struct LineContext<'a> {
    tree: &'a mut Tree,
    bodies: &'a Bodies,
    /// The offset of `text` in the file.
    offset: u64,
    text: &'a [u8],
    flags: Flags,
    /// The number of entries found on this line so far.
    taken: u64,
}

impl LineContext<'_> {
    /// Adds a second entry for a line, as only a program with a defect does.
    fn add_twin(&mut self, id: &str, envelope: &Envelope<'_>, place: FilePlace) {
        let twin = format!("{id}-twin");
        let _added = self
            .tree
            .insert(&twin, &Parent::Null, envelope, place, self.flags, 0);
    }
}

/// Checks the facts on which the tree and its views rely, after a node was added to a tree of `before` nodes.
#[inline]
fn check_added(tree: &Tree, before: usize, new: Insertion, place: FilePlace) -> Result<()> {
    let parent = tree.parent(new.node);
    let is_last = tree.node(before) == Some(new.node) && tree.node_count() == before + 1;
    let is_there = tree.place(new.node) == place;
    let has_refused = new.refused != Flags::NONE && parent.is_some();
    let is_below_entry =
        parent.is_none_or(|at| at != new.node && tree.kind(at) != EntryKind::LeafRecord);
    // This code runs for each line of a file. So one condition is tested first, and each fact is tested alone only if
    // the condition is false.
    let is_sound = is_last && is_there && !has_refused && is_below_entry;
    if is_sound && cfg!(not(feature = "simulation")) {
        return Ok(());
    }
    always!("A new entry comes after all entries of the tree", is_last)?;
    always!(
        "The body of an entry is read from the place of its line",
        is_there
    )?;
    never!("An entry with a refused link is a root", has_refused)?;
    always!(
        "The parent of an entry is another entry, and not a leaf record",
        is_below_entry
    )
}

fn full() -> Error {
    Error::new(
        ErrorKind::StorageIo,
        "the session has more entries than fit",
    )
}

fn header_missing() -> Error {
    Error::new(
        ErrorKind::HeaderMissing,
        "the file does not begin with a session header",
    )
}

#[cfg(test)]
mod tests;
