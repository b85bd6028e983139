//! Draws the editor of a user message.

use super::put;
use crate::model::Model;
use crate::text;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

pub fn draw(model: &Model, frame: &mut Frame, title_area: Rect, area: Rect) {
    let Some(editor) = &model.editor else {
        return;
    };
    let theme = &model.settings.theme;
    let columns = usize::from(title_area.width);
    let images = match editor.images.len() {
        0 => String::new(),
        1 => " with an image".to_owned(),
        count => format!(" with {count} images"),
    };
    let state = if editor.sending { " (sending…)" } else { "" };
    let title = format!("── New user message{images}{state} ");
    let rest = columns.saturating_sub(text::width(&title));
    let rule = format!("{title}{}", "─".repeat(rest));
    put(
        frame,
        title_area,
        0,
        Line::styled(text::cut(&rule, columns), theme.active),
    );
    let (rows, (row, column)) = editor.input.layout(usize::from(area.width));
    let visible = rows.into_iter().skip(editor.top);
    for (at, drawn) in visible.take(usize::from(area.height)).enumerate() {
        put(frame, area, at, Line::styled(drawn.text, theme.text));
    }
    if model.dialog.is_none() && !editor.sending {
        let x = u16::try_from(column)
            .unwrap_or(0)
            .min(area.width.saturating_sub(1));
        let y = u16::try_from(row.saturating_sub(editor.top)).unwrap_or(0);
        frame.set_cursor_position(Position::new(area.x + x, area.y + y));
    }
}
