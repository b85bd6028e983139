//! Reads the bodies of entries on demand. They are converted to version 3, with references resolved; all other bytes
//! are as stored (protocol.md §3, session-file.md §1, §4).

use super::migrate::{self, Boundaries, V1Fields};
use super::preview_slot::PreviewSlot;
use crate::os::FileAt;
use crate::os::file::{self, File, Status};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use treelined_core::bytes::index;
use treelined_core::entry::{Kind, Line, Role, scan};
use treelined_core::error::{Error, Kind as ErrorKind, Result};
use treelined_core::json::{self, Members};
use treelined_core::tree::{FilePlace, Flags, Node, Tree};

/// The bytes of an ephemeral session. They have the form of a file.
pub(crate) type Memory = Arc<RwLock<Vec<u8>>>;

/// The source of bodies. It stays readable after another file has replaced the session file.
#[derive(Clone)]
pub struct Bodies {
    source: BodySource,
    version: u64,
    boundaries: Boundaries,
}

#[derive(Clone)]
enum BodySource {
    /// No entry has been written.
    Nothing,
    File {
        file: Arc<File>,
        /// Set if the file was found to have other bytes than when it was read before.
        stale: Arc<AtomicBool>,
        previews: Arc<PreviewSlot>,
        /// The status of the file when every line of it was checked. `None` if a later edit might leave the status
        /// unchanged.
        checked: Option<Arc<Status>>,
    },
    /// The file could not be reopened.
    Closed(Error),
    Memory(Memory),
}

/// The steps to read one entry and convert it for clients.
#[derive(Debug, Clone)]
pub struct Fetch {
    pub node: Node,
    pub place: FilePlace,
    /// The id that the stored entry must have; `None` in version 1, where entries have no ids.
    id: Option<ShortText>,
    edits: Vec<Edit>,
}

/// A short text, stored inline if it is as short as most ids, since long paths have very many ids.
#[derive(Debug, Clone)]
enum ShortText {
    Inline { len: u8, bytes: [u8; 14] },
    Long(Box<[u8]>),
}

impl ShortText {
    fn new(text: &[u8]) -> Self {
        let mut bytes = [0; 14];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(text);
                Self::Inline { len, bytes }
            }
            _ => Self::Long(text.into()),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(text) => text,
        }
    }
}

#[derive(Debug, Clone)]
enum Edit {
    FromV1(V1Fields),
    RenameRole,
    /// The value of a member, as raw JSON.
    Member(&'static str, Vec<u8>),
}

impl Bodies {
    pub fn nothing() -> Self {
        Self::of(BodySource::Nothing)
    }

    /// The bodies of an open file. If the file could not be opened, each read fails with that error.
    pub fn file(
        file: Result<Arc<File>>,
        stale: Arc<AtomicBool>,
        previews: Arc<PreviewSlot>,
        checked: Option<Arc<Status>>,
        version: u64,
        boundaries: Boundaries,
    ) -> Self {
        Self {
            source: match file {
                Ok(file) => BodySource::File {
                    file,
                    stale,
                    previews,
                    checked,
                },
                Err(error) => BodySource::Closed(error),
            },
            version,
            boundaries,
        }
    }

    /// The format version of the stored entries.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub fn memory(memory: Memory) -> Self {
        Self::of(BodySource::Memory(memory))
    }

    fn of(source: BodySource) -> Self {
        Self {
            source,
            version: super::header::CURRENT_VERSION,
            boundaries: Boundaries::default(),
        }
    }

    /// Whether the file has not changed since every line of it was checked.
    fn is_as_checked(&self) -> bool {
        match &self.source {
            BodySource::File {
                file,
                checked: Some(checked),
                ..
            } => file::status_of(file).is_ok_and(|now| now == **checked),
            BodySource::Memory(_) => true,
            _ => false,
        }
    }

    /// The stored bytes at `place`.
    pub fn read(&self, place: FilePlace) -> Result<Vec<u8>> {
        self.read_prefix(place, usize::MAX)
    }

