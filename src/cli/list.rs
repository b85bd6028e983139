//! `treelined list`: shows the sessions as a table; those with the latest activity come first.

use super::columns::{WHEN, padded, when};
use super::daemon::{ChildDaemon, RawJson};
use super::list_team::{self, OpenMachine, TeamAnswer};
use super::listed::rows;
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::{current_directory, others};
use super::words::{count, title};
use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use treelined_core::id::Source;
use treelined_core::terminal;
use treelined_core::timestamp::Millis;
use treelined_core::tree::branches;
use treelined_files::clock::SystemSource;
use treelined_files::log::Log;
use treelined_files::os::file::Location;
use treelined_import::Tool;
use treelined_import::importer::large;

/// The fewest and the most characters of an id in the table.
const ID_CHARS: std::ops::RangeInclusive<usize> = 8..=16;
/// The fewest columns of the name.
const FEWEST_NAME: usize = 16;
/// The most columns for a tool: the width of `claude-code`.
const MOST_SOURCE: usize = 11;
/// The most refused conversations that are shown.
const MOST_REFUSED: usize = 3;
/// The most columns of the directory on a narrow screen. On a wide one it may have a quarter of the screen.
const MOST_DIRECTORY: usize = 32;
/// The fewest columns of a longer directory.
const FEWEST_DIRECTORY: usize = 12;
/// The width of a column of numbers: "messages" and "branches" have eight letters.
const NUMBER: usize = 8;
/// The width between columns.
const GAP: usize = 2;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined list                  the sessions of this directory
  treelined list --all build      the sessions of all directories with \"build\" in the name or first message
  treelined list --all --from codex   the sessions that were imported from Codex
  treelined list --all --tag build    the sessions with the tag #build
  treelined list --json | jq -r '.sessions[].path'")]
pub(crate) struct ListArgs {
    /// Words that the name, the first message, the directory or the id must have; ids of other tools count too
    words: Vec<String>,
    /// Only the sessions that were imported from this tool
    #[arg(long, value_name = "TOOL", value_parser = PossibleValuesParser::new(Tool::ALL.map(Tool::name)))]
    from: Option<String>,
    /// Only the sessions with this tag; several tags must all be there
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Only the sessions on this git branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Only pinned sessions
    #[arg(long)]
    pinned: bool,
    /// List archived sessions too
    #[arg(long)]
    archived: bool,
    /// List the sessions of all directories, not only of this one
    #[arg(long)]
    all: bool,
    /// Show at most this many sessions
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    limit: usize,
    /// Only the sessions of this machine, without those that only the team has
    #[arg(long)]
    local: bool,
    /// Print `{"sessions": […]}`: the rows of list_sessions, each with its number of `branches` without archived ones; in a team also `team`
    #[arg(long)]
    json: bool,
}

/// The members of a row that the table shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TableRow {
    session_id: String,
    path: String,
    cwd: String,
    name: Option<String>,
    first_message: String,
    modified: String,
    message_count: u64,
    source: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    pinned: bool,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    same_conversation: Vec<String>,
    diagnostic: Option<Diagnostic>,
    log: Option<RowLog>,
}

#[derive(Deserialize)]
struct Diagnostic {
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RowLog {
    open_on: Vec<OpenMachine>,
}

/// The members of the answer about files. The members about the team are read separately, since `flatten` does not keep
/// raw JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    sessions: Vec<RawJson>,
    #[serde(default)]
    archived_count: u64,
}

/// The sessions to show, and the numbers in the notes below them.
struct Found {
    sessions: Vec<RawJson>,
    team: TeamAnswer,
    /// The number of sessions that fit the options, whether they are shown or not.
    total: usize,
    /// The number of archived sessions that fit the options and are not shown.
    archived: u64,
    /// The number of sessions in all directories.
    everywhere: usize,
    id_chars: usize,
}

pub(super) fn run(options: &Options, list: &ListArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let found = find(&mut daemon, list);
    daemon.end()?;
    let found = found?;
    match list.json {
        true => print_json(&found)?,
        false => print(options, &found, list)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(format!("not a number: {error}")),
    }
}

