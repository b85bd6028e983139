//! What rows show of entries' bodies, kept in the cache, so that a view of a large session does not read
//! all of it again (storage.md §2, protocol.md §6).
//!
//! For each of the first entries of a file, in file order, there is an *extract*: some bytes, which are
//! whatever `view` makes of a body. They stand in blocks, each with its checksum, read when they are
//! asked for. A block that is not as it was written, or an extract of another place in the file, is none:
//! the body is read instead. Which file they are of is told as for the [index](super::index); and of a
//! file that has grown since, the lines of each block are compared by their checksum before it is used; as
//! they are again once the open file is edited in place.

use super::body::Bodies;
use super::fingerprint::Covered;
use crate::bytes::{Cursor, Fields};
use crate::cache::{Cache, Draft};
use crate::lock::lock;
use crate::os::file::{self, Location, Status};
use crate::os::handle::{Access, Handle};
use crate::tree::PagePosition;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64;

/// To be changed with everything that is written below, and with what `view` makes of bodies.
const FORMAT: &[u8; 16] = b"treelined extra2";
/// How the names of these files end, and of no others: [`Cache::prune`] removes by it.
const ENDING: &str = ".extracts";
/// Kept of one session directory.
const MOST: usize = 64;
/// Bytes an extract usually has.
const USUAL: usize = 256;
/// Entries of a block.
pub const BLOCK: usize = 128;
/// Bytes of an extract at most; of what is longer there is none.
const LONGEST: usize = 16 << 10;
/// Bytes a block may have.
const LONGEST_BLOCK: usize = BLOCK * (LONGEST + 8);
/// Bytes of lines that are compared before a block is used; over that, it is not.
pub const LONGEST_SOURCE: u32 = 8 << 20;
/// Blocks a reader holds: those of the branches a view goes to and fro between.
const HELD: usize = 8;

/// The extracts of one file.
pub struct Extracts {
    cache: Cache,
    name: String,
    file: Handle,
    /// Entries covered.
    count: usize,
    blocks: Vec<Block>,
    /// Of each block, whether its lines are known to be as they were.
    verified: Vec<AtomicBool>,
    /// The file when it was last looked at.
    seen: Mutex<Status>,
}

#[derive(Clone, Copy)]
struct Block {
    offset: u64,
    len: u32,
    checksum: u64,
    source: Source,
}

/// The lines a block is made of.
#[derive(Clone, Copy)]
struct Source {
    place: PagePosition,
    checksum: u64,
}

/// Where an open file has its extracts, once there are any.
#[derive(Default)]
pub struct Slot {
    current: Mutex<Option<Arc<Extracts>>>,
    making: Mutex<()>,
    given_up: AtomicBool,
}

impl Slot {
    pub fn get(&self) -> Option<Arc<Extracts>> {
        lock(&self.current).clone()
    }

    fn set(&self, extracts: Extracts) {
        *lock(&self.current) = Some(Arc::new(extracts));
    }

    /// They could not be kept once: a full disk, for one, would make every view pay for trying again.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Held by whoever makes them; others wait for that one.
    pub fn making(&self) -> MutexGuard<'_, ()> {
        lock(&self.making)
    }
}

fn name_of(status: Status) -> String {
    let file::Identity { device, inode } = status.identity;
    format!("{device:x}-{inode:x}{ENDING}")
}

/// Removes the extracts of a file that goes.
pub fn forget(at: &Location, cache: &Cache) {
    if let Ok(status) = at.status() {
        cache.remove(&name_of(status));
    }
}

/// Takes to what is in the cache for the file that these bodies are of.
pub fn load(cache: &Cache, bodies: &Bodies) -> Option<()> {
    let (file, slot) = bodies.stored_file()?;
    let status = file::status_of(file).ok()?;
    let name = name_of(status);
    let (kept, summary) = cache.open(&name, FORMAT)?;
    let mut fields = Cursor::new(&summary);
    let covered = Covered::get(&mut fields)?;
    if !covered.is_of(file, status) {
        return None;
    }
    let count = usize::try_from(fields.u64()?).ok()?;
    let mut offset = 0;
    let blocks = fields.list(|fields| {
        let block = Block {
            offset,
            len: fields.u32()?,
            checksum: fields.u64()?,
            source: Source {
                place: PagePosition {
                    offset: fields.u64()?,
                    len: fields.u32()?,
                },
                checksum: fields.u64()?,
            },
        };
        offset += u64::from(block.len);
        (block.len as usize <= LONGEST_BLOCK).then_some(block)
    })?;
    let verified = blocks
        .iter()
        .map(|_| AtomicBool::new(status.size == covered.end));
    let is_whole = fields.is_at_end() && count.div_ceil(BLOCK) == blocks.len();
    let extracts = Extracts {
        cache: cache.clone(),
        name,
        file: Handle::new(kept, Access::Read),
        count,
        verified: verified.collect(),
        seen: Mutex::new(status),
        blocks,
    };
    is_whole.then(|| slot.set(extracts))
}

