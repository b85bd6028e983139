//! `treelined show`: a branch of a session as text, from the first entry to one entry.

use super::branch_choice::BranchChoice;
use super::daemon::ChildDaemon;
use super::entry_choice;
use super::opened::{SessionUse, open};
use super::options::Options;
use super::scratch::Scratch;
use super::screen::Screen;
use anyhow::Context;
use clap::Args;
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
    #[command(flatten)]
    branch: BranchChoice,
}

pub(super) fn run(options: &Options, show: &ShowArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let text = text(&mut daemon, show);
    daemon.end()?;
    let text = text?;
    let mut screen = Screen::paged(options);
    for line in text.lines() {
        // A tab is harmless, and the picture of a control character in its place would spoil code.
        let line = line.replace('\t', "    ");
        writeln!(screen, "{}", terminal::line(&line))?;
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn text(daemon: &mut ChildDaemon, show: &ShowArgs) -> anyhow::Result<String> {
    let (session, entry) = show.branch.wanted("show")?;
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
