//! Which bytes of a session file something in the cache was made of, and whether the file still
//! begins with them (storage.md §2).
//!
//! It is taken to if it is the same file, at least as long, and begins and ends there with the same
//! bytes; unchanged in length, it must be unchanged in time too, by the clock that nobody can set back.
//! Grown, some lines besides are looked at: a file edited in place and then appended to has its old
//! beginning, and may have the old end. That finds lines that moved, not every edit: a file that another
//! program edits in place *and* appends to while nobody has it open, with its lines where they were, is
//! believed as far as ids, parents and kinds go. RunningComparison more would mean reading all of it. Bodies are
//! always read from the file, and what is shown of them has a checksum per block.

use crate::bytes::{Cursor, Fields};
use crate::os::file::{self, Identity, Status};
use crate::tree::Tree;
use std::fs::File;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes at the beginning and end of what is covered that are compared.
const LOOK: u64 = 64 << 10;
/// Lines at which a file that has grown is looked at, besides its ends.
const SAMPLES: usize = 32;

/// The first `end` bytes of a file, as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    identity: Identity,
    pub end: u64,
    /// When the file was last changed: seconds and nanoseconds.
    modified: (i64, i64),
    /// When anything of it was: edited in place, it may have been given its old times again.
    changed: (i64, i64),
    /// Checksums of the beginning and the end.
    ends: (u64, u64),
}

impl Covered {
    /// The first `end` bytes of a file that is as `status` says.
    pub fn of(file: &File, status: Status, end: u64) -> Option<Self> {
        Some(Self {
            identity: status.identity,
            end,
            modified: status.modified,
            changed: file::changed(file).ok()?,
            ends: ends(file, end)?,
        })
    }

    /// Whether the file, which is as `status` says, still begins so; to be asked
    /// [`is_still_there`] too if it has grown.
    pub fn is_of(&self, file: &File, status: Status) -> bool {
        let is_unchanged = status.size == self.end
            && status.modified == self.modified
            && file::changed(file).is_ok_and(|changed| changed == self.changed);
        self.identity == status.identity
            && (is_unchanged || status.size > self.end)
            && ends(file, self.end) == Some(self.ends)
    }

    pub fn put(&self, out: &mut Fields) {
        out.u64(self.identity.device);
        out.u64(self.identity.inode);
        out.u64(self.end);
        out.i64(self.modified.0);
        out.i64(self.modified.1);
        out.i64(self.changed.0);
        out.i64(self.changed.1);
        out.u64(self.ends.0);
        out.u64(self.ends.1);
    }

    pub fn get(fields: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            identity: Identity {
                device: fields.u64()?,
                inode: fields.u64()?,
            },
            end: fields.u64()?,
            modified: (fields.i64()?, fields.i64()?),
            changed: (fields.i64()?, fields.i64()?),
            ends: (fields.u64()?, fields.u64()?),
        })
    }
}

/// Checksums of the beginning and the end of the first `end` bytes.
fn ends(file: &File, end: u64) -> Option<(u64, u64)> {
    let look = end.min(LOOK);
    let mut bytes = vec![0; usize::try_from(look).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let first = xxh3_64(&bytes);
    file.read_exact_at(&mut bytes, end - look).ok()?;
    Some((first, xxh3_64(&bytes)))
}

/// Looks at some lines, whether they begin where the tree has them, with the same id.
pub fn is_still_there(file: &File, tree: &Tree) -> bool {
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