impl Extracts {
    /// Entries covered: those with lower numbers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Has the lines of every block compared again if the file was changed without growing, and so was
    /// edited in place. A file that has grown was most likely appended to, by this process too: what was
    /// edited in it between two looks is not noticed.
    fn look_at(&self, source: &File) {
        let Ok(status) = file::status_of(source) else {
            return;
        };
        let mut seen = lock(&self.seen);
        if status != *seen && status.size == seen.size {
            for verified in &self.verified {
                verified.store(false, Ordering::Relaxed);
            }
        }
        *seen = status;
    }

    /// The bytes of a block, if they are as they were written, and what they are of too.
    fn block(&self, number: usize, source: &File) -> Option<Vec<u8>> {
        let (block, verified) = (self.blocks.get(number)?, self.verified.get(number)?);
        if !verified.load(Ordering::Relaxed) {
            let Source { place, checksum } = block.source;
            let mut lines = vec![0; place.len.min(LONGEST_SOURCE) as usize];
            source.read_exact_at(&mut lines, place.offset).ok()?;
            if place.len > LONGEST_SOURCE || xxh3_64(&lines) != checksum {
                return None;
            }
            verified.store(true, Ordering::Relaxed);
        }
        let reopen = || {
            // Made anew meanwhile it has other blocks, whose checksums say so.
            self.cache
                .open(&self.name, FORMAT)
                .map(|(file, _)| file)
                .ok_or(())
        };
        let file = self.file.get(Access::Read, reopen).ok()?;
        let mut bytes = vec![0; block.len as usize];
        file.read_exact_at(&mut bytes, block.offset).ok()?;
        (xxh3_64(&bytes) == block.checksum).then_some(bytes)
    }
}

/// Reads extracts, best asked in an order in which neighbours stand together.
pub struct Reader<'b> {
    extracts: Arc<Extracts>,
    /// What they are of.
    source: &'b File,
    /// The most recently used last.
    held: Vec<(usize, Vec<u8>)>,
}

impl<'b> Reader<'b> {
    /// `None` if there are no extracts.
    pub fn of(bodies: &'b Bodies) -> Option<Self> {
        let (source, slot) = bodies.stored_file()?;
        let extracts = slot.get()?;
        extracts.look_at(source);
        Some(Self {
            extracts,
            source,
            held: Vec::new(),
        })
    }

    /// The extract of the entry with this number in the file, whose line stands at `place`.
    pub fn get(&mut self, number: usize, place: PagePosition) -> Option<&[u8]> {
        if number >= self.extracts.count {
            return None;
        }
        let block = number / BLOCK;
        if self.held.last().is_none_or(|(held, _)| *held != block) {
            self.turn_to(block);
        }
        let (_, bytes) = self.held.last()?;
        let count = BLOCK.min(self.extracts.count - block * BLOCK);
        let ends = bytes.get(..count * END_BYTES)?;
        let end = |at: usize| {
            let at = at * END_BYTES;
            let end = ends.get(at..at + END_BYTES)?;
            end.try_into().ok().map(u32::from_le_bytes)
        };
        let at = number % BLOCK;
        let start = match at {
            0 => 0,
            at => end(at - 1)?,
        };
        let extract = bytes.get(ends.len()..)?;
        let extract = extract.get(start as usize..end(at)? as usize)?;
        let (offset, extract) = extract.split_first_chunk()?;
        (*offset == mark(place)).then_some(extract)
    }

