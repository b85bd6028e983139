//! `treelined import --watch`: imports again whenever a tool has written something.

use super::Options;
use super::daemon::ChildDaemon;
use super::failure::{ShellError, warn};
use super::import::{ImportArgs, Imported, ask};
use super::screen::Screen;
use super::tree::count;
use crate::importer::discover::{Request, watched_places};
use crate::importer::watch::{Wake, Watch};
use crate::terminal;
use anyhow::Context;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// The time after the pause for which a source must be quiet before its end is imported.
const AFTER_QUIET: Duration = Duration::from_secs(605);
/// The pause before a failed import is repeated: another import may have been running.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

pub(super) fn run(options: &Options, import: &ImportArgs) -> anyhow::Result<ExitCode> {
    let request = Request {
        from: import.from.tool(),
        paths: import.paths.clone(),
    };
    let mut is_first = true;
    loop {
        // The watch begins before the import, so that it reports every later change.
        let watch = Watch::of(&watched_places(&request)).context("watch the tools' folders")?;
        for (path, error) in watch.failures() {
            let message = format!("{} is not watched: {error}", path.display());
            warn(&message, "treelined import, which reads it once");
        }
        loop {
            let limit = match round(options, import) {
                Ok(is_held) => is_held.then_some(AFTER_QUIET),
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

/// Runs one import. Returns whether records that may still grow are held back.
fn round(options: &Options, import: &ImportArgs) -> anyhow::Result<bool> {
    let mut daemon = ChildDaemon::start(options)?;
    let answered = ask(&mut daemon, import);
    daemon.end()?;
    let answered = answered?;
    let imported: Imported =
        serde_json::from_str(answered.get()).context("read the answer to import_sessions")?;
    let is_held = imported.sessions.iter().any(|session| session.held > 0);
    let new = imported
        .sessions
        .iter()
        .filter(|session| session.entries_added > 0);
    if import.json {
        if new.clone().next().is_some() {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{}", answered.get())?;
            stdout.flush()?;
        }
        return Ok(is_held);
    }
    let mut screen = Screen::new();
    for session in new {
        let name = session.name.as_deref().unwrap_or(&session.session_id);
        let entries = count(session.entries_added, "entry", "entries");
        let line = format!("{}: {entries} of {name}, in {}", session.tool, session.path);
        writeln!(screen, "kept {}", terminal::line(&line))?;
    }
    screen.flush()?;
    Ok(is_held)
}
