//! Draws a comparison.

use super::put;
use crate::model::Model;
use crate::model::compare::{Line as CompareLine, TextStyle};
use crate::text;
use crate::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

pub fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let Some(view) = &model.compare else {
        return;
    };
    let theme = &model.settings.theme;
    let visible = view.lines().iter().skip(view.top);
    for (at, line) in visible.take(usize::from(area.height)).enumerate() {
        put(frame, area, at, drawn(line, theme));
    }
}

fn drawn<'a>(line: &'a CompareLine, theme: &Theme) -> Line<'a> {
    match line {
        CompareLine::Whole(piece) => Line::styled(&*piece.text, style(piece.look, theme)),
        CompareLine::Halves(wide, left, right) => {
            let gap = " ".repeat(wide.saturating_sub(text::width(&left.text)));
            Line::from(vec![
                Span::styled(&*left.text, style(left.look, theme)),
                Span::raw(gap),
                Span::styled(" │ ", theme.border),
                Span::styled(&*right.text, style(right.look, theme)),
            ])
        }
    }
}

fn style(look: TextStyle, theme: &Theme) -> Style {
    match look {
        TextStyle::Ancestor => theme.label,
        TextStyle::Heading => theme.heading,
        TextStyle::User => theme.user,
        TextStyle::Dim => theme.dim,
        TextStyle::Text => theme.text,
        TextStyle::File => theme.code,
    }
}
