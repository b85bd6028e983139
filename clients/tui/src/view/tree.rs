//! Draws the rows of the tree.

use super::{marked, put, put_emptiness};
use crate::keys::{Action, Context};
use crate::message::{Kind, Row, RowStyle};
use crate::model::{Connection, Model};
use crate::text;
use crate::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use std::ops::Range;

/// The number of columns before the guides: the cursor or a mark, the active path, a space.
const GUTTER: usize = 3;

/// If the pane has fewer columns than this, the words before the text of rows have no separate column.
const NARROW: usize = 60;

/// The width of the column of these words.
const SPEAKER: usize = 10;

/// If the pane has fewer columns than this, no columns are shown beside the text.
const LEAST_WITH_COLUMNS: usize = 36;

/// The widths of the columns of tokens and of times.
const TOKENS: usize = 5;
const TIME: usize = 11;

/// The width of the column with times without dates, for narrow screens.
const CLOCK: usize = 5;

const ACTIVE: &str = " ← active";
const OTHERS: &str = " ← others";
const BOTH: &str = " ← active, others";
const ARCHIVED: &str = " (archived)";

pub fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    if area.height == 0 {
        return;
    }
    if let Some(mut why) = model.tree.emptiness() {
        if let Connection::Connecting = model.link {
            why = "Starting the daemon…".to_owned();
        } else if model.looks_for_latest() {
            why = "Looking for the session that was used last…".to_owned();
        }
        if model.tree.rows.is_known() && model.tree.search.is_empty() {
            let (compose, all) = (Action::Compose, Action::FilterAll);
            let hint = |action| model.settings.keymap.hint(Context::Tree, action);
            why.push_str(&format!(" {} writes a message,", hint(compose)));
            why.push_str(&format!(" {} shows every entry.", hint(all)));
        }
        put_emptiness(model, frame, area, &why);
        return;
    }
    for line in 0..usize::from(area.height) {
        let at = model.tree.top + line;
        if at >= model.tree.rows.total() {
            break;
        }
        let drawn = match model.tree.rows.get(at) {
            Some(row) => row_line(model, row, at, usize::from(area.width)),
            None => Line::styled("   ·", model.settings.theme.dim),
        };
        put(frame, area, line, drawn);
    }
}

fn row_line(model: &Model, row: &Row, at: usize, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let selected = at == model.tree.cursor;
    let marked = model.tree.marks.iter().any(|(id, _)| *id == row.id);
    let pointer = match (marked, selected) {
        (true, _) => Span::styled("◆", theme.mark),
        (false, true) => Span::styled("›", theme.active),
        (false, false) => Span::raw(" "),
    };
    let path = if row.on_active_path {
        Span::styled("•", theme.active)
    } else {
        Span::raw(" ")
    };
    let mut spans = vec![pointer, path, Span::raw(" ")];
    let guides = guides(row);
    spans.push(Span::styled(guides, theme.guide));
    let active = row.is_leaf && model.tree.leaf.is_some();
    // If the entry is hidden, the mark is at its nearest visible ancestor, like the mark of the leaf.
    let others =
        model.tree.others().is_some() && model.tree.others_row.as_deref() == Some(&*row.id);
    let tail = match (active, others) {
        (true, true) => BOTH,
        (true, false) => ACTIVE,
        (false, true) => OTHERS,
        (false, false) if row.is_archived && row.heads_branch() => ARCHIVED,
        (false, false) => "",
    };
    let used: usize = spans.iter().map(Span::width).sum();
    let right = right_columns(model, row, columns);
    let flags = match row.flags.is_empty() {
        true => String::new(),
        false => format!(" ({})", row.flags.join(", ")),
    };
    let ends = text::width(&flags) + text::width(tail) + text::width(&right);
    let room = columns.saturating_sub(used + ends);
    let mut content = content(model, row, columns < NARROW, room);
    cut_spans(&mut content, room);
    spans.extend(content);
    if !flags.is_empty() {
        spans.push(Span::styled(flags, theme.error));
    }
    if !tail.is_empty() {
        let style = match (active, others) {
            (true, _) => theme.active,
            (false, true) => theme.mark,
            (false, false) => theme.dim,
        };
        spans.push(Span::styled(tail, style));
    }
    if selected || !right.is_empty() {
        let used: usize = spans.iter().map(Span::width).sum();
        let gap = columns.saturating_sub(used + text::width(&right));
        spans.push(Span::raw(" ".repeat(gap)));
        spans.push(Span::styled(right, theme.dim));
    }
    if !selected {
        return Line::from(spans);
    }
    let style = if model.preview_focused {
        theme.unfocused
    } else {
        theme.selected
    };
    let restyled = spans.into_iter().map(|span| {
        let on_selection = theme.on_selection(span.style, style);
        Span::styled(span.content, on_selection)
    });
    Line::from_iter(restyled)
}

