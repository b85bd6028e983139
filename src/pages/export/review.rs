//! Lists the secrets that an export would replace, and the texts that look like secrets and would stay
//! (protocol.md §16, "Review").

use super::jsonl::SessionFile;
use super::request::{ExportOptions, Part, Progress};
use crate::redact::{RedactEntry, Redactor, strings};
use serde::Serialize;
use std::collections::HashMap;
use treelined_core::error::Result;
use treelined_core::id::Source;
use treelined_core::json;
use treelined_files::cancel::Cancel;
use treelined_files::session::SessionState;
use treelined_redact::{Choices, candidates};

/// The most secrets that are listed, and the most texts that stay.
const MAX_SECRETS: usize = 1000;
/// The most entries that are listed for one secret or text.
const MAX_IDS: usize = 20;
/// The kind of a text that looks like a secret.
const UNKNOWN: &str = "unknown";
/// If a secret has at least this number of characters, some of them are shown.
const SHOWN: usize = 12;

/// The part of a session whose secrets are reviewed.
pub struct ReviewSource {
    file: SessionFile,
    redactor: Redactor,
    choices: Choices,
}

/// A text that is a secret or looks like one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedSecret {
    pub id: String,
    pub kind: &'static str,
    pub replaced: bool,
    /// The first two and the last two characters of the text.
    pub shown: String,
    /// The length in characters.
    pub length: u64,
    pub count: u64,
    pub entry_ids: Vec<String>,
}

/// The secrets, in the order in which they were first found.
#[derive(Default)]
struct Found {
    secrets: Vec<ReviewedSecret>,
    by_id: HashMap<String, usize>,
}

impl ReviewSource {
    pub(super) fn take(
        state: &SessionState,
        part: Part,
        options: &ExportOptions,
        minter: &dyn Source,
    ) -> Result<Self> {
        // The decisions are applied later, to the list, so that it also has secrets that a person has decided to keep.
        let undecided = ExportOptions {
            choices: Choices::default(),
            ..options.clone()
        };
        Ok(Self {
            file: SessionFile::take(state, part, minter)?,
            redactor: undecided.redactor()?,
            choices: options.choices.clone(),
        })
    }

    /// The secrets, followed by the texts that look like secrets.
    pub fn read(&self, cancel: &Cancel, progress: Progress<'_>) -> Result<Vec<ReviewedSecret>> {
        let (mut secrets, mut others) = (Found::default(), Found::default());
        self.file.each_line(cancel, progress, &mut |line| {
            let member = |name| json::get(line, name).and_then(json::string);
            let id = member("id").filter(|_| member("type").as_deref() != Some("session"));
            let entry = id.unwrap_or_default();
            let choices = &self.choices;
            let redacted = self.redactor.entry(line, &mut |kind, secret| {
                let id = choices.id(secret);
                let replaced = !choices.kept.contains(&id);
                secrets.add(id, kind, replaced, secret, &entry);
            });
            strings(&redacted, &mut |text| {
                for span in candidates(text, 0) {
                    let secret = text.get(span).unwrap_or_default();
                    let id = choices.id(secret);
                    let replaced = choices.replaced.contains(&id);
                    others.add(id, UNKNOWN, replaced, secret, &entry);
                }
            });
            Ok(())
        })?;
        secrets.secrets.append(&mut others.secrets);
        Ok(secrets.secrets)
    }
}

impl Found {
    fn add(&mut self, id: String, kind: &'static str, replaced: bool, secret: &str, entry: &str) {
        let at = self.by_id.get(&id).copied().unwrap_or(self.secrets.len());
        if at == self.secrets.len() {
            if at >= MAX_SECRETS {
                return;
            }
            self.by_id.insert(id.clone(), at);
            self.secrets.push(ReviewedSecret {
                id,
                kind,
                replaced,
                shown: shown(secret),
                length: secret.chars().count() as u64,
                count: 0,
                entry_ids: Vec::new(),
            });
        }
        if let Some(found) = self.secrets.get_mut(at) {
            found.count += 1;
            let is_new = found.entry_ids.last().is_none_or(|last| last != entry);
            if is_new && !entry.is_empty() && found.entry_ids.len() < MAX_IDS {
                found.entry_ids.push(entry.to_owned());
            }
        }
    }
}

/// The characters of a secret that a person needs to recognize it.
fn shown(secret: &str) -> String {
    let length = secret.chars().count();
    if length < SHOWN {
        return "…".to_owned();
    }
    let first: String = secret.chars().take(2).collect();
    let last: String = secret.chars().skip(length - 2).collect();
    format!("{first}…{last}")
}
