//! Finds the files that a record lacks because they were left out when it was made (files.md §5). A restore does not
//! remove such files.

use crate::git::Shadow;
use crate::name::Name;
use anyhow::Context;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The message of a commit. It has the names of the files that were left out individually.
pub fn message(skipped: &[Name]) -> anyhow::Result<String> {
    Ok(format!("files\n\n{}\n", serde_json::to_string(skipped)?))
}

/// The names in the message of a commit. `None` if the message has no names.
pub fn named(shadow: &Shadow, commit: &str) -> anyhow::Result<Option<Vec<Name>>> {
    let text = shadow.run(["cat-file", "commit", commit], None)?.out;
    let text = String::from_utf8(text)?;
    let list = text.split_once("\n\nfiles\n\n").map(|(_, list)| list);
    list.map(|list| serde_json::from_str(list).context("read what was left out"))
        .transpose()
}

/// The names that the rules of a commit leave out. These are the rules in the `.gitignore` files of the commit, and all
/// other rules in their present form. The rules are written to `folder`, a temporary folder outside of the root.
pub fn by_rules(
    shadow: &Shadow,
    commit: &str,
    names: &[&Name],
    folder: &Path,
) -> anyhow::Result<HashSet<Name>> {
    if names.is_empty() {
        return Ok(HashSet::new());
    }
    remove(folder)?;
    let found = write_rules(shadow, commit, names, folder).and_then(|()| {
        let there = Shadow {
            dir: shadow.dir.clone(),
            root: folder.to_owned(),
        };
        let mut input = Vec::new();
        for name in names {
            // git would take a name that begins with a colon for a pattern.
            input.extend(b"./");
            input.extend(&name.0);
            input.push(0);
        }
        let args = ["check-ignore", "--no-index", "-z", "--stdin"];
        there.find(args, input)
    });
    remove(folder)?;
    let found = found?;
    let found = found.split(|byte| *byte == 0);
    let names = found.filter_map(|name| name.strip_prefix(b"./"));
    Ok(names.map(|name| Name(name.to_owned())).collect())
}

/// Writes the `.gitignore` files of a commit that apply to `names` into a folder.
fn write_rules(
    shadow: &Shadow,
    commit: &str,
    names: &[&Name],
    folder: &Path,
) -> anyhow::Result<()> {
    let above = names
        .iter()
        .flat_map(|name| name.as_path().ancestors().skip(1));
    let above: HashSet<_> = above.collect();
    fs::create_dir(folder).context("make a folder for rules")?;
    let args = ["ls-tree", "-r", "-z", "--full-tree", commit];
    for row in shadow.run(args, None)?.out.split(|byte| *byte == 0) {
        let Some(at) = row.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let (head, name) = (row.get(..at), row.get(at + 1..));
        let (Some(head), Some(name)) = (head, name) else {
            continue;
        };
        let name = Name(name.to_owned());
        let path = name.as_path();
        let is_rules = path.file_name().is_some_and(|name| name == ".gitignore")
            && path.parent().is_some_and(|folder| above.contains(folder));
        // git ignores a `.gitignore` that is a symbolic link.
        if !is_rules || !name.is_safe() || !head.starts_with(b"100") {
            continue;
        }
        let id = head.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let id = std::str::from_utf8(id)?;
        let path = folder.join(path);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(path, shadow.run(["cat-file", "blob", id], None)?.out)?;
    }
    Ok(())
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("remove the folder for rules")
        }
        _ => Ok(()),
    }
}
