//! `treelined undo` and `treelined redo`: reverse the last move of a session, and make it again.

use super::daemon::{ChildDaemon, RawJson};
use super::failure::{ErrorResponse, ShellError};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::position::{self, Position};
use super::screen::Screen;
use super::session_choice::{SessionChoice, SessionQuery};
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::error::Kind;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined undo             in the newest session of this directory
  treelined undo \"A tour\"    in a session by its name
  treelined redo             makes the move again

The file keeps the moves of go, undo and redo, and the moves of other clients. No move removes an entry.")]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    session: SessionChoice,
    /// Print the result of undo_navigation or redo_navigation as JSON
    #[arg(long)]
    json: bool,
}

/// One of the two commands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reversal {
    pub method: &'static str,
    /// The command that reverses this command.
    pub opposite: &'static str,
    /// The message if there is no move to undo or redo.
    pub missing: &'static str,
}

pub(super) const UNDO: Reversal = Reversal {
    method: "undo_navigation",
    opposite: "redo",
    missing: "there is no move to undo",
};
pub(super) const REDO: Reversal = Reversal {
    method: "redo_navigation",
    opposite: "undo",
    missing: "there is no undone move",
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    new_leaf_id: Option<String>,
}

pub(super) fn run(options: &Options, undo: &UndoArgs, verb: Reversal) -> anyhow::Result<ExitCode> {
    let query = undo.session.query();
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let done = reverse(&mut daemon, &query, verb);
    daemon.end()?;
    let (answered, position) = done?;
    let mut screen = Screen::new();
    match undo.json {
        true => writeln!(screen, "{}", terminal::json(answered.get()))?,
        false => {
            position.show(&mut screen, "now at")?;
            position::way_back(&mut screen, verb.opposite, &query)?;
        }
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn reverse(
    daemon: &mut ChildDaemon,
    query: &SessionQuery,
    verb: Reversal,
) -> anyhow::Result<(RawJson, Position)> {
    let session = open(daemon, query, SessionUse::Write)?;
    let answered = daemon.call(verb.method, "{}");
    let answered = answered.map_err(|error| match is_nothing(&error) {
        true => ShellError::failed(
            format!("{} in {:?} (nothingToUndo)", verb.missing, session.title()),
            format!(
                "treelined tree {}, which shows the leaf",
                session.session_id
            ),
        ),
        false => error,
    })?;
    let moved: Moved = serde_json::from_str(answered.get()).context("read the answer")?;
    let position = Position::of(daemon, &session, query, moved.new_leaf_id.as_deref())?;
    Ok((answered, position))
}

fn is_nothing(error: &anyhow::Error) -> bool {
    let response = error.downcast_ref::<ErrorResponse>();
    let kind = response.and_then(ErrorResponse::kind);
    kind.is_some_and(|kind| kind == Kind::NothingToUndo.name())
}
