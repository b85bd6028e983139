//! What is kept on disk only to be quick: found wrong, stale or missing, it is made again.
//!
//! Owns the folder `.cache` of the session directory and what all files in it have in common: a name
//! for their format, a length and a checksum, written atomically, private, and believed only if nobody
//! else can have written them. What stands in them is for others to say and to check.

use crate::bytes::Cursor;
use crate::os::file::{Folder, Location, is_private};
use crate::os::handle::Access;
use crate::os::temporary::{self, Temporary};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The folder, in the session directory; hidden, so that no list of sessions looks into it.
const FOLDER: &str = ".cache";
/// Bytes read or written at a time.
const CHUNK: usize = 1 << 20;
/// Of format, length and checksum, which stand before what a file holds, or behind it.
const HEAD: usize = 16 + 8 + 8;

/// The cache of one session directory.
#[derive(Clone)]
pub struct Cache {
    root: Arc<Folder>,
}

impl Cache {
    /// Of this session directory. Nothing is made before something is written.
    pub fn of(root: Arc<Folder>) -> Self {
        Self { root }
    }

    fn folder(&self) -> io::Result<Folder> {
        self.root.subfolder(OsStr::new(FOLDER))
    }

    /// Reads a file with `read`, which says what it holds; `None` if it is not there, not of this
    /// format, damaged, or somebody else's. Whatever `read` makes is thrown away unless the checksum
    /// is right in the end; until then it must take any bytes without failing.
    pub fn read<T>(
        &self,
        name: &str,
        format: &[u8; 16],
        read: impl FnOnce(&mut Contents) -> Option<T>,
    ) -> Option<T> {
        let mut file = self.private(name)?;
        let mut head = [0; HEAD];
        file.read_exact(&mut head).ok()?;
        let mut fields = Cursor::new(&head);
        if fields.take(16)? != format {
            return None;
        }
        let (len, checksum) = (fields.u64()?, fields.u64()?);
        if file.metadata().ok()?.len() != HEAD as u64 + len {
            return None;
        }
        let mut contents = Contents {
            file,
            left: len,
            hash: Xxh3Default::new(),
        };
        let made = read(&mut contents)?;
        let is_whole = contents.left == 0 && contents.hash.digest() == checksum;
        is_whole.then_some(made)
    }

    /// Replaces a file, or makes it. What is in `parts` follows each other.
    pub fn write(&self, name: &str, format: &[u8; 16], parts: &[&[u8]]) -> io::Result<()> {
        let mut hash = Xxh3Default::new();
        let mut len = 0;
        for part in parts {
            hash.update(part);
            len += part.len() as u64;
        }
        let mut head = format.to_vec();
        head.extend_from_slice(&len.to_le_bytes());
        head.extend_from_slice(&hash.digest().to_le_bytes());
        let at = self.place(name)?;
        let temporary = Temporary::for_name(&at.folder, &at.name)?;
        let mut file = &**temporary.file();
        file.write_all(&head)?;
        for part in parts {
            file.write_all(part)?;
        }
        // Not synced: a file that a crash leaves half written has the wrong checksum.
        temporary.name(&at)
    }

    /// Where a file is to be; the folder is made.
    fn place(&self, name: &str) -> io::Result<Location> {
        Ok(Location {
            folder: Arc::new(self.root.subfolder_or_create(OsStr::new(FOLDER))?),
            name: name.into(),
        })
    }

    /// A file that is there and this user's alone.
    fn private(&self, name: &str) -> Option<File> {
        let folder = self.folder().ok()?;
        let file = folder.file(OsStr::new(name), Access::Read).ok()?;
        if !is_private(&file).ok()? {
            tracing::warn!(name, "a cache file is not this user's alone: ignored");
            return None;
        }
        Some(file)
    }

