//! The file `.imports/hooks.log` has a line for each failure of a hook, because the stderr of a hook is not shown.

use crate::importer::ledger::Folder;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use treelined_core::id::Source;
use treelined_core::{terminal, timestamp};
use treelined_files::clock::SystemSource;
use treelined_files::os::handle::HandleAccess;

/// The path of the file, relative to the session directory.
pub const PATH: &str = ".imports/hooks.log";
const IMPORTS: &str = ".imports";
const NAME: &str = "hooks.log";
/// The most bytes of the file. If it is longer, it is written from the beginning again.
const MAX_BYTES: u64 = 64 << 10;
/// The most characters of one line.
const MAX_CHARS: usize = 500;

/// Adds a line that begins with the time.
pub fn note(session_dir: &Path, what: &str) -> io::Result<()> {
    let root = Folder::open_or_create(session_dir).map(Arc::new)?;
    let folder = root.subfolder_or_create(OsStr::new(IMPORTS))?;
    let name = OsStr::new(NAME);
    let mut file = match folder.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let opened = folder.file(name, HandleAccess::Append);
            opened.map_err(io::Error::other)?
        }
        created => created?,
    };
    if file.metadata()?.len() > MAX_BYTES {
        file.set_len(0)?;
    }
    let at = timestamp::format(SystemSource.now_ms());
    let what: String = terminal::line(what).chars().take(MAX_CHARS).collect();
    file.write_all(format!("{at} {what}\n").as_bytes())
}
