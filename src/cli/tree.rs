//! `treelined tree`: draws a session.
//!
//! The command starts a daemon and is its client, so it draws the same rows that any client gets.

use super::daemon::{ChildDaemon, RawJson};
use super::drawing::{Drawing, DrawnRow};
use super::entry_choice;
use super::opened::{self, SessionUse};
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::SessionChoice;
use super::words::{count, title};
use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::HashSet;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::terminal;

/// The number of rows on one page.
const PAGE: usize = 100_000;
/// The most columns of an id.
const ID_COLUMNS: usize = 16;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined tree                               the newest session of this directory
  treelined tree --all                         with the entries of all branches
  treelined tree \"A tour\" --filter user-only  the messages of the user, in a session by its name
  treelined tree a1b2c3d4 --query '/fix(ed)?/' --ids")]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    session: SessionChoice,
    /// The entries to show
    #[arg(long, value_enum, default_value_t = FilterName::Default)]
    filter: FilterName,
    /// Show only entries whose text has all these words ("…" is one word); /…/ is a regular expression
    #[arg(long, value_name = "WORDS|/REGEX/")]
    query: Option<String>,
    /// Show the entries of all branches; without it, a branch that was left is one line
    #[arg(long, conflicts_with = "expand")]
    all: bool,
    /// Show the entries of the branches that have this entry, by its id, label or beginning of the id
    #[arg(long, value_name = "ENTRY", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    expand: Vec<String>,
    /// Show archived branches too
    #[arg(long)]
    archived: bool,
    /// Show the ids of the session and its entries
    #[arg(long)]
    ids: bool,
    /// Draw with ASCII only
    #[arg(long)]
    ascii: bool,
    /// Print a line of JSON for each entry of all branches: the rows of get_tree
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FilterName {
    /// All entries without labels, settings and tool calls
    Default,
    /// Like default, without tool results
    NoTools,
    /// User messages only
    UserOnly,
    /// Entries with a label only
    LabeledOnly,
    /// All entries
    All,
}

