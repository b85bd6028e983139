//! The commands of the command line that read sessions through a daemon.

use crate::args::Args;
use crate::at::{At, Found, root_of};
use crate::follow::{self, Failure};
use crate::git;
use crate::navigate::Navigations;
use crate::open;
use crate::record::When;
use crate::restore::{self, Plan, Target};
use crate::session;
use crate::show;
use crate::snapshot;
use crate::space;
use crate::state::{self, Lock, Root, State, WAIT};
use crate::undo;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use treelined_client::OpenMode;

/// The exit code if the user does not agree.
const NOT_AGREED: u8 = 2;

pub fn on(state: &State, folder: &Path) -> anyhow::Result<()> {
    git::check()?;
    let root = state.root(&snapshot::working_tree(folder)?)?;
    snapshot::check_root(&root.path)?;
    let lock = root.lock(WAIT)?;
    let shadow = root.shadow(&lock)?;
    let taken = snapshot::take(&shadow, root.limits)?;
    snapshot::remember(&shadow, &taken.tree)?;
    root.set_on(true)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "the files of {} are saved at each turn while `treelined files watch` runs",
        root.path.display()
    )?;
    writeln!(out, "the first snapshot took {} ms", taken.ms)?;
    skipped(&mut out, &taken.skipped)?;
    Ok(())
}

fn skipped(out: &mut impl Write, skipped: &crate::exclude::Skipped) -> io::Result<()> {
    if skipped.files == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "{} left out ({}): repositories, and new files over 2 MiB",
        show::count(skipped.files, "path"),
        show::size(skipped.bytes)
    )?;
    for name in skipped.paths.iter().take(10) {
        writeln!(out, "  {name}")?;
    }
    Ok(())
}

pub fn off(state: &State, folder: &Path, deletes: bool) -> anyhow::Result<()> {
    let root = with_files(state, folder)?;
    let lock = root.lock(WAIT)?;
    root.set_on(false)?;
    let path = root.path.display();
    if deletes {
        drop(lock);
        std::fs::remove_dir_all(&root.folder).context("remove the saved files")?;
        writeln!(io::stdout(), "the saved files of {path} are deleted")?;
    } else {
        writeln!(
            io::stdout(),
            "the files of {path} are not saved any more; --delete deletes what is saved"
        )?;
    }
    Ok(())
}

/// The root of a folder, even if the files are no longer saved. If the folder no longer exists, its name is used as it
/// was given.
fn with_files(state: &State, folder: &Path) -> anyhow::Result<Root> {
    let path = folder
        .canonicalize()
        .or_else(|_| std::path::absolute(folder))?;
    let all = state.all()?.into_iter().map(|(root, _)| root);
    let root = match state.nearest(folder)? {
        Some(root) => Some(root),
        None => all
            .filter(|root| root.holds(&path))
            .max_by_key(|root| root.path.as_os_str().len()),
    };
    root.with_context(|| format!("the files of {} are not saved", path.display()))
}

pub fn du(state: &State) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let mut all = 0_u64;
    for (root, is_on) in state.all()? {
        let lock = root.lock(WAIT)?;
        let used = match root.repository().is_dir() {
            true => space::of(&root, &lock)?,
            false => continue,
        };
        all = all.saturating_add(used.bytes);
        writeln!(
            out,
            "{:>8}  {}  {}, {}{}",
            show::size(used.bytes),
            root.path.display(),
            show::count(used.records, "record"),
            show::count(used.restores, "restore"),
            if is_on { "" } else { ", off" }
        )?;
        if let Some(failure) = state::read::<Failure>(&root.folder.join("failure.json"))? {
            let (session, why) = (show::safe(&failure.session), show::safe(&failure.why));
            writeln!(
                out,
                "          not saved at the last turn of {session}: {why}"
            )?;
        }
    }
    writeln!(out, "{:>8}  together", show::size(all))?;
    Ok(())
}

pub fn prune(state: &State, budget: u64) -> anyhow::Result<()> {
    for (root, _) in state.all()? {
        let lock = root.lock(WAIT)?;
        if root.repository().is_dir() {
            let dropped = space::prune(&root, &lock, budget)?;
            let path = root.path.display();
            let dropped = show::count(dropped, "record");
            writeln!(io::stdout(), "{path}: {dropped} dropped")?;
        }
    }
    Ok(())
}

pub async fn watch(
    args: &Args,
    state: &State,
    is_extension: bool,
    offers: bool,
) -> anyhow::Result<()> {
    git::check()?;
    let navigations = offers.then(|| Navigations::new(state));
    let client = match is_extension {
        true => args.attach(navigations.as_ref()).await?,
        false => args.client(true).await?,
    };
    let sessions = args.daemon.session_dir.clone();
    let sessions = sessions.or_else(|| std::env::var_os("TREELINED_SESSION_DIR").map(Into::into));
    let right = || state.follow(sessions.as_deref());
    let only_one = right()?;
    if only_one.is_none() && !is_extension {
        bail!("another `treelined files watch` follows these sessions")
    }
    if let Some(navigations) = &navigations {
        navigations.set_client(&client);
    }
    // If several daemons run, only one process saves the files. But the clients of every daemon may want to restore
    // files.
    let followed = follow::run(&client, state, navigations.as_ref(), (only_one, right)).await;
    client.close().await?;
    followed?;
    match is_extension {
        true => Ok(()),
        false => {
            bail!("the daemon has ended; nothing is saved until `treelined files watch` runs again")
        }
    }
}