fn find(daemon: &mut ChildDaemon, list: &ListArgs) -> anyhow::Result<Found> {
    let all = rows(daemon)?;
    let ids: Vec<&str> = all.iter().map(|row| row.session_id.as_str()).collect();
    let cwd = match list.all {
        true => None,
        false => Some(current_directory()?),
    };
    let query = list.words.join(" ");
    let query = (!query.is_empty()).then_some(query);
    let mut params = json!({ "cwd": cwd, "query": query, "source": list.from, "local": list.local,
        "tags": list.tag, "branch": list.branch, "archived": list.archived,
        "pinned": list.pinned.then_some(true) });
    let answered = daemon.call("list_sessions", &params.to_string())?;
    let reading = "read the answer to list_sessions";
    let Answer {
        mut sessions,
        archived_count,
    } = serde_json::from_str(answered.get()).context(reading)?;
    let mut team: TeamAnswer = serde_json::from_str(answered.get()).context(reading)?;
    while let Some(next) = team.next(list.limit) {
        if let Some(params) = params.as_object_mut() {
            params.insert("teamCursor".to_owned(), json!(next));
        }
        let page = daemon.call("list_sessions", &params.to_string())?;
        team.extend(serde_json::from_str(page.get()).context(reading)?);
    }
    let total = sessions.len();
    sessions.truncate(list.limit);
    team.truncate(list.limit);
    Ok(Found {
        sessions,
        team,
        total,
        archived: archived_count,
        everywhere: all.len(),
        id_chars: distinct(&ids),
    })
}

/// The number of leading characters that distinguish most ids from each other.
fn distinct(ids: &[&str]) -> usize {
    let (fewest, most) = (*ID_CHARS.start(), *ID_CHARS.end());
    let tells_apart = |chars: &usize| {
        let mut beginnings: Vec<String> = ids
            .iter()
            .map(|id| id.chars().take(*chars).collect())
            .collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        beginnings.len() == ids.len()
    };
    (fewest..most).find(tells_apart).unwrap_or(most)
}

/// The number of branches that are not archived; `None` if the file cannot be read.
fn branch_count(path: &str) -> Option<usize> {
    let opened = Log::open(Location::of_path(Path::new(path)).ok()?).ok()?;
    let archived = opened.tree.archived();
    let branches = branches::list(&opened.tree).into_iter();
    Some(
        branches
            .filter(|branch| !archived.hides(branch.tip))
            .count(),
    )
}

fn print_json(found: &Found) -> anyhow::Result<()> {
    let mut sessions = Vec::new();
    for row in &found.sessions {
        let mut members: Map<String, Value> =
            serde_json::from_str(row.get()).context("read a session")?;
        let path = members.get("path").and_then(Value::as_str);
        let branches = path.and_then(branch_count);
        members.insert("branches".to_owned(), json!(branches));
        sessions.push(Value::Object(members));
    }
    let mut text = json!({ "sessions": sessions });
    if let Value::Object(members) = &mut text {
        found.team.add_to(members)?;
    }
    let text = text.to_string();
    writeln!(io::stdout().lock(), "{}", terminal::json(&text))?;
    Ok(())
}

fn print(options: &Options, found: &Found, list: &ListArgs) -> anyhow::Result<()> {
    found.team.note()?;
    if found.sessions.is_empty() {
        let note = nothing(found, list);
        writeln!(io::stderr(), "{}", terminal::line(&note))?;
        if found.team.is_empty() {
            let mut screen = Screen::new();
            note_large(&mut screen, options)?;
            return Ok(screen.flush()?);
        }
    }
    let rows: Vec<TableRow> = found
        .sessions
        .iter()
        .map(|row| serde_json::from_str(row.get()).context("read a session"))
        .collect::<anyhow::Result<_>>()?;
    let mut screen = Screen::paged(options);
    let table = Table::new(&rows, found.id_chars, screen.columns);
    if !rows.is_empty() {
        table.head(&mut screen)?;
    }
    let now = SystemSource.now_ms();
    for row in &rows {
        table.row(&mut screen, row, now)?;
    }
    if found.total > rows.len() {
        let sessions = count(found.total as u64, "session", "sessions");
        let note = format!("\n{sessions}; {} shown, --limit N shows more", rows.len());
        writeln!(screen, "{}", screen.style(Style::Dim, &note))?;
    }
    if found.archived > 0 && !rows.is_empty() {
        let sessions = count(found.archived, "archived session", "archived sessions");
        let note = format!("\n{sessions}; --archived shows them");
        writeln!(screen, "{}", screen.style(Style::Dim, &note))?;
    }
    note_large(&mut screen, options)?;
    found.team.print(&mut screen, now)?;
    screen.finish()?;
    Ok(())
}

