//! `treelined name`: gives a session a name, or removes it.

use super::daemon::{ChildDaemon, RawJson};
use super::failure::{ShellError, USAGE};
use super::listed::rows;
use super::opened::{OpenedSession, SessionUse, open};
use super::options::Options;
use super::screen::Screen;
use super::session_choice::{SessionQuery, choose};
use super::session_words::WordsWanted;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use treelined_core::terminal;

const NAME: WordsWanted = WordsWanted {
    command: "name",
    names: &["the name (--remove removes one)"],
};
const NOTHING: WordsWanted = WordsWanted {
    command: "name",
    names: &[],
};

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined name [OPTIONS] [SESSION] <NAME>\n       \
                      treelined name [OPTIONS] [SESSION] --remove",
    after_help = "\
Examples:
  treelined name \"The build\"          names the newest session of this directory
  treelined name a1b2c3d4 \"The build\" names a session by the beginning of its id
  treelined name \"The build\" --remove removes the name of the session with this name"
)]
pub(crate) struct NameArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::candidates::sessions))]
    first: Option<String>,
    /// The name; it replaces an earlier one
    #[arg(value_name = "NAME")]
    second: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// Remove the name of the session
    #[arg(long)]
    remove: bool,
    /// Print the result of set_session_name as JSON
    #[arg(long)]
    json: bool,
}

impl NameArgs {
    /// The session and its new name; an empty name removes the name.
    fn request(&self) -> Result<(SessionQuery, &str), ShellError> {
        let given = [&self.first, &self.second].into_iter().flatten();
        let wanted = if self.remove { NOTHING } else { NAME };
        if self.remove && self.second.is_some() {
            return Err(wanted.wrong("--remove takes no name"));
        }
        let (session, words) = wanted.split(given, self.latest)?;
        let name = words.first().copied();
        if name.is_some_and(|name| name.trim().is_empty()) {
            return Err(wanted.wrong("the name is blank; --remove removes one"));
        }
        Ok((session, name.unwrap_or_default()))
    }
}

pub(super) fn run(options: &Options, arguments: &NameArgs) -> anyhow::Result<ExitCode> {
    let (query, name) = arguments.request()?;
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let is_unsaid = query == SessionQuery::Latest && !arguments.latest;
    let done = set(&mut daemon, &query, name, is_unsaid);
    daemon.end()?;
    let (session, answered) = done?;
    let mut screen = Screen::new();
    let before = session.title();
    let said = match name {
        _ if arguments.json => terminal::json(answered.get()).into_owned(),
        "" => format!("{before:?} has no name now"),
        name => format!("{before:?} is now {:?}", name.trim()),
    };
    writeln!(screen, "{}", terminal::line(&said))?;
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Sets the name. `is_unsaid` is true if the arguments do not say that the session is the latest session.
fn set(
    daemon: &mut ChildDaemon,
    query: &SessionQuery,
    name: &str,
    is_unsaid: bool,
) -> anyhow::Result<(OpenedSession, RawJson)> {
    if is_unsaid && choose(name, &rows(daemon)?).is_ok() {
        let message = format!("{name:?} is a session, and its new name is missing");
        let remedy =
            "treelined name SESSION NAME; with --latest it is the name of the latest session";
        return Err(ShellError::new(USAGE, message, remedy).into());
    }
    let session = open(daemon, query, SessionUse::Write)?;
    let params = json!({ "name": name }).to_string();
    let answered = daemon.call("set_session_name", &params)?;
    Ok((session, answered))
}