    /// The first `limit` of the stored bytes at `place`.
    pub fn read_prefix(&self, place: FilePlace, limit: usize) -> Result<Vec<u8>> {
        let len = (place.len as usize).min(limit);
        match &self.source {
            BodySource::Nothing => Err(vanished()),
            BodySource::Closed(error) => Err(error.clone()),
            BodySource::File { file, .. } => {
                let mut bytes = vec![0; len];
                let read = read_at_least(file, &mut bytes, place.offset, len);
                self.noticed(read)?;
                Ok(bytes)
            }
            BodySource::Memory(memory) => {
                let memory = memory.read().unwrap_or_else(PoisonError::into_inner);
                let bytes = memory.get(index(place.offset)..);
                let bytes = bytes.and_then(|bytes| bytes.get(..len));
                bytes.map(<[u8]>::to_vec).ok_or_else(vanished)
            }
        }
    }

    /// Fills `bytes` with the bytes of the file from `offset` on.
    pub fn read_into(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        match &self.source {
            BodySource::Nothing => Err(vanished()),
            BodySource::Closed(error) => Err(error.clone()),
            BodySource::File { file, .. } => {
                let len = bytes.len();
                self.noticed(read_at_least(file, bytes, offset, len).map(drop))
            }
            BodySource::Memory(memory) => {
                let memory = memory.read().unwrap_or_else(PoisonError::into_inner);
                let stored = memory.get(index(offset)..);
                let stored = stored.and_then(|stored| stored.get(..bytes.len()));
                bytes.copy_from_slice(stored.ok_or_else(vanished)?);
                Ok(())
            }
        }
    }

    /// Fails with `sessionReplaced` unless `stored` begins with a whole line that has the entry `id`. `len` is the
    /// length of the line; after it comes the line break or the end of `stored`.
    pub fn check_line(&self, stored: &[u8], len: usize, id: &str) -> Result<()> {
        let read = match stored.split_at_checked(len) {
            Some((line, [] | [b'\n', ..])) if says_it_is(line, id.as_bytes()) => Ok(()),
            _ => Err(vanished()),
        };
        self.noticed(read)
    }

    /// Whether the stored bytes at `place` equal `bytes`.
    pub fn holds(&self, place: FilePlace, bytes: &[u8]) -> bool {
        place.len as usize == bytes.len() && self.read(place).is_ok_and(|stored| stored == bytes)
    }

    /// Prepares reading `node`. This call reads from the file only if a reference must be resolved.
    pub fn fetch(&self, tree: &Tree, node: Node) -> Result<Fetch> {
        let place = tree.place(node);
        let flags = tree.flags(node);
        let mut edits = Vec::new();
        let parent_id = || tree.parent(node).map(|parent| tree.id(parent).to_owned());
        if self.version < 2 {
            let boundary = self.boundaries.get(&place.offset);
            edits.push(Edit::FromV1(V1Fields {
                id: tree.id(node).to_owned(),
                parent_id: parent_id(),
                first_kept_entry_id: boundary.map(|kept| kept.map(|kept| tree.id(kept).to_owned())),
            }));
        } else if flags.has(Flags::REPARENTED) {
            let parent_id = treelined_core::json::quoted_or_null(parent_id().as_deref());
            edits.push(Edit::Member("parentId", parent_id));
        }
        if self.version < 3 && tree.role(node) == Role::Custom {
            edits.push(Edit::RenameRole);
        }
        if flags.has(Flags::STALE_REFERENCE) {
            let stored = self.read(place)?;
            edits.extend(resolved_reference(tree, node, &stored));
        }
        let id = (self.version > 1).then(|| ShortText::new(tree.id_bytes(node)));
        Ok(Fetch {
            node,
            place,
            id,
            edits,
        })
    }

    /// Whether clients receive the entry exactly as it is stored, if it is valid UTF-8.
    pub fn is_verbatim(&self, tree: &Tree, node: Node) -> bool {
        let flags = tree.flags(node);
        let is_edited = flags.has(Flags::REPARENTED) || flags.has(Flags::STALE_REFERENCE);
        let is_renamed = self.version < 3 && tree.role(node) == Role::Custom;
        self.version > 1 && !is_edited && !is_renamed
    }