/// Returns the time and the tokens of a row; empty if they are not shown, or leave too little room for the text.
fn right_columns(model: &Model, row: &Row, columns: usize) -> String {
    if !model.tree.columns.shown || columns < LEAST_WITH_COLUMNS {
        return String::new();
    }
    let tokens = model.tree.columns.tokens(row);
    let time = match columns < NARROW {
        true => row.time.rsplit(' ').next().unwrap_or_default(),
        false => &row.time,
    };
    let wide = if columns < NARROW { CLOCK } else { TIME };
    format!("  {tokens:>TOKENS$}  {time:>wide$}")
}

/// Returns the guides. A mark shows where a branch is folded or was opened.
fn guides(row: &Row) -> String {
    let mark = match (row.is_folded(), row.expanded_by.is_empty()) {
        (true, _) => "⊞ ",
        (false, false) => "⊟ ",
        (false, true) => "",
    };
    format!("{}{mark}", row.prefix)
}

/// Returns the columns of the fold mark in the row of the cursor, counted from the left of the pane.
pub fn fold_mark_columns(model: &Model) -> Option<Range<u16>> {
    let row = model.tree.selected()?;
    let guides = guides(row);
    let marked = guides.ends_with("⊞ ") || guides.ends_with("⊟ ");
    let end = u16::try_from(GUTTER + text::width(&guides)).ok()?;
    marked.then(|| end.saturating_sub(2)..end)
}

/// Returns the speaker, the name of the branch, the label and the text of a row, in the order of all clients (protocol.md
/// §6.9). `room` is the width for all of them. Only a text with matches of a search is cut here.
fn content(model: &Model, row: &Row, narrow: bool, room: usize) -> Vec<Span<'static>> {
    let theme = &model.settings.theme;
    let mut spans = Vec::new();
    if !row.is_folded() {
        spans.push(speaker(row, theme, narrow));
        if let Some(name) = &row.branch_name {
            spans.push(Span::styled(format!("{name} · "), theme.label));
        }
        if !row.sessions.is_empty() {
            spans.push(Span::styled(format!("↗ {} · ", row.born()), theme.mark));
        }
    }
    spans.extend(row.label.as_ref().map(|label| {
        let time = row.label_time.as_ref().filter(|_| model.tree.label_times);
        let time = time.map_or_else(String::new, |time| format!(" {time}"));
        Span::styled(format!("[{label}{time}] "), theme.label)
    }));
    if row.is_folded() {
        spans.push(Span::styled(row.preview.clone(), theme.dim));
        return spans;
    }
    // The preview of a call says that it failed.
    if row.is_error && !row.is_call {
        spans.push(Span::styled("✗ ", theme.error));
    }
    if let Some(icon) = &row.icon {
        let mark = row.style.map_or(theme.plugin, |style| theme.row(style));
        spans.push(Span::styled(format!("{icon} "), mark));
    }
    let style = text_style(row, theme);
    if let Some(found) = model.tree.found(row) {
        let used: usize = spans.iter().map(Span::width).sum();
        spans.extend(marked(theme, found, room.saturating_sub(used), style));
        return spans;
    }
    if let Some(tokens) = row.tokens {
        spans.push(Span::styled(format!("{tokens} tokens before: "), theme.dim));
    }
    match row.is_call {
        true => spans.extend(call(row, theme)),
        false => spans.push(Span::styled(row.preview.clone(), style)),
    }
    spans
}

