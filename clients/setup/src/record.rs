//! Records the changes of setup in `setup.json`, in treelined's folder for state, so that they can be undone byte for
//! byte. The record never has a copy of a whole file, which may contain keys: it has only the inserted text, and the
//! text that it replaced.

use crate::agent::Agent;
use crate::file;
use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use similar::{Algorithm, DiffTag};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// All changes, by the paths of their files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) files: BTreeMap<PathBuf, Change>,
    /// The folders that were made, outermost first.
    #[serde(default)]
    pub(crate) folders: Vec<PathBuf>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// The agent whose file it is.
    pub(crate) agent: Agent,
    /// Whether the file existed before the change.
    existed: bool,
    /// SHA-256 of the file after the change, in hexadecimal digits.
    after: String,
    /// The differences, in the order of their positions.
    hunks: Vec<Hunk>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hunk {
    /// The position in the file after the change, in bytes.
    at: usize,
    removed: String,
    inserted: String,
}

impl Change {
    /// The change from one text to another.
    pub(crate) fn between(agent: Agent, before: Option<&str>, after: &str) -> Self {
        let (old, new) = (pieces(before.unwrap_or_default()), pieces(after));
        let mut hunks = Vec::new();
        let mut at = 0;
        for op in similar::capture_diff_slices(Algorithm::Myers, &old, &new) {
            let removed = old.get(op.old_range()).unwrap_or_default().concat();
            let inserted = new.get(op.new_range()).unwrap_or_default().concat();
            if op.tag() != DiffTag::Equal {
                hunks.push(Hunk::between(at, &removed, &inserted));
            }
            at += inserted.len();
        }
        Self {
            agent,
            existed: before.is_some(),
            after: hash(after.as_bytes()),
            hunks,
        }
    }

    /// The text before the change, if nothing has changed in the file since. The inner `None` means that there was no
    /// file.
    pub(crate) fn undone(&self, now: &str) -> Option<Option<String>> {
        if hash(now.as_bytes()) != self.after {
            return None;
        }
        let mut before = String::new();
        let mut done = 0;
        for hunk in &self.hunks {
            before.push_str(now.get(done..hunk.at)?);
            before.push_str(&hunk.removed);
            tail(now, hunk.at).strip_prefix(hunk.inserted.as_str())?;
            done = hunk.at + hunk.inserted.len();
        }
        before.push_str(tail(now, done));
        Some(self.existed.then_some(before))
    }

    /// The inserted texts.
    pub(crate) fn inserted(&self) -> String {
        let inserted = self.hunks.iter().map(|hunk| hunk.inserted.as_str());
        inserted.collect::<Vec<_>>().join("\n")
    }

    /// For a file that has changed since, whether it still contains the longest inserted text.
    pub(crate) fn is_in(&self, now: &str) -> bool {
        let inserted = self.hunks.iter().map(|hunk| hunk.inserted.trim());
        let longest = inserted.max_by_key(|text| text.len()).unwrap_or_default();
        !longest.is_empty() && now.contains(longest)
    }
}

impl Hunk {
    /// The difference of two texts, without their common beginning and end.
    fn between(at: usize, old: &str, new: &str) -> Self {
        let pairs = old.chars().zip(new.chars());
        let same = pairs.take_while(|(a, b)| a == b);
        let begin: usize = same.map(|(char, _)| char.len_utf8()).sum();
        let (old, new) = (tail(old, begin), tail(new, begin));
        let pairs = old.chars().rev().zip(new.chars().rev());
        let same = pairs.take_while(|(a, b)| a == b);
        let end: usize = same.map(|(char, _)| char.len_utf8()).sum();
        let middle = |text: &str| text.get(..text.len() - end).unwrap_or_default().to_owned();
        Self {
            at: at + begin,
            removed: middle(old),
            inserted: middle(new),
        }
    }
}

/// The parts of a text that are compared: parts of lines, so that a file that consists of one long line is not one
/// difference.
fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive(['\n', ',', '{', '}', '[', ']'])
        .collect()
}

fn tail(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Record {
    /// Reads the record; it is empty if the file does not exist.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                let path = path.display();
                format!("{path} cannot be read; remove it, and setup goes by the form of its texts")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
        }
    }

    /// Writes the record. If the record is empty, removes its file and the folders that were made for it.
    pub(crate) fn write(&mut self, path: &Path) -> anyhow::Result<()> {
        let failed =
            |refusal: crate::refusal::Refusal| anyhow!("{}: {}", path.display(), refusal.0);
        let before = file::read(path).map_err(failed)?;
        let is_own = |folder: &PathBuf| path.starts_with(folder);
        if self.files.is_empty() && self.folders.iter().all(is_own) {
            if let Some(before) = before {
                file::remove(path, &before).map_err(failed)?;
            }
            // Folders that other programs use too stay.
            let mut folders = self.folders.iter().rev();
            let _left = folders.try_for_each(std::fs::remove_dir);
            return Ok(());
        }
        let made = file::make_folders(path, &mut self.folders);
        made.with_context(|| format!("make the folder of {}", path.display()))?;
        let text = serde_json::to_string_pretty(self).context("write the record")?;
        let new = format!("{text}\n");
        if before.as_deref() == Some(new.as_bytes()) {
            return Ok(());
        }
        file::write(path, before.as_deref(), new.as_bytes()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_undone_to_the_byte() {
        for (before, after) in [
            (None, "x"),
            (Some(""), "x"),
            (Some("{}"), "{\n  \"a\": 1\n}"),
            (Some("aäa"), "aäaöa"),
            (Some("abab"), "ab"),
            (Some("same"), "same"),
            (Some("\u{feff}{}\r\n"), "\u{feff}{\"b\":2}\r\n"),
        ] {
            let change = Change::between(Agent::Codex, before, after);
            assert_eq!(change.undone(after), Some(before.map(str::to_owned)));
            assert_eq!(
                change.undone(&format!("{after} ")),
                None,
                "it has changed since"
            );
        }
    }

    /// A change at the first and the last place of a file was once recorded as one difference, with every key in
    /// between.
    #[test]
    fn what_stands_between_two_places_is_not_kept() {
        for (before, after) in [
            (
                "a = 1\n[x]\nkey = \"SECRET\"\n[y]\nb = 2\n",
                "a = 1\nn = 3\n[x]\nkey = \"SECRET\"\n[y]\nb = 2\n[z]\n",
            ),
            (
                "{\"a\":{},\"key\":\"SECRET\",\"b\":[]}",
                "{\"a\":{\"c\":1},\"key\":\"SECRET\",\"b\":[2]}",
            ),
        ] {
            let change = Change::between(Agent::Codex, Some(before), after);
            let kept = serde_json::to_string(&change).unwrap();
            assert!(!kept.contains("SECRET"), "{kept}");
            assert_eq!(change.undone(after), Some(Some(before.to_owned())));
        }
    }
}
