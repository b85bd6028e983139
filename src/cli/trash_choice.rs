//! Finds the deleted session that a person names, for the commands that restore or remove it.

use super::failure::{NOT_FOUND, ShellError};
use super::listed::{ListedRow, TrashRow};
use super::session_choice::{ChoiceProblem, choose};
use anyhow::Context;
use std::path::Path;

/// Finds a deleted session by its file in the trash, else by its id, else by its name or the beginning of its id. If
/// several sessions fit, the session that was deleted last is chosen.
pub(super) fn find<'r>(rows: &'r [TrashRow], text: &str) -> anyhow::Result<&'r TrashRow> {
    let path = std::path::absolute(text).context("find the file")?;
    // The rows are sorted by time of deletion, the last one first.
    let exact = rows
        .iter()
        .find(|row| Path::new(&row.trashed_path) == path)
        .or_else(|| rows.iter().find(|row| row.session_id == text));
    if let Some(row) = exact {
        return Ok(row);
    }
    let listed: Vec<ListedRow> = rows.iter().map(TrashRow::listed).collect();
    let found = match choose(text, &listed) {
        Ok(row) => rows
            .iter()
            .find(|it| Path::new(&it.trashed_path) == row.path),
        Err(ChoiceProblem::Several(error)) => return Err(error.into()),
        Err(ChoiceProblem::None) => None,
    };
    Ok(found.ok_or_else(|| nothing(&format!("{text} is not in the trash")))?)
}

pub(super) fn nothing(message: &str) -> ShellError {
    ShellError::new(
        NOT_FOUND,
        message,
        "treelined restore, which lists the deleted sessions; treelined rm deletes one",
    )
}
