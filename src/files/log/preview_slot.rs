//! Holds the cached previews of an open file.

use crate::cache::{Cache, CacheBlock, FileKind};
use crate::lock::lock;
use crate::os::file::{File, Status};
use crate::os::handle::{Handle, HandleAccess};
use crate::os::{FileAt, file};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use treelined_core::tree::FilePlace;
use xxhash_rust::xxh3::xxh3_64;

/// The largest number of blocks that a reader keeps. It is larger than one because a view goes back and forth between
/// the blocks of a few branches.
pub(super) const HELD: usize = 8;

/// The previews of one file.
pub struct Previews {
    pub(super) cache: Cache,
    pub(super) name: String,
    pub(super) file: Handle,
    /// The number of entries that have a preview.
    pub(super) count: usize,
    pub(super) blocks: Vec<CachedBlock>,
    /// The status of the session file at its last check.
    pub(super) seen: Mutex<Status>,
}

pub(super) struct CachedBlock {
    pub(super) block: CacheBlock,
    pub(super) source: SourceLines,
    /// Whether the lines of the block are known to be unchanged.
    pub(super) verified: AtomicBool,
}

/// The lines from which a block was made.
#[derive(Clone, Copy)]
pub(super) struct SourceLines {
    pub(super) place: FilePlace,
    pub(super) checksum: u64,
}

/// Holds the previews of an open file, once there are any.
#[derive(Default)]
pub struct PreviewSlot {
    pub(super) current: Mutex<Option<Arc<Previews>>>,
    pub(super) making: Mutex<()>,
    pub(super) given_up: AtomicBool,
}

impl PreviewSlot {
    pub fn get(&self) -> Option<Arc<Previews>> {
        lock(&self.current).clone()
    }

    pub(super) fn set(&self, previews: Previews) {
        *lock(&self.current) = Some(Arc::new(previews));
    }

    /// Stops making previews. Call this if previews cannot be written: on a full disk, for example, each view would try
    /// again.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// A lock that is held while previews are made, so that only one thread makes them.
    pub fn making(&self) -> MutexGuard<'_, ()> {
        lock(&self.making)
    }
}

impl Previews {
    /// The number of entries that have a preview. They are the first entries of the file.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Checks the status of the session file. If the file has changed without growing, it was edited in place; then
    /// the lines of every block are compared again before the block is used. A file that has grown was most likely
    /// only appended to. An edit in place together with an append is not detected.
    pub(super) fn look_at(&self, source: &File) {
        let Ok(status) = file::status_of(source) else {
            return;
        };
        let mut seen = lock(&self.seen);
        if status != *seen && status.size == seen.size {
            for block in &self.blocks {
                block.verified.store(false, Ordering::Relaxed);
            }
        }
        *seen = status;
    }

    /// The bytes of a block; `None` if the block or its lines have changed.
    pub(super) fn block(&self, number: usize, source: &File) -> Option<Vec<u8>> {
        let CachedBlock {
            block,
            source: SourceLines { place, checksum },
            verified,
        } = self.blocks.get(number)?;
        if !verified.load(Ordering::Relaxed) {
            if place.len > LONGEST_SOURCE {
                return None;
            }
            let mut lines = vec![0; place.len as usize];
            source.read_exact_at(&mut lines, place.offset).ok()?;
            if xxh3_64(&lines) != *checksum {
                return None;
            }
            verified.store(true, Ordering::Relaxed);
        }
        let reopen = || {
            // Another process may have replaced the file. Then the checksum of the block differs, and the block is not
            // read.
            let reopened = self.cache.open(&self.name, KIND.format);
            reopened.map(|kept| kept.file).ok_or(())
        };
        let file = self.file.get(HandleAccess::Read, reopen).ok()?;
        block.read(&file)
    }
}

/// The kind of the file of previews. The version in `format` must change with the format of the file, and with the
/// previews that `view` makes.
pub(crate) const KIND: FileKind = FileKind {
    format: b"treelined previ6",
    ending: ".previews",
    most: 64,
    most_bytes: u64::MAX,
};

/// Before a block is used, its lines are compared. A block whose lines have more bytes than this is not used.
pub const LONGEST_SOURCE: u32 = 8 << 20;
