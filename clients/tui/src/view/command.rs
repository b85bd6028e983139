//! Draws the `:` line with its candidates, a running command, and its output.

use super::parts::{COLUMNS, esc_hint, input_line, key_lines, moving_title, wrapped};
use super::{popup, put};
use crate::message::WorkProgress;
use crate::model::Model;
use crate::model::command::{CommandLine, RunningCommand};
use crate::{text, time};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

/// The most candidates that are shown.
const CANDIDATES: usize = 8;

/// The most columns of a progress bar.
const BAR: u16 = 40;

/// The preferred width of a command's output in columns.
const OUTPUT: u16 = 76;

pub fn draw_line(model: &Model, frame: &mut Frame, area: Rect, line: &CommandLine) {
    let theme = &model.settings.theme;
    let room = usize::from(area.width).saturating_sub(2);
    let (visible, column) = input_line(&line.input, room);
    let spans = vec![
        Span::styled(":", theme.key),
        Span::styled(visible, theme.text),
    ];
    put(frame, area, 0, Line::from(spans));
    if model.dialog.is_none() {
        let x = u16::try_from(column + 1).unwrap_or(area.width);
        let x = x.min(area.width.saturating_sub(1));
        frame.set_cursor_position(Position::new(area.x + x, area.y));
    }
}

/// Draws the candidates above the `:` line. The `:` line is in `line_area`.
pub fn candidates(model: &Model, frame: &mut Frame, line_area: Rect) {
    let Some(line) = model.command_line.as_ref().filter(|_| line_area.height > 0) else {
        return;
    };
    let theme = &model.settings.theme;
    let columns = usize::from(line_area.width);
    let found = line.candidates();
    let most = CANDIDATES.min(usize::from(line_area.y.saturating_sub(1)));
    // One line is reserved for the note that there are more candidates.
    let least = most.saturating_sub(1);
    let top = line.selected.map_or(0, |at| (at + 1).saturating_sub(least));
    let mut lines: Vec<Line> = Vec::new();
    for (at, command) in found.iter().enumerate().skip(top).take(most) {
        let style = match line.selected == Some(at) {
            true => theme.selected,
            false => theme.key,
        };
        let name = match command.argument.is_empty() {
            true => command.name.clone(),
            false => format!("{} {}", command.name, command.argument),
        };
        let name = format!(" {name:<23} ");
        let by = command
            .by
            .as_ref()
            .map_or_else(String::new, |by| format!(" ({by})"));
        let room = columns.saturating_sub(text::width(&name));
        let about = text::cut(&format!("{}{by}", command.about), room);
        lines.push(Line::from(vec![
            Span::styled(text::cut(&name, columns), style),
            Span::styled(about, theme.dim),
        ]));
    }
    let examples = line.examples();
    if let [command] = *found
        && !examples.is_empty()
        && lines.len() < most
    {
        let examples = examples
            .iter()
            .map(|example| format!(":{} {example}", command.name));
        let text = format!(" for example  {}", examples.collect::<Vec<_>>().join("  "));
        lines.push(Line::styled(text::cut(&text, columns), theme.dim));
    }
    let below = found.len().saturating_sub(top + most);
    if below > 0 {
        lines.truncate(most.saturating_sub(1));
        let more = format!(" … {} more", below + 1);
        lines.push(Line::styled(more, theme.dim));
    }
    if line.listing {
        lines.truncate(most.saturating_sub(1));
        lines.push(Line::styled(" …", theme.dim));
    }
    let Ok(height) = u16::try_from(lines.len()) else {
        return;
    };
    let area = Rect {
        y: line_area.y.saturating_sub(height),
        height,
        ..line_area
    };
    frame.render_widget(Clear, area);
    for (at, line) in lines.into_iter().enumerate() {
        put(frame, area, at, line);
    }
}

pub fn running(model: &Model, frame: &mut Frame, running: &RunningCommand) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let elapsed = model.now.saturating_sub(running.began);
    let title = moving_title(&format!("Running {}", running.name), elapsed);
    let mut lines = progress_lines(model, running, columns);
    lines.push(Line::default());
    lines.push(esc_hint(model, "cancels it"));
    let area = popup::area(screen, columns, lines.len());
    popup::draw(frame, theme, area, &title, theme.active, lines);
}

/// Returns lines about the progress of a command, if it is known.
fn progress_lines(model: &Model, running: &RunningCommand, columns: u16) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let waiting = match (&running.operation, running.progress) {
        (None, _) => "Waiting for the client that offers it…".to_owned(),
        (Some(_), None) => "Waiting for the daemon…".to_owned(),
        (Some(operation), Some(progress)) if operation.reads_files() => {
            let WorkProgress { done, total } = progress;
            let bytes = |count: u64| time::bytes(usize::try_from(count).unwrap_or(usize::MAX));
            let Some(total) = total.filter(|total| *total > 0) else {
                return wrapped(&format!("{} read", bytes(done)), columns, theme.dim).collect();
            };
            let text = format!("{} of {}", bytes(done), bytes(total));
            let width = u64::from(columns.min(BAR));
            let full = usize::try_from(done.min(total) * width / total).unwrap_or(0);
            let empty = usize::from(columns.min(BAR)).saturating_sub(full);
            return vec![
                Line::from(vec![
                    Span::styled("█".repeat(full), theme.active),
                    Span::styled("░".repeat(empty), theme.dim),
                ]),
                Line::styled(text, theme.dim),
            ];
        }
        (Some(_), Some(WorkProgress { done, .. })) => {
            format!("Summarizing: {done} characters written.")
        }
    };
    wrapped(&waiting, columns, theme.dim).collect()
}

fn output_lines(size: (u16, u16), output: &str) -> Vec<String> {
    let columns = popup::columns(Rect::new(0, 0, size.0, size.1), OUTPUT);
    let lines = output.split('\n');
    lines
        .flat_map(|line| text::wrap(line, usize::from(columns)))
        .collect()
}

/// Returns the number of visible lines of an output with `lines` lines.
fn output_height(size: (u16, u16), lines: usize) -> usize {
    lines.min(usize::from(size.1).saturating_sub(4).max(1))
}

/// Returns the greatest first visible line to which the output can be scrolled.
pub fn pager_last(size: (u16, u16), output: &str) -> usize {
    let lines = output_lines(size, output).len();
    lines - output_height(size, lines)
}

/// Draws the output of a command.
pub fn pager(model: &Model, frame: &mut Frame, title: &str, output: &str, top: usize) {
    let theme = &model.settings.theme;
    let lines = output_lines(model.size, output);
    let height = output_height(model.size, lines.len());
    let mut keys = vec![("y", "copies"), ("esc", "closes")];
    if lines.len() > height {
        keys.insert(0, ("↑↓", "more"));
    }
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let area = popup::area(screen, popup::columns(screen, OUTPUT), height);
    let visible = lines.into_iter().skip(top).take(height);
    let visible = visible.map(|line| Line::styled(line, theme.text)).collect();
    popup::draw(frame, theme, area, title, theme.active, visible);
    for keys in key_lines(model, &keys, usize::from(area.width.saturating_sub(6))) {
        let ends = [Span::raw(" ")];
        let spans = ends.iter().cloned().chain(keys.spans).chain(ends.clone());
        popup::foot(frame, area, Line::from_iter(spans));
    }
}
