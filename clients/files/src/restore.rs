//! Plans and runs restores. The undo of a restore is a restore too (files.md §5).

use crate::apply::{self, Job, Outcome};
use crate::changes::{Change, Kind, changes};
use crate::exclude::Limits;
use crate::foreign::Repositories;
use crate::git::Shadow;
use crate::held::held;
use crate::journal::{self, Journal, safety_ref};
use crate::left_out;
use crate::name::Name;
use crate::place::{STAGE, UNFILLED, mode_of};
use crate::snapshot::{self, now};
use crate::state::{Lock, Root};
use crate::tidy::tidy;
use anyhow::bail;
use rustix::fs::{AtFlags, CWD, statat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The target of a restore.
#[derive(Debug, Clone)]
pub struct Target {
    /// The commit in the shadow repository.
    pub commit: String,
    /// The files that the target lacks only because they were left out when it was saved.
    pub not_saved: Vec<Name>,
    /// The files that may change; `None`: all files.
    pub only: Option<BTreeSet<Name>>,
    /// The modes of files, as far as they are known.
    pub modes: BTreeMap<Name, u32>,
    pub session: Option<String>,
    pub entry: Option<String>,
    /// The id of the restore that this restore reverts.
    pub undoes: Option<String>,
    /// Whether the reverted restore was an undo.
    pub redoes: bool,
}

/// The changes that a restore would make.
#[derive(Debug)]
pub struct Plan {
    /// The tree of the present files.
    pub now: String,
    pub changes: Vec<Change>,
    /// The files that a program has open for writing.
    pub held: BTreeSet<Name>,
    /// The number of differences that stay because the session has not changed these files.
    pub left: usize,
    /// The files that stay because they were left out when the target was saved. It is not known whether they existed
    /// at that time.
    pub kept: Vec<Name>,
    /// The files that stay, because they have changed since the restore that is reverted.
    pub since: Vec<Name>,
    /// For each file, the number of added and of removed lines; `None` if it is not text.
    pub lines: BTreeMap<Name, Option<(u64, u64)>>,
}

/// Compares the present files with a target.
pub fn plan(shadow: &Shadow, target: &Target, limits: Limits) -> anyhow::Result<Plan> {
    let now = snapshot::take(shadow, limits)?;
    let mut all = changes(shadow, &now.tree, &target.commit)?;
    let mut repositories = Repositories::new(&shadow.root);
    all.retain(|change| repositories.of(&change.name).is_none());
    let (changes, left): (Vec<Change>, Vec<Change>) = all.into_iter().partition(|change| {
        let only = target.only.as_ref();
        only.is_none_or(|only| only.contains(&change.name))
    });
    let removed = changes.iter().filter(|change| change.new.is_none());
    let removed: Vec<&Name> = removed.map(|change| &change.name).collect();
    let folder = shadow.dir.with_extension("rules");
    let by_rules = left_out::by_rules(shadow, &target.commit, &removed, &folder)?;
    let (kept, changes): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(|change| {
        let was_left_out = by_rules.contains(&change.name) || was_not_saved(target, &change.name);
        change.new.is_none() && was_left_out
    });
    let lines = lines(shadow, &now.tree, &target.commit)?;
    Ok(Plan {
        now: now.tree,
        held: held(&shadow.root, &changes),
        changes,
        left: left.len(),
        kept: kept.into_iter().map(|change| change.name).collect(),
        since: Vec::new(),
        lines,
    })
}

fn was_not_saved(target: &Target, name: &Name) -> bool {
    target.not_saved.iter().any(|skipped| {
        let folder = skipped.0.strip_suffix(b"/");
        *name == *skipped || folder.is_some_and(|folder| name.is_below(folder))
    })
}

pub fn lines(
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

/// Makes the changes of a plan after the user has agreed. `step` is called before each change of the disk.
pub fn run(
    (root, lock): (&Root, &Lock),
    target: &Target,
    plan: &Plan,
    limits: Limits,
    step: &mut dyn FnMut(),
) -> anyhow::Result<(Journal, Outcome)> {
    let shadow = root.shadow(lock)?;
    // Stages of killed restores are removed only now, because the user has agreed.
    let left = tidy(root, &shadow)?;
    // If the files have changed since they were shown, the user has not agreed to this restore. For an undo this is
    // not checked here, because only the files that it changes were saved.
    if target.undoes.is_none() && snapshot::take(&shadow, limits)?.tree != plan.now {
        bail!("files have changed since they were shown; nothing was changed: run it again");
    }
    step();
    let commit = snapshot::commit(&shadow, &plan.now, Some(&target.commit), &[])?;
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
        redoes: target.redoes,
        is_done: false,
        is_undone: false,
        names: names.collect(),
        modes: modes(&shadow, &plan.changes),
    };
    let job = Job {
        shadow: &shadow,
        changes: &plan.changes,
        modes: &target.modes,
        id: &journal.id,
    };
    let applied = journal::write(root, &journal).and_then(|()| apply::apply(&job, step));
    let mut outcome = match applied {
        Ok(outcome) => outcome,
        Err(error) => {
            forget(root, &shadow, &journal.id);
            return Err(error);
        }
    };
    outcome.left = left;
    step();
    journal.is_done = true;
    // If the disk is full, the journal lacks the result of the restore. An undo then compares the files again.
    let _less = journal::write(root, &journal).and_then(|()| {
        step();
        match &target.undoes {
            // If some files have changed since the restore, the restore does not count as taken back. The user can
            // then take these files back later.
            Some(_) if plan.since.is_empty() => journal::note_undone(root, &journal),
            _ => Ok(()),
        }
    });
    // These changes are remembered, so that they do not count as changes of the next turn.
    let _its =
        snapshot::take(&shadow, limits).and_then(|taken| snapshot::remember(&shadow, &taken.tree));
    Ok((journal, outcome))
}

/// Removes the journal and the snapshot of a restore that has changed nothing. They stay while its stage exists.
fn forget(root: &Root, shadow: &Shadow, id: &str) {
    let is_there = |end: &str| {
        let stage = root.path.join(format!("{STAGE}{id}{end}"));
        stage.symlink_metadata().is_ok()
    };
    if !is_there("") && !is_there(UNFILLED) {
        let _left = std::fs::remove_file(journal::path(root, id));
        let _left = shadow.run(["update-ref", "-d", &safety_ref(id)], None);
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
