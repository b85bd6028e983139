//! Finds the session that a person names by its path, its id, its name, or the beginning of its id, in this order.
//! Without a name, some commands use the latest session of this directory. A session that is only on other machines is
//! copied from the team's stream. All commands with a session as an argument use this module.

use super::daemon::ChildDaemon;
use super::failure::{self, NOT_FOUND, ShellError, USAGE};
use super::listed::{ListedRow, PAGE, deleted, page, rows};
use super::options::Options;
use super::words::title;
use anyhow::Context;
use clap::Args;
use clap::builder::ValueHint;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treelined_core::error::Kind;
use treelined_core::suggest;
use treelined_core::terminal;

/// The fewest characters that count as the beginning of an id.
pub(super) const FEWEST: usize = 4;
/// The most sessions that are listed if several fit.
const LISTED: usize = 20;
/// How long the command repeats its request for the list of the team if the servers answer late, and the pause between
/// two requests.
const LATE: Duration = Duration::from_secs(10);
const LATE_PAUSE: Duration = Duration::from_millis(100);

// The arguments that name a session. Without these arguments, a command takes the latest session of this directory.
// This is not a doc comment, since that would become the description of the command.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(super) struct SessionChoice {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION", value_hint = ValueHint::FilePath,
          add = ArgValueCompleter::new(super::candidates::sessions))]
    session: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
}

// The arguments that name a session, for a command that changes its file. The session must be named.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(super) struct NamedSession {
    /// A session by its file, id, name or beginning of the id
    #[arg(value_name = "SESSION", value_hint = ValueHint::FilePath,
          add = ArgValueCompleter::new(super::candidates::sessions))]
    session: Option<String>,
    /// The session of this directory with the last activity
    #[arg(long)]
    latest: bool,
}

/// A session as a person has named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionQuery {
    /// A path, an id, a name, or the beginning of an id.
    Named(String),
    /// The session of this directory with the last activity.
    Latest,
}

/// The reason why no row was chosen.
pub(super) enum ChoiceProblem {
    None,
    Several(ShellError),
}

/// The other sessions of the same conversation, by the first `chars` characters of their ids; empty if there are none.
pub(super) fn others(ids: &[String], chars: usize) -> String {
    let short = |id: &String| id.chars().take(chars).collect::<String>();
    match ids.is_empty() {
        true => String::new(),
        false => {
            let ids: Vec<String> = ids.iter().map(short).collect();
            terminal::line(&format!("  same conversation: {}", ids.join(", "))).into_owned()
        }
    }
}

impl SessionChoice {
    pub(super) fn query(&self) -> SessionQuery {
        SessionQuery::or_latest(self.session.as_ref())
    }
}

impl NamedSession {
    pub(super) fn query(&self) -> SessionQuery {
        // clap requires that one of the two is given.
        SessionQuery::or_latest(self.session.as_ref())
    }
}

impl SessionQuery {
    /// The session with this name, or the latest session if none is given.
    pub(super) fn or_latest(session: Option<&String>) -> Self {
        match session {
            Some(text) => Self::Named(text.clone()),
            None => Self::Latest,
        }
    }

    /// The query for two arguments that a command declares by itself; `None` if neither was given.
    pub(super) fn of(session: Option<&String>, is_latest: bool) -> Option<Self> {
        match session {
            Some(text) => Some(Self::Named(text.clone())),
            None => is_latest.then_some(Self::Latest),
        }
    }

    /// The session as a word of a command line, with a space before it; empty for the latest session, which need not be
    /// named.
    pub(super) fn as_word(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        match self {
            Self::Latest => String::new(),
            Self::Named(text) if text.chars().all(is_plain) => format!(" {text}"),
            Self::Named(text) => format!(" {text:?}"),
        }
    }

    /// The path of the session's file. The error is a [`ShellError`], or a failure of the daemon.
    pub(super) fn find(&self, daemon: &mut ChildDaemon) -> anyhow::Result<PathBuf> {
        let Self::Named(text) = self else {
            return latest(daemon);
        };
        if let Some(path) = existing_file(text)? {
            return Ok(path);
        }
        let rows = rows(daemon)?;
        match choose(text, &rows) {
            Ok(row) => Ok(row.path.clone()),
            Err(ChoiceProblem::Several(error)) => Err(error.into()),
            Err(ChoiceProblem::None) => match of_the_log(daemon, text)? {
                Some(path) => Ok(path),
                None => Err(missing(daemon, text, &rows)?.into()),
            },
        }
    }

