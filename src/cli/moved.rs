//! `treelined mv`: changes the directory of the sessions of a project that a person has moved (session-file.md §5.11).

use super::failure::{FAILED, NOT_FOUND, ShellError, USAGE};
use super::options::Options;
use super::screen::{Screen, Style};
use super::words::count;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use treelined_core::terminal;
use treelined_files::store::Store;
use treelined_files::store::moving::ProjectMove;

/// The most sessions that are listed.
const LISTED: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mv shop work/shop && treelined mv shop work/shop
  treelined mv shop work/shop --dry-run   which sessions it would move

It writes the new path into the first line of each session of the directory and of the directories below it, and moves their files \
into the folder of the new path, where pi looks too. First end the programs that have such a session open: a daemon that \
has it open reports it as deleted until a client opens it again. Files of other agents do not change. A conversation that \
such an agent continues in the old directory is imported with the old directory.")]
pub(crate) struct MvArgs {
    /// The directory as it was, as treelined list --all shows it
    #[arg(value_name = "OLD", value_hint = ValueHint::DirPath,
          add = ArgValueCompleter::new(super::candidates::directories))]
    old: PathBuf,
    /// The directory as it is now
    #[arg(value_name = "NEW", value_hint = ValueHint::DirPath)]
    new: PathBuf,
    /// Move the sessions even if the old directory still exists
    #[arg(long)]
    force: bool,
    /// Say what would be moved, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print what was moved as JSON: `{"moved": [{"sessionId", "fromCwd", "cwd", "fromPath", "path"}], "left": [{"path", "kind", "message"}]}`
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, arguments: &MvArgs) -> anyhow::Result<ExitCode> {
    let [old, new] = [&arguments.old, &arguments.new].map(|path| absolute(path));
    let (old, new) = (old?, new?);
    if Path::new(&new).starts_with(&old) {
        let message = format!("{new} is inside {old}, so its sessions would be moved twice");
        let remedy = "move them in two steps: treelined mv OLD OTHER, then treelined mv OTHER NEW";
        return Err(ShellError::new(USAGE, message, remedy).into());
    }
    if !Path::new(&new).is_dir() {
        let message = format!("{new} is not a directory");
        let remedy = "move the project first: mv OLD NEW";
        return Err(ShellError::new(FAILED, message, remedy).into());
    }
    if !arguments.force && Path::new(&old).is_dir() {
        let message = format!("{old} still exists");
        let remedy = "--force, which moves its sessions anyway";
        return Err(ShellError::new(FAILED, message, remedy).into());
    }
    let store = Store::new(options.config()?.daemon.session_dir);
    let done = store.move_project(&old, &new, !arguments.dry_run)?;
    if done.moved.is_empty() && done.left.is_empty() {
        let message = format!("no session has the directory {old}");
        let remedy = "treelined list --all, which shows the directories of all sessions";
        return Err(ShellError::new(NOT_FOUND, message, remedy).into());
    }
    let mut screen = Screen::new();
    match arguments.json {
        true => writeln!(screen, "{}", terminal::json(&as_json(&done)))?,
        false => say(&mut screen, &done, &new, arguments.dry_run)?,
    }
    screen.finish()?;
    Ok(match done.left.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

fn say(screen: &mut Screen, done: &ProjectMove, new: &str, dry_run: bool) -> io::Result<()> {
    let sessions = count(done.moved.len() as u64, "session", "sessions");
    let verb = match dry_run {
        true => "would move",
        false => "moved",
    };
    let line = format!("{verb} {sessions} to {new}");
    writeln!(screen, "{}", terminal::line(&line))?;
    for session in done.moved.iter().take(LISTED) {
        let id: String = session.id.chars().take(8).collect();
        let title = terminal::line(&session.title).into_owned();
        let title = terminal::cut(&title, screen.columns.saturating_sub(12), "…").into_owned();
        writeln!(
            screen,
            "  {}  {title}",
            screen.style(Style::Dim, &terminal::line(&id))
        )?;
    }
    if let Some(more @ 1..) = done.moved.len().checked_sub(LISTED) {
        writeln!(screen, "  and {more} more")?;
    }
    for left in &done.left {
        let path = left.path.display().to_string();
        let why = format!("not moved: {path}: {}", left.error.message);
        writeln!(
            screen,
            "{}",
            screen.style(Style::Red, &terminal::line(&why))
        )?;
    }
    Ok(())
}

fn as_json(done: &ProjectMove) -> String {
    let moved = done.moved.iter().map(|session| {
        json!({
            "sessionId": session.id,
            "fromCwd": session.from_cwd,
            "cwd": session.cwd,
            "fromPath": session.from_path.to_string_lossy(),
            "path": session.path.to_string_lossy(),
        })
    });
    let left = done.left.iter().map(|left| {
        json!({
            "path": left.path.to_string_lossy(),
            "kind": left.error.kind.name(),
            "message": left.error.message,
        })
    });
    json!({ "moved": moved.collect::<Vec<_>>(), "left": left.collect::<Vec<_>>() }).to_string()
}

/// The path from the root, without `.` and `..`, and without a separator at the end. Links are not followed, since the
/// old directory need not exist.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let mut clean = PathBuf::new();
    for component in std::path::absolute(path)?.components() {
        match component {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    let text = clean.into_os_string().into_string();
    text.map_err(|_| {
        ShellError::new(
            USAGE,
            "a directory is not UTF-8",
            "rename it: sessions name their directories in UTF-8",
        )
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_compared_without_dots() {
        let text = |path: &str| absolute(Path::new(path)).unwrap();
        assert_eq!(text("/a/./b/../c/"), "/a/c");
        assert_eq!(text("/"), "/");
        let here = std::env::current_dir().unwrap();
        assert_eq!(text("x"), here.join("x").to_str().unwrap());
    }
}
