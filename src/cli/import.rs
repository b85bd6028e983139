//! `treelined import`: brings the conversations of other tools into the session directory.

use super::daemon::ChildDaemon;
use super::failure::{ShellError, USAGE};
use super::import_hook;
use super::import_request::{HELD, ImportArgs, Imported, Place, ask, held};
use super::import_watch;
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::others;
use super::words::count;
use anyhow::Context;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use treelined_core::terminal;
use treelined_import::importer::named;
use treelined_wire::{ImportedFile, ImportedSession};

/// The most failures that are shown; `--json` prints all of them.
const MAX_FAILURES: usize = 10;
/// The most sessions with entries held back that are shown; `--json` prints all of them.
const MAX_HELD: usize = 5;
/// The most sessions with the same conversation as other sessions that are shown; `--json` prints all of them.
const MAX_CONVERSATIONS: usize = 5;

pub(super) fn run(options: &Options, import: &ImportArgs) -> anyhow::Result<ExitCode> {
    if let Some(session) = &import.forget {
        return forget(options, session);
    }
    if let Some(tool) = import.hook {
        import_hook::run(options, tool, import.paths.first())?;
        return Ok(ExitCode::SUCCESS);
    }
    if import.requested {
        import_hook::import(options)?;
        return Ok(ExitCode::SUCCESS);
    }
    for path in &import.paths {
        if let Err(error) = std::fs::metadata(path) {
            let message = format!("{}: {error}", path.display());
            let remedy = "another path; without a path, the folders of the tools are searched";
            return Err(ShellError::new(USAGE, message, remedy).into());
        }
    }
    let again = import.again.as_deref().map(|session| {
        let session_dir = options.config()?.daemon.session_dir;
        anyhow::Ok(named::session_named(&session_dir, session)?)
    });
    let import = &ImportArgs {
        again: again.transpose()?,
        ..import.clone()
    };
    if import.watch {
        return import_watch::run(options, import);
    }
    let mut daemon = ChildDaemon::start(options)?;
    let answered = ask(&mut daemon, import);
    daemon.end()?;
    let answered = answered?;
    if !import.dry_run {
        import_hook::take_over(options)?;
    }
    let imported: Imported =
        serde_json::from_str(answered.get()).context("read the answer to import_sessions")?;
    if import.json {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{}", answered.get())?;
    } else {
        show(&imported, import, options.config()?.team.is_some())?;
        if let Some(said) = import.said_of_redaction() {
            writeln!(io::stdout(), "{said}")?;
        }
    }
    Ok(
        match imported.totals.failed > 0 || is_unreadable(&imported, import) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        },
    )
}

/// Whether nothing can be read from one of the named files, or from all of them. If the user has named no file, this is
/// not a failure, since a tool may have just begun a file.
fn is_unreadable(imported: &Imported, import: &ImportArgs) -> bool {
    if import.paths.is_empty() {
        return false;
    }
    let is_selected = import.cwd.is_some() || import.since.is_some();
    let has_none = imported.sessions.is_empty() && imported.totals.files > 0;
    let mut files = imported.files.iter();
    (has_none && !is_selected) || files.any(|file| file.entries == 0 && !file.unparsable.is_empty())
}

fn forget(options: &Options, session: &str) -> anyhow::Result<ExitCode> {
    let store = treelined_files::store::Store::new(options.config()?.daemon.session_dir);
    let forgotten = named::forget(store.path(), session)?;
    let origins = count(forgotten as u64, "source", "sources");
    writeln!(io::stdout(), "deleted the kept bytes of {origins}")?;
    Ok(ExitCode::SUCCESS)
}

/// The sums over the files of one tool.
#[derive(Default)]
struct Sums {
    sessions: u64,
    entries: u64,
    branches: u64,
    recovered: u64,
    gaps: u64,
}

