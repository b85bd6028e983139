//! Finds the session that a person names, in the same way as the commands of treelined: by its path, its id, its name,
//! or the beginning of its id, in this order. Sessions that only the team has are found too. If the text names a folder
//! and no session, the folder's list of sessions is shown.

use crate::daemon;
use crate::message::Target;
use crate::shell_error::{FAILED, NOT_FOUND, ShellError, USAGE};
use std::io::ErrorKind;
use std::path::Path;
use treelined_client::{Builder, Client, Error, SessionRow, TeamSessionRow};

/// The remedy if the daemon cannot be started.
const NAME_THE_DAEMON: &str = "--daemon PROGRAM or TREELINED_BIN; without them the daemon is beside this program or on the PATH";

/// The fewest characters that count as the beginning of an id.
const FEWEST: usize = 4;

/// The most sessions that are listed if several fit.
const LISTED: usize = 20;

/// The number of rows on a page of the list.
const PAGE: u64 = 1000;

/// The session or the folder that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Session(Target),
    /// The absolute path of an existing folder.
    Folder(String),
}

/// Finds the session or the folder. The daemon is asked unless the text is the path of a file.
pub async fn find(builder: &Builder, named: &str) -> Result<Choice, ShellError> {
    if let Some(path) = existing_file(named) {
        return Ok(Choice::Session(Target::Path(path)));
    }
    let client = builder.spawn().await.map_err(|error| of_daemon(&error))?;
    let found = ask(&client, named).await;
    // All requests are answered, so the end of the daemon does not matter.
    let _ended = client.close().await;
    found.map_err(|error| of_daemon(&error))?
}

/// The error for a daemon that does not start or does not answer.
fn of_daemon(error: &Error) -> ShellError {
    let message = daemon::reason(error);
    match error {
        Error::CannotStart { .. } => ShellError::new(FAILED, message, NAME_THE_DAEMON),
        _ => ShellError::from(message),
    }
}

async fn ask(client: &Client, named: &str) -> Result<Result<Choice, ShellError>, Error> {
    let (rows, team) = rows(client, named).await?;
    let here = rows.iter().map(Candidate::from);
    let listed: Vec<Candidate> = here.chain(team.iter().map(Candidate::from)).collect();
    Ok(match choose(named, &listed) {
        Ok(Some(at)) => Ok(Choice::Session(match (rows.get(at), listed.get(at)) {
            (Some(row), _) => Target::Path(row.path.clone()),
            (None, Some(of_team)) => Target::Id(of_team.id.to_owned()),
            (None, None) => return Ok(Err(missing(named))),
        })),
        Err(several) => Err(several),
        Ok(None) => match (folder(named), first_message(named, &listed)) {
            (Some(folder), _) => Ok(Choice::Folder(folder)),
            (None, Some(error)) => Err(error),
            (None, None) => Err(deleted(client, named)
                .await?
                .unwrap_or_else(|| missing(named))),
        },
    })
}

/// All sessions that have a file, and sessions that only the team has. If the team has more than a page of them, only
/// sessions that `named` may mean are included. The sessions with the latest activity come first.
async fn rows(
    client: &Client,
    named: &str,
) -> Result<(Vec<SessionRow>, Vec<TeamSessionRow>), Error> {
    let mut rows = Vec::new();
    let mut team = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut call = client.list_sessions().limit(PAGE);
        if let Some(cursor) = cursor {
            call = call.cursor(cursor);
        }
        let page = call.await?;
        rows.extend(page.sessions);
        if let Some(listed) = page.team {
            let count = listed.len() as u64;
            team = match page.team_count.is_some_and(|all| all > count) {
                true => {
                    let fitting = client.list_sessions().query(named).limit(PAGE).await?;
                    fitting.team.unwrap_or_default()
                }
                false => listed,
            };
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok((rows, team));
        }
    }
}

/// The error for a session in the trash; `None` if no session there fits.
async fn deleted(client: &Client, named: &str) -> Result<Option<ShellError>, Error> {
    let trash = client.list_trash().await?.sessions;
    let listed: Vec<Candidate> = trash
        .iter()
        .map(|row| Candidate {
            id: &row.session_id,
            name: row.name.as_deref(),
            about: &row.first_message,
            when: &row.deleted_at,
        })
        .collect();
    Ok(match choose(named, &listed) {
        Ok(None) => None,
        Ok(Some(_)) | Err(_) => Some(ShellError::new(
            NOT_FOUND,
            format!("the session {named:?} is in the trash (sessionNotFound)"),
            format!("treelined restore {named:?}, which brings it back"),
        )),
    })
}

fn missing(named: &str) -> ShellError {
    let is_path = named.contains('/') || named.ends_with(".jsonl");
    let kind = if is_path { "file" } else { "session" };
    let message = format!("there is no {kind} {named:?} (sessionNotFound)");
    ShellError::new(NOT_FOUND, message, "treelined list --all")
}