    /// Like [`Self::find`]; starts its own daemon if the text is not a path.
    pub(super) fn find_alone(&self, options: &Options) -> anyhow::Result<PathBuf> {
        if let Self::Named(text) = self
            && let Some(path) = existing_file(text)?
        {
            return Ok(path);
        }
        let mut daemon = ChildDaemon::start(options)?;
        let found = self.find(&mut daemon);
        daemon.end()?;
        found
    }
}

/// The sessions of the team that a text may name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TeamAnswer {
    #[serde(default)]
    team: Vec<TeamRow>,
    team_diagnostic: Option<TeamDiagnostic>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TeamRow {
    session_id: String,
    name: Option<String>,
    #[serde(default)]
    modified: String,
}

#[derive(Deserialize)]
struct TeamDiagnostic {
    kind: String,
}

impl TeamAnswer {
    fn of(daemon: &mut ChildDaemon, text: &str) -> anyhow::Result<Self> {
        let params = json!({ "query": text, "limit": PAGE }).to_string();
        let answered = daemon.call("list_sessions", &params)?;
        serde_json::from_str(answered.get()).context("read the answer to list_sessions")
    }

    /// Whether the servers have not answered yet.
    fn is_late(&self) -> bool {
        let diagnostic = self.team_diagnostic.as_ref();
        diagnostic.is_some_and(|it| it.kind == Kind::LogUnavailable.name())
    }

    fn rows(&self) -> Vec<ListedRow> {
        let row = |row: &TeamRow| ListedRow {
            session_id: row.session_id.clone(),
            path: PathBuf::new(),
            name: row.name.clone(),
            first_message: String::new(),
            cwd: String::new(),
            native_ids: Vec::new(),
            same_conversation: Vec::new(),
            modified: row.modified.clone(),
        };
        self.team.iter().map(row).collect()
    }
}

/// The file of a session that is only in the team's stream. It is copied from there; `None` if no session there fits.
fn of_the_log(daemon: &mut ChildDaemon, text: &str) -> anyhow::Result<Option<PathBuf>> {
    let mut answer = TeamAnswer::of(daemon, text)?;
    // A list waits for the servers only for a moment. Opening a session waits for them as long as they need.
    if answer.is_late() && matches!(choose(text, &answer.rows()), Err(ChoiceProblem::None)) {
        match copied(daemon, text) {
            Ok(path) => return Ok(Some(path)),
            Err(error) if failure::kind(&error) == Some(Kind::LogUnavailable) => return Err(error),
            // The text may be the name of a session.
            Err(_) => {}
        }
        let began = Instant::now();
        while answer.is_late() && began.elapsed() < LATE {
            std::thread::sleep(LATE_PAUSE);
            answer = TeamAnswer::of(daemon, text)?;
        }
    }
    match choose(text, &answer.rows()) {
        Ok(row) => copied(daemon, &row.session_id).map(Some),
        Err(ChoiceProblem::Several(error)) => Err(error.into()),
        Err(ChoiceProblem::None) => Ok(None),
    }
}

/// The file of the session with this id. It is copied if the session is only in the team's stream.
fn copied(daemon: &mut ChildDaemon, id: &str) -> anyhow::Result<PathBuf> {
    #[derive(Deserialize)]
    struct Opened {
        session: OpenedSession,
    }
    #[derive(Deserialize)]
    struct OpenedSession {
        path: PathBuf,
    }
    let params = json!({ "sessionId": id }).to_string();
    let opened = daemon.call("open_session", &params)?;
    let opened: Opened =
        serde_json::from_str(opened.get()).context("read the answer to open_session")?;
    daemon.call("close_session", &params)?;
    Ok(opened.session.path)
}

/// The absolute path of an existing file. A file that exists but cannot be read is included: opening it then reports
/// the reason.
pub(super) fn existing_file(text: &str) -> anyhow::Result<Option<PathBuf>> {
    let path = Path::new(text);
    let exists = match path.metadata() {
        Ok(metadata) => !metadata.is_dir(),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    };
    match exists {
        true => Ok(Some(std::path::absolute(path).context("find the file")?)),
        false => Ok(None),
    }
}

