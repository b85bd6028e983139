//! `treelined stats`: counts the tokens, cost and time of a session or of one of its branches.

use super::daemon::{ChildDaemon, RawJson};
use super::entry_choice;
use super::opened::{OpenedSession, SessionUse, open};
use super::options::Options;
use super::screen::{Screen, Style};
use super::session_choice::SessionChoice;
use super::words::{count, dollars};
use anyhow::Context;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use treelined_core::stats::Cost;
use treelined_core::terminal;

/// The width of the column of names.
const NAMES: usize = 12;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined stats                     all branches of the newest session of this directory
  treelined stats \"A tour\" --branch   the path to the leaf
  treelined stats --branch q2         the path to the entry q2")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    session: SessionChoice,
    /// Only the path to this entry, by its id, label or beginning of the id [without ENTRY: to the leaf]
    #[arg(long, value_name = "ENTRY", num_args = 0..=1, default_missing_value = "",
          add = ArgValueCompleter::new(super::entry_candidates::entries))]
    branch: Option<String>,
    /// Print the result of get_stats as JSON
    #[arg(long)]
    json: bool,
}

/// The members of `get_stats` that are shown (protocol.md §15.5).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stats {
    messages: BTreeMap<String, u64>,
    tool_calls: u64,
    tokens: Tokens,
    costs: Costs,
    #[serde(default)]
    models: Vec<ModelStats>,
    started_at: Option<String>,
    ended_at: Option<String>,
    active_ms: u64,
    context_tokens: Option<u64>,
    shed_branches: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelStats {
    provider: String,
    model_id: String,
    messages: u64,
    tokens: Tokens,
    costs: Costs,
}

/// A cost in its three parts: recorded, estimated, unknown (protocol.md §15.5).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Costs {
    recorded: Option<f64>,
    estimated: Option<f64>,
    unknown_answers: u64,
}

pub(super) fn run(options: &Options, stats: &StatsArgs) -> anyhow::Result<ExitCode> {
    let mut daemon = ChildDaemon::start(options)?;
    let read = read(&mut daemon, stats);
    daemon.end()?;
    let (session, answered) = read?;
    let mut screen = Screen::new();
    match stats.json {
        true => writeln!(screen, "{}", terminal::json(answered.get()))?,
        false => {
            let title = terminal::line(session.title());
            let title = terminal::cut(&title, screen.columns, "…");
            writeln!(screen, "{}", screen.style(Style::Bold, &title))?;
            let stats: Stats =
                serde_json::from_str(answered.get()).context("read the answer to get_stats")?;
            for (name, text) in stats.rows() {
                row(&mut screen, name, &text)?;
            }
        }
    }
    screen.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn read(daemon: &mut ChildDaemon, stats: &StatsArgs) -> anyhow::Result<(OpenedSession, RawJson)> {
    let session = open(daemon, &stats.session.query(), SessionUse::Read)?;
    let params = match stats.branch.as_deref() {
        None => json!({}),
        Some("") => json!({ "leafId": leaf(daemon)? }),
        Some(text) => json!({ "leafId": entry_choice::find(daemon, &session, text)? }),
    };
    let answered = daemon.call("get_stats", &params.to_string())?;
    Ok((session, answered))
}

fn leaf(daemon: &mut ChildDaemon) -> anyhow::Result<Option<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct LeafResult {
        leaf_id: Option<String>,
    }
    let answered = daemon.call("get_leaf", "{}")?;
    let leaf: LeafResult =
        serde_json::from_str(answered.get()).context("read the answer to get_leaf")?;
    Ok(leaf.leaf_id)
}

/// Shows a row. A text that does not fit is broken after a comma, and continues on the next line.
fn row(screen: &mut Screen, name: &str, text: &str) -> io::Result<()> {
    let left = screen.columns.saturating_sub(NAMES).max(1);
    let name = screen.style(Style::Dim, &format!("{name:<NAMES$}"));
    write!(screen, "{name}")?;
    let mut used = 0;
    for (at, part) in text.split(", ").enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let part = terminal::line(part);
        if at > 0 && used + comma.len() + terminal::width(&part) > left {
            write!(screen, ",\n{:NAMES$}{part}", "")?;
            used = terminal::width(&part);
        } else {
            write!(screen, "{comma}{part}")?;
            used += comma.len() + terminal::width(&part);
        }
    }
    writeln!(screen)
}

impl Stats {
    /// The names and texts of the rows.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let messages: u64 = self.messages.values().sum();
        let roles = self.messages.iter();
        let roles: Vec<String> = roles
            .map(|(role, number)| match role.as_str() {
                "toolResult" => format!("{number} tool"),
                "bashExecution" => format!("{number} shell"),
                role => format!("{number} {role}"),
            })
            .collect();
        let messages = match roles.is_empty() {
            true => "none".to_owned(),
            false => format!("{messages} ({})", roles.join(", ")),
        };
        let mut rows = vec![
            ("messages", messages),
            ("tool calls", self.tool_calls.to_string()),
            ("tokens", self.tokens.text()),
            ("cost", self.costs.text()),
        ];
        if let Some(tokens) = self.context_tokens {
            rows.push(("context", count(tokens, "token", "tokens")));
        }
        if let Some(shed) = self.shed_branches {
            let branches = count(shed, "shed branch", "shed branches");
            let them = if shed == 1 { "it" } else { "them" };
            let text = format!("{branches}, treelined unshed brings {them} back");
            rows.push(("left out", text));
        }
        if let Some((first, last)) = self.started_at.as_ref().zip(self.ended_at.as_ref()) {
            rows.push(("from", minute(first)));
            rows.push(("to", minute(last)));
            rows.push(("active", duration(self.active_ms)));
        }
        let named = self
            .models
            .iter()
            .filter(|model| !model.model_id.is_empty());
        for (at, model) in named.enumerate() {
            rows.push((if at == 0 { "models" } else { "" }, model.text()));
        }
        rows
    }
}

impl Tokens {
    fn text(&self) -> String {
        let Self {
            input,
            output,
            cache_read,
            cache_write,
        } = self;
        match input + output + cache_read + cache_write {
            0 => "none recorded".to_owned(),
            _ => format!(
                "{input} in, {output} out, {cache_read} read from the cache, {cache_write} written to it"
            ),
        }
    }
}

impl ModelStats {
    fn text(&self) -> String {
        let messages = count(self.messages, "message", "messages");
        format!(
            "{}/{}: {messages}, {} in, {} out, cost {}",
            self.provider,
            self.model_id,
            self.tokens.input,
            self.tokens.output,
            self.costs.text()
        )
    }
}

impl Costs {
    fn cost(&self) -> Cost {
        Cost {
            recorded: self.recorded,
            estimated: self.estimated,
            unknown: self.unknown_answers,
        }
    }

    pub(super) fn text(&self) -> String {
        dollars(&self.cost())
    }

    /// Whether there is any cost.
    pub(super) fn says_something(&self) -> bool {
        self.cost().says_something()
    }
}

/// The date and the minute in a timestamp (protocol.md §1.5).
fn minute(time: &str) -> String {
    let minute: String = time.chars().take(16).collect();
    minute.replace('T', " ")
}

fn duration(ms: u64) -> String {
    let minutes = ms / 60_000;
    match (minutes / 60, minutes % 60) {
        (0, 0) => count(ms / 1000, "second", "seconds"),
        (0, minutes) => count(minutes, "minute", "minutes"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