    /// Makes it the last one held. One that cannot be read is held as empty.
    fn turn_to(&mut self, block: usize) {
        let found = self.held.iter().position(|(held, _)| *held == block);
        let turned = match found {
            Some(at) => self.held.remove(at),
            None => {
                if self.held.len() >= HELD {
                    self.held.remove(0);
                }
                let bytes = self.extracts.block(block, self.source);
                (block, bytes.unwrap_or_default())
            }
        };
        self.held.push(turned);
    }
}

const END_BYTES: usize = 4;

/// By what an extract is known to be of the line at `place`.
fn mark(place: PagePosition) -> [u8; 4] {
    // The lower half tells neighbours apart.
    (place.offset as u32).to_le_bytes()
}

/// A block in the making.
pub struct BlockBuilder {
    source: Source,
    ends: Vec<u8>,
    text: Vec<u8>,
}

/// A block and what it is of.
pub struct NewBlock {
    source: Source,
    bytes: Vec<u8>,
}

impl BlockBuilder {
    /// Of these lines, from the first one's beginning to the last one's end; without them if that is
    /// more than [`LONGEST_SOURCE`].
    pub fn new(place: PagePosition, lines: &[u8]) -> Self {
        Self {
            source: Source {
                place,
                checksum: xxh3_64(lines),
            },
            ends: Vec::with_capacity(BLOCK * END_BYTES),
            text: Vec::with_capacity(BLOCK * USUAL),
        }
    }

    /// Adds the extract of the line at `place`, which `write` appends.
    pub fn push(&mut self, place: PagePosition, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        self.text.extend_from_slice(&mark(place));
        write(&mut self.text);
        if self.text.len() - start > LONGEST {
            self.text.truncate(start);
        }
        let end = self.text.len() as u32;
        self.ends.extend_from_slice(&end.to_le_bytes());
    }

    pub fn finish(mut self) -> NewBlock {
        self.ends.append(&mut self.text);
        NewBlock {
            source: self.source,
            bytes: self.ends,
        }
    }
}

/// New extracts, of the first `count` entries of the file that the bodies are of.
pub struct Making<'b> {
    slot: &'b Slot,
    cache: Cache,
    name: String,
    draft: Draft,
    covered: Covered,
    /// The file when this was begun.
    seen: Status,
    count: usize,
    blocks: Vec<Block>,
    offset: u64,
}

impl<'b> Making<'b> {
    /// `end` is where the last of these entries ends, with its line break. To be begun before any of the
    /// bodies is read.
    pub fn begin(cache: &Cache, bodies: &'b Bodies, count: usize, end: u64) -> Option<Self> {
        let (file, slot) = bodies.stored_file()?;
        let status = file::status_of(file).ok()?;
        let name = name_of(status);
        let draft = cache.draft(&name);
        let draft = draft.inspect_err(|error| tracing::info!(%error, "no extracts are kept"));
        Some(Self {
            slot,
            cache: cache.clone(),
            draft: draft.ok()?,
            name,
            covered: Covered::of(file, status, end)?,
            seen: status,
            count,
            blocks: Vec::with_capacity(count.div_ceil(BLOCK)),
            offset: 0,
        })
    }

    /// The next block.
    pub fn push(&mut self, block: &NewBlock) -> io::Result<()> {
        let NewBlock { source, bytes } = block;
        self.draft.push(bytes)?;
        self.blocks.push(Block {
            offset: self.offset,
            len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            checksum: xxh3_64(bytes),
            source: *source,
        });
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// From here on they are used.
    pub fn finish(self) -> io::Result<()> {
        let mut summary = Fields::default();
        self.covered.put(&mut summary);
        summary.count(self.count);
        summary.count(self.blocks.len());
        for block in &self.blocks {
            summary.u32(block.len);
            summary.u64(block.checksum);
            summary.u64(block.source.place.offset);
            summary.u32(block.source.place.len);
            summary.u64(block.source.checksum);
        }
        self.draft.finish(FORMAT, &summary.0)?;
        self.cache.prune(ENDING, MOST)?;
        let Some((file, _)) = self.cache.open(&self.name, FORMAT) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        self.slot.set(Extracts {
            cache: self.cache,
            name: self.name,
            file: Handle::new(file, Access::Read),
            count: self.count,
            verified: self.blocks.iter().map(|_| AtomicBool::new(true)).collect(),
            seen: Mutex::new(self.seen),
            blocks: self.blocks,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
