//! `treelined push` and `treelined pull`: copy sessions to and from the servers of a team (fleet.md).

use super::failure::{NOT_FOUND, ShellError, USAGE};
use super::listed::ListedRow;
use super::migrate;
use super::options::Options;
use super::push_totals::PushTotals;
use super::screen::{Screen, Style};
use super::session_choice::{ChoiceProblem, FEWEST, SessionQuery, choose};
use super::team::{self, Descriptions};
use super::words::count;
use crate::config::{Config, TeamSettings};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::{TeamQuery, TeamSession};
use treelined_core::terminal;
use treelined_core::timestamp::Millis;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::os::file::Location;
use treelined_files::store::catalogue::CatalogueRow;
use treelined_files::store::{Store, listing};
use treelined_fleet::backend::LogBackend;
use treelined_fleet::engine::Engine;
use treelined_fleet::engines;
use treelined_fleet::files::SessionFiles;
use treelined_fleet::replicated::ReplicatedFile;
use treelined_fleet::replicated::branch::push_branch;
use treelined_fleet::team::TeamRows;
use treelined_fleet::transfer::{self, Transfer};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined push --all                            all sessions of this machine, with [team]
  treelined push SESSION --log nats://10.0.0.1    one session
  treelined push SESSION --branch                 also if another machine has continued the session

A push also sends again what the servers have lost.

A push that is cut off is continued by the next one.")]
pub(crate) struct PushArgs {
    /// Sessions: files, ids, names, or beginnings of ids (4 characters or more)
    #[arg(required_unless_present = "all", value_name = "SESSION",
          add = ArgValueCompleter::new(super::candidates::sessions))]
    sessions: Vec<String>,
    /// All sessions of the session directory
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    /// If the file and the servers both have new lines, send the lines of the file as a branch
    #[arg(long)]
    branch: bool,
    /// Print a line of JSON for each session
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined pull --list            lists the sessions of the team
  treelined pull ID                writes one of them into a file of this machine
  treelined pull \"A tour\"          the same, by its name
  treelined pull ID --follow       the same, and continues with each new line

A pull that is cut off is continued by the next one.")]
pub(crate) struct PullArgs {
    /// Sessions of the team: ids, names, or beginnings of ids (4 characters or more)
    #[arg(required_unless_present_any = ["all", "list"], value_name = "SESSION")]
    sessions: Vec<String>,
    /// All sessions of the team
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    /// List the sessions of the team and the machines that have them open, and copy nothing
    #[arg(long, conflicts_with_all = ["sessions", "all", "follow"])]
    list: bool,
    /// With --list: list only the deleted sessions; `treelined restore ID` brings one back
    #[arg(long, requires = "list")]
    deleted: bool,
    /// Run until interrupted, and write each new line into the file
    #[arg(long, conflicts_with = "all")]
    follow: bool,
    /// Print a line of JSON for each session
    #[arg(long)]
    json: bool,
}

/// The servers in the settings; an error if there are none.
pub(super) fn servers(config: &Config) -> anyhow::Result<TeamSettings> {
    let remedy =
        "--log nats://HOST or postgres://HOST/DATABASE, or [team] in the configuration file";
    let given = config.team.clone();
    given.ok_or_else(|| ShellError::new(USAGE, "no servers are given", remedy).into())
}

pub(super) fn push(options: &Options, args: &PushArgs) -> anyhow::Result<ExitCode> {
    let config = options.config()?;
    let store = Store::new(config.daemon.session_dir.clone());
    let files = match args.all {
        true => by_activity(&store)?,
        false => given_files(options, &args.sessions)?,
    };
    let log = &engines::open(&servers(&config)?, None)?;
    let mut descriptions = Descriptions::of(&**log, config.author.host.clone());
    let mut report = Report::new(
        "pushed",
        "the stream has more; `treelined pull` brings it",
        args.json,
    )
    .skipping_deleted(true);
    let all = files.len();
    for (tried, at) in files.into_iter().enumerate() {
        if report.has_lost_servers {
            report.leave_out(all - tried)?;
            break;
        }
        let path = at.path().display().to_string();
        let pushed = push_file(options, &store, (log, args.branch), at.clone());
        match pushed {
            Ok((session, done)) => {
                descriptions.add(&at, &done);
                report.add(&session, Ok(done))?;
            }
            Err(error) => report.add(&path, Err(error))?,
        }
    }
    descriptions.end()?;
    if args.all {
        report.show_totals()?;
        team::note_missing(&**log)?;
    }
    report.end()
}

