//! `treelined branches`: lists the branches of a session.

use super::columns::{padded, when};
use super::daemon::{ChildDaemon, RawJson};
use super::opened::{OpenedSession, SessionUse, open};
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::{SessionChoice, SessionQuery};
use super::shed::ShedBranch;
use super::words::{count, dollars};
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::id::Source;
use treelined_core::terminal;
use treelined_core::timestamp::Millis;
use treelined_files::clock::SystemSource;
use treelined_usage::Prices;

/// The most columns of an id.
const MOST_ID: usize = 16;
/// The fewest columns for the name of a branch besides its cost.
const FEWEST_NAME: usize = 16;

/// The cost of each branch that was left, as a text, by the id of its tip.
type LeftCosts = HashMap<String, String>;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined branches           the branches of the newest session of this directory
  treelined go \"not the cache\"  goes to the end of a branch, by its label or id

A row shows the name of the branch, else the label of its last entry, else its first message. • marks the branch of the leaf.
The others show their cost, as treelined usage --by branch counts it.")]
pub(crate) struct BranchesArgs {
    #[command(flatten)]
    session: SessionChoice,
    /// List archived and shed branches too
    #[arg(long)]
    archived: bool,
    /// Print the result of list_branches as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BranchList {
    branches: Vec<Branch>,
    archived_branches: Option<u64>,
    /// The number of branches in the cold file, and these branches if archived ones are listed.
    shed_branches: Option<u64>,
    #[serde(default)]
    shed: Vec<ShedBranch>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    tip_id: String,
    name: String,
    message_count: u64,
    last_activity: String,
    is_active: bool,
    #[serde(default)]
    archived: bool,
}

pub(super) fn run(options: &Options, branches: &BranchesArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let read = read(&mut daemon, branches);
    daemon.end()?;
    let (session, answered) = read?;
    let mut screen = Screen::paged(options);
    match branches.json {
        true => writeln!(screen, "{}", terminal::json(answered.get()))?,
        false => {
            let list: BranchList =
                serde_json::from_str(answered.get()).context("read the answer to list_branches")?;
            let costs = costs(options, &session)?;
            show(
                &mut screen,
                &session,
                &list,
                &costs,
                &branches.session.query(),
            )?;
        }
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn read(
    daemon: &mut ChildDaemon,
    branches: &BranchesArgs,
) -> anyhow::Result<(OpenedSession, RawJson)> {
    let session = open(daemon, &branches.session.query(), SessionUse::Read)?;
    let answered = daemon.call(
        "list_branches",
        &json!({ "archived": branches.archived }).to_string(),
    )?;
    Ok((session, answered))
}

/// Counts the costs of the branches that the leaf has left. Branches whose answers used no tokens are left out.
fn costs(options: &Options, session: &OpenedSession) -> anyhow::Result<LeftCosts> {
    let Some(path) = &session.path else {
        return Ok(LeftCosts::new());
    };
    let prices = Prices::new(options.config()?.prices);
    let rows = treelined_usage::branches(path, &prices)?.into_iter();
    let is_left = |branch: &treelined_usage::BranchPlace| !branch.is_active;
    let rows = rows.filter(|row| row.branch.as_ref().is_some_and(is_left));
    let rows = rows.filter(|row| row.sums.cost.says_something());
    let shown = rows.map(|row| {
        let cost = format!("cost {}", dollars(&row.sums.cost));
        (row.key, cost)
    });
    Ok(shown.collect())
}

fn show(
    screen: &mut Screen,
    session: &OpenedSession,
    list: &BranchList,
    costs: &LeftCosts,
    query: &SessionQuery,
) -> io::Result<()> {
    let branches = &list.branches;
    let title = terminal::line(session.title());
    let title = terminal::cut(&title, screen.columns, "…");
    writeln!(screen, "{}", screen.style(Style::Bold, &title))?;
    let mut total = count(branches.len() as u64, "branch", "branches");
    if let Some(archived) = list.archived_branches {
        total += &format!(", {archived} archived");
    }
    if let Some(shed) = list.shed_branches {
        total += &format!(", {shed} shed");
    }
    writeln!(screen, "{}\n", screen.style(Style::Dim, &total))?;
    let mut rows: Vec<[String; 5]> = branches
        .iter()
        .map(|branch| branch.cells(SystemSource.now_ms(), costs))
        .collect();
    let widths = |rows: &[[String; 5]]| {
        [0, 1, 2, 3].map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| terminal::width(cell)).max();
            widest
                .filter(|widest| *widest > 0)
                .map_or(0, |widest| widest + 2)
        })
    };
    let left = |widths: [usize; 4]| {
        let taken: usize = widths.iter().sum();
        screen.columns.saturating_sub(taken + 2)
    };
    if left(widths(&rows)) < FEWEST_NAME {
        rows.iter_mut().for_each(|[_, _, _, cost, _]| cost.clear());
    }
    let widths = widths(&rows);
    let left = left(widths);
    let [ids, times, numbers, amounts] = widths;
    for ([id, when, messages, cost, name], branch) in rows.iter().zip(branches) {
        let mark = if branch.is_active { "• " } else { "  " };
        let name = terminal::cut(name, left, "…");
        let name = match branch.is_active {
            true => screen.style(Style::Bold, &name),
            false => name.into_owned(),
        };
        let line = [
            screen.style(Style::Green, mark),
            screen.style(Style::Cyan, &padded(id, ids)),
            screen.style(Style::Dim, &padded(when, times)),
            screen.style(Style::Dim, &padded(messages, numbers)),
            screen.style(Style::Dim, &padded(cost, amounts)),
            name,
        ];
        writeln!(screen, "{}", line.concat().trim_end())?;
    }
    if branches.len() > 1 {
        let note = format!("treelined go{} ID goes to the end of one", query.as_word());
        let note = terminal::line(&note);
        writeln!(screen, "\n{}", screen.style(Style::Dim, &note))?;
    }
    show_shed(screen, &list.shed, query)
}

fn show_shed(screen: &mut Screen, shed: &[ShedBranch], query: &SessionQuery) -> io::Result<()> {
    if shed.is_empty() {
        return Ok(());
    }
    writeln!(screen)?;
    for branch in shed {
        let line = branch.line();
        writeln!(screen, "{}", terminal::cut(&line, screen.columns, "…"))?;
    }
    let note = format!(
        "treelined unshed{} --branch ID brings one back",
        query.as_word()
    );
    let note = terminal::line(&note);
    writeln!(screen, "\n{}", screen.style(Style::Dim, &note))
}

impl Branch {
    /// The texts of the columns: the id of the tip, the time, the number of messages, the cost, and the name.
    fn cells(&self, now: Millis, costs: &LeftCosts) -> [String; 5] {
        let id = terminal::line(&self.tip_id);
        [
            terminal::cut(&id, MOST_ID, "…").into_owned(),
            when(&self.last_activity, now),
            count(self.message_count, "message", "messages"),
            costs.get(&self.tip_id).cloned().unwrap_or_default(),
            match self.archived {
                true => format!("{} (archived)", terminal::line(&self.name)),
                false => terminal::line(&self.name).into_owned(),
            },
        ]
    }
}
