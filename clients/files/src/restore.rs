//! Restores and their undo: what would change, the safety snapshot, the journal (files.md §5).

use crate::apply::{self, Job, Outcome};
use crate::changes::{Change, Kind, changes};
use crate::exclude::Limits;
use crate::foreign::Repositories;
use crate::git::Shadow;
use crate::journal::{self, Journal, safety_ref};
use crate::name::Name;
use crate::place::mode_of;
use crate::snapshot::{self, now};
use crate::state::{Lock, Root};
use crate::tidy::tidy;
use anyhow::{Context, bail};
use rustix::fs::{AtFlags, CWD, statat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What a restore goes to.
#[derive(Debug, Clone)]
pub struct Target {
    /// The commit in the shadow repository.
    pub commit: String,
    /// The files that the target does not have because they were not saved, so that their absence says nothing.
    pub not_saved: Vec<Name>,
    /// The only files that may change; `None`: all.
    pub only: Option<BTreeSet<Name>>,
    /// Modes of files, where they are known.
    pub modes: BTreeMap<Name, u32>,
    pub session: Option<String>,
    pub entry: Option<String>,
    /// The restore that this one takes back.
    pub undoes: Option<String>,
}

/// What would change.
#[derive(Debug)]
pub struct Plan {
    /// The tree of the files as they are.
    pub now: String,
    pub changes: Vec<Change>,
    /// Differences that stay: files that are not of the session.
    pub left: usize,
    /// The number of added and removed lines by file; `None` for bytes that are not text.
    pub lines: BTreeMap<Name, Option<(u64, u64)>>,
}

/// Compares the files as they are with a target.
pub fn plan(shadow: &Shadow, target: &Target, limits: Limits) -> anyhow::Result<Plan> {
    let now = snapshot::take(shadow, limits)?;
    let mut all = changes(shadow, &now.tree, &target.commit)?;
    let mut repositories = Repositories::new(&shadow.root);
    all.retain(|change| repositories.of(&change.name).is_none());
    let (changes, left): (Vec<Change>, Vec<Change>) = all.into_iter().partition(|change| {
        let is_meant = target
            .only
            .as_ref()
            .is_none_or(|only| only.contains(&change.name));
        is_meant && !(change.new.is_none() && was_not_saved(target, &change.name))
    });
    let lines = lines(shadow, &now.tree, &target.commit)?;
    Ok(Plan {
        now: now.tree,
        changes,
        left: left.len(),
        lines,
    })
}

fn was_not_saved(target: &Target, name: &Name) -> bool {
    target.not_saved.iter().any(|skipped| {
        let folder = skipped.0.strip_suffix(b"/");
        *name == *skipped || folder.is_some_and(|folder| name.is_below(folder))
    })
}

fn lines(
    shadow: &Shadow,
    old: &str,
    new: &str,
) -> anyhow::Result<BTreeMap<Name, Option<(u64, u64)>>> {
    let args = [
        "diff-tree",
        "-r",
        "-z",
        "--numstat",
        "--no-renames",
        "--no-textconv",
        old,
        new,
    ];
    let answer = shadow.run(args, None)?;
    let mut all = BTreeMap::new();
    for row in answer.out.split(|byte| *byte == 0) {
        let mut words = row.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u64>().ok();
        let counts = number(added).zip(number(removed));
        all.insert(Name(name.to_owned()), counts);
    }
    Ok(all)
}

/// Makes the changes of a plan that a person has agreed to. `step` is called before each change of the disk.
pub fn run(
    (root, lock): (&Root, &Lock),
    target: &Target,
    plan: &Plan,
    limits: Limits,
    step: &mut dyn FnMut(),
) -> anyhow::Result<(Journal, Outcome)> {
    let shadow = root.shadow(lock)?;
    // Nothing is removed before a person has agreed.
    let left = tidy(root, &shadow)?;
    // The preview is of these files.
    let safety = snapshot::take(&shadow, limits)?;
    if safety.tree != plan.now {
        bail!("files have changed since they were shown; nothing was changed: run it again");
    }
    step();
    let commit = snapshot::commit(&shadow, &safety.tree, Some(&target.commit))?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let id = id.get(..16).unwrap_or(&id).to_owned();
    shadow.run(["update-ref", &safety_ref(&id), &commit], None)?;
    step();
    let names = plan.changes.iter().map(|change| change.name.clone());
    let mut journal = Journal {
        id,
        time: now(),
        safety: commit,
        target: target.commit.clone(),
        session: target.session.clone(),
        entry: target.entry.clone(),
        undoes: target.undoes.clone(),
        is_done: false,
        is_undone: false,
        names: names.collect(),
        modes: modes(&shadow, &plan.changes),
    };
    journal::write(root, &journal)?;
    let job = Job {
        shadow: &shadow,
        changes: &plan.changes,
        modes: &target.modes,
        id: &journal.id,
    };
    let mut outcome = apply::apply(&job, step)?;
    outcome.left = left;
    step();
    journal.is_done = true;
    // On a full disk the journal says less: an undo looks at the files again.
    let _less = journal::write(root, &journal).and_then(|()| note_undone(root, &journal, step));
    Ok((journal, outcome))
}

fn note_undone(root: &Root, journal: &Journal, step: &mut dyn FnMut()) -> anyhow::Result<()> {
    let Some(undone) = &journal.undoes else {
        return Ok(());
    };
    step();
    let mut restores = journal::all(root)?.into_iter();
    match restores.find(|one| one.id == *undone) {
        Some(mut undone) => {
            undone.is_undone = true;
            journal::write(root, &undone)
        }
        None => Ok(()),
    }
}

fn modes(shadow: &Shadow, changes: &[Change]) -> BTreeMap<Name, u32> {
    let old = changes.iter().filter(|change| {
        let old = change.old.as_ref();
        old.is_some_and(|old| old.kind != Kind::Link)
    });
    let mode = |change: &Change| {
        let path = shadow.root.join(OsStr::from_bytes(&change.name.0));
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((change.name.clone(), mode_of(&stat)))
    };
    old.filter_map(mode).collect()
}

/// What takes the last restore back that was not taken back yet.
pub fn undo_target(root: &Root) -> anyhow::Result<Target> {
    let mut restores = journal::all(root)?.into_iter().rev();
    let last = restores.find(|one| !one.is_undone && (one.undoes.is_none() || !one.is_done));
    let last =
        last.with_context(|| format!("no restore of {} can be undone", root.path.display()))?;
    // An undo that was interrupted goes on; it takes back what the first restore did.
    let first = match &last.undoes {
        Some(undone) => journal::all(root)?
            .into_iter()
            .find(|one| one.id == *undone),
        None => None,
    };
    let journal = first.unwrap_or(last);
    Ok(Target {
        commit: journal.safety,
        not_saved: Vec::new(),
        only: Some(journal.names.into_iter().collect()),
        modes: journal.modes,
        session: journal.session,
        entry: journal.entry,
        undoes: Some(journal.id),
    })
}
