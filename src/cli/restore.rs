//! `treelined restore`: lists the trash, and restores a session from it.

use super::Options;
use super::daemon::ChildDaemon;
use super::screen::{Screen, Style};
use super::tree::title;
use crate::terminal;
use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The id of a deleted session, or its file in the trash; left out, the trash is listed
    #[arg(value_name = "SESSION-ID|FILE")]
    session: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TrashRow {
    session_id: String,
    name: Option<String>,
    first_message: String,
    cwd: String,
    trashed_path: String,
    deleted_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TrashPage {
    sessions: Vec<TrashRow>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct RestoreResult {
    path: String,
}

pub(super) fn run(options: &Options, restore: &Restore) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let done = match &restore.session {
        Some(session) => bring_back(&mut daemon, session),
        None => list(&mut daemon),
    };
    daemon.end()?;
    done.map(|()| ExitCode::SUCCESS)
}

/// The deleted sessions, most recent first.
fn trashed(daemon: &mut ChildDaemon) -> anyhow::Result<Vec<TrashRow>> {
    let mut trashed = Vec::new();
    let mut cursor = None;
    loop {
        let params = json!({ "cursor": cursor }).to_string();
        let answered = daemon.call("list_trash", &params)?;
        let page: TrashPage =
            serde_json::from_str(answered.get()).context("understand list_trash")?;
        trashed.extend(page.sessions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(trashed);
        }
    }
}

fn list(daemon: &mut ChildDaemon) -> anyhow::Result<()> {
    let mut screen = Screen::new();
    let trashed = trashed(daemon)?;
    if trashed.is_empty() {
        writeln!(screen, "the trash is empty")?;
    }
    let mut seen = HashSet::new();
    for session in &trashed {
        let shown = title(session.name.as_deref(), &session.first_message);
        let shown = terminal::cut(&terminal::line(shown), screen.columns, "…").into_owned();
        writeln!(screen, "{}", screen.style(Style::Bold, &shown))?;
        let about = format!("{}  deleted {}", session.cwd, session.deleted_at);
        let about = terminal::line(&about);
        writeln!(screen, "  {}", screen.style(Style::Dim, &about))?;
        // An id alone restores the session deleted last.
        let which = match seen.insert(&session.session_id) {
            true => &session.session_id,
            false => &session.trashed_path,
        };
        let command = format!("treelined restore {which}");
        let command = terminal::line(&command);
        writeln!(screen, "  {}", screen.style(Style::Dim, &command))?;
    }
    screen.flush()?;
    Ok(())
}

fn bring_back(daemon: &mut ChildDaemon, wanted: &str) -> anyhow::Result<()> {
    let params = match wanted.contains('/') {
        false => json!({ "sessionId": wanted }),
        true => {
            let path = std::path::absolute(Path::new(wanted)).context("find the file")?;
            let mut all = trashed(daemon)?.into_iter();
            let Some(found) = all.find(|session| Path::new(&session.trashed_path) == path) else {
                bail!("{wanted} is not in the trash; treelined restore lists what is");
            };
            json!({ "sessionId": found.session_id, "trashedPath": found.trashed_path })
        }
    };
    let answered = daemon.call("restore_session", &params.to_string())?;
    let restored: RestoreResult =
        serde_json::from_str(answered.get()).context("understand restore_session")?;
    let mut screen = Screen::new();
    writeln!(screen, "restored: {}", terminal::line(&restored.path))?;
    screen.flush()?;
    Ok(())
}
