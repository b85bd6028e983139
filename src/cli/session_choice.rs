//! Finds the session that a person names: by its path, its id, its name, or the beginning of its id.

use super::daemon::ChildDaemon;
use super::tree::title;
use crate::terminal;
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::path::{Path, PathBuf};

/// The fewest characters of the beginning of an id.
const FEWEST: usize = 4;
/// The most sessions that are listed when several fit.
const LISTED: usize = 20;
/// Rows of a page of the list.
const PAGE: usize = 1000;

/// The arguments that name a session.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(super) struct SessionChoice {
    /// A session: its file, its id, its name, or the beginning of its id (4 characters or more)
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// The session of this directory with the last activity
    #[arg(long)]
    latest: bool,
}

/// Why no session was found.
#[derive(Debug)]
pub(super) enum ChoiceError {
    NotFound(String),
    /// Several sessions have the name, or the beginning of the id.
    Several {
        text: String,
        rows: Vec<ListedRow>,
    },
}

/// A row of the list of sessions.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedRow {
    session_id: String,
    path: PathBuf,
    name: Option<String>,
    first_message: String,
    modified: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListPage {
    sessions: Vec<ListedRow>,
    next_cursor: Option<String>,
}

impl SessionChoice {
    /// The file of the session. An error is a [`ChoiceError`], or a failure of the daemon.
    pub(super) fn find(&self, daemon: &mut ChildDaemon) -> anyhow::Result<PathBuf> {
        let Some(text) = &self.session else {
            return latest(daemon);
        };
        let path = Path::new(text);
        if path.is_file() {
            return std::path::absolute(path).context("find the file");
        }
        let rows = rows(daemon)?;
        let choose = |fits: &dyn Fn(&ListedRow) -> bool| {
            let found: Vec<&ListedRow> = rows.iter().filter(|row| fits(row)).collect();
            match found.as_slice() {
                [] => None,
                [row] => Some(Ok(row.path.clone())),
                several => Some(Err(ChoiceError::Several {
                    text: text.clone(),
                    rows: several.iter().map(|row| (*row).clone()).collect(),
                })),
            }
        };
        let chosen = choose(&|row| row.session_id == *text)
            .or_else(|| choose(&|row| row.name.as_ref() == Some(text)))
            .or_else(|| {
                let is_long = text.chars().count() >= FEWEST;
                choose(&|row| is_long && row.session_id.starts_with(text))
            });
        let not_found = || Err(ChoiceError::NotFound(format!("no session {text:?}")));
        Ok(chosen.unwrap_or_else(not_found)?)
    }
}

fn latest(daemon: &mut ChildDaemon) -> anyhow::Result<PathBuf> {
    let cwd = std::env::current_dir().context("find the current directory")?;
    let cwd = cwd.display().to_string();
    let params = json!({ "cwd": cwd, "limit": 1 }).to_string();
    let page = page(daemon, &params)?;
    let row = page.sessions.into_iter().next();
    let missing = || ChoiceError::NotFound(format!("no session of the directory {cwd}"));
    Ok(row.map(|row| row.path).ok_or_else(missing)?)
}

fn rows(daemon: &mut ChildDaemon) -> anyhow::Result<Vec<ListedRow>> {
    let mut rows = Vec::new();
    let mut cursor = None;
    loop {
        let params = json!({ "limit": PAGE, "cursor": cursor }).to_string();
        let page = page(daemon, &params)?;
        rows.extend(page.sessions);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(rows),
        }
    }
}

fn page(daemon: &mut ChildDaemon, params: &str) -> anyhow::Result<ListPage> {
    let answered = daemon.call("list_sessions", params)?;
    serde_json::from_str(answered.get()).context("read the answer to list_sessions")
}

impl ChoiceError {
    /// The exit code: 3 if there is no such session, 2 if the name is not clear.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 3,
            Self::Several { .. } => 2,
        }
    }
}

impl std::error::Error for ChoiceError {}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(message) => write!(f, "{}", terminal::line(message)),
            Self::Several { text, rows } => {
                write!(
                    f,
                    "{} sessions fit {}:",
                    rows.len(),
                    terminal::line(&format!("{text:?}"))
                )?;
                for row in rows.iter().take(LISTED) {
                    let name = title(row.name.as_deref(), &row.first_message);
                    let line = format!("{}  {}  {name}", row.session_id, row.modified);
                    write!(f, "\n  {}", terminal::line(&line))?;
                }
                match rows.len().checked_sub(LISTED) {
                    Some(more @ 1..) => write!(f, "\n  and {more} more"),
                    _ => Ok(()),
                }
            }
        }
    }
}
