//! A hit of a search, as it is printed.

use super::screen::{MarkedText, Screen, Style};
use super::words::count;
use serde::Deserialize;
use treelined_core::terminal;

/// The width of the column of field kinds.
const FIELD: usize = 11;
/// The most columns of an id.
const ID_COLUMNS: usize = 16;

/// A hit, with the members that are shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hit {
    pub(super) session_id: String,
    pub(super) session_name: String,
    entry_id: String,
    field: String,
    at: String,
    snippet: String,
    ranges: Vec<[usize; 2]>,
    /// Words that the snippet has only as parts of other words.
    #[serde(default)]
    inside: Vec<String>,
    branch: Branch,
    /// The user of the team's database who wrote the entry.
    pub(super) author: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    tip_id: String,
    on_active_path: bool,
    left_at: Option<String>,
    reason: Option<Said>,
    instead: Option<Said>,
    left_in_turn: Option<LeftInTurn>,
}

/// The branches that were left in the turn of an entry.
#[derive(Deserialize)]
struct LeftInTurn {
    count: u64,
    newest: Vec<LeftAttempt>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeftAttempt {
    tip_id: String,
    reason: Option<Said>,
    end: Option<Said>,
}

/// The text of an entry.
#[derive(Deserialize)]
struct Said {
    text: String,
}

impl Hit {
    /// Writes the hit and its story, a line each.
    pub(super) fn push(&self, out: &mut String, screen: &Screen) {
        let on_path = if self.branch.on_active_path {
            "• "
        } else {
            "  "
        };
        let at: String = self.at.replace('T', " ").chars().take(16).collect();
        let branch = match (&self.branch, &self.branch.left_at) {
            (
                Branch {
                    on_active_path: true,
                    ..
                },
                _,
            ) => String::new(),
            (branch, Some(left_at)) => {
                format!(
                    " ← branch {}, left at {}",
                    short(&branch.tip_id),
                    short(left_at)
                )
            }
            (branch, None) => format!(" ← branch {}", short(&branch.tip_id)),
        };
        let field = format!("{:<FIELD$}", self.field);
        let entry = short(&self.entry_id);
        let snippet = MarkedText {
            text: &self.snippet,
            ranges: &self.ranges,
        };
        let inside = match self.inside.is_empty() {
            true => String::new(),
            false => format!(
                " (part of a word: {})",
                terminal::line(&self.inside.join(", "))
            ),
        };
        let author = self.author.as_deref().map(terminal::line);
        let author = author.map_or(String::new(), |author| format!(" by {author}"));
        let line = [
            screen.style(Style::Green, on_path),
            screen.style(Style::Dim, &format!("{at}  {field}  {entry}  ")),
            snippet.draw(screen, usize::MAX, "", str::to_owned),
            screen.style(Style::Dim, &inside),
            screen.style(Style::Dim, &branch),
            screen.style(Style::Dim, &author),
        ];
        out.push_str(line.concat().trim_end());
        out.push('\n');
        for line in self.branch.story() {
            let line = terminal::cut(&line, screen.columns, "…");
            out.push_str(&screen.style(Style::Dim, &line));
            out.push('\n');
        }
    }
}

impl Branch {
    /// Lines about why the branch was left and what was tried instead, or about the branches that were left in the turn of
    /// the hit.
    fn story(&self) -> Vec<String> {
        let said = [("left because", &self.reason), ("instead", &self.instead)];
        let said = said.into_iter().filter_map(|(name, said)| {
            let text = &said.as_ref()?.text;
            Some(format!("    {name}: {}", terminal::line(text)))
        });
        let mut lines: Vec<String> = said.collect();
        let Some(left) = &self.left_in_turn else {
            return lines;
        };
        for one in &left.newest {
            let (name, said) = match (&one.reason, &one.end) {
                (Some(reason), _) => (" because", reason.text.as_str()),
                (None, Some(end)) => ("; it ends", end.text.as_str()),
                (None, None) => ("", ""),
            };
            let tip = short(&one.tip_id);
            let line = format!("    left here: {tip}{name}: {}", terminal::line(said));
            lines.push(line.trim_end_matches(": ").to_owned());
        }
        let more = left.count.saturating_sub(left.newest.len() as u64);
        if more > 0 {
            let more = count(more, "branch more", "branches more");
            lines.push(format!("    left here: {more}"));
        }
        lines
    }
}

/// An id, cut to its column.
fn short(id: &str) -> String {
    terminal::cut(&terminal::line(id), ID_COLUMNS, "…").into_owned()
}
