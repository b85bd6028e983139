//! Writes one segment of an origin.

use super::manifest::Manifest;
use super::reader;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::Arc;
pub(crate) use treelined_files::os::file::{Folder, Location};
use treelined_files::os::temporary::Temporary;
use zstd::bulk::Compressor;

/// The level of compression. On session files of agents, level 3 makes files 5 % smaller in 20 % more time. Level −1
/// makes them 22 % larger in 15 % less time.
const LEVEL: i32 = 1;
/// If the last segment has fewer bytes of the source, it is written again together with the next bytes. So a source
/// that grows line by line has few segments.
const SMALL: u64 = 512 << 10;

/// A segment that has no name yet. Each block is a separate frame, so the compressor copies no bytes and needs no
/// earlier blocks.
pub(super) struct SegmentWriter {
    new: Temporary,
    compressor: Compressor<'static>,
    /// The block in compressed form.
    frame: Vec<u8>,
}

impl SegmentWriter {
    /// `origins` is the folder of all origins.
    pub(super) fn begin(origins: &Arc<Folder>) -> io::Result<Self> {
        let new = Temporary::for_name(origins, OsStr::new("segment"))?;
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(Self {
            new,
            compressor,
            frame: Vec::new(),
        })
    }

    /// If the last segment is small, moves its bytes into this segment.
    pub(super) fn take_over_small(
        &mut self,
        folder: &Folder,
        manifest: &mut Manifest,
    ) -> io::Result<()> {
        let is_small = |length: u64, at: u64| length - at < SMALL;
        let Some(last) = manifest
            .segments
            .pop_if(|last| is_small(last.length, last.at))
        else {
            return Ok(());
        };
        let Ok(bytes) = reader::read_segment(folder, &last) else {
            // A damaged segment is not rewritten: `doctor` reports it.
            manifest.segments.push(last);
            return Ok(());
        };
        for block in bytes.chunks(BLOCK) {
            self.push(block)?;
        }
        Ok(())
    }

    /// Appends the next bytes of the source, at least one.
    pub(super) fn push(&mut self, block: &[u8]) -> io::Result<()> {
        self.frame.clear();
        self.frame
            .reserve(zstd::zstd_safe::compress_bound(block.len()));
        self.compressor.compress_to_buffer(block, &mut self.frame)?;
        (&**self.new.file()).write_all(&self.frame)
    }

    /// Names the segment and adds it to the manifest. The source has `length` bytes up to the end of the segment, and
    /// `sha256` is their hash.
    pub(super) fn finish(
        self,
        folder: &Arc<Folder>,
        manifest: &mut Manifest,
        length: u64,
        sha256: String,
    ) -> io::Result<()> {
        let stored = self.new.file().metadata()?.len();
        self.new.name(&Location {
            folder: Arc::clone(folder),
            name: manifest.next_name().into(),
        })?;
        manifest.push(length, sha256, stored);
        Ok(())
    }
}

/// The most bytes that are hashed and compressed at a time.
pub(super) const BLOCK: usize = 1 << 20;
