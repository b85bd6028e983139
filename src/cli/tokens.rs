//! `treelined usage`: shows the tokens and the cost of all sessions (usage.md).

use super::columns::padded;
use super::daemon::ChildDaemon;
use super::failure::{ShellError, USAGE};
use super::opened::{SessionUse, open};
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::SessionQuery;
use super::words::{count, dollars};
use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::{self, PathBuf};
use std::process::ExitCode;
use treelined_core::id::Source;
use treelined_core::stats::Tokens;
use treelined_core::terminal;
use treelined_core::timestamp::{self, Millis};
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::store::Store;
use treelined_usage::{By, Prices, Request, Row, Sums, Usage, usage};

/// The gap before each column of numbers: the usual gap, and a smaller gap if the names have too little room.
const GAPS: [usize; 2] = [2, 1];
/// The gaps become small if a name of at most this width does not fit.
const LONG_NAME: usize = 48;
/// The fewest columns for the name of a row.
const FEWEST_NAME: usize = 12;
/// The most characters of an id before a title.
const ID_CHARS: usize = 8;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined usage                               each day
  treelined usage --by model --since 2026-11-01
  treelined usage --by session --cwd .          the sessions of this directory, the dearest first
  treelined usage --by branch --session a2f1    the branches of a session, also those that were left
  treelined usage --by tool --json

`~` before a cost says that it is estimated. `+ ?` after a cost says that an unknown cost must be added. Days are in UTC.
[prices.\"provider/model\"] of the configuration has your own prices: input, output, cache_read and cache_write, in \
dollars for a million tokens. An answer that several branches have counts for the active one, else for the last one.")]
pub(crate) struct UsageArgs {
    /// The meaning of a row
    #[arg(long, value_enum, default_value_t = Groups::Day)]
    by: Groups,
    /// Only sessions of this directory and of the directories below it
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Only this session, by its file, id, name or beginning of the id
    #[arg(long, value_name = "SESSION", add = ArgValueCompleter::new(super::candidates::sessions))]
    session: Option<String>,
    /// Only answers since then: 2w, yesterday, or 2026-11-22
    #[arg(long, value_name = "DATE", value_parser = time)]
    since: Option<Millis>,
    /// Print exact numbers as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Groups {
    Day,
    Model,
    /// The tool of which the answers were imported
    Tool,
    Session,
    /// The branches of each session
    Branch,
    #[value(alias = "project")]
    Directory,
}

impl Groups {
    fn by(self) -> By {
        match self {
            Self::Day => By::Day,
            Self::Model => By::Model,
            Self::Tool => By::Tool,
            Self::Session => By::Session,
            Self::Branch => By::Branch,
            Self::Directory => By::Directory,
        }
    }

    /// The name of the member in a row of JSON, and the heading of the column.
    fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Session => "sessionId",
            Self::Branch => "tipId",
            Self::Directory => "cwd",
        }
    }
}

fn time(text: &str) -> Result<Millis, String> {
    timestamp::read(text, SystemSource.now_ms())
        .ok_or_else(|| format!("is not a time: write {}", timestamp::TIMES))
}

