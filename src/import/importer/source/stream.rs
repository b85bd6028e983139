//! Streams the bytes of a source.

use super::facts::{Medium, ScanFailure, Source, SourceFailure};
use super::regular::open;
use crate::importer::limits::{Limits, TOO_LARGE};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use treelined_core::agent::Tool;
use treelined_core::bytes::part;
use treelined_files::os::file::Status;

/// The number of further attempts to open a missing file, and the pause between two attempts. Codex compresses and
/// moves files while other programs read them.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(50);
/// The ending of compressed files.
pub(in crate::importer) const COMPRESSED: &str = ".zst";

/// Receives the bytes of a source, in order.
pub(super) type Take<'t> = &'t mut dyn FnMut(&[u8]) -> Result<(), ScanFailure>;

/// The facts that are known at the end of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamEnd {
    /// The status of the file before it was read; `None` for a part.
    pub(super) status: Option<Status>,
    /// The fault that ended the read of a compressed file before its end.
    pub(super) damage: Option<SourceFailure>,
}

impl Source {
    /// Passes all bytes to `take`, in chunks.
    pub(super) fn stream(&self, limits: &Limits, take: Take<'_>) -> Result<StreamEnd, ScanFailure> {
        let mut end = StreamEnd::default();
        if let Some((origins, name)) = &self.kept {
            self.read_all(origins.reader(name)?, take)?;
            return Ok(end);
        }
        if let Medium::Extracted(extraction) = self.medium {
            let part = self.part.as_deref().unwrap_or_default();
            self.extract(part, extraction, limits.value, take)?;
            return Ok(end);
        }
        let (file, status, is_compressed) = self.open()?;
        end.status = Some(status);
        let plain = file.take(status.size);
        if !is_compressed {
            self.read_all(plain, take)?;
            return Ok(end);
        }
        let decoder = zstd::stream::read::Decoder::new(plain);
        let decoder = decoder.map_err(|error| self.unreadable(&error))?;
        match self.read_all(decoder, take) {
            // The bytes before the damage are still imported.
            Err(ScanFailure::Source(failure)) if failure.kind != TOO_LARGE => {
                end.damage = Some(failure);
            }
            other => other?,
        }
        Ok(end)
    }

    fn read_all(&self, mut from: impl Read, take: Take<'_>) -> Result<(), ScanFailure> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(|error| self.unreadable(&error))?,
            };
            take(part(&chunk, ..read))?;
        }
    }

    fn extract(
        &self,
        part: &str,
        extraction: &dyn super::facts::Extraction,
        most: u64,
        take: Take<'_>,
    ) -> Result<(), ScanFailure> {
        let mut lines = Lines {
            take,
            buffer: Vec::with_capacity(CHUNK),
            failure: None,
        };
        let written = extraction.write(&self.path, part, most, &mut lines);
        let flushed = lines.flush();
        if let Some(failure) = lines.failure {
            return Err(failure);
        }
        written?;
        flushed.map_err(|error| self.unreadable(&error))
    }

    /// Opens the file. Returns it with its status, and says whether it is compressed.
    pub(super) fn open(&self) -> Result<(File, Status, bool), ScanFailure> {
        let is_compressed = matches!(self.medium, Medium::Compressed);
        let mut attempt = 0;
        loop {
            let failed = match open(&self.path) {
                Ok((file, status)) => return Ok((file, status, is_compressed)),
                Err(error) => error,
            };
            let is_moving = failed.kind() == io::ErrorKind::NotFound && self.tool == Tool::Codex;
            if !is_moving || attempt == ATTEMPTS {
                return Err(self.unreadable(&failed));
            }
            if let Ok((file, status)) = open(&other_name(&self.path)) {
                return Ok((file, status, !is_compressed));
            }
            thread::sleep(PAUSE);
            attempt += 1;
        }
    }
}

/// The path that the file has after it was compressed, or after it was decompressed.
fn other_name(path: &Path) -> PathBuf {
    let name = path.as_os_str().as_encoded_bytes();
    if name.ends_with(COMPRESSED.as_bytes()) {
        return path.with_extension("");
    }
    let mut name = OsString::from(path);
    name.push(COMPRESSED);
    name.into()
}

/// Collects the output of an extraction into chunks.
struct Lines<'t> {
    take: Take<'t>,
    buffer: Vec<u8>,
    failure: Option<ScanFailure>,
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failure.is_some() {
            return Err(io::Error::other("the scan has failed"));
        }
        let taken = (self.take)(&self.buffer);
        self.buffer.clear();
        taken.map_err(|failure| {
            self.failure = Some(failure);
            io::Error::other("the scan has failed")
        })
    }
}

/// The most bytes that are read at a time.
pub(super) const CHUNK: usize = 256 << 10;
