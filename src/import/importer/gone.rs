//! Finds sources that were deleted after an import held back their end. Their kept bytes still have the end.

use super::discover::{FoundSources, Request, is_below, is_container, medium};
use super::ledger::Ledger;
use super::ledger::rows::SourceRow;
use super::origin::Origins;
use super::source::facts::Source;
use super::source::stream::COMPRESSED;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treelined_core::agent::Tool;

/// The sources of a request that no longer exist, but whose end was held back. They are read from their origins.
pub(super) fn gone(
    request: &Request,
    found: &FoundSources,
    ledger: &Ledger,
    session_dir: &Path,
) -> Vec<Source> {
    let mut rows = ledger.held(request.from).peekable();
    let Some(origins) = rows
        .peek()
        .and_then(|_| Origins::existing(session_dir).ok())
        .map(Arc::new)
    else {
        return Vec::new();
    };
    let present = Present::of(found);
    let sources = rows.filter_map(|row| {
        let source = source_of(row, &origins)?;
        let is_wanted = request.paths.is_empty()
            || request
                .paths
                .iter()
                .any(|path| is_below(&source.path, path));
        let has_bytes = || {
            let kept = origins.reader(&row.origin);
            kept.is_ok_and(|kept| kept.kept_bytes() >= row.len)
        };
        let is_gone = is_wanted && present.lacks(&source) && has_bytes();
        is_gone.then_some(source)
    });
    sources.collect()
}

/// The sources that the present import has found.
struct Present {
    names: HashSet<(Tool, String)>,
    /// The names of files without their folders, because tools move files.
    files: HashSet<(Tool, OsString)>,
    /// The databases that could be read.
    databases: HashSet<PathBuf>,
}

impl Present {
    fn of(found: &FoundSources) -> Self {
        let sources = || found.sources.iter();
        let files = sources().filter(|source| source.part.is_none());
        let read = found
            .databases
            .iter()
            .map(|row| PathBuf::from(&row.database));
        let others = sources().filter(|source| source.part.is_some());
        Self {
            names: sources().map(|it| (it.tool, it.name())).collect(),
            files: files
                .filter_map(|it| Some((it.tool, file_name(&it.path)?)))
                .collect(),
            databases: read.chain(others.map(|it| it.path.clone())).collect(),
        }
    }

    /// Whether a source does not exist any more, neither in its old folder nor in another folder.
    fn lacks(&self, source: &Source) -> bool {
        if self.names.contains(&(source.tool, source.name())) {
            return false;
        }
        let is_missing = std::fs::symlink_metadata(&source.path)
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        match source.part {
            Some(_) => is_missing || self.databases.contains(&source.path),
            None => {
                let name = file_name(&source.path);
                let is_moved = name.is_some_and(|name| self.files.contains(&(source.tool, name)));
                is_missing && !is_moved
            }
        }
    }
}

/// The name of a file. A compressed file has the same name as the uncompressed one.
fn file_name(path: &Path) -> Option<OsString> {
    let name = path.file_name()?;
    let plain = name.as_encoded_bytes().ends_with(COMPRESSED.as_bytes());
    match plain {
        true => path.file_stem().map(OsString::from),
        false => Some(name.to_owned()),
    }
}

fn source_of(row: &SourceRow, origins: &Arc<Origins>) -> Option<Source> {
    let (path, part) = match super::databases::extraction(row.tool) {
        Some(_) if is_container(row.tool) => row.source.rsplit_once('#')?,
        _ => (&*row.source, ""),
    };
    let path = PathBuf::from(path);
    Some(Source {
        tool: row.tool,
        medium: medium(row.tool, &path),
        path,
        part: (!part.is_empty()).then(|| part.to_owned()),
        status: row.status,
        side_files: Vec::new(),
        kept: Some((Arc::clone(origins), row.origin.clone())),
    })
}
