//! The sessions of other machines in `treelined list`, below the sessions of this machine.

use super::columns::{WHEN, padded, when};
use super::daemon::RawJson;
use super::screen::{Screen, Style};
use super::words::count;
use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use treelined_core::terminal;
use treelined_core::timestamp::Millis;

/// The members of the answer to `list_sessions` about the team. All of them are absent without a team.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TeamAnswer {
    team: Option<Vec<RawJson>>,
    team_count: Option<u64>,
    #[serde(default)]
    team_at_least: bool,
    team_diagnostic: Option<TeamDiagnostic>,
    next_team_cursor: Option<String>,
}

#[derive(Deserialize)]
struct TeamDiagnostic {
    kind: String,
    message: String,
}

/// A machine that has a session open.
#[derive(Deserialize)]
pub(super) struct OpenMachine {
    host: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TeamLine {
    session_id: String,
    name: Option<String>,
    first_message: Option<String>,
    cwd: Option<String>,
    modified: Option<String>,
    entries: Option<u64>,
    host: Option<String>,
    open_on: Vec<OpenMachine>,
}

impl TeamAnswer {
    pub(super) fn truncate(&mut self, limit: usize) {
        if let Some(team) = &mut self.team {
            team.truncate(limit);
        }
    }

    /// The cursor of the next page, if fewer rows than `limit` are known.
    pub(super) fn next(&self, limit: usize) -> Option<&str> {
        let known = self.team.as_ref().map_or(0, Vec::len);
        self.next_team_cursor.as_deref().filter(|_| known < limit)
    }

    /// Adds the next page.
    pub(super) fn extend(&mut self, page: Self) {
        self.team
            .get_or_insert_default()
            .extend(page.team.unwrap_or_default());
        self.next_team_cursor = page.next_team_cursor;
        // The last page says whether rows are lacking.
        self.team_diagnostic = page.team_diagnostic;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.team.as_ref().is_none_or(Vec::is_empty)
    }

    /// Reports on stderr why the list may be incomplete.
    pub(super) fn note(&self) -> io::Result<()> {
        let Some(TeamDiagnostic { kind, message }) = &self.team_diagnostic else {
            return Ok(());
        };
        let message = terminal::line(message);
        writeln!(
            io::stderr(),
            "note: the team's list is incomplete: {kind}: {message}"
        )
    }

    /// Adds these members unchanged to the members of the output.
    pub(super) fn add_to(&self, members: &mut Map<String, Value>) -> anyhow::Result<()> {
        if let Some(team) = &self.team {
            let rows = team.iter().map(|row| serde_json::from_str(row.get()));
            let rows: Vec<Value> = rows.collect::<Result<_, _>>().context("read a session")?;
            members.insert("team".to_owned(), Value::Array(rows));
        }
        if let Some(count) = self.team_count {
            members.insert("teamCount".to_owned(), json!(count));
        }
        if self.team_at_least {
            members.insert("teamAtLeast".to_owned(), json!(true));
        }
        if let Some(TeamDiagnostic { kind, message }) = &self.team_diagnostic {
            let why = json!({ "kind": kind, "message": message });
            members.insert("teamDiagnostic".to_owned(), why);
        }
        Ok(())
    }

    pub(super) fn print(&self, screen: &mut Screen, now: Millis) -> anyhow::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let rows = self.team.as_deref().unwrap_or_default();
        let total = self.team_count.unwrap_or_default();
        let least = if self.team_at_least { "more than " } else { "" };
        let head = match total > rows.len() as u64 {
            true => format!(
                "on other machines: {least}{}; {} shown",
                count(total, "session", "sessions"),
                rows.len()
            ),
            false => "on other machines".to_owned(),
        };
        writeln!(screen, "\n{}", screen.style(Style::Dim, &head))?;
        for row in rows {
            let row: TeamLine = serde_json::from_str(row.get()).context("read a session")?;
            writeln!(screen, "{}", line(screen, &row, now))?;
        }
        Ok(())
    }
}

/// The name of a session, or else its first message. `None` if it has neither.
pub(super) fn title(
    screen: &Screen,
    name: Option<&str>,
    first_message: Option<&str>,
) -> Option<String> {
    let name = name.map(|name| screen.style(Style::Bold, &terminal::line(name)));
    name.or_else(|| first_message.map(|first| terminal::line(first).into_owned()))
}

/// The line of a session: `WHEN  ID  NAME  214 entries  build-7:/srv/agent  open on laptop`. The id is not cut, since
/// opening the session needs it.
fn line(screen: &Screen, row: &TeamLine, now: Millis) -> String {
    let at = row.modified.as_deref().map(|at| when(at, now));
    let at = padded(&at.unwrap_or_default(), WHEN);
    let mut parts = vec![
        screen.style(Style::Dim, &at),
        screen.style(Style::Cyan, &terminal::line(&row.session_id)),
    ];
    parts.extend(title(
        screen,
        row.name.as_deref(),
        row.first_message.as_deref(),
    ));
    parts.extend(
        row.entries
            .map(|entries| count(entries, "entry", "entries")),
    );
    if let (Some(host), Some(cwd)) = (&row.host, &row.cwd) {
        let place = format!("{}:{}", terminal::line(host), terminal::line(cwd));
        parts.push(screen.style(Style::Dim, &place));
    }
    format!("{}{}", parts.join("  "), open_on(&row.open_on))
}

/// The machines that have a session open, such as `  open on laptop, build-7`; empty if there are none.
pub(super) fn open_on(machines: &[OpenMachine]) -> String {
    if machines.is_empty() {
        return String::new();
    }
    let hosts: Vec<_> = machines.iter().map(|by| terminal::line(&by.host)).collect();
    format!("  open on {}", hosts.join(", "))
}
