//! The facts about a source, and the ways in which a scan of it can fail.

use crate::importer::limits::Limits;
use crate::importer::origin::Origins;
use crate::member::Place;
use crate::records::Layout;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use treelined_core::agent::Tool;
use treelined_core::error::Error;
use treelined_core::timestamp::Millis;
use treelined_files::os::file::{Folder, Identity, Status};

/// A source: a stream of records. It is one file, or one native session in a database or folder.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) tool: Tool,
    /// The absolute path. The folders above the file are not symbolic links.
    pub(crate) path: PathBuf,
    /// The id of the native session, if `path` has several.
    pub(crate) part: Option<String>,
    pub(crate) status: SourceStatus,
    pub(crate) medium: Medium,
    /// The tool's other files that have data of this source.
    pub(crate) side_files: Vec<SideFile>,
    /// If the source itself does not exist any more, it is read from its origin: the folder of origins, and the name
    /// of the origin there.
    pub(crate) kept: Option<(Arc<Origins>, String)>,
}

/// The properties by which an import recognizes that a source has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceStatus {
    /// The number of bytes on the disk. For a part, the number of bytes in its rows, if it is known.
    pub(crate) size: u64,
    /// The time of the last change, as seconds and nanoseconds of Unix time.
    pub(crate) modified: (i64, i64),
    pub(crate) identity: Identity,
    /// For a part, a hash of its content, because size and times change with every other part too. Otherwise 0.
    pub(crate) version: u64,
}

/// The way to get the records of a source from its bytes.
#[derive(Clone, Copy)]
pub(crate) enum Medium {
    Plain(Layout),
    /// Lines in a file that Zstandard has compressed. Offsets count decompressed bytes.
    Compressed,
    /// Lines that are extracted from a part.
    Extracted(&'static dyn Extraction),
}

/// Makes the records of native sessions that are not files of records, but rows of a database or many JSON files.
pub(crate) trait Extraction: Sync {
    /// The native sessions in a database, folder or export.
    fn parts(&self, path: &Path) -> Result<Parts, SourceFailure>;

    /// Writes the records of one native session, one on each line. The bytes are the same until the session changes.
    /// Fails at a value of more than `most` bytes.
    fn write(
        &self,
        path: &Path,
        part: &str,
        most: u64,
        out: &mut dyn Write,
    ) -> Result<(), ScanFailure>;
}

/// The native sessions in one database, folder or export.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) parts: Vec<Part>,
    /// The reason why other parts cannot be read, if there are some.
    pub(crate) failure: Option<SourceFailure>,
}

/// One native session in a database, folder or export.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) native_id: String,
    pub(crate) status: SourceStatus,
}

/// A file that belongs to a source and is not a conversation itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SideFile {
    pub(crate) kind: SideKind,
    pub(crate) path: PathBuf,
}

/// The content of a side file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideKind {
    /// The call that spawned the subagent (Claude Code: `agent-*.meta.json`).
    Spawn,
    /// The whole output of a call (Claude Code: `tool-results/`).
    ToolResult,
    /// Names of sessions (Codex: `session_index.jsonl`).
    Names,
    /// The directories of projects (Gemini CLI: `projects.json`).
    Projects,
    /// The directory of the project (Gemini CLI: `.project_root`).
    ProjectRoot,
    /// The name and the directory of a session (Copilot CLI: `workspace.yaml`).
    Workspace,
    /// The directory of a workspace (VS Code: `workspace.json`).
    Folder,
}

/// A source that cannot be imported, with the reason. Other sources are still imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFailure {
    pub(crate) tool: Option<Tool>,
    pub(crate) path: PathBuf,
    /// `unrecognized`, `changed`, `notFound`, or the name of an error's kind.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

/// The reason why a scan has failed.
#[derive(Debug)]
pub(crate) enum ScanFailure {
    /// The source cannot be read. Other sources are still imported.
    Source(SourceFailure),
    /// The import ends, because it was cancelled or its own files cannot be written.
    Import(Error),
}

impl SourceStatus {
    pub(crate) fn of_file(status: Status) -> Self {
        Self {
            size: status.size,
            modified: status.modified,
            identity: status.identity,
            version: 0,
        }
    }

    /// The status of a database together with its write-ahead log, or the status of a folder.
    pub(crate) fn of_database(path: &Path) -> io::Result<Self> {
        let mut status = Self::of_file(status_of(path)?);
        for ending in ["-wal", "-journal"] {
            let mut log = OsString::from(path);
            log.push(ending);
            if let Ok(log) = status_of(Path::new(&log)) {
                status.size = status.size.wrapping_add(log.size);
                status.modified = status.modified.max(log.modified);
            }
        }
        Ok(status)
    }

    /// Whether the source has not been modified for `period`, according to its times.
    pub(crate) fn is_quiet(&self, now: Millis, period: Duration) -> bool {
        self.quiet_at(period) <= now
    }

    /// The time at which the source will not have been modified for `period`, in Unix milliseconds.
    pub(crate) fn quiet_at(&self, period: Duration) -> Millis {
        let (seconds, nanoseconds) = self.modified;
        let part = nanoseconds.max(0).saturating_add(999_999) / 1_000_000;
        let period = Millis::try_from(period.as_millis()).unwrap_or(Millis::MAX);
        let modified = seconds.saturating_mul(1000).saturating_add(part);
        modified.saturating_add(period)
    }
}

impl SourceFailure {
    /// The failure of a system call on `path`.
    pub(crate) fn io(tool: Option<Tool>, path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => "notFound",
            _ => Error::io("", error).kind.name(),
        };
        Self {
            tool,
            path: path.to_owned(),
            kind,
            message: error.to_string(),
        }
    }
}

impl From<Error> for ScanFailure {
    fn from(error: Error) -> Self {
        Self::Import(error)
    }
}

impl From<SourceFailure> for ScanFailure {
    fn from(failure: SourceFailure) -> Self {
        Self::Source(failure)
    }
}

impl fmt::Display for ScanFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(failure) => {
                write!(f, "{}: {}", failure.path.display(), failure.message)
            }
            Self::Import(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(layout) => f.debug_tuple("Plain").field(layout).finish(),
            Self::Compressed => f.write_str("Compressed"),
            Self::Extracted(_) => f.write_str("Extracted"),
        }
    }
}

pub(super) fn status_of(path: &Path) -> io::Result<Status> {
    let (parent, name) = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => (parent, name),
        _ => return Err(super::regular::not_regular()),
    };
    Folder::open(parent)?.status(name)
}

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The number of (decompressed) bytes up to the end of the last whole record.
    pub(crate) len: u64,
    pub(crate) records: u64,
    /// The ranges that are neither a record nor white space.
    pub(crate) unparsable: Vec<Place>,
    /// The SHA-256 of the first `len` bytes.
    pub(crate) prefix_hash: [u8; 32],
    /// The fault that ended the read of a compressed file before its end.
    pub(crate) damage: Option<SourceFailure>,
    /// The status of the file before it was read; `None` for a part.
    pub(super) status: Option<Status>,
    /// The limits that applied to the scan.
    pub(crate) limits: Limits,
    /// The number of bytes that were decompressed or extracted; 0 for a plain file.
    pub(crate) made: u64,
}

impl Scan {
    /// Whether a file ends with a line that its tool may not have finished.
    pub(crate) fn has_rest(&self) -> bool {
        self.status.is_some_and(|status| self.len < status.size)
    }
}