    /// The entry as clients receive it: one JSON object in UTF-8. Fails with `sessionReplaced` if the file has another
    /// entry at this offset (session-file.md §3), or bytes that are not a JSON object.
    pub fn entry(&self, fetch: &Fetch) -> Result<Vec<u8>> {
        let stored = self.read(fetch.place)?;
        self.noticed(fetch.check_object(&stored))?;
        Ok(fetch.apply(stored))
    }

    /// Marks the file as stale if `read` failed, so that the next access reopens the file.
    fn noticed<T>(&self, read: Result<T>) -> Result<T> {
        if let (Err(error), BodySource::File { stale, .. }) = (&read, &self.source)
            && error.kind == ErrorKind::SessionReplaced
        {
            stale.store(true, Ordering::Release);
        }
        read
    }

    /// A reader for many bodies. Reading them in file order is fastest.
    pub fn reader(&self) -> BodyReader<'_> {
        BodyReader {
            bodies: self,
            window: Vec::new(),
            start: 0,
            is_checked: false,
        }
    }

    /// The file and its preview slot. `None` for a session in memory, and for version 1, whose entries have no ids.
    pub(super) fn stored_file(&self) -> Option<(&File, &PreviewSlot)> {
        match &self.source {
            BodySource::File { file, previews, .. } if self.version > 1 => Some((file, previews)),
            _ => None,
        }
    }

    /// The slot for previews; `None` if the session cannot have previews.
    pub fn previews(&self) -> Option<&PreviewSlot> {
        self.stored_file().map(|(_, previews)| previews)
    }
}

impl Fetch {
    fn check(&self, stored: &[u8]) -> Result<()> {
        match &self.id {
            Some(id) if !says_it_is(stored, id.as_bytes()) => Err(vanished()),
            _ => Ok(()),
        }
    }

    /// Like [`Fetch::check`]. Also checks that the bytes are exactly one JSON object, since they become part of a
    /// message.
    fn check_object(&self, stored: &[u8]) -> Result<()> {
        self.check(stored)?;
        match json::value_span(stored) {
            Ok(span) if stored.get(span.start) == Some(&b'{') => Ok(()),
            _ => Err(vanished()),
        }
    }

    /// Converts stored bytes to the entry that clients receive.
    pub fn apply(&self, stored: Vec<u8>) -> Vec<u8> {
        let mut text = match String::from_utf8(stored) {
            Ok(text) => text.into_bytes(),
            Err(error) => String::from_utf8_lossy(error.as_bytes())
                .into_owned()
                .into_bytes(),
        };
        for edit in &self.edits {
            text = match edit {
                Edit::FromV1(given) => migrate::from_v1(&text, given),
                Edit::RenameRole => migrate::rename_role(&text),
                Edit::Member(name, value) => json::with_member(&text, name, value),
            };
        }
        text
    }
}

/// Reads bodies through a window of the file, so that one system call reads several neighbouring bodies.
pub struct BodyReader<'b> {
    bodies: &'b Bodies,
    window: Vec<u8>,
    /// The offset of the window in the file.
    start: u64,
    /// Whether the file was unchanged after the window was read. If so, its lines are known to be JSON.
    is_checked: bool,
}

/// The number of bytes that are read at a time when bodies are read in file order.
const WINDOW: usize = 256 << 10;