/// All session files in the order of their activity, the latest one last. The team's list has the order in which
/// sessions are described.
fn by_activity(store: &Store) -> Result<Vec<Location>> {
    let rows = store.list()?;
    let active = |row: &Arc<CatalogueRow>| (row.listing.path.clone(), row.listing.modified);
    let active: HashMap<PathBuf, Millis> = rows.iter().map(active).collect();
    let files = store.session_files()?.into_iter().map(|(at, _)| at);
    let mut files: Vec<Location> = files.collect();
    files.sort_by_cached_key(|at| {
        let path = at.path();
        (active.get(&path).copied(), path)
    });
    Ok(files)
}

fn given_files(options: &Options, sessions: &[String]) -> anyhow::Result<Vec<Location>> {
    // The daemon that finds the files works without servers, which may be unreachable.
    let alone = Options {
        log: Some("files".to_owned()),
        ..options.clone()
    };
    let find = |text: &String| {
        let path = SessionQuery::Named(text.clone()).find_alone(&alone)?;
        Ok(Location::of_path(&path)?)
    };
    sessions.iter().map(find).collect()
}

fn push_file(
    options: &Options,
    store: &Store,
    (log, may_branch): (&Arc<dyn Engine>, bool),
    at: Location,
) -> Result<(String, Transfer)> {
    let header = listing::header(&at);
    // An old file is migrated first. Otherwise the first write would rewrite the file, and the stream would have other
    // lines than the file.
    if header.is_some_and(|header| header.version < CURRENT_VERSION) {
        let failed = |error: anyhow::Error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::new(Kind::StorageIo, format!("{error:#}")),
        };
        migrate::quietly(options, &at).map_err(failed)?;
    }
    let (files, session) = SessionFiles::with_file(store, at)?;
    let done = match may_branch {
        true => push_branch(&files, &(Arc::clone(log) as Arc<dyn LogBackend>), &session)?,
        false => transfer::push(&files, &**log, &session)?,
    };
    Ok((session, done))
}

/// Makes the file of a session again from the stream in the settings.
pub(super) fn remake(options: &Options, at: Location) -> Result<()> {
    let missing = |error: anyhow::Error| Error::new(Kind::LogMisconfigured, format!("{error:#}"));
    let settings = options.config().map_err(missing)?.team.ok_or_else(|| {
        let why =
            "the file is a replica of the team's stream: name the servers with --log, or in [team]";
        Error::new(Kind::LogMisconfigured, why)
    })?;
    let Some(header) = listing::header(&at) else {
        let why =
            "the file has no header: delete it and its .replica, and `treelined pull` brings it";
        return Err(Error::new(Kind::HeaderMissing, why));
    };
    let log: Arc<dyn LogBackend> = engines::open(&settings, None)?;
    ReplicatedFile::new(Arc::new(log), &header.id, at, false).remake()
}

pub(super) fn pull(options: &Options, args: &PullArgs) -> anyhow::Result<ExitCode> {
    let config = options.config()?;
    let store = Store::new(config.daemon.session_dir.clone());
    let log = &*engines::open(&servers(&config)?, None)?;
    if args.list {
        return team::list(log, args.deleted, args.json);
    }
    let files = SessionFiles::of(&store);
    let mut report = Report::new(
        "pulled",
        "the file has more; `treelined push` sends it",
        args.json,
    )
    .skipping_deleted(args.all);
    let mut sessions = match args.all {
        true => log.list_after(None)?,
        false => ids_of(log, &args.sessions)?,
    };
    if args.follow {
        return follow(&files, log, &sessions, report);
    }
    loop {
        for (tried, session) in sessions.iter().enumerate() {
            if report.has_lost_servers {
                report.leave_out(sessions.len() - tried)?;
                return report.end();
            }
            let done = transfer::pull(&files, log, session);
            report.add(session, done)?;
        }
        sessions = match sessions.last().filter(|_| args.all) {
            Some(last) => log.list_after(Some(last))?,
            None => return report.end(),
        };
    }
}

/// The most sessions that are read at a time to look for a name.
const PAGE: usize = 1000;

