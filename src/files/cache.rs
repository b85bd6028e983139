//! Cache files on disk. They only save time: a file that is wrong, stale or missing is made again.
//!
//! This module has the folder `.cache` of the session directory, and the layout of the files in it. A file is blocks of
//! bytes, then a table with the length and checksum of each block and a summary, then a footer with the name of the
//! format and the length and checksum of the table. Files are written atomically and are private. A file is used only
//! if no other user can have written it. The modules that use a file define the content of its blocks and summary, and
//! check it.

use crate::os::FileAt;
use crate::os::file::{File, Folder, Identity, Location, Status, is_private};
use crate::os::handle::HandleAccess;
use crate::os::temporary::{self, Temporary};
use crate::os::time;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use treelined_core::bytes::{Cursor, Fields};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The name of the folder in the session directory. It is hidden, so that it does not appear in lists of sessions.
const FOLDER: &str = ".cache";
/// The length of the footer in bytes: format, length and checksum of the table.
const FOOTER: usize = 16 + 8 + 8;
/// The number of bytes that [`CacheBlock::pass`] passes on at a time. They are few enough to stay in the cache of the
/// processor while they are read, summed and used.
const PASS: usize = 256 << 10;

/// The name of the format of a file. Every change to its blocks or its summary needs a new name.
pub type FormatName = [u8; 16];

/// A kind of cache file. Each session file has at most one cache file of each kind.
#[derive(Debug)]
pub struct FileKind {
    pub format: &'static FormatName,
    /// The ending of the names of these files. No other kind of file has this ending, since [`Cache::prune`] finds its
    /// files by the ending.
    pub ending: &'static str,
    /// The most files of this kind in one session directory.
    pub most: usize,
    /// The most bytes of all files of this kind together; a single file may have more.
    pub most_bytes: u64,
}

impl FileKind {
    /// The name of the file that belongs to this session file.
    pub fn name_for(&self, Identity { device, inode }: Identity) -> String {
        format!("{device:x}-{inode:x}{}", self.ending)
    }
}

/// The cache of one session directory.
#[derive(Clone)]
pub struct Cache {
    root: Arc<Folder>,
}

impl Cache {
    /// The cache in this session directory. The folder is made together with its first file.
    pub fn of(root: Arc<Folder>) -> Self {
        Self { root }
    }

    fn folder(&self) -> io::Result<Folder> {
        self.root.subfolder(OsStr::new(FOLDER))
    }

    /// Opens a file and checks its table. `None` if the file is missing, has another format, is damaged, or may have
    /// been written by another user. Each block is checked when it is read.
    pub fn open(&self, name: &str, format: &FormatName) -> Option<CacheFile> {
        let file = self.private(name)?;
        let table_end = file.metadata().ok()?.len().checked_sub(FOOTER as u64)?;
        let mut footer = [0; FOOTER];
        file.read_exact_at(&mut footer, table_end).ok()?;
        let mut fields = Cursor::new(&footer);
        if fields.take(16)? != format {
            return None;
        }
        let (table_len, checksum) = (fields.u64()?, fields.u64()?);
        let table_start = table_end.checked_sub(table_len)?;
        let mut table = vec![0; usize::try_from(table_len).ok()?];
        file.read_exact_at(&mut table, table_start).ok()?;
        if xxh3_64(&table) != checksum {
            return None;
        }
        let mut fields = Cursor::new(&table);
        let mut offset = 0_u64;
        let blocks = fields.list(|fields| {
            let block = CacheBlock {
                offset,
                len: fields.u64()?,
                checksum: fields.u64()?,
            };
            offset = offset.checked_add(block.len)?;
            Some(block)
        })?;
        let summary = fields.bytes()?.to_vec();
        let is_whole = offset == table_start && fields.is_at_end();
        is_whole.then_some(CacheFile {
            file,
            summary,
            blocks,
        })
    }

    /// Writes a file, in place of an older one if there is one.
    pub fn write(
        &self,
        name: &str,
        format: &FormatName,
        summary: &[u8],
        blocks: &[&[u8]],
    ) -> io::Result<()> {
        let mut writer = self.writer(name)?;
        for block in blocks {
            writer.push(block)?;
        }
        writer.finish(format, summary).map(drop)
    }

    /// Begins to write a file block by block.
    pub fn writer(&self, name: &str) -> io::Result<CacheWriter> {
        let location = Location {
            folder: Arc::new(self.root.subfolder_or_create(OsStr::new(FOLDER))?),
            name: name.into(),
        };
        Ok(CacheWriter {
            temporary: Temporary::for_name(&location.folder, &location.name)?,
            location,
            blocks: Vec::new(),
        })
    }

    /// The location of a file that has its own layout; `None` if the file is missing, or may have been written by
    /// another user.
    pub fn location(&self, name: &str) -> Option<Location> {
        self.private(name)?;
        let folder = Arc::new(self.folder().ok()?);
        let name = name.into();
        Some(Location { folder, name })
    }