impl BodyReader<'_> {
    /// The stored bytes at `place`, at most `limit` of them.
    pub fn stored(&mut self, place: FilePlace, limit: usize) -> Result<&[u8]> {
        let len = (place.len as usize).min(limit);
        let end = place.offset + len as u64;
        let window_end = self.start + self.window.len() as u64;
        if place.offset < self.start || end > window_end {
            // A line near the previous one suggests that the next lines will be read too.
            let near = place.offset >= self.start && place.offset <= window_end + WINDOW as u64;
            self.fill(
                place.offset,
                len,
                if near && !self.window.is_empty() {
                    WINDOW
                } else {
                    0
                },
            )?;
        }
        let window = self.window.get(index(place.offset - self.start)..);
        let stored = window.and_then(|window| window.get(..len));
        stored.ok_or_else(vanished)
    }

    /// The entry as clients receive it.
    pub fn entry(&mut self, fetch: &Fetch) -> Result<Vec<u8>> {
        let stored = self.stored(fetch.place, usize::MAX)?.to_vec();
        self.bodies.noticed(fetch.check_object(&stored))?;
        Ok(fetch.apply(stored))
    }

    /// Appends the entry as clients receive it, on one line. Most entries need no edit and are copied once.
    pub fn push_entry(&mut self, out: &mut Vec<u8>, fetch: &Fetch) -> Result<()> {
        self.see_object(fetch, |entry| json::push_raw(out, entry))
    }

    /// Passes the entry to `see` as clients receive it: one JSON object. Most entries need no edit and are not copied.
    pub fn see_object<T>(&mut self, fetch: &Fetch, see: impl FnOnce(&[u8]) -> T) -> Result<T> {
        // This read sets `is_checked`, which decides which check is needed.
        self.stored(fetch.place, usize::MAX)?;
        let check = match self.is_checked {
            true => Fetch::check,
            false => Fetch::check_object,
        };
        self.see(fetch, check, see)
    }

    /// Passes the entry to `see` as clients receive it. Most entries need no edit and are not copied. The bytes must
    /// not become part of a message: if the file was edited in place, they may be invalid JSON.
    pub fn see_entry<T>(&mut self, fetch: &Fetch, see: impl FnOnce(&[u8]) -> T) -> Result<T> {
        self.see(fetch, Fetch::check, see)
    }

    fn see<T>(
        &mut self,
        fetch: &Fetch,
        check: impl FnOnce(&Fetch, &[u8]) -> Result<()>,
        see: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let bodies = self.bodies;
        let stored = self.stored(fetch.place, usize::MAX)?;
        bodies.noticed(check(fetch, stored))?;
        if fetch.edits.is_empty() && simdutf8::basic::from_utf8(stored).is_ok() {
            Ok(see(stored))
        } else {
            Ok(see(&fetch.apply(stored.to_vec())))
        }
    }

    fn fill(&mut self, offset: u64, len: usize, ahead: usize) -> Result<()> {
        match &self.bodies.source {
            BodySource::File { file, .. } => {
                let wanted = len.max(ahead);
                // New memory is zero already.
                match self.window.len() < wanted {
                    true => self.window = vec![0; wanted],
                    false => self.window.truncate(wanted),
                }
                let read = read_at_least(file, &mut self.window, offset, len);
                self.window.truncate(self.bodies.noticed(read)?);
            }
            _ => {
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                self.window = self.bodies.read(FilePlace { offset, len })?;
            }
        }
        self.start = offset;
        // The status is compared after the read, so that an edit before the read is noticed.
        self.is_checked = self.bodies.is_as_checked();
        Ok(())
    }
}

fn resolved_reference(tree: &Tree, node: Node, stored: &[u8]) -> Option<Edit> {
    let (member, none) = match tree.kind(node) {
        Kind::BranchSummary => ("fromId", Some("root")),
        Kind::Label | Kind::ContextEdit => ("targetId", None),
        Kind::Compaction => ("firstKeptEntryId", None),
        _ => return None,
    };
    let reference = json::id(json::get(stored, member)?)?;
    let record = tree.find_any(&reference)?;
    let mut resolved = tree.resolve(&reference)?;
    if tree.kind(node) == Kind::Compaction {
        // The reference names a leaf record. The kept part begins with the first entry after this record.
        let path = tree.path(Some(node));
        resolved = match resolved {
            Some(before) => path.iter().skip_while(|at| **at != before).nth(1).copied(),
            None => path.first().copied(),
        };
    }
    debug_assert!(tree.kind(record) == Kind::LeafRecord);
    let value = match resolved {
        Some(node) => treelined_core::json::quoted(tree.id(node)),
        // Only the compaction comes after the record.
        None if tree.kind(node) == Kind::Compaction => treelined_core::json::quoted(tree.id(node)),
        None => treelined_core::json::quoted_or_null(none),
    };
    Some(Edit::Member(member, value))
}

