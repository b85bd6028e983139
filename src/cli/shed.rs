//! `treelined shed` and `treelined unshed`: move archived branches into the cold file, and back.

use super::daemon::{ChildDaemon, RawJson};
use super::du::amount;
use super::entry_choice;
use super::opened::{SessionUse, open};
use super::options::Options;
use super::screen::Screen;
use super::session_choice::{SessionChoice, SessionQuery};
use super::words::count;
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined branches --archived    shows the archived branches
  treelined shed                   moves them out of the session file of the newest session of this directory
  treelined shed --branch q2       moves only the branch of the entry q2
  treelined unshed                 moves all of them back

The lines go into a file with the ending .cold beside the session file, and the session opens faster. A branch stays \
if an entry outside it refers to one of its entries, or if it has a label, a note or a name of the session.")]
pub(crate) struct ShedArgs {
    #[command(flatten)]
    session: SessionChoice,
    /// Only the archived branch of this entry, by its id, label or beginning of the id; can be given several times
    #[arg(long, value_name = "ENTRY")]
    branch: Vec<String>,
    /// Print the result of shed_branches as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined unshed                 moves all shed branches back, in the newest session of this directory
  treelined unshed --branch q2     moves only the branch of the entry q2

The branches are archived as before; treelined unarchive shows one again.")]
pub(crate) struct UnshedArgs {
    #[command(flatten)]
    session: SessionChoice,
    /// Only the shed branch of the entry with this id; can be given several times
    #[arg(long, value_name = "ENTRY")]
    branch: Vec<String>,
    /// Print the result of unshed_branches as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    #[serde(default)]
    shed: Vec<ShedBranch>,
    #[serde(default)]
    staying: Vec<Staying>,
    #[serde(default)]
    entry_ids: Vec<String>,
}

/// A branch whose lines are in the cold file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShedBranch {
    entry_id: String,
    entries: u64,
    bytes: u64,
    name: Option<String>,
    first_prompt: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Staying {
    entry_id: String,
    reason: String,
    by: Option<String>,
}

impl ShedBranch {
    /// The id, the size and the title of the branch, safe for a terminal.
    pub(super) fn line(&self) -> String {
        let title = self.name.as_deref().or(self.first_prompt.as_deref());
        let entries = count(self.entries, "entry", "entries");
        let line = format!(
            "shed {}  {entries}, {}  {}",
            self.entry_id,
            amount(self.bytes),
            title.unwrap_or_default()
        );
        terminal::line(line.trim_end()).into_owned()
    }
}

pub(super) fn shed(options: &Options, args: &ShedArgs) -> anyhow::Result<ExitCode> {
    let query = args.session.query();
    run(options, "shed_branches", &query, &args.branch, args.json)
}

pub(super) fn unshed(options: &Options, args: &UnshedArgs) -> anyhow::Result<ExitCode> {
    let query = args.session.query();
    run(options, "unshed_branches", &query, &args.branch, args.json)
}

fn run(
    options: &Options,
    method: &str,
    query: &SessionQuery,
    branches: &[String],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let answered = call(&mut daemon, method, query, branches);
    daemon.end()?;
    let answered = answered?;
    let mut screen = Screen::new();
    if json {
        writeln!(screen, "{}", terminal::json(answered.get()))?;
    } else {
        let moved: Moved = serde_json::from_str(answered.get())
            .with_context(|| format!("read the answer to {method}"))?;
        show(&mut screen, method, &moved)?;
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn call(
    daemon: &mut ChildDaemon,
    method: &str,
    query: &SessionQuery,
    branches: &[String],
) -> anyhow::Result<RawJson> {
    let session = open(daemon, query, SessionUse::Write)?;
    let mut entry_ids = Vec::with_capacity(branches.len());
    for branch in branches {
        // The entries of a shed branch are not in the session, so they are named by their ids.
        entry_ids.push(match method {
            "shed_branches" => entry_choice::find(daemon, &session, branch)?,
            _ => branch.clone(),
        });
    }
    let params = match entry_ids.is_empty() {
        true => json!({}),
        false => json!({ "entryIds": entry_ids }),
    };
    daemon.call(method, &params.to_string())
}

fn show(screen: &mut Screen, method: &str, moved: &Moved) -> io::Result<()> {
    for branch in &moved.shed {
        writeln!(screen, "{}", branch.line())?;
    }
    for branch in &moved.staying {
        let by = branch.by.as_deref();
        let why = match (branch.reason.as_str(), by) {
            ("named", Some(by)) => format!("{by} names an entry of it"),
            ("names", Some(by)) => format!("{by} is a label, a note or a name of the session"),
            ("damaged", _) => "a line of it is damaged, too long, or there twice".to_owned(),
            (reason, _) => reason.to_owned(),
        };
        let line = format!("stays {}  {why}", branch.entry_id);
        writeln!(screen, "{}", terminal::line(&line))?;
    }
    for entry_id in &moved.entry_ids {
        writeln!(
            screen,
            "{}",
            terminal::line(&format!("brought back {entry_id}"))
        )?;
    }
    if moved.shed.is_empty() && moved.staying.is_empty() && moved.entry_ids.is_empty() {
        let nothing = match method {
            "shed_branches" => "no archived branch",
            _ => "no shed branch",
        };
        writeln!(screen, "{nothing}")?;
    }
    Ok(())
}
