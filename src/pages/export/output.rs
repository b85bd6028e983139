//! The file or the text that an export writes.
//!
//! A file has a temporary name until it is complete and on disk. If an unfinished output is dropped, its file is
//! removed.

use super::request::{Exported, Target};
use crate::export::tally::Redaction;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use treelined_core::bytes::{self, index};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::json;
use treelined_files::cancel::Cancel;
pub(crate) use treelined_files::os::FileAt;
use treelined_files::os::file::Location;
use treelined_files::os::temporary::{self, Temporary};
use treelined_files::parallel::Background;

/// The number of bytes that are collected before they are written.
const CHUNK: usize = 1 << 20;
/// The most chunks that wait for the writer thread.
const WAITING: usize = 2;
/// The bytes of a response in addition to the content.
const ENVELOPE_BYTES: usize = 4096;

/// An unfinished export.
pub(super) struct Output {
    to: OutputPlace,
    /// The bytes that are not written yet. For a text these are all bytes.
    pending: Vec<u8>,
    bytes: u64,
    cancel: Cancel,
}

enum OutputPlace {
    File(OutputFile),
    Content { limit: usize },
}

struct OutputFile {
    at: Location,
    overwrite: bool,
    temporary: Temporary,
    writer: Background<Vec<u8>>,
}

impl Output {
    pub(super) fn begin(target: &Target, cancel: &Cancel) -> Result<Self> {
        let to = match target {
            Target::File { path, overwrite } => {
                OutputPlace::File(OutputFile::begin(path, *overwrite)?)
            }
            Target::Content { limit } => OutputPlace::Content { limit: *limit },
        };
        Ok(Self {
            to,
            pending: Vec::new(),
            bytes: 0,
            cancel: cancel.clone(),
        })
    }

    /// Appends bytes. Fails if the export is cancelled, or if the text gets larger than it may be.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        self.bytes += bytes.len() as u64;
        match &mut self.to {
            OutputPlace::Content { limit } => {
                if self.bytes > *limit as u64 {
                    return Err(too_large(*limit));
                }
                self.pending.extend_from_slice(bytes);
            }
            OutputPlace::File(file) => {
                self.pending.extend_from_slice(bytes);
                if self.pending.len() >= CHUNK {
                    let chunk = std::mem::take(&mut self.pending);
                    self.pending = file.push(chunk)?;
                }
            }
        }
        Ok(())
    }

    /// A store for parts that are written to the output later.
    pub(super) fn spool(&self) -> Result<Spool> {
        match &self.to {
            OutputPlace::Content { limit } => Ok(Spool::Memory {
                bytes: Vec::new(),
                limit: *limit,
            }),
            OutputPlace::File(file) => {
                let temporary = Temporary::for_name(&file.at.folder, &file.at.name);
                let temporary = temporary.map_err(|error| failed(&file.at.path(), &error))?;
                Ok(Spool::File { temporary, end: 0 })
            }
        }
    }

    /// Finishes the export.
    pub(super) fn finish(self, redactions: Vec<Redaction>) -> Result<Exported> {
        let content = match self.to {
            OutputPlace::Content { limit } => {
                // All formats write UTF-8, except that a line of a session file may have other bytes.
                let text = match String::from_utf8(self.pending) {
                    Ok(text) => text,
                    Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
                };
                if json::quoted(&text).len() + ENVELOPE_BYTES.min(limit / 2) > limit {
                    return Err(too_large(limit));
                }
                Some(text)
            }
            OutputPlace::File(file) => {
                file.finish(self.pending, &self.cancel)?;
                None
            }
        };
        Ok(Exported {
            content,
            bytes: self.bytes,
            items: None,
            redactions,
        })
    }
}

/// A store for parts of an export that are not made in the order of the output. If the store is dropped, its parts are
/// removed.
pub(super) enum Spool {
    File {
        temporary: Temporary,
        /// The number of bytes written so far.
        end: u64,
    },
    Memory {
        bytes: Vec<u8>,
        limit: usize,
    },
}

impl Spool {
    /// Adds a part, and returns its range of bytes in the store.
    pub(super) fn push(&mut self, part: &[u8]) -> Result<Range<u64>> {
        let length = part.len() as u64;
        match self {
            Self::File { temporary, end } => {
                let written = (&**temporary.file()).write_all(part);
                written.map_err(|error| failed(&temporary.path(), &error))?;
                *end += length;
                Ok(*end - length..*end)
            }
            Self::Memory { bytes, limit } => {
                if bytes.len() + part.len() > *limit {
                    return Err(too_large(*limit));
                }
                bytes.extend_from_slice(part);
                Ok(bytes.len() as u64 - length..bytes.len() as u64)
            }
        }
    }

