//! The journal of a root: one file for each restore (files.md §5).

use crate::name::Name;
use crate::state::{self, Root};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// How long safety snapshots are kept, in milliseconds.
pub const KEPT: u64 = 30 * 24 * 60 * 60 * 1000;

/// A restore, as its file in the folder `restores` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    pub id: String,
    /// The time in Unix milliseconds.
    pub time: u64,
    /// The commit that has the files from before the restore.
    pub safety: String,
    /// The commit to which the files were restored.
    pub target: String,
    pub session: Option<String>,
    pub entry: Option<String>,
    pub undoes: Option<String>,
    /// Whether this restore reverts an undo.
    #[serde(default)]
    pub redoes: bool,
    /// Whether the restore ran to its end.
    pub is_done: bool,
    /// Whether the restore was taken back.
    pub is_undone: bool,
    /// The files that the restore had to change.
    pub names: Vec<Name>,
    /// The modes that these files had before.
    pub modes: BTreeMap<Name, u32>,
}

pub fn safety_ref(id: &str) -> String {
    format!("refs/tl-safety/{id}")
}

pub fn write(root: &Root, journal: &Journal) -> anyhow::Result<()> {
    state::make_folder(&root.restores())?;
    state::write(&path(root, &journal.id), journal)
}

pub fn path(root: &Root, id: &str) -> PathBuf {
    root.restores().join(format!("{id}.json"))
}

/// All restores of a root, the oldest first.
pub fn all(root: &Root) -> anyhow::Result<Vec<Journal>> {
    let Ok(files) = fs::read_dir(root.restores()) else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|end| end == "json") {
            let journal: Option<Journal> = state::read(&path)?;
            all.extend(journal);
        }
    }
    all.sort_by(|one, other| (one.time, &one.id).cmp(&(other.time, &other.id)));
    Ok(all)
}

/// Notes that the restore in `journal` has taken back an earlier restore, undo or redo.
pub fn note_undone(root: &Root, journal: &Journal) -> anyhow::Result<()> {
    let undone = journal.undoes.as_ref();
    let all = all(root)?;
    match all.into_iter().find(|one| undone == Some(&one.id)) {
        Some(one) => {
            let is_undone = true;
            write(root, &Journal { is_undone, ..one })
        }
        None => Ok(()),
    }
}
