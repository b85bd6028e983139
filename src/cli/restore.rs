//! `treelined restore`: lists the trash, and restores a session from it.

use super::daemon::{ChildDaemon, RawJson};
use super::failure::{NOT_FOUND, ShellError};
use super::listed::{TrashRow, trashed};
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::{SessionQuery, current_directory};
use super::trash_choice::{find, nothing};
use super::words::title;
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined restore              the deleted sessions, the last one first
  treelined restore \"A tour\"     brings one back")]
pub(crate) struct Restore {
    /// A deleted session: its file in the trash, its id, its name, or the beginning of its id (4 characters or more);
    /// without it, the trash is listed
    #[arg(value_name = "SESSION",
          add = clap_complete::engine::ArgValueCompleter::new(super::candidates::deleted_sessions))]
    session: Option<String>,
    /// Bring back the session of this directory that was deleted last
    #[arg(long, conflicts_with = "session")]
    latest: bool,
    /// Print the rows of list_trash, or the result of restore_session, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct RestoreResult {
    path: String,
}

pub(super) fn run(options: &Options, restore: &Restore) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let done = match SessionQuery::of(restore.session.as_ref(), restore.latest) {
        Some(query) => bring_back(&mut daemon, &query, restore.json),
        None if restore.json => print_json(&mut daemon),
        None => {
            let rows = trashed(&mut daemon);
            daemon.end()?;
            list(options, &rows?)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    daemon.end()?;
    done.map(|()| ExitCode::SUCCESS)
}

fn list(options: &Options, trashed: &[TrashRow]) -> io::Result<()> {
    let mut screen = Screen::paged(options);
    if trashed.is_empty() {
        writeln!(screen, "the trash is empty")?;
    }
    let mut seen = HashSet::new();
    for session in trashed {
        let shown = title(session.name.as_deref(), &session.first_message);
        let shown = terminal::cut(&terminal::line(shown), screen.columns, "…").into_owned();
        writeln!(screen, "{}", screen.style(Style::Bold, &shown))?;
        let about = format!("{}  deleted {}", session.cwd, session.deleted_at);
        let about = terminal::line(&about);
        writeln!(screen, "  {}", screen.style(Style::Dim, &about))?;
        if session.lost > 0 {
            let lost = format!(
                "another machine deleted it: {} entries are only on this machine, and go to the team if it is restored",
                session.lost
            );
            writeln!(screen, "  {}", screen.style(Style::Yellow, &lost))?;
        }
        // An id without a file restores the session with this id that was deleted last.
        let which = match seen.insert(&session.session_id) {
            true => &session.session_id,
            false => &session.trashed_path,
        };
        let command = format!("treelined restore {which}");
        let command = terminal::line(&command);
        writeln!(screen, "  {}", screen.style(Style::Dim, &command))?;
    }
    screen.finish()
}

fn print_json(daemon: &mut ChildDaemon) -> anyhow::Result<()> {
    let rows: Vec<RawJson> = trashed(daemon)?;
    let rows: Vec<&str> = rows.iter().map(|row| row.get()).collect();
    let text = format!("{{\"sessions\":[{}]}}", rows.join(","));
    writeln!(io::stdout().lock(), "{}", terminal::json(&text))?;
    Ok(())
}

/// The params of `restore_session` for the deleted session that a person names.
fn wanted(daemon: &mut ChildDaemon, query: &SessionQuery) -> anyhow::Result<Value> {
    let rows: Vec<TrashRow> = trashed(daemon)?;
    let of =
        |row: &TrashRow| json!({ "sessionId": row.session_id, "trashedPath": row.trashed_path });
    let SessionQuery::Named(text) = query else {
        let cwd = current_directory()?;
        let row = rows.iter().find(|row| row.cwd == cwd);
        let missing = || nothing(&format!("no deleted session of the directory {cwd}"));
        return Ok(row.map(of).ok_or_else(missing)?);
    };
    match find(&rows, text) {
        // The daemon restores the session with this id that was deleted last.
        Ok(row) if row.session_id == *text => Ok(json!({ "sessionId": text })),
        Ok(row) => Ok(of(row)),
        // The daemon also knows the sessions of the team and the sessions that are not deleted, so it gets the text and
        // reports the error.
        Err(error) if is_missing(&error) && !text.contains('/') => Ok(json!({ "sessionId": text })),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    let shown = error.downcast_ref::<ShellError>();
    shown.is_some_and(|shown| shown.code == NOT_FOUND)
}

fn bring_back(daemon: &mut ChildDaemon, query: &SessionQuery, json: bool) -> anyhow::Result<()> {
    let params = wanted(daemon, query)?;
    let answered = daemon.call("restore_session", &params.to_string())?;
    let restored: RestoreResult =
        serde_json::from_str(answered.get()).context("understand restore_session")?;
    let mut screen = Screen::new();
    match json {
        true => writeln!(screen, "{}", terminal::json(answered.get()))?,
        false => writeln!(screen, "restored: {}", terminal::line(&restored.path))?,
    }
    screen.flush()?;
    Ok(())
}