/// Returns a call with its result: the tool, its argument, and a failure in the colour of errors.
fn call(row: &Row, theme: &Theme) -> Vec<Span<'static>> {
    // The preview of a command does not begin with the name of the tool.
    let name = row.tool.as_deref().unwrap_or_default();
    let (name, rest) = match row.preview.strip_prefix(name) {
        Some(rest) => (name, rest),
        None => ("", row.preview.as_str()),
    };
    let (argument, result) = match rest.find(" → ") {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (argument_style, result_style) = match (row.is_error, result.is_empty()) {
        (true, true) => (theme.error, theme.error),
        (true, false) => (theme.tool, theme.error),
        (false, _) => (theme.tool, theme.tool),
    };
    vec![
        Span::styled(name.to_owned(), theme.tool.add_modifier(Modifier::BOLD)),
        Span::styled(argument.to_owned(), argument_style),
        Span::styled(result.to_owned(), result_style),
    ]
}

/// Returns the word before the text of a row. It fills a column unless the pane is narrow.
fn speaker(row: &Row, theme: &Theme, narrow: bool) -> Span<'static> {
    let failed = |style: Style| if row.is_error { theme.error } else { style };
    let style = match &row.kind {
        Kind::User => theme.user,
        Kind::Assistant | Kind::Other(_) => theme.dim,
        Kind::Tool | Kind::Bash => failed(theme.tool),
        Kind::Compaction => theme.compaction,
        Kind::Summary => theme.summary,
        Kind::Plugin => row.style.map_or(theme.plugin, |style| theme.row(style)),
    };
    let word = text::cut(row.kind.word(), SPEAKER);
    let gap = if narrow {
        0
    } else {
        SPEAKER.saturating_sub(text::width(&word))
    };
    Span::styled(format!("{word}{} ", " ".repeat(gap)), style)
}

/// Returns the style of the text of a row.
fn text_style(row: &Row, theme: &Theme) -> Style {
    if row.is_error {
        return theme.error;
    }
    match &row.kind {
        Kind::User => theme.text,
        Kind::Assistant => theme.assistant,
        Kind::Tool | Kind::Bash => theme.tool,
        Kind::Compaction => theme.dim,
        Kind::Summary => theme.summary,
        // Only the mark has the accent colour, since the text is for people, like a message of the user.
        Kind::Plugin => match row.style {
            Some(RowStyle::Accent) | None => theme.text,
            Some(style) => theme.row(style),
        },
        Kind::Other(_) => row.style.map_or(theme.dim, |style| theme.row(style)),
    }
}

/// Cuts the spans to `room` columns, with `…` at the cut. If the last shown span fits exactly, it loses one column to
/// `…`.
fn cut_spans(spans: &mut Vec<Span<'static>>, room: usize) {
    if spans.iter().map(Span::width).sum::<usize>() <= room {
        return;
    }
    let mut left = room;
    for at in 0..spans.len() {
        let Some(span) = spans.get_mut(at) else {
            return;
        };
        let wide = span.width();
        if wide >= left {
            // The space stands for the spans after this one.
            span.content = text::cut(&format!("{} ", span.content), left).into();
            spans.truncate(at + 1);
            return;
        }
        left -= wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result was once left out without a mark if the call before it had exactly the width of the row.
    #[test]
    fn a_cut_has_a_mark_at_every_width() {
        let whole = "Edit cart.py → +1 −1";
        for room in 1..=25 {
            let words = ["Edit", " cart.py", "", " → +1 −1"];
            let mut spans: Vec<Span> = words.into_iter().map(Span::raw).collect();
            cut_spans(&mut spans, room);
            let shown: String = spans.iter().map(|span| span.content.as_ref()).collect();
            assert_eq!(shown, text::cut(whole, room), "in {room} columns");
        }
    }
}