pub(super) fn run(options: &Options, args: &UsageArgs) -> anyhow::Result<ExitCode> {
    let config = options.config()?;
    let cwd = args.cwd.as_ref().map(path::absolute).transpose();
    let request = Request {
        by: args.by.by(),
        cwd: cwd
            .context("find the directory")?
            .map(|cwd| cwd.display().to_string()),
        since: args.since,
        session: match &args.session {
            Some(session) => Some(id(options, session)?),
            None => None,
        },
    };
    let store = Store::new(config.daemon.session_dir);
    let prices = Prices::new(config.prices);
    let found = usage(&store, &request, &prices, &Cancel::default());
    let found = found.map_err(|error| match error.details {
        None if error.kind == treelined_core::error::Kind::InvalidParams => {
            ShellError::new(USAGE, error.message, "--cwd DIR, or --since DATE").into()
        }
        _ => anyhow::Error::from(error),
    })?;
    let mut screen = Screen::paged(options);
    match args.json {
        true => {
            let text = described(args.by, &found).to_string();
            writeln!(screen, "{}", terminal::json(&text))?;
        }
        false => show(&mut screen, args.by, &found)?,
    }
    screen.finish()?;
    let mut stderr = io::stderr().lock();
    for file in &found.unread {
        let said = format!("{}: {}", file.path.display(), file.error.message);
        writeln!(stderr, "not counted: {}", terminal::line(&said))?;
    }
    Ok(match found.unread.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The id of the session that a person names.
fn id(options: &Options, session: &str) -> anyhow::Result<String> {
    let mut daemon = ChildDaemon::start(options)?;
    let query = SessionQuery::Named(session.to_owned());
    let opened = open(&mut daemon, &query, SessionUse::Read);
    daemon.end()?;
    Ok(opened?.session_id)
}

fn described(by: Groups, found: &Usage) -> Value {
    let row = |row: &Row| {
        let mut members = Map::new();
        members.insert(by.name().to_owned(), json!(row.key));
        if let Some(title) = &row.title {
            members.insert("title".to_owned(), json!(title));
        }
        if let Some(branch) = &row.branch {
            members.insert("sessionId".to_owned(), json!(branch.session_id));
            members.insert("isActive".to_owned(), json!(branch.is_active));
            if let Some(reason) = &branch.reason {
                members.insert("reason".to_owned(), json!(reason));
            }
        }
        put(&mut members, &row.sums);
        Value::Object(members)
    };
    let mut total = Map::new();
    put(&mut total, &found.total);
    let unread = found.unread.iter().map(|file| {
        json!({
            "path": file.path.display().to_string(),
            "kind": file.error.kind.name(),
            "message": file.error.message,
        })
    });
    json!({
        "rows": found.rows.iter().map(row).collect::<Vec<_>>(),
        "total": total,
        "prices": Prices::source(),
        "unread": unread.collect::<Vec<_>>(),
    })
}

fn put(members: &mut Map<String, Value>, sums: &Sums) {
    let Sums {
        answers,
        without_tokens,
        tokens,
        cost,
    } = sums;
    let Tokens {
        input,
        output,
        cache_read,
        cache_write,
    } = tokens;
    let tokens = json!({
        "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
    });
    let costs = json!({
        "recorded": cost.recorded, "estimated": cost.estimated, "unknownAnswers": cost.unknown,
    });
    members.insert("answers".to_owned(), json!(answers));
    members.insert("answersWithoutTokens".to_owned(), json!(without_tokens));
    members.insert("tokens".to_owned(), tokens);
    members.insert("costs".to_owned(), costs);
}

fn show(screen: &mut Screen, by: Groups, found: &Usage) -> io::Result<()> {
    if found.rows.is_empty() {
        return writeln!(screen, "no answers");
    }
    let title = match by {
        Groups::Session => "session",
        Groups::Branch => "  branch",
        Groups::Directory => "directory",
        other => other.name(),
    };
    let names: Vec<String> = found.rows.iter().map(name).collect();
    let widest = names.iter().map(|name| terminal::width(name)).max();
    let sums: Vec<&Sums> = found.rows.iter().map(|row| &row.sums).collect();
    let table = Table::fitting(screen.columns, widest.unwrap_or(0), &sums, &found.total);
    let line = |name: &str, cells: &[String]| {
        let name = terminal::cut(name, table.name, "…");
        let cells = cells.iter().zip(&table.cells);
        let cells: String = cells
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        format!("{}{cells}", padded(&name, table.name))
    };
    let head = line(title, &table.heads());
    writeln!(screen, "{}", screen.style(Style::Dim, &head))?;
    for (name, sums) in names.iter().zip(sums) {
        writeln!(screen, "{}", line(name, &table.texts(sums)))?;
    }
    let total = line("total", &table.texts(&found.total));
    writeln!(screen, "{}", screen.style(Style::Bold, &total))?;
    notes(screen, by, &found.total)
}

/// The name of a row.
fn name(row: &Row) -> String {
    let titled = |id: &str, title: &str| {
        let id: String = id.chars().take(ID_CHARS).collect();
        format!("{id} {title}")
    };
    let name = match (&row.title, row.key.as_str()) {
        (Some(title), id) if !title.is_empty() || row.branch.is_some() => titled(id, title),
        (_, "") => "(none)".to_owned(),
        (_, key) => key.to_owned(),
    };
    let name = match &row.branch {
        None => name,
        Some(branch) if branch.is_active => format!("• {name}"),
        Some(branch) => match &branch.reason {
            Some(reason) => format!("  {name} · {reason}"),
            None => format!("  {name}"),
        },
    };
    terminal::line(&name).into_owned()
}

/// Explains the marks in the table.
fn notes(screen: &mut Screen, by: Groups, total: &Sums) -> io::Result<()> {
    let mut notes = Vec::new();
    if let Groups::Branch = by {
        notes.push("• the active branch of its session; the other branches were left".to_owned());
    }
    if total.cost.estimated.is_some() {
        notes.push(format!("~ estimated by prices, {}", Prices::source()));
    }
    if total.cost.unknown > 0 {
        let answers = count(total.cost.unknown, "answer", "answers");
        notes.push(format!(
            "? {answers} of unknown cost: no tool has recorded it, and no price is known"
        ));
    }
    if total.without_tokens > 0 {
        let answers = count(total.without_tokens, "answer", "answers");
        notes.push(format!("{answers} without recorded tokens"));
    }
    if !notes.is_empty() {
        writeln!(screen)?;
    }
    for note in notes {
        screen.note(&note)?;
    }
    Ok(())
}

/// The layout of the table.
struct Table {
    /// The width of the column of names.
    name: usize,
    /// The widths of the other columns, each with the gap before it.
    cells: Vec<usize>,
    /// Whether each kind of tokens has its own column.
    is_wide: bool,
}

impl Table {
    /// Each column of numbers is as wide as its widest number, and the names have the rest.
    fn fitting(columns: usize, widest: usize, rows: &[&Sums], total: &Sums) -> Self {
        let of = |is_wide: bool, gap: usize| {
            let mut table = Self {
                name: 0,
                cells: Vec::new(),
                is_wide,
            };
            let mut lines = vec![table.heads(), table.texts(total)];
            lines.extend(rows.iter().map(|sums| table.texts(sums)));
            for line in &lines {
                table.cells.resize(line.len(), 0);
                for (width, cell) in table.cells.iter_mut().zip(line) {
                    *width = (gap + terminal::width(cell)).max(*width);
                }
            }
            let numbers = table.cells.iter().sum();
            table.name = columns.saturating_sub(numbers);
            table
        };
        let [gap, small] = GAPS;
        let roomy = |is_wide: bool| {
            let table = of(is_wide, gap);
            match table.name < widest.min(LONG_NAME) {
                true => of(is_wide, small),
                false => table,
            }
        };
        let mut table = roomy(true);
        if table.name < FEWEST_NAME {
            table = roomy(false);
        }
        let name = widest.max(FEWEST_NAME).min(table.name.max(FEWEST_NAME));
        Self {
            name: name.min(columns.max(1)),
            ..table
        }
    }

    fn heads(&self) -> Vec<String> {
        let heads: &[&str] = match self.is_wide {
            true => &["answers", "input", "output", "cached", "written", "dollars"],
            false => &["tokens", "cached", "dollars"],
        };
        heads.iter().map(|head| (*head).to_owned()).collect()
    }

    fn texts(&self, sums: &Sums) -> Vec<String> {
        let Tokens {
            input,
            output,
            cache_read,
            cache_write,
        } = sums.tokens;
        let numbers: &[u64] = match self.is_wide {
            true => &[sums.answers, input, output, cache_read, cache_write],
            false => &[
                input.saturating_add(output).saturating_add(cache_write),
                cache_read,
            ],
        };
        let numbers = numbers.iter().map(|number| short(*number));
        numbers.chain([dollars(&sums.cost)]).collect()
    }
}

/// A number in few characters, rounded, such as `1234` or `45.7M`.
fn short(number: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    let rounded = |unit: u64| number / unit + u64::from(number % unit >= unit / 2);
    // If a number rounds to 10 of a unit, this unit is used.
    let fits = |unit: u64| number.saturating_add(unit / 2000) >= 10 * unit;
    let unit = UNITS.iter().find(|(unit, _)| fits(*unit));
    match unit {
        None => number.to_string(),
        Some((unit, name)) => match rounded(unit / 10) {
            tenths @ ..1000 => format!("{}.{}{name}", tenths / 10, tenths % 10),
            _ => format!("{}{name}", rounded(*unit)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_those_of_the_protocol() {
        crate::cli::options::assert_values::<Groups>("UsageBy");
    }

    #[test]
    fn numbers_are_short() {
        for (number, shown) in [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10.0k"),
            (12_345, "12.3k"),
            (12_350, "12.4k"),
            (99_949, "99.9k"),
            (99_999, "100k"),
            (100_000, "100k"),
            (999_500, "1000k"),
            (9_999_499, "9999k"),
            (9_999_999, "10.0M"),
            (45_678_901, "45.7M"),
            (u64::MAX, "18446744T"),
        ] {
            assert_eq!(short(number), shown);
        }
    }
}
