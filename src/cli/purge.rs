//! `treelined purge`: removes deleted sessions from the disk.
//!
//! The daemon never removes sessions from the disk (protocol.md §3.4). This program does, after a person has confirmed
//! it.

use super::daemon::ChildDaemon;
use super::failure::{ShellError, USAGE};
use super::listed::{TrashRow, trashed};
use super::options::Options;
use super::screen::Screen;
use super::trash_choice::find;
use super::words::{count, title};
use crate::config::KeepTime;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use treelined_core::id::Source;
use treelined_core::terminal;
use treelined_core::timestamp::{self, Millis};
use treelined_files::clock::SystemSource;
use treelined_files::store::Store;
use treelined_import::importer::named;

/// The most sessions that the question lists.
const LISTED: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined restore          lists the deleted sessions
  treelined purge \"A tour\"   removes one of them from the disk, after a question
  treelined purge --all      empties the trash, after a question
  treelined purge --older-than 30d --yes   what was deleted more than 30 days ago, for a timer

A session that is not deleted is moved to the trash first, by treelined rm. The kept sources of an \
imported session stay until treelined import --forget SESSION. Imports skip the session, until treelined import \
--again SESSION.")]
pub(crate) struct PurgeArgs {
    /// Deleted sessions by their files in the trash, ids, names or beginnings of the ids
    #[arg(value_name = "SESSION", required_unless_present_any = ["all", "older_than", "expired"],
          add = ArgValueCompleter::new(super::candidates::deleted_sessions))]
    sessions: Vec<String>,
    /// All deleted sessions, of all directories
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    /// All sessions that were deleted longer ago than this: 12h, 30d or 8w
    #[arg(long, value_name = "TIME", conflicts_with_all = ["sessions", "all"])]
    older_than: Option<KeepTime>,
    /// All sessions that were deleted longer ago than `keep` of [trash] in the configuration
    #[arg(long, conflicts_with_all = ["sessions", "all", "older_than"])]
    expired: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print what was removed as JSON: `{"purged": [{"sessionId", "trashedPath", "bytes"}]}`
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, purge: &PurgeArgs) -> anyhow::Result<ExitCode> {
    let config = options.config()?;
    let age = match purge.expired {
        true => Some(config.trash_keep.ok_or_else(no_time)?),
        false => purge.older_than,
    };
    let mut daemon = ChildDaemon::start(options)?;
    let rows = trashed(&mut daemon);
    daemon.end()?;
    let rows: Vec<TrashRow> = rows?;
    let chosen: Vec<&TrashRow> = match age {
        Some(age) => older(&rows, SystemSource.now_ms().saturating_sub(age.millis())),
        None if purge.all => rows.iter().collect(),
        None => choose(&rows, &purge.sessions)?,
    };
    if !chosen.is_empty() && !purge.yes && !is_confirmed(&chosen)? {
        writeln!(io::stderr(), "nothing was removed")?;
        return Ok(ExitCode::FAILURE);
    }
    let store = Store::new(config.daemon.session_dir);
    keep_out(&store, &chosen)?;
    let mut purged = Vec::new();
    let mut bytes = 0;
    for row in chosen {
        let size = store.purge(&row.session_id, &row.trashed_path)?;
        bytes += size;
        purged.push(json!({
            "sessionId": row.session_id,
            "trashedPath": row.trashed_path,
            "bytes": size,
        }));
    }
    let mut screen = Screen::new();
    let sessions = count(purged.len() as u64, "session", "sessions");
    let said = match purge.json {
        true => terminal::json(&json!({ "purged": purged }).to_string()).into_owned(),
        false if rows.is_empty() => "the trash is empty".to_owned(),
        false if purged.is_empty() => "no session in the trash is that old".to_owned(),
        false => format!("removed {sessions}, {}", count(bytes, "byte", "bytes")),
    };
    writeln!(screen, "{said}")?;
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Imports skip a session while it is in the trash, and must still skip it after it was purged. But if an import has
/// written the session again, it is in the session directory too, and is still imported.
fn keep_out(store: &Store, chosen: &[&TrashRow]) -> anyhow::Result<()> {
    if chosen.is_empty() {
        return Ok(());
    }
    let present = store.session_ids()?;
    let ids = chosen.iter().map(|row| row.session_id.as_str());
    let gone: Vec<&str> = ids.filter(|id| !present.contains_key(*id)).collect();
    Ok(named::skip(store.path(), &gone)?)
}

fn no_time() -> anyhow::Error {
    let message = "the configuration does not say for how long deleted sessions are kept";
    let remedy = "keep = \"30d\" in its section [trash], or --older-than 30d";
    ShellError::new(USAGE, message, remedy).into()
}

/// The sessions that were deleted before this time. A session whose time of deletion cannot be read is not included.
fn older(rows: &[TrashRow], before: Millis) -> Vec<&TrashRow> {
    let is_older =
        |row: &&TrashRow| timestamp::parse(&row.deleted_at).is_some_and(|at| at < before);
    rows.iter().filter(is_older).collect()
}

/// The deleted sessions that these words name, each once. An id means all files in the trash with this id, so that none
/// of them remains.
fn choose<'r>(rows: &'r [TrashRow], words: &[String]) -> anyhow::Result<Vec<&'r TrashRow>> {
    let mut chosen: Vec<&TrashRow> = Vec::new();
    for word in words {
        let of_id: Vec<&TrashRow> = rows.iter().filter(|row| row.session_id == *word).collect();
        let named = match of_id.is_empty() {
            true => vec![find(rows, word)?],
            false => of_id,
        };
        for row in named {
            if !chosen.iter().any(|it| it.trashed_path == row.trashed_path) {
                chosen.push(row);
            }
        }
    }
    Ok(chosen)
}

/// Asks the person at the terminal. Only the answer yes confirms.
fn is_confirmed(rows: &[&TrashRow]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "purge asks before it removes anything, and there is no terminal to ask at";
        return Err(ShellError::new(USAGE, message, "--yes, which answers it").into());
    }
    let mut stderr = io::stderr().lock();
    for row in rows.iter().take(LISTED) {
        let name = title(row.name.as_deref(), &row.first_message);
        let line = format!("{}  deleted {}  {name}", row.session_id, row.deleted_at);
        writeln!(stderr, "  {}", terminal::line(&line))?;
    }
    if let Some(more @ 1..) = rows.len().checked_sub(LISTED) {
        writeln!(stderr, "  and {more} more")?;
    }
    let sessions = count(rows.len() as u64, "session", "sessions");
    write!(stderr, "Remove {sessions} for good? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_deleted_before_the_time_is_older() {
        let row = |deleted_at: &str| TrashRow {
            session_id: deleted_at.to_owned(),
            name: None,
            first_message: String::new(),
            native_ids: Vec::new(),
            cwd: String::new(),
            trashed_path: String::new(),
            deleted_at: deleted_at.to_owned(),
            lost: 0,
        };
        let times = [
            "2026-11-01T00:00:00.000Z",
            "2026-11-02T00:00:00.000Z",
            "soon",
        ];
        let rows = times.map(row);
        let before = timestamp::parse(times[1]).unwrap();
        let older: Vec<&str> = older(&rows, before)
            .iter()
            .map(|row| row.session_id.as_str())
            .collect();
        assert_eq!(older, [times[0]]);
    }
}
