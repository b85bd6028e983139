//! Draws the model, without changing it.
//!
//! Every drawn text is sanitized ([`crate::text`]), or is a text of this program. Input fields sanitize
//! their text during layout.

mod bars;
mod command;
mod compare;
mod dialog;
mod editor;
mod focus;
mod handoff;
mod help;
mod parts;
mod picker;
mod popup;
mod preview;
mod question;
mod search;
mod sessions;
mod tree;

use crate::markdown::Prose;
use crate::marked::MarkedText;
use crate::model::dialog::Dialog;
use crate::model::{Connection, Model, Screen, layout};
use crate::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph};

pub use dialog::{choice_at, focus_columns, last_top as dialog_last};
pub use question::columns as question_columns;
pub use tree::fold_mark_columns;

/// Draws the whole screen.
pub fn draw(model: &Model, frame: &mut Frame) {
    let panes = layout::panes(model);
    bars::header(model, frame, panes.header);
    if model.compare.is_some() {
        compare::draw(model, frame, panes.compare);
    } else if model.screen == Screen::Sessions {
        sessions::draw(model, frame, panes.list_head, panes.list);
    } else if model.screen == Screen::Search {
        search::draw(model, frame, panes.hits);
    } else {
        put_frame(model, frame, panes.tree_frame, !model.preview_focused);
        put_frame(model, frame, panes.preview_frame, model.preview_focused);
        tree::draw(model, frame, panes.tree);
        preview::draw(model, frame, &panes);
        editor::draw(model, frame, panes.editor_title, panes.editor);
    }
    bars::search(model, frame, panes.search);
    bars::status(model, frame, panes.status);
    command::candidates(model, frame, panes.search);
    if model.screen == Screen::Search {
        search::completion(model, frame, panes.search);
    }
    if let Connection::Down { end, was_up } = &model.link {
        dialog::lost(model, frame, end, *was_up);
    } else if let Some(Dialog::Question(question)) = &model.dialog {
        question::draw(model, frame, question);
    } else if let Some(navigating) = model
        .navigating
        .as_ref()
        .filter(|it| it.is_shown(model.now))
    {
        dialog::navigating(model, frame, navigating);
    } else if let Some(comparing) = model.comparing.as_ref().filter(|it| it.is_shown(model.now)) {
        dialog::comparing(model, frame, comparing);
    } else if let Some(running) = model.running.as_ref().filter(|it| it.is_shown(model.now)) {
        command::running(model, frame, running);
    } else {
        dialog::draw(model, frame);
    }
}

/// Draws the frame of a pane. The frame of the focused pane is marked.
fn put_frame(model: &Model, frame: &mut Frame, area: Rect, is_focused: bool) {
    if area.height == 0 {
        return;
    }
    let theme = &model.settings.theme;
    let style = match is_focused {
        true => theme.active,
        false => theme.border,
    };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(style);
    frame.render_widget(block, area);
}

/// Draws `line` in row `at` of `area`. Does nothing if there is no such row.
fn put(frame: &mut Frame, area: Rect, at: usize, line: Line) {
    let Some(row) = u16::try_from(at).ok().filter(|row| *row < area.height) else {
        return;
    };
    let row = Rect {
        y: area.y + row,
        height: 1,
        ..area
    };
    frame.render_widget(Paragraph::new(line), row);
}

/// Returns the spans of a text in at most `columns`. The matches of a search have their own style.
fn marked(theme: &Theme, text: &MarkedText, columns: usize, style: Style) -> Vec<Span<'static>> {
    let parts = text.parts(columns).into_iter();
    let styled = parts.map(|(part, is_marked)| match is_marked {
        true => Span::styled(part, style.patch(theme.found)),
        false => Span::styled(part, style),
    });
    styled.collect()
}

/// Returns the spans of a text whose Markdown was parsed.
fn prose(theme: &Theme, prose: &Prose, style: Style) -> Vec<Span<'static>> {
    let parts = prose.parts().into_iter();
    let styled = parts
        .map(|(text, emphasis)| Span::styled(text.to_owned(), theme.emphasis(style, emphasis)));
    styled.collect()
}

/// The most lines that may follow the reason for an empty pane.
const MOST_BELOW_EMPTINESS: usize = 7;

/// Returns the row for the first line of the reason for an empty pane. It is in the upper third of the pane,
/// if all lines then fit.
fn first_line_of_emptiness(area: Rect, lines: usize) -> usize {
    let height = usize::from(area.height);
    (height / 3).min(height.saturating_sub(lines))
}

/// Draws the reason for an empty pane in its middle.
fn put_emptiness(model: &Model, frame: &mut Frame, area: Rect, why: &str) {
    let lines = crate::text::wrap(why, usize::from(area.width.saturating_sub(4)));
    let first = first_line_of_emptiness(area, MOST_BELOW_EMPTINESS);
    for (at, line) in lines.into_iter().enumerate() {
        let line = Line::styled(line, model.settings.theme.dim).centered();
        put(frame, area, first + at, line);
    }
}
