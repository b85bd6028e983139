//! `treelined usage`: shows the tokens and the cost of all sessions (usage.md).

use super::columns::padded;
use super::failure::{ShellError, USAGE};
use super::options::Options;
use super::screen::{Screen, Style};
use super::words::{count, dollars};
use anyhow::Context;
use clap::{Args, ValueEnum};
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

/// The width of the column of a number, with the gap before it.
const NUMBER: usize = 9;
/// The width of the column of a cost, with the gap before it.
const COST: usize = 12;
/// The fewest columns for the name of a row.
const FEWEST_NAME: usize = 12;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined usage                               each day
  treelined usage --by model --since 2026-11-01
  treelined usage --by session --cwd .          the sessions of this directory, the dearest first
  treelined usage --by tool --json

`~` before a cost says that it is estimated. `+ ?` after a cost says that an unknown cost must be added. Days are in UTC.
[prices.\"provider/model\"] of the configuration has your own prices: input, output, cache_read and cache_write, in \
dollars for a million tokens. treelined stats --branch shows the cost of one branch.")]
pub(crate) struct UsageArgs {
    /// The meaning of a row
    #[arg(long, value_enum, default_value_t = Groups::Day)]
    by: Groups,
    /// Only sessions of this directory and of the directories below it
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
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
    Directory,
}

impl Groups {
    fn by(self) -> By {
        match self {
            Self::Day => By::Day,
            Self::Model => By::Model,
            Self::Tool => By::Tool,
            Self::Session => By::Session,
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

fn described(by: Groups, found: &Usage) -> Value {
    let row = |row: &Row| {
        let mut members = Map::new();
        members.insert(by.name().to_owned(), json!(row.key));
        if let Some(title) = &row.title {
            members.insert("title".to_owned(), json!(title));
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
    let table = Table::fitting(screen.columns);
    let title = match by {
        Groups::Session => "session",
        Groups::Directory => "directory",
        other => other.name(),
    };
    let heads = table.heads();
    let head = format!("{}{heads}", padded(title, table.name));
    writeln!(screen, "{}", screen.style(Style::Dim, head.trim_end()))?;
    for row in &found.rows {
        let name = match (&row.title, row.key.as_str()) {
            (Some(title), id) if !title.is_empty() => {
                format!("{} {title}", id.chars().take(8).collect::<String>())
            }
            (_, "") => "(none)".to_owned(),
            (_, key) => key.to_owned(),
        };
        let name = terminal::cut(&terminal::line(&name), table.name, "…").into_owned();
        let line = format!("{}{}", padded(&name, table.name), table.cells(&row.sums));
        writeln!(screen, "{}", line.trim_end())?;
    }
    let line = format!(
        "{}{}",
        padded("total", table.name),
        table.cells(&found.total)
    );
    writeln!(screen, "{}", screen.style(Style::Bold, line.trim_end()))?;
    notes(screen, &found.total)
}

/// Explains the marks in the table.
fn notes(screen: &mut Screen, total: &Sums) -> io::Result<()> {
    let mut notes = Vec::new();
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
    /// Whether each kind of tokens has its own column.
    is_wide: bool,
}

impl Table {
    fn fitting(columns: usize) -> Self {
        let left = |numbers: usize| columns.saturating_sub(numbers * NUMBER + COST);
        let is_wide = left(5) >= FEWEST_NAME;
        let name = left(if is_wide { 5 } else { 1 });
        Self {
            name: name.max(FEWEST_NAME).min(columns.max(1)),
            is_wide,
        }
    }

    fn heads(&self) -> String {
        let heads: &[&str] = match self.is_wide {
            true => &["answers", "input", "output", "cached", "written"],
            false => &["tokens"],
        };
        let heads = heads.iter().map(|head| format!("{head:>NUMBER$}"));
        format!("{}{:>COST$}", heads.collect::<String>(), "dollars")
    }

    fn cells(&self, sums: &Sums) -> String {
        let Tokens {
            input,
            output,
            cache_read,
            cache_write,
        } = sums.tokens;
        let numbers: &[u64] = match self.is_wide {
            true => &[sums.answers, input, output, cache_read, cache_write],
            false => &[sums.all_tokens()],
        };
        let numbers = numbers
            .iter()
            .map(|number| format!("{:>NUMBER$}", short(*number)));
        let numbers: String = numbers.collect();
        format!("{numbers}{:>COST$}", dollars(&sums.cost))
    }
}

/// A number in few characters, such as `1234` or `45.6M`.
fn short(number: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    let unit = UNITS.iter().find(|(unit, _)| number >= 10 * unit);
    match unit {
        None => number.to_string(),
        Some((unit, name)) if number < 100 * unit => {
            format!("{}.{}{name}", number / unit, number % unit * 10 / unit)
        }
        Some((unit, name)) => format!("{}{name}", number / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, shown) in [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10.0k"),
            (99_999, "99.9k"),
            (100_000, "100k"),
            (9_999_999, "9999k"),
            (45_678_901, "45.6M"),
            (u64::MAX, "18446744T"),
        ] {
            assert_eq!(short(number), shown);
        }
    }
}
