//! Writes the file of a new session. The file gets its name only when its bytes are on the disk.

use std::io::{self, Write};
use treelined_core::bytes::part;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::Location;
use treelined_files::os::temporary::Temporary;

/// The number of bytes that are written at a time.
const CHUNK: usize = 256 << 10;

/// A file without a name. If the value is dropped before `finish`, no file remains.
pub(super) struct NewFile {
    at: Location,
    temporary: Temporary,
    chunk: Vec<u8>,
}

impl NewFile {
    pub(super) fn begin(at: Location) -> Result<Self> {
        let temporary = Temporary::for_name(&at.folder, &at.name);
        let temporary = temporary.map_err(|error| failed(&at, &error))?;
        Ok(Self {
            at,
            temporary,
            chunk: Vec::new(),
        })
    }

    /// Adds a line. `write` appends it without its line break.
    pub(super) fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let start = self.chunk.len();
        write(&mut self.chunk);
        debug_assert!(
            memchr::memchr(b'\n', part(&self.chunk, start..)).is_none(),
            "one line"
        );
        self.chunk.push(b'\n');
        if self.chunk.len() >= CHUNK {
            self.write().map_err(|error| failed(&self.at, &error))?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        (&**self.temporary.file()).write_all(&self.chunk)?;
        self.chunk.clear();
        // A very long line may have made the buffer large.
        self.chunk.shrink_to(2 * CHUNK);
        Ok(())
    }

    /// Syncs the file and gives it its name. The name becomes durable when its folder is synced.
    pub(super) fn finish(mut self) -> Result<Location> {
        let written = self.write();
        let synced = written.and_then(|()| self.temporary.file().sync_data());
        let named = synced.and_then(|()| self.temporary.name(&self.at));
        match named {
            Ok(()) => Ok(self.at),
            Err(error) => Err(failed(&self.at, &error)),
        }
    }
}

fn failed(at: &Location, error: &io::Error) -> Error {
    Error::io(&format!("write {}", at.path().display()), error)
}