/// The ids of the sessions that a person names. A text that names no session is kept, and the pull reports that it
/// was not found.
fn ids_of(log: &dyn Engine, named: &[String]) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for text in named {
        // If this request fails, the pull fails for the same cause and reports it.
        if !matches!(log.last(text), Ok(None)) {
            ids.push(text.clone());
            continue;
        }
        let mut rows = rows_of_team(log, text, false)?;
        if matches!(choose(text, &rows), Err(ChoiceProblem::None)) {
            // If a deleted session is chosen, the pull reports that it is deleted, and how to restore it.
            rows = rows_of_team(log, text, true)?;
        }
        ids.push(match choose(text, &rows) {
            Ok(row) => row.session_id.clone(),
            Err(ChoiceProblem::Several(error)) => return Err(error.into()),
            // The pull reports that the session was erased, or that there is none.
            Err(ChoiceProblem::None) => erased(log, text).unwrap_or_else(|| text.clone()),
        });
    }
    Ok(ids)
}

/// The erased session whose id begins with a text, if there is exactly one.
fn erased(log: &dyn Engine, text: &str) -> Option<String> {
    let list = TeamRows::of(log).list(&TeamQuery::default()).ok()?;
    let is_meant = |id: &String| text.len() >= FEWEST && id.starts_with(text);
    let mut meant = list.erased.into_iter().filter(is_meant);
    meant.next().filter(|_| meant.next().is_none())
}

/// The sessions that a text can name, from the list of the team: only deleted sessions, or only the others. If the list
/// cannot be read, a note says why, and the result is empty.
fn rows_of_team(log: &dyn Engine, text: &str, is_of_deleted: bool) -> io::Result<Vec<ListedRow>> {
    let mut query = TeamQuery {
        words: text.split_whitespace().map(str::to_lowercase).collect(),
        limit: PAGE,
        is_of_deleted,
        ..TeamQuery::default()
    };
    let rows = TeamRows::of(log);
    let mut sessions = Vec::new();
    loop {
        let list = match rows.list(&query) {
            Ok(list) => list,
            Err(error) => {
                team::note(&error)?;
                return Ok(Vec::new());
            }
        };
        // Very many rows may contain the words of the name, so the other rows are dropped here.
        let is_meant = |session: &TeamSession| {
            let row = session.row.as_ref();
            let name = row.and_then(|row| row.name.as_deref());
            let is_trashed = row.is_some_and(|row| row.is_trashed);
            let is_named = name == Some(text) || session.session_id.starts_with(text);
            is_trashed == is_of_deleted && is_named
        };
        sessions.extend(list.sessions.into_iter().filter(is_meant));
        query.after = list.page.and_then(|page| page.next);
        if query.after.is_none() {
            break;
        }
    }
    let row = |session: TeamSession| {
        let (name, modified) = session.row.map(|row| (row.name, row.modified)).unzip();
        ListedRow {
            session_id: session.session_id,
            path: PathBuf::new(),
            name: name.flatten(),
            first_message: String::new(),
            cwd: String::new(),
            same_conversation: Vec::new(),
            native_ids: Vec::new(),
            modified: modified.unwrap_or_default(),
        }
    };
    Ok(sessions.into_iter().map(row).collect())
}

/// Follows one session until an interrupt.
fn follow(
    files: &SessionFiles<'_>,
    log: &dyn Engine,
    sessions: &[String],
    mut report: Report,
) -> anyhow::Result<ExitCode> {
    let [session] = sessions else {
        let why = "--follow is for one session";
        return Err(ShellError::new(USAGE, why, "one command for each session").into());
    };
    transfer::pull_on(files, log, session, &mut |done| {
        let said = report.add(session, Ok(done.clone()));
        said.map_err(|error| Error::io("write to stdout", &error))
    })?;
    report.end()
}

/// Prints a line for each session, and counts the failures.
struct Report {
    screen: Screen,
    /// The past participle of the command.
    action: &'static str,
    behind: &'static str,
    json: bool,
    /// Whether deleted sessions are skipped; otherwise they are failures.
    skips_deleted: bool,
    failed: u64,
    /// The number of failures because there is no such session.
    missing: u64,
    totals: PushTotals,
    /// Whether the servers have stopped answering. If so, no more sessions are tried, since each session would wait for
    /// the servers.
    has_lost_servers: bool,
}