/// Finds a session by its id, else by its name, else by its id in another tool, else by the beginning of its id.
pub(super) fn choose<'r>(
    text: &str,
    rows: &'r [ListedRow],
) -> Result<&'r ListedRow, ChoiceProblem> {
    let is_long = text.chars().count() >= FEWEST;
    let tests: [&dyn Fn(&ListedRow) -> bool; 5] = [
        &|row| row.session_id == *text,
        &|row| row.name.as_deref() == Some(text),
        &|row| row.native_ids.iter().any(|id| id == text),
        &|row| is_long && row.session_id.starts_with(text),
        &|row| is_long && row.native_ids.iter().any(|id| id.starts_with(text)),
    ];
    for fits in tests {
        let found: Vec<&ListedRow> = rows.iter().filter(|row| fits(row)).collect();
        match found.as_slice() {
            [] => {}
            [row] => return Ok(row),
            several => return Err(ChoiceProblem::Several(ambiguous(text, several))),
        }
    }
    Err(ChoiceProblem::None)
}

fn ambiguous(text: &str, rows: &[&ListedRow]) -> ShellError {
    let mut message = format!("{} sessions fit {text:?}:", rows.len());
    message += &listed(rows);
    ShellError::new(USAGE, message, "more of the id, or the path of the file")
}

/// The first sessions, one on each line.
fn listed(rows: &[&ListedRow]) -> String {
    let mut message = String::new();
    for row in rows.iter().take(LISTED) {
        let name = title(row.name.as_deref(), &row.first_message);
        // A line break in a name would begin a new line of the list.
        let name = name.replace(['\n', '\r'], " ");
        message += &format!("\n  {}  {}  {name}", row.session_id, row.modified);
    }
    if let Some(more @ 1..) = rows.len().checked_sub(LISTED) {
        message += &format!("\n  and {more} more");
    }
    message
}

/// The error for a session that is not in the list. The session may be in the trash.
fn missing(daemon: &mut ChildDaemon, text: &str, rows: &[ListedRow]) -> anyhow::Result<ShellError> {
    let deleted = deleted(daemon)?;
    Ok(match choose(text, &deleted) {
        Err(ChoiceProblem::None) => not_found(text, rows),
        Ok(_) | Err(ChoiceProblem::Several(_)) => {
            let message = format!("the session {text:?} is in the trash (sessionNotFound)");
            ShellError::new(
                NOT_FOUND,
                message,
                format!("treelined restore {text:?}, which brings it back"),
            )
        }
    })
}

fn not_found(text: &str, rows: &[ListedRow]) -> ShellError {
    if Path::new(text).is_dir() {
        let message =
            format!("{text:?} is a folder, and no session has this name (sessionNotFound)");
        let remedy = "a file in it, or treelined list --all";
        return ShellError::new(NOT_FOUND, message, remedy);
    }
    let is_path = text.contains('/') || text.ends_with(".jsonl");
    if is_path {
        let message = format!("there is no file {text:?} (sessionNotFound)");
        return ShellError::new(NOT_FOUND, message, "treelined list --all");
    }
    // In the list, a session without a name has its first message as a title, so a person may have typed this title.
    let begins = |row: &&ListedRow| row.name.is_none() && row.first_message == *text;
    let begun: Vec<&ListedRow> = rows.iter().filter(begins).collect();
    if !text.is_empty() && !begun.is_empty() {
        let message = format!(
            "no session has the name {text:?} (sessionNotFound), but these begin with it:{}",
            listed(&begun)
        );
        return ShellError::new(
            NOT_FOUND,
            message,
            "the beginning of an id, with 4 characters or more",
        );
    }
    let short =
        text.chars().count() < FEWEST && rows.iter().any(|row| row.session_id.starts_with(text));
    let names = rows.iter().filter_map(|row| row.name.as_deref());
    let meant = match short {
        true => format!("; the beginning of an id has {FEWEST} characters or more"),
        false => suggest::hint(text, names),
    };
    let message = format!("there is no session {text:?}{meant} (sessionNotFound)");
    ShellError::new(NOT_FOUND, message, "treelined list --all")
}

fn latest(daemon: &mut ChildDaemon) -> anyhow::Result<PathBuf> {
    let cwd = current_directory()?;
    let params = json!({ "cwd": cwd, "limit": 1 }).to_string();
    let page = page(daemon, &params)?;
    let row = page.sessions.into_iter().next();
    let missing = || {
        let message = format!("there is no session of the directory {cwd} (sessionNotFound)");
        ShellError::new(NOT_FOUND, message, "treelined list --all")
    };
    Ok(row.map(|row| row.path).ok_or_else(missing)?)
}

pub(super) fn current_directory() -> anyhow::Result<String> {
    let cwd = std::env::current_dir().context("find the current directory")?;
    Ok(cwd.display().to_string())
}
