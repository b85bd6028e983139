//! `treelined label`: labels an entry, or removes its label.

use super::daemon::{ChildDaemon, RawJson};
use super::drawing::DrawnRow;
use super::entry_choice;
use super::failure::{NOT_FOUND, ShellError};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::position;
use super::screen::Screen;
use super::session_choice::SessionQuery;
use super::session_words::WordsWanted;
use super::tree_rows::entry_row;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::terminal;

const ENTRY_AND_TEXT: WordsWanted = WordsWanted {
    command: "label",
    names: &["the entry", "the label (--remove removes one)"],
};
const ENTRY: WordsWanted = WordsWanted {
    command: "label",
    names: &["the entry"],
};

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined label [OPTIONS] [SESSION] <ENTRY> <TEXT>\n       \
                      treelined label [OPTIONS] [SESSION] <ENTRY> --remove",
    after_help = "\
Examples:
  treelined label q2 \"works on Linux\"             labels the entry q2 in the newest session of this directory
  treelined label \"A tour\" q2 \"works on Linux\"    the same, in a session by its name
  treelined label \"A tour\" q2 --remove            removes the label
  treelined tree \"A tour\" --ids                   shows the ids of the entries
  treelined tree \"A tour\" --filter labeled-only   shows the entries with a label

Every command that takes an ENTRY finds it by its label."
)]
pub(crate) struct LabelArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_and_entries))]
    first: Option<String>,
    /// The entry by its id, present label or beginning of the id
    #[arg(value_name = "ENTRY", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    second: Option<String>,
    /// The label; it replaces an earlier one
    #[arg(value_name = "TEXT")]
    third: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// Remove the label of the entry; exit code 3 if it has none
    #[arg(long)]
    remove: bool,
    /// Print the result of append_label as JSON
    #[arg(long)]
    json: bool,
}

/// An entry, and the label that it gets.
struct LabelRequest {
    session: SessionQuery,
    entry: String,
    /// The label; `None` removes the label.
    text: Option<String>,
}

#[derive(Deserialize)]
struct GetLabelAnswer {
    label: Option<String>,
}

impl LabelArgs {
    fn request(&self) -> Result<LabelRequest, ShellError> {
        let wanted = if self.remove { ENTRY } else { ENTRY_AND_TEXT };
        let given = [&self.first, &self.second, &self.third];
        if self.remove && self.third.is_some() {
            return Err(wanted.wrong("--remove takes no label"));
        }
        let (session, words) = wanted.split(given.into_iter().flatten(), self.latest)?;
        let mut words = words.into_iter().map(str::to_owned);
        let (entry, text) = (words.next().unwrap_or_default(), words.next());
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(wanted.wrong("the label is blank; --remove removes one"));
        }
        Ok(LabelRequest {
            session,
            entry,
            text,
        })
    }
}

pub(super) fn run(options: &Options, label: &LabelArgs) -> anyhow::Result<ExitCode> {
    let request = label.request()?;
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let done = append(&mut daemon, &request);
    daemon.end()?;
    let (answered, row) = done?;
    let mut screen = Screen::new();
    match &request.text {
        _ if label.json => writeln!(screen, "{}", terminal::json(answered.get()))?,
        Some(_) => position::line(&mut screen, "labelled", &row)?,
        None => position::line(&mut screen, "removed the label of", &row)?,
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn append(daemon: &mut ChildDaemon, request: &LabelRequest) -> anyhow::Result<(RawJson, DrawnRow)> {
    let session = open(daemon, &request.session, SessionUse::Write)?;
    let entry = entry_choice::find(daemon, &session, &request.entry)?;
    if request.text.is_none() {
        let params = json!({ "entryId": entry }).to_string();
        let answered = daemon.call("get_label", &params)?;
        let found: GetLabelAnswer =
            serde_json::from_str(answered.get()).context("read the answer to get_label")?;
        if found.label.is_none() {
            let message = format!("the entry {entry:?} has no label");
            let remedy = "treelined tree SESSION --filter labeled-only --ids";
            return Err(ShellError::new(NOT_FOUND, message, remedy).into());
        }
    }
    let params = json!({ "targetId": entry, "label": request.text });
    let answered = daemon.call("append_label", &params.to_string())?;
    Ok((answered, entry_row(daemon, &entry)?))
}
