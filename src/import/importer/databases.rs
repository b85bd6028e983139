//! Extracts sessions from the databases of opencode and goose, from the folders of JSON files of older versions of
//! opencode, from the exports of accounts, and from the folders of tasks of Cline, Roo Code and Kilo Code.

use super::exports::Exports;
use super::json_tree::JsonTree;
use super::native::{NativeError, NativeSession};
use super::source::facts::{Extraction, Part, Parts, ScanFailure, SourceFailure, SourceStatus};
use super::sqlite::Database;
use super::task_files::TaskFiles;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use treelined_core::agent::Tool;
use treelined_core::error::{Error, Kind};
use treelined_files::lock::lock;
use treelined_files::os::file::{Identity, status_of};

/// Extracts sessions from the databases and folders of one tool.
struct Databases {
    tool: Tool,
    /// The database or folder that was opened last. It stays open, because its sessions are mostly requested one
    /// after the other.
    open: Mutex<Option<(PathBuf, SessionContainer)>>,
}

enum SessionContainer {
    Database(Database),
    JsonTree(JsonTree),
}

static OPENCODE: Databases = Databases::of(Tool::Opencode);
static GOOSE: Databases = Databases::of(Tool::Goose);
static CHATGPT: Exports = Exports::of(Tool::ChatGpt);
static CLAUDE_AI: Exports = Exports::of(Tool::ClaudeAi);
static CLINE: TaskFiles = TaskFiles::of(Tool::Cline);
static ROO_CODE: TaskFiles = TaskFiles::of(Tool::RooCode);
static KILO_CODE: TaskFiles = TaskFiles::of(Tool::KiloCode);

/// The extraction for a tool that has its sessions in databases, folders of JSON files, exports or folders of tasks;
/// `None` for another tool.
pub(crate) fn extraction(tool: Tool) -> Option<&'static dyn Extraction> {
    match tool {
        Tool::Opencode => Some(&OPENCODE),
        Tool::Goose => Some(&GOOSE),
        Tool::ChatGpt => Some(&CHATGPT),
        Tool::ClaudeAi => Some(&CLAUDE_AI),
        Tool::Cline => Some(&CLINE),
        Tool::RooCode => Some(&ROO_CODE),
        Tool::KiloCode => Some(&KILO_CODE),
        Tool::ClaudeCode
        | Tool::Codex
        | Tool::Gemini
        | Tool::Pi
        | Tool::QwenCode
        | Tool::CopilotCli
        | Tool::VscodeChat => None,
    }
}

/// Closes all databases, folders and exports on drop, when an import ends.
pub(super) struct Closing;

impl Drop for Closing {
    fn drop(&mut self) {
        for databases in [&OPENCODE, &GOOSE] {
            *lock(&databases.open) = None;
        }
        CHATGPT.close();
        CLAUDE_AI.close();
        for tasks in [&CLINE, &ROO_CODE, &KILO_CODE] {
            tasks.close();
        }
    }
}

impl Databases {
    const fn of(tool: Tool) -> Self {
        Self {
            tool,
            open: Mutex::new(None),
        }
    }

    fn open(&self, path: &Path) -> Result<SessionContainer, NativeError> {
        if path.is_dir() {
            return JsonTree::open(path).map(SessionContainer::JsonTree);
        }
        Database::open(path, self.tool, &std::env::temp_dir()).map(SessionContainer::Database)
    }

    fn failure(&self, path: &Path, error: &NativeError) -> SourceFailure {
        let kind = match error {
            NativeError::Source { kind, .. } => kind.name(),
            NativeError::Output(_) => Kind::StorageIo.name(),
        };
        SourceFailure {
            tool: Some(self.tool),
            path: path.to_owned(),
            kind,
            message: error.to_string(),
        }
    }
}

impl SessionContainer {
    fn sessions(&self) -> &[NativeSession] {
        match self {
            Self::Database(database) => database.sessions(),
            Self::JsonTree(tree) => tree.sessions(),
        }
    }
}

impl Extraction for Databases {
    fn parts(&self, path: &Path) -> Result<Parts, SourceFailure> {
        let opened = self
            .open(path)
            .map_err(|error| self.failure(path, &error))?;
        let file = File::open(path).and_then(|file| status_of(&file));
        let file = file.map_err(|error| SourceFailure::io(Some(self.tool), path, &error))?;
        let part = |session: &NativeSession| Part {
            native_id: session.id.clone(),
            status: status(session, file.identity, file.modified),
        };
        let parts = opened.sessions().iter().map(part).collect();
        *lock(&self.open) = Some((path.to_owned(), opened));
        Ok(Parts {
            parts,
            failure: None,
        })
    }

    fn write(
        &self,
        path: &Path,
        part: &str,
        most: u64,
        out: &mut dyn Write,
    ) -> Result<(), ScanFailure> {
        let mut open = lock(&self.open);
        let is_open = open.as_ref().is_some_and(|(opened, _)| opened == path);
        if !is_open {
            let opened = self
                .open(path)
                .map_err(|error| self.failure(path, &error))?;
            *open = Some((path.to_owned(), opened));
        }
        let written = match &*open {
            Some((_, SessionContainer::Database(database))) => {
                database.write_session(part, most, out)
            }
            Some((_, SessionContainer::JsonTree(tree))) => tree.write_session(part, most, out),
            None => Ok(()),
        };
        match written {
            Ok(()) => Ok(()),
            Err(NativeError::Output(error)) => {
                Err(ScanFailure::Import(Error::io("keep a session", &error)))
            }
            Err(error) => Err(self.failure(path, &error).into()),
        }
    }
}

/// The status of one session. It has the session's own time, because the time of the file changes with every session.
fn status(session: &NativeSession, identity: Identity, file: (i64, i64)) -> SourceStatus {
    let modified = session.last_activity.map(|at| (at.div_euclid(1000), 0));
    SourceStatus {
        size: 0,
        modified: modified.unwrap_or(file),
        identity,
        version: session.version,
    }
}
