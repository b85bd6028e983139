//! Draws the preview pane.

use super::{prose, put};
use crate::model::Model;
use crate::model::layout::Panes;
use crate::model::prose::LineStyle;
use crate::text;
use ratatui::Frame;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

pub fn draw(model: &Model, frame: &mut Frame, panes: &Panes) {
    let area = panes.preview;
    if area.height == 0 {
        return;
    }
    let theme = &model.settings.theme;
    let preview = &model.preview;
    let selected = model.tree.selected().map(|row| row.id.as_str());
    let arrived = preview.id().is_some() && preview.id() == selected;
    let border = if model.preview_focused {
        theme.active
    } else {
        theme.border
    };
    for line in 0..usize::from(panes.divider.height) {
        let piece = if line == 0 { "┬" } else { "│" };
        put(frame, panes.divider, line, Line::styled(piece, border));
    }
    let columns = usize::from(panes.preview_title.width);
    let is_framed = panes.preview_frame.height > 0;
    let title = match selected {
        Some(_) if is_framed => format!("─ {} ", title(model, arrived, columns.saturating_sub(4))),
        Some(_) => format!("── {} ", title(model, arrived, columns.saturating_sub(4))),
        None => String::new(),
    };
    let rest = columns.saturating_sub(text::width(&title));
    let inner = title.trim_start_matches('─');
    let rule = vec![
        Span::styled("─".repeat(text::width(&title) - text::width(inner)), border),
        Span::styled(inner.to_owned(), theme.dim),
        Span::styled("─".repeat(rest), border),
    ];
    put(frame, panes.preview_title, 0, Line::from(rule));
    if !arrived {
        // The entry that the pane shows is not the selected one yet.
        if selected.is_some() {
            put(frame, area, 0, Line::styled("…", theme.dim));
        }
        return;
    }
    let lines = preview.lines().iter().skip(preview.top);
    for (at, line) in lines.take(usize::from(area.height)).enumerate() {
        let style = match line.style {
            LineStyle::Text => theme.text,
            LineStyle::Heading => theme.heading,
            LineStyle::Code => theme.code,
            LineStyle::Added => theme.success,
            LineStyle::Removed => theme.error,
            LineStyle::Quote => theme.assistant.add_modifier(Modifier::ITALIC),
            LineStyle::Table => theme.text,
            LineStyle::Thinking => theme.dim.add_modifier(Modifier::ITALIC),
            LineStyle::Note => theme.dim,
            LineStyle::Error => theme.error,
        };
        let spans = prose(theme, &line.prose, style);
        put(frame, area, at, Line::from(spans));
    }
}

/// Returns the title, with the scroll position.
fn title(model: &Model, arrived: bool, columns: usize) -> String {
    if !arrived {
        return "…".to_owned();
    }
    let preview = &model.preview;
    let scrolled = (preview.top * 100)
        .checked_div(preview.last_top())
        .map_or_else(String::new, |percent| format!(" {percent}%"));
    let room = columns.saturating_sub(text::width(&scrolled));
    format!("{}{scrolled}", text::cut(preview.title(), room))
}
