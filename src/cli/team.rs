//! `treelined pull --list`, and the descriptions of sessions that `treelined push` adds to the list of the
//! team.

use super::list_team::title;
use super::screen::{Screen, Style};
use super::words::count;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::error::{Error, Result};
use treelined_core::team::{TeamQuery, TeamRow, TeamSession};
use treelined_core::terminal;
use treelined_files::os::file::Location;
use treelined_fleet::describe::describe;
use treelined_fleet::engine::Engine;
use treelined_fleet::team::TeamRows;
use treelined_fleet::transfer::Transfer;
use treelined_wire::TeamSessionRow;

/// Adds descriptions of pushed sessions to the list of the team. A failure is reported at the end, since it
/// concerns only the list.
pub(super) struct Descriptions {
    rows: TeamRows,
    /// The name of this machine.
    host: String,
    failure: Option<Error>,
}

impl Descriptions {
    pub(super) fn of(log: &dyn Engine, host: String) -> Self {
        let rows = TeamRows::of(log);
        let failure = rows.create().err();
        Self {
            rows,
            host,
            failure,
        }
    }

    /// Describes a session, by the content of its file.
    pub(super) fn add(&mut self, at: &Location, done: &Transfer) {
        // A file that lacks lines of the stream cannot describe the session.
        if self.failure.is_some() || done.is_behind {
            return;
        }
        let described = row(at, done.sequence, &self.host).and_then(|row| self.rows.write(row));
        self.failure = described.err();
    }

    pub(super) fn end(self) -> io::Result<()> {
        match self.failure {
            None => Ok(()),
            Some(error) => note(&error),
        }
    }
}

fn row(at: &Location, sequence: u64, host: &str) -> Result<TeamRow> {
    let described = describe(at)?.row;
    Ok(TeamRow {
        host: host.to_owned(),
        sequence,
        ..described
    })
}

/// Reports on stderr what is missing from the list of the team.
pub(super) fn note(error: &Error) -> io::Result<()> {
    let (kind, message) = (error.kind.name(), terminal::line(&error.message));
    writeln!(
        io::stderr(),
        "note: the team's list is incomplete: {kind}: {message}"
    )
}

/// The most sessions that are listed at a time.
const PAGE: usize = 1000;
/// The most sessions that a note names.
const MOST_NAMED: usize = 20;

/// Reports on stderr the sessions that the list of the team has, and the stream has lost.
pub(super) fn note_missing(log: &dyn Engine) -> io::Result<()> {
    let missing = match missing(log) {
        Ok(missing) if missing.is_empty() => return Ok(()),
        Ok(missing) => missing,
        Err(error) => return note(&error),
    };
    let sessions = count(missing.len() as u64, "session", "sessions");
    let mut out = io::stderr();
    writeln!(
        out,
        "note: the stream has lost {sessions} that no machine has pushed since: run `treelined push --all` where they are"
    )?;
    for row in missing.values().take(MOST_NAMED) {
        let name = row.name.as_deref().unwrap_or_default();
        let [id, name, host] = [&*row.session_id, name, &row.host].map(terminal::line);
        writeln!(out, "  {id}  {name}  on {host}")?;
    }
    match missing.len().checked_sub(MOST_NAMED) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(out, "  and {more} more"),
    }
}

/// The sessions that the list describes, and the stream has lost.
fn missing(log: &dyn Engine) -> Result<BTreeMap<String, TeamRow>> {
    let rows = TeamRows::of(log);
    let mut missing = BTreeMap::new();
    let mut query = TeamQuery {
        limit: PAGE,
        ..TeamQuery::default()
    };
    loop {
        let list = rows.list(&query)?;
        let described = list.missing.into_iter();
        missing.extend(described.map(|row| (row.session_id.clone(), row)));
        query.after = list.page.and_then(|page| page.next);
        if query.after.is_none() {
            break;
        }
    }
    let mut after: Option<String> = None;
    while !missing.is_empty() {
        let mut ids = log.list_after(after.as_deref())?;
        for id in &ids {
            missing.remove(id);
        }
        after = ids.pop();
        if after.is_none() {
            break;
        }
    }
    Ok(missing)
}

