//! Reads the kept bytes of a source.

use super::manifest::{Manifest, Segment};
use super::names::{failed, is_name};
use crate::importer::source::layout::layout;
use crate::records::Layout;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
pub(crate) use treelined_files::os::file::Folder;
use treelined_files::os::handle::HandleAccess;
use zstd::stream::read::Decoder;

/// Streams the kept bytes of a source, in order.
pub struct OriginReader {
    folder: Arc<Folder>,
    manifest: Manifest,
    /// The number of segments that were opened.
    begun: usize,
    segment: Option<Decoder<'static, BufReader<File>>>,
}

impl OriginReader {
    pub(super) fn open(origins: &Arc<Folder>, name: &str) -> Result<Self> {
        let path = origins.path().join(name);
        if !is_name(name) {
            let message = format!("{name:?} names no origin");
            return Err(Error::new(Kind::PathDenied, message));
        }
        let folder = origins.subfolder(OsStr::new(name));
        let folder = folder.map_err(|error| failed("open", &path, &error))?;
        // The tool and the path are only used to write a manifest.
        let mut manifest = Manifest::new(Tool::Pi, "");
        manifest.read(&folder);
        Ok(Self {
            folder: Arc::new(folder),
            manifest,
            begun: 0,
            segment: None,
        })
    }

    /// The number of bytes of the source that are kept.
    pub fn kept_bytes(&self) -> u64 {
        self.manifest.len()
    }

    /// The path of the source when its last bytes were kept. A session of a database follows after `#`.
    pub fn path(&self) -> &str {
        self.manifest.last_path()
    }

    /// The layout of the source's records.
    pub fn layout(&self) -> Layout {
        self.manifest.last_tool().map_or(Layout::Lines, layout)
    }

    /// The SHA-256 of the kept bytes, in hexadecimal digits.
    pub fn hash(&self) -> &str {
        self.manifest.hash()
    }
}

impl Read for OriginReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(segment) = &mut self.segment {
                let read = segment.read(into)?;
                if read > 0 || into.is_empty() {
                    return Ok(read);
                }
            }
            let Some(next) = self.manifest.segments.get(self.begun) else {
                return Ok(0);
            };
            self.segment = Some(open(&self.folder, next)?);
            self.begun += 1;
        }
    }
}

fn open(folder: &Folder, segment: &Segment) -> io::Result<Decoder<'static, BufReader<File>>> {
    let file = folder.file(OsStr::new(&segment.segment), HandleAccess::Read);
    let file = file.map_err(|error| io::Error::other(error.message))?;
    Decoder::new(file)
}

/// Reads and decompresses one segment.
pub(super) fn read_segment(folder: &Folder, segment: &Segment) -> io::Result<Vec<u8>> {
    let expected = segment.length - segment.at;
    let mut bytes = Vec::new();
    open(folder, segment)?
        .take(expected + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 == expected {
        true => Ok(bytes),
        false => Err(io::Error::other(
            "a segment has another length than the manifest says",
        )),
    }
}
