//! `treelined show`: a branch of a session as text, from the first entry to one entry.

use super::daemon::ChildDaemon;
use super::entry_choice;
use super::failure::ShellError;
use super::opened::{SessionUse, open};
use super::options::Options;
use super::scratch::Scratch;
use super::screen::Screen;
use super::session_choice::SessionQuery;
use super::session_words::WordsWanted;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined show                      the newest session of this directory
  treelined show \"A tour\" q2          the branch that ends at the entry q2
  treelined show --latest \"a label\"   the same in the newest session, at the entry with this label
  treelined tree \"A tour\" --ids       shows the ids of the entries")]
pub(crate) struct ShowArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_or_entries))]
    session: Option<String>,
    /// The last entry of the branch by its id, label or beginning of the id [default: the leaf]
    #[arg(value_name = "ENTRY", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    entry: Option<String>,
    /// The session of this directory with the last activity; the first argument is then ENTRY
    #[arg(long)]
    latest: bool,
}

impl ShowArgs {
    /// The session, and the entry.
    fn wanted(&self) -> Result<(SessionQuery, Option<&str>), ShellError> {
        let names: &[&str] = match (self.latest, &self.session) {
            (true, Some(_)) => &["the entry"],
            _ => &[],
        };
        let wanted = WordsWanted {
            command: "show",
            names,
        };
        match (&self.session, &self.entry) {
            (Some(session), Some(entry)) if !self.latest => {
                Ok((SessionQuery::Named(session.clone()), Some(entry)))
            }
            (session, entry) => {
                let (query, words) = wanted.split(session.iter().chain(entry), self.latest)?;
                Ok((query, words.first().copied()))
            }
        }
    }
}

pub(super) fn run(options: &Options, show: &ShowArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let text = text(&mut daemon, show);
    daemon.end()?;
    let text = text?;
    let mut screen = Screen::paged(options);
    for line in text.lines() {
        // A tab is no harm, and its picture would spoil code.
        let line = line.replace('\t', "    ");
        writeln!(screen, "{}", terminal::line(&line))?;
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn text(daemon: &mut ChildDaemon, show: &ShowArgs) -> anyhow::Result<String> {
    let (session, entry) = show.wanted()?;
    let session = open(daemon, &session, SessionUse::Read)?;
    let entry = match entry {
        Some(entry) => Some(entry_choice::find(daemon, &session, entry)?),
        None => None,
    };
    let folder = Scratch::new("show")?;
    let file = folder.0.join("text");
    let params = json!({
        "format": "text",
        "scope": "branch",
        "entryId": entry,
        "path": file.display().to_string(),
        "redact": false,
    });
    daemon.call("export_session", &params.to_string())?;
    std::fs::read_to_string(&file).context("read the text")
}