    /// The part with this range of bytes.
    pub(super) fn read(&self, place: Range<u64>) -> Result<Vec<u8>> {
        match self {
            Self::File { temporary, .. } => {
                let mut part = vec![0; index(place.end - place.start)];
                let read = temporary.file().read_exact_at(&mut part, place.start);
                read.map_err(|error| failed(&temporary.path(), &error))?;
                Ok(part)
            }
            Self::Memory { bytes, .. } => {
                Ok(bytes::part(bytes, index(place.start)..index(place.end)).to_vec())
            }
        }
    }
}

impl OutputFile {
    fn begin(path: &Path, overwrite: bool) -> Result<Self> {
        check_path(path, overwrite)?;
        let at = Location::of_path(path)?;
        // Removes the unfinished exports of killed processes, which would otherwise stay forever. A failure does not
        // matter: a folder that cannot be listed may still be writable.
        let _unlisted = temporary::remove_abandoned(&at.folder);
        let temporary = Temporary::for_name(&at.folder, &at.name);
        let temporary = temporary.map_err(|error| failed(path, &error))?;
        let file = Arc::clone(temporary.file());
        let write = move |chunk: &Vec<u8>| (&*file).write_all(chunk);
        let writer = Background::start("export", WAITING, write);
        Ok(Self {
            writer: writer.map_err(|error| failed(path, &error))?,
            at,
            overwrite,
            temporary,
        })
    }

    /// Writes a chunk, and returns an empty buffer for the next chunk.
    fn push(&mut self, chunk: Vec<u8>) -> Result<Vec<u8>> {
        let used = self.writer.push(chunk);
        let mut used = used.map_err(|error| failed(&self.at.path(), &error))?;
        if let Some(used) = &mut used {
            used.clear();
        }
        Ok(used.unwrap_or_else(|| Vec::with_capacity(CHUNK + CHUNK / 4)))
    }

    fn finish(mut self, rest: Vec<u8>, cancel: &Cancel) -> Result<()> {
        let path = self.at.path();
        let failed = |error: io::Error| failed(&path, &error);
        self.writer.push(rest).map_err(failed)?;
        self.writer.finish().map_err(failed)?;
        self.temporary.file().sync_data().map_err(failed)?;
        if !cancel.commit() {
            return Err(Error::cancelled());
        }
        let named = match self.overwrite {
            true => self.temporary.name(&self.at),
            false => self.temporary.name_new(&self.at),
        };
        named.map_err(failed)
    }
}

/// Fails early if `path` cannot be written.
fn check_path(path: &Path, overwrite: bool) -> Result<()> {
    let refused = |reason: &str| Err(Error::invalid_params("path", reason));
    if !path.is_absolute() {
        return refused("is not absolute");
    }
    let name = path.as_os_str().as_encoded_bytes();
    if name.contains(&0) {
        return refused("has a NUL, which no file name can have");
    }
    // `Path` ignores a slash and a full stop at the end, so these are tested here.
    if path.file_name().is_none() || name.ends_with(b"/") || name.ends_with(b"/.") {
        return refused("names a folder; name a file in it");
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return refused("is a folder; name a file in it"),
        Ok(found) if found.is_symlink() => {
            return refused("is a symbolic link; name the file it leads to, or another one");
        }
        // The export would replace a device or a pipe with a file.
        Ok(found) if !found.is_file() => {
            return refused("is a device, a pipe or a socket; name a file");
        }
        Ok(_) if !overwrite => return Err(exists(path)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(path, &error)),
    }
    match path.parent().map(fs::metadata) {
        Some(Ok(folder)) if !folder.is_dir() => refused("the folder of the file is not a folder"),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            refused("the folder of the file does not exist; make it first")
        }
        Some(Err(error)) => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        io::ErrorKind::NotADirectory => {
            Error::invalid_params("path", "the folder of the file is not a folder")
        }
        io::ErrorKind::InvalidFilename => {
            Error::invalid_params("path", "is too long for a file; name a shorter one")
        }
        _ => Error::io(&format!("write {}", path.display()), error),
    }
}

fn exists(path: &Path) -> Error {
    let message = format!("the file {} exists already", path.display());
    Error::new(Kind::FileExists, message)
}

fn too_large(limit: usize) -> Error {
    let message = format!(
        "the export has more than the {limit} bytes the client takes: give a `path` to write it to a file"
    );
    Error::new(Kind::ResponseTooLarge, message)
}
