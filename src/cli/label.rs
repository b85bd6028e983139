//! `treelined label`: labels an entry, or removes its label.

use super::daemon::{ChildDaemon, RawJson};
use super::failure::{NOT_FOUND, ShellError, USAGE};
use super::options::Options;
use super::session_choice::SessionQuery;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined label \"A tour\" q2 \"works on Linux\"    labels the entry q2
  treelined label --latest q2 \"works on Linux\"    the same, in the newest session of this directory
  treelined label \"A tour\" q2 --remove            removes the label
  treelined tree \"A tour\" --ids                   shows the ids of the entries
  treelined tree \"A tour\" --filter labeled-only   shows the entries with a label")]
pub(crate) struct LabelArgs {
    /// A session: its file, its id, its name, or the beginning of its id (4 characters or more)
    #[arg(value_name = "SESSION", required = true,
          add = ArgValueCompleter::new(super::candidates::sessions))]
    session: Option<String>,
    /// The entry, by its id
    #[arg(value_name = "ENTRY")]
    entry: Option<String>,
    /// The label; it replaces an earlier one
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// The session of this directory with the last activity; the first argument is then ENTRY
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
    /// `None` to remove the label.
    text: Option<String>,
}

#[derive(Deserialize)]
struct GetLabelAnswer {
    label: Option<String>,
}

impl LabelArgs {
    fn request(&self) -> Result<LabelRequest, ShellError> {
        let given = [&self.session, &self.entry, &self.text];
        let mut words = given.into_iter().flatten().cloned();
        let session = match self.latest {
            true => Some(SessionQuery::Latest),
            false => words.next().map(SessionQuery::Named),
        };
        let wrong = |message: &str| ShellError::new(USAGE, message, "treelined label --help");
        let (Some(session), Some(entry)) = (session, words.next()) else {
            return Err(wrong("the entry is missing"));
        };
        let text = words.next();
        if words.next().is_some() {
            return Err(wrong("--latest names the session, and SESSION does too"));
        }
        match (&text, self.remove) {
            (None, false) => Err(wrong("the label is missing; --remove removes one")),
            (Some(_), true) => Err(wrong("--remove takes no label")),
            (Some(text), false) if text.trim().is_empty() => {
                Err(wrong("the label is blank; --remove removes one"))
            }
            _ => Ok(LabelRequest {
                session,
                entry,
                text,
            }),
        }
    }
}

pub(super) fn run(options: &Options, label: &LabelArgs) -> anyhow::Result<ExitCode> {
    let request = label.request()?;
    let mut daemon = ChildDaemon::start(options)?;
    let answered = append(&mut daemon, &request);
    daemon.end()?;
    let answered = answered?;
    let mut out = io::stdout().lock();
    let entry = terminal::line(&request.entry);
    match &request.text {
        _ if label.json => writeln!(out, "{}", terminal::json(answered.get()))?,
        Some(text) => writeln!(out, "labelled {entry}: {}", terminal::line(text.trim()))?,
        None => writeln!(out, "removed the label of {entry}")?,
    }
    Ok(ExitCode::SUCCESS)
}

fn append(daemon: &mut ChildDaemon, request: &LabelRequest) -> anyhow::Result<RawJson> {
    let path = request.session.find(daemon)?;
    let params = json!({ "path": path.display().to_string(), "mode": "write" });
    daemon.call("open_session", &params.to_string())?;
    let LabelRequest { entry, text, .. } = request;
    if text.is_none() {
        let answered = daemon.call("get_label", &json!({ "entryId": entry }).to_string())?;
        let found: GetLabelAnswer =
            serde_json::from_str(answered.get()).context("read the answer to get_label")?;
        if found.label.is_none() {
            let message = format!("the entry {entry:?} has no label");
            let remedy = "treelined tree SESSION --filter labeled-only --ids";
            return Err(ShellError::new(NOT_FOUND, message, remedy).into());
        }
    }
    let params = json!({ "targetId": entry, "label": text });
    daemon.call("append_label", &params.to_string())
}
