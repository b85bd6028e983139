//! The preview pane.

use super::put;
use crate::model::Model;
use crate::model::document::LineStyle;
use crate::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

pub fn draw(model: &Model, frame: &mut Frame, divider: Rect, area: Rect) {
    if area.height == 0 {
        return;
    }
    let theme = &model.settings.theme;
    let preview = &model.preview;
    let selected = model.tree.selected();
    let arrived = preview.id().is_some() && preview.id() == selected.map(|row| row.id.as_str());
    let border = if model.preview_focused {
        theme.active
    } else {
        theme.border
    };
    let mut text_area = area;
    if divider.width == 1 && divider.height > 1 {
        for line in 0..usize::from(divider.height) {
            put(frame, divider, line, Line::styled("│", border));
        }
    } else {
        let columns = usize::from(divider.width);
        let title = format!("── {} ", title(model, columns.saturating_sub(12)));
        let rest = columns.saturating_sub(text::width(&title));
        let rule = format!("{title}{}", "─".repeat(rest));
        put(
            frame,
            divider,
            0,
            Line::styled(text::cut(&rule, columns), border),
        );
    }
    if !arrived {
        // What stood here is of another entry.
        text_area.height = text_area.height.min(1);
        if selected.is_some() {
            put(frame, text_area, 0, Line::styled("…", theme.dim));
        }
        return;
    }
    let lines = preview.lines().iter().skip(preview.top);
    for (at, line) in lines.take(usize::from(area.height)).enumerate() {
        let style = match line.style {
            LineStyle::Text => theme.text,
            LineStyle::Heading => theme.heading,
            LineStyle::Code => theme.code,
            LineStyle::Thinking => theme.dim.add_modifier(Modifier::ITALIC),
            LineStyle::Note => theme.dim,
            LineStyle::Error => theme.error,
        };
        put(
            frame,
            area,
            at,
            Line::styled(line.text.clone(), Style::from(style)),
        );
    }
}

/// What is shown, and how far it is scrolled.
fn title(model: &Model, columns: usize) -> String {
    let preview = &model.preview;
    let last = preview.last_top();
    let scrolled = if last == 0 {
        String::new()
    } else {
        format!(" {}%", preview.top * 100 / last)
    };
    let room = columns.saturating_sub(text::width(&scrolled));
    format!("{}{scrolled}", text::cut(preview.title(), room))
}
