//! `treelined archive`, `treelined unarchive` and `treelined name-branch`: archives, brings back and
//! names branches.

use super::daemon::{ChildDaemon, RawJson};
use super::drawing::DrawnRow;
use super::entry_choice;
use super::failure::{NOT_FOUND, ShellError};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::position::{self, Position};
use super::screen::Screen;
use super::session_choice::SessionQuery;
use super::session_words::WordsWanted;
use super::tree_rows::entry_row;
use super::veto::Verdict;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined archive [OPTIONS] [SESSION] <ENTRY>",
    after_help = "\
Examples:
  treelined archive q2             archives the branch of the entry q2, in the newest session of this directory
  treelined unarchive q2           brings it back
  treelined branches --archived    shows archived branches too

If the session is on the branch, it first moves to the fork above the branch. Clients and hooks are asked before."
)]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    of: BranchChoice,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined unarchive [OPTIONS] [SESSION] <ENTRY>",
    after_help = "\
Examples:
  treelined branches --archived    shows archived branches too
  treelined unarchive q2           brings back the branch of the entry q2

If a session goes to an entry of an archived branch, that branch is brought back too."
)]
pub(crate) struct UnarchiveArgs {
    #[command(flatten)]
    of: BranchChoice,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined name-branch [OPTIONS] [SESSION] <ENTRY> <NAME>\n       \
                      treelined name-branch [OPTIONS] [SESSION] <ENTRY> --remove",
    after_help = "\
Examples:
  treelined name-branch q2 \"the cache\"   names the branch of the entry q2
  treelined name-branch q2 --remove      removes its name
  treelined branches                     shows the names

The branch keeps its name while it grows. If it forks, the older part keeps the name."
)]
pub(crate) struct NameBranchArgs {
    #[command(flatten)]
    of: BranchChoice,
    /// The name; it replaces an earlier one
    #[arg(value_name = "NAME")]
    third: Option<String>,
    /// Remove the name of the branch
    #[arg(long)]
    remove: bool,
}

// A branch, chosen by one of its entries. This is not a doc comment, since that would become the help
// of the commands.
#[derive(Debug, Args)]
struct BranchChoice {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_and_entries))]
    first: Option<String>,
    /// An entry of the branch by its id, label or beginning of the id
    #[arg(value_name = "ENTRY", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    second: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// Print the result of the method as JSON
    #[arg(long)]
    json: bool,
}

/// A change to a branch.
struct BranchCall<'a> {
    method: &'static str,
    /// The words before the row of the branch that say what was done.
    done: &'static str,
    session: SessionQuery,
    entry: &'a str,
    name: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    entry_id: Option<String>,
    #[serde(default)]
    entry_ids: Vec<String>,
    #[serde(default)]
    old_leaf_id: Option<String>,
    #[serde(default)]
    new_leaf_id: Option<String>,
}

/// The result of a change.
struct Done {
    answered: RawJson,
    row: DrawnRow,
    /// The new position in the session, if the leaf has moved.
    moved: Option<Position>,
    verdict: Option<ShellError>,
}

pub(super) fn archive(options: &Options, archive: &ArchiveArgs) -> anyhow::Result<ExitCode> {
    let wanted = WordsWanted {
        command: "archive",
        names: &["an entry of the branch"],
    };
    let (session, words) = archive.of.split(&wanted, None)?;
    let call = BranchCall {
        method: "archive_branch",
        done: "archived",
        session,
        entry: words.first().copied().unwrap_or_default(),
        name: None,
    };
    call.run(options, archive.of.json)
}

pub(super) fn unarchive(options: &Options, unarchive: &UnarchiveArgs) -> anyhow::Result<ExitCode> {
    let wanted = WordsWanted {
        command: "unarchive",
        names: &["an entry of the branch"],
    };
    let (session, words) = unarchive.of.split(&wanted, None)?;
    let call = BranchCall {
        method: "unarchive_branch",
        done: "brought back",
        session,
        entry: words.first().copied().unwrap_or_default(),
        name: None,
    };
    call.run(options, unarchive.of.json)
}

pub(super) fn name(options: &Options, named: &NameBranchArgs) -> anyhow::Result<ExitCode> {
    let all = WordsWanted {
        command: "name-branch",
        names: &["an entry of the branch", "the name (--remove removes one)"],
    };
    let entry = WordsWanted {
        command: "name-branch",
        names: &["an entry of the branch"],
    };
    let wanted = if named.remove { entry } else { all };
    if named.remove && named.third.is_some() {
        return Err(wanted.wrong("--remove takes no name").into());
    }
    let (session, words) = named.of.split(&wanted, named.third.as_ref())?;
    let name = words.get(1).copied();
    if name.is_some_and(|name| name.trim().is_empty()) {
        let why = "the name is blank; --remove removes one";
        return Err(wanted.wrong(why).into());
    }
    let call = BranchCall {
        method: "name_branch",
        done: if name.is_some() {
            "named"
        } else {
            "removed the name of"
        },
        session,
        entry: words.first().copied().unwrap_or_default(),
        name,
    };
    call.run(options, named.of.json)
}

impl BranchChoice {
    fn split<'a>(
        &'a self,
        wanted: &WordsWanted,
        third: Option<&'a String>,
    ) -> Result<(SessionQuery, Vec<&'a str>), ShellError> {
        let given = [self.first.as_ref(), self.second.as_ref(), third];
        wanted.split(given.into_iter().flatten(), self.latest)
    }
}

impl BranchCall<'_> {
    fn run(&self, options: &Options, json: bool) -> anyhow::Result<ExitCode> {
        let mut daemon = ChildDaemon::shared_or_own(options)?;
        let done = self.call(&mut daemon);
        daemon.end()?;
        let done = done?;
        let mut screen = Screen::new();
        if json {
            writeln!(screen, "{}", terminal::json(done.answered.get()))?;
        } else if done.verdict.is_none() {
            position::line(&mut screen, self.done, &done.row)?;
            if let Some(moved) = &done.moved {
                moved.show(&mut screen, "now at")?;
                position::way_back(&mut screen, "undo", &self.session)?;
            }
        }
        screen.finish()?;
        match done.verdict {
            Some(error) => Err(error.into()),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    fn call(&self, daemon: &mut ChildDaemon) -> anyhow::Result<Done> {
        let session = open(daemon, &self.session, SessionUse::Write)?;
        let entry = entry_choice::find(daemon, &session, self.entry)?;
        let mut params = json!({ "entryId": entry });
        if let (Some(name), Value::Object(params)) = (self.name, &mut params) {
            params.insert("name".to_owned(), json!(name));
        }
        let answered = daemon.call(self.method, &params.to_string())?;
        let changed: Changed = serde_json::from_str(answered.get())
            .with_context(|| format!("read the answer to {}", self.method))?;
        let head = changed
            .entry_id
            .or_else(|| changed.entry_ids.last().cloned());
        let Some(head) = head else {
            let message = format!("the entry {entry:?} is in no archived branch");
            let remedy = "treelined branches SESSION --archived";
            return Err(ShellError::new(NOT_FOUND, message, remedy).into());
        };
        let verdict = Verdict::of(answered.get()).and_then(|verdict| verdict.error());
        let leaf = changed.new_leaf_id;
        let moved = match leaf == changed.old_leaf_id {
            true => None,
            false => {
                let leaf = leaf.as_deref();
                Some(Position::of(daemon, &session, &self.session, leaf)?.untitled())
            }
        };
        Ok(Done {
            row: entry_row(daemon, &head)?,
            answered,
            moved,
            verdict,
        })
    }
}
