//! Compares the checklist of `schema/plugins.md` with the sources of the plugins.

use super::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The columns of the checklist, with the files and folders that each plugin consists of.
const PLUGINS: [(&str, &[&str]); 4] = [
    ("Neovim", &["clients/nvim/lua", "clients/nvim/plugin"]),
    ("Emacs", &["clients/emacs"]),
    ("VS Code", &["clients/vscode/src"]),
    ("terminal", &["clients/tui/src"]),
];

/// The rows, each with some words. The sources of a plugin that has the feature must contain one of the words. The
/// sources of a plugin that does not have it must contain none. A row without words is a feature that no word in a
/// source shows, and the tests of the plugins check it.
const ROWS: [(&str, &[&str]); 39] = [
    (
        "one setting shares a daemon",
        &["shared", "treelined-command"],
    ),
    ("says where it looked for the daemon", &["TREELINED_BIN"]),
    ("nothing starts in an untrusted project", &["isTrusted"]),
    (
        "the daemon's log can be shown",
        &["treelined.log'", "treelined-log", "OutputChannel"],
    ),
    (
        "after the daemon's end: place kept, session opened again",
        &["open_session", "openSession"],
    ),
    ("rows by pages, 100,000 entries tested", &["offset"]),
    (
        "follows without polling",
        &["entries_appended", "EntriesAppended"],
    ),
    ("cursor stays on its entry", &[]),
    ("filters, only matching rows", &["matches", "matching"]),
    ("folds", &["fold", "TreeItemCollapsibleState"]),
    ("icons and styles of renderers", &["icon"]),
    ("whole entry beside the tree", &["get_entry"]),
    ("list of sessions follows changes", &["watch_sessions"]),
    ("several projects in one window", &["workspaceFolders"]),
    (
        "number of entries left is said before",
        &["dryRun", "dry_run"],
    ),
    (
        "summary with a focus, streamed, aborted",
        &["summary_delta"],
    ),
    ("undo, redo", &["redo_navigation"]),
    (
        "goes to the leaf of others",
        &["fileLeafId", "file_leaf_id"],
    ),
    (
        "draft of the message to which the user went back",
        &["editorText", "editor_text"],
    ),
    ("draft stays until the daemon has it", &[]),
    (
        "one id per draft, so that the message is there once after a lost answer",
        &[],
    ),
    ("labels", &["append_label"]),
    ("search of all sessions", &["search"]),
    ("compare two branches", &["compare"]),
    ("fork", &["fork_session"]),
    (
        "compact",
        &[
            "\"compact\"",
            "'compact'",
            "client.compact",
            ":compact",
            "compact(",
        ],
    ),
    ("copy an entry to the leaf", &["cherry_pick"]),
    ("ask beside the conversation, and keep it", &["keep_branch"]),
    ("merge the summary of a branch", &["merge_branch"]),
    ("trash", &["delete_session"]),
    ("restore from the trash", &["restore_session"]),
    ("import", &["import_sessions"]),
    ("export", &["export_session"]),
    ("commands of other programs", &["run_command"]),
    (
        "questions, which no typed key answers",
        &["user_asked", "UserAsked"],
    ),
    ("advice for every kind of error", &[]),
    ("position in the status line", &["status"]),
    ("settings and keys listed", &[]),
    ("text of entries controls nothing", &[]),
];

/// The text of all sources below a folder, without tests and documents.
fn text_below(path: &Path, text: &mut String) {
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() && !["test", "tests"].iter().any(|name| path.ends_with(name)) {
            text_below(&path, text);
        } else if ["lua", "el", "ts", "rs"]
            .iter()
            .any(|known| extension == *known)
        {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The rows of the checklist: the name of each, and a cell for each plugin. The headings of groups have empty cells.
fn rows() -> Vec<(String, Vec<String>)> {
    let document = fs::read_to_string(root().join("schema/plugins.md")).unwrap();
    let (_, list) = document.split_once("## The checklist").unwrap();
    let rows = list.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.map(|row| {
        let mut cells = row
            .trim_end_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned());
        (cells.next().unwrap(), cells.collect::<Vec<_>>())
    });
    let rows = rows.filter(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()));
    rows.skip(1).collect()
}

/// The checklist once said that the terminal client cannot fork, compact, copy, import, export and restore, although it
/// could.
#[test]
fn the_checklist_of_plugins_is_what_their_sources_have() {
    let sources = PLUGINS.map(|(_, folders)| {
        let mut text = String::new();
        for folder in folders {
            text_below(&root().join(folder), &mut text);
        }
        text
    });
    let rows = rows();
    let named: BTreeSet<&str> = rows.iter().map(|(row, _)| row.as_str()).collect();
    let known: BTreeSet<&str> = ROWS.iter().map(|(row, _)| *row).collect();
    assert_eq!(named, known, "each row has words here");
    let mut wrong = Vec::new();
    for (row, cells) in &rows {
        assert_eq!(cells.len(), PLUGINS.len(), "{row}");
        let (_, words) = ROWS.iter().find(|(known, _)| known == row).unwrap();
        for ((plugin, _), (cell, text)) in PLUGINS.iter().zip(cells.iter().zip(&sources)) {
            let is_there = words.iter().any(|word| text.contains(word));
            let is_said = !cell.starts_with('—');
            if !words.is_empty() && is_there != is_said {
                wrong.push(format!(
                    "{row}: {plugin} is {cell:?}, and its sources say {is_there}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
