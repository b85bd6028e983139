//! The sources that share a database or a folder of small files.

use super::{Medium, Source, SourceFailure, SourceStatus};
use crate::import::Tool;
use crate::importer::json_tree::JsonTree;
use crate::importer::native::{NativeError, NativeSession};
use crate::importer::sqlite::Database;
use crate::lock::lock;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Makes the records of native sessions that have no file of their own.
pub(crate) trait Extraction: Send + Sync {
    /// Writes the records of one, a line each: the same bytes as long as nothing has changed.
    fn write(&self, part: &str, out: &mut dyn Write) -> Result<(), NativeError>;
}

impl Extraction for Mutex<Database> {
    fn write(&self, part: &str, out: &mut dyn Write) -> Result<(), NativeError> {
        lock(self).write_session(part, out)
    }
}

impl Extraction for JsonTree {
    fn write(&self, part: &str, out: &mut dyn Write) -> Result<(), NativeError> {
        self.write_session(part, out)
    }
}

/// The native sessions in a database or folder, which has this status. A copy of a database is made in `scratch` if it
/// needs one.
pub(crate) fn parts(
    tool: Tool,
    path: &Path,
    status: SourceStatus,
    scratch: &Path,
) -> Result<Vec<Source>, SourceFailure> {
    let opened: Result<(Vec<NativeSession>, Arc<dyn Extraction>), NativeError> = if path.is_dir() {
        JsonTree::open(path).map(|tree| {
            let sessions = tree.sessions().to_vec();
            (sessions, Arc::new(tree) as Arc<dyn Extraction>)
        })
    } else {
        Database::open(path, tool, scratch).map(|database| {
            let sessions = database.sessions().to_vec();
            (sessions, Arc::new(Mutex::new(database)) as Arc<dyn Extraction>)
        })
    };
    let (sessions, extraction) =
        opened.map_err(|error| SourceFailure::native(tool, path, &error))?;
    let source = |session: NativeSession| Source {
        tool,
        path: path.to_owned(),
        part: Some(session.id),
        status: SourceStatus {
            // 0 is that of whole files.
            version: session.version.max(1),
            ..status
        },
        medium: Medium::Extracted(Arc::clone(&extraction)),
        side_files: Vec::new(),
    };
    Ok(sessions.into_iter().map(source).collect())
}

impl SourceFailure {
    pub(super) fn native(tool: Tool, path: &Path, error: &NativeError) -> Self {
        match error {
            NativeError::Source { kind, message } => Self {
                tool: Some(tool),
                path: path.to_owned(),
                kind: kind.name(),
                message: message.clone(),
            },
            NativeError::Output(error) => Self::io(Some(tool), path, error),
        }
    }
}
