//! Caches the facts of bodies that rows show, so that a view of a large session does not read all bodies again
//! (session-file.md §2, protocol.md §6).
//!
//! Each of the first entries of a file, in file order, has a *preview*: bytes that `view` makes of its body. Previews
//! are kept in blocks, which are read on demand. If a block is damaged, or a preview belongs to another line, the
//! body is read instead. The [fingerprint](super::fingerprint) says whether the cache belongs to the session file. If
//! the file has grown, or was edited in place while it was open, the checksum of the lines of a block is compared
//! before the block is used.

use super::body::Bodies;
use super::fingerprint::Fingerprint;
pub(crate) use super::preview_slot::KIND;
use super::preview_slot::{CachedBlock, HELD, SourceLines};
pub use super::preview_slot::{LONGEST_SOURCE, PreviewSlot, Previews};
use crate::cache::{Cache, CacheWriter};
use crate::os::file::{self, File, Status};
use crate::os::handle::{Handle, HandleAccess};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::tree::FilePlace;
use xxhash_rust::xxh3::xxh3_64;

/// The length of an average preview in bytes.
const USUAL: usize = 256;
/// The number of entries of a block.
pub const BLOCK: usize = 128;
/// The length of the longest preview in bytes. A longer preview is left out.
const LONGEST: usize = 16 << 10;
/// The length of the longest block in bytes.
const LONGEST_BLOCK: u64 = (BLOCK * (LONGEST + 8)) as u64;

/// Loads the cached previews of the file of `bodies`, if they still belong to this file.
pub fn load(cache: &Cache, bodies: &Bodies) -> Option<()> {
    let (file, slot) = bodies.stored_file()?;
    let status = file::status_of(file).ok()?;
    let name = KIND.name_for(status.identity);
    let kept = cache.open(&name, KIND.format)?;
    let mut fields = Cursor::new(&kept.summary);
    let fingerprint = Fingerprint::get(&mut fields)?;
    if !fingerprint.matches(file, status) {
        return None;
    }
    let count = usize::try_from(fields.u64()?).ok()?;
    if count.div_ceil(BLOCK) != kept.blocks.len() {
        return None;
    }
    let blocks = kept.blocks.iter().map(|block| {
        let source = SourceLines {
            place: FilePlace {
                offset: fields.u64()?,
                len: fields.u32()?,
            },
            checksum: fields.u64()?,
        };
        (block.len <= LONGEST_BLOCK).then_some(CachedBlock {
            block: *block,
            source,
            verified: AtomicBool::new(status.size == fingerprint.end()),
        })
    });
    let blocks = blocks.collect::<Option<Vec<_>>>()?;
    fields.is_at_end().then(|| {
        slot.set(Previews {
            cache: cache.clone(),
            name,
            file: Handle::new(kept.file, HandleAccess::Read),
            count,
            blocks,
            seen: Mutex::new(status),
        });
    })
}

/// Reads previews. Reading them in file order is fastest.
pub struct PreviewReader<'b> {
    previews: Arc<Previews>,
    /// The session file.
    source: &'b File,
    /// Blocks by number, the most recently used last.
    held: Vec<(usize, Vec<u8>)>,
}

impl<'b> PreviewReader<'b> {
    /// `None` if there are no previews.
    pub fn of(bodies: &'b Bodies) -> Option<Self> {
        let (source, slot) = bodies.stored_file()?;
        let previews = slot.get()?;
        previews.look_at(source);
        Some(Self {
            previews,
            source,
            held: Vec::new(),
        })
    }

    /// The preview of the entry with this number in the file. `place` is the position of its line in the file.
    pub fn get(&mut self, number: usize, place: FilePlace) -> Option<&[u8]> {
        if number >= self.previews.count {
            return None;
        }
        let block = number / BLOCK;
        if self.held.last().is_none_or(|(held, _)| *held != block) {
            self.turn_to(block);
        }
        let (_, bytes) = self.held.last()?;
        let count = BLOCK.min(self.previews.count - block * BLOCK);
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
        let preview = bytes.get(ends.len()..)?;
        let preview = preview.get(start as usize..end(at)? as usize)?;
        let (offset, preview) = preview.split_first_chunk()?;
        (*offset == mark(place)).then_some(preview)
    }

