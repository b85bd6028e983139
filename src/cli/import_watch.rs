//! `treelined import --watch`: imports again whenever a tool has written something.

use super::daemon::ChildDaemon;
use super::failure::{self, ShellError, warn};
use super::import_hook;
use super::import_request::{self, ImportArgs, Imported, ask};
use super::options::Options;
use super::screen::{Screen, Style};
use super::tool_names::tool_of;
use super::words::count;
use anyhow::Context;
use std::collections::HashSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use treelined_core::error::Kind;
use treelined_core::id::Source;
use treelined_core::terminal;
use treelined_core::timestamp;
use treelined_files::clock::SystemSource;
use treelined_import::importer::discover::{Request, watched_places};
use treelined_import::importer::watch::{Wake, Watch};
use treelined_wire::ImportedSession;

/// The additional wait after the time from which held-back entries may be imported.
const AFTER_HELD: Duration = Duration::from_millis(20);
/// The pause before a failed import is repeated.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// The pause while another import is running.
const WHILE_BUSY: Duration = Duration::from_millis(250);

pub(super) fn run(options: &Options, import: &ImportArgs) -> anyhow::Result<ExitCode> {
    let request = Request {
        from: tool_of(&import.from),
        paths: import.paths.clone(),
    };
    let mut is_first = true;
    let mut held = HashSet::new();
    loop {
        // The watch starts before the import, so that it reports every change after the import has begun.
        let watch = Watch::of(&watched_places(&request)).context("watch the tools' folders")?;
        for (path, error) in watch.failures() {
            let message = format!("{} is not watched: {error}", path.display());
            warn(&message, "treelined import, which reads it once");
        }
        loop {
            let limit = match round(options, import, &mut held) {
                Ok(limit) => limit,
                Err(error) if failure::kind(&error) == Some(Kind::ImportBusy) => Some(WHILE_BUSY),
                Err(error) if is_first => return Err(error),
                Err(error) => {
                    ShellError::of(&error).report();
                    Some(AFTER_FAILURE)
                }
            };
            is_first = false;
            match watch.wait(limit) {
                Wake::Changed | Wake::TimedOut => {}
                Wake::Stale => break,
            }
        }
    }
}

/// Runs one import. If entries are held back, returns the time after which another import is useful even without a
/// change. `held` has the sessions with held-back entries, and the numbers of these entries, as reported last.
fn round(
    options: &Options,
    import: &ImportArgs,
    held: &mut HashSet<(String, u64)>,
) -> anyhow::Result<Option<Duration>> {
    let mut daemon = ChildDaemon::start(options)?;
    let answered = ask(&mut daemon, import);
    daemon.end()?;
    let answered = answered?;
    import_hook::take_over(options)?;
    let imported: Imported =
        serde_json::from_str(answered.get()).context("read the answer to import_sessions")?;
    let limit = imported.totals.held_until.as_deref().and_then(left);
    let sessions = imported.sessions.iter();
    let new = sessions.clone().filter(|session| session.entries_added > 0);
    let key = |session: &ImportedSession| (session.session_id.clone(), session.held);
    let still = sessions.filter(|session| session.held > 0);
    let said = std::mem::replace(held, still.clone().map(key).collect());
    let newly_held = still.filter(|session| !said.contains(&key(session)));
    if import.json {
        if new.clone().chain(newly_held).next().is_some() {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{}", answered.get())?;
            stdout.flush()?;
        }
        return Ok(limit);
    }
    let mut screen = Screen::new();
    for session in new {
        let name = session.name.as_deref().unwrap_or(&session.session_id);
        let entries = count(session.entries_added, "entry", "entries");
        let line = format!("{}: {entries} of {name}, in {}", session.tool, session.path);
        writeln!(screen, "kept {}", terminal::line(&line))?;
    }
    let lines: Vec<String> = newly_held.filter_map(import_request::held).collect();
    lines
        .iter()
        .try_for_each(|line| writeln!(screen, "{line}"))?;
    if said.is_empty() && !lines.is_empty() {
        writeln!(screen, "{}", screen.style(Style::Dim, import_request::HELD))?;
    }
    screen.flush()?;
    Ok(limit)
}

/// The time from now until an instant in ISO 8601.
fn left(until: &str) -> Option<Duration> {
    let until = timestamp::parse(until)?;
    let left = until.saturating_sub(SystemSource.now_ms());
    Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)) + AFTER_HELD)
}
