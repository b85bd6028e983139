//! `treelined erase`: removes sessions of a team for good (fleet.md "Erasure").

use super::daemon::{ChildDaemon, RawJson};
use super::failure::{ShellError, USAGE};
use super::listed::{TrashRow, trashed};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::screen::Screen;
use super::session_choice::SessionQuery;
use super::trash_choice::find;
use super::words::title;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined erase \"A tour\"    removes it for the whole team, after a question

Nothing brings an erased session back, and no machine can publish it again. A team on NATS cannot erase: its streams keep \
all. treelined rm moves a session to the trash.")]
pub(crate) struct EraseArgs {
    /// Sessions by their files, ids, names or beginnings of the ids
    #[arg(value_name = "SESSION", required = true,
          add = ArgValueCompleter::new(super::candidates::sessions))]
    sessions: Vec<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print the result of erase_session as JSON, a line for each
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct EraseResult {
    remains: Vec<String>,
}

pub(super) fn run(options: &Options, erase: &EraseArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let chosen = erase.sessions.iter().map(|text| choose(&mut daemon, text));
    let chosen: Vec<(String, String)> = chosen.collect::<anyhow::Result<_>>()?;
    if !erase.yes && !is_confirmed(&chosen)? {
        daemon.end()?;
        writeln!(io::stderr(), "nothing was erased")?;
        return Ok(ExitCode::FAILURE);
    }
    let mut screen = Screen::new();
    for (id, shown) in &chosen {
        let params = json!({ "sessionId": id }).to_string();
        let answered: RawJson = daemon.call("erase_session", &params)?;
        if erase.json {
            writeln!(screen, "{}", terminal::json(answered.get()))?;
            continue;
        }
        let result: EraseResult =
            serde_json::from_str(answered.get()).context("understand erase_session")?;
        writeln!(screen, "erased: {}", terminal::line(shown))?;
        for remains in &result.remains {
            writeln!(screen, "  can remain: {}", terminal::line(remains))?;
        }
    }
    daemon.end()?;
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The id and the title of the session that a text names. It may be in the trash.
fn choose(daemon: &mut ChildDaemon, text: &str) -> anyhow::Result<(String, String)> {
    let query = SessionQuery::Named(text.to_owned());
    let error = match open(daemon, &query, SessionUse::Read) {
        Ok(session) => return Ok((session.session_id.clone(), session.title().to_owned())),
        Err(error) => error,
    };
    let rows: Vec<TrashRow> = trashed(daemon)?;
    let row = find(&rows, text).map_err(|_| error)?;
    let shown = title(row.name.as_deref(), &row.first_message);
    Ok((row.session_id.clone(), shown.to_owned()))
}

/// Asks the person at the terminal. Only the answer yes confirms.
fn is_confirmed(chosen: &[(String, String)]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "erase asks before it removes anything, and there is no terminal to ask at";
        return Err(ShellError::new(USAGE, message, "--yes, which answers it").into());
    }
    let mut stderr = io::stderr().lock();
    for (id, shown) in chosen {
        writeln!(stderr, "  {}", terminal::line(&format!("{id}  {shown}")))?;
    }
    write!(stderr, "Erase for the whole team? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