/// Shows the conversations that imports refuse as too large.
fn note_large(screen: &mut Screen, options: &Options) -> anyhow::Result<()> {
    let refused = large::refused(&options.config()?.daemon.session_dir);
    for row in refused.iter().take(MOST_REFUSED) {
        let line = format!("not imported: {}: {}", row.source, row.message);
        let line = terminal::line(&line);
        writeln!(screen, "\n{}", screen.style(Style::Dim, &line))?;
    }
    if refused.len() > MOST_REFUSED {
        let note = format!("and {} more", refused.len() - MOST_REFUSED);
        writeln!(screen, "{}", screen.style(Style::Dim, &note))?;
    }
    Ok(())
}

/// The reason why the table is empty, and how other sessions can be shown.
fn nothing(found: &Found, list: &ListArgs) -> String {
    if found.archived > 0 {
        let sessions = count(found.archived, "archived session", "archived sessions");
        return format!("only archived sessions: {sessions}; --archived shows them");
    }
    let fit = list.wanted();
    match (list.all, found.everywhere) {
        (_, 0) if !found.team.is_empty() => "no sessions on this machine".to_owned(),
        (_, 0) => {
            "there are no sessions; treelined import brings in those of other tools".to_owned()
        }
        (true, _) => format!("{fit}; treelined search looks into the messages"),
        (false, _) => format!("{fit} of this directory; --all looks in all directories"),
    }
}

impl ListArgs {
    /// A description of the sessions that the options select, after the words "no session".
    fn wanted(&self) -> String {
        let mut fit = match self.pinned {
            true => "no pinned session".to_owned(),
            false => "no session".to_owned(),
        };
        if let Some(tool) = &self.from {
            fit += &format!(" imported from {tool}");
        }
        if let Some(branch) = &self.branch {
            fit += &format!(" on the git branch {branch}");
        }
        let tags = self.tag.iter().map(|tag| tag.trim_start_matches('#'));
        let tags = tags.map(|tag| format!("with the tag #{tag}"));
        let words = (!self.words.is_empty()).then(|| "with these words".to_owned());
        let with: Vec<String> = tags.chain(words).collect();
        if !with.is_empty() {
            fit += &format!(" {}", with.join(" and "));
        }
        fit
    }
}

/// The widths of the columns of the table. 0 leaves a column out.
struct Table {
    id: usize,
    name: usize,
    messages: usize,
    branches: usize,
    directory: usize,
    /// 0 if no session was imported.
    source: usize,
    home: Option<String>,
}

impl Table {
    fn new(rows: &[TableRow], id: usize, columns: usize) -> Self {
        let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
        let mut table = Self {
            id,
            name: 0,
            messages: NUMBER,
            branches: NUMBER,
            directory: 0,
            source: 0,
            home,
        };
        let sources = rows.iter().filter_map(|row| row.source.as_deref());
        table.source = sources
            .map(|source| source.len().clamp(4, MOST_SOURCE))
            .max()
            .unwrap_or_default();
        let widest = rows
            .iter()
            .map(|row| terminal::width(&table.directory(row)));
        let most = MOST_DIRECTORY.max(columns / 4);
        table.directory = widest.max().unwrap_or_default().clamp(9, most);
        table.fitted(columns)
    }

    /// Shortens the directory, then leaves columns out, until the name has room on the screen.
    fn fitted(mut self, columns: usize) -> Self {
        let directory = self.directory;
        self.directory = directory.min(FEWEST_DIRECTORY);
        let leave_out: [fn(&mut Self) -> &mut usize; 4] = [
            |table| &mut table.messages,
            |table| &mut table.branches,
            |table| &mut table.directory,
            |table| &mut table.source,
        ];
        for column in leave_out {
            if self.name_columns(columns) < FEWEST_NAME {
                *column(&mut self) = 0;
            }
        }
        if self.directory > 0 {
            let spare = self.name_columns(columns).saturating_sub(FEWEST_NAME);
            self.directory = directory.min(self.directory + spare);
        }
        self.name = self.name_columns(columns).max(FEWEST_NAME / 2);
        self
    }

    /// The number of columns that the other cells leave for the name.
    fn name_columns(&self, columns: usize) -> usize {
        let others = [
            WHEN,
            self.id,
            self.source,
            self.messages,
            self.branches,
            self.directory,
        ];
        let others = others.iter().filter(|width| **width > 0);
        columns.saturating_sub(others.map(|width| width + GAP).sum())
    }

