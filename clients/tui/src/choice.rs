//! Finds the session that a person names, as the commands of treelined do: by its path, its id, its name, or the
//! beginning of its id, in this order. A folder that is none of these shows its list of sessions.

use crate::message::Target;
use crate::shell_error::{NOT_FOUND, ShellError, USAGE};
use std::io::ErrorKind;
use std::path::Path;
use treelined_client::{Builder, Client, Error, SessionRow};

/// The fewest characters of the beginning of an id.
const FEWEST: usize = 4;

/// The most sessions that are listed when several fit.
const LISTED: usize = 20;

/// Rows of a page of the list.
const PAGE: u64 = 1000;

/// The argument of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Session(Target),
    /// An existing folder; absolute.
    Folder(String),
}

/// Finds the session or the folder. A daemon is asked unless the text is the path of a file.
pub async fn find(builder: &Builder, named: &str) -> Result<Found, ShellError> {
    if let Some(path) = existing_file(named) {
        return Ok(Found::Session(Target::Path(path)));
    }
    let failed = |error: Error| ShellError::from(error.to_string());
    let client = builder.spawn().await.map_err(failed)?;
    let found = ask(&client, named).await;
    // All that was asked is answered.
    let _ended = client.close().await;
    found.map_err(failed)?
}

async fn ask(client: &Client, named: &str) -> Result<Result<Found, ShellError>, Error> {
    let rows = rows(client).await?;
    let listed: Vec<Listed> = rows.iter().map(Listed::from).collect();
    Ok(match choose(named, &listed) {
        Ok(Some(at)) => match rows.get(at) {
            Some(row) => Ok(Found::Session(Target::Path(row.path.clone()))),
            None => Err(missing(named)),
        },
        Err(several) => Err(several),
        Ok(None) => match folder(named) {
            Some(folder) => Ok(Found::Folder(folder)),
            None => Err(deleted(client, named)
                .await?
                .unwrap_or_else(|| missing(named))),
        },
    })
}

/// All sessions, those with the last activity first.
async fn rows(client: &Client) -> Result<Vec<SessionRow>, Error> {
    let mut rows = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut call = client.list_sessions().limit(PAGE);
        if let Some(cursor) = cursor {
            call = call.cursor(cursor);
        }
        let page = call.await?;
        rows.extend(page.sessions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(rows);
        }
    }
}

/// The error for a session that is in the trash; `None` if none fits.
async fn deleted(client: &Client, named: &str) -> Result<Option<ShellError>, Error> {
    let trash = client.list_trash().await?.sessions;
    let listed: Vec<Listed> = trash
        .iter()
        .map(|row| Listed {
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

/// The absolute path of an existing file. A file that may not be read counts: opening it says so.
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

/// A session among which a person chooses.
struct Listed<'r> {
    id: &'r str,
    name: Option<&'r str>,
    about: &'r str,
    when: &'r str,
}

impl<'r> From<&'r SessionRow> for Listed<'r> {
    fn from(row: &'r SessionRow) -> Self {
        Self {
            id: &row.session_id,
            name: row.name.as_deref(),
            about: &row.first_message,
            when: &row.modified,
        }
    }
}

/// Returns the place of the row with this id, with this name, or with an id that begins so.
fn choose(named: &str, rows: &[Listed<'_>]) -> Result<Option<usize>, ShellError> {
    let is_long = named.chars().count() >= FEWEST;
    let tests: [&dyn Fn(&Listed<'_>) -> bool; 3] = [
        &|row| row.id == named,
        &|row| row.name == Some(named),
        &|row| is_long && row.id.starts_with(named),
    ];
    for fits in tests {
        let fitting = rows.iter().enumerate().filter(|(_, row)| fits(row));
        let found: Vec<(usize, &Listed<'_>)> = fitting.collect();
        match found.as_slice() {
            [] => {}
            [(at, _)] => return Ok(Some(*at)),
            several => return Err(ambiguous(named, several)),
        }
    }
    Ok(None)
}

fn ambiguous(named: &str, rows: &[(usize, &Listed<'_>)]) -> ShellError {
    let mut message = format!("{} sessions fit {named:?}:", rows.len());
    for (_, row) in rows.iter().take(LISTED) {
        let title = row.name.unwrap_or(row.about).replace('\n', " ");
        message += &format!("\n  {}  {}  {title}", row.id, row.when);
    }
    if let Some(more @ 1..) = rows.len().checked_sub(LISTED) {
        message += &format!("\n  and {more} more");
    }
    ShellError::new(USAGE, message, "more of the id, or the path of the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'r>(id: &'r str, name: Option<&'r str>) -> Listed<'r> {
        Listed {
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
        }
        let several = choose("abcd", &rows).unwrap_err();
        assert_eq!(several.code, USAGE);
        assert_eq!(
            several.to_string(),
            "error: 2 sessions fit \"abcd\":\n  abcd1111  today  abcd2222\n  abcd2222  today  tour\n  \
             try: more of the id, or the path of the file"
        );
    }
}
