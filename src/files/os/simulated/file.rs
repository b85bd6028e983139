//! An open file of the simulated disk, with the methods of a file of the standard library.

use super::disk::{Change, NodeId};
use super::{Called, LeftOut, State, World, call, touch};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::TryLockError;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An open file or folder.
#[derive(Debug)]
pub struct File {
    pub(super) world: Arc<World>,
    pub(super) process: usize,
    pub(super) number: u64,
}

pub struct Metadata {
    len: u64,
    modified: u64,
}

impl Metadata {
    #[allow(clippy::len_without_is_empty, reason = "the standard library has none")]
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(SystemTime::UNIX_EPOCH + Duration::from_nanos(self.modified))
    }
}

/// Reads and writes at an offset.
pub trait FileAt {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl FileAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.call("read", |state, node| {
            if state.fails() {
                return Err(Errno::IO);
            }
            let data = &state.disk.node(node).ok_or(Errno::NOENT)?.data;
            let from = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(data.len());
            let found = data.get(from..).unwrap_or_default();
            let len = found.len().min(buffer.len());
            let (room, _) = buffer.split_at_mut(len);
            room.copy_from_slice(found.get(..len).unwrap_or_default());
            Ok(len)
        })
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_at(buffer, offset)? {
            read if read == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Writes again the bytes that the file has at this offset. No other bytes of a session file are written in place.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.call("write again", |state, node| {
            let known = &state.disk.node(node).ok_or(Errno::NOENT)?.data;
            let at = usize::try_from(offset).unwrap_or(usize::MAX);
            let is_same = known.get(at..at.saturating_add(bytes.len())) == Some(bytes);
            if state.fails() || !is_same {
                return Err(Errno::IO);
            }
            state.disk.change(Change::Again {
                node,
                at: offset,
                data: bytes.into(),
            });
            touch(state, node, true);
            Ok(())
        })
    }
}

impl File {
    pub(super) fn node(&self, state: &State) -> Called<NodeId> {
        let file = state.files.get(&self.number).ok_or(Errno::BADF)?;
        Ok(file.node)
    }

    fn call<T>(
        &self,
        name: &str,
        act: impl FnOnce(&mut State, NodeId) -> Called<T>,
    ) -> io::Result<T> {
        let text = |state: &State| format!("{name} {}", self.node(state).unwrap_or(0));
        let done = call(text, |state, _| {
            let node = self.node(state)?;
            act(state, node)
        });
        Ok(done?)
    }

    pub fn try_lock(&self) -> Result<(), TryLockError> {
        let locked = self.call("lock", |state, node| match state.locks.get(&node) {
            _ if state.rules.left_out == LeftOut::Lock => Ok(true),
            Some(holder) if *holder != self.number => Ok(false),
            _ => {
                state.locks.insert(node, self.number);
                Ok(true)
            }
        });
        match locked {
            Ok(true) => Ok(()),
            Ok(false) => Err(TryLockError::WouldBlock),
            Err(error) => Err(TryLockError::Error(error)),
        }
    }

    pub fn unlock(&self) -> io::Result<()> {
        self.call("unlock", |state, node| {
            if state.locks.get(&node) == Some(&self.number) {
                state.locks.remove(&node);
            }
            Ok(())
        })
    }

    pub fn sync_all(&self) -> io::Result<()> {
        self.call("sync", |state, node| {
            let known = state.disk.node(node).ok_or(Errno::NOENT)?;
            let is_folder = known.is_folder;
            if self.fails_to_sync(state, node) {
                return Err(Errno::IO);
            }
            if is_folder {
                if state.rules.left_out != LeftOut::FolderSync {
                    state.disk.sync_folder(node);
                }
                return Ok(());
            }
            let is_temporary = state.disk.nodes.values().any(|folder| {
                let mut names = folder.names.iter();
                let ending = |name: &OsStr| name.as_bytes().ends_with(b".treelined.tmp");
                names.any(|(name, named)| *named == node && ending(name))
            });
            match state.rules.left_out {
                LeftOut::NewFileSync if is_temporary => {}
                LeftOut::AppendSync if !is_temporary => {}
                _ => state.disk.sync_file(node),
            }
            Ok(())
        })
    }