    /// Begins a file that has its own layout. Also returns the location that it gets when it is finished.
    pub fn temporary(&self, name: &str) -> io::Result<(Temporary, Location)> {
        let at = Location {
            folder: Arc::new(self.root.subfolder_or_create(OsStr::new(FOLDER))?),
            name: name.into(),
        };
        Ok((Temporary::for_name(&at.folder, &at.name)?, at))
    }

    /// Removes the files that were last written more than `age` ago and for whose names `is_meant` is true. Also
    /// removes the unfinished files of killed processes.
    pub fn remove_old(&self, age: Duration, is_meant: impl Fn(&str) -> bool) -> io::Result<()> {
        let folder = match self.folder() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            folder => folder?,
        };
        temporary::remove_abandoned(&folder)?;
        let now = time::system_now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs().cast_signed());
        for (name, _) in folder.list()? {
            if is_meant(&name.to_string_lossy())
                && let Ok(status) = folder.status(&name)
                && now - status.modified.0 >= age.as_secs().cast_signed()
            {
                folder.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Opens a file that no other user can have written.
    fn private(&self, name: &str) -> Option<File> {
        let folder = self.folder().ok()?;
        let file = folder.file(OsStr::new(name), HandleAccess::Read).ok()?;
        if !is_private(&file).ok()? {
            let path = folder.path().join(name);
            let path = path.display();
            tracing::warn!(
                "other users can write to the cache file {path}, so it is ignored: delete it, it is made again"
            );
            return None;
        }
        Some(file)
    }

    /// Removes the cache file that belongs to this session file, if there is one.
    pub fn remove(&self, kind: &FileKind, identity: Identity) {
        let name = kind.name_for(identity);
        let _absent = self
            .folder()
            .and_then(|folder| folder.remove(OsStr::new(&name)));
    }

    /// Keeps the newest files of this kind, as many as the limits allow. Also removes the unfinished files of killed
    /// processes.
    pub fn prune(&self, kind: &FileKind) -> io::Result<()> {
        let mut kept = Vec::new();
        let folder = self.folder()?;
        temporary::remove_abandoned(&folder)?;
        for (name, _) in folder.list()? {
            if name.as_encoded_bytes().ends_with(kind.ending.as_bytes())
                && let Ok(status) = folder.status(&name)
            {
                kept.push((status.modified, name, status.size));
            }
        }
        kept.sort_unstable_by(|one, other| other.cmp(one));
        let mut bytes = 0;
        for (number, (_, name, size)) in kept.iter().enumerate() {
            bytes += size;
            if number >= kind.most || number > 0 && bytes > kind.most_bytes {
                folder.remove(name)?;
            }
        }
        Ok(())
    }
}

/// An open cache file.
pub struct CacheFile {
    pub file: File,
    pub summary: Vec<u8>,
    pub blocks: Vec<CacheBlock>,
}

/// The offset, length and checksum of a block in its file.
#[derive(Debug, Clone, Copy)]
pub struct CacheBlock {
    offset: u64,
    /// The length in bytes.
    pub len: u64,
    checksum: u64,
}

impl CacheBlock {
    /// The bytes of the block; `None` if they are damaged.
    pub fn read(&self, file: &File) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.len).ok()?];
        file.read_exact_at(&mut bytes, self.offset).ok()?;
        (xxh3_64(&bytes) == self.checksum).then_some(bytes)
    }

    /// Passes the bytes of the block to `each`, in portions of whole records of `record` bytes. The checksum is
    /// compared only at the end. So `each` must accept any bytes, and the caller must drop the results if this returns
    /// `None`.
    pub fn pass(
        &self,
        file: &File,
        record: usize,
        mut each: impl FnMut(&[u8]) -> Option<()>,
    ) -> Option<()> {
        if !self.len.is_multiple_of(record as u64) {
            return None;
        }
        let mut hash = Xxh3Default::new();
        let mut buffer = vec![0; PASS / record * record];
        let (mut offset, end) = (self.offset, self.offset + self.len);
        while offset < end {
            let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let now = buffer.len().min(left);
            let chunk = buffer.get_mut(..now)?;
            file.read_exact_at(chunk, offset).ok()?;
            hash.update(chunk);
            each(chunk)?;
            offset += now as u64;
        }
        (hash.digest() == self.checksum).then_some(())
    }
}

/// A cache file that is being written. It gets its name when it is finished; if it is dropped before that, nothing of
/// it remains.
pub struct CacheWriter {
    location: Location,
    temporary: Temporary,
    blocks: Vec<CacheBlock>,
}