/// Shows the result. `has_log` says whether sessions are kept on the servers of a team too.
fn show(imported: &Imported, import: &ImportArgs, has_log: bool) -> anyhow::Result<()> {
    let mut screen = Screen::new();
    for (tool, (folder, count)) in places(&imported.files) {
        let (tool, folder) = (terminal::line(tool), terminal::line(&folder));
        let found = format!("{tool:<12} {folder} ({})", files(count));
        writeln!(screen, "{}", screen.style(Style::Dim, &found))?;
    }
    let tools = sums(&imported.sessions);
    show_tools(&mut screen, &tools)?;
    show_failures(&mut screen, imported)?;
    show_damage(&mut screen, &imported.files)?;
    show_held(&mut screen, &imported.sessions)?;
    show_conversations(&mut screen, &imported.sessions)?;
    show_places(&mut screen, &imported.places)?;
    let totals = &imported.totals;
    let summary = match (tools.is_empty(), totals.entries_added) {
        (true, _) if totals.files > totals.failed => {
            let read = files(totals.files);
            let have = if totals.files == 1 { "has" } else { "have" };
            let none = match import.cwd.is_some() || import.since.is_some() {
                true => "none of this directory or time",
                false => "no conversation that can be read",
            };
            format!("no sessions found: {read} {have} {none}")
        }
        (true, _) => "no sessions found".to_owned(),
        (false, 0) => format!("nothing new in {}", files(totals.files)),
        (false, _) if import.dry_run => "nothing was written (--dry-run)".to_owned(),
        (false, _) => {
            let made = count(totals.created, "new session", "new sessions");
            let same = totals.unchanged;
            format!("{made}; {} unchanged", files(same))
        }
    };
    writeln!(screen, "\n{summary}")?;
    if totals.created > 0 && !import.dry_run {
        let next = "next: treelined list --all, or treelined-tui";
        writeln!(screen, "{}", screen.style(Style::Dim, next))?;
    }
    if totals.entries_added > 0 && !import.dry_run && has_log {
        let next = "the team gets new entries when their session is opened; treelined push --all sends all of them now";
        writeln!(screen, "{}", screen.style(Style::Dim, next))?;
    }
    screen.flush()?;
    Ok(())
}

/// The sums of the sessions of each tool.
fn sums(sessions: &[ImportedSession]) -> BTreeMap<&str, Sums> {
    let mut tools: BTreeMap<&str, Sums> = BTreeMap::new();
    for session in sessions {
        let sums = tools.entry(&session.tool).or_default();
        sums.sessions += 1;
        sums.entries += session.entries_added;
        sums.branches += session.branches;
        sums.recovered += session.recovered;
        sums.gaps += session.gaps;
    }
    tools
}

/// Shows a row for each tool, and the words of the columns.
fn show_tools(screen: &mut Screen, tools: &BTreeMap<&str, Sums>) -> anyhow::Result<()> {
    if !tools.is_empty() {
        let head = format!(
            "{:<12} {:>9} {:>11} {:>9} {:>10} {:>6}",
            "tool", "sessions", "new entries", "branches", "recovered", "gaps"
        );
        writeln!(screen, "{}", screen.style(Style::Dim, &head))?;
    }
    for (tool, sums) in tools {
        let tool = terminal::line(tool);
        let Sums {
            sessions,
            entries,
            branches,
            recovered,
            gaps,
        } = sums;
        let recovered = format!("{recovered:>10}");
        let recovered = match sums.recovered {
            0 => recovered,
            _ => screen.style(Style::Green, &recovered),
        };
        writeln!(
            screen,
            "{tool:<12} {sessions:>9} {entries:>11} {branches:>9} {recovered} {gaps:>6}"
        )?;
    }
    for legend in legends(tools) {
        writeln!(screen, "{}", screen.style(Style::Dim, legend))?;
    }
    Ok(())
}

/// Shows the files of which a part cannot be read.
fn show_damage(screen: &mut Screen, read: &[ImportedFile]) -> anyhow::Result<()> {
    let damaged = || read.iter().filter_map(damage);
    for line in damaged().take(MAX_FAILURES) {
        writeln!(screen, "{}", screen.style(Style::Red, &line))?;
    }
    let more = damaged().count().saturating_sub(MAX_FAILURES);
    if more > 0 {
        writeln!(screen, "and {more} more damaged files: see --json")?;
    }
    Ok(())
}

/// The line for a file with bytes that are not a record; `None` for any other file.
fn damage(file: &ImportedFile) -> Option<String> {
    let [at, _] = file.unparsable.first()?;
    let bytes = file.unparsable.iter().map(|[_, len]| len).sum();
    let bytes = count(bytes, "byte", "bytes");
    let rest = match file.entries {
        0 => "nothing of it is imported",
        _ => "the rest is imported",
    };
    let tool = file.tool.as_deref().unwrap_or("unknown");
    let line = format!(
        "{tool}: {}: damaged: {bytes} from byte {at} on cannot be read; {rest}",
        file.path
    );
    Some(terminal::line(&line).into_owned())
}

fn show_held(screen: &mut Screen, sessions: &[ImportedSession]) -> anyhow::Result<()> {
    let lines: Vec<String> = sessions.iter().filter_map(held).collect();
    for line in lines.iter().take(MAX_HELD) {
        writeln!(screen, "{line}")?;
    }
    if lines.len() > MAX_HELD {
        writeln!(
            screen,
            "and {} more sessions: see --json",
            lines.len() - MAX_HELD
        )?;
    }
    if !lines.is_empty() {
        writeln!(screen, "{}", screen.style(Style::Dim, HELD))?;
    }
    Ok(())
}