    /// Whether this sync fails. A failed sync of a folder can be tried again. A failed sync of a file is reported once
    /// to each process that has the file open, as on Linux.
    fn fails_to_sync(&self, state: &mut State, node: NodeId) -> bool {
        let own = state.files.get_mut(&self.number);
        if own.is_some_and(|own| std::mem::take(&mut own.has_failed)) {
            return true;
        }
        let is_folder = state.disk.node(node).is_some_and(|node| node.is_folder);
        if !state.fails_to_sync() {
            return false;
        }
        if !is_folder {
            state.disk.fail_file(node);
            let others = state.files.iter_mut();
            let others =
                others.filter(|(number, file)| **number != self.number && file.node == node);
            others.for_each(|(_, file)| file.has_failed = true);
        }
        true
    }

    pub fn sync_data(&self) -> io::Result<()> {
        self.sync_all()
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.call("metadata", |state, node| {
            let node = state.disk.node(node).ok_or(Errno::NOENT)?;
            Ok(Metadata {
                len: node.data.len() as u64,
                modified: node.modified,
            })
        })
    }

    pub fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        let nanos = time.duration_since(SystemTime::UNIX_EPOCH);
        let nanos = nanos.map_or(0, |nanos| u64::try_from(nanos.as_nanos()).unwrap_or(0));
        self.call("utimens", |state, node| {
            if let Some(node) = state.disk.nodes.get_mut(&node) {
                node.modified = nanos;
            }
            Ok(())
        })
    }

    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.call("truncate", |state, node| {
            state.disk.change(Change::Size { node, len });
            touch(state, node, true);
            Ok(())
        })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let text =
            |state: &State| format!("write {} {}", self.node(state).unwrap_or(0), bytes.len());
        // If a process is killed during a write, the kernel may stop between two pages.
        let part = |state: &mut State| {
            let pages = state.random.below(bytes.len() as u64 / 4096 + 1);
            let len = usize::try_from(pages * 4096).unwrap_or(0);
            let _killed = self.put(state, bytes.get(..len).unwrap_or_default());
        };
        let mut state = self.world.call(self.process, text, part)?;
        if state.fails() {
            let end = state.random.below(bytes.len() as u64 + 1);
            let bytes = bytes.get(..usize::try_from(end).unwrap_or(0));
            return match self.put(&mut state, bytes.unwrap_or_default())? {
                0 => Err(Errno::IO.into()),
                written => Ok(written),
            };
        }
        Ok(self.put(&mut state, bytes)?)
    }

    fn put(&self, state: &mut State, bytes: &[u8]) -> Called<usize> {
        let node = self.node(state)?;
        let size = state.disk.node(node).ok_or(Errno::NOENT)?.data.len() as u64;
        let mut len = bytes.len();
        if let Some(space) = &mut state.disk.space {
            if *space == 0 && len > 0 {
                return Err(Errno::NOSPC);
            }
            len = len.min(usize::try_from(*space).unwrap_or(usize::MAX));
            *space -= len as u64;
        }
        let file = state.files.get_mut(&self.number).ok_or(Errno::BADF)?;
        let at = if file.appends { size } else { file.position };
        file.position = at + len as u64;
        let data = bytes.get(..len).unwrap_or_default();
        if !data.is_empty() {
            let data = data.into();
            state.disk.change(Change::Write { node, at, data });
            touch(state, node, true);
        }
        Ok(len)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let mut state = self.world.lock();
        if let Some(file) = state.files.remove(&self.number)
            && state.locks.get(&file.node) == Some(&self.number)
        {
            state.locks.remove(&file.node);
        }
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let position = self.stream_position()?;
        let read = self.read_at(buffer, position)?;
        if let Some(file) = self.world.lock().files.get_mut(&self.number) {
            file.position = position + read as u64;
        }
        Ok(read)
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        File::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        File::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    /// Callers request only the current position.
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        match (to, self.world.lock().files.get(&self.number)) {
            (io::SeekFrom::Current(0), Some(file)) => Ok(file.position),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Seek for File {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}
