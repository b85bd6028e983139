//! The parts that several dialogs have.

use crate::model::Model;
use crate::model::input::Input;
use crate::{text, time};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::time::Duration;

/// The preferred width of a dialog in columns.
pub(super) const COLUMNS: u16 = 64;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Wraps a text that has one style.
pub(super) fn wrapped(
    text: &str,
    columns: u16,
    style: Style,
) -> impl Iterator<Item = Line<'static>> {
    let lines = text::wrap(text, usize::from(columns));
    lines.into_iter().map(move |line| Line::styled(line, style))
}

/// Returns the title of a running operation, with its duration.
pub(super) fn moving_title(what: &str, elapsed: Duration) -> String {
    let turn = usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % SPINNER.len();
    let spinner = SPINNER.get(turn).copied().unwrap_or_default();
    format!("{spinner} {what} · {}", time::elapsed(elapsed))
}

pub(super) fn esc_hint(model: &Model, what: &str) -> Line<'static> {
    let theme = &model.settings.theme;
    Line::from(vec![
        Span::styled("esc ", theme.key),
        Span::styled(what.to_owned(), theme.dim),
    ])
}

/// Returns the keys of a dialog with their effects, in as many lines of `columns` columns as they
/// need.
pub(super) fn key_lines(
    model: &Model,
    keys: &[(&str, &str)],
    columns: usize,
) -> Vec<Line<'static>> {
    const GAP: usize = 3;
    let theme = &model.settings.theme;
    let mut lines: Vec<Line> = Vec::new();
    for (key, about) in keys {
        let wide = text::width(key) + 1;
        let parts = text::wrap(about, columns.saturating_sub(wide).max(1));
        let mut parts = parts.into_iter();
        let begin = parts.next().unwrap_or_default();
        let spans = [
            Span::styled((*key).to_owned(), theme.key),
            Span::styled(format!(" {begin}"), theme.dim),
        ];
        let needed = wide + text::width(&begin);
        match lines.last_mut() {
            Some(line) if parts.len() == 0 && line.width() + GAP + needed <= columns => {
                line.push_span(Span::raw(" ".repeat(GAP)));
                line.extend(spans);
            }
            _ => lines.push(Line::from_iter(spans)),
        }
        let indent = " ".repeat(wide);
        lines.extend(parts.map(|part| Line::styled(format!("{indent}{part}"), theme.dim)));
    }
    lines
}

pub(super) fn input_line(input: &Input, columns: usize) -> (String, usize) {
    let (rows, (_, column)) = input.layout(usize::MAX);
    let shown = rows.first().map_or("", |row| &row.text);
    let visible = text::cut_front(shown, columns);
    let cut = text::width(shown).saturating_sub(text::width(&visible));
    (visible, column.saturating_sub(cut))
}

pub(super) fn put_cursor(frame: &mut Frame, inner: Rect, row: usize, column: usize) {
    let x = u16::try_from(column)
        .unwrap_or(0)
        .min(inner.width.saturating_sub(1));
    let y = u16::try_from(row)
        .unwrap_or(0)
        .min(inner.height.saturating_sub(1));
    frame.set_cursor_position(Position::new(inner.x + x, inner.y + y));
}