    /// Opens a file made of a [`Draft`]; with what was said of it, which is checked. What stands before
    /// that is not.
    pub fn open(&self, name: &str, format: &[u8; 16]) -> Option<(File, Vec<u8>)> {
        let file = self.private(name)?;
        let len = file.metadata().ok()?.len();
        let mut tail = [0; HEAD];
        let end = len.checked_sub(HEAD as u64)?;
        file.read_exact_at(&mut tail, end).ok()?;
        let mut fields = Cursor::new(&tail);
        if fields.take(16)? != format {
            return None;
        }
        let (summary_len, checksum) = (fields.u64()?, fields.u64()?);
        let start = end.checked_sub(summary_len)?;
        let mut summary = vec![0; usize::try_from(summary_len).ok()?];
        file.read_exact_at(&mut summary, start).ok()?;
        (xxh3_64(&summary) == checksum).then_some((file, summary))
    }

    /// Begins a file that is written bit by bit.
    pub fn draft(&self, name: &str) -> io::Result<Draft> {
        let at = self.place(name)?;
        let temporary = Temporary::for_name(&at.folder, &at.name)?;
        Ok(Draft { at, temporary })
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        let _absent = self
            .folder()
            .and_then(|folder| folder.remove(OsStr::new(name)));
    }

    /// Keeps the `most` youngest of the files whose names end so, and removes what others have left
    /// unfinished.
    pub fn prune(&self, ending: &str, most: usize) -> io::Result<()> {
        let mut kept = Vec::new();
        let folder = self.folder()?;
        temporary::remove_abandoned(&folder)?;
        for (name, _) in folder.list()? {
            if name.as_encoded_bytes().ends_with(ending.as_bytes())
                && let Ok(status) = folder.status(&name)
            {
                kept.push((status.modified, name));
            }
        }
        kept.sort_unstable();
        let surplus = kept.len().saturating_sub(most);
        for (_, name) in kept.iter().take(surplus) {
            folder.remove(name)?;
        }
        Ok(())
    }
}

/// A file that is not there before it is finished; dropped before that, it leaves nothing.
pub struct Draft {
    at: Location,
    temporary: Temporary,
}

impl Draft {
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&**self.temporary.file()).write_all(bytes)
    }

    /// Replaces what has had the name. `summary` says what stands where.
    pub fn finish(mut self, format: &[u8; 16], summary: &[u8]) -> io::Result<()> {
        self.push(summary)?;
        let mut tail = format.to_vec();
        tail.extend_from_slice(&(summary.len() as u64).to_le_bytes());
        tail.extend_from_slice(&xxh3_64(summary).to_le_bytes());
        self.push(&tail)?;
        self.temporary.name(&self.at)
    }
}

/// What a cache file holds, read from its start.
pub struct Contents {
    file: File,
    /// Bytes not read yet.
    left: u64,
    hash: Xxh3Default,
}

impl Contents {
    /// Bytes not read yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes; never more than there are.
    pub fn take(&mut self, len: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len).ok().filter(|_| len <= self.left)?];
        for chunk in bytes.chunks_mut(CHUNK) {
            self.fill(chunk)?;
        }
        Some(bytes)
    }

    /// Hands the next `len` bytes to `each`, at most about a MiB at a time and always whole records of
    /// `record` bytes.
    pub fn pass(
        &mut self,
        len: u64,
        record: usize,
        mut each: impl FnMut(&[u8]) -> Option<()>,
    ) -> Option<()> {
        if len > self.left || !len.is_multiple_of(record as u64) {
            return None;
        }
        // Small enough to stay in the processor's cache between being read, summed and used.
        let mut buffer = vec![0; (256 << 10) / record * record];
        let mut left = len;
        while left > 0 {
            let now = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let chunk = buffer.get_mut(..now)?;
            self.fill(chunk)?;
            each(chunk)?;
            left -= now as u64;
        }
        Some(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.file.read_exact(bytes).ok()?;
        self.hash.update(bytes);
        self.left -= bytes.len() as u64;
        Some(())
    }
}
