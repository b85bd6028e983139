//! Draws a session as a tree: one row for each entry, cut to the width of the screen.
//!
//! This module has the look of a row. The rows, their order and their guides come from `get_tree` (protocol.md §6).

use super::screen::{MarkedText, Screen, Style};
use serde::Deserialize;
use std::io::{self, Write};
use treelined_core::terminal;

/// The width of the column of speakers.
const SPEAKER: usize = 10;

/// The members of a row of `get_tree` that are drawn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DrawnRow {
    pub id: String,
    #[serde(rename = "type")]
    kind: String,
    role: Option<String>,
    pub preview: String,
    icon: Option<String>,
    style: Option<String>,
    pub label: Option<String>,
    prefix: Option<String>,
    on_active_path: bool,
    is_leaf: bool,
    #[serde(default)]
    is_error: bool,
    tool_call: Option<serde::de::IgnoredAny>,
    #[serde(rename = "match")]
    found: Option<Match>,
    tokens: Option<u64>,
    /// Present if the row stands for branches that the leaf has left.
    pub folded: Option<FoldedBranches>,
    opened: Option<OpenedBranch>,
    /// The name of the branch that begins with the row.
    branch_name: Option<String>,
    #[serde(default)]
    pub archived: bool,
    pub parent_id: Option<String>,
    /// Whether an archived branch begins with the row. Only rows that are drawn count.
    #[serde(skip)]
    pub begins_archived: bool,
    #[serde(default)]
    flags: Vec<String>,
}

/// The numbers of branches and entries that a folded row stands for.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct FoldedBranches {
    pub branches: u64,
    pub entries: u64,
}

/// Why a row is not folded.
#[derive(Debug, Deserialize)]
struct OpenedBranch {
    /// Present in the first row of an open branch.
    expand: Option<serde::de::IgnoredAny>,
}

/// The matches of a query in a row.
#[derive(Debug, Deserialize)]
struct Match {
    snippet: String,
    ranges: Vec<[usize; 2]>,
}

/// The settings of a drawing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drawing {
    /// The width of the column of ids; 0 shows none.
    pub id_columns: usize,
    /// Whether to draw with ASCII only. The text of entries is not changed.
    pub ascii: bool,
}

impl Drawing {
    /// Draws one row: a mark if it is on the active path, guides, speaker, label, preview (protocol.md §6.9).
    pub(super) fn row(self, screen: &mut Screen, row: &DrawnRow) -> io::Result<()> {
        let (active, leaf, cut) = match self.ascii {
            true => ("* ", " <- active", "..."),
            false => ("• ", " ← active", "…"),
        };
        let mut id = String::new();
        if self.id_columns > 0 {
            id = padded(&row.id, self.id_columns, cut);
        }
        let on_path = if row.on_active_path { active } else { "  " };
        let guides = row.guides(self.ascii);
        let speaker = match row.folded {
            Some(_) => String::new(),
            None => padded(row.speaker(), SPEAKER, cut),
        };
        let marks = row.marks();
        let end = if row.is_leaf { leaf } else { "" };
        let taken = [&id, on_path, &guides, &speaker, &marks, end].map(terminal::width);
        let left = screen.columns.saturating_sub(taken.iter().sum());
        let mut label = row.lead(self.ascii);
        if !label.is_empty() {
            // A label leaves at least a third of the remaining width for the text.
            label = terminal::cut(&label, left - left / 3, cut).into_owned() + " ";
        }
        let left = left.saturating_sub(terminal::width(&label));
        let (said, ranges) = row.said_with_matches(self.ascii);
        let said = MarkedText {
            text: &said,
            ranges: &ranges,
        };

        let path_style = match row.on_active_path {
            true => Style::Bold,
            false => Style::Dim,
        };
        let said = said.draw(screen, left, cut, |text| match row.is_error {
            true => screen.style(Style::Red, text),
            false => match row.style() {
                Some(style) => screen.style(style, text),
                None if row.on_active_path => text.to_owned(),
                None => screen.style(Style::Dim, text),
            },
        });
        let line = [
            screen.style(Style::Dim, &id),
            screen.style(Style::Green, on_path),
            screen.style(Style::Dim, &guides),
            screen.style(path_style, &speaker),
            screen.style(Style::Yellow, &label),
            said,
            screen.style(Style::Dim, &marks),
            screen.style(Style::Green, end),
        ];
        writeln!(screen, "{}", line.concat().trim_end())
    }
}

/// `text` filled up or cut to `columns` columns, and one space after it.
fn padded(text: &str, columns: usize, cut: &str) -> String {
    let text = terminal::line(text);
    let text = terminal::cut(&text, columns, cut);
    let gap = (columns + 1).saturating_sub(terminal::width(&text));
    format!("{text}{}", " ".repeat(gap))
}

