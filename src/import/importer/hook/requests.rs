//! The requests of hooks. Each is a file in `.imports/requests`, which appears only when it is complete.

use crate::importer::ledger::Folder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tags::GitPlace;
use treelined_files::os::file::{Location, is_lock_unsupported};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::{self, Temporary};
use uuid::Uuid;

const IMPORTS: &str = ".imports";
const FOLDER: &str = "requests";
const LOCK: &str = "lock";
/// The ending of a request's file name.
const ENDING: &str = ".json";
/// The most requests that wait at a time.
pub(super) const MAX_WAITING: usize = 1_024;
/// The most bytes of a request.
const MAX_BYTES: u64 = 1 << 20;
/// The pause between two attempts to get the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// A request: a conversation to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) tool: Tool,
    /// The absolute paths of the files. Symbolic links above them are resolved.
    pub(super) paths: Vec<PathBuf>,
    /// The native id of the conversation, and the position in git where the tool works.
    pub(super) git: Option<(String, GitPlace)>,
    /// Whether the turn has ended. Marks at the end of messages then count sooner.
    pub(super) has_ended: bool,
}

/// The folder that has the requests.
pub(super) struct Requests(Arc<Folder>);

/// A request in the form of its file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    tool: String,
    paths: Vec<PathBuf>,
    /// The native id of the conversation, and the data of a record of git (session-file.md §4.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git: Option<(String, Value)>,
    has_ended: bool,
}

impl Requests {
    /// Opens the folder; makes it if it is missing.
    pub(super) fn of(session_dir: &Path) -> Result<Self> {
        let root = Folder::open_or_create(session_dir).map(Arc::new);
        let imports = root.and_then(|root| root.subfolder_or_create(OsStr::new(IMPORTS)));
        let folder = imports
            .map(Arc::new)
            .and_then(|imports| imports.subfolder_or_create(OsStr::new(FOLDER)));
        Ok(Self(Arc::new(folder.map_err(failed)?)))
    }

    /// Opens the folder; `None` if it is missing, because no hook has made a request so far.
    pub(super) fn existing(session_dir: &Path) -> Option<Self> {
        let root = Folder::open(session_dir).map(Arc::new);
        let imports = root.and_then(|root| root.subfolder(OsStr::new(IMPORTS)));
        let folder = imports.map(Arc::new);
        let folder = folder.and_then(|imports| imports.subfolder(OsStr::new(FOLDER)));
        Some(Self(Arc::new(folder.ok()?)))
    }

    /// Adds a request. Fails with `importBusy` if too many are waiting.
    pub(super) fn add(&self, request: &Request) -> Result<()> {
        // Temporary files of killed processes are removed.
        temporary::remove_abandoned(&self.0).map_err(failed)?;
        if self.names()?.len() >= MAX_WAITING {
            let message = format!("{MAX_WAITING} requests of hooks wait for an import");
            return Err(Error::new(Kind::ImportBusy, message));
        }
        let line = Line {
            tool: request.tool.name().to_owned(),
            paths: request.paths.clone(),
            git: request.git.as_ref().map(|(native, place)| {
                let data = serde_json::from_slice(&place.data());
                (native.clone(), data.unwrap_or_default())
            }),
            has_ended: request.has_ended,
        };
        let text = serde_json::to_vec(&line).map_err(|error| failed(error.into()))?;
        let name = OsString::from(format!("{}{ENDING}", Uuid::now_v7()));
        let new = Temporary::for_name(&self.0, &name).map_err(failed)?;
        let written = (&**new.file()).write_all(&text);
        let named = written.and_then(|()| {
            new.name_new(&Location {
                folder: Arc::clone(&self.0),
                name,
            })
        });
        named.map_err(failed)
    }

    /// Takes the lock that is needed to handle requests. The lock is released when the file is closed. `None` if
    /// another process holds the lock until `until`.
    pub(super) fn lock(&self, until: Instant) -> Result<Option<File>> {
        let name = OsStr::new(LOCK);
        let created = match self.0.create(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            created => Some(created.map_err(failed)?),
        };
        let file = match created {
            Some(file) => file,
            None => self.0.file(name, HandleAccess::Append)?,
        };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(error)) if is_lock_unsupported(&error) => {
                    return Ok(Some(file));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
            }
        }
    }

    /// The waiting requests, each with the name of its file, oldest first. A request is `None` if its file cannot be
    /// read.
    pub(super) fn waiting(&self) -> Result<Vec<(OsString, Option<Request>)>> {
        let mut names = self.names()?;
        names.sort();
        let read = |name: OsString| {
            let request = self.read(&name);
            (name, request)
        };
        Ok(names.into_iter().map(read).collect())
    }

    /// The names of the files of all requests that wait.
    fn names(&self) -> Result<Vec<OsString>> {
        let names = self.0.list().map_err(failed)?.into_iter();
        let is_request = |name: &OsString| name.as_encoded_bytes().ends_with(ENDING.as_bytes());
        Ok(names.map(|(name, _)| name).filter(is_request).collect())
    }

    fn read(&self, name: &OsStr) -> Option<Request> {
        let file = self.0.file(name, HandleAccess::Read).ok()?;
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        let line: Line = serde_json::from_slice(&text).ok()?;
        let tool = Tool::ALL
            .into_iter()
            .find(|tool| tool.name() == line.tool)?;
        Some(Request {
            tool,
            paths: line.paths,
            git: line
                .git
                .map(|(native, place)| (native, GitPlace::of_data(place.to_string().as_bytes()))),
            has_ended: line.has_ended,
        })
    }

    pub(super) fn remove(&self, name: &OsStr) -> Result<()> {
        self.0.remove(name).map_err(failed)
    }
}

fn failed(error: io::Error) -> Error {
    Error::io("keep the requests of hooks", &error)
}
