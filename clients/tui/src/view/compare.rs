//! Draws a comparison.

use super::{prose, put};
use crate::model::Model;
use crate::model::compare::{Line as CompareLine, Piece, TextStyle};
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

fn drawn(line: &CompareLine, theme: &Theme) -> Line<'static> {
    let spans = |piece: &Piece| prose(theme, &piece.prose, style(piece.look, theme));
    match line {
        CompareLine::Whole(piece) => Line::from(spans(piece)),
        CompareLine::Halves(wide, left, right) => {
            let gap = " ".repeat(wide.saturating_sub(text::width(&left.prose.text)));
            let mut line = spans(left);
            line.push(Span::raw(gap));
            line.push(Span::styled(" │ ", theme.border));
            line.extend(spans(right));
            Line::from(line)
        }
    }
}

fn style(look: TextStyle, theme: &Theme) -> Style {
    match look {
        TextStyle::Ancestor => theme.label,
        TextStyle::Heading => theme.heading,
        TextStyle::User | TextStyle::Text => theme.text,
        TextStyle::Assistant => theme.assistant,
        TextStyle::Dim => theme.dim,
        TextStyle::File => theme.code,
    }
}
