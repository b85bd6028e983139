//! A record of saved files: an entry of the session, and a ref of the shadow repository (files.md §4).

use crate::changes::changes;
use crate::exclude::{Limits, Skipped};
use crate::git::Shadow;
use crate::left_out;
use crate::name::Name;
use crate::snapshot::{self, Head};
use crate::state::{Lock, Root};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use treelined_client::Entry;

/// The custom type of records.
pub const TYPE: &str = "files";

/// Whether the files were saved before or after the agent has worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    Start,
    End,
}

/// The member `data` of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Data {
    pub when: When,
    /// The message of the user with which a turn begins, or the last message of a turn.
    pub entry_id: String,
    pub root: String,
    pub tree: String,
    pub commit: String,
    /// The tree of the root when the files were last saved before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default)]
    pub skipped: Skipped,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default)]
    pub ms: u64,
}

/// A record in a session. Until [`Record::is_kept`] is true, its texts are not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub id: String,
    pub timestamp: String,
    pub data: Data,
}

impl Record {
    /// The record in an entry. `None` if the entry is of another type, or its data has another form.
    pub fn of(entry: &Entry) -> Option<Record> {
        let body: Value = entry.json().parse().ok()?;
        if body.get("type")? != "custom" || body.get("customType")? != TYPE {
            return None;
        }
        let data: Data = serde_json::from_value(body.get("data")?.clone()).ok()?;
        let is_id =
            |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id(&data.tree) || !is_id(&data.commit) {
            return None;
        }
        if !data.before.as_deref().is_none_or(is_id) {
            return None;
        }
        Some(Record {
            id: entry.id().to_owned(),
            timestamp: entry.timestamp().to_owned(),
            data,
        })
    }

    /// Whether this machine has made the record in this session, and still has the files.
    pub fn is_kept(&self, shadow: &Shadow, session: &str) -> bool {
        let reference = reference(session, &self.id);
        let commit = shadow.line(["rev-parse", "--quiet", "--verify", &reference]);
        let tree = || shadow.line(["rev-parse", &format!("{}^{{tree}}", self.data.commit)]);
        commit.is_ok_and(|commit| commit == self.data.commit)
            && tree().is_ok_and(|tree| tree == self.data.tree)
    }
}

/// The entry that has the record.
pub fn entry(id: &str, data: &Data) -> Value {
    json!({ "type": "custom", "id": id, "customType": TYPE, "data": data })
}

/// The name of the ref for a record. Ids of sessions and entries may be any text, so bytes that are not letters,
/// digits, `-` or `_` are escaped.
pub fn reference(session: &str, entry: &str) -> String {
    format!("refs/tl/{}/{}", part(session), part(entry))
}

fn part(text: &str) -> String {
    let mut part = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => part.push(byte.into()),
            byte => part.push_str(&format!("={byte:02x}")),
        }
    }
    part
}

/// Saves the files, and makes a ref that keeps them. Returns `None` if the files are the same as in `nearest`, the
/// nearest record above.
pub fn make(
    (root, lock): (&Root, &Lock),
    (session, id): (&str, &str),
    (when, entry_id): (When, &str),
    nearest: Option<&Data>,
    limits: Limits,
) -> anyhow::Result<Option<Data>> {
    let shadow = root.shadow(lock)?;
    let taken = snapshot::take(&shadow, limits)?;
    let before = snapshot::last(&shadow);
    let is_same = |nearest: &Data| {
        // The same tree is not enough: the list of left-out files must be equal too. A file that one record leaves out
        // may be saved by a later record, and a restore to the first record must not remove this file.
        nearest.tree == taken.tree
            && left_out::named(&shadow, &nearest.commit)
                .is_ok_and(|named| named.as_ref() == Some(&taken.names))
    };
    if nearest.is_some_and(is_same) {
        snapshot::remember(&shadow, &taken.tree)?;
        return Ok(None);
    }
    let parent = before.as_ref().filter(|before| before.tree != taken.tree);
    let parent = parent.map(|before| before.commit.as_str());
    let commit = snapshot::commit(&shadow, &taken.tree, parent, &taken.names)?;
    shadow.run(["update-ref", &reference(session, id), &commit], None)?;
    snapshot::remember(&shadow, &taken.tree)?;
    let Head {
        commit: head,
        branch,
    } = snapshot::head(&root.path)?;
    Ok(Some(Data {
        when,
        entry_id: entry_id.to_owned(),
        root: root.path.to_string_lossy().into_owned(),
        tree: taken.tree,
        commit,
        before: before.map(|before| before.tree),
        skipped: taken.skipped,
        head,
        branch,
        ms: taken.ms,
    }))
}

/// The files that the turns of a session have changed, by its records. A record whose files were removed is skipped.
pub fn changed(
    shadow: &Shadow,
    session: &str,
    records: &[Record],
) -> anyhow::Result<BTreeSet<Name>> {
    let mut names = BTreeSet::new();
    for record in records {
        let Some(before) = record.data.before.as_deref() else {
            continue;
        };
        if record.data.when == When::Start || !record.is_kept(shadow, session) {
            continue;
        }
        let changed = changes(shadow, before, &record.data.tree)?;
        names.extend(changed.into_iter().map(|change| change.name));
    }
    Ok(names)
}
