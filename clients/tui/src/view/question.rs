//! Draws a question of another client.

use super::parts::{COLUMNS, input_line, key_lines, put_cursor, wrapped};
use super::popup;
use crate::keys::{Action, Context};
use crate::model::Model;
use crate::model::input::Input;
use crate::model::question::{AnswerField, Choice, Question};
use crate::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// The most choices, and the most rows of a longer text, that are visible on a high screen.
const ROWS: usize = 8;

/// The rows of a question in addition to its choices or its text: the border, the title, hints, and
/// the lines between.
const OTHER_ROWS: usize = 8;

/// Returns the number of choices, or of rows of a longer text, that are visible at a time.
fn rows(model: &Model) -> usize {
    let spare = usize::from(model.size.1).saturating_sub(OTHER_ROWS);
    spare.clamp(1, ROWS)
}

/// Returns the width of the text in a question, in columns.
pub fn columns(size: (u16, u16)) -> usize {
    usize::from(popup::columns(Rect::new(0, 0, size.0, size.1), COLUMNS))
}

pub fn draw(model: &Model, frame: &mut Frame, question: &Question) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let (field, cursor) = field_lines(model, question, usize::from(columns));
    let mut lines: Vec<Line> = wrapped(&question.title, columns, theme.user).collect();
    for line in question
        .message
        .split('\n')
        .filter(|_| !question.message.is_empty())
    {
        lines.extend(wrapped(line, columns, theme.text));
    }
    // On a low screen, the field is more important than the lines above it.
    let spare = usize::from(model.size.1)
        .saturating_sub(field.len() + 3)
        .max(1);
    if lines.len() > spare {
        lines.truncate(spare.saturating_sub(1));
        lines.push(Line::styled("…", theme.dim));
    }
    lines.push(Line::default());
    let first = lines.len();
    lines.extend(field);
    let area = popup::area(screen, columns, lines.len());
    let title = format!("{} asks", question.by);
    let inner = popup::draw(frame, theme, area, &title, theme.active, lines);
    if let Some((row, column)) = cursor {
        put_cursor(frame, inner, first + row, column);
    }
}

/// Returns the lines of the field and its hints, and the row and the column of the cursor in these
/// lines.
fn field_lines(
    model: &Model,
    question: &Question,
    columns: usize,
) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
    let theme = &model.settings.theme;
    let empty = |input: &Input| {
        let hint = input
            .is_empty()
            .then(|| text::cut(&question.placeholder, columns));
        hint.map(|hint| Line::styled(hint, theme.dim))
    };
    match &question.field {
        AnswerField::Choice { choices, selected } => {
            (choice_lines(model, choices, *selected, columns), None)
        }
        AnswerField::Line(input) => {
            let (line, column) = input_line(input, columns.saturating_sub(1));
            let line = empty(input).unwrap_or_else(|| Line::styled(line, theme.text));
            let mut lines = vec![line, Line::default()];
            let hints = [("enter", "answers"), ("esc", "dismisses")];
            lines.extend(key_lines(model, &hints, columns));
            (lines, Some((0, column)))
        }
        AnswerField::Text(input) => {
            let (rows, (row, column)) = input.layout(columns);
            let most = self::rows(model);
            let top = (row + 1).saturating_sub(most);
            let visible = rows.into_iter().skip(top).take(most);
            let mut lines: Vec<Line> = visible
                .map(|row| Line::styled(row.text, theme.text))
                .collect();
            if let (Some(hint), Some(line)) = (empty(input), lines.first_mut()) {
                *line = hint;
            }
            lines.resize(lines.len().max(most.min(3)), Line::default());
            let hint = |action| model.settings.keymap.hint(Context::Editor, action);
            let (send, newline) = (hint(Action::Send), hint(Action::Newline));
            let hints = [
                (&*send, "answers"),
                (&*newline, "new line"),
                ("esc", "dismisses"),
            ];
            lines.push(Line::default());
            lines.extend(key_lines(model, &hints, columns));
            (lines, Some((row - top, column)))
        }
    }
}

fn choice_lines(
    model: &Model,
    choices: &[Choice],
    selected: usize,
    columns: usize,
) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let rows = rows(model);
    let top = (selected + 1).saturating_sub(rows);
    let mut lines = Vec::new();
    for (at, choice) in choices.iter().enumerate().skip(top).take(rows) {
        let pointer = if at == selected { "›" } else { " " };
        let number = match at {
            0..9 => (at + 1).to_string(),
            _ => " ".to_owned(),
        };
        let line = text::cut(&format!("{pointer} {number} {}", choice.shown), columns);
        let padding = " ".repeat(columns.saturating_sub(text::width(&line)));
        let style = match at == selected {
            true => theme.selected,
            false => theme.text,
        };
        lines.push(Line::styled(format!("{line}{padding}"), style));
    }
    if choices.len() > rows {
        let place = format!("  {} of {}", selected + 1, choices.len());
        lines.push(Line::styled(place, theme.dim));
    }
    lines.push(Line::default());
    let hints = [("enter", "answers"), ("esc", "dismisses")];
    lines.extend(key_lines(model, &hints, columns));
    lines
}
