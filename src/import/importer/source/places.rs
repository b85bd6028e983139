//! Reads single places of a source again, after a scan has found them. A place is a range of bytes.

use super::facts::{Medium, Scan, ScanFailure, Source};
use crate::member::Place;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use treelined_core::bytes::{index, part};
pub(crate) use treelined_files::os::FileAt;
use treelined_files::os::file::unnamed_file;

/// The number of bytes that are read at a place. The next place is mostly close after it, in the same bytes.
const WINDOW: usize = 256 << 10;
/// The most decompressed or extracted bytes of a source that stay in memory. More bytes go to a temporary file.
const MOST_IN_MEMORY: u64 = 16 << 20;

/// How often each source was opened to read places, by its name.
#[cfg(test)]
pub(crate) static OPENED: std::sync::Mutex<std::collections::BTreeMap<String, usize>> =
    std::sync::Mutex::new(std::collections::BTreeMap::new());

/// The bytes of a source in which a scan has found places.
pub(crate) struct Places {
    source: Source,
    bytes: Bytes,
    len: u64,
    window: Vec<u8>,
    /// The position of the first byte in the window.
    window_at: u64,
}

enum Bytes {
    Memory(Vec<u8>),
    File(File),
}

impl Source {
    /// The bytes that were scanned. Fails with `changed` if they have changed since the scan.
    pub(crate) fn places(&self, scan: &Scan) -> Result<Places, ScanFailure> {
        #[cfg(test)]
        {
            *treelined_files::lock::lock(&OPENED)
                .entry(self.name())
                .or_default() += 1;
        }
        let plain = match self.medium {
            Medium::Plain(_) if self.kept.is_none() => {
                Some(self.open()?).filter(|(_, _, is_compressed)| !is_compressed)
            }
            Medium::Plain(_) | Medium::Compressed | Medium::Extracted(_) => None,
        };
        let bytes = match plain {
            Some((file, status, _)) => {
                if Some(status) != scan.status || !status.is_settled() {
                    self.check(scan)?;
                }
                Bytes::File(file)
            }
            None => self.spool(scan)?,
        };
        Ok(Places {
            source: self.clone(),
            bytes,
            len: scan.len,
            window: Vec::new(),
            window_at: 0,
        })
    }

    /// Fails if the source does not begin with the bytes that were scanned.
    fn check(&self, scan: &Scan) -> Result<(), ScanFailure> {
        self.stream_scanned(scan, &mut |_| Ok(()))
    }

    /// Passes the bytes that were scanned to `take`. Fails if they have changed since the scan.
    fn stream_scanned(
        &self,
        scan: &Scan,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), ScanFailure> {
        let (mut left, mut hash) = (scan.len, Sha256::new());
        self.stream(&scan.limits, &mut |bytes| {
            let bytes = part(bytes, ..bytes.len().min(index(left)));
            left -= bytes.len() as u64;
            hash.update(bytes);
            take(bytes).map_err(|error| self.unreadable(&error))
        })?;
        let hash: [u8; 32] = hash.finalize().into();
        match left == 0 && hash == scan.prefix_hash {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    fn changed(&self) -> ScanFailure {
        let message = "it was rewritten while it was imported; import it again";
        ScanFailure::Source(self.failure("changed", message))
    }

    /// Keeps the bytes that were scanned in memory or in a temporary file, because the source has no random access.
    fn spool(&self, scan: &Scan) -> Result<Bytes, ScanFailure> {
        if scan.len <= MOST_IN_MEMORY {
            let mut bytes = Vec::with_capacity(index(scan.len));
            self.stream_scanned(scan, &mut |chunk| {
                bytes.extend_from_slice(chunk);
                Ok(())
            })?;
            return Ok(Bytes::Memory(bytes));
        }
        let mut file = unnamed_file().map_err(|error| self.unreadable(&error))?;
        self.stream_scanned(scan, &mut |chunk| file.write_all(chunk))?;
        Ok(Bytes::File(file))
    }
}

impl Places {
    /// Replaces the content of `into` with the bytes of a place.
    pub(crate) fn read(&mut self, place: Place, into: &mut Vec<u8>) -> Result<(), ScanFailure> {
        into.clear();
        let end = place.at.checked_add(place.len);
        if end.is_none_or(|end| end > self.len) {
            return Err(self.source.changed());
        }
        let read = match &self.bytes {
            Bytes::Memory(bytes) => {
                let start = index(place.at);
                into.extend_from_slice(part(bytes, start..start + index(place.len)));
                return Ok(());
            }
            Bytes::File(file) if place.len >= WINDOW as u64 => {
                into.resize(index(place.len), 0);
                file.read_exact_at(into, place.at)
            }
            Bytes::File(file) => {
                let window_end = self.window_at + self.window.len() as u64;
                let is_inside = place.at >= self.window_at && place.at + place.len <= window_end;
                let filled = match is_inside {
                    true => Ok(()),
                    false => {
                        let len = (self.len - place.at).min(WINDOW as u64);
                        self.window.resize(index(len), 0);
                        self.window_at = place.at;
                        file.read_exact_at(&mut self.window, place.at)
                    }
                };
                if filled.is_ok() {
                    let start = index(place.at - self.window_at);
                    into.extend_from_slice(part(&self.window, start..start + index(place.len)));
                }
                filled
            }
        };
        match read {
            Ok(()) => Ok(()),
            Err(error) => {
                self.window.clear();
                match error.kind() {
                    io::ErrorKind::UnexpectedEof => Err(self.source.changed()),
                    _ => Err(self.source.unreadable(&error)),
                }
            }
        }
    }
}