/// The absolute path of an existing file. A file that exists but cannot be read is included: opening it then reports
/// the reason.
fn existing_file(named: &str) -> Option<String> {
    let path = Path::new(named);
    let exists = match path.metadata() {
        Ok(metadata) => !metadata.is_dir(),
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    };
    let path = exists.then(|| std::path::absolute(path).ok())??;
    Some(path.to_string_lossy().into_owned())
}

fn folder(named: &str) -> Option<String> {
    let path = Path::new(named).canonicalize().ok()?;
    path.is_dir().then(|| path.to_string_lossy().into_owned())
}

/// A session that a person may have named.
struct Candidate<'r> {
    id: &'r str,
    name: Option<&'r str>,
    about: &'r str,
    when: &'r str,
}

impl<'r> From<&'r SessionRow> for Candidate<'r> {
    fn from(row: &'r SessionRow) -> Self {
        Self {
            id: &row.session_id,
            name: row.name.as_deref(),
            about: &row.first_message,
            when: &row.modified,
        }
    }
}

impl<'r> From<&'r TeamSessionRow> for Candidate<'r> {
    fn from(row: &'r TeamSessionRow) -> Self {
        Self {
            id: &row.session_id,
            name: row.name.as_deref(),
            about: "",
            when: row.modified.as_deref().unwrap_or_default(),
        }
    }
}

/// Returns the index of a session: by its id, else by its name, else by the beginning of its id.
fn choose(named: &str, rows: &[Candidate<'_>]) -> Result<Option<usize>, ShellError> {
    let is_long = named.chars().count() >= FEWEST;
    let tests: [&dyn Fn(&Candidate<'_>) -> bool; 3] = [
        &|row| row.id == named,
        &|row| row.name == Some(named),
        &|row| is_long && row.id.starts_with(named),
    ];
    for fits in tests {
        let fitting = rows.iter().enumerate().filter(|(_, row)| fits(row));
        let found: Vec<(usize, &Candidate<'_>)> = fitting.collect();
        match found.as_slice() {
            [] => {}
            [(at, _)] => return Ok(Some(*at)),
            several => return Err(ambiguous(named, several)),
        }
    }
    Ok(None)
}

fn ambiguous(named: &str, rows: &[(usize, &Candidate<'_>)]) -> ShellError {
    let rows: Vec<&Candidate<'_>> = rows.iter().map(|(_, row)| *row).collect();
    let message = format!("{} sessions fit {named:?}:{}", rows.len(), lines(&rows));
    ShellError::new(USAGE, message, "more of the id, or the path of the file")
}

/// The error for a text that is the first message of sessions without a name. The list shows this message in place of a
/// name.
fn first_message(named: &str, rows: &[Candidate<'_>]) -> Option<ShellError> {
    let begins = |row: &&Candidate<'_>| row.name.is_none() && row.about == named;
    let found: Vec<&Candidate<'_>> = rows.iter().filter(begins).collect();
    if named.is_empty() || found.is_empty() {
        return None;
    }
    let message = format!(
        "no session has the name {named:?} (sessionNotFound), but these begin with it:{}",
        lines(&found)
    );
    let remedy = "the beginning of an id, with 4 characters or more";
    Some(ShellError::new(NOT_FOUND, message, remedy))
}

/// The first sessions, one on each line.
fn lines(rows: &[&Candidate<'_>]) -> String {
    let mut message = String::new();
    for row in rows.iter().take(LISTED) {
        let title = row.name.unwrap_or(row.about).replace('\n', " ");
        message += &format!("\n  {}  {}  {title}", row.id, row.when);
    }
    if let Some(more @ 1..) = rows.len().checked_sub(LISTED) {
        message += &format!("\n  and {more} more");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'r>(id: &'r str, name: Option<&'r str>) -> Candidate<'r> {
        Candidate {
            id,
            name,
            about: "first",
            when: "today",
        }
    }

    #[test]
    fn an_id_is_before_a_name_and_a_name_before_a_beginning() {
        let rows = [
            row("abcd1111", Some("abcd2222")),
            row("abcd2222", Some("tour")),
            row("tour9999", None),
        ];
        for (named, at) in [("abcd2222", 1), ("tour", 1), ("tour9", 2), ("abcd1", 0)] {
            assert_eq!(choose(named, &rows), Ok(Some(at)), "{named}");
        }
        for named in ["abc", "tou", "nobody"] {
            assert_eq!(choose(named, &rows), Ok(None), "{named}");
            assert_eq!(first_message(named, &rows), None, "{named}");
        }
        let begun = first_message("first", &rows).unwrap();
        assert_eq!(begun.code, NOT_FOUND);
        assert!(
            begun.message.ends_with("\n  tour9999  today  first"),
            "{begun}"
        );
        let several = choose("abcd", &rows).unwrap_err();
        assert_eq!(several.code, USAGE);
        assert_eq!(
            several.to_string(),
            "error: 2 sessions fit \"abcd\":\n  abcd1111  today  abcd2222\n  abcd2222  today  tour\n  \
             try: more of the id, or the path of the file"
        );
    }
}