impl DrawnRow {
    /// The lines before the row, and a mark where a branch is folded or open.
    fn guides(&self, ascii: bool) -> String {
        let is_open = self.opened.as_ref().is_some_and(|by| by.expand.is_some());
        let mark = match (self.folded.is_some(), is_open, ascii) {
            (true, _, true) => "+ ",
            (true, _, false) => "⊞ ",
            (false, true, true) => "- ",
            (false, true, false) => "⊟ ",
            (false, false, _) => "",
        };
        format!("{}{mark}", self.prefix.as_deref().unwrap_or_default())
    }

    /// The beginning of the text: the name of the branch, and the label.
    fn lead(&self, ascii: bool) -> String {
        let name = self.branch_name.as_deref().map(terminal::line);
        let label = self.label.as_deref().map(terminal::line);
        let dot = if ascii { "-" } else { "·" };
        match (name, label) {
            (Some(name), Some(label)) => format!("{name} {dot} [{label}]"),
            (Some(name), None) => format!("{name} {dot}"),
            (None, Some(label)) => format!("[{label}]"),
            (None, None) => String::new(),
        }
    }

    /// The end of the text: the flags, and whether an archived branch begins here.
    fn marks(&self) -> String {
        let mut marks = String::new();
        if !self.flags.is_empty() {
            marks = format!(" ({})", self.flags.join(", "));
        }
        if self.begins_archived {
            marks.push_str(" (archived)");
        }
        marks
    }

    /// The style that the row requests.
    fn style(&self) -> Option<Style> {
        Some(match self.style.as_deref()? {
            "accent" => Style::Cyan,
            "success" => Style::Green,
            "warning" => Style::Yellow,
            "error" => Style::Red,
            "dim" => Style::Dim,
            _ => return None,
        })
    }

    /// The icon and a space. Empty if there is no icon, or if `ascii` is set and the icon has other characters.
    fn icon(&self, ascii: bool) -> String {
        let icon = self
            .icon
            .as_deref()
            .filter(|icon| !ascii || icon.is_ascii());
        icon.map(|icon| format!("{} ", terminal::line(icon)))
            .unwrap_or_default()
    }

    /// The entry on one line, without styles: its id, the speaker, the label and the text.
    pub(super) fn plain(&self) -> String {
        let label = self.label.as_ref().map(|label| format!("[{label}] "));
        let (id, label) = (&self.id, label.unwrap_or_default());
        let line = format!("{id}  {}  {label}{}", self.speaker(), self.preview);
        terminal::line(&line).into_owned()
    }

    /// Whether the leaf is at this entry, or at an entry below it that has no row.
    pub(super) fn is_at_leaf(&self) -> bool {
        self.is_leaf
    }

    /// The speaker in one word.
    pub(super) fn speaker(&self) -> &str {
        let role = self.role.as_deref().unwrap_or_default();
        match (self.kind.as_str(), role) {
            ("message", "toolResult") => "tool",
            ("message", "bashExecution") => "shell",
            ("message", "branchSummary") | ("branch_summary", _) => "summary",
            ("message", "compactionSummary") | ("compaction", _) => "compaction",
            ("message", "") => "message",
            ("message", role) => role,
            ("thinking_level_change", _) => "thinking",
            ("model_change", _) => "model",
            ("mode_change", _) => "mode",
            ("custom_message", _) => "note",
            ("session_info", _) => "name",
            ("context_edit", _) => "edit",
            (kind, _) => kind,
        }
    }

    /// The text, and the ranges in it that match the query. If the preview does not show the match, the text is the
    /// part of the entry that matches.
    fn said_with_matches(&self, ascii: bool) -> (String, Vec<[usize; 2]>) {
        let said = self.said(ascii);
        let Some(Match { snippet, ranges }) = &self.found else {
            return (said, Vec::new());
        };
        let mut shown = Vec::new();
        let mut done = 0;
        for [start, end] in ranges {
            let found: String = snippet
                .chars()
                .skip(*start)
                .take(end - start.min(end))
                .collect();
            let Some(at) = said.get(done..).and_then(|rest| rest.find(&found)) else {
                // The match may be in the speaker or the label, which the row shows beside the text.
                let is_beside = snippet.trim() == found
                    || self
                        .label
                        .as_ref()
                        .is_some_and(|label| label.contains(&found));
                return match is_beside {
                    true => (said, Vec::new()),
                    false => (snippet.clone(), ranges.clone()),
                };
            };
            let before = said
                .get(..done + at)
                .map_or(0, |before| before.chars().count());
            shown.push([before, before + found.chars().count()]);
            done += at + found.len();
        }
        (said, shown)
    }

    /// The text on one line.
    fn said(&self, ascii: bool) -> String {
        let mut said = String::new();
        // The preview of a row of a tool already names the tool and its failure.
        let is_tool = self.tool_call.is_some();
        if self.is_error && !is_tool {
            said.push_str(if ascii { "! " } else { "✗ " });
        }
        said.push_str(&self.icon(ascii));
        if let Some(tokens) = self.tokens {
            said.push_str(&format!("{tokens} tokens before: "));
        }
        said.push_str(&self.preview);
        said
    }
}
