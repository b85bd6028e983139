//! What setup has changed, so that it can be taken back byte for byte: `setup.json` in treelined's folder for state. It has no
//! copy of a file, which may hold keys: only what was put in, and what that replaced.

use crate::file;
use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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
    /// Whether the file was there before.
    existed: bool,
    /// SHA-256 of the file after the change, in hexadecimal digits.
    after: String,
    /// Where the change begins, in bytes.
    at: usize,
    removed: String,
    inserted: String,
}

impl Change {
    /// The change from one text to another.
    pub(crate) fn between(before: Option<&str>, after: &str) -> Self {
        let old = before.unwrap_or_default();
        let pairs = old.char_indices().zip(after.char_indices());
        let at = pairs.take_while(|((_, a), (_, b))| a == b);
        let at = at.last().map_or(0, |((at, char), _)| at + char.len_utf8());
        let (old_rest, new_rest) = (tail(old, at), tail(after, at));
        let pairs = old_rest.chars().rev().zip(new_rest.chars().rev());
        let same = pairs
            .take_while(|(a, b)| a == b)
            .map(|(char, _)| char.len_utf8());
        let same: usize = same.sum();
        let middle = |rest: &str| rest.get(..rest.len() - same).unwrap_or_default().to_owned();
        Self {
            existed: before.is_some(),
            after: hash(after.as_bytes()),
            at,
            removed: middle(old_rest),
            inserted: middle(new_rest),
        }
    }

    /// The text before the change, if the file is as the change left it: `None` in it if there was no file.
    pub(crate) fn undone(&self, now: &str) -> Option<Option<String>> {
        if hash(now.as_bytes()) != self.after {
            return None;
        }
        let rest = tail(now, self.at).strip_prefix(self.inserted.as_str())?;
        let before = format!("{}{}{rest}", now.get(..self.at)?, self.removed);
        Some(self.existed.then_some(before))
    }
}

fn tail(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Record {
    /// The record; empty if there is none.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read(path) {
            Ok(text) => {
                serde_json::from_slice(&text).with_context(|| format!("read {}", path.display()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
        }
    }

    /// Writes it, or removes it, with the folders made for it, if it says nothing else.
    pub(crate) fn write(&mut self, path: &Path) -> anyhow::Result<()> {
        let failed =
            |refusal: crate::refusal::Refusal| anyhow!("{}: {}", path.display(), refusal.0);
        let before = file::read(path).map_err(failed)?;
        let is_own = |folder: &PathBuf| path.starts_with(folder);
        if self.files.is_empty() && self.folders.iter().all(is_own) {
            if let Some(before) = before {
                file::remove(path, &before).map_err(failed)?;
            }
            // Those that others use too stay.
            let mut folders = self.folders.iter().rev();
            let _left = folders.try_for_each(std::fs::remove_dir);
            return Ok(());
        }
        let made = file::make_folders(path);
        let made = made.with_context(|| format!("make the folder of {}", path.display()))?;
        self.folders.extend(made);
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
            let change = Change::between(before, after);
            assert_eq!(change.undone(after), Some(before.map(str::to_owned)));
            assert_eq!(
                change.undone(&format!("{after} ")),
                None,
                "it has changed since"
            );
        }
    }
}
