//! `treelined show`: a branch of a session as text, from the first entry to one entry.

use super::branch_choice::BranchChoice;
use super::daemon::{ChildDaemon, RawJson};
use super::entry_choice;
use super::opened::{SessionUse, open};
use super::options::Options;
use super::scratch::Scratch;
use super::screen::{Screen, Style};
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::author::Author;
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
    let (text, writer) = text?;
    let mut screen = Screen::paged(options);
    for line in text.lines() {
        // A tab is harmless, and the picture of a control character in its place would spoil code.
        let line = line.replace('\t', "    ");
        writeln!(screen, "{}", terminal::line(&line))?;
    }
    if let Some(writer) = writer {
        let writer = screen.style(Style::Dim, &terminal::line(&writer));
        writeln!(screen, "\n{writer}")?;
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The text of the branch, and the writer of its last entry.
fn text(daemon: &mut ChildDaemon, show: &ShowArgs) -> anyhow::Result<(String, Option<String>)> {
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
    let text = std::fs::read_to_string(&file).context("read the text")?;
    let writer = match entry.or(session.leaf_id) {
        Some(entry) => writer(daemon, &entry)?,
        None => None,
    };
    Ok((text, writer))
}

/// The writer that an entry names. The servers of the team are not asked, so that the session is also shown when they
/// cannot be reached.
fn writer(daemon: &mut ChildDaemon, entry: &str) -> anyhow::Result<Option<String>> {
    #[derive(Deserialize)]
    struct Found {
        entry: RawJson,
    }
    let answered = daemon.call("get_entry", &json!({ "entryId": entry }).to_string())?;
    let found: Found = serde_json::from_str(answered.get()).context("read the entry")?;
    let author = Author::of(found.entry.get().as_bytes());
    Ok(author.map(|by| {
        format!(
            "the last entry is by {} on {} (unverified)",
            by.name, by.host
        )
    }))
}
