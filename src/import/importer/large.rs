//! The sources that exceed the limits on one source (`.imports/large.jsonl`, session-file.md §5.9). Imports have
//! refused them, or the user has allowed them.
//!
//! Only one import writes the file at a time: it holds the lock of the ledger. If the file is lost, the sources are
//! only read and refused again.

use super::source::facts::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use treelined_core::error::{Error, Result};
use treelined_files::os::file::{Folder, Location};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::Temporary;

const FOLDER: &str = ".imports";
const NAME: &str = "large.jsonl";
/// The most sources that are remembered. A forgotten source is read again.
const MAX_ROWS: usize = 1_000;
/// The most bytes of the file that are read.
const MAX_BYTES: u64 = 8 << 20;

/// A row of the file: a source that was refused or allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    tool: String,
    source: String,
    /// Absent if the source is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<Refusal>,
}

/// The refusal of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Refusal {
    /// The size, times and identity of the source when it was refused.
    status: String,
    message: String,
}

/// A source that imports refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSource {
    pub tool: String,
    /// The absolute path of the source; a session of a database follows after `#`.
    pub source: String,
    /// The limit that the source exceeds, and what the user can do.
    pub message: String,
}

/// The sources that were refused or allowed, by tool and name.
#[derive(Debug, Default)]
pub(super) struct LargeSources {
    rows: BTreeMap<(String, String), Option<Refusal>>,
    has_changed: bool,
}

impl LargeSources {
    /// Reads the file. Without a file, there are no such sources.
    pub(super) fn read(session_dir: &Path) -> Self {
        let mut large = Self::default();
        let mut text = Vec::new();
        let folder = folder(session_dir).ok();
        let opened = folder.and_then(|it| it.file(OsStr::new(NAME), HandleAccess::Read).ok());
        if let Some(file) = opened
            && let Err(error) = file.take(MAX_BYTES).read_to_end(&mut text)
        {
            tracing::warn!(%error, "the list of large sources cannot be read; they are read again");
        }
        let rows = text.split(|byte| *byte == b'\n');
        let rows = rows.filter_map(|line| serde_json::from_slice::<Row>(line).ok());
        for row in rows {
            large.put((row.tool, row.source), row.refused);
        }
        large.has_changed = false;
        large
    }

    /// The message with which a source was refused, if it has not changed since.
    pub(super) fn refusal(&self, source: &Source) -> Option<&str> {
        let refused = self.rows.get(&key(source))?.as_ref()?;
        (refused.status == status(source)).then_some(&*refused.message)
    }

    /// Whether the user has allowed the source to be large.
    pub(super) fn is_allowed(&self, source: &Source) -> bool {
        self.rows.get(&key(source)) == Some(&None)
    }

    pub(super) fn refuse(&mut self, source: &Source, message: &str) {
        let refused = Refusal {
            status: status(source),
            message: message.to_owned(),
        };
        self.put(key(source), Some(refused));
    }

    /// Notes that a source was imported. From now on it is allowed if it `is_beyond` the limits, or was refused
    /// before the limits were lifted.
    pub(super) fn imported(&mut self, source: &Source, is_beyond: bool, is_unlimited: bool) {
        let key = key(source);
        let is_refused = matches!(self.rows.get(&key), Some(Some(_)));
        if is_beyond || is_refused && is_unlimited {
            self.put(key, None);
        } else if is_refused {
            self.rows.remove(&key);
            self.has_changed = true;
        }
    }

    fn put(&mut self, key: (String, String), refused: Option<Refusal>) {
        let has_room = self.rows.len() < MAX_ROWS || self.rows.contains_key(&key);
        if has_room && self.rows.get(&key) != Some(&refused) {
            self.rows.insert(key, refused);
            self.has_changed = true;
        }
    }

    /// Writes the file if a row has changed.
    pub(super) fn write(&self, session_dir: &Path) -> Result<()> {
        if !self.has_changed {
            return Ok(());
        }
        let mut text = Vec::new();
        for ((tool, source), refused) in &self.rows {
            let row = Row {
                tool: tool.clone(),
                source: source.clone(),
                refused: refused.clone(),
            };
            let written = serde_json::to_writer(&mut text, &row);
            debug_assert!(written.is_ok(), "plain data");
            text.push(b'\n');
        }
        let written = folder(session_dir).and_then(|folder| {
            let new = Temporary::for_name(&folder, OsStr::new(NAME))?;
            (&**new.file()).write_all(&text)?;
            new.file().sync_data()?;
            new.name(&Location {
                folder,
                name: NAME.into(),
            })
        });
        written.map_err(|error| Error::io("write the list of large sources", &error))
    }
}

/// The sources that imports into a session directory refuse and that still exist.
pub fn refused(session_dir: &Path) -> Vec<RefusedSource> {
    let rows = LargeSources::read(session_dir).rows.into_iter();
    let refused = rows.filter_map(|((tool, source), refused)| {
        let message = refused?.message;
        Some(RefusedSource {
            tool,
            source,
            message,
        })
    });
    refused.filter(|row| is_there(&row.source)).collect()
}

/// Whether a file exists under this name, or under the part of the name before the `#`.
fn is_there(source: &str) -> bool {
    let database = source.rsplit_once('#').map(|(path, _)| path);
    let mut paths = [Some(source), database].into_iter().flatten();
    paths.any(|path| Path::new(path).exists())
}

fn folder(session_dir: &Path) -> io::Result<Arc<Folder>> {
    let root = Arc::new(Folder::open(session_dir)?);
    root.subfolder(OsStr::new(FOLDER)).map(Arc::new)
}

fn key(source: &Source) -> (String, String) {
    (source.tool.name().to_owned(), source.name())
}

fn status(source: &Source) -> String {
    let status = source.status;
    let (seconds, nanoseconds) = status.modified;
    let (device, inode) = (status.identity.device, status.identity.inode);
    let of_part = status.version;
    format!(
        "{}-{seconds}.{nanoseconds}-{device}-{inode}-{of_part}",
        status.size
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn damaged_lines_and_lines_beyond_the_most_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        let row = |number| {
            format!(
                "{{\"tool\":\"pi\",\"source\":\"/s/{number}\",\"refused\":{{\"status\":\"1\",\"message\":\"m\"}}}}\n"
            )
        };
        let rows: String = (0..MAX_ROWS + 7).map(row).collect();
        let text = format!("torn {{\n{{\"tool\":1}}\n{rows}{{\"tool\":\"pi\"");
        fs::write(dir.path().join(FOLDER).join(NAME), text).unwrap();
        let mut large = LargeSources::read(dir.path());
        assert_eq!(large.rows.len(), MAX_ROWS);
        assert!(!large.has_changed);
        // None of these files exists.
        assert_eq!(refused(dir.path()), []);
        large.has_changed = true;
        large.write(dir.path()).unwrap();
        assert_eq!(LargeSources::read(dir.path()).rows, large.rows);
    }
}
