//! The journal: what was said since nothing was open, so that a killed recorder loses nothing.
//!
//! A file for each run, locked while it runs. A line is a message with its sender, or the number of changes of sessions
//! that are done. The next run reads the journals without a lock.

use crate::conversation::{Change, Conversation, Side};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The name of the journal's folder in the folder of the state.
const FOLDER: &str = "journals";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    #[serde(borrow)]
    Editor(&'a RawValue),
    #[serde(borrow)]
    Agent(&'a RawValue),
    /// The number of times that the journal was emptied.
    Emptied(u64),
    /// So many changes since it was emptied are done.
    Done(u64),
    Gap,
}

pub struct Journal {
    file: File,
    path: PathBuf,
    id: Uuid,
    /// The times that it was emptied.
    emptied: u64,
    /// Changes since then.
    changes: u64,
    is_empty: bool,
}

/// The ids for the entries of a change.
#[derive(Clone, Copy)]
pub struct EntryIds(Uuid);

impl EntryIds {
    pub fn id(self, number: usize) -> String {
        let id = Uuid::new_v5(&self.0, number.to_string().as_bytes());
        id.simple().to_string().chars().take(16).collect()
    }
}

/// The journal of a run that did not end, and its changes that may not be done.
pub struct Unfinished {
    pub journal: Journal,
    pub changes: Vec<Change>,
}

/// Makes a folder that only the user can read.
pub fn make_folder(path: &Path) -> anyhow::Result<()> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("make the folder {}", path.display()))
}

impl Journal {
    pub fn create(state: &Path) -> anyhow::Result<Journal> {
        let folder = state.join(FOLDER);
        make_folder(&folder)?;
        let id = Uuid::new_v4();
        let path = folder.join(format!("{id}.jsonl"));
        let mut options = File::options();
        let file = options
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let file = file.with_context(|| format!("make {}", path.display()))?;
        file.lock()
            .with_context(|| format!("lock {}", path.display()))?;
        Ok(Journal {
            file,
            path,
            id,
            emptied: 0,
            changes: 0,
            is_empty: true,
        })
    }

    /// The journals of runs that were killed.
    pub fn unfinished(state: &Path) -> anyhow::Result<Vec<Unfinished>> {
        let Ok(entries) = fs::read_dir(state.join(FOLDER)) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let id = path
                .file_stem()
                .and_then(|stem| stem.to_str()?.parse().ok());
            let Some(id) = id else { continue };
            let file = File::options().read(true).append(true).open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            let journal = Journal {
                file,
                path,
                id,
                emptied: 0,
                changes: 0,
                is_empty: false,
            };
            found.push(journal.read()?);
        }
        Ok(found)
    }

    fn read(mut self) -> anyhow::Result<Unfinished> {
        self.file.rewind()?;
        let mut conversation = Conversation::default();
        let (mut changes, mut done) = (Vec::new(), 0);
        let mut reader = BufReader::new(self.file.try_clone()?);
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            // The last line may be torn.
            match serde_json::from_slice(&line) {
                Ok(Line::Editor(raw)) => changes.extend(see(&mut conversation, Side::Editor, raw)),
                Ok(Line::Agent(raw)) => changes.extend(see(&mut conversation, Side::Agent, raw)),
                Ok(Line::Emptied(count)) => self.emptied = count,
                Ok(Line::Done(count)) => done = count,
                Ok(Line::Gap) => conversation.gap(),
                Err(_) => {}
            }
        }
        changes.extend(conversation.abort());
        self.changes = done;
        let done = usize::try_from(done)?.min(changes.len());
        Ok(Unfinished {
            changes: changes.split_off(done),
            journal: self,
        })
    }

    /// Keeps a message.
    pub fn message(&mut self, from: Side, raw: &RawValue) -> anyhow::Result<()> {
        self.write(&match from {
            Side::Editor => Line::Editor(raw),
            Side::Agent => Line::Agent(raw),
        })
    }

    pub fn gap(&mut self) -> anyhow::Result<()> {
        self.write(&Line::Gap)
    }

    /// Keeps that one more change is done.
    pub fn done(&mut self) -> anyhow::Result<()> {
        self.changes += 1;
        self.write(&Line::Done(self.changes))
    }

    /// The ids for the entries of the next change: the same if the change is made again.
    pub fn entry_ids(&self) -> EntryIds {
        let name = format!("{} {}", self.emptied, self.changes);
        EntryIds(Uuid::new_v5(&self.id, name.as_bytes()))
    }

    /// Empties the journal, since nothing is open.
    pub fn clear(&mut self) -> anyhow::Result<()> {
        if !self.is_empty {
            self.file.set_len(0)?;
            (self.emptied, self.changes) = (self.emptied + 1, 0);
            self.write(&Line::Emptied(self.emptied))?;
            self.is_empty = true;
        }
        Ok(())
    }

    /// Removes the journal: nothing of it is left to do.
    pub fn remove(self) -> anyhow::Result<()> {
        Ok(fs::remove_file(&self.path)?)
    }

    fn write(&mut self, line: &Line<'_>) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.is_empty = false;
        Ok(self.file.write_all(&text)?)
    }
}

/// The changes that a message makes; none if it is not JSON that fits into memory.
pub fn see(conversation: &mut Conversation, from: Side, raw: &RawValue) -> Vec<Change> {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(message) => conversation.see(from, &message),
        Err(_) => Vec::new(),
    }
}
