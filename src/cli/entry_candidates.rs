//! The labels and ids of entries with which a shell may complete an argument.
//!
//! The entries are from the session that an earlier word on the line names, or from the latest session of this
//! directory.

use super::candidates::{listed, sessions, unquoted, with_help};
use super::daemon::ChildDaemon;
use super::drawing::DrawnRow;
use super::opened::{SessionUse, open};
use super::session_choice::SessionQuery;
use super::tree_rows::rows;
use clap_complete::engine::CompletionCandidate;
use serde_json::json;
use std::ffi::{OsStr, OsString};
use treelined_core::terminal;

/// The most ids that are offered. They belong to the newest entries.
const MOST: usize = 200;

/// The labels, ids and sessions that begin with the typed text.
pub(super) fn sessions_and_entries(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = entries_of(current, &[]);
    if !is_latest() {
        found.extend(sessions(current));
    }
    found
}

/// The sessions that begin with the typed text. With `--latest`, the labels and ids of entries of the latest
/// session.
pub(super) fn sessions_or_entries(current: &OsStr) -> Vec<CompletionCandidate> {
    match is_latest() {
        true => entries_of(current, &[]),
        false => sessions(current),
    }
}

/// The labels and ids that begin with the typed text, from the session that an earlier word names.
pub(super) fn entries(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<OsString> = std::env::args_os().collect();
    entries_of(current, &words_before(&words, current))
}

fn is_latest() -> bool {
    std::env::args_os().any(|word| word == "--latest")
}

fn entries_of(current: &OsStr, words: &[String]) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    let found = listed(|daemon| rows_of(daemon, words));
    let mut offered = Vec::new();
    let is_clean =
        |text: &&String| text.starts_with(&typed) && !text.contains(terminal::is_control);
    for row in &found {
        if let Some(label) = row.label.as_ref().filter(is_clean) {
            offered.push(with_help(label, &row.preview));
        }
    }
    let ids = found.iter().rev().filter(|row| is_clean(&&row.id));
    offered.extend(ids.take(MOST).map(|row| {
        let about = format!("{}: {}", row.speaker(), row.preview);
        with_help(&row.id, &about)
    }));
    offered
}

/// The rows of the session that the first fitting word names, or else of the latest session.
fn rows_of(daemon: &mut ChildDaemon, words: &[String]) -> anyhow::Result<Vec<DrawnRow>> {
    let named = words.iter().map(|word| SessionQuery::Named(word.clone()));
    for query in named.chain([SessionQuery::Latest]) {
        if open(daemon, &query, SessionUse::Read).is_ok() {
            return rows(daemon, json!({}), |_| true);
        }
    }
    Ok(Vec::new())
}

/// The words after the command, without options and without the word that is being completed. `words` are the
/// arguments of the process that the shell has started.
fn words_before(words: &[OsString], current: &OsStr) -> Vec<String> {
    let typed = words.iter().skip_while(|word| *word != "--").skip(2);
    let mut typed: Vec<&OsString> = typed.collect();
    if typed.last().is_some_and(|last| *last == current) {
        typed.pop();
    }
    let words = typed.iter().map(|word| word.to_string_lossy());
    let words = words.filter(|word| !word.is_empty() && !word.starts_with('-'));
    words.skip(1).map(|word| unquoted(&word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_before_are_those_of_the_command_line_without_options() {
        for (line, current, before) in [
            ("x -- treelined go", "", ""),
            ("x -- treelined go tour q", "q", "tour"),
            ("x -- treelined go tour --summary q", "q", "tour"),
            ("x -- treelined compare tour a1 a", "a", "tour a1"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            let found = words_before(&words, OsStr::new(current));
            assert_eq!(found.join(" "), before, "{line}");
        }
    }
}
