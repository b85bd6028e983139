//! The marks of sessions on this machine: `.marks.jsonl` in the session directory (session-file.md §5.10).
//!
//! Lines are only appended, and the last line about a session counts. A damaged line is skipped. Writers exclude each
//! other by the lock of the session directory.

use crate::os::file::{File, Folder, Location, Status};
use crate::os::handle::HandleAccess;
use crate::os::temporary::Temporary;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};
use treelined_core::budget::MARKS_BYTES;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::tags::{self, MOST_TAGS};

pub(super) const NAME: &str = ".marks.jsonl";
/// The file is rewritten without old lines if it has more old lines than this, and more old lines than current ones.
pub(super) const OLD_LINES: usize = 256;

/// The marks of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionMarks {
    pub is_pinned: bool,
    pub is_archived: bool,
    /// Tags that the session has in addition to the tags in its file.
    pub added: BTreeSet<String>,
    /// Tags that are in the file, but were removed from the session on this machine.
    pub removed: BTreeSet<String>,
}

impl SessionMarks {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tags of a session whose file has the tags `of_file`.
    pub fn tags(&self, of_file: &BTreeSet<String>) -> Vec<String> {
        let kept = of_file.iter().filter(|tag| !self.removed.contains(*tag));
        let tags: BTreeSet<&String> = kept.chain(&self.added).collect();
        tags.into_iter().take(MOST_TAGS).cloned().collect()
    }

    pub(super) fn line(&self, id: &str) -> Vec<u8> {
        let mut line = Map::from_iter([("sessionId".to_owned(), json!(id))]);
        let mut put = |name: &str, value: Value| drop(line.insert(name.to_owned(), value));
        if self.is_pinned {
            put("pinned", true.into());
        }
        if self.is_archived {
            put("archived", true.into());
        }
        for (name, tags) in [("tags", &self.added), ("removedTags", &self.removed)] {
            if !tags.is_empty() {
                put(name, json!(tags));
            }
        }
        let mut line = Value::Object(line).to_string().into_bytes();
        line.push(b'\n');
        line
    }

    /// The session that a line is about, and its marks. `None` for a damaged line.
    fn parse(line: &[u8]) -> Option<(String, Self)> {
        let line: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let id = line.get("sessionId")?.as_str()?;
        let is = |name: &str| line.get(name) == Some(&Value::Bool(true));
        let tags = |name: &str| {
            let tags = line.get(name).and_then(Value::as_array);
            let tags = tags.into_iter().flatten().filter_map(Value::as_str);
            tags.filter_map(tags::given).take(MOST_TAGS).collect()
        };
        let marks = Self {
            is_pinned: is("pinned"),
            is_archived: is("archived"),
            added: tags("tags"),
            removed: tags("removedTags"),
        };
        Some((id.to_owned(), marks))
    }
}

/// The marks of all sessions that have any, by the ids of the sessions.
#[derive(Debug, Default)]
pub struct Marks {
    pub(super) sessions: HashMap<String, SessionMarks>,
    /// The number of lines in the file.
    pub(super) lines: usize,
}

impl Marks {
    pub fn of(&self, id: &str) -> Option<&SessionMarks> {
        self.sessions.get(id)
    }

    pub(super) fn parse(text: &[u8]) -> Self {
        let mut marks = Self::default();
        for line in text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            marks.lines += 1;
            if let Some((id, of)) = SessionMarks::parse(line) {
                match of.is_empty() {
                    true => marks.sessions.remove(&id),
                    false => marks.sessions.insert(id, of),
                };
            }
        }
        marks
    }
}

/// The marks that were read last, and the status that their file had at that time.
#[derive(Default)]
pub(super) struct ReadMarks(pub(super) Mutex<Option<(Status, Arc<Marks>)>>);

/// The bytes of the file; empty if there is no file. Fails with `pathDenied` for a link or a device, and for a file
/// with more bytes than the daemon reads.
pub(super) fn text(root: &Arc<Folder>) -> Result<Vec<u8>> {
    let name = OsStr::new(NAME);
    if root
        .status(name)
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    {
        return Ok(Vec::new());
    }
    let file = root.file(name, HandleAccess::Read)?;
    let mut text = Vec::new();
    let read = file.take(MARKS_BYTES as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| Error::io(&format!("read {NAME}"), &error))?;
    if text.len() > MARKS_BYTES {
        let why = format!(
            "{NAME} in {} has more than {MARKS_BYTES} bytes: move it away",
            root.path().display()
        );
        return Err(Error::new(Kind::StorageIo, why));
    }
    Ok(text)
}

pub(super) fn append(root: &Arc<Folder>, before: &[u8], line: &[u8]) -> Result<()> {
    let name = OsStr::new(NAME);
    let failed = |error: io::Error| {
        Error::io(
            &format!("write {NAME} in {}", root.path().display()),
            &error,
        )
    };
    let made = match before.is_empty() {
        true => root.create(name),
        false => Err(io::ErrorKind::AlreadyExists.into()),
    };
    let is_new = made.is_ok();
    let file: File = match made {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            root.file(name, HandleAccess::Append)?
        }
        Err(error) => return Err(failed(error)),
    };
    // A killed writer may have left a part of a line.
    let is_torn = before.last().is_some_and(|last| *last != b'\n');
    let mut whole = if is_torn { b"\n".to_vec() } else { Vec::new() };
    whole.extend_from_slice(line);
    let written = (&file).write_all(&whole).and_then(|()| {
        file.sync_data()?;
        // Without this sync, a power cut may remove the name of the new file, and with it a mark that was already
        // answered.
        if is_new { root.sync() } else { Ok(()) }
    });
    written.map_err(|error| {
        // The lock excludes other writers, so this restores the file as it was.
        let _left = file.set_len(before.len() as u64);
        failed(error)
    })
}

/// A new text for the file, with one line for each session.
pub(super) fn current(marks: &Marks, id: &str, after: &SessionMarks) -> Vec<u8> {
    let others = marks.sessions.iter().filter(|(other, _)| *other != id);
    let mut text: Vec<u8> = others.flat_map(|(id, marks)| marks.line(id)).collect();
    if !after.is_empty() {
        text.extend(after.line(id));
    }
    text
}

/// Replaces the file with a file that has this text.
pub(super) fn rewrite(root: &Arc<Folder>, text: &[u8]) -> io::Result<()> {
    let temporary = Temporary::for_name(root, OsStr::new(NAME))?;
    let mut file: &File = temporary.file();
    file.write_all(text)?;
    file.sync_all()?;
    temporary.name(&Location {
        folder: Arc::clone(root),
        name: NAME.into(),
    })?;
    root.sync()
}
