//! `treelined go`: moves to an entry of a session.

use super::continuation::quoted;
use super::daemon::{ChildDaemon, RawJson};
use super::entry_choice;
use super::failure::{FAILED, ShellError};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::package;
use super::position::{self, Position};
use super::screen::{Screen, Style};
use super::session_choice::SessionQuery;
use super::session_words::WordsWanted;
use super::veto::Verdict;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::terminal;

const WORDS: WordsWanted = WordsWanted {
    command: "go",
    names: &["the entry"],
};

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined go [OPTIONS] [SESSION] <ENTRY>",
    after_help = "\
Examples:
  treelined go a1b2                    moves the newest session of this directory to the entry a1b2…
  treelined go \"works on Linux\"        moves it to the entry with this label
  treelined go \"A tour\" q2 --summary   also writes a summary of the branch that the session leaves
  treelined go q2 --files              also restores the files that were saved at the entry
  treelined undo                       undoes the move"
)]
pub(crate) struct GoArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_and_entries))]
    first: Option<String>,
    /// The entry by its id, label or beginning of the id
    #[arg(value_name = "ENTRY", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    second: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// Write a summary of the branch that the session leaves
    #[arg(long)]
    summary: bool,
    /// The subject of the summary
    #[arg(long, value_name = "TEXT", requires = "summary")]
    focus: Option<String>,
    /// The label for the summary; without --summary, for the entry
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Also restore the files that were saved at the entry (treelined files); shows them and asks first
    #[arg(long, conflicts_with = "json")]
    files: bool,
    /// Print the result of navigate_tree as JSON
    #[arg(long)]
    json: bool,
}

/// The members of the result that the command shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    old_leaf_id: Option<String>,
    new_leaf_id: Option<String>,
    editor_text: Option<String>,
    summary_entry: Option<SummaryEntry>,
}

#[derive(Debug, Deserialize)]
struct Records {
    entries: Vec<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct SummaryEntry {
    id: String,
}

/// The data that the command shows.
struct Shown {
    moved: Moved,
    verdict: Verdict,
    position: Position,
    summary: Option<super::drawing::DrawnRow>,
    /// The session and the entry for `treelined files`, if the session has saved files.
    saved: Option<[String; 2]>,
}

pub(super) fn run(options: &Options, go: &GoArgs) -> anyhow::Result<ExitCode> {
    let given = [&go.first, &go.second].into_iter().flatten();
    let (query, words) = WORDS.split(given, go.latest)?;
    let entry = words.first().copied().unwrap_or_default();
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let done = travel(&mut daemon, go, &query, entry);
    daemon.end()?;
    let (answered, shown) = done?;
    let mut screen = Screen::new();
    if go.json {
        writeln!(screen, "{}", terminal::json(answered.get()))?;
    } else if shown.verdict.why().is_none() {
        show(&mut screen, &shown, &query)?;
    }
    screen.finish()?;
    match (shown.verdict.error(), &shown.saved) {
        (Some(error), _) => Err(error.into()),
        (None, Some([session, entry])) if go.files => {
            let args = ["restore", "--session", session, "--", entry];
            package::become_program(options, "treelined-files", args)
        }
        (None, None) if go.files => {
            let remedy = "run `treelined files on` in the folder: turns from then on are saved";
            Err(ShellError::new(FAILED, "the session has no saved files", remedy).into())
        }
        (None, _) => Ok(ExitCode::SUCCESS),
    }
}

fn travel(
    daemon: &mut ChildDaemon,
    go: &GoArgs,
    query: &SessionQuery,
    entry: &str,
) -> anyhow::Result<(RawJson, Shown)> {
    let session = open(daemon, query, SessionUse::Write)?;
    let target = entry_choice::find(daemon, &session, entry)?;
    let params = json!({
        "targetId": target,
        "summarize": go.summary,
        "customInstructions": go.focus,
        "label": go.label,
    });
    let answered = daemon.call("navigate_tree", &params.to_string())?;
    let moved: Moved =
        serde_json::from_str(answered.get()).context("read the answer to navigate_tree")?;
    let verdict = Verdict::of(answered.get()).context("read the answer to navigate_tree")?;
    let position = Position::of(daemon, &session, query, moved.new_leaf_id.as_deref())?;
    // The leaf is usually at the summary. Then the position already shows the row of the summary.
    let summary = match &moved.summary_entry {
        Some(entry) if !position.is_at(&entry.id) => super::tree_rows::nearest(daemon, &entry.id)?,
        _ => None,
    };
    // Asks for records of saved files (files.md §4).
    let records = r#"{"customType":"files","limit":1}"#;
    let records = daemon.call("get_entries", records)?;
    let records: Records = serde_json::from_str(records.get()).context("read the saved files")?;
    let saved = !records.entries.is_empty();
    let shown = Shown {
        saved: saved.then(|| [session.session_id.clone(), target]),
        moved,
        verdict,
        position,
        summary,
    };
    Ok((answered, shown))
}

fn show(screen: &mut Screen, shown: &Shown, query: &SessionQuery) -> anyhow::Result<()> {
    let moved = &shown.moved;
    let is_there =
        shown.verdict.went_on_with("alreadyThere") || moved.old_leaf_id == moved.new_leaf_id;
    shown
        .position
        .show(screen, if is_there { "already at" } else { "now at" })?;
    if let Some(text) = &moved.editor_text {
        let text: Vec<&str> = text.split_whitespace().collect();
        let text = format!("before “{}”", text.join(" "));
        let text = terminal::line(&text);
        writeln!(screen, "{}", terminal::cut(&text, screen.columns, "…”"))?;
    }
    if let Some(summary) = &shown.summary {
        position::line(screen, "summary", summary)?;
    } else if shown.verdict.went_on_with("nothingToSummarize") {
        writeln!(
            screen,
            "{}",
            screen.style(Style::Dim, "there was nothing to summarize")
        )?;
    }
    if !is_there {
        position::way_back(screen, "undo", query)?;
    }
    if let Some([session, entry]) = &shown.saved {
        let (entry, session) = (quoted(entry), quoted(session));
        let command = format!("treelined files diff --session={session} -- {entry}");
        let line = format!("{} shows how the files were", terminal::line(&command));
        writeln!(screen, "{}", screen.style(Style::Dim, &line))?;
    }
    Ok(())
}