#[derive(Deserialize)]
struct OpenAnswer {
    session: OpenedSession,
    diagnostics: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenedSession {
    session_id: String,
    path: Option<String>,
    cwd: String,
    name: Option<String>,
    first_message: String,
    leaf_id: Option<String>,
    entry_count: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<R> {
    nodes: Vec<R>,
    hidden: u64,
    archived_branches: Option<u64>,
    shed_branches: Option<u64>,
    next_cursor: Option<String>,
}

pub(super) fn run(options: &Options, tree: &TreeArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let drawn = match tree.json {
        true => print_json(&mut daemon, tree),
        false => draw(options, &mut daemon, tree),
    };
    daemon.end()?;
    drawn.map(|()| ExitCode::SUCCESS)
}

/// Opens the session. Returns the result of `open_session`, and the ids of the entries to expand.
fn open(daemon: &mut ChildDaemon, tree: &TreeArgs) -> anyhow::Result<(RawJson, Vec<String>)> {
    let answered = opened::answer(daemon, &tree.session.query(), SessionUse::Read)?;
    let session = opened::session_of(&answered)?;
    let mut expand = Vec::new();
    for text in &tree.expand {
        expand.push(entry_choice::find(daemon, &session, text)?);
    }
    Ok((answered, expand))
}

fn print_json(daemon: &mut ChildDaemon, tree: &TreeArgs) -> anyhow::Result<()> {
    let (_, expand) = open(daemon, tree)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut cursor = None;
    loop {
        let page: Page<RawJson> = page(daemon, tree, &expand, None, cursor.as_deref())?;
        for row in &page.nodes {
            writeln!(out, "{}", terminal::json(row.get()))?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    out.flush()?;
    Ok(())
}

fn draw(options: &Options, daemon: &mut ChildDaemon, tree: &TreeArgs) -> anyhow::Result<()> {
    let (opened, expand) = open(daemon, tree)?;
    let OpenAnswer {
        session,
        diagnostics,
    } = serde_json::from_str(opened.get()).context("read the answer to open_session")?;
    let mut screen = Screen::paged(options);
    head(&mut screen, &session, tree)?;
    let mut cursor = None;
    let mut drawing = None;
    let (mut rows, mut branches, mut inside) = (0, 0, 0);
    let mut inside_archived = HashSet::new();
    let (hidden, archived, shed) = loop {
        let columns = Some(screen.columns);
        let page: Page<DrawnRow> = page(daemon, tree, &expand, columns, cursor.as_deref())?;
        rows += page.nodes.len();
        for folded in page.nodes.iter().filter_map(|row| row.folded) {
            branches += folded.branches;
            inside += folded.entries;
        }
        // The width of the column of ids is decided by the first page, so that drawing can begin before
        // the other pages are read.
        let drawing = *drawing.get_or_insert_with(|| Drawing {
            id_columns: id_columns(tree, &page.nodes),
            ascii: tree.ascii,
        });
        for mut row in page.nodes {
            note_archived(&mut inside_archived, &mut row);
            drawing.row(&mut screen, &row)?;
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break (page.hidden, page.archived_branches, page.shed_branches),
        }
    };
    let mut notes = Vec::new();
    if rows == 0 {
        notes.push("nothing to show".to_owned());
    }
    if session.leaf_id.is_none() && session.entry_count > 0 {
        notes.push("before the first entry ← active".to_owned());
    }
    if branches > 0 {
        let branches = count(branches, "branch", "branches");
        let entries = count(inside, "entry", "entries");
        notes.push(format!(
            "{branches} folded with {entries}; --all shows them, --expand ENTRY opens one"
        ));
    }
    notes.extend(left_out(archived.filter(|_| !tree.archived), shed));
    if hidden > 0 {
        let entries = count(hidden, "entry", "entries");
        notes.push(format!("{entries} not shown{}", how_to_show(tree)));
    }
    if !diagnostics.is_empty() {
        let found = count(diagnostics.len() as u64, "diagnostic", "diagnostics");
        let path = session.path.as_deref().unwrap_or("FILE");
        let path = terminal::line(path);
        notes.push(format!("{found}: see treelined doctor {path}"));
    }
    if !notes.is_empty() {
        writeln!(screen)?;
    }
    for note in notes {
        let note = if tree.ascii {
            note.replace('←', "<-")
        } else {
            note
        };
        screen.note(&note)?;
    }
    screen.finish()?;
    Ok(())
}

/// Notes about branches that the tree leaves out.
fn left_out(archived: Option<u64>, shed: Option<u64>) -> impl Iterator<Item = String> {
    let archived = archived.map(|number| {
        let branches = count(number, "archived branch", "archived branches");
        format!("{branches}; --archived shows them")
    });
    let shed = shed.map(|number| {
        let branches = count(number, "shed branch", "shed branches");
        format!("{branches}; treelined branches --archived lists them")
    });
    archived.into_iter().chain(shed)
}

/// Records whether an archived branch begins with this row. `inside` has the ids of the archived rows above
/// it.
fn note_archived(inside: &mut HashSet<String>, row: &mut DrawnRow) {
    if row.archived {
        let above = row.parent_id.as_ref();
        row.begins_archived = above.is_none_or(|above| !inside.contains(above));
        inside.insert(row.id.clone());
    }
}

/// The options that show the hidden entries, as the end of a note.
fn how_to_show(tree: &TreeArgs) -> &'static str {
    match (tree.filter, &tree.query) {
        (FilterName::All, None) => "",
        (FilterName::All, Some(_)) => "; without --query all are shown",
        (_, None) => "; --filter all shows everything",
        (_, Some(_)) => "; --filter all without --query shows everything",
    }
}

/// Reads a page of rows: drawn rows for a screen with `columns` columns, or the rows of all branches.
fn page<R: DeserializeOwned>(
    daemon: &mut ChildDaemon,
    tree: &TreeArgs,
    expand: &[String],
    columns: Option<usize>,
    cursor: Option<&str>,
) -> anyhow::Result<Page<R>> {
    let filter = tree.filter.to_possible_value();
    let (query, mode) = tree.query.as_deref().map(query).unzip();
    let params = json!({
        "filter": filter.as_ref().map(|filter| filter.get_name()),
        "query": query,
        "mode": mode,
        "fold": columns.filter(|_| !tree.all).map(|_| "left"),
        "expand": expand,
        "archived": tree.archived,
        "render": columns.map(|_| if tree.ascii { "ascii" } else { "unicode" }),
        // At most a sixth of the screen is for guides (protocol.md §6.3).
        "prefixColumns": columns.map(|columns| columns / 6),
        "limit": PAGE,
        "cursor": cursor,
    });
    let answered = daemon.call("get_tree", &params.to_string())?;
    serde_json::from_str(answered.get()).context("read the answer to get_tree")
}

/// The query and its mode. A text between slashes is a regular expression.
fn query(typed: &str) -> (&str, &'static str) {
    let inner = typed
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'));
    match inner.filter(|inner| !inner.is_empty()) {
        Some(pattern) => (pattern, "regex"),
        None => (typed, "words"),
    }
}

fn head(screen: &mut Screen, session: &OpenedSession, tree: &TreeArgs) -> anyhow::Result<()> {
    let (dot, cut) = if tree.ascii {
        ("-", "...")
    } else {
        ("·", "…")
    };
    let entries = count(session.entry_count, "entry", "entries");
    let (id, cwd) = (&session.session_id, &session.cwd);
    let about = match tree.ids {
        true => format!("{id} {dot} {cwd} {dot} {entries}"),
        false => format!("{cwd} {dot} {entries}"),
    };
    let name = title(session.name.as_deref(), &session.first_message);
    for (style, text) in [(Style::Bold, name), (Style::Dim, &about)] {
        let text = terminal::line(text);
        let text = terminal::cut(&text, screen.columns, cut);
        let text = screen.style(style, &text);
        writeln!(screen, "{text}")?;
    }
    writeln!(screen)?;
    Ok(())
}

fn id_columns(tree: &TreeArgs, rows: &[DrawnRow]) -> usize {
    if !tree.ids {
        return 0;
    }
    let widest = rows.iter().map(|row| row.id.len()).max();
    widest.unwrap_or_default().clamp(1, ID_COLUMNS)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_filters_are_those_of_the_protocol() {
        crate::cli::options::assert_values::<super::FilterName>("TreeFilter");
    }
}
