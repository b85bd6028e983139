//! `treelined rm`: moves sessions to the trash.

use super::daemon::{ChildDaemon, RawJson};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::SessionQuery;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::terminal;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined rm \"A tour\"      moves the session to the trash
  treelined restore \"A tour\" brings it back
  treelined purge \"A tour\"   removes it from the disk

You must name a session: this command does not choose one.")]
pub(crate) struct RemoveArgs {
    /// Sessions by their files, ids, names or beginnings of the ids
    #[arg(value_name = "SESSION", required_unless_present = "latest", conflicts_with = "latest",
          add = ArgValueCompleter::new(super::candidates::sessions))]
    sessions: Vec<String>,
    /// The session of this directory with the last activity
    #[arg(long)]
    latest: bool,
    /// Print the result of delete_session as JSON, a line for each session
    #[arg(long)]
    json: bool,
}

/// A session that was moved to the trash.
struct Removed {
    id: String,
    title: String,
    answered: RawJson,
}

pub(super) fn run(options: &Options, remove: &RemoveArgs) -> anyhow::Result<ExitCode> {
    let named = remove.sessions.iter().cloned().map(SessionQuery::Named);
    let latest = remove.latest.then_some(SessionQuery::Latest);
    let queries: Vec<SessionQuery> = named.chain(latest).collect();
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let mut screen = Screen::new();
    let done = queries.iter().try_for_each(|query| {
        let removed = move_away(&mut daemon, query)?;
        show(&mut screen, remove, &removed)
    });
    daemon.end()?;
    screen.finish()?;
    done.map(|()| ExitCode::SUCCESS)
}

fn move_away(daemon: &mut ChildDaemon, query: &SessionQuery) -> anyhow::Result<Removed> {
    let session = open(daemon, query, SessionUse::Write)?;
    let params = json!({ "sessionId": session.session_id }).to_string();
    Ok(Removed {
        title: session.title().to_owned(),
        answered: daemon.call("delete_session", &params)?,
        id: session.session_id,
    })
}

fn show(screen: &mut Screen, remove: &RemoveArgs, removed: &Removed) -> anyhow::Result<()> {
    let Removed {
        id,
        title,
        answered,
    } = removed;
    if remove.json {
        writeln!(screen, "{}", terminal::json(answered.get()))?;
        return Ok(());
    }
    let moved = format!("moved to the trash: {title}");
    let moved = terminal::line(&moved);
    writeln!(screen, "{}", terminal::cut(&moved, screen.columns, "…"))?;
    let back = format!("treelined restore {id} brings it back");
    let back = terminal::line(&back);
    writeln!(screen, "{}", screen.style(Style::Dim, &back))?;
    Ok(())
}
