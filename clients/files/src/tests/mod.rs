//! Tests with the real git. `world` makes random folders and histories, and `model` restores them.

mod git_folders;
mod model;
mod restoring;
mod world;

use crate::apply::{Outcome, apply};
use crate::exclude::Limits;
use crate::name::Name;
use crate::record::When;
use crate::restore::{self, Target};
use crate::snapshot;
use crate::state::{Lock, Root, WAIT};
use std::collections::BTreeMap;
use std::path::Path;

const LIMITS: Limits = Limits {
    free: 0,
    ..Limits::USUAL
};

/// A commit of the present files.
fn save(root: &Root, lock: &Lock) -> anyhow::Result<String> {
    let shadow = root.shadow(lock)?;
    let taken = snapshot::take(&shadow, LIMITS)?;
    let commit = snapshot::commit(&shadow, &taken.tree, None, &taken.names)?;
    shadow.run(
        ["update-ref", &format!("refs/tl/test/{commit}"), &commit],
        None,
    )?;
    Ok(commit)
}

fn to(commit: &str) -> Target {
    Target {
        commit: commit.to_owned(),
        not_saved: Vec::new(),
        only: None,
        modes: BTreeMap::new(),
        session: None,
        entry: None,
        undoes: None,
        redoes: false,
    }
}

/// Restores files, as the command does.
fn go(root: &Root, target: &Target, step: &mut dyn FnMut()) -> anyhow::Result<Outcome> {
    let lock = root.lock(WAIT)?;
    let shadow = root.shadow(&lock)?;
    let plan = restore::plan(&shadow, target, LIMITS)?;
    let done = restore::run((root, &lock), target, &plan, LIMITS, step)?;
    Ok(done.1)
}

fn undo(root: &Root) -> anyhow::Result<Outcome> {
    let (since, outcome) = take_back_by(root, (false, false), &mut || {})?;
    assert_eq!(since, []);
    Ok(outcome)
}

/// Takes back a restore, or an undo. Returns the files that have changed since.
fn take_back(root: &Root, redo: bool, all: bool) -> anyhow::Result<(Vec<Name>, Outcome)> {
    take_back_by(root, (redo, all), &mut || {})
}

fn take_back_by(
    root: &Root,
    (redo, all): (bool, bool),
    step: &mut dyn FnMut(),
) -> anyhow::Result<(Vec<Name>, Outcome)> {
    let lock = root.lock(WAIT)?;
    let shadow = root.shadow(&lock)?;
    let last = crate::undo::last(root, redo)?;
    let (target, plan) = crate::undo::prepare(root, &shadow, &last, all)?;
    let done = restore::run((root, &lock), &target, &plan, LIMITS, step)?;
    Ok((plan.since, done.1))
}

/// A root, with its state in another folder.
fn root_in(folder: &Path, root: &Path) -> Root {
    let state = crate::state::State::new(Some(&folder.join("state")), LIMITS).unwrap();
    let root = state.root(root).unwrap();
    root.set_on(true).unwrap();
    root
}

/// Used in place of a commit to ask for an undo.
const UNDO: &str = "undo";

/// Restores to a commit in another process, and kills it before the change of the disk with this number.
fn go_and_die(folder: &Path, root: &Root, commit: &str, at: usize) {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::child", "--ignored", "--quiet"])
        .env("TREELINED_FILES_CHILD", folder)
        .env("TREELINED_FILES_ROOT", &root.path)
        .env("TREELINED_FILES_COMMIT", commit)
        .env("TREELINED_FILES_STEP", at.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(
        child.status.code().is_none() || said.contains("1 passed"),
        "{said}"
    );
}

/// The test that runs as the process of [`go_and_die`].
#[test]
#[ignore = "started by other tests"]
fn child() {
    let variable = |name: &str| std::env::var_os(name);
    let Some(folder) = variable("TREELINED_FILES_CHILD") else {
        return;
    };
    let root = root_in(
        folder.as_ref(),
        variable("TREELINED_FILES_ROOT").unwrap().as_ref(),
    );
    let text = |name: &str| variable(name).unwrap().into_string().unwrap();
    let mut left: usize = text("TREELINED_FILES_STEP").parse().unwrap();
    let commit = text("TREELINED_FILES_COMMIT");
    let die = &mut || {
        if left == 0 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
        left -= 1;
    };
    match commit.as_str() {
        UNDO => {
            take_back_by(&root, (false, false), die).unwrap();
        }
        commit => {
            go(&root, &to(commit), die).unwrap();
        }
    }
}

/// Once the changes of an agent counted as the user's own if the user ended the turn.
#[test]
fn a_turn_that_was_ended_is_over() {
    let turn = |message: serde_json::Value| {
        let entry =
            serde_json::json!({"type": "message", "id": "m", "parentId": null, "message": message});
        crate::session::turn(&serde_json::from_str(&entry.to_string()).unwrap())
    };
    let calls = |reason: &str| {
        let call = serde_json::json!({"type": "toolCall", "id": "c", "name": "bash"});
        serde_json::json!({"role": "assistant", "content": [call], "stopReason": reason})
    };
    assert_eq!(turn(calls("toolUse")), None);
    assert_eq!(turn(calls("aborted")), Some(When::End));
    assert_eq!(
        turn(serde_json::json!({"role": "user", "content": "x"})),
        Some(When::Start)
    );
}

/// A restore without changes leaves no files.
#[test]
fn an_empty_restore_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let root = root_in(folder.path(), &work);
    let lock = root.lock(WAIT).unwrap();
    let shadow = root.shadow(&lock).unwrap();
    let job = crate::apply::Job {
        shadow: &shadow,
        changes: &[],
        modes: &BTreeMap::new(),
        id: "0123456789abcdef",
    };
    let outcome = apply(&job, &mut || {}).unwrap();
    assert_eq!(outcome, Outcome::default());
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0);
}
