//! Two branches side by side; below each other where the screen is narrow.

use super::put;
use crate::model::Model;
use crate::model::compare::{Comparison, Side};
use crate::model::rows::Kind;
use crate::text;
use crate::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Below this width there are no columns.
const NARROW: usize = 60;

/// A line before it gets its colours.
struct Plain {
    look: Look,
    text: String,
}

#[derive(Clone, Copy)]
enum Look {
    Heading,
    User,
    Dim,
    Text,
    File,
}

/// Lines a comparison takes in `columns`.
pub fn lines_of(comparison: &Comparison, columns: u16) -> usize {
    lines(comparison, usize::from(columns), &Theme::plain()).len()
}

pub fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let Some(view) = &model.compare else {
        return;
    };
    let lines = lines(
        &view.comparison,
        usize::from(area.width),
        &model.settings.theme,
    );
    let visible = lines.into_iter().skip(view.top);
    for (at, line) in visible.take(usize::from(area.height)).enumerate() {
        put(frame, area, at, line);
    }
}

fn lines(comparison: &Comparison, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let common = match &comparison.ancestor {
        Some(ancestor) => format!("Both come from: {ancestor}"),
        None => "They have nothing in common.".to_owned(),
    };
    let mut out: Vec<Line> = text::wrap(&common, columns)
        .into_iter()
        .map(|line| Line::styled(line, theme.label))
        .collect();
    out.push(Line::default());
    if columns < NARROW {
        for side in [&comparison.left, &comparison.right] {
            out.extend(side_lines(side, columns).into_iter().map(|line| {
                let style = style(line.look, theme);
                Line::styled(line.text, style)
            }));
            out.push(Line::default());
        }
        return out;
    }
    let half = (columns - 3) / 2;
    let mut left = side_lines(&comparison.left, half).into_iter();
    let mut right = side_lines(&comparison.right, half).into_iter();
    loop {
        let (one, other) = (left.next(), right.next());
        if one.is_none() && other.is_none() {
            return out;
        }
        let cell = |line: Option<Plain>| match line {
            Some(line) => (line.text, style(line.look, theme)),
            None => (String::new(), theme.text),
        };
        let (one, one_style) = cell(one);
        let (other, other_style) = cell(other);
        let gap = " ".repeat(half.saturating_sub(text::width(&one)));
        out.push(Line::from(vec![
            Span::styled(one, one_style),
            Span::raw(gap),
            Span::styled(" │ ", theme.border),
            Span::styled(other, other_style),
        ]));
    }
}

fn style(look: Look, theme: &Theme) -> Style {
    match look {
        Look::Heading => theme.heading,
        Look::User => theme.user,
        Look::Dim => theme.dim,
        Look::Text => theme.text,
        Look::File => theme.code,
    }
}

fn side_lines(side: &Side, columns: usize) -> Vec<Plain> {
    let mut out = Vec::new();
    let mut push = |look, text: &str| {
        let pieces = text::wrap(text, columns);
        out.extend(pieces.into_iter().map(|text| Plain { look, text }));
    };
    push(Look::Heading, &text::cut(&side.tip, columns));
    push(
        Look::Dim,
        &match side.said.len() {
            0 => "nothing since".to_owned(),
            1 => "1 message since".to_owned(),
            count => format!("{count} messages since"),
        },
    );
    for (title, files) in [("modified", &side.modified), ("read", &side.read)] {
        if !files.is_empty() {
            push(Look::Text, "");
            push(Look::Heading, &format!("{title}: {}", files.len()));
        }
        for file in files {
            push(Look::File, &text::cut_front(file, columns));
        }
    }
    push(Look::Text, "");
    for said in &side.said {
        let (look, who) = match &said.kind {
            Kind::User => (Look::User, "user: "),
            Kind::Assistant => (Look::Text, "assistant: "),
            Kind::Summary => (Look::Text, "summary: "),
            Kind::Compaction => (Look::Text, "compaction: "),
            _ => (Look::Dim, ""),
        };
        push(look, &format!("{who}{}", said.text));
    }
    out
}