/// Shows the sessions that have the same conversation as other sessions.
fn show_conversations(screen: &mut Screen, sessions: &[ImportedSession]) -> anyhow::Result<()> {
    let of_several = |session: &&ImportedSession| !session.same_conversation.is_empty();
    let of_several = sessions.iter().filter(of_several);
    for session in of_several.clone().take(MAX_CONVERSATIONS) {
        let others = others(&session.same_conversation, usize::MAX);
        let id = terminal::line(&session.session_id);
        writeln!(screen, "{id}{others}")?;
    }
    let more = of_several.count().saturating_sub(MAX_CONVERSATIONS);
    if more > 0 {
        writeln!(screen, "and {more} more sessions: see --json")?;
    }
    Ok(())
}

/// Shows the folders in which the tools keep their conversations.
fn show_places(screen: &mut Screen, places: &[Place]) -> anyhow::Result<()> {
    for place in places {
        let state = match place.exists {
            true => "has none",
            false => "is not there",
        };
        let variables = place.variables.join(", ");
        let line = format!("{:<12} {} {state} ({variables})", place.tool, place.path);
        writeln!(screen, "{}", terminal::line(&line))?;
    }
    if !places.is_empty() {
        let next = "the variables in brackets say where a tool keeps them; treelined import PATH reads other places";
        writeln!(screen, "{}", screen.style(Style::Dim, next))?;
    }
    Ok(())
}

/// The explanations of the columns in which any tool has a number above 0.
fn legends(tools: &BTreeMap<&str, Sums>) -> impl Iterator<Item = &'static str> {
    let recovered = tools.values().any(|sums| sums.recovered > 0);
    let gaps = tools.values().any(|sums| sums.gaps > 0);
    let legends = [
        (
            recovered,
            "recovered: branches that the tool keeps, but no longer shows",
        ),
        (
            gaps,
            "gaps: entries whose previous entry is missing in the files of the tool",
        ),
    ];
    let shown = legends.into_iter().filter(|(is_shown, _)| *is_shown);
    shown.map(|(_, legend)| legend)
}

/// For each tool: the deepest folder that contains all files read for it, relative to the current directory, and the
/// number of these files.
fn places(read: &[ImportedFile]) -> BTreeMap<&str, (String, u64)> {
    let mut places: BTreeMap<&str, (PathBuf, u64)> = BTreeMap::new();
    for file in read {
        let (Some(tool), Some(folder)) = (&file.tool, Path::new(&file.path).parent()) else {
            continue;
        };
        let new = || (folder.to_owned(), 0);
        let (above, count) = places.entry(tool).or_insert_with(new);
        while !folder.starts_with(&*above) {
            above.pop();
        }
        *count += 1;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let shown = |(folder, count): (PathBuf, u64)| {
        let short = folder.strip_prefix(&here).ok();
        let short = short.filter(|short| !short.as_os_str().is_empty());
        (short.unwrap_or(&folder).display().to_string(), count)
    };
    let places = places.into_iter();
    places.map(|(tool, place)| (tool, shown(place))).collect()
}

fn files(number: u64) -> String {
    count(number, "file", "files")
}

fn show_failures(screen: &mut Screen, imported: &Imported) -> anyhow::Result<()> {
    let failed = imported
        .files
        .iter()
        .filter_map(|file| Some((file, file.error.as_ref()?)));
    for (file, error) in failed.clone().take(MAX_FAILURES) {
        let tool = file.tool.as_deref().unwrap_or("unknown");
        let line = format!("{tool}: {}: {} ({})", file.path, error.message, error.kind);
        let line = terminal::line(&line);
        writeln!(screen, "{}", screen.style(Style::Red, &line))?;
    }
    let more = failed.count().saturating_sub(MAX_FAILURES);
    if more > 0 {
        writeln!(screen, "and {more} more: see --json")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a file was cut off, an import once said that the file had no conversation of this directory or time.
    #[test]
    fn a_damaged_file_is_named() {
        let mut file = ImportedFile {
            tool: Some("cline".to_owned()),
            path: "/home/ada/s.messages.json".to_owned(),
            ..ImportedFile::default()
        };
        assert_eq!(damage(&file), None);
        file.unparsable = vec![[8, 10], [30, 2]];
        let of_file =
            "cline: /home/ada/s.messages.json: damaged: 12 bytes from byte 8 on cannot be read";
        assert_eq!(
            damage(&file),
            Some(format!("{of_file}; nothing of it is imported"))
        );
        file.entries = 3;
        assert_eq!(
            damage(&file),
            Some(format!("{of_file}; the rest is imported"))
        );
    }
}