/// Saves the files now, and records them at the last message of a session.
pub async fn save(args: &Args, state: &State, session: Option<&str>) -> anyhow::Result<()> {
    git::check()?;
    let client = args.client(false).await?;
    let folder = std::env::current_dir()?.canonicalize()?;
    let opened = session::open(&client, session, &folder, OpenMode::Write).await?;
    let root = root_of(state, &opened)?;
    let last = opened.messages(None).await?.pop();
    let last = last.context("the session has no messages yet")?;
    let when = session::turn(&last).unwrap_or(When::End);
    let saved = follow::save(&root, &opened, when, last.id()).await?;
    client.close().await?;
    match saved {
        Some(id) => writeln!(io::stdout(), "saved: {id}")?,
        None => writeln!(io::stdout(), "nothing has changed since they were saved")?,
    }
    Ok(())
}

async fn at(
    args: &Args,
    state: &State,
    session: Option<&str>,
    entry: Option<&str>,
) -> anyhow::Result<At> {
    git::check()?;
    let client = args.client(false).await?;
    let folder = std::env::current_dir()?.canonicalize()?;
    let opened = session::open(&client, session, &folder, OpenMode::Read).await?;
    let found = Found::of(state, &opened, entry).await?;
    client.close().await?;
    At::open(found)
}

pub async fn open(
    args: &Args,
    state: &State,
    (session, entry): (Option<&str>, Option<&str>),
    into: &Path,
) -> anyhow::Result<()> {
    let at = at(args, state, session, entry).await?;
    let files = open::checkout(&at.shadow, &at.record().data.commit, into)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}: {} in {}",
        show::record(at.record()),
        show::count(files, "file"),
        into.display()
    )?;
    skipped(&mut out, &at.record().data.skipped)?;
    Ok(())
}

pub async fn diff(
    args: &Args,
    state: &State,
    (session, entry): (Option<&str>, Option<&str>),
    all: bool,
) -> anyhow::Result<()> {
    let at = at(args, state, session, entry).await?;
    let plan = at.plan(&at.target(all)?)?;
    at.preview(&mut io::stdout().lock(), &plan)
}

pub async fn restore(
    args: &Args,
    state: &State,
    (session, entry): (Option<&str>, Option<&str>),
    (all, yes): (bool, bool),
) -> anyhow::Result<ExitCode> {
    let at = at(args, state, session, entry).await?;
    let target = at.target(all)?;
    let plan = at.plan(&target)?;
    at.preview(&mut io::stdout().lock(), &plan)?;
    if plan.changes.is_empty() {
        writeln!(io::stdout(), "there is nothing to restore")?;
        return Ok(ExitCode::SUCCESS);
    }
    let has_moved = at.has_moved()?;
    let (root, lock) = at.into_root();
    finish(root, lock, &target, &plan, (yes, has_moved))
}

pub fn undo(
    state: &State,
    folder: &Path,
    (redo, all, yes): (bool, bool, bool),
) -> anyhow::Result<ExitCode> {
    git::check()?;
    let root = with_files(state, folder)?;
    let lock = root.lock(WAIT)?;
    let shadow = root.shadow(&lock)?;
    let last = undo::last(&root, redo)?;
    let (target, plan) = undo::prepare(&root, &shadow, &last, all)?;
    show::plan(&mut io::stdout().lock(), &plan, &BTreeSet::new())?;
    if plan.changes.is_empty() && !plan.since.is_empty() {
        writeln!(io::stdout(), "nothing was changed")?;
        return Ok(ExitCode::FAILURE);
    }
    finish(root, lock, &target, &plan, (yes, false))
}

/// Asks the user, and makes the changes. The lock is free while the user decides.
fn finish(
    root: Root,
    lock: Lock,
    target: &Target,
    plan: &Plan,
    (yes, has_moved): (bool, bool),
) -> anyhow::Result<ExitCode> {
    drop(lock);
    if !yes && !is_agreed(has_moved)? {
        writeln!(
            io::stderr(),
            "nothing was changed; --yes does it without asking"
        )?;
        return Ok(ExitCode::from(NOT_AGREED));
    }
    let lock = root.lock(WAIT)?;
    let done = restore::run((&root, &lock), target, plan, root.limits, &mut || {});
    let (journal, outcome) = done?;
    let mut out = io::stdout().lock();
    show::outcome(&mut out, &outcome)?;
    if outcome.keeps_stage {
        writeln!(
            out,
            "{}{} has bytes that another program has written meanwhile",
            crate::place::STAGE,
            journal.id
        )?;
    }
    match (&journal.undoes, journal.redoes) {
        (Some(_), false) => writeln!(out, "treelined files undo --redo takes it back")?,
        _ => writeln!(out, "treelined files undo takes it back")?,
    }
    Ok(match outcome.conflicts.is_empty() && !outcome.keeps_stage {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn is_agreed(has_moved: bool) -> anyhow::Result<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Ok(false);
    }
    let (question, usual) = match has_moved {
        true => ("write these files? [y/N] ", false),
        false => ("write these files? [Y/n] ", true),
    };
    let mut out = io::stdout().lock();
    write!(out, "{question}")?;
    out.flush()?;
    let mut answer = String::new();
    if stdin.lock().read_line(&mut answer)? == 0 {
        return Ok(false);
    }
    Ok(match answer.trim().to_ascii_lowercase().as_str() {
        "" => usual,
        answer => matches!(answer, "y" | "yes"),
    })
}
