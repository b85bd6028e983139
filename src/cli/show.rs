//! `treelined show`: a branch of a session as text, from the first entry to one entry.

use super::daemon::ChildDaemon;
use super::options::Options;
use super::scratch::Scratch;
use super::screen::Screen;
use super::session_choice::SessionQuery;
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
  treelined show --latest             the newest session of this directory
  treelined show \"A tour\" q2          the branch that ends at the entry q2
  treelined tree \"A tour\" --ids       shows the ids of the entries")]
pub(crate) struct ShowArgs {
    /// A session: its file, its id, its name, or the beginning of its id (4 characters or more)
    #[arg(value_name = "SESSION", required_unless_present = "latest",
          add = ArgValueCompleter::new(super::candidates::sessions))]
    session: Option<String>,
    /// The last entry of the branch, by its id [default: the leaf]
    #[arg(value_name = "ENTRY")]
    entry: Option<String>,
    /// The session of this directory with the last activity; the first argument is then ENTRY
    #[arg(long)]
    latest: bool,
}

impl ShowArgs {
    /// The session, and the entry.
    fn wanted(&self) -> (SessionQuery, Option<&String>) {
        match (&self.session, self.latest) {
            (Some(session), false) => (SessionQuery::Named(session.clone()), self.entry.as_ref()),
            (entry, _) => (SessionQuery::Latest, entry.as_ref()),
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
    let (session, entry) = show.wanted();
    let path = session.find(daemon)?;
    let params = json!({ "path": path.display().to_string(), "mode": "read" });
    daemon.call("open_session", &params.to_string())?;
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
