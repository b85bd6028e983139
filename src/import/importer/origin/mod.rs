//! Keeps the bytes of sources: `.origins/<source>/` in the session directory (session-file.md §5.9).
//!
//! The folder of a source has segments and the manifest that lists them. A segment has the bytes that the source gained
//! since the previous segment, compressed by Zstandard. If a source does not begin with the kept bytes any more, a new
//! folder is used, with the next generation in its name. Only one import writes at a time: it holds the lock of the
//! ledger.
//!
//! Unfinished files are in the folder of all origins. So the next import finds the files of a killed import even if it
//! reads no source. After a crash, there may be a segment that the manifest does not list: the next import replaces it.
//! Or the manifest may list segments whose bytes never reached the disk: these segments are skipped, and their bytes
//! are kept again.

mod manifest;
mod names;
mod reader;
mod segment;
#[cfg(test)]
mod tests;

use names::{failed, is_name, name_of};
pub use reader::OriginReader;
use segment::BLOCK;

use super::source::regular;
use crate::mapping::Former;
use hashbrown::HashSet;
use manifest::Manifest;
use segment::SegmentWriter;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treelined_core::agent::Tool;
use treelined_core::bytes::{index, part};
use treelined_core::error::{Error, Result};
use treelined_files::os::file::{Folder, Status};
use treelined_files::os::temporary;

/// The folder of all origins, in the session directory.
const FOLDER: &str = ".origins";

/// The origins in a session directory.
#[derive(Debug)]
pub struct Origins {
    folder: Arc<Folder>,
    /// The keys that more than one source of this import has.
    pub(super) shared_keys: HashSet<String>,
}

impl Origins {
    /// Opens the origins; makes their folder if it is missing.
    pub fn of(session_dir: &Path) -> Result<Self> {
        let opened = Folder::open_or_create(session_dir)
            .map(Arc::new)
            .and_then(|root| root.subfolder_or_create(OsStr::new(FOLDER)));
        match opened {
            Ok(folder) => Ok(Self {
                folder: Arc::new(folder),
                shared_keys: HashSet::new(),
            }),
            Err(error) => Err(failed("open", session_dir, &error)),
        }
    }

    /// Opens the origins; fails if their folder is missing.
    pub fn existing(session_dir: &Path) -> io::Result<Self> {
        let root = Arc::new(Folder::open(session_dir)?);
        let folder = Arc::new(root.subfolder(OsStr::new(FOLDER))?);
        Ok(Self {
            folder,
            shared_keys: HashSet::new(),
        })
    }

    /// The names of all origins in a session directory; none without a folder of origins. Also removes the files that
    /// a killed import has left in that folder.
    pub(crate) fn names(session_dir: &Path) -> HashSet<OsString> {
        let Ok(Self { folder, .. }) = Self::existing(session_dir) else {
            return HashSet::new();
        };
        let listed = folder.list().unwrap_or_default().into_iter();
        let names: HashSet<OsString> = listed.map(|(name, _)| name).collect();
        if names.iter().any(|name| temporary::is_temporary(name)) {
            let _tidied = temporary::remove_abandoned(&folder);
        }
        names
    }

    /// The path and the status of the folder of all origins.
    pub(crate) fn folder_status(session_dir: &Path) -> io::Result<(PathBuf, Status)> {
        let folder = Self::existing(session_dir)?.folder;
        Ok((folder.path().to_owned(), folder.own_status()?))
    }

    /// Keeps a file that belongs to a source, unchanged. Tools write such a file once, so it is not read again if it
    /// is as long as the kept bytes. An unreadable file is skipped.
    pub(crate) fn keep_side_file(&self, tool: Tool, path: &Path) -> Result<()> {
        let unreadable = |error: io::Error| {
            tracing::info!(%error, "{} is not kept", path.display());
            Ok(())
        };
        let (mut file, status) = match regular::open(path) {
            Ok(opened) => opened,
            Err(error) => return unreadable(error),
        };
        let mut writer = self.side_writer(tool, path)?;
        if writer.manifest.len() == status.size {
            return Ok(());
        }
        let mut chunk = vec![0; BLOCK];
        loop {
            match file.read(&mut chunk) {
                Ok(0) if writer.settle()? => return writer.finish().map(drop),
                Ok(0) => {
                    writer.begin_anew()?;
                    if let Err(error) = file.rewind() {
                        return unreadable(error);
                    }
                }
                Ok(read) => writer.push(part(&chunk, ..read))?,
                Err(error) => return unreadable(error),
            }
        }
    }

    /// Like [`Origins::writer`], for the file `path` that belongs to a source.
    pub fn side_writer(&self, tool: Tool, path: &Path) -> Result<OriginWriter> {
        let name = path.to_string_lossy();
        self.writer_of(tool, &name, &name)
    }