impl CacheWriter {
    /// Appends a block.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let last = self.blocks.last();
        self.blocks.push(CacheBlock {
            offset: last.map_or(0, |last| last.offset + last.len),
            len: bytes.len() as u64,
            checksum: xxh3_64(bytes),
        });
        self.append(bytes)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&**self.temporary.file()).write_all(bytes)
    }

    /// Gives the file its name, in place of an older file. The file is not synced: if a crash leaves it half written,
    /// its checksum is wrong.
    pub fn finish(self, format: &FormatName, summary: &[u8]) -> io::Result<Vec<CacheBlock>> {
        let mut table = Fields::default();
        table.count(self.blocks.len());
        for block in &self.blocks {
            table.u64(block.len);
            table.u64(block.checksum);
        }
        table.bytes(summary);
        let Fields(mut end) = table;
        let (len, checksum) = (end.len() as u64, xxh3_64(&end));
        end.extend_from_slice(format);
        end.extend_from_slice(&len.to_le_bytes());
        end.extend_from_slice(&checksum.to_le_bytes());
        self.append(&end)?;
        self.temporary.name(&self.location)?;
        Ok(self.blocks)
    }
}

/// Appends the fields of a file's status.
pub fn put_status(out: &mut Fields, status: Status) {
    out.u64(status.identity.device);
    out.u64(status.identity.inode);
    out.u64(status.size);
    for (seconds, nanoseconds) in [status.modified, status.changed] {
        out.i64(seconds);
        out.i64(nanoseconds);
    }
}

pub fn get_status(fields: &mut Cursor<'_>) -> Option<Status> {
    Some(Status {
        identity: Identity {
            device: fields.u64()?,
            inode: fields.u64()?,
        },
        size: fields.u64()?,
        modified: (fields.i64()?, fields.i64()?),
        changed: (fields.i64()?, fields.i64()?),
    })
}

/// Makes all checksums of a file match its changed bytes. Does nothing if the table cannot be read.
#[cfg(test)]
pub(crate) fn forge_checksums(file: &mut [u8]) {
    let footer = file.len() - FOOTER;
    let table_len = u64::from_le_bytes(file[footer + 16..footer + 24].try_into().unwrap());
    let start = footer - usize::try_from(table_len).unwrap();
    let count = Cursor::new(&file[start..footer]).count().unwrap_or(0);
    let mut offset = 0_usize;
    for number in 0..count {
        let at = start + 8 + 16 * number;
        let Some(len) = file.get(at..at + 8) else {
            break;
        };
        let len = u64::from_le_bytes(len.try_into().unwrap());
        let end = usize::try_from(len)
            .ok()
            .and_then(|len| offset.checked_add(len));
        let Some(block) = end.and_then(|end| file.get(offset..end)) else {
            break;
        };
        let sum = xxh3_64(block).to_le_bytes();
        offset += block.len();
        if at + 16 > footer {
            break;
        }
        file[at + 8..at + 16].copy_from_slice(&sum);
    }
    let sum = xxh3_64(&file[start..footer]).to_le_bytes();
    file[footer + 24..].copy_from_slice(&sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const FORMAT: &FormatName = b"treelined test 1";

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::of(Arc::new(Folder::open_to_stay(folder.path()).unwrap()));
        (folder, cache)
    }

    /// All bytes of a file; `None` if any of them is damaged.
    fn contents(cache: &Cache, format: &FormatName) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
        let CacheFile {
            file,
            summary,
            blocks,
        } = cache.open("name", format)?;
        let read = blocks.iter().map(|block| block.read(&file));
        Some((summary, read.collect::<Option<_>>()?))
    }

    #[test]
    fn a_file_is_read_as_it_was_written_or_not_at_all() {
        let (folder, cache) = cache();
        assert!(contents(&cache, FORMAT).is_none());
        let blocks: [&[u8]; 4] = [b"one", b"", b"three", &[7; 300]];
        cache.write("name", FORMAT, b"summary", &blocks).unwrap();
        let expected = (b"summary".to_vec(), blocks.map(<[u8]>::to_vec).to_vec());
        assert_eq!(contents(&cache, FORMAT), Some(expected));
        assert!(contents(&cache, b"treelined test 2").is_none());
        let path = folder.path().join(FOLDER).join("name");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            assert!(contents(&cache, FORMAT).is_none(), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(contents(&cache, FORMAT).is_none(), "length {at}");
        }
        fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert!(contents(&cache, FORMAT).is_none());
    }

    #[test]
    fn a_block_is_passed_on_in_whole_records() {
        let (_folder, cache) = cache();
        let bytes: Vec<u8> = (0..3 * PASS).map(|at| (at / 12 % 251) as u8).collect();
        cache
            .write("name", FORMAT, b"", &[b"before", &bytes])
            .unwrap();
        let opened = cache.open("name", FORMAT).unwrap();
        let block = opened.blocks[1];
        let mut passed = Vec::new();
        let all = block.pass(&opened.file, 12, |records| {
            assert_eq!(records.len() % 12, 0);
            passed.extend_from_slice(records);
            Some(())
        });
        assert!(all.is_some() && passed == bytes);
        assert!(block.pass(&opened.file, 12, |_| None).is_none());
        assert!(block.pass(&opened.file, 7, |_| Some(())).is_none());
        let other = CacheBlock {
            checksum: block.checksum ^ 1,
            ..block
        };
        assert!(other.pass(&opened.file, 12, |_| Some(())).is_none());
    }
}
