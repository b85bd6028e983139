//! Draws a list to choose from.

use super::bars::beyond;
use super::parts::{COLUMNS, input_line, key_lines, put_cursor};
use super::popup;
use crate::model::Model;
use crate::model::picker::{Picker, PickerItem};
use crate::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// The rows of the dialog in addition to its items: the border, the filter, and the keys in up to
/// three lines.
const OTHER_ROWS: u16 = 6;

/// The most items that are visible.
const ROWS: u16 = 16;

/// The preferred width on a wide screen, in columns.
const WIDE: u16 = 96;

pub fn draw(model: &Model, frame: &mut Frame, picker: &Picker) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let wish = WIDE.min(screen.width / 5 * 4).max(COLUMNS);
    let columns = popup::columns(screen, wish);
    let room = usize::from(columns);
    let items = picker.shown();
    let most = usize::from(screen.height.saturating_sub(OTHER_ROWS).clamp(1, ROWS));
    let top = (picker.selected + 1).saturating_sub(most);
    let mut lines = Vec::new();
    for (at, item) in items.iter().enumerate().skip(top).take(most) {
        lines.push(item_line(model, item, at == picker.selected, room));
    }
    if items.is_empty() {
        let why = match (picker.is_loading(), picker.filter.is_empty()) {
            (true, _) => "Reading…",
            (false, true) => picker.kind.emptiness(),
            (false, false) => "Nothing contains this.",
        };
        lines.push(Line::styled(why, theme.dim));
    }
    let place = match items.len() {
        0 => String::new(),
        count => format!(
            "{}/{count}{}",
            picker.selected + 1,
            beyond(top, most, count)
        ),
    };
    let filter_row = lines.len();
    let wide = text::width(&place);
    let (typed, column) = input_line(&picker.filter, room.saturating_sub(wide + 3));
    let gap = room.saturating_sub(text::width(&typed) + wide + 2);
    lines.push(Line::from(vec![
        Span::styled("/ ", theme.key),
        Span::styled(typed, theme.text),
        Span::raw(" ".repeat(gap)),
        Span::styled(place, theme.dim),
    ]));
    lines.extend(key_lines(
        model,
        &[
            ("enter", picker.kind.verb()),
            ("letters", "filter"),
            ("esc", "closes"),
        ],
        room,
    ));
    let area = popup::area(screen, columns, lines.len());
    let title = picker.kind.title();
    let inner = popup::draw(frame, theme, area, title, theme.active, lines);
    put_cursor(frame, inner, filter_row, column + 2);
}

fn item_line(model: &Model, item: &PickerItem, selected: bool, room: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let pointer = if selected { "›" } else { " " };
    let path = if item.is_active { "•" } else { " " };
    let note = text::cut(&item.note, room / 2);
    let wide = room.saturating_sub(text::width(&note) + 5);
    let shown = text::cut(&item.text, wide);
    let gap = " ".repeat(wide.saturating_sub(text::width(&shown)));
    if selected {
        let line = format!("{pointer}{path} {shown}{gap}  {note}");
        return Line::styled(line, theme.selected);
    }
    Line::from(vec![
        Span::raw(pointer),
        Span::styled(path, theme.active),
        Span::styled(format!(" {shown}{gap}  "), theme.text),
        Span::styled(note, theme.dim),
    ])
}