    /// Moves a block to the end of the list. A block that cannot be read counts as empty.
    fn turn_to(&mut self, block: usize) {
        let found = self.held.iter().position(|(held, _)| *held == block);
        let turned = match found {
            Some(at) => self.held.remove(at),
            None => {
                if self.held.len() >= HELD {
                    self.held.remove(0);
                }
                let bytes = self.previews.block(block, self.source);
                (block, bytes.unwrap_or_default())
            }
        };
        self.held.push(turned);
    }
}

const END_BYTES: usize = 4;

/// The mark that says to which line a preview belongs: the lower half of the offset of the line. It suffices to
/// distinguish neighbouring lines.
fn mark(place: FilePlace) -> [u8; 4] {
    let [a, b, c, d, ..] = place.offset.to_le_bytes();
    [a, b, c, d]
}

/// A block under construction.
pub struct BlockBuilder {
    source: SourceLines,
    ends: Vec<u8>,
    text: Vec<u8>,
}

/// A block, and the lines from which it was made.
pub struct NewBlock {
    source: SourceLines,
    bytes: Vec<u8>,
}

impl BlockBuilder {
    /// A block for these lines, from the beginning of the first line to the end of the last one. `lines` is empty if
    /// the lines are longer than [`LONGEST_SOURCE`].
    pub fn new(place: FilePlace, lines: &[u8]) -> Self {
        Self {
            source: SourceLines {
                place,
                checksum: xxh3_64(lines),
            },
            ends: Vec::with_capacity(BLOCK * END_BYTES),
            text: Vec::with_capacity(BLOCK * USUAL),
        }
    }

    /// Adds the preview of the line at `place`. `write` appends the preview.
    pub fn push(&mut self, place: FilePlace, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        self.text.extend_from_slice(&mark(place));
        write(&mut self.text);
        if self.text.len() - start > LONGEST {
            self.text.truncate(start);
        }
        // The length fits, since a block has at most BLOCK previews of LONGEST bytes.
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        debug_assert!(end < u32::MAX);
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

/// Writes new previews for the first `count` entries of the file of `bodies`.
pub struct PreviewWriter<'b> {
    slot: &'b PreviewSlot,
    cache: Cache,
    name: String,
    writer: CacheWriter,
    fingerprint: Fingerprint,
    /// The status of the session file at the beginning.
    seen: Status,
    count: usize,
    sources: Vec<SourceLines>,
}

impl<'b> PreviewWriter<'b> {
    /// Begins to write. Call this before any body is read. `end` is the offset in bytes of the end of the last of these
    /// entries, its line break included.
    pub fn begin(cache: &Cache, bodies: &'b Bodies, count: usize, end: u64) -> Option<Self> {
        let (file, slot) = bodies.stored_file()?;
        let status = file::status_of(file).ok()?;
        let name = KIND.name_for(status.identity);
        let writer = cache.writer(&name);
        let writer = writer.inspect_err(|error| tracing::info!(%error, "no previews are kept"));
        Some(Self {
            slot,
            cache: cache.clone(),
            writer: writer.ok()?,
            name,
            fingerprint: Fingerprint::of(file, status, end)?,
            seen: status,
            count,
            sources: Vec::with_capacity(count.div_ceil(BLOCK)),
        })
    }

    /// Writes the next block.
    pub fn push(&mut self, block: &NewBlock) -> io::Result<()> {
        self.sources.push(block.source);
        self.writer.push(&block.bytes)
    }

    /// Finishes the file. From then on its previews are used.
    pub fn finish(self) -> io::Result<()> {
        let mut summary = Fields::default();
        self.fingerprint.put(&mut summary);
        summary.count(self.count);
        for SourceLines { place, checksum } in &self.sources {
            summary.u64(place.offset);
            summary.u32(place.len);
            summary.u64(*checksum);
        }
        let blocks = self.writer.finish(KIND.format, &summary.0)?;
        self.cache.prune(&KIND)?;
        let Some(kept) = self.cache.open(&self.name, KIND.format) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let blocks = blocks.into_iter().zip(self.sources);
        self.slot.set(Previews {
            cache: self.cache,
            name: self.name,
            file: Handle::new(kept.file, HandleAccess::Read),
            count: self.count,
            seen: Mutex::new(self.seen),
            blocks: blocks
                .map(|(block, source)| CachedBlock {
                    block,
                    source,
                    verified: AtomicBool::new(true),
                })
                .collect(),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
