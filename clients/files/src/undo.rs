//! Undo: takes back the changes of the last restore or redo. Files that were written since stay as they are (files.md §5).

use crate::changes::{Change, Kind, Side, changes};
use crate::foreign::Repositories;
use crate::git::Shadow;
use crate::held::held;
use crate::journal::{self, Journal};
use crate::name::Name;
use crate::place::{Found, look};
use crate::restore::{Plan, Target, lines};
use crate::state::Root;
use anyhow::{Context, bail};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

/// The last restore or redo that was not taken back. With `redo`, the last undo.
pub fn last(root: &Root, redo: bool) -> anyhow::Result<Journal> {
    let mut all = journal::all(root)?.into_iter().rev();
    let path = root.path.display();
    // A killed undo does not count: the next undo reverts the same restore again.
    match redo {
        false => all
            .find(|one| (one.undoes.is_none() || one.redoes) && !one.is_undone)
            .with_context(|| {
                format!("no restore of {path} can be undone; --redo takes an undo back")
            }),
        true => all
            .find(|one| one.undoes.is_some() && !one.redoes && one.is_done && !one.is_undone)
            .with_context(|| format!("no undo of {path} can be taken back")),
    }
}

/// Plans how to take a restore, an undo or a redo back. Files that have changed since are left out, unless `all` is set.
pub fn prepare(
    root: &Root,
    shadow: &Shadow,
    journal: &Journal,
    all: bool,
) -> anyhow::Result<(Target, Plan)> {
    let is_interrupted = !journal.is_done
        || journal::all(root)?
            .iter()
            .any(|one| one.undoes.as_ref() == Some(&journal.id) && !one.is_done);
    let only: BTreeSet<Name> = journal.names.iter().cloned().collect();
    let mut repositories = Repositories::new(&root.path);
    let (mut back, mut since) = (Vec::new(), Vec::new());
    for Change { name, old, new } in changes(shadow, &journal.safety, &journal.target)? {
        if !only.contains(&name) || repositories.of(&name).is_some() {
            continue;
        }
        let (there, is_known) = match look(&root.path, &name) {
            Ok(Found::Saved(side)) => (Some(side), true),
            Ok(Found::Missing | Found::Folder) => (None, true),
            Ok(Found::Other) | Err(_) => (None, false),
        };
        if is_known && there == old {
            continue;
        }
        // If the restore was killed, it may have moved the old file away without writing the new one.
        let is_ours = is_known && (there == new || (is_interrupted && there.is_none()));
        if !is_ours && !all {
            since.push(name);
            continue;
        }
        if let (false, Some(side)) = (is_ours, &there) {
            save(root, shadow, &name, side).with_context(|| format!("save {name}"))?;
        }
        let (old, new) = (there, old);
        back.push(Change { name, old, new });
    }
    let sides = |side: fn(&Change) -> Option<&Side>| {
        let sides = back
            .iter()
            .filter_map(|change| Some((&change.name, side(change)?)));
        tree(shadow, sides)
    };
    let now = sides(|change| change.old.as_ref())?;
    let then = sides(|change| change.new.as_ref())?;
    let lines = lines(shadow, &now, &then)?;
    let target = Target {
        commit: journal.safety.clone(),
        not_saved: Vec::new(),
        only: Some(only),
        modes: journal.modes.clone(),
        session: journal.session.clone(),
        entry: journal.entry.clone(),
        undoes: Some(journal.id.clone()),
        redoes: journal.undoes.is_some() && !journal.redoes,
    };
    let plan = Plan {
        now,
        held: held(&root.path, &back),
        changes: back,
        left: 0,
        kept: Vec::new(),
        since,
        lines,
    };
    Ok((target, plan))
}

/// Saves the bytes of one file in the shadow repository.
fn save(root: &Root, shadow: &Shadow, name: &Name, side: &Side) -> anyhow::Result<()> {
    let path = root.path.join(OsStr::from_bytes(&name.0));
    let args = ["hash-object", "-w", "--no-filters", "--stdin"];
    let id = match side.kind {
        Kind::Link => {
            let target = std::fs::read_link(&path)?;
            let target = target.as_os_str().as_bytes().to_owned();
            shadow.run(args, Some(target))?.out
        }
        _ => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
            shadow.run_on(args, file)?
        }
    };
    match id.strip_suffix(b"\n") == Some(side.id.as_bytes()) {
        true => Ok(()),
        false => bail!("it has changed meanwhile"),
    }
}

/// Makes a tree from saved files. Returns its id.
fn tree<'a>(
    shadow: &Shadow,
    sides: impl Iterator<Item = (&'a Name, &'a Side)>,
) -> anyhow::Result<String> {
    let mut input = Vec::new();
    for (name, side) in sides {
        let mode = match side.kind {
            Kind::File => "100644",
            Kind::Program => "100755",
            Kind::Link => "120000",
        };
        input.extend(format!("{mode} {}\t", side.id).bytes());
        input.extend(&name.0);
        input.push(0);
    }
    let index = shadow.dir.join("undo.index");
    let _none = std::fs::remove_file(&index);
    let update = ["update-index", "-z", "--index-info"];
    let written = shadow.run_with_index(&update, &index, Some(input));
    let tree = written.and_then(|_| shadow.run_with_index(&["write-tree"], &index, None));
    let _none = std::fs::remove_file(&index);
    Ok(String::from_utf8(tree?)?.trim_end().to_owned())
}
