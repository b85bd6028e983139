//! The candidates with which a shell may complete an argument.

use super::daemon::ChildDaemon;
use super::listed::{ListedRow, deleted, rows};
use super::options::Options;
use super::words::title;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use treelined_core::search::{CompletionItem, complete};
use treelined_core::terminal;
use treelined_service::rpc;

/// The most names and ids that are offered. The sessions with the newest activity come first.
const MOST_SESSIONS: usize = 200;

/// The most characters of the name beside an id.
const HELP_CHARS: usize = 60;

/// The methods that begin with the typed text.
pub(super) fn methods(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let names = rpc::method_names().filter(|name| name.starts_with(&*current));
    names.map(CompletionCandidate::new).collect()
}

/// The ids and names of sessions that begin with the typed text, and session files.
pub(super) fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    let mut found = of_rows(&listed(rows), &typed);
    let is_session =
        |path: &Path| path.is_dir() || path.extension().is_some_and(|end| end == "jsonl");
    found.extend(
        PathCompleter::any()
            .filter(is_session)
            .complete(OsStr::new(&typed)),
    );
    found
}

/// The ids and names of deleted sessions that begin with the typed text.
pub(super) fn deleted_sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    of_rows(&listed(deleted), &typed)
}

/// The names and ids in these rows that begin with the typed text.
fn of_rows(rows: &[ListedRow], typed: &str) -> Vec<CompletionCandidate> {
    let mut found = Vec::new();
    for row in rows {
        if found.len() >= MOST_SESSIONS {
            break;
        }
        let name = row.name.as_deref().filter(|name| name.starts_with(typed));
        // A name with a control character is not offered, since the character would reach the
        // terminal.
        if let Some(name) = name.filter(|name| !name.contains(terminal::is_control)) {
            found.push(CompletionCandidate::new(name));
        }
        found.extend(id_of(row, typed));
    }
    found
}

/// The directories of sessions that begin with the typed text.
pub(super) fn directories(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    let found = listed(rows);
    let cwds = found.iter().map(|row| row.cwd.as_str());
    let fitting =
        cwds.filter(|cwd| cwd.starts_with(&*typed) && !cwd.contains(terminal::is_control));
    let distinct: BTreeSet<&str> = fitting.collect();
    let distinct = distinct.into_iter().take(MOST_SESSIONS);
    distinct.map(CompletionCandidate::new).collect()
}

/// The ids of all sessions, deleted ones included, that begin with the typed text.
pub(super) fn all_ids(current: &OsStr) -> Vec<CompletionCandidate> {
    ids(current, |daemon| {
        let mut all = rows(daemon)?;
        all.extend(deleted(daemon)?);
        Ok(all)
    })
}

/// The filters of a search that begin with the typed text, or the values of a filter.
pub(super) fn filters(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let completed = complete(&typed, usize::MAX);
    let before: String = typed.chars().take(completed.start).collect();
    let items = completed.items.into_iter();
    let candidate = |item: CompletionItem| {
        let about = Some(item.about).filter(|about| !about.is_empty());
        CompletionCandidate::new(format!("{before}{}", item.text)).help(about.map(Into::into))
    };
    items.map(candidate).collect()
}

/// The addresses for `--listen` that begin with the typed text.
pub(super) fn addresses(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let forms = ["stdio", "unix", "unix:", "ws", "ws:127.0.0.1:"];
    let fitting = forms.into_iter().filter(|form| form.starts_with(&*current));
    fitting.map(CompletionCandidate::new).collect()
}

fn ids(
    current: &OsStr,
    read: impl FnOnce(&mut ChildDaemon) -> anyhow::Result<Vec<ListedRow>>,
) -> Vec<CompletionCandidate> {
    let typed = unquoted(&current.to_string_lossy());
    let found = listed(read);
    let fitting = found.iter().filter_map(|row| id_of(row, &typed));
    fitting.take(MOST_SESSIONS).collect()
}

/// The id of a session as a candidate, with its name as the explanation; `None` if it does not
/// begin with the typed text.
fn id_of(row: &ListedRow, typed: &str) -> Option<CompletionCandidate> {
    if !row.session_id.starts_with(typed) || row.session_id.contains(terminal::is_control) {
        return None;
    }
    let about = title(row.name.as_deref(), &row.first_message);
    Some(with_help(&row.session_id, about))
}

/// A candidate with an explanation beside it.
pub(super) fn with_help(word: &str, about: &str) -> CompletionCandidate {
    let about: String = terminal::line(about).chars().take(HELP_CHARS).collect();
    CompletionCandidate::new(word).help(Some(about.into()))
}

/// The rows that `read` gets from a daemon for the session directory of the command line; empty if `read` fails.
pub(super) fn listed<R>(read: impl FnOnce(&mut ChildDaemon) -> anyhow::Result<Vec<R>>) -> Vec<R> {
    let options = Options {
        session_dir: directory_of(std::env::args_os()),
        ..Options::default()
    };
    let found = ChildDaemon::start_silent(&options).and_then(|mut daemon| {
        let rows = read(&mut daemon);
        daemon.end()?;
        rows
    });
    found.unwrap_or_default()
}

/// The word that a shell makes of the typed text, which may have backslashes and begin with a
/// quote.
pub(super) fn unquoted(typed: &str) -> String {
    let typed = typed.strip_prefix(['"', '\'']).unwrap_or(typed);
    let mut word = String::with_capacity(typed.len());
    let mut chars = typed.chars();
    while let Some(char) = chars.next() {
        word.extend(match char {
            '\\' => chars.next(),
            _ => Some(char),
        });
    }
    word
}

/// The value of the option `--session-dir` in these words.
fn directory_of(words: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let mut words = words.skip_while(|word| word != "--session-dir");
    words.nth(1).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Marks of direction, separators of lines and tags were once offered.
    #[test]
    fn a_word_that_a_terminal_obeys_is_not_offered() {
        let offered = |end: &str| {
            let row = json!({
                "sessionId": format!("id{end}"), "name": format!("name{end}"), "path": "/s.jsonl", "firstMessage": "",
                "modified": ""
            });
            let row: ListedRow = serde_json::from_value(row).unwrap();
            of_rows(&[row], "").len()
        };
        assert_eq!(offered(""), 2);
        for end in ["\n", "\u{200f}", "\u{2028}", "\u{202e}", "\u{e0041}"] {
            assert_eq!(offered(end), 0, "{end:?}");
        }
    }

    #[test]
    fn a_typed_word_is_read_without_its_quotes() {
        for (typed, word) in [
            ("A\\ to", "A to"),
            ("\"A to", "A to"),
            ("'A to", "A to"),
            ("it\\'s\\\\", "it's\\"),
            ("a\\", "a"),
        ] {
            assert_eq!(unquoted(typed), word, "{typed}");
        }
    }
}
