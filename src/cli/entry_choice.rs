//! Finds the entry that a person names by its id, its label, or the beginning of its id, in this order. All commands
//! with an entry as an argument use this module.
//!
//! A label comes before the beginning of an id, since a person has chosen the label. The same holds for names of
//! sessions.

use super::daemon::ChildDaemon;
use super::drawing::DrawnRow;
use super::failure::{ErrorResponse, NOT_FOUND, ShellError, USAGE};
use super::listed;
use super::opened::OpenedSession;
use super::session_choice::{FEWEST, choose};
use super::tree_rows::{self, rows};
use serde_json::json;
use treelined_core::error::Kind;
use treelined_core::suggest;
use treelined_core::terminal;

/// The most entries that are listed if several fit.
const LISTED: usize = 20;
/// The most entries that are listed if none fits.
const PROPOSED: usize = 5;
/// The width of a listed entry in columns.
const COLUMNS: usize = 76;

/// The id of the entry. The error is a [`ShellError`], or a failure of the daemon.
pub(super) fn find(
    daemon: &mut ChildDaemon,
    session: &OpenedSession,
    text: &str,
) -> anyhow::Result<String> {
    if is_id(daemon, text)? {
        return Ok(text.to_owned());
    }
    let labelled = rows(
        daemon,
        json!({ "filter": "labeled-only", "archived": true }),
        |_| true,
    )?;
    let has_label = |row: &&DrawnRow| row.label.as_deref() == Some(text.trim());
    let with_label: Vec<&DrawnRow> = labelled.iter().filter(has_label).collect();
    if let Some(id) = only(text, "have the label", &with_label)? {
        return Ok(id);
    }
    // A long id is shown without its end, with `…` in its place.
    let beginning = text.trim_end_matches('…');
    let begins = |row: &DrawnRow| !beginning.is_empty() && row.id.starts_with(beginning);
    let begun = rows(daemon, json!({ "filter": "all", "archived": true }), begins)?;
    let is_long = beginning.chars().count() >= FEWEST;
    let begun: Vec<&DrawnRow> = begun.iter().collect();
    if is_long && let Some(id) = only(text, "have ids that begin with", &begun)? {
        return Ok(id);
    }
    let hint = match begun.is_empty() {
        false => format!("; the beginning of an id has {FEWEST} characters or more"),
        true => {
            let labels = labelled.iter().filter_map(|row| row.label.as_deref());
            suggest::hint(text, labels)
        }
    };
    Err(missing(daemon, session, text, &hint, &labelled)?.into())
}

/// Whether an entry has exactly this id.
fn is_id(daemon: &mut ChildDaemon, text: &str) -> anyhow::Result<bool> {
    if text.is_empty() {
        return Ok(false);
    }
    let answered = daemon.call("get_label", &json!({ "entryId": text }).to_string());
    let Err(error) = answered else {
        return Ok(true);
    };
    let unknown = Kind::EntryNotFound.name();
    let response = error.downcast_ref::<ErrorResponse>();
    match response.and_then(ErrorResponse::kind) {
        Some(kind) if kind == unknown => Ok(false),
        _ => Err(error),
    }
}

/// The id of the only row; `None` if there are no rows; an error if there are several.
fn only(text: &str, what: &str, found: &[&DrawnRow]) -> Result<Option<String>, ShellError> {
    match found {
        [] => Ok(None),
        [row] => Ok(Some(row.id.clone())),
        several => {
            let message = format!(
                "{} entries {what} {text:?}:{}",
                several.len(),
                lines(several, LISTED)
            );
            Err(ShellError::new(USAGE, message, "the id of one of them"))
        }
    }
}

/// The error for an entry that was not found. It lists entries that the person may have meant.
fn missing(
    daemon: &mut ChildDaemon,
    session: &OpenedSession,
    text: &str,
    hint: &str,
    labelled: &[DrawnRow],
) -> anyhow::Result<ShellError> {
    let title = session.title();
    let mut message = format!("there is no entry {text:?} in {title:?}{hint} (entryNotFound)");
    if choose(text, &listed::rows(daemon)?).is_ok() {
        message += &format!("; {text:?} is a session, which comes before the entry");
    }
    let saying = match text.trim().is_empty() {
        true => Vec::new(),
        false => tree_rows::first(daemon, json!({ "query": text }), PROPOSED)?,
    };
    let (what, found) = match saying.is_empty() {
        true => ("these have a label", labelled),
        false => ("these say it", saying.as_slice()),
    };
    if !found.is_empty() {
        let found: Vec<&DrawnRow> = found.iter().collect();
        message += &format!("; {what}:{}", lines(&found, PROPOSED));
    }
    let remedy = format!(
        "the id, its beginning ({FEWEST} characters or more) or the label of an entry; \
         treelined tree {} --ids shows them",
        session.session_id
    );
    Ok(ShellError::new(NOT_FOUND, message, remedy))
}

/// The first rows, one on each line.
fn lines(rows: &[&DrawnRow], most: usize) -> String {
    let shown = rows.iter().take(most).map(|row| {
        let line = row.plain();
        format!("\n  {}", terminal::cut(&line, COLUMNS, "…"))
    });
    let mut lines: String = shown.collect();
    if let Some(more @ 1..) = rows.len().checked_sub(most) {
        lines += &format!("\n  and {more} more");
    }
    lines
}