fn vanished() -> Error {
    Error::new(
        ErrorKind::SessionReplaced,
        "the session file no longer holds what was read from it",
    )
}

/// Whether the stored bytes are an entry with this id. If the id is at its usual position, no more bytes are read.
fn says_it_is(stored: &[u8], id: &[u8]) -> bool {
    begins_with_id(stored, id)
        || first_id(stored).is_some_and(|found| found.as_bytes() == id)
        || matches!(
            scan::scan_line(String::from_utf8_lossy(stored).as_bytes()),
            Ok(Line::Entry(entry)) if entry.id.as_deref().map(str::as_bytes) == Some(id)
        )
}

/// Like [`says_it_is`], with a look at the first bytes only: `{"type":"…","id":"<id>"`. This program and pi write
/// entries in this form.
fn begins_with_id(stored: &[u8], id: &[u8]) -> bool {
    let is_plain = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b'_';
    let Some(rest) = stored.strip_prefix(b"{\"type\":\"") else {
        return false;
    };
    let kind = rest.iter().take_while(is_plain).count();
    let id_at = rest.get(kind..).unwrap_or_default();
    let found = id_at.strip_prefix(b"\",\"id\":\"");
    // An id with escapes must be decoded before it can be compared.
    let is_bare = json::first_of(id, b"\\\"") == id.len();
    let after_id = found.and_then(|found| found.strip_prefix(id));
    is_bare && after_id.is_some_and(|rest| rest.starts_with(b"\""))
}

/// The value of the first member called `id`.
fn first_id(stored: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let mut members = Members::open(stored, json::skip_space(stored, 0)).ok()?;
    while let Some(member) = members.next_member().ok()? {
        if member.is(stored, "id") {
            return json::id(stored.get(member.value)?);
        }
    }
    None
}

/// Fills the buffer, but not beyond the end of the file. Fails if fewer than `least` bytes were read.
fn read_at_least(file: &File, buffer: &mut [u8], offset: u64, least: usize) -> Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match file.read_at(room, offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read the session file", &error)),
        }
    }
    if filled < least {
        return Err(vanished());
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_and_the_line_give_the_same_id() {
        let check = |stored: &str, id: &str, expected: bool| {
            let (stored, shown, bytes) = (stored.as_bytes(), stored, id.as_bytes());
            assert_eq!(says_it_is(stored, bytes), expected, "{shown}");
            let first = first_id(stored);
            assert!(
                !begins_with_id(stored, bytes) || first.as_deref() == Some(id),
                "{shown}"
            );
        };
        check(r#"{"type":"message","id":"a1","x":1}"#, "a1", true);
        check(r#"{"type":"message","id":"a12","x":1}"#, "a1", false);
        check(r#"{"type":"message","id":"a","x":1}"#, "a1", false);
        check(r#"{"type":"message" ,"id":"a1"}"#, "a1", true);
        check(r#"{"id":"a1","type":"message"}"#, "a1", true);
        check(r#"{"type":"m\",\"id\":\"a1","id":"b"}"#, "a1", false);
        check(r#"{"type":"message","id":"a\n1"}"#, "a\n1", true);
        check(r#"{"type":"message","id":"a\n1"}"#, "a\\n1", false);
        check(r#"{"type":"message","id":"\u0061"}"#, "a", true);
        assert!(begins_with_id(
            br#"{"type":"custom_message","id":"a","#,
            b"a"
        ));
        for cut in 0..30 {
            let stored = &br#"{"type":"message","id":"a1","x"}"#[..cut];
            assert_eq!(begins_with_id(stored, b"a1"), cut >= 27, "{cut}");
        }
    }

    #[test]
    fn a_text_is_kept_whatever_its_length() {
        for len in [0, 1, 8, 13, 14, 15, 16, 128, 255, 256, 300] {
            let text: Vec<u8> = (0..len).map(|at| b'a' + (at % 26) as u8).collect();
            assert_eq!(ShortText::new(&text).as_bytes(), text);
        }
    }
}