/// Prints only the deleted sessions of the stream, or only the others. If the list of the team cannot be read, only the
/// ids of all sessions are printed.
pub(super) fn list(
    log: &dyn Engine,
    is_of_deleted: bool,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let rows = TeamRows::of(log);
    let mut screen = Screen::new();
    let mut query = TeamQuery {
        is_of_deleted,
        limit: PAGE,
        ..TeamQuery::default()
    };
    loop {
        let list = match rows.list(&query) {
            Ok(list) => list,
            Err(error) => {
                note(&error)?;
                if !is_of_deleted {
                    list_ids(log, &mut screen, is_json)?;
                }
                break;
            }
        };
        if let Some((kind, why)) = &list.incomplete {
            note(&Error::new(*kind, why.clone()))?;
        }
        let is_listed = |session: &&TeamSession| is_trashed(session) == is_of_deleted;
        for session in list.sessions.iter().filter(is_listed) {
            write(&mut screen, session, is_json)?;
        }
        query.after = list.page.and_then(|page| page.next);
        if query.after.is_none() {
            break;
        }
    }
    screen.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the ids of all sessions.
fn list_ids(log: &dyn Engine, screen: &mut Screen, is_json: bool) -> anyhow::Result<()> {
    let mut after: Option<String> = None;
    loop {
        let mut ids = log.list_after(after.as_deref())?;
        for session_id in &ids {
            let bare = TeamSession {
                session_id: session_id.clone(),
                row: None,
                open_on: Vec::new(),
                place: None,
            };
            write(screen, &bare, is_json)?;
        }
        after = ids.pop();
        if after.is_none() {
            return Ok(());
        }
    }
}

fn write(screen: &mut Screen, session: &TeamSession, is_json: bool) -> anyhow::Result<()> {
    match is_json {
        true => writeln!(screen, "{}", terminal::json(&line(session)?))?,
        false => print(screen, session)?,
    }
    Ok(())
}

fn is_trashed(session: &TeamSession) -> bool {
    session.row.as_ref().is_some_and(|row| row.is_trashed)
}

/// The row in the form of `list_sessions`, with `trashed` if the session is deleted.
fn line(session: &TeamSession) -> anyhow::Result<String> {
    let mut row = serde_json::to_value(TeamSessionRow::of(session))?;
    if let (true, Value::Object(members)) = (is_trashed(session), &mut row) {
        members.insert("trashed".to_owned(), json!(true));
    }
    Ok(row.to_string())
}

/// Prints a session, such as `ID  NAME  214 entries  on build-7  2026-11-22T07:59:12.480Z  open on laptop,
/// build-7`.
fn print(screen: &mut Screen, session: &TeamSession) -> io::Result<()> {
    let mut parts = vec![screen.style(Style::Cyan, &terminal::line(&session.session_id))];
    if let Some(row) = &session.row {
        let first = Some(&*row.first_message).filter(|first| !first.is_empty());
        parts.extend(title(screen, row.name.as_deref(), first));
        parts.push(count(row.entries, "entry", "entries"));
        let place = format!("on {}  {}", terminal::line(&row.host), row.modified);
        parts.push(screen.style(Style::Dim, &place));
        if row.is_trashed {
            parts.push(screen.style(Style::Red, "deleted"));
        }
    }
    if !session.open_on.is_empty() {
        let hosts: Vec<_> = session
            .open_on
            .iter()
            .map(|by| terminal::line(&by.host))
            .collect();
        parts.push(screen.style(Style::Green, &format!("open on {}", hosts.join(", "))));
    }
    writeln!(screen, "{}", parts.join("  "))
}