    /// The writer of the source with the key `key`. `path` is the path for the manifest.
    pub(super) fn writer_of(&self, tool: Tool, path: &str, key: &str) -> Result<OriginWriter> {
        let hash = Sha256::new()
            .chain_update(tool.name())
            .chain_update([0])
            .chain_update(key)
            .finalize();
        let base: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut generation = 1;
        while self.has(&name_of(&base, generation + 1)) {
            generation += 1;
        }
        let exists = self.has(&name_of(&base, generation));
        let mut writer = OriginWriter {
            origins: Arc::clone(&self.folder),
            base,
            generation,
            tool,
            path: path.to_owned(),
            name: String::new(),
            folder: None,
            manifest: Manifest::default(),
            hash: Sha256::new(),
            len: 0,
            block: Vec::new(),
            state: State::Passing,
            former: None,
        };
        writer.open(exists)?;
        Ok(writer)
    }

    fn has(&self, name: &str) -> bool {
        self.folder.status(OsStr::new(name)).is_ok()
    }

    /// Syncs the folder, so that the names of new origins are durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let synced = self.folder.sync();
        synced.map_err(|error| failed("sync", self.folder.path(), &error))
    }

    /// A reader of the bytes of an origin.
    pub fn reader(&self, name: &str) -> Result<OriginReader> {
        OriginReader::open(&self.folder, name)
    }

    /// Deletes an origin. Returns whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool> {
        let failed = |error| failed("delete", &self.folder.path().join(name), &error);
        if !is_name(name) {
            return Ok(false);
        }
        let name = OsStr::new(name);
        let folder = match self.folder.subfolder(name) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        for (file, _) in folder.list().map_err(failed)? {
            folder.remove(&file).map_err(failed)?;
        }
        self.folder.remove_subfolder(name).map_err(failed)?;
        Ok(true)
    }
}

/// Compares the bytes of one source with the kept bytes, from the beginning, and keeps the new bytes.
pub struct OriginWriter {
    origins: Arc<Folder>,
    /// The name of the folder without its generation.
    base: String,
    generation: u32,
    tool: Tool,
    /// The name of the source in reports.
    path: String,
    /// The name of the folder, which entries have in `origin`. It is final after [`OriginWriter::settle`].
    name: String,
    /// The folder. It is made with the first segment.
    folder: Option<Arc<Folder>>,
    manifest: Manifest,
    hash: Sha256,
    /// The number of bytes that were hashed.
    len: u64,
    /// The bytes that are hashed next.
    block: Vec<u8>,
    state: State,
    /// If set, this replaces the value in the manifest.
    former: Option<Former>,
}

enum State {
    /// The bytes so far equal the kept bytes.
    Passing,
    /// All kept bytes were passed, and new bytes are added. The segment begins with the first new byte.
    Adding(Option<SegmentWriter>),
    /// The source does not continue the kept bytes.
    Differing,
}

impl OriginWriter {
    /// The records that older versions of the reader have read, as the manifest says.
    pub(crate) fn former(&self) -> &Former {
        self.manifest.former()
    }

    /// Sets the records that older versions of the reader have read, for the manifest.
    pub(crate) fn set_former(&mut self, former: Former) {
        self.former = Some(former);
    }