    /// The directory of a session, with `~` in place of the home directory.
    fn directory(&self, row: &TableRow) -> String {
        let cwd = terminal::line(&row.cwd).into_owned();
        let below = self.home.as_ref().and_then(|home| cwd.strip_prefix(home));
        match below {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
            _ => cwd,
        }
    }

    fn head(&self, screen: &mut Screen) -> io::Result<()> {
        let directory = if self.directory > 0 { "directory" } else { "" };
        let line = [
            padded("when", WHEN),
            padded("id", self.id),
            self.source_cell("from") + &padded("session", self.name),
            self.numbers("messages", "branches"),
            directory.to_owned(),
        ];
        writeln!(screen, "{}", screen.style(Style::Dim, &joined(&line)))
    }

    /// The cells of numbers that the table has.
    fn numbers(&self, messages: &str, branches: &str) -> String {
        let cells = [(self.messages, messages), (self.branches, branches)];
        let cells = cells.iter().filter(|(width, _)| *width > 0);
        let cells: Vec<String> = cells
            .map(|(width, cell)| format!("{cell:>width$}"))
            .collect();
        joined(&cells)
    }

    /// The cell of the tool, with the gap after it; empty if the table has no such column.
    fn source_cell(&self, source: &str) -> String {
        if self.source == 0 {
            return String::new();
        }
        let source = terminal::line(source);
        padded(&terminal::cut(&source, self.source, "…"), self.source) + "  "
    }

    fn row(&self, screen: &mut Screen, row: &TableRow, now: Millis) -> io::Result<()> {
        let (branches, said) = match &row.diagnostic {
            None => (
                branch_count(&row.path).map_or("?".to_owned(), |count| count.to_string()),
                title(row.name.as_deref(), &row.first_message).to_owned(),
            ),
            Some(Diagnostic { kind }) => (
                "?".to_owned(),
                format!("{} ({kind}; see treelined doctor)", row.path),
            ),
        };
        let when = padded(&when(&row.modified, now), WHEN);
        let id: String = row.session_id.chars().take(self.id).collect();
        let id = padded(&terminal::line(&id), self.id);
        let name = terminal::line(&said);
        let name = padded(&terminal::cut(&name, self.name, "…"), self.name);
        let name = match row.name {
            Some(_) => screen.style(Style::Bold, &name),
            None => name,
        };
        let mut directory = match self.directory {
            0 => String::new(),
            columns => end_of(&self.directory(row), columns),
        };
        if let Some(log) = &row.log {
            directory += &list_team::open_on(&log.open_on);
        }
        directory += &marks(row);
        directory += &others(&row.same_conversation, self.id);
        let line = [
            screen.style(Style::Dim, &when),
            screen.style(Style::Cyan, &id),
            screen.style(
                Style::Dim,
                &self.source_cell(row.source.as_deref().unwrap_or_default()),
            ) + &name,
            self.numbers(&row.message_count.to_string(), &branches),
            screen.style(Style::Dim, directory.trim_start()),
        ];
        writeln!(screen, "{}", joined(&line))
    }
}

/// The cells of a line that are not empty, with gaps between them.
fn joined(cells: &[String]) -> String {
    let cells = cells.iter().filter(|cell| !cell.is_empty());
    let cells: Vec<&str> = cells.map(String::as_str).collect();
    cells.join("  ").trim_end().to_owned()
}

/// The tags and marks of a session, with a gap before them; empty if the session has none.
fn marks(row: &TableRow) -> String {
    let tags = row.tags.iter().map(|tag| format!("#{tag}"));
    let marks = [(row.pinned, "pinned"), (row.archived, "archived")];
    let marks = marks.iter().filter(|(is, _)| *is);
    let all = tags.chain(marks.map(|(_, name)| (*name).to_owned()));
    let text: String = all.map(|mark| format!("  {mark}")).collect();
    terminal::line(&text).into_owned()
}

/// The last characters of a path, since they distinguish paths better than the first characters.
fn end_of(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    match length.checked_sub(columns) {
        None | Some(0) => text.to_owned(),
        Some(more) => format!("…{}", text.chars().skip(more + 1).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_long_as_it_takes_to_tell_them_apart() {
        assert_eq!(distinct(&["0198c1f0-5e00", "0298c1f0-5e00"]), 8);
        assert_eq!(distinct(&["0198c1f0-5e00", "0198c1f0-5f00"]), 11);
        assert_eq!(
            distinct(&["0198c1f0-5e00-7000-8000-1", "0198c1f0-5e00-7000-8000-2"]),
            16
        );
    }
}
