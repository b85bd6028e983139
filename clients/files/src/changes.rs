//! The files that differ between two trees of the shadow repository.

use crate::git::Shadow;
use crate::name::Name;
use anyhow::{Context, bail};

/// The state of a file in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    pub kind: Kind,
    /// The hash of the file's bytes, or of the target of a symbolic link.
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Program,
    Link,
}

/// A file that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub name: Name,
    pub old: Option<Side>,
    pub new: Option<Side>,
}

/// The files that differ, in the order of their names. Repositories inside the root are left out, because their
/// content is not saved.
pub fn changes(shadow: &Shadow, old: &str, new: &str) -> anyhow::Result<Vec<Change>> {
    let args = [
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--no-abbrev",
    ];
    let answer = shadow.run(args.into_iter().chain([old, new]), None)?;
    let mut fields = answer.out.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let name = fields.next().context("git diff-tree names no file")?;
        let head = std::str::from_utf8(head)?.trim_start_matches(':');
        let words: Vec<&str> = head.split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, _] = words.as_slice() else {
            bail!("git diff-tree answers in another form");
        };
        if [*old_mode, *new_mode].contains(&"160000") {
            continue;
        }
        changes.push(Change {
            name: Name(name.to_owned()),
            old: side(old_mode, old_id)?,
            new: side(new_mode, new_id)?,
        });
    }
    changes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(changes)
}

fn side(mode: &str, id: &str) -> anyhow::Result<Option<Side>> {
    let kind = match mode {
        "000000" => return Ok(None),
        "100644" => Kind::File,
        "100755" => Kind::Program,
        "120000" => Kind::Link,
        mode => bail!("a file has the unknown mode {mode}"),
    };
    let id = id.to_owned();
    Ok(Some(Side { kind, id }))
}
