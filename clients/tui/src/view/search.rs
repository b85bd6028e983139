//! Draws the hits of the search over all sessions.

use super::{marked, put, put_emptiness};
use crate::message::Hit;
use crate::model::Model;
use crate::model::search::HitLine;
use crate::text;
use crate::time;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Columns of the kind of a field.
const FIELD: usize = 8;

/// Minimum width for the kind of the field, and for the entry where a branch was left.
const WIDE: usize = 72;

/// Columns of that entry's id.
const ID: usize = 12;

pub fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let search = &model.search;
    if let Some(why) = search.emptiness() {
        put_emptiness(model, frame, area, &why);
        return;
    }
    let columns = usize::from(area.width);
    let lines = search
        .lines()
        .skip(search.top)
        .take(usize::from(area.height));
    for (at, line) in lines.enumerate() {
        let line = match line {
            HitLine::Session(name, hits) => session_line(model, name, hits, columns),
            HitLine::Hit(index, hit) => hit_line(model, hit, index, columns),
        };
        put(frame, area, at, line);
    }
}

fn session_line(model: &Model, name: &str, hits: usize, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let tail = match hits {
        // Further hits of the session may not be loaded.
        _ if model.search.has_more() => String::new(),
        1 => " · 1 hit".to_owned(),
        hits => format!(" · {hits} hits"),
    };
    let name = if name.is_empty() { "(empty)" } else { name };
    let name = text::cut(name, columns.saturating_sub(text::width(&tail)));
    Line::from(vec![
        Span::styled(name, theme.heading),
        Span::styled(tail, theme.dim),
    ])
}

fn hit_line(model: &Model, hit: &Hit, index: usize, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let selected = index == model.search.cursor;
    let now = model.started + i64::try_from(model.now.as_secs()).unwrap_or(0);
    let pointer = if selected { "›" } else { " " };
    let path = if hit.on_active_path { "• " } else { "  " };
    let wide = columns >= WIDE;
    let field = match wide {
        true => format!("{:<FIELD$} ", hit.field),
        false => String::new(),
    };
    let left = match (&hit.left_at, hit.on_active_path) {
        (_, true) => String::new(),
        (Some(id), false) if wide => format!(" ← left at {}", text::cut(id, ID)),
        (None, false) if wide => " ← another root".to_owned(),
        _ => " ←".to_owned(),
    };
    let tail = format!("{left}  {:>4}", time::ago(hit.at, now));
    let used = text::width(pointer) + text::width(path) + text::width(&field) + text::width(&tail);
    let room = columns.saturating_sub(used);
    let mut spans = vec![
        Span::styled(pointer, theme.active),
        Span::styled(path, theme.active),
        Span::styled(field, theme.dim),
    ];
    let excerpt = marked(theme, &hit.excerpt, room, theme.text);
    let width: usize = excerpt.iter().map(Span::width).sum();
    spans.extend(excerpt);
    spans.push(Span::raw(" ".repeat(room.saturating_sub(width))));
    spans.push(Span::styled(tail, theme.dim));
    if !selected {
        return Line::from(spans);
    }
    let restyled = spans.into_iter().map(|span| {
        let on_selection = theme.on_selection(span.style, theme.selected);
        Span::styled(span.content, on_selection)
    });
    Line::from_iter(restyled)
}
