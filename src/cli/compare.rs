//! `treelined compare`: shows two branches of a session, from their common ancestor on. If the terminal is wide enough,
//! the branches are beside each other.

use super::columns::padded;
use super::daemon::{ChildDaemon, RawJson};
use super::drawing::DrawnRow;
use super::entry_choice;
use super::opened::{SessionUse, open};
use super::options::Options;
use super::position;
use super::screen::{Screen, Style};
use super::session_words::WordsWanted;
use super::stats::Costs;
use super::tree_rows::{entry_row, rows};
use super::words::count;
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::terminal;

/// If the terminal has fewer columns than this, the branches are shown one after the other.
const NARROW: usize = 100;
/// The separator between the two branches.
const BETWEEN: &str = " │ ";

const WORDS: WordsWanted = WordsWanted {
    command: "compare",
    names: &["the first entry", "the second entry"],
};

#[derive(Debug, Args)]
#[command(
    override_usage = "treelined compare [OPTIONS] [SESSION] <A> <B>",
    after_help = "\
Examples:
  treelined compare a2 \"not the cache\"    two branches of the newest session of this directory, by their ends
  treelined branches                      shows the ends of the branches"
)]
pub(crate) struct CompareArgs {
    /// A session by its file, id, name or beginning of the id [default: the latest of this directory]
    #[arg(value_name = "SESSION",
          add = ArgValueCompleter::new(super::entry_candidates::sessions_and_entries))]
    first: Option<String>,
    /// The last entry of one branch by its id, label or beginning of the id
    #[arg(value_name = "A", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    second: Option<String>,
    /// The last entry of the other branch
    #[arg(value_name = "B", add = ArgValueCompleter::new(super::entry_candidates::entries))]
    third: Option<String>,
    /// The session of this directory with the last activity, which is the default
    #[arg(long)]
    latest: bool,
    /// Print the result of compare_branches as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Comparison {
    ancestor_id: Option<String>,
    a: Side,
    b: Side,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    entry_ids: Vec<String>,
    files: Files,
    stats: SideStats,
}

#[derive(Deserialize)]
struct SideStats {
    costs: Costs,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    read_files: Vec<String>,
    modified_files: Vec<String>,
}

/// A comparison, and the rows of its entries.
struct Shown {
    ancestor: Option<DrawnRow>,
    sides: [ShownSide; 2],
}

struct ShownSide {
    tip: DrawnRow,
    rows: Vec<DrawnRow>,
    files: Files,
    costs: Costs,
}

pub(super) fn run(options: &Options, compare: &CompareArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let read = read(&mut daemon, compare);
    daemon.end()?;
    let (answered, shown) = read?;
    let mut screen = Screen::paged(options);
    match shown {
        None => writeln!(screen, "{}", terminal::json(answered.get()))?,
        Some(shown) => show(&mut screen, &shown)?,
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the result of the daemon, and the part of it that a person sees.
fn read(
    daemon: &mut ChildDaemon,
    compare: &CompareArgs,
) -> anyhow::Result<(RawJson, Option<Shown>)> {
    let given = [&compare.first, &compare.second, &compare.third];
    let (query, words) = WORDS.split(given.into_iter().flatten(), compare.latest)?;
    let session = open(daemon, &query, SessionUse::Read)?;
    let mut ids = Vec::new();
    for word in words {
        ids.push(entry_choice::find(daemon, &session, word)?);
    }
    let [a, b] = ids.as_slice() else {
        return Err(WORDS.wrong("two entries are compared").into());
    };
    let params = json!({ "a": a, "b": b }).to_string();
    let answered = daemon.call("compare_branches", &params)?;
    if compare.json {
        return Ok((answered, None));
    }
    let comparison: Comparison =
        serde_json::from_str(answered.get()).context("read the answer to compare_branches")?;
    let ancestor = match &comparison.ancestor_id {
        Some(id) => Some(entry_row(daemon, id)?),
        None => None,
    };
    let sides = [
        side(daemon, a, comparison.a)?,
        side(daemon, b, comparison.b)?,
    ];
    Ok((answered, Some(Shown { ancestor, sides })))
}

fn side(daemon: &mut ChildDaemon, tip: &str, side: Side) -> anyhow::Result<ShownSide> {
    let ids: HashSet<&str> = side.entry_ids.iter().map(String::as_str).collect();
    let wanted = match side.entry_ids.first() {
        Some(first) => rows(
            daemon,
            json!({ "filter": "default", "rootId": first }),
            |row| ids.contains(row.id.as_str()),
        )?,
        None => Vec::new(),
    };
    Ok(ShownSide {
        tip: entry_row(daemon, tip)?,
        rows: wanted,
        files: side.files,
        costs: side.stats.costs,
    })
}

fn show(screen: &mut Screen, shown: &Shown) -> io::Result<()> {
    match &shown.ancestor {
        Some(row) => position::line(screen, "both from", row)?,
        None => writeln!(screen, "they have no common ancestor")?,
    }
    writeln!(screen)?;
    let between = terminal::width(BETWEEN);
    if screen.columns < NARROW {
        for side in &shown.sides {
            for line in side.lines(screen.columns) {
                writeln!(screen, "{}", line.styled(screen))?;
            }
            writeln!(screen)?;
        }
        return Ok(());
    }
    let half = screen.columns.saturating_sub(between) / 2;
    let [left, right] = &shown.sides;
    let (mut left, mut right) = (left.lines(half).into_iter(), right.lines(half).into_iter());
    loop {
        let (one, other) = (left.next(), right.next());
        if one.is_none() && other.is_none() {
            return Ok(());
        }
        let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
        let one = Line {
            text: padded(&one.text, half),
            ..one
        };
        let line = [
            one.styled(screen),
            screen.style(Style::Dim, BETWEEN),
            other.styled(screen),
        ];
        writeln!(screen, "{}", line.concat().trim_end())?;
    }
}

/// A line of one branch.
#[derive(Default)]
struct Line {
    style: Option<Style>,
    text: String,
}

impl Line {
    fn styled(&self, screen: &Screen) -> String {
        match self.style {
            Some(style) => screen.style(style, &self.text),
            None => self.text.clone(),
        }
    }
}

impl ShownSide {
    fn lines(&self, columns: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut push = |style, text: &str| {
            let text = terminal::line(text);
            let text = terminal::cut(&text, columns, "…").into_owned();
            lines.push(Line { style, text });
        };
        push(Some(Style::Bold), &self.tip.plain());
        let entries = count(self.rows.len() as u64, "entry", "entries");
        let cost = match self.costs.says_something() {
            true => format!(", cost {}", self.costs.text()),
            false => String::new(),
        };
        push(Some(Style::Dim), &format!("{entries} since then{cost}"));
        let Files {
            read_files,
            modified_files,
        } = &self.files;
        for (what, files) in [("modified", modified_files), ("read", read_files)] {
            for file in files {
                push(Some(Style::Cyan), &format!("{what} {file}"));
            }
        }
        for row in &self.rows {
            push(None, &format!("{}: {}", row.speaker(), row.preview));
        }
        lines
    }
}
