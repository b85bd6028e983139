//! `treelined tag`, `treelined pin` and `treelined archive-session`: sort sessions.

use super::daemon::{ChildDaemon, RawJson};
use super::opened::{OpenedSession, SessionUse, open};
use super::options::Options;
use super::screen::Screen;
use super::session_choice::SessionQuery;
use super::session_words::WordsWanted;
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
    override_usage = "treelined tag [OPTIONS] [SESSION] <TAG>[,TAG]...",
    after_help = "\
Examples:
  treelined tag build              tags the newest session of this directory
  treelined tag a1b2c3d4 build,ui  gives a session two tags
  treelined tag build --remove     removes a tag
  treelined list --all --tag build"
)]
pub(crate) struct TagArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(super::candidates::sessions))]
    first: Option<String>,
    /// One tag, or several tags with commas between them; a tag is one word, with or without #
    #[arg(value_name = "TAG")]
    second: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// Remove the tags
    #[arg(long)]
    remove: bool,
    /// Print the result of tag_session as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined pin                    pins the newest session of this directory
  treelined pin a1b2c3d4 --remove  removes the pin
  treelined list --all --pinned")]
pub(crate) struct PinArgs {
    #[command(flatten)]
    of: MarkedSession,
    /// Remove the pin
    #[arg(long)]
    remove: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined archive-session a1b2c3d4           leaves a session out of lists
  treelined list --all --archived              shows archived sessions too
  treelined archive-session a1b2c3d4 --remove  brings it back")]
pub(crate) struct ArchiveSessionArgs {
    #[command(flatten)]
    of: MarkedSession,
    /// Bring the session back into lists
    #[arg(long)]
    remove: bool,
}

// The session to mark. This is not a doc comment, since that would become the help of the commands.
#[derive(Debug, Args)]
struct MarkedSession {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(super::candidates::sessions))]
    session: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long, conflicts_with = "session")]
    latest: bool,
    /// Print the result of mark_session as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Tagged {
    tags: Vec<String>,
}

pub(super) fn tag(options: &Options, tag: &TagArgs) -> anyhow::Result<ExitCode> {
    let wanted = WordsWanted {
        command: "tag",
        names: &["a tag"],
    };
    let (session, words) =
        wanted.split([&tag.first, &tag.second].into_iter().flatten(), tag.latest)?;
    let tags: Vec<&str> = words.iter().flat_map(|words| words.split(',')).collect();
    let change = if tag.remove { "remove" } else { "add" };
    let call = |daemon: &mut ChildDaemon, _: &OpenedSession| {
        daemon.call("tag_session", &json!({ change: tags }).to_string())
    };
    run(
        options,
        &session,
        tag.json,
        SessionUse::Write,
        call,
        |title, answered| {
            let Tagged { tags } =
                serde_json::from_str(answered.get()).context("read the answer to tag_session")?;
            let tags: Vec<String> = tags.iter().map(|tag| format!("#{tag}")).collect();
            Ok(match tags.is_empty() {
                true => format!("{title:?} has no tags now"),
                false => format!("{title:?} has now {}", tags.join(" ")),
            })
        },
    )
}

pub(super) fn pin(options: &Options, pin: &PinArgs) -> anyhow::Result<ExitCode> {
    let said = if pin.remove {
        "is not pinned now"
    } else {
        "is pinned now"
    };
    pin.of.mark(options, "pinned", !pin.remove, said)
}

pub(super) fn archive(options: &Options, archive: &ArchiveSessionArgs) -> anyhow::Result<ExitCode> {
    let said = match archive.remove {
        true => "is in lists again",
        false => "is archived; treelined list --archived shows it",
    };
    archive.of.mark(options, "archived", !archive.remove, said)
}

impl MarkedSession {
    fn mark(
        &self,
        options: &Options,
        member: &str,
        value: bool,
        said: &str,
    ) -> anyhow::Result<ExitCode> {
        let session = SessionQuery::or_latest(self.session.as_ref());
        let call = |daemon: &mut ChildDaemon, session: &OpenedSession| {
            let params: Value = json!({ "sessionId": session.session_id, member: value });
            daemon.call("mark_session", &params.to_string())
        };
        run(
            options,
            &session,
            self.json,
            SessionUse::Read,
            call,
            |title, _| Ok(format!("{title:?} {said}")),
        )
    }
}

/// Opens the session, makes the call, and prints its result.
fn run(
    options: &Options,
    session: &SessionQuery,
    json: bool,
    used: SessionUse,
    call: impl FnOnce(&mut ChildDaemon, &OpenedSession) -> anyhow::Result<RawJson>,
    said: impl FnOnce(&str, &RawJson) -> anyhow::Result<String>,
) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::shared_or_own(options)?;
    let done = open(&mut daemon, session, used).and_then(|session| {
        let answered = call(&mut daemon, &session)?;
        Ok((session, answered))
    });
    daemon.end()?;
    let (session, answered) = done?;
    let line = match json {
        true => terminal::json(answered.get()).into_owned(),
        false => said(session.title(), &answered)?,
    };
    let mut screen = Screen::new();
    writeln!(screen, "{}", terminal::line(&line))?;
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}