impl Report {
    fn new(action: &'static str, behind: &'static str, json: bool) -> Self {
        Self {
            screen: Screen::new(),
            action,
            behind,
            json,
            skips_deleted: false,
            failed: 0,
            missing: 0,
            totals: PushTotals::default(),
            has_lost_servers: false,
        }
    }

    /// Reports that the last `count` sessions were not tried.
    fn leave_out(&mut self, count: usize) -> io::Result<()> {
        let sessions = super::words::count(count as u64, "session was", "sessions were");
        writeln!(
            io::stderr(),
            "note: {sessions} not tried, since the servers do not answer"
        )
    }

    fn skipping_deleted(self, skips_deleted: bool) -> Self {
        Self {
            skips_deleted,
            ..self
        }
    }

    /// Shows a person how many sessions had each result.
    fn show_totals(&mut self) -> io::Result<()> {
        match self.json {
            true => Ok(()),
            false => writeln!(self.screen, "{}", self.totals),
        }
    }

    fn skip(&mut self, session: &str, kind: Kind) -> io::Result<()> {
        self.totals.deleted += 1;
        let (word, why) = match kind {
            Kind::SessionErased => ("erased", "it was erased for the team"),
            _ => (
                "deleted",
                "it is deleted; `treelined restore` brings it back",
            ),
        };
        if self.json {
            let line = json!({ "session": session, "skipped": word });
            writeln!(self.screen, "{line}")?;
        } else {
            let shown = self.screen.style(Style::Bold, &terminal::line(session));
            writeln!(self.screen, "{shown}: skipped: {why}")?;
        }
        self.screen.flush()
    }

    fn add(&mut self, session: &str, outcome: Result<Transfer>) -> io::Result<()> {
        if let (true, Err(error)) = (self.skips_deleted, &outcome)
            && matches!(error.kind, Kind::SessionDeleted | Kind::SessionErased)
        {
            return self.skip(session, error.kind);
        }
        self.totals.add(&outcome);
        self.failed += u64::from(outcome.is_err());
        let is_missing = |error: &Error| error.kind == Kind::SessionNotFound;
        self.missing += u64::from(outcome.as_ref().is_err_and(is_missing));
        let failure = outcome.as_ref().err();
        self.has_lost_servers |= failure.is_some_and(|error| error.kind == Kind::LogUnavailable);
        if self.json {
            let line = match &outcome {
                Ok(done) => json!({
                    "sessionId": session, "lines": done.lines, "bytes": done.bytes, "hash": done.hash,
                    "sequence": done.sequence, "behind": done.is_behind,
                    "refilled": done.is_refilled, "branch": done.is_branch,
                }),
                Err(error) => json!({
                    "session": session,
                    "error": { "kind": error.kind.name(), "message": error.message },
                }),
            };
            writeln!(self.screen, "{line}")?;
            return self.screen.flush();
        }
        let shown = self.screen.style(Style::Bold, &terminal::line(session));
        match outcome {
            Ok(done) => {
                let lines = count(done.lines, "line", "lines");
                let bytes = count(done.bytes, "byte", "bytes");
                let notes = [
                    (done.is_refilled, "the stream had lost lines of it"),
                    (done.is_branch, "they are a branch, since others went on"),
                    (done.is_behind, self.behind),
                ];
                let notes = notes.iter().filter(|(is_so, _)| *is_so);
                let notes: String = notes.map(|(_, note)| format!("; {note}")).collect();
                writeln!(
                    self.screen,
                    "{shown}: {lines}, {bytes} {}{notes}",
                    self.action
                )?;
            }
            Err(error) => {
                let kind = self.screen.style(Style::Red, error.kind.name());
                writeln!(
                    self.screen,
                    "{shown}: {kind}: {}",
                    terminal::line(&error.message)
                )?;
                writeln!(self.screen, "  try: {}", ShellError::remedy_of(error.kind))?;
            }
        }
        self.screen.flush()
    }

    fn end(mut self) -> anyhow::Result<ExitCode> {
        self.screen.flush()?;
        Ok(match self.failed {
            0 => ExitCode::SUCCESS,
            failed if failed == self.missing => ExitCode::from(NOT_FOUND),
            _ => ExitCode::FAILURE,
        })
    }
}