    /// Passes the next bytes of the source to the writer.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while self.block.len() + bytes.len() >= BLOCK {
            let (now, later) = bytes.split_at(BLOCK - self.block.len());
            self.block.extend_from_slice(now);
            bytes = later;
            self.take_block()?;
        }
        self.block.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends the bytes. False if they do not continue the kept bytes: then call [`OriginWriter::begin_anew`] and push
    /// all bytes again.
    pub fn settle(&mut self) -> Result<bool> {
        self.take_block()?;
        Ok(match self.state {
            State::Adding(_) => true,
            State::Differing => false,
            State::Passing => self.is_beginning_of_kept()?,
        })
    }

    /// The SHA-256 of the bytes. It is final after [`OriginWriter::settle`].
    pub(crate) fn hash(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }

    /// Begins the next generation, with no bytes.
    pub(crate) fn begin_anew(&mut self) -> Result<()> {
        let exists = |name: &str| self.origins.status(OsStr::new(name)).is_ok();
        let mut generation = self.generation + 1;
        while exists(&name_of(&self.base, generation)) {
            generation += 1;
        }
        self.generation = generation;
        self.open(false)
    }

    /// Makes the new bytes durable, and returns the name of the origin. If a writer is dropped without this call, the
    /// new bytes are lost.
    pub fn finish(mut self) -> Result<String> {
        debug_assert!(self.block.is_empty(), "settled before");
        let added = match std::mem::replace(&mut self.state, State::Passing) {
            State::Adding(Some(segment)) => Some(segment),
            State::Adding(None) | State::Passing | State::Differing => None,
        };
        let former = self.former.take();
        let is_other = former.is_some_and(|former| self.manifest.set_former(&former));
        if let (Some(segment), Some(folder)) = (added, &self.folder) {
            let hash = hex(&self.hash.clone().finalize());
            let listed = segment
                .finish(folder, &mut self.manifest, self.len, hash)
                .and_then(|()| self.manifest.write(&self.origins, folder))
                .and_then(|()| self.manifest.remove_unlisted(folder));
            listed.map_err(|error| failed("write in", folder.path(), &error))?;
        } else if let (true, Some(folder)) = (is_other, &self.folder) {
            let written = self.manifest.write(&self.origins, folder);
            written.map_err(|error| failed("write in", folder.path(), &error))?;
        }
        Ok(self.name)
    }

    /// Discards the new bytes, and removes the folder if it was made for them.
    pub(crate) fn abandon(self) {
        let is_new = self.manifest.len() == 0 && self.folder.is_some();
        let name = OsStr::new(&self.name);
        // A folder with files is not removed.
        if is_new && let Err(error) = self.origins.remove_subfolder(name) {
            tracing::info!(%error, "the folder of an abandoned origin stays");
        }
    }

    /// Opens the folder of the current generation, if it exists, with its kept bytes.
    fn open(&mut self, exists: bool) -> Result<()> {
        self.name = name_of(&self.base, self.generation);
        self.folder = None;
        self.manifest = Manifest::new(self.tool, &self.path);
        if exists {
            let opened = self.origins.subfolder(OsStr::new(&self.name));
            let folder = Arc::new(opened.map_err(|error| self.failed("open", &error))?);
            self.manifest.read(&folder);
            self.folder = Some(folder);
        }
        (self.hash, self.len) = (Sha256::new(), 0);
        self.block.clear();
        self.state = match self.manifest.len() {
            0 => State::Adding(None),
            _ => State::Passing,
        };
        Ok(())
    }

    fn take_block(&mut self) -> Result<()> {
        let mut block = std::mem::take(&mut self.block);
        let mut passed = 0;
        if matches!(self.state, State::Passing) {
            let left = self.manifest.len() - self.len;
            passed = block.len().min(index(left));
            self.add(part(&block, ..passed));
            if self.len == self.manifest.len() {
                let is_same = hex(&self.hash.clone().finalize()) == self.manifest.hash();
                self.state = match is_same {
                    true => State::Adding(None),
                    false => State::Differing,
                };
            }
        }
        if matches!(self.state, State::Adding(_)) && passed < block.len() {
            block.drain(..passed);
            self.add(&block);
            self.append(&block)?;
            block.clear();
            self.block = block;
            return Ok(());
        }
        block.clear();
        self.block = block;
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
    }

    /// Appends new bytes to the segment.
    fn append(&mut self, block: &[u8]) -> Result<()> {
        let State::Adding(mut segment) = std::mem::replace(&mut self.state, State::Differing)
        else {
            return Ok(());
        };
        let appended = self.append_to(&mut segment, block);
        self.state = State::Adding(segment);
        appended.map_err(|error| self.failed("write in", &error))
    }

    fn append_to(&mut self, segment: &mut Option<SegmentWriter>, block: &[u8]) -> io::Result<()> {
        let segment = match segment {
            Some(segment) => segment,
            none => {
                let name = OsStr::new(&self.name);
                let folder = match &self.folder {
                    Some(folder) => Arc::clone(folder),
                    None => Arc::new(self.origins.subfolder_or_create_unsynced(name)?),
                };
                let mut new = SegmentWriter::begin(&self.origins)?;
                new.take_over_small(&folder, &mut self.manifest)?;
                self.folder = Some(folder);
                none.insert(new)
            }
        };
        segment.push(block)
    }

    /// Whether the bytes are a prefix of the kept bytes. This happens if an earlier import kept an unfinished line
    /// because the source seemed complete.
    fn is_beginning_of_kept(&self) -> Result<bool> {
        let mut kept = OriginReader::open(&self.origins, &self.name)?.take(self.len);
        let mut hash = Sha256::new();
        let read = io::copy(&mut kept, &mut hash);
        Ok(read.is_ok() && hash.finalize() == self.hash.clone().finalize())
    }

    fn failed(&self, action: &str, error: &io::Error) -> Error {
        failed(action, &self.origins.path().join(&self.name), error)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
