//! Checks whether a session file still begins with the bytes from which cache files were made (session-file.md §2).
//!
//! The file must not have been replaced, and must be at least as long, and the beginning and the end of those bytes
//! must have the same checksums. If the length of the file is unchanged, its times must be unchanged too. One of these
//! times is the time of the last change, which no program can set back. If the file has grown, some lines are compared
//! too: a file that was edited in place and then appended to still has its old beginning, and may have the old end.
//! This comparison finds moved lines, but not every edit. While no daemon has the file open, another program may edit
//! it in place without moving a line, *and* append to it. Then the cached ids, parents and kinds are used although they
//! are wrong. Only reading the whole file would prevent that. Bodies are always read from the file, and cached previews
//! have a checksum for each block.

use crate::cache::{get_status, put_status};
use crate::os::FileAt;
use crate::os::file::{self, File, Status};
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::tree::Tree;
use xxhash_rust::xxh3::xxh3_64;

/// The number of bytes that are compared at the beginning and at the end.
const LOOK: u64 = 64 << 10;
/// The number of lines that are compared in a file that has grown.
const SAMPLES: usize = 32;

/// Identifies the first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// The file's status, with the number of these bytes in place of its size.
    status: Status,
    /// The checksums of the beginning and of the end of these bytes.
    ends: (u64, u64),
}

impl Fingerprint {
    /// The fingerprint of the first `end` bytes of a file with this status.
    pub fn of(file: &File, status: Status, end: u64) -> Option<Self> {
        Some(Self {
            status: Status {
                size: end,
                changed: file::changed(file).ok()?,
                ..status
            },
            ends: ends(file, end)?,
        })
    }

    /// The number of bytes that the fingerprint identifies.
    pub fn end(&self) -> u64 {
        self.status.size
    }

    /// Whether the file, whose status is `now`, still begins with these bytes. For a file that has grown, the caller
    /// must also check `is_still_there`.
    pub fn matches(&self, file: &File, now: Status) -> bool {
        let then = self.status;
        let is_unchanged = now.size == then.size
            && now.modified == then.modified
            && file::changed(file).is_ok_and(|changed| changed == then.changed);
        then.identity == now.identity
            && (is_unchanged || now.size > then.size)
            && ends(file, then.size) == Some(self.ends)
    }

    pub fn put(&self, out: &mut Fields) {
        put_status(out, self.status);
        out.u64(self.ends.0);
        out.u64(self.ends.1);
    }

    pub fn get(fields: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            status: get_status(fields)?,
            ends: (fields.u64()?, fields.u64()?),
        })
    }
}

/// The checksums of the beginning and of the end of the first `end` bytes.
fn ends(file: &File, end: u64) -> Option<(u64, u64)> {
    let look = end.min(LOOK);
    let mut bytes = vec![0; usize::try_from(look).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let first = xxh3_64(&bytes);
    file.read_exact_at(&mut bytes, end - look).ok()?;
    Some((first, xxh3_64(&bytes)))
}

/// Whether a sample of the tree's lines are at the same offsets in the file, with the same ids.
pub(crate) fn is_still_there(file: &File, tree: &Tree) -> bool {
    let step = (tree.node_count() / SAMPLES).max(1);
    let mut numbers = (0..tree.node_count()).step_by(step);
    numbers.all(|number| {
        let Some(node) = tree.node(number) else {
            return false;
        };
        let place = tree.place(node);
        let mut bytes = vec![0; (place.len as usize).min(1 << 10) + 1];
        let read = file.read_exact_at(&mut bytes, place.offset.saturating_sub(1));
        read.is_ok()
            && bytes
                .strip_prefix(b"\n")
                .is_some_and(|line| line.starts_with(b"{"))
            && memchr::memmem::find(&bytes, tree.id(node).as_bytes()).is_some()
    })
}
